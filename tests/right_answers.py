"""Right answers to every exercise, in every style that learners were seen to write; the list only grows."""

RIGHT = {
    "triage": [
        "np.array([next((n for n, c in enumerate((3, 2, 4, 5), 1) if g[c]), 5 if g[0] or g[1] else 0) for g in gauges])",
        (
            "parts = np.zeros(len(gauges), int)\n"
            "parts[gauges[:, 0] | gauges[:, 1]] = 5\n"
            "for column, number in ((5, 4), (4, 3), (2, 2), (3, 1)):\n"
            "    parts[gauges[:, column]] = number\n"
            "return parts"
        ),
        (
            "found = []\n"
            "for start, curve, time, rows, order, cache in gauges:\n"
            "    if rows: found.append(1)\n"
            "    elif time: found.append(2)\n"
            "    elif order: found.append(3)\n"
            "    elif cache: found.append(4)\n"
            "    elif start or curve: found.append(5)\n"
            "    else: found.append(0)\n"
            "return np.array(found)"
        ),
    ],
    "weighted_average": [
        "weights @ values",
        "np.dot(weights, values)",
        "values.T @ weights",
        "np.einsum('n,nd->d', weights, values)",
        "np.average(values, axis=0, weights=weights)",
        "(weights[:, None] * values).sum(axis=0)",
        "(values.T * weights).sum(axis=1)",
        "(weights[None] @ values)[0]",
        "np.tensordot(weights, values, 1)",
        "sum(w * v for w, v in zip(weights, values))",
        "weights @ values / weights.sum()",
        (
            "average = np.zeros(values.shape[1])\n"
            "for i in range(len(weights)):\n"
            "    average += weights[i] * values[i]\n"
            "return average"
        ),
        ("total = 0\nfor w, v in zip(weights, values):\n    total = total + w * v\nreturn total"),
        "np.array([sum(weights[i] * values[i, j] for i in range(len(weights))) for j in range(values.shape[1])])",
    ],
    "softmax": [
        "np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)",
        "m = np.max(x, -1)[..., None]; e = np.exp(x - m); return e / np.sum(e, -1)[..., None]",
        "y = x.copy(); y -= y.max(-1, keepdims=True); np.exp(y, out=y); y /= y.sum(-1, keepdims=True); return y",
        "y = x - np.amax(x, axis=-1, keepdims=True); return np.exp(y - np.log(np.sum(np.exp(y), -1, keepdims=True)))",
        "e = np.exp((x.T - x.max(-1).T).T); return (e.T / e.sum(-1).T).T",
        "return np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True))",
        (
            "out = np.empty_like(x)\n"
            "for i in np.ndindex(x.shape[:-1]):\n"
            "    e = np.exp(x[i] - x[i].max())\n"
            "    out[i] = e / e.sum()\n"
            "return out"
        ),
    ],
    "attention": [
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "e = np.exp(scores - scores.max(axis=-1, keepdims=True)); weights = e / e.sum(axis=-1, keepdims=True)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = np.matmul(Q, np.swapaxes(K, -1, -2)) * K.shape[-1] ** -0.5\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = np.einsum('...id,...jd->...ij', Q, K) / Q.shape[-1] ** 0.5\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = (Q / math.sqrt(Q.shape[-1])) @ np.moveaxis(K, -1, -2)\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1], dtype=Q.dtype)\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores[~mask] = -np.inf\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores[~mask] = -1e9\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "scores[mask == False] = -1e9\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "scores = np.where(mask == False, -np.inf, scores)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is None: mask = True\n"
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "mask = np.ones(scores.shape, bool) if mask is None else mask\n"
            "scores[~mask] = -np.inf\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, -1e9)\n"
            "e = np.exp(scores - scores.max(axis=-1, keepdims=True)); weights = e / e.sum(axis=-1, keepdims=True)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, np.finfo(scores.dtype).min)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, np.finfo(scores.dtype).min)\n"
            "e = np.exp(scores - scores.max(axis=-1, keepdims=True)); weights = e / e.sum(axis=-1, keepdims=True)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = scores + (1 - mask.astype(scores.dtype)) * -1e9\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores += ~mask * -1e9\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores += (1 - mask) * np.finfo(scores.dtype).min\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: np.putmask(scores, ~mask, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.ma.filled(np.ma.array(scores, mask=~mask), -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "\n"
            "hidden = 0 if mask is None else ~mask; weights = ops.softmax(scores - np.float32(1e9) * hidden)\n"
            "if mask is not None: weights = weights * mask; weights /= weights.sum(-1, keepdims=True)\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return np.einsum('...ij,...jd->...id', weights, V), weights"
        ),
    ],
    "score_variance": [
        "d_k * (a**2 / 3) ** 2",
        "d_k * a**4 / 9",
        "d_k * ((2 * a)**2 / 12)**2",
        "np.float32(d_k * a**4 / 9)",
        "np.array(d_k * a**4 / 9)",
        "d_k * Fraction(a)**4 / 9",
        "d_k * Decimal(a)**4 / 9",
    ],
    "gru_step": [
        (
            "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)\n"
            "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)\n"
            "r = ops.sigmoid(x_r + h_r)\n"
            "z = ops.sigmoid(x_z + h_z)\n"
            "n = np.tanh(x_n + r * (h_n + b_h))\n"
            "return (1 - z) * n + z * h"
        ),
        (
            "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)\n"
            "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)\n"
            "r = 1 / (1 + np.exp(-(x_r + h_r)))\n"
            "z = 1 / (1 + np.exp(-x_z - h_z))\n"
            "n = np.tanh(x_n + r * (h_n + b_h))\n"
            "return (1 - z) * n + z * h"
        ),
        (
            "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)\n"
            "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)\n"
            "r = ops.sigmoid(x_r + h_r)\n"
            "z = ops.sigmoid(x_z + h_z)\n"
            "n = np.tanh(x_n + r * (h_n + b_h))\n"
            "return n + z * (h - n)"
        ),
        (
            "x_r, x_z, x_n = np.hsplit(x @ W_x + b, 3)\n"
            "h_r, h_z, h_n = np.hsplit(h @ W_h, 3)\n"
            "r = ops.sigmoid(x_r + h_r)\n"
            "z = ops.sigmoid(x_z + h_z)\n"
            "n = np.tanh(x_n + r * (h_n + b_h))\n"
            "return (1 - z) * n + z * h"
        ),
        (
            "d = h.shape[1]\n"
            "a, u = x @ W_x + b, h @ W_h\n"
            "r = ops.sigmoid(a[:, :d] + u[:, :d])\n"
            "z = ops.sigmoid(a[:, d:2 * d] + u[:, d:2 * d])\n"
            "n = np.tanh(a[:, 2 * d:] + r * (u[:, 2 * d:] + b_h))\n"
            "return (1 - z) * n + z * h"
        ),
        (
            "new = np.empty_like(h)\n"
            "W, U, c = (np.split(p, 3, axis=-1) for p in (W_x, W_h, b))\n"
            "for i in range(len(h)):\n"
            "    r, z = (1 / (1 + np.exp(-(x[i] @ W[k] + c[k] + h[i] @ U[k]))) for k in (0, 1))\n"
            "    new[i] = z * h[i] + (1 - z) * np.tanh(x[i] @ W[2] + c[2] + r * (h[i] @ U[2] + b_h))\n"
            "return new"
        ),
    ],
    "additive_score": [
        ("q = (query @ W_q)[:, None]\nk = keys @ W_k\nhidden = np.tanh(q + k)\nreturn hidden @ v"),
        "np.tanh((query @ W_q)[:, None, :] + keys @ W_k) @ v",
        "np.tanh(np.expand_dims(query @ W_q, 1) + np.einsum('bsk,ka->bsa', keys, W_k)).dot(v)",
        "np.tanh((query[:, None] @ W_q) + keys @ W_k) @ v",
        "(np.tanh((query @ W_q)[:, None] + keys @ W_k) * v).sum(axis=-1)",
        "np.stack([np.tanh(q @ W_q + k @ W_k) @ v for q, k in zip(query, keys)])",
        "return (np.tanh((query @ W_q)[:, None] + keys @ W_k) @ v[:, None])[..., 0]",
        (
            "B, S, _ = keys.shape\n"
            "scores = np.empty((B, S), query.dtype)\n"
            "for i in range(B):\n"
            "    for j in range(S):\n"
            "        scores[i, j] = v @ np.tanh(query[i] @ W_q + keys[i, j] @ W_k)\n"
            "return scores"
        ),
    ],
    "context_vector": [
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = np.einsum('bs,bsd->bd', weights, keys)\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[:, None] @ keys)[:, 0]\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = np.squeeze(weights[:, None, :] @ keys, axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = np.stack([w @ k for w, k in zip(weights, keys)])\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (keys.swapaxes(1, 2) @ weights[..., None])[..., 0]\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "e = np.exp(scores - scores.max(axis=1, keepdims=True)); weights = e / e.sum(axis=1, keepdims=True)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = scores.copy(); scores[~mask] = -np.inf\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -1e9)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, np.finfo(scores.dtype).min)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "weights = weights / weights.sum(axis=1, keepdims=True)\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context, weights"
        ),
    ],
    "split_heads": [
        "x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-2, -3)",
        "x.reshape(x.shape[:-1] + (num_heads, x.shape[-1] // num_heads)).swapaxes(-3, -2)",
        "np.moveaxis(x.reshape(*x.shape[:-1], num_heads, -1), -2, -3)",
        "np.stack(np.split(x, num_heads, axis=-1), axis=-3)",
        "np.stack([x[..., i * (d := x.shape[-1] // num_heads):(i + 1) * d] for i in range(num_heads)], -3)",
        "np.einsum('...thd->...htd', x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads))",
        (
            "*leading, T, d_model = x.shape\n"
            "d_k = d_model // num_heads\n"
            "heads = np.zeros((*leading, num_heads, T, d_k), dtype=x.dtype)\n"
            "for i in range(num_heads):\n"
            "    heads[..., i, :, :] = x[..., i * d_k:(i + 1) * d_k]\n"
            "return heads"
        ),
    ],
    "merge_heads": [
        "x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], -1)",
        "np.concatenate(np.moveaxis(x, -3, 0), axis=-1)",
        "np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-1)",
        "np.einsum('...htd->...thd', x).reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])",
        (
            "*leading, h, T, d_k = x.shape\n"
            "merged = np.empty((*leading, T, h * d_k), x.dtype)\n"
            "for i in range(h):\n"
            "    merged[..., i * d_k:(i + 1) * d_k] = x[..., i, :, :]\n"
            "return merged"
        ),
    ],
    "multi_head_attention": [
        (
            "Q, K, V = x @ W_Q, x @ W_K, x @ W_V\n"
            "Q, K, V = (attention.split_heads(y, num_heads) for y in (Q, K, V))\n"
            "heads, weights = attention.scaled_dot_product_attention(Q, K, V)\n"
            "joined = attention.merge_heads(heads)\n"
            "return joined @ W_O, weights"
        ),
        (
            "outputs, weights = [], []\n"
            "for i in range(num_heads):\n"
            "    d_k, d_v = W_Q.shape[1] // num_heads, W_V.shape[1] // num_heads\n"
            "    Q = x @ W_Q[:, i * d_k : (i + 1) * d_k]\n"
            "    K = x @ W_K[:, i * d_k : (i + 1) * d_k]\n"
            "    V = x @ W_V[:, i * d_v : (i + 1) * d_v]\n"
            "    output, A = attention.scaled_dot_product_attention(Q, K, V)\n"
            "    outputs.append(output)\n"
            "    weights.append(A)\n"
            "return np.concatenate(outputs, axis=-1) @ W_O, np.stack(weights, axis=-3)"
        ),
        (
            "Q, K, V = x @ W_Q, x @ W_K, x @ W_V\n"
            "split = lambda y: y.reshape(*y.shape[:-1], num_heads, -1).swapaxes(-2, -3)\n"
            "Q, K, V = split(Q), split(K), split(V)\n"
            "heads, weights = attention.scaled_dot_product_attention(Q, K, V)\n"
            "joined = attention.merge_heads(heads)\n"
            "return joined @ W_O, weights"
        ),
        (
            "Q, K, V = x @ W_Q, x @ W_K, x @ W_V\n"
            "Q, K, V = (attention.split_heads(y, num_heads) for y in (Q, K, V))\n"
            "\n"
            "A = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])\n"
            "weights = ops.softmax(A)\n"
            "heads = weights @ V\n"
            "joined = attention.merge_heads(heads)\n"
            "return joined @ W_O, weights"
        ),
        (
            "parts = [np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V)]\n"
            "results = [attention.scaled_dot_product_attention(x @ Q, x @ K, x @ V) for Q, K, V in zip(*parts)]\n"
            "output = sum(head @ W for (head, A), W in zip(results, np.split(W_O, num_heads)))\n"
            "return output, np.stack([A for head, A in results], axis=-3)"
        ),
    ],
    "sinusoids": [
        (
            "pos = np.arange(length)[:, None]\n"
            "power = base ** (np.arange(0, d_model, 2) / d_model)\n"
            "angles = pos / power\n"
            "table = np.zeros((length, d_model))\n"
            "table[:, 0::2] = np.sin(angles)\n"
            "table[:, 1::2] = np.cos(angles)\n"
            "return table"
        ),
        (
            "pos = np.arange(length)[:, None]\n"
            "power = np.power(base, 2 * np.arange(d_model // 2) / d_model)\n"
            "angles = pos / power\n"
            "table = np.zeros((length, d_model))\n"
            "table[:, 0::2] = np.sin(angles)\n"
            "table[:, 1::2] = np.cos(angles)\n"
            "return table"
        ),
        (
            "pos = np.arange(length)[:, None]\n"
            "rate = np.exp(-np.log(base) * np.arange(0, d_model, 2) / d_model)\n"
            "angles = pos * rate\n"
            "table = np.zeros((length, d_model))\n"
            "table[:, 0::2] = np.sin(angles)\n"
            "table[:, 1::2] = np.cos(angles)\n"
            "return table"
        ),
        (
            "pos = np.arange(length)[:, None]\n"
            "power = base ** (np.arange(0, d_model, 2) / d_model)\n"
            "angles = np.outer(np.arange(length), 1 / power)\n"
            "table = np.zeros((length, d_model))\n"
            "table[:, 0::2] = np.sin(angles)\n"
            "table[:, 1::2] = np.cos(angles)\n"
            "return table"
        ),
        (
            "pos = np.arange(length)[:, None]\n"
            "power = base ** (np.arange(0, d_model, 2) / d_model)\n"
            "angles = pos / power\n"
            "table = np.empty((length, d_model)).astype(float)\n"
            "table[:, 0::2] = np.sin(angles)\n"
            "table[:, 1::2] = np.cos(angles)\n"
            "return table"
        ),
        (
            "a = np.arange(length)[:, None] / base ** (2 * (np.arange(d_model) // 2) / d_model)\n"
            "return np.where(np.arange(d_model) % 2 == 0, np.sin(a), np.cos(a))"
        ),
        (
            "a = np.einsum('p,i->pi', np.arange(length), base ** -(np.arange(0, d_model, 2) / d_model))\n"
            "return np.stack([np.sin(a), np.cos(a)], axis=-1).reshape(length, d_model)"
        ),
        (
            "table = np.zeros((length, d_model))\n"
            "for pos in range(length):\n"
            "    for i in range(d_model // 2):\n"
            "        table[pos, 2 * i] = math.sin(pos / base ** (2 * i / d_model))\n"
            "        table[pos, 2 * i + 1] = math.cos(pos / base ** (2 * i / d_model))\n"
            "return table"
        ),
    ],
    "shift_matrix": [
        (
            "M = np.zeros((d_model, d_model))\n"
            "for i in range(d_model // 2):\n"
            "    a = offset / base ** (2 * i / d_model)\n"
            "    M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = np.cos(a)\n"
            "    M[2 * i, 2 * i + 1] = np.sin(a)\n"
            "    M[2 * i + 1, 2 * i] = -np.sin(a)\n"
            "return M"
        ),
        (
            "M = np.eye(d_model)\n"
            "for i in range(d_model // 2):\n"
            "    a = offset / base ** (2 * i / d_model)\n"
            "    M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = np.cos(a)\n"
            "    M[2 * i, 2 * i + 1] = np.sin(a)\n"
            "    M[2 * i + 1, 2 * i] = -np.sin(a)\n"
            "return M"
        ),
        (
            "a = offset / base ** (np.arange(0, d_model, 2) / d_model)\n"
            "even = np.arange(0, d_model, 2)\n"
            "M = np.zeros((d_model, d_model))\n"
            "M[even, even] = M[even + 1, even + 1] = np.cos(a)\n"
            "M[even, even + 1], M[even + 1, even] = np.sin(a), -np.sin(a)\n"
            "return M"
        ),
        (
            "a = offset / base ** (np.arange(0, d_model, 2) / d_model)\n"
            "c, s = np.repeat(np.cos(a), 2), np.repeat(np.sin(a), 2)[:-1]\n"
            "s[1::2] = 0\n"
            "return np.diag(c) + np.diag(s, 1) - np.diag(s, -1)"
        ),
    ],
    "add_positions": [
        "X + table[:X.shape[1]].astype(X.dtype)",
        "B, T, d = X.shape; return (X + table[:T]).astype(X.dtype)",
        "X + table[None, :X.shape[1]].astype(X.dtype)",
        "X + table[np.arange(X.shape[-2])].astype(X.dtype)",
        "Y = X.copy(); Y += table[:X.shape[1]]; return Y",
        ("Y = np.empty_like(X)\nfor t in range(X.shape[1]):\n    Y[:, t] = X[:, t] + table[t]\nreturn Y"),
    ],
    "layer_norm": [
        (
            "m = x.mean(axis=-1, keepdims=True)\n"
            "v = x.var(axis=-1, keepdims=True)\n"
            "return gamma * (x - m) / np.sqrt(v + eps) + beta"
        ),
        (
            "m = x.mean(axis=-1, keepdims=True)\n"
            "v = ((x - m) ** 2).mean(-1, keepdims=True)\n"
            "return gamma * (x - m) / np.sqrt(v + eps) + beta"
        ),
        (
            "m = x.mean(axis=-1, keepdims=True)\n"
            "v = np.mean(x**2, -1, keepdims=True) - m**2\n"
            "return gamma * (x - m) / np.sqrt(v + eps) + beta"
        ),
        (
            "m = x.mean(axis=-1, keepdims=True)\n"
            "v = x.std(-1, keepdims=True) ** 2\n"
            "return gamma * (x - m) / np.sqrt(v + eps) + beta"
        ),
        (
            "m = np.mean(x, -1)[..., None]\n"
            "v = np.var(x, -1)[..., None]\n"
            "return gamma * (x - m) / np.sqrt(v + eps) + beta"
        ),
        (
            "m = x.mean(axis=-1, keepdims=True)\n"
            "v = x.var(axis=-1, keepdims=True)\n"
            "return np.multiply(gamma, (x - m) * (v + eps) ** -0.5) + beta"
        ),
        (
            "m = x.mean(axis=-1, keepdims=True)\n"
            "c = x - m\n"
            "return c / np.sqrt((c * c).sum(-1, keepdims=True) / x.shape[-1] + eps) * gamma + beta"
        ),
    ],
    "feed_forward": [
        ("h = np.maximum(0, x @ W_1 + b_1)\nreturn h @ W_2 + b_2"),
        ("h = (x @ W_1 + b_1).clip(min=0)\nreturn h @ W_2 + b_2"),
        ("h = x @ W_1 + b_1\nh = h * (h > 0)\nreturn h @ W_2 + b_2"),
        ("h = x @ W_1 + b_1\nh = np.where(h > 0, h, 0)\nreturn h @ W_2 + b_2"),
        ("h = x @ W_1 + b_1\nh[h < 0] = 0\nreturn h @ W_2 + b_2"),
        ("h = ops.relu(x @ W_1 + b_1)\nreturn h @ W_2 + b_2"),
        ("h = np.maximum(np.dot(x, W_1) + b_1, 0)\nreturn np.dot(h, W_2) + b_2"),
        ("h = x @ W_1 + b_1\nh = (h + abs(h)) / 2\nreturn h @ W_2 + b_2"),
        ("h = np.maximum(0, np.einsum('...i,ij->...j', x, W_1) + b_1)\nreturn h @ W_2 + b_2"),
    ],
    "pre_norm_block": [
        ("x = x + attend(norm_1(x))\nreturn x + feed_forward(norm_2(x))"),
        ("y = attend(norm_1(x)) + x\nz = feed_forward(norm_2(y))\nreturn np.add(y, z)"),
        "x = x + attend(norm_1(x)); x = x + feed_forward(norm_2(x)); return x",
        ("a = attend(norm_1(x))\nreturn x + a + feed_forward(norm_2(x + a))"),
    ],
    "causal_mask": [
        "np.tri(T_q, T_k, k=T_k - T_q, dtype=bool)",
        "np.tril(np.ones((T_q, T_k), dtype=bool), k=T_k - T_q)",
        "~np.triu(np.ones((T_q, T_k), dtype=bool), k=T_k - T_q + 1)",
        "np.tri(T_k, dtype=bool)[-T_q:]",
        "np.tril(np.ones((T_k, T_k)))[T_k - T_q:] > 0",
        "np.arange(T_k)[None, :] <= np.arange(T_k - T_q, T_k)[:, None]",
        "np.array([[j <= i + T_k - T_q for j in range(T_k)] for i in range(T_q)])",
        "[[j <= i + T_k - T_q for j in range(T_k)] for i in range(T_q)] and np.tri(T_q, T_k, T_k - T_q) > 0",
        ("m = np.zeros((T_q, T_k), bool)\nfor i in range(T_q):\n    m[i, : i + 1 + T_k - T_q] = True\nreturn m"),
    ],
    "masked_attention": [
        "w = ops.softmax(np.where(mask, scores, -np.inf)); return w @ V, w",
        "w = ops.softmax(np.where(mask, scores, -np.inf)); return np.einsum('...ij,...jd->...id', w, V), w",
        "s = np.where(mask, scores, -np.inf); e = np.exp(s - s.max(-1, keepdims=True)); w = e / e.sum(-1, keepdims=True); w = np.nan_to_num(w); return w @ V, w",
        "s = np.where(mask, scores, -np.inf); e = np.exp(s - s.max(-1, keepdims=True)); w = e / e.sum(-1, keepdims=True); w = np.where(np.isnan(w), 0, w); return w @ V, w",
        "s = np.where(mask, scores, -1e9); e = np.exp(s - s.max(-1, keepdims=True)); w = e / e.sum(-1, keepdims=True); w = w * mask; return w @ V, w",
        "w = ops.softmax(np.where(mask, scores, -1e9)) * mask.any(-1, keepdims=True); return w @ V, w",
        "s = scores.copy(); s[~np.broadcast_to(mask, s.shape)] = -np.inf; w = ops.softmax(s); return [w @ V, w]",
    ],
    "sampling_probabilities": [
        "ops.softmax(np.where(logits >= np.sort(logits)[-top_k], logits, -np.inf) / temperature)",
        (
            "x = np.full(len(logits), -np.inf)\n"
            "i = np.argsort(logits)[-top_k:]\n"
            "x[i] = logits[i] / temperature\n"
            "return ops.softmax(x)"
        ),
        ("p = ops.softmax(logits, temperature=temperature)\np[np.argsort(p)[:-top_k]] = 0\nreturn p / p.sum()"),
        (
            "i = np.argpartition(logits, -top_k)[-top_k:]\n"
            "p = np.zeros(len(logits))\n"
            "p[i] = ops.softmax(logits[i] / temperature)\n"
            "return p"
        ),
    ],
    "decode_step": [
        "K = np.concatenate([K, x @ W_K]); V = np.concatenate([V, x @ W_V]); w = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1])); return w @ V, K, V",
        (
            "K = np.vstack([K, x @ W_K]); V = np.vstack([V, x @ W_V])\n"
            "w = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1])); return w @ V, K, V"
        ),
        (
            "K = np.append(K, x @ W_K, axis=0); V = np.append(V, x @ W_V, 0)\n"
            "w = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1])); return [w @ V, K, V]"
        ),
        "K = np.concatenate([K, x @ W_K]); V = np.concatenate([V, x @ W_V]); s = np.einsum('qd,kd->qk', x @ W_Q, K) * K.shape[-1] ** -0.5; w = ops.softmax(s); return w @ V, K, V",
    ],
    "gpt": [
        """
        B, T = ids.shape
        d = table.shape[-1]
        x = table[ids] * d**0.5 + my_table(T, d)
        for p in layers:
            n = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)
            q, k, v = (my_split_heads(n @ W, num_heads) for W in (p.W_Q, p.W_K, p.W_V))
            x = x + my_merge_heads(my_attention(q, k, v, my_causal_mask(T, T))[0]) @ p.W_O
            x = x + my_feed_forward(my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5), p.W_1, p.b_1, p.W_2, p.b_2)
        return my_layer_norm(x, gamma, beta, 1e-5) @ table.T
        """,
        """
        T, h = ids.shape[1], num_heads
        x = np.sqrt(table.shape[1]) * table[ids]
        x += positions.sinusoidal_encoding(T, table.shape[1])
        for g1, b1, WQ, WK, WV, WO, g2, b2, W1, c1, W2, c2 in layers:
            y = ops.layer_norm(x, g1, b1)
            x += attention.multi_head_attention(y, y, WQ, WK, WV, WO, h, np.tri(T, dtype=bool))[0]
            y = ops.layer_norm(x, g2, b2)
            x += np.maximum(0, y @ W1 + c1) @ W2 + c2
        y = ops.layer_norm(x, gamma, beta)
        return np.einsum("btd,vd->btv", y, table)
        """,
        """
        def layer(x, p):
            y = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)
            heads = my_attention(*[my_split_heads(y @ W, num_heads) for W in p[2:5]], my_causal_mask(x.shape[1], x.shape[1]))
            x = x + my_merge_heads(heads[0]) @ p.W_O
            return x + my_feed_forward(my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5), *p[8:])

        x = table[ids] * math.sqrt(table.shape[1]) + my_table(ids.shape[1], table.shape[1])
        for i in range(len(layers)):
            x = layer(x, layers[i])
        return my_layer_norm(x, gamma, beta, 1e-5) @ table.swapaxes(0, 1)
        """,
    ],
    "softmax_backward": [
        "weights * (dweights - np.sum(weights * dweights, axis=-1, keepdims=True))",
        "p = weights * dweights; return p - weights * p.sum(-1, keepdims=True)",
        "weights * (dweights - np.einsum('...i,...i->...', weights, dweights)[..., None])",
        "J = weights[..., None] * (np.eye(weights.shape[-1], dtype=weights.dtype) - weights[..., None, :]); return (dweights[..., None, :] @ J)[..., 0, :]",
    ],
    "attention_backward": [
        (
            "dA = np.einsum('...qv,...kv->...qk', doutput, V)\n"
            "dS = weights * (dA - (dA * weights).sum(-1, keepdims=True)) * K.shape[-1] ** -0.5\n"
            "return dS @ K, np.einsum('...qk,...qd->...kd', dS, Q), np.einsum('...qk,...qv->...kv', weights, doutput)"
        ),
        (
            "turn = lambda x: np.swapaxes(x, -1, -2)\n"
            "dS = ops.softmax_backward(doutput @ turn(V), weights)\n"
            "c = math.sqrt(Q.shape[-1])\n"
            "return dS @ (K / c), turn(dS) @ (Q / c), turn(weights) @ doutput"
        ),
    ],
    "adam_step": [
        (
            "m = m + (1 - beta_1) * (grad - m)\n"
            "v = v + (1 - beta_2) * (grad * grad - v)\n"
            "step = lr * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + eps)\n"
            "return value - step, m, v"
        ),
        (
            "m = beta_1 * m + (1 - beta_1) * grad; v = beta_2 * v + (1 - beta_2) * np.square(grad)\n"
            "return value - lr * m / (1 - beta_1**t) / ((v / (1 - beta_2**t)) ** 0.5 + eps), m, v"
        ),
    ],
    "smoothed_loss": [
        (
            "V = logits.shape[-1]\n"
            "q = np.full(logits.shape, smoothing / V)\n"
            "q = q + (1 - smoothing) * np.eye(V)[targets]\n"
            "return -(q * ops.log_softmax(logits)).sum(-1)[counts].mean()"
        ),
        (
            "x = logits[counts]; y = targets[counts]\n"
            "x = x - x.max(-1, keepdims=True)\n"
            "logs = x - np.log(np.exp(x).sum(-1, keepdims=True))\n"
            "return float(np.mean(-(1 - smoothing) * logs[np.arange(len(y)), y] - smoothing * logs.mean(-1)))"
        ),
        (
            "logs = ops.log_softmax(logits)\n"
            "right = np.take_along_axis(logs, targets[..., None], -1)[..., 0]\n"
            "losses = (smoothing - 1) * right - smoothing / logits.shape[-1] * logs.sum(-1)\n"
            "return (losses * counts).sum() / counts.sum()"
        ),
    ],
    "online_softmax": [
        (
            "new = max(largest, scores.max())\n"
            "if not np.isfinite(new): return largest, total, output\n"
            "a, w = math.exp(largest - new), np.exp(scores - new)\n"
            "return new, a * total + w.sum(), a * output + w @ values"
        ),
        (
            "new = np.maximum(largest, np.max(scores))\n"
            "base = 0.0 if np.isneginf(new) else new\n"
            "a, w = np.exp(largest - base), np.exp(scores - base)\n"
            "return new, a * total + np.sum(w), a * output + (w[:, None] * values).sum(axis=0)"
        ),
        (
            "for s, v in zip(scores, values):\n"
            "    if s == -np.inf: continue\n"
            "    new = max(largest, s)\n"
            "    total = total * np.exp(largest - new) + np.exp(s - new)\n"
            "    output = output * np.exp(largest - new) + np.exp(s - new) * v\n"
            "    largest = new\n"
            "return largest, total, output"
        ),
    ],
    "rolling_mask": [
        "i, j = np.indices((T, T)); return (j <= i) & ((i - j < window) | (j < keep))",
        "np.tri(T, dtype=bool) & (~np.tri(T, k=-window, dtype=bool) | (np.arange(T) < keep))",
        "m = np.tril(np.triu(np.ones((T, T)), k=1 - window)); m[:, :keep] = 1; return np.tril(m) > 0",
        "m = np.zeros((T, T), bool)\nfor i in range(T):\n    m[i, max(0, i - window + 1) : i + 1] = True\n    m[i, : min(keep, i + 1)] = True\nreturn m",
        "np.array([[j <= i and (i - j < window or j < keep) for j in range(T)] for i in range(T)])",
    ],
    "delta_step": [
        "S + rate * np.outer(k, v - k @ S)",
        "S + rate * k[:, None] * (v - S.T @ k)[None, :]",
        "(np.eye(len(k)) - rate * np.outer(k, k)) @ S + rate * np.outer(k, v)",
        "S + rate * np.einsum('i,j->ij', k, v - np.einsum('i,ij->j', k, S))",
    ],
    "cache_bytes": [
        "2 * kv_heads * d_head * bits // 8 * ((layers - local_layers) * tokens + local_layers * min(tokens, window))",
        "total = 0\nfor layer in range(layers):\n    kept = min(tokens, window) if layer < local_layers else tokens\n    total += 2 * kept * kv_heads * d_head * bits / 8\nreturn total",
    ],
}

