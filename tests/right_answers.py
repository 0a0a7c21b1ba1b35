"""Right answers to every exercise, in every style that learners were seen to write; the list only grows.

An answer is the solution with some of its steps replaced ("" leaves one out), or a whole body, where it goes another way.
"""


def bodies(bank, exercise):
    """Return the bodies of an exercise's answers in `bank`, RIGHT or STRANGE."""
    answers = bank.get(exercise.name, ())
    return [exercise.body(answer) if isinstance(answer, dict) else answer for answer in answers]


OWN_SOFTMAX = "e = np.exp(scores - scores.max(-1, keepdims=True)); weights = e / e.sum(-1, keepdims=True)"


RIGHT = {
    "first_difference": [
        """
        for n, (x, y) in enumerate(zip(original, port)):
            if np.max(abs(y - x)) > 1e-5 * np.max(abs(x)):
                return n
        return len(original)
        """,
        """
        agree = [np.abs(np.array(y) - x).max() <= np.abs(x).max() / 1e5 for x, y in zip(original, port)]
        return np.cumprod(agree).sum()
        """,
        "[*(max(abs(y - x).ravel()) > 1e-5 * max(abs(x).ravel()) for x, y in zip(original, port)), True].index(True)",
        """
        n = 0
        while n < len(original):
            off = np.linalg.norm((port[n] - original[n]).ravel(), np.inf)
            if off > 0.00001 * np.linalg.norm(original[n].ravel(), np.inf):
                break
            n += 1
        return n
        """,
    ],
    "cache_parity": [
        """
        past = model.new_past()
        logits, _ = model.forward(ids[:prompt][None], past)
        for symbol in ids[prompt:]:
            new, _ = model.forward(np.array([[symbol]]), past)
            logits = np.concatenate([logits, new], axis=1)
        return np.abs(logits - model.forward(ids[None])[0])[0].max(-1)
        """,
        """
        past = model.new_past()
        moved = np.empty(len(ids))
        whole = model.forward(ids[None])[0][0]
        moved[:prompt] = np.abs(model.forward(ids[None, :prompt], past)[0][0] - whole[:prompt]).max(axis=1)
        for t in range(prompt, len(ids)):
            moved[t] = np.abs(model.forward(ids[None, [t]], past)[0][0, 0] - whole[t]).max()
        return moved
        """,
        """
        past = model.new_past()
        cuts = np.split(ids, range(prompt, len(ids)))
        parts = np.vstack([model.forward(part[None], past)[0][0] for part in cuts if len(part)])
        return np.max(abs(parts - model.forward(ids[None])[0][0]), axis=-1)
        """,
    ],
    "patched_inputs": [
        {},
        """
        Q, K, V = (norm(x) @ W for W in (W_Q, W_K, W_V))
        less = norm(x - written)
        if into == "queries":
            Q = less @ W_Q
        elif into == "keys":
            K = less @ W_K
        else:
            V = less @ W_V
        return Q, K, V
        """,
        """
        streams = {name: norm(x) for name in ("queries", "keys", "values")}
        streams[into] = norm(x - written)
        return streams["queries"] @ W_Q, streams["keys"] @ W_K, streams["values"] @ W_V
        """,
        """
        q = k = v = x
        if into == "queries": q = x - written
        if into == "keys": k = x - written
        if into == "values": v = x - written
        return np.matmul(norm(q), W_Q), np.matmul(norm(k), W_K), np.matmul(norm(v), W_V)
        """,
        """
        out = []
        for name, W in zip(["queries", "keys", "values"], [W_Q, W_K, W_V]):
            stream = x - written if name == into else x
            out.append(norm(stream) @ W)
        return tuple(out)
        """,
        "tuple(norm(x - written * (name == into)) @ W for name, W in zip(('queries', 'keys', 'values'), (W_Q, W_K, W_V)))",
        """
        def make(name, W):
            return norm(x - written if into == name else x) @ W
        return make("queries", W_Q), make("keys", W_K), make("values", W_V)
        """,
    ],
    "knock_out": [
        """
        out = outputs.copy()
        for h in heads:
            out[:, h] = 0 if by == "zero" else out[:, h].mean((0, 1))
        return out
        """,
        """
        keep = np.ones(outputs.shape[1], bool)
        keep[heads] = False
        mean = np.broadcast_to(outputs.mean((0, 2), keepdims=True), outputs.shape)
        return np.where(keep[:, None, None], outputs, mean * (by == "mean"))
        """,
    ],
    "moved_message": [
        "x + np.roll(written, places, axis=-2) - written",
        """
        T = x.shape[-2]
        return x - written + written[..., (np.arange(T) - places) % T, :]
        """,
    ],
    "induction_head": [
        {"qk_0": "QK_0[place, np.maximum(place - 1, V)] = 1"},
        """
        QK_0, OV_0, QK_1, OV_1 = (np.zeros((3 * V + T, 3 * V + T)) for _ in range(4))
        for t in range(1, T):
            QK_0[V + t, V + t - 1] = 1
        for s in range(V):
            OV_0[s, V + T + s] = QK_1[s, V + T + s] = OV_1[s, 2 * V + T + s] = 1
        return QK_0, OV_0, QK_1, OV_1
        """,
    ],
    "weighted_average": [
        "weights @ values",
        "np.dot(weights, values)",
        "values.T @ weights",
        "np.einsum('n,nd->d', weights, values)",
        "np.average(values, axis=0, weights=weights)",
        {},
        "(values.T * weights).sum(axis=1)",
        "(weights[None] @ values)[0]",
        "np.tensordot(weights, values, 1)",
        "sum(w * v for w, v in zip(weights, values))",
        "weights @ values / weights.sum()",
        "average = np.zeros(values.shape[1])\nfor i in range(len(weights)):\n    average += weights[i] * values[i]\nreturn average",
        "total = 0\nfor w, v in zip(weights, values):\n    total = total + w * v\nreturn total",
        "np.array([sum(weights[i] * values[i, j] for i in range(len(weights))) for j in range(values.shape[1])])",
    ],
    "softmax": [
        "np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)",
        "m = np.max(x, -1)[..., None]; e = np.exp(x - m); return e / np.sum(e, -1)[..., None]",
        "y = x.copy(); y -= y.max(-1, keepdims=True); np.exp(y, out=y); y /= y.sum(-1, keepdims=True); return y",
        "y = x - np.amax(x, axis=-1, keepdims=True); return np.exp(y - np.log(np.sum(np.exp(y), -1, keepdims=True)))",
        "e = np.exp((x.T - x.max(-1).T).T); return (e.T / e.sum(-1).T).T",
        "return np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True))",
        """
        out = np.empty_like(x)
        for i in np.ndindex(x.shape[:-1]):
            e = np.exp(x[i] - x[i].max())
            out[i] = e / e.sum()
        return out
        """,
    ],
    "attention": [
        {"scale": "", "score": "scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])"},
        {"weights": OWN_SOFTMAX},
        {"scale": "", "score": "scores = np.matmul(Q, np.swapaxes(K, -1, -2)) * K.shape[-1] ** -0.5"},
        {"scale": "", "score": "scores = np.einsum('...id,...jd->...ij', Q, K) / Q.shape[-1] ** 0.5"},
        {"scale": "", "score": "scores = (Q / math.sqrt(Q.shape[-1])) @ np.moveaxis(K, -1, -2)"},
        {"scale": "scores = scores / np.sqrt(K.shape[-1], dtype=Q.dtype)"},
        {"mask": "if mask is not None: scores[~mask] = -np.inf"},
        {"mask": "if mask is not None: scores[~mask] = -1e9"},
        {"mask": "scores[mask == False] = -1e9"},
        {"mask": "scores = np.where(mask == False, -np.inf, scores)"},
        {"mask": "if mask is None: mask = True\nscores = np.where(mask, scores, -np.inf)"},
        {"mask": "mask = np.ones(scores.shape, bool) if mask is None else mask\nscores[~mask] = -np.inf"},
        {"mask": "if mask is not None: scores = np.where(mask, scores, -1e9)", "weights": OWN_SOFTMAX},
        {"mask": "if mask is not None: scores = np.where(mask, scores, np.finfo(scores.dtype).min)"},
        {
            "mask": "if mask is not None: scores = np.where(mask, scores, np.finfo(scores.dtype).min)",
            "weights": OWN_SOFTMAX,
        },
        {"mask": "if mask is not None: scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)"},
        {"mask": "if mask is not None: scores = scores + (1 - mask.astype(scores.dtype)) * -1e9"},
        {"mask": "if mask is not None: scores += ~mask * -1e9"},
        {"mask": "if mask is not None: scores += (1 - mask) * np.finfo(scores.dtype).min"},
        {"mask": "if mask is not None: np.putmask(scores, ~mask, -np.inf)"},
        {"mask": "if mask is not None: scores = np.ma.filled(np.ma.array(scores, mask=~mask), -np.inf)"},
        {
            "mask": "hidden = 0 if mask is None else ~mask",
            "weights": """
                weights = ops.softmax(scores - np.float32(1e9) * hidden)
                if mask is not None: weights = weights * mask; weights /= weights.sum(-1, keepdims=True)
                """,
        },
        {"average": "output = np.einsum('...ij,...jd->...id', weights, V)"},
    ],
    "score_variance": [
        {},
        "d_k * a**4 / 9",
        "d_k * ((2 * a)**2 / 12)**2",
        "np.float32(d_k * a**4 / 9)",
        "np.array(d_k * a**4 / 9)",
        "d_k * Fraction(a)**4 / 9",
        "d_k * Decimal(a)**4 / 9",
    ],
    "additive_score": [
        {},
        "np.tanh((query @ W_q)[:, None, :] + keys @ W_k) @ v",
        "np.tanh(np.expand_dims(query @ W_q, 1) + np.einsum('bsk,ka->bsa', keys, W_k)).dot(v)",
        {"query": "from_query = query[:, None] @ W_q"},
        {"score": "return (hidden * v).sum(axis=-1)"},
        "np.stack([np.tanh(q @ W_q + k @ W_k) @ v for q, k in zip(query, keys)])",
        {"score": "return (hidden @ v[:, None])[..., 0]"},
        """
        B, S, _ = keys.shape
        scores = np.empty((B, S), query.dtype)
        for i in range(B):
            for j in range(S):
                scores[i, j] = v @ np.tanh(query[i] @ W_q + keys[i, j] @ W_k)
        return scores
        """,
    ],
    "context_vector": [
        {"average": "context = (weights[..., None] * keys).sum(axis=1)"},
        {"average": "context = np.einsum('bs,bsd->bd', weights, keys)"},
        {},
        {"average": "context = np.squeeze(weights[:, None, :] @ keys, axis=1)"},
        {"average": "context = np.stack([w @ k for w, k in zip(weights, keys)])"},
        {"average": "context = (keys.swapaxes(1, 2) @ weights[..., None])[..., 0]"},
        {"weights": OWN_SOFTMAX},
        {"mask": "scores = scores.copy(); scores[~mask] = -np.inf"},
        {"mask": "scores = np.where(mask, scores, -1e9)"},
        {"mask": "scores = np.where(mask, scores, np.finfo(scores.dtype).min)"},
        {"mask": "scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)"},
        {"weights": "weights = ops.softmax(scores)\nweights = weights / weights.sum(axis=1, keepdims=True)"},
    ],
    "split_heads": [
        "x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-2, -3)",
        "x.reshape(x.shape[:-1] + (num_heads, x.shape[-1] // num_heads)).swapaxes(-3, -2)",
        {"swap": "return np.moveaxis(x, -2, -3)"},
        "np.stack(np.split(x, num_heads, axis=-1), axis=-3)",
        "np.stack([x[..., i * (d := x.shape[-1] // num_heads):(i + 1) * d] for i in range(num_heads)], -3)",
        {"swap": "return np.einsum('...thd->...htd', x)"},
        {
            "cut": "heads = np.zeros((*leading, num_heads, T, d_k), dtype=x.dtype)",
            "swap": "for i in range(num_heads):\n    heads[..., i, :, :] = x[..., i * d_k:(i + 1) * d_k]\nreturn heads",
        },
    ],
    "without_head": [
        "W_O * (np.arange(len(W_O)) // (len(W_O) // num_heads) != head)[:, None].astype(W_O.dtype)",
        {"copy": "W_O = np.array(W_O)"},
        """
        rows = np.split(W_O, num_heads)
        rows[head] = np.zeros_like(rows[head])
        return np.concatenate(rows)
        """,
        """
        new = W_O.copy().reshape(num_heads, -1, W_O.shape[1])
        new[head] = 0
        return new.reshape(W_O.shape)
        """,
    ],
    "multi_head_attention": [
        {"Q": "", "K": "", "V": "Q, K, V = (attention.split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))"},
        """
        outputs, weights = [], []
        for i in range(num_heads):
            d_k, d_v = W_Q.shape[1] // num_heads, W_V.shape[1] // num_heads
            Q = x @ W_Q[:, i * d_k : (i + 1) * d_k]
            K = x @ W_K[:, i * d_k : (i + 1) * d_k]
            V = x @ W_V[:, i * d_v : (i + 1) * d_v]
            output, A = attention.scaled_dot_product_attention(Q, K, V)
            outputs.append(output)
            weights.append(A)
        return np.concatenate(outputs, axis=-1) @ W_O, np.stack(weights, axis=-3)
        """,
        {
            "Q": "split = lambda y: y.reshape(*y.shape[:-1], num_heads, -1).swapaxes(-2, -3)",
            "K": "Q, K, V = split(x @ W_Q), split(x @ W_K), split(x @ W_V)",
            "V": "",
        },
        {"attend": "weights = ops.softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1]))\nheads = weights @ V"},
        """
        parts = [np.split(W, num_heads, axis=1) for W in (W_Q, W_K, W_V)]
        results = [attention.scaled_dot_product_attention(x @ Q, x @ K, x @ V) for Q, K, V in zip(*parts)]
        output = sum(head @ W for (head, A), W in zip(results, np.split(W_O, num_heads)))
        return output, np.stack([A for head, A in results], axis=-3)
        """,
    ],
    "sinusoids": [
        {"table": "table = np.zeros((length, d_model))"},
        {"power": "power = np.power(base, 2 * np.arange(d_model // 2) / d_model)"},
        {"power": "rate = np.exp(-np.log(base) * exponents)", "angles": "angles = pos * rate"},
        {"angles": "angles = np.outer(np.arange(length), 1 / power)"},
        {"table": "table = np.empty((length, d_model)).astype(float)"},
        "a = np.arange(length)[:, None] / base ** (2 * (np.arange(d_model) // 2) / d_model)\nreturn np.where(np.arange(d_model) % 2 == 0, np.sin(a), np.cos(a))",
        {
            "angles": "angles = np.einsum('p,i->pi', np.arange(length), 1 / power)",
            "table": "table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, d_model)",
            "sines": "",
            "cosines": "",
        },
        """
        table = np.zeros((length, d_model))
        for pos in range(length):
            for i in range(d_model // 2):
                table[pos, 2 * i] = math.sin(pos / base ** (2 * i / d_model))
                table[pos, 2 * i + 1] = math.cos(pos / base ** (2 * i / d_model))
        return table
        """,
    ],
    "slow_hands": [
        """
        rates = []
        for i in range(d // 2):
            rate = base ** (-2 * i / d)
            rates.append(rate / factor if i in slow else rate)
        return np.array(rates)
        """,
        {"slowed": "for i in slow: rates[i] = rates[i] / factor"},
        {"slowed": "rates = np.where(np.isin(np.arange(d // 2), slow), rates / factor, rates)"},
        {"slowed": "rates[np.array(slow, dtype=int)] *= 1 / factor"},
        {"rates": "rates = np.exp(-np.log(base) * exponents)"},
        {"rates": "rates = 1 / np.power(base, exponents)"},
        {"exponents": "exponents = 2 * np.arange(d // 2) / d"},
        {"slowed": "rates[[i for i in range(d // 2) if i in slow]] /= factor"},
    ],
    "layer_norm": [
        {"normal": "", "root": "", "answer": "return gamma * (x - mean) / np.sqrt(variance + eps) + beta"},
        {"variance": "variance = ((x - mean) ** 2).mean(-1, keepdims=True)"},
        {"variance": "variance = np.mean(x**2, -1, keepdims=True) - mean**2"},
        {"variance": "variance = x.std(-1, keepdims=True) ** 2"},
        {"mean": "mean = np.mean(x, -1)[..., None]", "variance": "variance = np.var(x, -1)[..., None]"},
        {"root": "", "normal": "normal = (x - mean) * (variance + eps) ** -0.5"},
        "c = x - x.mean(-1, keepdims=True)\nreturn c / np.sqrt((c * c).sum(-1, keepdims=True) / x.shape[-1] + eps) * gamma + beta",
    ],
    "feed_forward": [
        {},
        {"relu": "hidden = hidden.clip(min=0)"},
        {"relu": "hidden = hidden * (hidden > 0)"},
        {"relu": "hidden = np.where(hidden > 0, hidden, 0)"},
        {"relu": "hidden[hidden < 0] = 0"},
        {"relu": "hidden = ops.relu(hidden)"},
        "h = np.maximum(np.dot(x, W_1) + b_1, 0)\nreturn np.dot(h, W_2) + b_2",
        {"relu": "hidden = (hidden + abs(hidden)) / 2"},
        {"first": "hidden = np.einsum('...i,ij->...j', x, W_1)"},
    ],
    "pre_norm_block": [
        {},
        "y = attend(norm_1(x)) + x\nz = feed_forward(norm_2(y))\nreturn np.add(y, z)",
        {"second": "x = x + feed_forward(norm_2(x))\nreturn x"},
        "a = attend(norm_1(x))\nreturn x + a + feed_forward(norm_2(x + a))",
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
        "m = np.zeros((T_q, T_k), bool)\nfor i in range(T_q):\n    m[i, : i + 1 + T_k - T_q] = True\nreturn m",
    ],
    "leak_test": [
        "x2 = np.array(x); x2[position] = other; return np.abs(f(x) - f(x2))[:position].max(-1)",
        "changed = np.where(np.arange(len(x))[:, None] == position, other, x); return np.array([np.abs(a - b).max() for a, b in zip(f(x)[:position], f(changed))])",
    ],
    "text_loss": [
        "-ops.log_softmax(logits)[np.arange(len(ids) - 1), ids[1:]].mean() / np.log(2)",
        "p = ops.softmax(logits[:-1]); return -np.log2(np.take_along_axis(p, ids[1:, None], axis=-1)).mean()",
        "p = ops.softmax(logits); return sum(-np.log2(p[t, ids[t + 1]]) for t in range(len(ids) - 1)) / (len(ids) - 1)",
        "p = ops.softmax(logits)[:-1]; return -np.log2((p * np.eye(p.shape[1])[ids[1:]]).sum(-1)).mean()",
    ],
    "sampling_probabilities": [
        "ops.softmax(np.where(logits >= np.sort(logits)[-top_k], logits, -np.inf) / temperature)",
        "x = np.full(len(logits), -np.inf); i = np.argsort(logits)[-top_k:]; x[i] = logits[i] / temperature; return ops.softmax(x)",
        "p = ops.softmax(logits, temperature=temperature); p[np.argsort(p)[:-top_k]] = 0; return p / p.sum()",
        "i = np.argpartition(logits, -top_k)[-top_k:]; p = np.zeros(len(logits)); p[i] = ops.softmax(logits[i] / temperature); return p",
    ],
    "decode_step": [
        "K = np.concatenate([K, x @ W_K]); V = np.concatenate([V, x @ W_V]); w = ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1])); return w @ V, K, V",
        {"grow_K": "K = np.vstack([K, k])", "grow_V": "V = np.vstack([V, v])"},
        {
            "grow_K": "K = np.append(K, k, axis=0)",
            "grow_V": "V = np.append(V, v, 0)",
            "answer": "return [output, K, V]",
        },
        {"score": "scores = np.einsum('qd,kd->qk', q, K)", "scale": "scores = scores * K.shape[-1] ** -0.5"},
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
    "swiglu": [
        "g = x @ W_gate; return (g * ops.sigmoid(g) * (x @ W_up)) @ W_down",
        "u, g = x @ W_up, x @ W_gate; return (u * (g * ops.sigmoid(g))) @ W_down",
        "def silu(z): return z * ops.sigmoid(z)\nreturn np.matmul(silu(np.matmul(x, W_gate)) * np.matmul(x, W_up), W_down)",
    ],
    "llama_block": [
        """
        y = norm(x, p.gamma_1)
        Q, K, V = (attention.split_heads(y @ W, h) for W, h in ((p.W_Q, p.h), (p.W_K, p.h_kv), (p.W_V, p.h_kv)))
        x = x + attention.merge_heads(attend(turn(Q), turn(K), V)) @ p.W_O
        return x + feed_forward(norm(x, p.gamma_2), p.W_gate, p.W_up, p.W_down)
        """,
        """
        T = len(x)
        n = norm(x, p.gamma_1)
        q = (n @ p.W_Q).reshape(T, p.h, -1).swapaxes(0, 1)
        k = (n @ p.W_K).reshape(T, p.h_kv, -1).swapaxes(0, 1)
        v = (n @ p.W_V).reshape(T, p.h_kv, -1).swapaxes(0, 1)
        a = attend(turn(q), turn(k), v).swapaxes(0, 1).reshape(T, -1) @ p.W_O
        z = x + a
        return z + feed_forward(norm(z, p.gamma_2), p.W_gate, p.W_up, p.W_down)
        """,
    ],
    "softmax_backward": [
        "weights * (dweights - np.sum(weights * dweights, axis=-1, keepdims=True))",
        "p = weights * dweights; return p - weights * p.sum(-1, keepdims=True)",
        {"total": "total = np.einsum('...i,...i->...', weights, dweights)[..., None]"},
        "J = weights[..., None] * (np.eye(weights.shape[-1], dtype=weights.dtype) - weights[..., None, :]); return (dweights[..., None, :] @ J)[..., 0, :]",
    ],
    "attention_backward": [
        {
            "values": "dV = np.einsum('...qk,...qv->...kv', weights, doutput)",
            "weights": "dA = np.einsum('...qv,...kv->...qk', doutput, V)",
            "softmax": "dscores = weights * (dA - (dA * weights).sum(-1, keepdims=True))",
            "scale": "dscores = dscores * K.shape[-1] ** -0.5",
            "keys": "dK = np.einsum('...qk,...qd->...kd', dscores, Q)",
        },
        """
        turn = lambda x: np.swapaxes(x, -1, -2)
        dS = ops.softmax_backward(doutput @ turn(V), weights)
        c = math.sqrt(Q.shape[-1])
        return dS @ (K / c), turn(dS) @ (Q / c), turn(weights) @ doutput
        """,
    ],
    "adam_step": [
        {"m": "m = m + (1 - beta_1) * (grad - m)", "v": "v = v + (1 - beta_2) * (grad * grad - v)"},
        {
            "v": "v = beta_2 * v + (1 - beta_2) * np.square(grad)",
            "value": "value = value - lr * m / (1 - beta_1**t) / ((v / (1 - beta_2**t)) ** 0.5 + eps)",
        },
    ],
    "loss_backward": [
        {
            "p": "e = np.exp(logits - logits.max(-1, keepdims=True)); p = e / e.sum(-1, keepdims=True)",
            "target": "target = np.arange(logits.shape[-1]) == targets[..., None]",
        },
        """
        p = ops.softmax(logits)
        rows, ids = p.reshape(-1, p.shape[-1]), targets.ravel()
        rows[np.arange(len(ids)), ids] -= 1
        return rows.reshape(logits.shape) / len(ids)
        """,
        {
            "target": "target = np.zeros_like(p); np.put_along_axis(target, targets[..., None], 1, axis=-1)",
            "answer": "return (p - target) / math.prod(targets.shape)",
        },
    ],
    "online_softmax": [
        {
            "nothing": "if not np.isfinite(new): return largest, total, output",
            "shrink": "shrink = math.exp(largest - new)",
        },
        {
            "largest": "new = np.maximum(largest, np.max(scores))",
            "nothing": "base = 0.0 if np.isneginf(new) else new",
            "shrink": "shrink = np.exp(largest - base)",
            "weights": "weights = np.exp(scores - base)",
            "output": "output = output * shrink + (weights[:, None] * values).sum(axis=0)",
        },
        """
        for s, v in zip(scores, values):
            if s == -np.inf: continue
            new = max(largest, s)
            total = total * np.exp(largest - new) + np.exp(s - new)
            output = output * np.exp(largest - new) + np.exp(s - new) * v
            largest = new
        return largest, total, output
        """,
    ],
    "delta_step": [
        "S + rate * np.outer(k, v - k @ S)",
        {"read": "old = S.T @ k", "write": "change = k[:, None] * error[None, :]"},
        "(np.eye(len(k)) - rate * np.outer(k, k)) @ S + rate * np.outer(k, v)",
        {"read": "old = np.einsum('i,ij->j', k, S)", "write": "change = np.einsum('i,j->ij', k, error)"},
    ],
    "rounded": [
        {"alike": "step[step == 0] = 1"},
        {"alike": "step = step + (step == 0)", "whole": "whole = np.rint((x - low) / step)"},
        "y = x if axis == 1 else x.T\nlow = y.min(axis=1)[:, None]\nspan = y.max(axis=1)[:, None] - low\nspan[span == 0] = 1\n"
        "n = 2**bits - 1\nout = np.round((y - low) / span * n) / n * span + low\nreturn out if axis == 1 else out.T",
        "out = x.astype(float)\nlines = out if axis == 1 else out.T\nfor line in lines:\n    levels = np.linspace(line.min(), line.max(), 2**bits)\n"
        "    line[:] = levels[np.abs(line[:, None] - levels).argmin(axis=1)]\nreturn out",
    ],
    "merge_pairs": [
        {},
        {
            "loop": "i = 0\nwhile i < len(ids):\n    if i < len(ids) - 1 and ids[i] == pair[0] and ids[i + 1] == pair[1]:\n        merged.append(new)\n        i = i + 2\n    else:\n        merged.append(ids[i])\n        i = i + 1"
        },
        {
            "loop": "i = 0\nwhile i < len(ids):\n    if tuple(ids[i : i + 2]) == pair:\n        merged += [new]\n        i += 2\n        continue\n    merged += [ids[i]]\n    i += 1"
        },
        """
        a, b = pair
        merged, skip = [], False
        for i in range(len(ids)):
            if skip:
                skip = False
                continue
            if ids[i] == a and i + 1 < len(ids) and ids[i + 1] == b:
                merged.append(new)
                skip = True
            else:
                merged.append(ids[i])
        return np.array(merged)
        """,
        """
        ids = ids.tolist()
        i = 0
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == pair:
                ids[i : i + 2] = [new]
            i += 1
        return np.array(ids)
        """,
        """
        merged = []
        for id_ in ids:
            if merged and (merged[-1], id_) == pair:
                merged[-1] = new
            else:
                merged.append(id_)
        return np.asarray(merged)
        """,
        """
        out, used = ids.copy(), -1
        keep = np.ones(len(ids), dtype=bool)
        for i in np.flatnonzero((ids[:-1] == pair[0]) & (ids[1:] == pair[1])):
            if i > used:
                out[i], keep[i + 1], used = new, False, i + 1
        return out[keep]
        """,
        """
        text = "".join(map(chr, ids)).replace(chr(pair[0]) + chr(pair[1]), chr(new))
        return np.array([ord(c) for c in text])
        """,
        """
        def walk(ids):
            if len(ids) < 2:
                return ids
            if (ids[0], ids[1]) == pair:
                return [new] + walk(ids[2:])
            return [ids[0]] + walk(ids[1:])
        return np.array(walk(list(ids)))
        """,
    ],
    "learn_merges": [
        {},
        {
            "loop": """
            for n in range(count):
                counts = {}
                for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):
                    counts[a, b] = counts.get((a, b), 0) + 1
                best = max(counts, key=counts.get)
                pairs += [list(best)]
                ids = merge(ids, best, base + n)
            """
        },
        """
        text, found = list(ids), np.zeros((count, 2), dtype=int)
        for n in range(count):
            counts = Counter()
            for i in range(len(text) - 1):
                counts[text[i], text[i + 1]] += 1
            found[n] = counts.most_common(1)[0][0]
            text = merge(np.array(text), tuple(found[n]), n + base)
        return found
        """,
        """
        pairs, size = [], base + count
        while len(pairs) < count:
            codes, counts = np.unique(ids[:-1] * size + ids[1:], return_counts=True)
            pairs.append(divmod(codes[counts.argmax()], size))
            ids = merge(ids, pairs[-1], base + len(pairs) - 1)
        return np.array(pairs)
        """,
        """
        if count == 0:
            return []
        pair = Counter(zip(ids, ids[1:])).most_common()[0][0]
        rest = learn_merges(merge(ids, pair, base), count - 1, base + 1)
        return np.array([pair, *rest])
        """,
    ],
    "bits_per_character": [
        {},
        "nats.sum() / math.log(2) / lengths.sum()",
        "np.sum(nats) / (np.log(2) * np.sum(lengths))",
        "nats.mean() / math.log(2) / lengths.mean()",
        "nats.sum() * math.log2(math.e) / lengths.sum()",
        "-np.log2(np.exp(-nats)).sum() / lengths.sum()",
        "-np.log2(np.exp(-nats)).mean() / np.mean(lengths)",
        "np.average(nats / lengths, weights=lengths) / math.log(2)",
        "sum(nats) / math.log(2) / sum(lengths)",
        """
        bits = characters = 0
        for n, length in zip(nats, lengths):
            bits += n / math.log(2)
            characters += length
        return bits / characters
        """,
        "tokens_a_character = len(lengths) / lengths.sum(); return (nats / np.log(2)).mean() * tokens_a_character",
    ],
}

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
        {"scale": "scores = scores / math.sqrt(5)"},
        {"scale": "scores = scores / 2"},
        {"weights": "weights = ops.softmax(scores) ** 2"},
        {"mask": "if mask is not None: scores = scores * 0"},
        {"mask": "scores = undefined"},
        {"mask": "if mask is not None and mask.ndim == 2: scores = np.where(mask, scores, -np.inf)"},
        {"mask": "if mask is not None: scores = np.where(mask[..., ::-1], scores, -np.inf)"},
        {"average": "output = weights @ V + 1"},
    ],
    "score_variance": ["0", "-1", "d_k * a", "math.nan", "math.inf", "d_k / 0", "a", "10**400", "Fraction(10**400)"],
    "additive_score": ["keys", "np.zeros(keys.shape[:2])", {"score": "return hidden @ v + 1"}, "0"],
    "context_vector": ["scores, keys", "keys[:, 0], scores", {"answer": "return context + 1, weights"}, "None, None"],
    "sinusoids": ["np.zeros((length, d_model))", {"angles": "angles = pos / power + 0.1"}, "np.random.rand(3)", "0"],
    "slow_hands": ["np.zeros(d // 2)", "slow", {"answer": "return rates + 1"}, "np.random.rand(d // 2)", "0"],
    "merge_pairs": [
        "ids",
        "np.array([new])",
        "np.zeros_like(ids)",
        "ids[::-1].copy()",
        "np.append(ids, new)",
        "raise ValueError('return')",
        "ids.replace(pair, new)",
        "np.array([*dict.fromkeys(ids.tolist())])",
        "np.array([new if n in pair else n for n in ids][::2])",
        "ids[:-1]",
    ],
    "learn_merges": [
        "ids",
        "np.zeros((count, 2), dtype=int)",
        "np.array([[base, base + 1]] * count)",
        "np.stack([ids[:count], ids[1 : count + 1]], axis=1)",
        "raise ValueError('return')",
        "merge(ids, ids[:2], base)",
    ],
    "bits_per_character": [
        "0.0",
        "nats",
        "nats.max()",
        "np.nan",
        "raise ValueError('return')",
        "nats.bits()",
        "nats.sum() / lengths.sum() / math.log(10)",
        "np.median(nats) / math.log(2) / np.median(lengths)",
        "nats[0] / math.log(2) / lengths[0]",
        "lengths.sum()",
    ],
}