# Wrong in ways that nobody foresaw: rejected, with something true to say.
STRANGE = {
    "weighted_average": [
        "np.zeros(values.shape[1])",
        "np.full(values.shape[1], np.nan)",
        "np.ones(values.shape[1])",
        "weights @ values + 0.1",
        "(weights**2) @ values",
        "values[0]",
        "raise ValueError('return')",
        "weights.sum(values)",
        "0.0",
    ],
    "softmax": [
        "np.zeros_like(x)",
        "np.full_like(x, np.nan)",
        "np.ones_like(x)",
        "np.full_like(x, 1 / x.shape[-1])",
        "np.eye(x.shape[-1])[x.shape[-1] // 2] + 0 * x",
        "x",
        "x * 2",
        "x.softmax()",
        "x + np.ones(7)",
        "raise ValueError('return')",
        "1.1 * ops.softmax(x)",
        "ops.softmax(2 * x)",
        "ops.softmax(x).round(2)",
        "ops.softmax(x) + 1e-3",
        "np.nan_to_num(ops.softmax(np.where(np.isinf(x), 0, x)))",
        "ops.softmax(x) if x.ndim != 3 else ops.softmax(x, axis=1)",
        "ops.softmax(x) if abs(x).max() < 100 else x * np.nan",
        "ops.softmax(x) if abs(x).max() < 100 else x * 0",
    ],
    "attention": [
        "np.zeros(Q.shape[:-1] + V.shape[-1:]), np.zeros(Q.shape[:-1] + K.shape[-2:-1])",
        "np.full(Q.shape[:-1] + V.shape[-1:], np.nan), np.full(Q.shape[:-1] + K.shape[-2:-1], np.nan)",
        "Q, K",
        "0, 0",
        "raise ValueError('return')",
        "Q + V",
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(5)\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / 2\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores) ** 2\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = scores * 0\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "scores = undefined\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None and mask.ndim == 2: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask[..., ::-1], scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V, weights"
        ),
        (
            "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])\n"
            "if mask is not None: scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "return weights @ V + 1, weights"
        ),
    ],
    "score_variance": [
        "0",
        "-1",
        "d_k * a",
        "math.nan",
        "math.inf",
        "d_k / 0",
        "a",
        "10**400",
        "Fraction(10**400)",
    ],
    "gru_step": [
        "h",
        "x",
        "np.zeros_like(h)",
        (
            "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)\n"
            "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)\n"
            "r = ops.sigmoid(x_r + h_r)\n"
            "z = ops.sigmoid(x_z + h_z)\n"
            "n = np.tanh(x_n + r * (h_n + b_h))\n"
            "return (1 - z) * n + z * h + 1"
        ),
        (
            "x_r, x_z, x_n = np.split(x @ W_x + b, 3, axis=-1)\n"
            "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)\n"
            "r = ops.sigmoid(x_r + h_r)\n"
            "z = ops.sigmoid(x_z + h_z)\n"
            "n = undefined\n"
            "return (1 - z) * n + z * h"
        ),
    ],
    "additive_score": [
        "keys",
        "np.zeros(keys.shape[:2])",
        ("q = (query @ W_q)[:, None]\nk = keys @ W_k\nhidden = np.tanh(q + k)\nreturn hidden @ v + 1"),
        "0",
    ],
    "context_vector": [
        "scores, keys",
        "keys[:, 0], scores",
        (
            "scores = np.where(mask, scores, -np.inf)\n"
            "weights = ops.softmax(scores)\n"
            "\n"
            "context = (weights[..., None] * keys).sum(axis=1)\n"
            "return context + 1, weights"
        ),
        "None, None",
    ],
    "sinusoids": [
        "np.zeros((length, d_model))",
        (
            "pos = np.arange(length)[:, None]\n"
            "power = base ** (np.arange(0, d_model, 2) / d_model)\n"
            "angles = pos / power + 0.1\n"
            "table = np.zeros((length, d_model))\n"
            "table[:, 0::2] = np.sin(angles)\n"
            "table[:, 1::2] = np.cos(angles)\n"
            "return table"
        ),
        "np.random.rand(3)",
        "0",
    ],
    "shift_matrix": [
        "np.eye(d_model)",
        "np.zeros((d_model, d_model))",
        "2 * np.eye(d_model)",
        "raise ValueError('return')",
    ],
    "add_positions": [
        "X + 1",
        "0 * X",
        "X - table[:X.shape[1]]",
        "X @ table.T",
    ],
}
