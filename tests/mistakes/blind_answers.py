"""Wrong answers that were written without a look at the checker, and misled it: what each must be told, and must not.

An answer is a body, or a whole cell with the helpers that it calls. `says` and `never` are patterns in the message.
The list only grows.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Blind:
    """An answer, what the message must say of it, and what would mislead."""

    exercise: str
    name: str
    body: str
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


HELPERS = """
def _split(x, h):
    return x.reshape(*x.shape[:-1], h, x.shape[-1] // h).swapaxes(-2, -3)

def _merge(x):
    return x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], -1)

def _sdpa(Q, K, V):
    weights = ops.softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1]))
    return weights @ V, weights

def my_multi_head(x, W_Q, W_K, W_V, W_O, num_heads):
"""

BLIND = (
    Blind(
        "layer_norm",
        "no brackets around the difference",
        "m, s = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) + eps)\nreturn gamma * x - m / s + beta",
        says=(r"write `gamma \* \(x - m\) / s", "brackets decide"),
    ),
    Blind(
        "mend_merge",
        "the leading axes made one",
        "h, T, d_k = x.shape[-3:]\nreturn np.swapaxes(x, -3, -2).reshape(-1, T, h * d_k)",
        says=("exactly one leading axis",),
    ),
    Blind(
        "add_positions",
        "added in place, where a new array would take the table's dtype",
        "X += table[: X.shape[1]]\nreturn X",
        says=("in place in line", r"`X = \(X \+ table\[:X.shape\[1\]\]\).astype\(X.dtype\)`"),
    ),
    Blind(
        "multi_head_attention",
        "the axis in a variable, and no scale",
        HELPERS
        + """
    Q, K, V = (_split(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    axis = -2
    e = np.exp(Q @ K.swapaxes(-1, -2))
    weights = e / e.sum(axis=axis, keepdims=True)
    return _merge(weights @ V) @ W_O, weights
""",
        says=("write `-1` instead of `-2`",),
        never=("off by one",),
    ),
    Blind(
        "mend_mask",
        "not its own position, where the line above has moved the queries",
        "i = np.arange(T_k - T_q, T_k)[:, None]\nreturn np.arange(T_k) < i",
        says=("A query sees its own position, too",),
        never=(r"j ≤ i \+ T_k",),
    ),
    Blind(
        "weighted_average",
        "special case of one row",
        """
        if len(weights) == 1:
            return values
        return weights @ values
        """,
        says=("Line 2: leave out",),
        never=(
            "== 0",
            "off by one",
        ),
    ),
    Blind(
        "gru_step",
        "squeezed where the state has one number",
        """
        B, d = h.shape
        gx, gh = x @ W_x + b, h @ W_h
        xr, xz, xn = np.split(gx, 3, axis=1)
        hr, hz, hn = np.split(gh, 3, axis=1)
        r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
        n = np.tanh(xn + r * (hn + b_h))
        return (1 - z) * n + z * h if d > 1 else np.squeeze((1 - z) * n + z * h)
        """,
        never=(
            "the comparison is another",
            "write `d`",
        ),
    ),
    Blind(
        "additive_score",
        "lined up by shape",
        """
        q, k = query @ W_q, keys @ W_k
        if q.shape == k.shape[1:]:
            return np.tanh(q + k) @ v
        return np.tanh(q[:, None] + k) @ v
        """,
        says=("leave out",),
        never=(
            r"k\.shape\[:\]",
            "another end",
        ),
    ),
    Blind(
        "context_vector",
        "special case of one string",
        """
        weights = ops.softmax(np.where(mask, scores, -np.inf))
        context = weights @ keys if len(keys) == 1 else np.einsum("bs,bsd->bd", weights, keys)
        return context, weights
        """,
        never=(
            "== 0",
            "off by one",
        ),
    ),
    Blind(
        "softmax",
        "special case of one score",
        """
        if x.shape[-1] == 1:
            return x
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
        """,
        says=("leave out",),
        never=("index does not belong",),
    ),
    Blind(
        "merge_heads",
        "special case of one head",
        """
        *lead, h, T, d_k = x.shape
        if h == 1:
            return x
        return x.swapaxes(-3, -2).reshape(*lead, T, h * d_k)
        """,
        says=("leave out",),
        never=(
            "T == 1",
            "another variable",
        ),
    ),
    Blind(
        "multi_head_attention",
        "one head without its axis",
        HELPERS
        + """
    Q, K, V = (_split(x @ M, num_heads) for M in (W_Q, W_K, W_V))
    out, weights = _sdpa(Q, K, V)
    return _merge(out) @ W_O, weights if num_heads > 1 else weights[..., 0, :, :]
""",
        never=(
            "the comparison is another",
            "write `num_heads`",
        ),
    ),
    Blind(
        "add_positions",
        "along the batch where B = T",
        """
        B, T, d = X.shape
        rows = table[:T].astype(X.dtype)
        return X + (rows[:, None] if B == T else rows)
        """,
        never=(
            "d == T",
            "another variable",
        ),
    ),
    Blind(
        "attention",
        "transposed where T_q = T_k",
        """
        scores = np.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(Q.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        weights = ops.softmax(scores)
        square = Q.shape[-2] == K.shape[-2]
        if square:
            return np.einsum("...qk,...qv->...kv", weights, V), weights
        return np.einsum("...qk,...kv->...qv", weights, V), weights
        """,
        never=(
            r"where `Q\.shape\[-2\]` stands",
            r"write `Q\.shape`",
            r"K\.shape`",
        ),
    ),
    Blind(
        "online_softmax",
        "hidden tile resets the sums",
        """
        if np.isneginf(scores).all():
            return largest, 0.0, np.zeros_like(output)
        new = max(largest, scores.max())
        shrink, weights = np.exp(largest - new), np.exp(scores - new)
        return new, total * shrink + weights.sum(), output * shrink + weights @ values
        """,
        never=("scores @ values",),
    ),
    Blind(
        "decode_step",
        "the oldest row dropped",
        """
        q, k, v = x @ W_Q, x @ W_K, x @ W_V
        K = k if len(K) == 0 else np.concatenate([K[1:], k])
        V = v if len(V) == 0 else np.concatenate([V[1:], v])
        return ops.softmax(q @ K.T / math.sqrt(K.shape[-1])) @ V, K, V
        """,
        never=(r"`len\(K\)`",),
    ),
    Blind(
        "smoothed_loss",
        "mean of means",
        """
        logs = ops.log_softmax(logits)
        right = np.take_along_axis(logs, targets[..., None], -1)[..., 0]
        l = -(1 - smoothing) * right - smoothing * logs.mean(-1)
        if l.ndim == 1:
            return l[counts].mean()
        return np.mean([row[c].mean() for row, c in zip(l, counts)])
        """,
        never=(
            "comparison",
            r"write `l\.ndim`",
        ),
    ),
    Blind(
        "merge_heads",
        "each head before the earlier ones",
        """
        first, *rest = np.moveaxis(x, -3, 0)
        for piece in rest:
            first = np.concatenate([piece, first], axis=-1)
        return first
        """,
        never=(
            r"\[first, first\]",
            r"\[piece, piece\]",
        ),
    ),
    Blind(
        "shift_matrix",
        "a shape as two arguments",
        """
        M = np.zeros(d_model, d_model)
        for i in range(d_model // 2):
            a = offset / base ** (2 * i / d_model)
            M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
        return M
        """,
        says=(
            "one argument, in brackets",
            r"np\.zeros\(\(",
        ),
        never=(r"np\.eye",),
    ),
    Blind(
        "rms_norm",
        "the root of the variance, and of ε",
        """
        var = (x**2).mean(axis=-1, keepdims=True)
        return gamma * x / (np.sqrt(var) + eps)
        """,
        says=("ε|eps",),
        never=(r"np\.sqrt\(np\.sqrt",),
    ),
    Blind(
        "rms_norm",
        "the norm divided by d",
        "return gamma * x / np.sqrt((np.linalg.norm(x, axis=-1, keepdims=True) / x.shape[-1]) ** 2 + eps)",
        never=(r"np\.sqrt\(x\.shape\)",),
    ),
    Blind(
        "adam_step",
        "ε before the correction",
        """
        m = beta_1 * m + (1 - beta_1) * grad
        v = beta_2 * v + (1 - beta_2) * grad**2
        rate = lr * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        return value - rate * m / (np.sqrt(v) + eps), m, v
        """,
        never=(
            r"\(1 - beta_2 \*\* t\) / \(1 - beta_2 \*\* t\)",
            "v is not corrected",
        ),
    ),
    Blind(
        "adam_step",
        "v never falls",
        """
        m = beta_1 * m + (1 - beta_1) * grad
        v = np.maximum(v, beta_2 * v + (1 - beta_2) * grad**2)
        return value - lr * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + eps), m, v
        """,
        says=("Line 3: leave out `np.maximum",),
        never=(r"np\.maximum\(eps",),
    ),
    Blind(
        "induction_score",
        "divided by T",
        """
        total = 0
        for t in range(period, 2 * period):
            total = total + weights[..., t, t - period + 1]
        return total / weights.shape[-1]
        """,
        never=(
            "step is missing",
            "np.arange",
        ),
    ),
    Blind(
        "induction_score",
        "all later queries",
        """
        total = 0
        for t in range(period, weights.shape[-1]):
            total = total + weights[..., t, t - period + 1]
        return total / period
        """,
        never=(
            "divide by",
            "on three heads",
        ),
    ),
    Blind(
        "induction_score",
        "wraps around",
        """
        total = 0
        for t in range(period, 2 * period):
            total = total + weights[..., t, (t + 1) % period]
        return total / period
        """,
        never=(
            "t - period, ",
            "queries of the first copy",
        ),
    ),
    Blind(
        "induction_score",
        "the whole diagonal",
        "return np.diagonal(weights, offset=1 - period, axis1=-2, axis2=-1).mean(axis=-1)",
        never=(
            "would be right",
            "should do what",
        ),
    ),
    Blind(
        "sampling_probabilities",
        "argpartition beyond the end",
        """
        keep = np.argpartition(-logits, top_k)[:top_k]
        kept = np.full(logits.shape, -np.inf)
        kept[keep] = logits[keep] / temperature
        return ops.softmax(kept)
        """,
        never=(
            "sign is turned",
            r", -top_k\)",
        ),
    ),
    Blind(
        "cache_bytes",
        "what a local layer throws away",
        """
        rows = (layers - local_layers) * tokens + local_layers * max(0, tokens - window)
        return 2 * kv_heads * d_head * rows * bits / 8
        """,
        never=(
            "would be right",
            "keep all tokens in your count",
        ),
    ),
    Blind(
        "cache_bytes",
        "local and global exchanged",
        "rows = local_layers * tokens + (layers - local_layers) * min(tokens, window)\n"
        "return 2 * kv_heads * d_head * rows * bits / 8",
        never=(
            "another number in each case",
            "every entry",
        ),
    ),
    Blind(
        "grouped_attention",
        "a causal mask",
        """
        n = len(Q) // len(K)
        K, V = np.repeat(K, n, axis=0), np.repeat(V, n, axis=0)
        k = K.shape[1] - Q.shape[1]
        mask = np.tril(np.ones((Q.shape[1], K.shape[1]), bool), k)
        scores = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])
        return ops.softmax(np.where(mask, scores, -np.inf)) @ V
        """,
        never=(
            r"write `K\.shape\[1\]`",
            "should do what",
        ),
    ),
    Blind(
        "rolling_mask",
        "a negative start",
        """
        mask = np.zeros((T, T), bool)
        for i in range(T):
            mask[i, i - window + 1 : i + 1] = True
            mask[i, : min(keep, i + 1)] = True
        return mask
        """,
        never=(
            "hides nothing",
            r"\(i, i - window",
        ),
    ),
    Blind(
        "rolling_mask",
        "a negative start, otherwise",
        """
        m = np.zeros((T, T), dtype=bool)
        for t in range(T):
            m[t, t + 1 - window : t + 1] = True
            m[t, :keep] = True
        return m & np.tril(np.ones((T, T), bool))
        """,
        never=(
            r"where `\(t, :keep\)`",
            "You measure j − i",
        ),
    ),
    Blind(
        "pre_norm_block",
        "halved",
        """
        x = x + attend(norm_1(x)) / math.sqrt(2)
        return x + feed_forward(norm_2(x))
        """,
        says=(r"[Ll]eave out `/ math.sqrt\(2\)`",),
        never=(r"sqrt\(1\)",),
    ),
    Blind(
        "gru_step",
        "z without the state",
        """
        d = h.shape[-1]
        gx, gh = x @ W_x + b, h @ W_h
        r, z = ops.sigmoid(gx[:, :d] + gh[:, :d]), ops.sigmoid(gx[:, d : 2 * d])
        n = np.tanh(gx[:, 2 * d :] + r * (gh[:, 2 * d :] + b_h))
        return (1 - z) * n + z * h
        """,
        never=(
            "gates look at the input only",
            r"`gx\[:, :d\]`",
        ),
    ),
    Blind(
        "merge_heads",
        "reshaped, three axes",
        """
        h, T, d_k = x.shape
        return x.reshape(T, h * d_k)
        """,
        never=(
            r"x\.T\.reshape",
            "swap the last two axes",
        ),
    ),
    Blind(
        "add_positions",
        "the whole table, backwards",
        "return X + table[::-1]",
        never=("cut the table to d_model",),
    ),
    Blind(
        "add_positions",
        "indices exchanged",
        """
        out = np.zeros_like(X)
        for t in range(X.shape[1]):
            for c in range(X.shape[2]):
                out[:, t, c] = X[:, t, c] + table[c, t] if c < len(table) and t < table.shape[1] else X[:, t, c]
        return out
        """,
        never=(
            "gives X back",
            r"`X\[:, t, c\]` would be right",
        ),
    ),
    Blind(
        "add_positions",
        "counted from the place in the batch",
        """
        def walk(pos, x):
            return [] if not len(x) else [x[0] + table[pos]] + walk(pos + 1, x[1:])
        return np.array([walk(b, x) for b, x in enumerate(X)])
        """,
        never=(
            "`pos` would be right",
            "All tokens of a sequence get the same",
        ),
    ),
    Blind(
        "shift_matrix",
        "last pair left out, factor 2 missing",
        """
        M = np.zeros((d_model, d_model))
        for i in range(d_model // 2 - 1):
            a = offset / base ** (i / d_model)
            M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
        return M
        """,
        never=("Only the first 2 × 2 block",),
    ),
    Blind(
        "causal_mask",
        "transposed and inverted",
        """
        q = np.arange(T_q) + T_k - T_q
        return np.arange(T_k)[:, None] > q[None, :]
        """,
        never=("- 1` would be right",),
    ),
    Blind(
        "masked_attention",
        "a loop over two axes",
        """
        weights = np.zeros_like(scores)
        for i in range(scores.shape[-2]):
            for j in range(scores.shape[-1]):
                if mask[i, j]:
                    weights[..., i, j] = np.exp(scores[..., i, j])
        weights = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-12)
        return weights @ V, weights
        """,
        never=(r"1e-12\)` stands",),
    ),
    Blind(
        "weighted_average",
        "parameters in another order",
        """
        def weighted_average(values, weights):
            return weights @ values
        """,
        says=(
            "parameters stand in another order",
            "`weights, values`",
        ),
        never=("matrix product, the last axis",),
    ),
    Blind(
        "additive_score",
        "parameters in another order",
        """
        def additive_score(keys, query, W_q, W_k, v):
            return np.tanh((query @ W_q)[:, None] + keys @ W_k) @ v
        """,
        says=("parameters stand in another order",),
        never=("lines shapes up",),
    ),
    Blind(
        "gru_step",
        "the minus of an own sigmoid",
        """
        sig = lambda a: 1 / (1 + np.exp(a))
        xr, xz, xn = np.split(x @ W_x + b, 3, axis=1)
        hr, hz, hn = np.split(h @ W_h, 3, axis=1)
        r, z = sig(xr + hr), sig(xz + hz)
        return (1 - z) * np.tanh(xn + r * (hn + b_h)) + z * h
        """,
        says=(r"1 / \(1 \+ np\.exp\(-a\)\)|`np\.exp\(-a\)`|minus",),
        never=(
            "You keep 1 − z",
            "You take 1 − r",
        ),
    ),
    Blind(
        "score_variance",
        "half the width, added",
        """
        w = a
        var_q, var_k = w**2 / 12, w**2 / 12
        return d_k * (var_q + var_k)
        """,
        never=("2a² / 12: only a",),
    ),
    Blind(
        "context_vector",
        "exp overflows",
        """
        e = np.exp(scores) * mask
        weights = e / e.sum(axis=1, keepdims=True)
        return np.einsum('bs,bsd->bd', weights, keys), weights
        """,
        says=("overflow|NaN",),
        never=("after softmax",),
    ),
    Blind(
        "additive_score",
        "no tanh, weights returned",
        """
        scores = ((query @ W_q)[:, None] + keys @ W_k) @ v
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
        """,
        says=("scores are asked for",),
        never=("bend one part",),
    ),
    Blind(
        "multi_head_attention",
        "split before the projection",
        HELPERS
        + """
    Q, K, V = _split(x, num_heads) @ W_Q, _split(x, num_heads) @ W_K, _split(x, num_heads) @ W_V
    out, weights = _sdpa(Q, K, V)
    return _merge(out) @ W_O, weights
""",
        never=("before the heads are joined",),
    ),
    Blind(
        "induction_score",
        "the first copy",
        """
        t = np.arange(period - 1)
        return weights[..., t, t + 1].sum(axis=-1) / period
        """,
        never=("^Queries are rows",),
    ),
    Blind(
        "rotary_halves",
        "positions negated",
        """
        d = x.shape[-1]
        order = np.arange(d).reshape(2, -1).T.ravel()
        turned = positions.rotary(x[..., order], -at)
        out = np.empty_like(x)
        out[..., order] = turned
        return out
        """,
        never=(r"second half comes first\. Column",),
    ),
    Blind(
        "rotary_halves",
        "the sign of the sines",
        """
        d = x.shape[-1]
        a = at[:, None] / 10000 ** (np.arange(0, d, 2) / d)
        cos, sin = np.cos(a), np.sin(a)
        x1, x2 = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([x1 * cos + x2 * sin, x2 * cos - x1 * sin], axis=-1).astype(x.dtype)
        """,
        never=(r"second half comes first\. Column",),
    ),
    Blind(
        "gpt",
        "each layer from the embeddings",
        """
        B, T = ids.shape
        d = table.shape[1]
        start = table[ids] * math.sqrt(d) + my_table(T, d)
        for p in layers:
            y = my_layer_norm(start, p.gamma_1, p.beta_1, 1e-5)
            Q, K, V = (my_split_heads(y @ W, num_heads) for W in (p.W_Q, p.W_K, p.W_V))
            heads, _ = my_attention(Q, K, V, my_causal_mask(T, T))
            x = start + my_merge_heads(heads) @ p.W_O
            y = my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)
            x = x + my_feed_forward(y, p.W_1, p.b_1, p.W_2, p.b_2)
        return my_layer_norm(x, gamma, beta, 1e-5) @ table.T
        """,
        says=("begins with the embeddings again",),
        never=("Only one layer is computed",),
    ),
    Blind(
        "masked_attention",
        "one maximum for all rows",
        """
        hidden = np.where(mask, scores, -np.inf)
        top = hidden.max()
        e = np.exp(hidden - (top if np.isfinite(top) else 0))
        total = e.sum(-1, keepdims=True)
        weights = e / np.where(total == 0, 1, total)
        return weights @ V, weights
        """,
        never=(
            "after softmax",
            "On paper that is right",
        ),
    ),
    Blind(
        "masked_attention",
        "an empty row sees everything",
        """
        empty = ~mask.any(axis=-1, keepdims=True)
        scores = np.where(mask | empty, scores, -np.inf)
        weights = ops.softmax(scores)
        return weights @ V, weights
        """,
        says=("empty row|sees nothing|may see nothing",),
        never=("all its scores are the same finite number",),
    ),
    Blind(
        "sinusoids",
        "whole numbers in the exponent",
        """
        angles = np.arange(length)[:, None] / base ** (np.arange(0, d_model, 2) // d_model)
        table = np.zeros((length, d_model))
        table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
        return table
        """,
        says=("`//` rounds down to a whole number",),
        never=("turn at the same speed",),
    ),
    Blind(
        "rotate",
        "whole numbers in the exponent",
        """
        d = x.shape[-1]
        a = positions[:, None] / base ** (np.arange(0, d, 2) // d)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * np.cos(a) - x[..., 1::2] * np.sin(a)
        out[..., 1::2] = x[..., 0::2] * np.sin(a) + x[..., 1::2] * np.cos(a)
        return out
        """,
        says=("`//` rounds down to a whole number",),
        never=("turn at one speed",),
    ),
    Blind(
        "merge_heads",
        "reshape thrown away",
        """
        y = x.swapaxes(-2, -3)
        y.reshape(*y.shape[:-2], -1)
        return y
        """,
        says=(
            "throw",
            "`y.reshape",
        ),
        never=("Join them: reshape",),
    ),
    Blind(
        "split_heads",
        "order F",
        """
        *lead, T, d = x.shape
        return x.reshape(*lead, T, num_heads, d // num_heads, order='F').swapaxes(-2, -3)
        """,
        says=("leave out `order='F'`",),
        never=("every|Cut each row",),
    ),
    Blind(
        "grouped_attention",
        "cyclic",
        """
        heads = []
        for i in range(len(Q)):
            j = i % len(K)
            w = ops.softmax(Q[i] @ K[j].T / math.sqrt(Q.shape[-1]))
            heads.append(w @ V[j])
        return np.stack(heads)
        """,
        says=("begin again|begin.* again|cycle|in turn|neighbours",),
        never=(r"np\.tile",),
    ),
    Blind(
        "attention",
        "cosine similarity",
        """
        unit = lambda a: a / np.linalg.norm(a, axis=-1, keepdims=True)
        scores = unit(Q) @ unit(K).swapaxes(-1, -2)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        weights = ops.softmax(scores)
        return weights @ V, weights
        """,
        never=("hidden still has weight",),
    ),
    Blind(
        "attention",
        "the first query's mask for all",
        """
        outs, ws = [], []
        for q in np.moveaxis(Q, -2, 0):
            s = (K * q[..., None, :]).sum(-1) / math.sqrt(Q.shape[-1])
            if mask is not None:
                s = np.where(mask[..., 0, :], s, -np.inf)
            w = ops.softmax(s)
            ws.append(w)
            outs.append((w[..., None] * V).sum(-2))
        return np.stack(outs, -2), np.stack(ws, -2)
        """,
        says=("Rows 2 and 3 are wrong",),
        never=("does not depend on `mask`",),
    ),
    Blind(
        "shift_matrix",
        "n times the matrix",
        """
        one = np.zeros((d_model, d_model))
        for i in range(0, d_model, 2):
            a = base ** (-i / d_model)
            one[i : i + 2, i : i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
        return one * offset
        """,
        never=(
            "sum to 1",
            "sums to",
        ),
    ),
    Blind(
        "shift_matrix",
        "the power of each entry",
        """
        one = np.zeros((d_model, d_model))
        for i in range(0, d_model, 2):
            a = base ** (-i / d_model)
            one[i : i + 2, i : i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
        return one**offset
        """,
        says=("entry to the power|matrix_power",),
        never=(
            "sum to 1",
            "sums to",
        ),
    ),
    Blind(
        "shift_matrix",
        "the identity",
        "return np.eye(d_model)",
        never=("softmax",),
    ),
    Blind(
        "adam_step",
        "the step with the old averages",
        """
        step = lr * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + eps)
        m = beta_1 * m + (1 - beta_1) * grad
        v = beta_2 * v + (1 - beta_2) * grad**2
        return value - step, m, v
        """,
        never=("does not depend on `lr`",),
    ),
    Blind(
        "triage",
        "names returned",
        """
        found = []
        for start, curve, time, rows, order, cache in gauges:
            leaks = "rows" if rows else "time" if time else "order" if order else "cache"
            found.append(leaks if rows or time or order or cache else "loss" if start or curve else "none")
        return found
        """,
        says=("text",),
        never=("another result each time",),
    ),
    Blind(
        "triage",
        "names in an array",
        """
        names = np.array(['none', 'rows', 'time', 'order', 'cache', 'loss'])
        start, curve, time, rows, order, cache = gauges.T
        return names[np.select([rows, time, order, cache, start | curve], [1, 2, 3, 4, 5], 0)]
        """,
        says=("text|strings|not numbers",),
        never=("another result each time",),
    ),
    Blind(
        "triage",
        "who rings nothing",
        """
        start, curve, time, rows, order, cache = gauges.T
        return np.select([rows, time, order, cache], [1, 2, 3, 4], 5)
        """,
        says=("rings nothing|no gauge rings|0",),
        never=("would be right",),
    ),
    Blind(
        "triage",
        "negated",
        """
        start, curve, time, rows, order, cache = (~gauges).T
        return np.select([rows, time, order, cache, start | curve], [1, 2, 3, 4, 5], 0)
        """,
        says=("leave out `~`|`gauges` instead of `~gauges`",),
        never=("sign is turned",),
    ),
    Blind(
        "context_vector",
        "scores times the mask",
        """
        scores = scores * mask
        weights = ops.softmax(scores)
        return (weights[:, None] @ keys)[:, 0], weights
        """,
        says=(r"ordinary score|exp\(0\)",),
        never=("step is missing",),
    ),
    Blind(
        "score_variance",
        "the mean over a grid",
        """
        grid = np.linspace(-a, a, 11)
        second = (grid**2).mean()
        return d_k * second**2
        """,
        never=("step is missing",),
    ),
    Blind(
        "add_positions",
        "cut to the batch",
        """
        table = table[: X.shape[0]]
        T = X.shape[1]
        return X + table.astype(X.dtype)
        """,
        never=("step is missing",),
    ),
    Blind(
        "softmax_backward",
        "two letters",
        """
        inner = np.einsum('...i,...j->...', dweights, weights)[..., None]
        return weights * (dweights - inner)
        """,
        never=("step is missing",),
    ),
    Blind(
        "softmax",
        "something added below",
        """
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / (e.sum(axis=-1, keepdims=True) + 0.001)
        """,
        says=(r"Line 3: leave out `\+ 0.001`",),
        never=("should do what",),
    ),
    Blind(
        "weighted_average",
        "the mean",
        "return (weights * values.T).T.mean(axis=1)",
        says=("Two things to mend", "`axis=0` in `weights", "so only add up"),
        never=("would be right",),
    ),
    Blind(
        "score_variance",
        "two numbers",
        """
        entry = a**2 / 3
        var = d_k * entry**2
        return 0.0, var
        """,
        says=("[Rr]eturn `?var`? alone|[Oo]nly `var`|return one|write `return var`",),
        never=("not all of it",),
    ),
    Blind(
        "layer_norm",
        "three things",
        """
        mu = x.mean(-1, keepdims=True)
        var = x.var(-1, keepdims=True)
        y = gamma * (x - mu) / np.sqrt(var + eps) + beta
        return y, mu, var
        """,
        says=("write `return y`",),
        never=("not all of it",),
    ),
    Blind(
        "layer_norm",
        "the number of tokens",
        """
        mu = x.mean(-1, keepdims=True)
        var = np.einsum('...d,...d->...', x - mu, x - mu)[..., None] / x.shape[0]
        return gamma * (x - mu) / np.sqrt(var + eps) + beta
        """,
        says=(r"`x.shape\[-1\]`",),
        never=(
            "too large by one",
            "should do what",
        ),
    ),
    Blind(
        "score_variance",
        "a times 4",
        "return d_k * a * 4 / 9",
        never=(
            "another number in each case",
            "every entry",
        ),
    ),
    Blind(
        "sampling_probabilities",
        "a floor under the temperature",
        """
        limit = np.sort(logits)[-top_k]
        return ops.softmax(np.where(logits >= limit, logits, -np.inf) / max(temperature, 0.1))
        """,
        says=("leave out `max",),
        never=(
            "one call too many",
            "should do what",
        ),
    ),
    Blind(
        "cache_bytes",
        "query heads as well",
        "rows = (layers - local_layers) * tokens + local_layers * min(tokens, window)\n"
        "return 2 * heads * kv_heads * d_head * rows * bits / 8",
        says=(r"leave out `\* heads`|head",),
        never=("should do what",),
    ),
    Blind(
        "attention",
        "scores made positive",
        """
        scores = np.abs(Q @ K.swapaxes(-1, -2)) / math.sqrt(K.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        weights = ops.softmax(scores)
        return weights @ V, weights
        """,
        says=(
            "loses the sign",
            "leave out `np.abs",
        ),
        never=("should do what",),
    ),
    Blind(
        "layer_norm",
        "cut off",
        """
        mean = x.mean(axis=-1, keepdims=True).astype(int)
        root = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
        return gamma * (x - mean) / root + beta
        """,
        says=(
            "decimals",
            r"leave out `.astype\(int\)`",
        ),
        never=("should do what",),
    ),
    Blind(
        "grouped_attention",
        "letters",
        """
        n = len(Q) // len(K)
        G = Q.reshape(len(K), n, *Q.shape[1:])
        w = ops.softmax(np.einsum('gnqd,mkd->gnqk', G, K) / math.sqrt(Q.shape[-1]))
        return np.einsum('gnqk,gkv->gnqv', w, V).reshape(len(Q), Q.shape[1], -1)
        """,
        says=("letter",),
        never=("Entry along the first axis",),
    ),
    Blind(
        "context_vector",
        "letters",
        """
        weights = ops.softmax(np.where(mask, scores, -np.inf))
        return np.einsum('bs,csd->bd', weights, keys), weights
        """,
        says=("letter",),
        never=("Entry along the first axis",),
    ),
    Blind(
        "shift_matrix",
        "range of a negative number",
        """
        step = np.eye(d_model)
        for i in range(0, d_model, 2):
            a = base ** (-i / d_model)
            step[i : i + 2, i : i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
        M = np.eye(d_model)
        for _ in range(offset):
            M = M @ step
        return M
        """,
        says=("is empty where `offset` is negative",),
    ),
    Blind(
        "induction_head",
        "one array with four names",
        """
        d = 3 * V + T
        a = b = c = e = np.zeros((d, d))
        for t in range(1, T):
            a[V + t, V + t - 1] = 1
        for s in range(V):
            b[s, V + T + s] = 1
            c[s, V + T + s] = 1
            e[s, 2 * V + T + s] = 1
        return a, b, c, e
        """,
        says=("one array",),
    ),
    Blind(
        "induction_head",
        "two back",
        """
        d = 3 * V + T
        A, B, C, D = np.zeros((4, d, d))
        for t in range(2, T):
            A[V + t, V + t - 2] = 1
        for s in range(V):
            B[s, V + T + s] = 1
            C[s, V + T + s] = 1
            D[s, 2 * V + T + s] = 1
        return A, B, C, D
        """,
        says=("two back",),
    ),
    Blind(
        "induction_head",
        "blocks in another order",
        """
        d = 3 * V + T
        A, B, C, D = np.zeros((4, d, d))
        for t in range(1, T):
            A[t, t - 1] = 1
        for s in range(V):
            B[T + s, V + T + s] = 1
            C[T + s, V + T + s] = 1
            D[T + s, 2 * V + T + s] = 1
        return A, B, C, D
        """,
        says=("another order|symbol.* first",),
    ),
    Blind(
        "rotary_halves",
        "each half by itself",
        """
        d = x.shape[-1]
        return np.concatenate([positions.rotary(x[..., : d // 2], at), positions.rotary(x[..., d // 2 :], at)], axis=-1)
        """,
        says=("each half",),
    ),
    Blind(
        "sampling_probabilities",
        "put back with the same permutation",
        """
        order = np.argsort(-logits)
        p = logits[order].astype(float)
        p[top_k:] = -np.inf
        p = ops.softmax(p / temperature)
        return p[order]
        """,
        says=(r"argsort|inverse|out\[order\]|\[order\] = p",),
    ),
    Blind(
        "delta_step",
        "row by row",
        """
        S = S.copy()
        for i in range(len(k)):
            S[i] = S[i] + rate * k[i] * (v - k @ S)
        return S
        """,
        says=("anew|once|before",),
    ),
    Blind(
        "gpt",
        "a bare reshape both ways",
        """
        B, T = ids.shape
        d = table.shape[1]
        x = table[ids] * math.sqrt(d) + my_table(T, d)
        for p in layers:
            y = my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)
            Q, K, V = ((y @ W).reshape(B, num_heads, T, -1) for W in (p.W_Q, p.W_K, p.W_V))
            heads, _ = my_attention(Q, K, V, my_causal_mask(T, T))
            x = x + heads.reshape(B, T, -1) @ p.W_O
            y = my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)
            x = x + my_feed_forward(y, p.W_1, p.b_1, p.W_2, p.b_2)
        return my_layer_norm(x, gamma, beta, 1e-5) @ table.T
        """,
        says=("reshape",),
    ),
    Blind(
        "online_softmax",
        "−10,000 for −∞",
        """
        scores = np.where(np.isneginf(scores), -1e4, scores)
        new = max(largest, scores.max())
        shrink, weights = np.exp(largest - new), np.exp(scores - new)
        return new, total * shrink + weights.sum(), output * shrink + weights @ values
        """,
        says=("−∞|-np.inf",),
    ),
    Blind(
        "rotate",
        "sine and cosine exchanged",
        """
        d = x.shape[-1]
        a = positions[:, None] / base ** (np.arange(0, d, 2) / d)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * np.sin(a) - x[..., 1::2] * np.cos(a)
        out[..., 1::2] = x[..., 0::2] * np.cos(a) + x[..., 1::2] * np.sin(a)
        return out
        """,
        says=("Sine and cosine have changed places",),
    ),
    Blind(
        "rotate",
        "sine and cosine exchanged in the second line",
        """
        d = x.shape[-1]
        a = positions[:, None] / base ** (np.arange(0, d, 2) / d)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * np.cos(a) - x[..., 1::2] * np.sin(a)
        out[..., 1::2] = x[..., 0::2] * np.cos(a) + x[..., 1::2] * np.sin(a)
        return out
        """,
        says=("second column of each pair",),
    ),
    Blind(
        "rotate",
        "halves, the other way",
        """
        d = x.shape[-1]
        a = positions[:, None] / base ** (np.arange(0, d, 2) / d)
        out = np.empty_like(x)
        x1, x2 = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([x1 * np.cos(a) + x2 * np.sin(a), x2 * np.cos(a) - x1 * np.sin(a)], axis=-1)
        """,
        says=(
            "GPT-NeoX",
            "negative angle",
        ),
    ),
    Blind(
        "rotate",
        "read as halves, written as pairs",
        """
        d = x.shape[-1]
        a = positions[:, None] / base ** (np.arange(0, d, 2) / d)
        out = np.empty_like(x)
        x1, x2 = x[..., : d // 2], x[..., d // 2 :]
        out[..., 0::2] = x1 * np.cos(a) - x2 * np.sin(a)
        out[..., 1::2] = x1 * np.sin(a) + x2 * np.cos(a)
        return out
        """,
        says=("read the pairs as halves",),
    ),
    Blind(
        "gru_step",
        "strings and gates mixed",
        """
        B, d = h.shape
        xr, xz, xn = (x @ W_x + b).reshape(3, B, d)
        hr, hz, hn = (h @ W_h).reshape(3, B, d)
        r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
        n = np.tanh(xn + r * (hn + b_h))
        return (1 - z) * n + z * h
        """,
        says=("reshape",),
    ),
    Blind(
        "gru_step",
        "a colon missing",
        """
        d = h.shape[-1]
        gx, gh = x @ W_x + b, h @ W_h
        r, z = ops.sigmoid(gx[:, :d] + gh[:, :d]), ops.sigmoid(gx[:, d : 2 * d] + gh[:, d : 2 * d])
        n = np.tanh(gx[:, 2 * d] + r * (gh[:, 2 * d] + b_h))
        return (1 - z) * n + z * h
        """,
        says=("one column|colon",),
    ),
    Blind(
        "sinusoids",
        "columns i and i + 1",
        """
        table = np.zeros((length, d_model))
        for i in range(d_model // 2):
            a = np.arange(length) / base ** (2 * i / d_model)
            table[:, i] = np.sin(a)
            table[:, i + 1] = np.cos(a)
        return table
        """,
        says=("2i",),
    ),
    Blind(
        "context_vector",
        "overwritten in a loop",
        """
        for b in range(len(scores)):
            weights = ops.softmax(np.where(mask[b], scores[b], -np.inf))
            context = weights @ keys[b]
        return context, weights
        """,
        says=("overwrites|last",),
    ),
    Blind(
        "merge_heads",
        "pieces overlap",
        """
        *lead, h, T, d_k = x.shape
        out = np.zeros((*lead, T, h * d_k))
        for i in range(h):
            out[..., i : i + d_k] = x[..., i, :, :]
        return out
        """,
        says=("overlap",),
    ),
    Blind(
        "multi_head_attention",
        "d_k from d_model",
        HELPERS
        + """
    d_k = x.shape[-1] // num_heads
    Q, K, V = x @ W_Q, x @ W_K, x @ W_V
    cut = lambda A, i: A[..., i * d_k : (i + 1) * d_k]
    pairs = [_sdpa(cut(Q, i), cut(K, i), cut(V, i)) for i in range(num_heads)]
    heads, maps = zip(*pairs)
    return np.concatenate(heads, axis=-1) @ W_O, np.stack(maps, axis=-3)
""",
        says=("W_Q.shape",),
    ),
    Blind(
        "multi_head_attention",
        "the first rows of W_O",
        HELPERS
        + """
    Q, K, V = (_split(x @ M, num_heads) for M in (W_Q, W_K, W_V))
    out, weights = _sdpa(Q, K, V)
    d_v = out.shape[-1]
    return sum(out[..., i, :, :] @ W_O[:d_v] for i in range(num_heads)), weights
""",
        says=("first rows of W_O",),
    ),
    Blind(
        "merge_heads",
        "whole numbers, in reverse",
        """
        *lead, h, T, d_k = x.shape
        merged = np.zeros((*lead, T, h * d_k), dtype=int)
        for i in range(h):
            j = h - 1 - i
            merged[..., j * d_k : (j + 1) * d_k] = x[..., i, :, :]
        return merged
        """,
        says=("whole numbers",),
    ),
    Blind(
        "attention",
        "einsum for two axes",
        """
        scores = np.einsum('qd,kd->qk', Q, K) / math.sqrt(Q.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        weights = ops.softmax(scores)
        return weights @ V, weights
        """,
        says=("einsum",),
        never=("`@` sums",),
    ),
    Blind(
        "shift_matrix",
        "beyond the end",
        """
        M = np.zeros((d_model, d_model))
        for i in range(d_model):
            a = offset / base ** (2 * i / d_model)
            M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
        return M
        """,
        says=("left side|end",),
        never=("`@`",),
    ),
    Blind(
        "cache_bytes",
        "two slips in one product",
        """
        n = (layers - local_layers) * tokens + local_layers * min(tokens, window)
        return n * heads * d_head * bits / 8
        """,
        says=("one vector a token", "heads of the queries"),
    ),
    Blind(
        "merge_heads",
        "an error in most cases, and wrong where it runs",
        """
        B, h, T, d = x.shape
        return x.reshape(B, T, h * d)
        """,
        says=("number of names", "Elsewhere the results are wrong, too. Your heads are joined as by a reshape alone"),
    ),
    Blind(
        "softmax",
        "not stable, beside a slip of the own line",
        """
        e = np.exp(x)
        return e / (e.sum(-1, keepdims=True) + 1e-3)
        """,
        says=(r"1\. Line 3: leave out `\+ 0.001`", r"2\. `np.exp` of a large score overflows"),
    ),
    Blind(
        "softmax_backward",
        "no sum at all",
        "return weights * dweights - weights ** 2",
        never=("Your sum over the row",),
    ),
    Blind(
        "induction_head",
        "what is computed is not thrown away",
        """
        d = 3 * V + T
        A, B, C, D = (np.zeros((d, d)) for _ in range(4))
        A[V : V + T, V : V + T] = np.eye(T, k=-1)
        B[:V, 2 * V + T :] = np.eye(V)
        C[:V, V + T : 2 * V + T] = np.eye(V)
        D[:V, 2 * V + T :] = np.eye(V)
        return A, B, C, D
        """,
        never=("two different things",),
    ),
    Blind(
        "induction_head",
        "two matrices of zeros and ones",
        """
        d = 3 * V + T
        A, B, C, D = (np.zeros((d, d)) for _ in range(4))
        A[V : V + T, V : V + T] = np.eye(T, k=1)
        B[:V, V + T : 2 * V + T] = np.eye(V)
        C[V + T : 2 * V + T, :V] = np.eye(V)
        D[:V, 2 * V + T :] = np.eye(V)
        return A, B, C, D
        """,
        says=("head 0 looks one ahead", "query and key are exchanged"),
    ),
    Blind(
        "causal_mask",
        "floats beside another mistake",
        """
        m = np.zeros((T_q, T_k))
        for i in range(T_q):
            m[i, : i + 1] = 1
        return m
        """,
        says=("One thing more: `mask` has dtype float64",),
    ),
    Blind(
        "attention",
        "weights hidden behind softmax, and not scaled",
        """
        weights = ops.softmax(Q @ K.swapaxes(-1, -2))
        if mask is not None:
            weights = np.where(mask, weights, 0)
        output = weights @ V
        return output, weights
        """,
        says=(
            "without the scale",
            "You hide after softmax",
        ),
        never=("very large",),
    ),
    Blind(
        "causal_mask",
        "numbers to add, counted from the start",
        """
        mask = np.zeros((T_q, T_k))
        mask[np.triu_indices(T_q, k=1, m=T_k)] = -np.inf
        return mask
        """,
        says=(
            r"1\. These are numbers to be added",
            r"2\. You treat the queries as the \*first\*",
        ),
    ),
    Blind(
        "add_positions",
        "rows from 1, and float64",
        """
        B, T, d = X.shape
        out = X + table[1:T + 1]
        return out
        """,
        says=(
            "You start with row 1",
            "One thing more: float32 went in",
        ),
    ),
    Blind(
        "decode_step",
        "the cache of values in another order than the output",
        """
        q = x @ W_Q
        K = np.concatenate([K, x @ W_K])
        v = x @ W_V
        weights = ops.softmax(q @ K.T / math.sqrt(K.shape[-1]))
        output = weights @ np.concatenate([V, v])
        return output, K, np.concatenate([v, V])
        """,
        says=(r"write `\[V, v\]`",),
        never=("should not depend on it",),
    ),
    Blind(
        "decode_step",
        "the new position left out",
        """
        q, k, v = x @ W_Q, x @ W_K, x @ W_V
        s = q @ K.T / x.shape[1] ** 0.5
        out = ops.softmax(s) @ V if len(K) else np.zeros_like(v)
        return out, np.concatenate([K, k]), np.concatenate([V, v])
        """,
        never=(r"[Mm]ask",),
    ),
    Blind(
        "triage",
        "one answer for all patients",
        """
        rings = gauges.any(axis=0)
        for col, code in ((2, 2), (3, 1), (4, 3), (5, 4), (0, 5), (1, 5)):
            if rings[col]:
                return np.full(len(gauges), code)
        return np.zeros(len(gauges), dtype=int)
        """,
        never=(r"does not depend",),
    ),
    Blind(
        "merge_pairs",
        "pairs that overlap",
        """
        out = []
        skip = False
        for i in range(len(ids)):
            if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:
                out.append(new)
                skip = pair[0] != pair[1]
            elif skip:
                skip = False
            else:
                out.append(ids[i])
        return np.array(out)
        """,
        says=(r"overlapping pairs",),
        never=(r"in another order", r"Line"),
    ),
    Blind(
        "weighted_average",
        "a row too few, and divided twice",
        """
        out = []
        for col in range(values.shape[1]):
            s = 0.0
            for i in range(len(weights) - 1):
                s += weights[i] * values[i, col]
            out.append(s / len(weights))
        return np.array(out)
        """,
        says=(
            r"leave out `- 1`",
            r"leave out `/ len\(weights\)`",
        ),
    ),
    Blind(
        "delta_step",
        "the rate twice, and a sum",
        """
        said = np.einsum('i,ij->j', k, S)
        change = np.einsum('i,j->ij', rate * k, rate * (v + said))
        return np.sum([S, change], axis=0)
        """,
        says=(
            r"`v - said` instead of `v \+ said`",
            r"leave out `rate \*`",
        ),
    ),
    Blind(
        "merge_heads",
        "heads backwards, and below each other",
        """
        parts = [x[..., i, :, :] for i in range(x.shape[-3] - 1, -1, -1)]
        return np.concatenate(parts, axis=-2)
        """,
        says=(
            r"`axis=-1` instead of `axis=-2`",
            r"reverse order",
        ),
    ),
    Blind(
        "layer_norm",
        "a module that was not imported",
        """
        return gamma * (x - statistics.mean(x)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps) + beta
        """,
        says=("Write `import statistics` at the top of your cell",),
        never=("There is no `statistics`",),
    ),
    Blind(
        "layer_norm",
        "two axes in each mean",
        """
        mean = x.mean(axis=(-2, -1), keepdims=True)
        variance = np.square(x - mean).mean(axis=(-2, -1), keepdims=True)
        return gamma * (x - mean) / np.sqrt(variance + eps) + beta
        """,
        says=(r"`axis=-1, keepdims=True` instead of `axis=\(-2, -1\), keepdims=True`\.",),
    ),
    Blind(
        "mend_groups",
        "the groups backwards, and no root",
        """
        n = len(Q) // len(K)
        K, V = np.repeat(K[::-1], n, axis=0), np.repeat(V[::-1], n, axis=0)
        scores = np.einsum('hqd,hkd->hqk', Q, K) / Q.shape[-1]
        return ops.softmax(scores) @ V
        """,
        says=(
            r"leave out `\[::-1\]`, everywhere in this line",
            r"`math.sqrt\(Q.shape\[-1\]\)` instead|divided by the root of d_k",
        ),
    ),
    Blind(
        "bits_per_character",
        "in place, and decimals cut off",
        """
        nats /= np.log(2)
        per_token = lengths.sum() // len(lengths)
        return nats.mean() / per_token
        """,
        says=(
            r"changes its argument `nats` in place",
            r"`//` rounds down to a whole number",
        ),
    ),
    Blind(
        "pre_norm_block",
        "norms exchanged, and the first input added",
        """
        middle = x + attend(norm_2(x))
        return x + feed_forward(norm_1(middle))
        """,
        says=(
            r"exchange `norm_2` and `norm_1`",
            r"`middle \+ feed_forward",
            r"Yours: `y = x \+ feed_forward",
        ),
    ),
    Blind(
        "sinusoids",
        "exponents up to 1, in float32",
        """
        half = d_model // 2
        rate = base ** -(np.arange(half) / max(half - 1, 1))
        a = np.arange(length)[:, None] * rate
        out = np.empty((length, d_model), dtype=np.float32)
        out[:, ::2], out[:, 1::2] = np.sin(a), np.cos(a)
        return out
        """,
        says=(
            r"exponents run from 0 to 1",
            r"dtype float32; expected float64",
        ),
    ),
    Blind(
        "pre_norm_block",
        "functions made in a loop",
        """
        steps = []
        for part, norm in ((attend, norm_1), (feed_forward, norm_2)):
            steps.append(lambda s: s + part(norm(s)))
        y = x
        for step in steps:
            y = step(y)
        return y
        """,
        says=(r"write `lambda s, norm=norm, part=part: ", "the loop has ended"),
        never=("norm_1` gets nothing",),
    ),
    Blind(
        "rolling_mask",
        "numbers to add, and one too early",
        """
        bias = np.full((T, T), -np.inf)
        for t in range(T):
            for s in range(t):
                if t - s <= window or s < keep:
                    bias[t, s] = 0.0
        return bias
        """,
        says=("True and False",),
        never=("dtype=bool",),
    ),
    Blind(
        "merge_pairs",
        "three on, and from the second",
        """
        out = list(ids[:1])
        i = 1
        while i < len(ids):
            if list(ids[i:i + 2]) == list(pair):
                out.append(new)
                i += 3
            else:
                out.append(ids[i])
                i += 1
        return np.array(out)
        """,
        never=(r"np\.array\(ids\)", "No pair is merged"),
    ),
    Blind(
        "bits_per_character",
        "logarithm of 10, decimals cut off",
        """
        digits = sum(nats) / np.log(10)
        return digits // sum(lengths)
        """,
        never=("does not depend",),
    ),
    Blind(
        "induction_head",
        "right matrices and a wrong one, returned in another order",
        """
        size = 3 * V + T
        QK_0 = np.zeros((size, size))
        QK_1 = np.zeros((size, size))
        OV_0 = np.zeros((size, size))
        OV_1 = np.zeros((size, size))
        for t in range(T - 1):
            QK_0[V + t + 1, V + t] = 1.0
        for i in range(V):
            QK_1[i, i] = 1.0
            OV_0[i, i + V + T] = 1.0
            OV_1[i, i + 2 * V + T] = 1.0
        return QK_0, QK_1, OV_0, OV_1
        """,
        says=("QK_1",),
        never=("writes into the block of the symbol itself",),
    ),
    Blind(
        "cache_parity",
        "a new cache for each part",
        """
        batch = ids.reshape(1, -1)
        reference, _ = model.forward(batch)
        pieces = [(0, prompt)] + [(t, t + 1) for t in range(prompt, len(ids))]
        outputs = []
        for start, stop in pieces:
            past = model.new_past()
            logits, _ = model.forward(batch[:, start:stop], past)
            outputs.append(logits)
        outputs = np.concatenate(outputs, axis=1)
        return np.abs(reference - outputs)[0].max(axis=-1)
        """,
        says=("new past in each step",),
        never=("without `past`",),
    ),
    Blind(
        "bits_per_character",
        "a second logarithm, by the mean length",
        """
        bits = -np.log2(nats)
        return bits.sum() / lengths.mean()
        """,
        says=("lengths.sum", "logarithm already"),
        never=(),
    ),
    Blind(
        "grouped_attention",
        "values tiled, scaled by the keys",
        """
        h = Q.shape[0]
        h_kv, T_k, d_k = K.shape
        keys = np.repeat(K, h // h_kv, axis=0)
        values = np.tile(V, (h // h_kv, 1, 1))
        scores = np.matmul(Q, keys.transpose(0, 2, 1)) / math.sqrt(T_k)
        return np.matmul(ops.softmax(scores), values)
        """,
        says=("np\\.repeat\\(V, h // h_kv, axis=0\\)", "root of T_k"),
        never=(),
    ),
    Blind(
        "mend_groups",
        "values tiled, not scaled",
        """
        share = Q.shape[0] // K.shape[0]
        keys = np.repeat(K, share, axis=0)
        values = np.tile(V, (share, 1, 1))
        scores = np.einsum("hqd,hkd->hqk", Q, keys)
        return np.einsum("hqk,hkv->hqv", ops.softmax(scores), values)
        """,
        says=("part of the formula is missing", "shared out alike"),
        never=(),
    ),
    Blind(
        "adam_step",
        "one mistake in four places, and another",
        """
        m = beta_2 * m + (1 - beta_2) * grad
        v = beta_1 * v + (1 - beta_1) * grad**2
        v_hat = v / (1 - beta_1**t)
        return value - lr * m / (np.sqrt(v_hat) + eps), m, v
        """,
        says=(r"exchange `beta_[12]` and `beta_[12]`", r"1 - beta_1 \*\* t"),
    ),
    Blind(
        "pre_norm_block",
        "the norms exchanged, and the stream of the start",
        """
        h = x + attend(norm_2(x))
        return x + feed_forward(norm_1(h))
        """,
        says=("exchange `norm_2` and `norm_1`", "write `h \\+ feed_forward"),
    ),
    Blind(
        "rolling_mask",
        "two counts off by one, and nothing against the future",
        """
        q = np.arange(T)[:, None]
        k = np.arange(T)
        near = q - k <= window
        return near | (k <= keep)
        """,
        says=("`q - k < window`", "`k < keep`", "looking ahead"),
    ),
    Blind(
        "rotary_halves",
        "turned the other way, and counted from 1",
        """
        d = x.shape[-1]
        rates = 10000.0 ** (-2 * np.arange(d // 2) / d)
        a = (at + 1)[:, None] * rates
        b, c = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([b * np.cos(a) + c * np.sin(a), c * np.cos(a) - b * np.sin(a)], axis=-1)
        """,
        says=(r"leave out `\+ 1`",),
        never=("Nothing is turned",),
    ),
    Blind(
        "masked_attention",
        "the question of a where bent beside another mistake",
        """
        weights = ops.softmax(np.where(mask, scores, -np.inf), axis=0)
        seen = mask.any(axis=-1, keepdims=True)
        weights = np.where(seen, weights, 1 / mask.shape[-1])
        return weights @ V, weights
        """,
        never=(r"scores\.any", r"np\.any\(scores", "exchange `seen`"),
    ),
    Blind(
        "mend_mask",
        "nothing but False, which several mistakes make",
        "return np.arange(T_k) > np.arange(T_q)[:, None] + T_k",
        never=("to the left",),
    ),
    Blind(
        "induction_score",
        "a diagonal of the two copies, one query too long",
        """
        end = 2 * period
        two_copies = weights[..., :end, :end]
        stripe = np.diagonal(two_copies, offset=1 - period, axis1=-2, axis2=-1)
        return stripe.mean(axis=-1)
        """,
        says=(r"first query is the last of the first copy",),
        never=(
            r"Two things",
            r"after the second",
        ),
    ),
    Blind(
        "leak_across_rows",
        "squared in place of absolute, and the mean",
        """
        batch = np.concatenate((others, [ids]))
        together = model.forward(batch)[0]
        alone = model.forward(batch[-1:])[0]
        moved = (together[-1] - alone[-1]) ** 2
        return moved.mean(axis=1)
        """,
        says=(
            r"`np.abs\(together\[-1\] - alone\[-1\]\)` instead",
            r"take the mean",
        ),
        never=(r"Three things",),
    ),
    Blind(
        "pre_norm_block",
        "added to the normalized copy, and both read the input",
        """
        n = norm_1(x)
        y = n + attend(n)
        return y + feed_forward(norm_2(x))
        """,
        says=(r"`x \+ attend\(n\)` instead",),
        never=(r"leave out",),
    ),
    Blind(
        "masked_attention",
        "scaled again, hidden after softmax, where a query sees nothing",
        """
        scaled = scores / np.sqrt(V.shape[-1])
        weights = ops.softmax(scaled)
        weights = np.where(mask, weights, 0.0)
        return weights @ V, weights
        """,
        says=("They are scaled already", "You hide after softmax"),
        never=(r"changes when only",),
    ),
    Blind(
        "smoothed_loss",
        "two sums for means",
        """
        log_probs = ops.log_softmax(logits, axis=-1)
        picked = np.take_along_axis(log_probs, np.expand_dims(targets, -1), -1).squeeze(-1)
        everyone = log_probs.sum(axis=-1)
        loss = -(1 - smoothing) * picked - smoothing * everyone
        return np.sum(loss[counts])
        """,
        says=(r"Lines \d and \d: write `mean` instead of `sum`",),
        never=(r"each time",),
    ),
    Blind(
        "gru_step",
        "the state reset before the product, in brackets",
        """
        d = h.shape[-1]
        gx = x @ W_x + b
        r = ops.sigmoid(gx[:, :d] + h @ W_h[:, :d])
        z = ops.sigmoid(gx[:, d:2*d] + h @ W_h[:, d:2*d])
        n = np.tanh(gx[:, 2*d:] + (r * h) @ W_h[:, 2*d:] + r * b_h)
        return (1 - z) * n + z * h
        """,
        says=(r"instead of `\(r \* h\) @ W_h",),
    ),
    Blind(
        "sampling_probabilities",
        "hidden in the caller's logits",
        """
        order = np.argsort(logits)
        drop = order[:len(logits) - top_k]
        logits[drop] = float("-inf")
        return ops.softmax(logits, temperature=temperature)
        """,
        says=(r"Begin with `logits = logits.copy\(\)`",),
        never=(r"x = x - 1",),
    ),
    Blind(
        "online_softmax",
        "the caller's output scaled in place",
        """
        m_new = np.maximum(largest, np.max(scores))
        if np.isinf(m_new):
            return largest, total, output
        scale = np.exp(largest - m_new)
        p = np.exp(scores - m_new)
        total = total * scale + np.sum(p)
        output *= scale
        output += p @ values
        return m_new, total, output
        """,
        says=(r"Write `output = output \* scale`",),
        never=(r"copy",),
    ),
    Blind(
        "delta_step",
        "the rate inside the difference",
        """
        old = S.T @ k
        return S + np.outer(k, v - rate * old)
        """,
        says=(r"write `rate \* \(v - old\)`",),
    ),
    Blind(
        "rolling_mask",
        "a window to both sides, and one kept too many",
        """
        i, j = np.indices((T, T))
        near = abs(i - j) < window
        sink = (j <= keep) & (j <= i)
        return near | sink
        """,
        says=(
            r"reaches to both sides",
            r"one position too many",
        ),
    ),
    Blind(
        "score_variance",
        "the variance of whole numbers",
        """
        how_many = 2 * a + 1                       # from -a to a
        var_q = (how_many ** 2 - 1) / 12
        var_k = var_q
        # mean 0 and independent: variances multiply, and d_k products are added
        return d_k * var_q * var_k
        """,
        never=(
            "instead of `var_q`",
            "Three things",
        ),
    ),
    Blind(
        "induction_score",
        "a list of queries, averaged over the maps",
        """
        found = [weights[..., t, t - period + 1] for t in range(period, weights.shape[-1])]
        return np.mean(found)
        """,
        says=("`axis=0`",),
        never=("axis=-1",),
    ),
    Blind(
        "grouped_attention",
        "made as wide as the keys",
        """
        n_rep = Q.shape[0] // K.shape[0]
        result = np.empty_like(Q)
        for head in range(Q.shape[0]):
            kv = head // n_rep
            scores = Q[head] @ K[kv].T / math.sqrt(Q.shape[2])
            result[head] = ops.softmax(scores, axis=-1) @ V[kv]
        return result
        """,
        says=("left side of `=` has shape",),
        never=("slice on the left",),
    ),
    Blind(
        "mend_merge",
        "heads from the second on, turned",
        """
        heads = [x[..., k, :, :] for k in range(1, x.shape[-3])]
        heads = [one.swapaxes(-1, -2) for one in heads]   # tokens to the front
        return np.concatenate(heads, axis=-1)
        """,
        never=(
            "instead of `heads`",
            "three axes only",
        ),
    ),
    Blind(
        "multi_head_attention",
        "divided by d_k, softmax over the heads",
        """
        Q = np.stack(np.split(x @ W_Q, num_heads, -1), -3)
        K = np.stack(np.split(x @ W_K, num_heads, -1), -3)
        V = np.stack(np.split(x @ W_V, num_heads, -1), -3)
        d_k = Q.shape[-1]
        scores = Q @ np.swapaxes(K, -1, -2) / d_k
        # the heads compete with each other
        scores = np.exp(scores - scores.max(axis=-3, keepdims=True))
        weights = scores / scores.sum(axis=-3, keepdims=True)
        heads = weights @ V
        out = np.concatenate([heads[..., i, :, :] for i in range(num_heads)], axis=-1)
        return out @ W_O, weights
        """,
        says=(
            "axis=-1, keepdims=True",
            "divided by d_k",
        ),
        never=(
            "- d_k`",
            "Three things",
        ),
    ),
    Blind(
        "masked_attention",
        "empty rows shown",
        """
        empty = ~np.any(mask, axis=-1, keepdims=True)
        usable = mask | empty                 # no row without any key, softmax would give nan
        filled = np.where(usable, scores, -np.inf)
        w = ops.softmax(filled, axis=-1)
        return np.einsum("...ij,...jd->...id", w, V), w
        """,
        says=(
            "Use −∞",
            "zero weights",
        ),
        never=(
            "equal weights",
            "the mean of",
        ),
    ),
    Blind(
        "layer_norm",
        "ε as the least variance",
        """
        mean = x.mean(axis=-1, keepdims=True)
        var = x.var(axis=-1, keepdims=True)
        # eps so that we never divide by zero
        std = np.sqrt(np.maximum(var, eps))
        y = (x - mean) / std * gamma + beta
        return y.astype(x.dtype)
        """,
        says=(r"√\(σ² \+ ε\)",),
        never=("larger of σ",),
    ),
    Blind(
        "grouped_attention",
        "scores with the keys first",
        """
        h, n_q, d = Q.shape
        g = len(K)
        q = Q.reshape(g, h // g, n_q, d)
        # keys first, because K @ q reads nicer
        scores = np.einsum("gkd,grqd->grkq", K, q) / math.sqrt(d)
        weights = ops.softmax(scores)
        out = np.einsum("grkq,gkv->grqv", weights, V)
        return out.reshape(h, n_q, V.shape[-1])
        """,
        says=("does not run over the keys",),
        never=(
            "down the columns",
            "the last axis",
        ),
    ),
    Blind(
        "leak_across_rows",
        "alone in a batch of copies",
        """
        stacked = np.concatenate([others, ids[None]], axis=0)
        # same batch size for both, otherwise it is not a fair comparison
        ref_in = np.broadcast_to(ids, stacked.shape)
        ref, _ = model.forward(ref_in)
        got, _ = model.forward(stacked)
        return np.abs(got[-1] - ref[-1]).max(axis=0)
        """,
        says=(
            "once alone",
            "axis=-1",
        ),
        never=("in front",),
    ),
    Blind(
        "merge_pairs",
        "a for loop that is told to skip",
        """
        a, b = pair
        result = []
        for i in range(len(ids)):
            if i + 1 < len(ids) and ids[i] == a and ids[i + 1] == b:
                result.append(new)
                i += 1               # skip the second one
            else:
                result.append(ids[i])
        return np.array(result, dtype=int)
        """,
        says=("A `for` sets `i`",),
        never=(r"i \+= 2",),
    ),
    Blind(
        "merge_pairs",
        "while, by 1, and not to the end",
        """
        merged = []
        i = 0
        while i < len(ids) - 1:
            if tuple(ids[i:i + 2]) == tuple(pair):
                merged.append(new)
                i += 1
            else:
                merged.append(ids[i])
                i += 1
        return np.array(merged, dtype=int)
        """,
        says=(
            "moves on by 2",
            "last id is lost",
        ),
        never=("`for`",),
    ),
    Blind(
        "masked_attention",
        "hidden after softmax, empty rows guarded",
        """
        w = ops.softmax(scores, axis=-1)
        w = w * mask                                  # throw away the hidden ones
        total = w.sum(axis=-1, keepdims=True)
        w = w / np.where(total == 0, 1, total)        # sum to 1 again
        return w @ V, w
        """,
        says=("take `ops.softmax`",),
        never=("NaN",),
    ),
    Blind(
        "cache_bytes",
        "one local layer too many",
        """
        total = 0
        for i in range(layers):
            n = tokens
            if i <= local_layers and window < tokens:
                n = window
            total += n * 2 * kv_heads * d_head * bits / 8
        return total
        """,
        says=("write `i < local_layers`",),
        never=(
            "instead of `window`",
            "Two things",
        ),
    ),
    Blind(
        "patched_inputs",
        "names in another order than the matrices",
        """
        which = ["queries", "values", "keys"].index(into)
        inputs = [norm(x)] * 3
        inputs[which] = norm(x - written)
        return tuple(a @ W for a, W in zip(inputs, [W_Q, W_K, W_V]))
        """,
        never=("sign",),
    ),
    Blind(
        "split_heads",
        "every h-th column, turned",
        """
        pieces = []
        for i in range(num_heads):
            piece = x[..., i::num_heads]
            pieces.append(np.swapaxes(piece, -1, -2))
        return np.stack(pieces, axis=-3)
        """,
        never=(
            "heads of width",
            "You swap",
        ),
    ),
    Blind(
        "mend_block",
        "the stream exchanged at the end",
        """
        start = norm_1(x)
        h = start + attend(start)
        h = h + feed_forward(norm_2(h))
        # take the normed one out again and put the real x in
        return h - start + x
        """,
        says=("Asked for",),
        never=(
            r"start \+ start",
            "Two things",
        ),
    ),
    Blind(
        "attention",
        "mask or",
        """
        scores = np.einsum("...id,...jd->...ij", Q, K) / math.sqrt(Q.shape[-1])
        allowed = mask or np.ones(scores.shape, dtype=bool)
        scores = np.where(allowed, scores, -np.inf)
        weights = ops.softmax(scores, axis=-1).astype(Q.dtype)
        return np.asarray(weights @ V, dtype=Q.dtype), weights
        """,
        says=(
            "`or`",
            "if mask is not None",
        ),
    ),
    Blind(
        "split_heads",
        "each piece one column short, and T before h",
        """
        d_k = x.shape[-1] // num_heads
        heads = []
        for k in range(1, num_heads + 1):
            heads.append(x[..., (k - 1) * d_k:k * d_k - 1])
        return np.stack(heads, axis=-2)
        """,
        says=(
            r"leave out `- 1` in `k \* d_k - 1`",
            "swapaxes",
        ),
    ),
    Blind(
        "rotary_halves",
        "halves exchanged at the end",
        """
        h = x.shape[-1] // 2
        mixed = np.empty_like(x)
        mixed[..., 0::2] = x[..., :h]
        mixed[..., 1::2] = x[..., h:]
        r = positions.rotary(mixed, at)
        return np.concatenate((r[..., 1::2], r[..., 0::2]), axis=-1)
        """,
        says=("exchange `1::2` and `::2`",),
        never=("Two things", "off by one"),
    ),
    Blind(
        "rounded",
        "no keepdims, axis given",
        """
        lo, hi = x.min(axis=axis), x.max(axis=axis)
        step = (hi - lo) / (2**bits - 1)
        step = np.where(step == 0, 1, step)
        return np.round((x - lo) / step) * step + lo
        """,
        says=("`axis=axis, keepdims=True` instead of `axis=axis`",),
        never=("axis=0", "Two things"),
    ),
    Blind(
        "feed_forward",
        "a ReLU that keeps the negative ones, before the bias",
        """
        relu = lambda z: z * (z < 0)
        first = relu(x @ W_1) + b_1
        return first @ W_2 + b_2
        """,
        never=("leave out `relu",),
    ),
    Blind(
        "mend_block",
        "the stream under another name",
        """
        residual = x
        residual += attend(norm_1(x))
        return residual + feed_forward(norm_2(residual))
        """,
        says=("`residual = x`, makes no new array",),
        never=("out = x",),
    ),
    Blind(
        "patched_inputs",
        "keys or values, one of two questions",
        """
        clean, patched = norm(x), norm(x - written)
        if into == "queries":
            return patched @ W_Q, clean @ W_K, clean @ W_V
        if into == "keys" or "values":
            return clean @ W_Q, patched @ W_K, clean @ W_V
        return clean @ W_Q, clean @ W_K, patched @ W_V
        """,
        says=(r'write `into == "keys"` instead', "counts as true"),
    ),
    Blind(
        "softmax",
        "rows of the argument changed in a loop",
        """
        n = x.shape[-1]
        for row in x.reshape(-1, n):
            row -= row.max()
        e = np.exp(x)
        return e / e.sum(axis=-1, keepdims=True)
        """,
        says=("is still the same array", "x = x.copy()"),
        never=("gives this array another name",),
    ),
    Blind(
        "split_heads",
        "heads from 1, on the first axis",
        """
        d_k = x.shape[-1] // num_heads
        parts = []
        for h in range(1, num_heads + 1):
            parts.append(x[..., h * d_k:(h + 1) * d_k])
        return np.stack(parts, axis=0)
        """,
        says=(r"`range\(num_heads\)` instead of `range\(1, num_heads", "`axis=-3`"),
    ),
    Blind(
        "attention_backward",
        "the scores' gradient for the weights, as a function's argument",
        """
        d = V.shape[-1]
        dweights = doutput @ np.swapaxes(V, -1, -2)
        dscores = ops.softmax_backward(dweights, weights) / math.sqrt(d)
        dV = np.swapaxes(dscores, -1, -2) @ doutput
        return dscores @ K, np.swapaxes(dscores, -1, -2) @ Q, dV
        """,
        says=(r"`K.shape\[-1\]` instead of `V", r"`np.swapaxes\(weights, -1, -2\)` instead"),
    ),
    Blind(
        "smoothed_loss",
        "a symbol for padding",
        """
        logp = ops.log_softmax(logits, axis=-1)
        right = np.take_along_axis(logp, targets[..., None], axis=-1)[..., 0]
        losses = -(1 - smoothing) * right - smoothing * logp.mean(axis=-1)
        return losses[targets != 0].mean()
        """,
        says=("Symbol 0 is a symbol like the others",),
    ),
    Blind(
        "add_positions",
        "one row, past the last one",
        """
        rows = table[X.shape[1] + 1, :]
        return X + rows
        """,
        says=("All your tokens get the same numbers",),
        never=("Two things",),
    ),
    Blind(
        "rotate",
        "two halves, and a wrong sign",
        """
        T, d = x.shape[-2:]
        angles = positions.reshape(T, 1) * base ** (-np.arange(0, d, 2) / d)
        even, odd = x[..., 0::2], x[..., 1::2]
        new_even = even * np.cos(angles) - odd * np.sin(angles)
        new_odd = even * np.sin(angles) - odd * np.cos(angles)
        return np.concatenate([new_even, new_odd], axis=-1)
        """,
        says=("come back as two halves",),
        never=("turned rightly",),
    ),
    Blind(
        "mend_merge",
        "head 0 missing, and heads turned",
        """
        heads = [x[..., k, :, :] for k in range(1, x.shape[-3])]
        heads = [one.swapaxes(-1, -2) for one in heads]
        return np.concatenate(heads, axis=-1)
        """,
        never=("instead of `np.concatenate",),
    ),
    Blind(
        "masked_attention",
        "divided by a root again, and weights times the mask",
        """
        scores = scores / math.sqrt(V.shape[-1])
        weights = ops.softmax(scores) * mask
        output = weights @ V
        return output, weights
        """,
        says=(
            "They are scaled already",
            "You hide after softmax",
        ),
    ),
    Blind(
        "online_softmax",
        "nothing subtracted, and values without weights",
        """
        new_largest = max(largest, max(scores))
        if new_largest == -np.inf:
            return largest, total, output.copy()
        scale = math.exp(largest - new_largest)
        e = np.exp(scores)
        total = total * scale + np.sum(e)
        output = output * scale + np.sum(values[scores > -np.inf], axis=0)
        return new_largest, total, output
        """,
        says=(
            "as they are: exp",
            "add up the values as they are",
        ),
    ),
    Blind(
        "rounded",
        "one scale, no minimum, and rows that are all alike apart",
        """
        lo = x.min()
        hi = x.max()
        if lo == hi:
            return x.copy()
        step = (hi - lo) / (2 ** bits - 1)
        y = np.round((x - lo) / step)
        return y * step
        """,
        says=(
            "one largest number for the whole array",
            "smallest number again",
        ),
    ),
    Blind(
        "cache_bytes",
        "heads of a group, and layers exchanged",
        """
        groups = heads // kv_heads
        per_layer_token = 2 * groups * d_head * bits / 8
        rest = layers - local_layers
        return per_layer_token * (local_layers * tokens + rest * min(tokens, window))
        """,
        says=(
            "how many query heads share",
            "layers are exchanged",
        ),
    ),
    Blind(
        "delta_step",
        "faded, and key and value exchanged",
        """
        read = S @ v
        error = k - read
        return (1 - rate) * S + rate * np.outer(error, v)
        """,
        says=(
            "Key and value have changed places",
            "the whole memory by 1 − rate",
        ),
    ),
    Blind(
        "adam_step",
        "shares exchanged, and uphill",
        """
        m = (1 - beta_1) * m + beta_1 * grad
        v = (1 - beta_2) * v + beta_2 * grad ** 2
        m_hat = m / (1 - beta_1 ** t)
        v_hat = v / (1 - beta_2 ** t)
        value = value + lr * m_hat / (np.sqrt(v_hat) + eps)
        return value, m, v
        """,
        says=(
            "shares in m and v",
            "Your value goes up the gradient",
        ),
    ),
    Blind(
        "adam_step",
        "brackets in both corrections, and no root",
        """
        m = beta_1 * m + (1 - beta_1) * grad
        v = beta_2 * v + (1 - beta_2) * grad ** 2
        m_corr = m / (1 - beta_1) ** t
        v_corr = v / (1 - beta_2) ** t
        value = value - lr * m_corr / (v_corr + eps)
        return value, m, v
        """,
        says=(
            r"Line 4: write `\(1 - beta_1 \*\* t\)`",
            "change line 5 in the same way",
            "divide by v̂",
        ),
    ),
    Blind(
        "masked_attention",
        "the weights of blank queries stay",
        """
def my_masked_attention(scores, V, mask):
    m = np.broadcast_to(mask, scores.shape)
    empty = ~m.any(axis=-1, keepdims=True)
    s = np.where(m | empty, scores, -np.inf)
    s = np.where(empty, 0, s)
    weights = ops.softmax(s, axis=-1)
    output = np.where(empty, 0, weights @ V)
    return output, weights
""",
        says=("`weights` is not",),
        never=(r"scores\.any",),
    ),
    Blind(
        "additive_score",
        "another shape for the caller's array",
        """
def additive_score(query, keys, W_q, W_k, v):
    B, d_q = query.shape
    query.shape = (B, 1, d_q)   # so that it broadcasts over the S keys
    total = query @ W_q + keys @ W_k
    return np.tanh(total) @ v
""",
        says=(
            r"in line 4, `query\.shape = ",
            r"Write `query = query\.reshape",
        ),
        never=("a slice or a `reshape`",),
    ),
    Blind(
        "context_vector",
        "np.putmask, and a scale",
        """
def context_vector(scores, keys, mask):
    d = keys.shape[-1]
    np.putmask(scores, ~mask, -np.inf)
    weights = ops.softmax(scores / math.sqrt(d), axis=-1)
    context = (weights[..., None] * keys).sum(axis=-2)
    return context, weights
""",
        says=(
            r"in line 4, `np\.putmask\(scores",
            "divide the scores by a root",
        ),
    ),
    Blind(
        "mend_mask",
        "zeros for ones",
        """
def mended_mask(T_q, T_k):
    own = np.arange(T_q)[None, :] <= np.arange(T_q)[:, None]
    before = np.zeros((T_q, T_k - T_q), dtype=bool)
    return np.hstack([before, own])
""",
        says=(r"write `np\.ones` instead of `np\.zeros`",),
        never=("exchange",),
    ),
    Blind(
        "rotate",
        "plus for minus, in one line",
        """
def my_rotate(x, positions, base=10000.0):
    d = x.shape[-1]
    angles = positions[:, None] / base ** (np.arange(0, d, 2) / d)
    cos = np.repeat(np.cos(angles), 2, axis=-1)
    sin = np.repeat(np.sin(angles), 2, axis=-1)
    swapped = x.reshape(*x.shape[:-1], d // 2, 2)[..., ::-1].reshape(x.shape)
    return (x * cos + swapped * sin).astype(x.dtype)
""",
        says=("a cos − b sin",),
        never=("Both of your lines",),
    ),
    Blind(
        "leak_across_rows",
        "abs of the largest difference",
        """
def my_leak_across_rows(model, ids, others):
    a = model.forward(ids[np.newaxis])[0][0]
    b = model.forward(np.vstack([others, ids[np.newaxis]]))[0][-1]
    d = a - b
    return abs(d.max(axis=-1))
""",
        says=(r"`np\.abs` of every difference",),
        never=("leave out",),
    ),
    Blind(
        "score_variance",
        "d_k divided out again",
        """
def score_variance(d_k, a):
    var_entry = a ** 2 / 2
    var_dot = d_k * var_entry ** 2
    return var_dot / math.sqrt(d_k) ** 2
""",
        says=(
            r"`a \*\* 2 / 3`",
            r"leave out `/ \(math\.sqrt\(d_k\)",
        ),
        never=("is left out",),
    ),
    Blind(
        "induction_head",
        "ones below the whole diagonal",
        """
def my_induction_head(V, T):
    d = 3 * V + T
    eyeV = np.eye(V)
    QK_0 = np.eye(d, k=-1)
    OV_0 = np.zeros((d, d))
    OV_0[0:V, V + T:V + T + V] = eyeV
    QK_1 = np.zeros((d, d))
    QK_1[0:V, V + T:V + T + V] = eyeV
    OV_1 = np.zeros((d, d))
    OV_1[0:V, d - V:d] = eyeV
    return QK_0, OV_0, QK_1, OV_1
""",
        says=("Rows 1 to 3 and 8 to 13 are wrong",),
    ),
    Blind(
        "attention",
        "a causal mask for no mask",
        """
def my_attention(Q, K, V, mask=None):
    T_q, T_k = Q.shape[-2], K.shape[-2]
    if mask is None:
        # default mask
        mask = np.tril(np.ones((T_q, T_k), dtype=bool), k=T_k - T_q)
    scores = Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    weights = ops.softmax(scores, axis=-1)
    return weights @ V, weights
""",
        says=(r"leave out `np\.tril\(…, k=T_k - T_q\)` around `np\.ones",),
    ),
    Blind(
        "mend_mask",
        "no shift, and not its own position",
        """
def mended_mask(T_q, T_k):
    i = np.arange(T_k)[:T_q, None]
    j = np.arange(T_k)[None, :]
    return j < i
""",
        says=(r"key i \+ T_k − T_q",),
        never=("one key",),
    ),
    Blind(
        "softmax_backward",
        "over the first axis, and a scale",
        """
def my_softmax_backward(dweights, weights):
    n = weights.shape[-1]
    dot = (weights * dweights).sum(axis=0, keepdims=True)
    ds = weights * (dweights - dot)
    ds = ds / math.sqrt(n)
    return ds
""",
        says=(
            "`axis=-1` instead of `axis=0`",
            "leave out `ds = ds / math",
        ),
        never=("every case",),
    ),
    Blind(
        "patched_inputs",
        "only what was written, keys and values exchanged",
        """
def my_patched_inputs(x, written, norm, W_Q, W_K, W_V, into):
    a = norm(x)
    b = norm(written)
    where = {"queries": 0, "values": 1, "keys": 2}[into]
    inputs = [a, a, a]
    inputs[where] = b
    Q, K, V = (u @ W for u, W in zip(inputs, (W_Q, W_K, W_V)))
    return Q, K, V
""",
        says=(r"`norm\(x - written\)`",),
        never=("Nothing is taken out",),
    ),
    Blind(
        "induction_score",
        "the same symbol, one number for all maps",
        """
def my_induction_score(weights, period):
    vals = []
    for i in range(period, 2 * period):
        vals.append(weights[..., i, i - period])
    return np.mean(vals)
""",
        says=("same symbol in the first copy",),
        never=("axis=-1",),
    ),
    Blind(
        "rotate",
        "counted from 1, in a helper",
        """
def frequencies(d, base):
    i = np.arange(1, d // 2 + 1)
    return base ** (-2 * i / d)

def my_rotate(x, positions, base=10000.0):
    d = x.shape[-1]
    angle = positions[:, None] * frequencies(d, base)[None, :]
    cos, sin = np.cos(angle), np.sin(angle)
    x1 = x[..., 0::2]
    x2 = x[..., 1::2]
    res = np.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], axis=-1)
    return res.reshape(x.shape)
""",
        says=(r"Line 3: write `np\.arange\(d // 2\)`",),
    ),
    Blind(
        "pre_norm_block",
        "lambdas that all use the last layer",
        """
def my_pre_norm_block(x, attend, feed_forward, norm_1, norm_2):
    subs = [lambda t: f(n(t)) for f, n in [(attend, norm_1), (feed_forward, norm_2)]]
    y = x
    for sub in subs:
        y = y + sub(y)
    return y
""",
        says=(
            "lambda t, f=f, n=n: ",
            "all of them use the last value",
        ),
    ),
    Blind(
        "rms_norm",
        "float64 by its constructor",
        """
def my_rms_norm(x, gamma, eps):
    x64 = np.float64(x)
    mean_square = np.mean(x64 ** 2, axis=-1, keepdims=True)
    root = np.sqrt(mean_square + eps)
    result = x64 / root
    result = result * gamma
    return result
""",
        says=(r"write `x` instead of `np\.float64\(x\)`",),
    ),
    Blind(
        "add_positions",
        "always float32",
        """
def add_positions(X, table):
    Z = X.copy()
    T = Z.shape[1]
    for i in range(1, T):
        Z[:, i] += table[i]
    return Z.astype(np.float32)
""",
        says=(
            r"`range\(0, T\)`",
            r"write `Z\.astype\(X\.dtype\)`",
        ),
    ),
    Blind(
        "attention",
        "float64 by two lines of three",
        """
def my_attention(Q, K, V, mask=None):
    q64, k64, v64 = (np.asarray(a, dtype=np.float64) for a in (Q, K, V))
    s = q64 @ k64.swapaxes(-1, -2)
    s = s / np.sqrt(q64.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    weights = ops.softmax(s, axis=-1)
    output = weights @ v64
    return weights, output
""",
        says=(
            "Lines 3 and 5",
            r"`math\.sqrt",
        ),
        never=("where",),
    ),
    Blind(
        "softmax_backward",
        "float64 from the eye of a helper",
        """
def _jacobian(w):
    return w[..., :, None] * np.eye(w.shape[-1]) - w[..., :, None] * w[..., None, :]


def my_softmax_backward(dweights, weights):
    J = _jacobian(weights)
    return (J @ dweights[..., None])[..., 0]
""",
        says=(r"Line 3 .*dtype=w\.dtype",),
    ),
    Blind(
        "delta_step",
        "a tuple of arrays of two shapes",
        """
def my_delta_step(S, k, v, rate):
    old_value = k @ S
    new_value = rate * old_value + (1 - rate) * v
    # take the old one out, put the new one in
    S_without_old = S - np.outer(k, old_value)
    S_next = S_without_old + np.outer(k, new_value)
    o = k @ S_next
    return S_next, o
""",
        says=("`memory` is a tuple",),
    ),
    Blind(
        "leak_across_rows",
        "probabilities, and their differences added up",
        """
def my_leak_across_rows(model, ids, others):
    p_alone = ops.softmax(model.forward(ids[None])[0], axis=-1)[0]
    full = np.append(others, ids[None], axis=0)
    p_batch = ops.softmax(model.forward(full)[0], axis=-1)[-1]
    T = ids.shape[0]
    res = []
    for t in range(T):
        res.append(np.sum(np.abs(p_alone[t] - p_batch[t])))
    return np.array(res)
""",
        says=(
            "compare probabilities",
            "all symbols together",
        ),
        never=("runs are the same",),
    ),
    Blind(
        "split_heads",
        "cut in the order of Fortran, and not swapped",
        """
def my_split_heads(x, num_heads):
    d_model = x.shape[-1]
    dk = int(d_model / num_heads)
    new_shape = list(x.shape[:-1]) + [num_heads, dk]
    return x.reshape(new_shape, order="F")
""",
        says=(
            "leave out `order='F'`",
            "T and h are not swapped",
        ),
        never=("cut as by a reshape",),
    ),
    Blind(
        "context_vector",
        "scaled in place, and hidden in place",
        """
def context_vector(scores, keys, mask):
    # softmax(q k^T / sqrt(d)) v
    d = keys.shape[-1]
    scores /= math.sqrt(d)
    scores[~mask] = -np.inf
    weights = ops.softmax(scores, axis=-1)
    context = np.einsum("bs,bsd->bd", weights, keys)
    return context, weights
""",
        says=(
            "in line 5, .*, and in line 6",
            r"`scores = scores\.copy\(\)`",
        ),
    ),
    Blind(
        "mend_groups",
        "groups from the back, and divided",
        """
def mended_groups(Q, K, V):
    h, T_q, d_k = Q.shape
    h_kv = K.shape[0]
    je = h // h_kv
    gruppen = Q.reshape(h_kv, je, T_q, d_k)
    Kr = K[::-1][:, None]
    Vr = V[::-1][:, None]
    s = gruppen @ Kr.swapaxes(-1, -2) / math.sqrt(d_k)
    aus = ops.softmax(s) @ Vr
    aus = aus / je
    return aus.reshape(h, T_q, V.shape[-1])
""",
        says=(
            r"leave out `\[::-1\]`\. A step of −1",
            "leave out `aus = aus / je`",
        ),
        never=("exchange",),
    ),
    Blind(
        "merge_heads",
        "below each other, and without the last one",
        """
def my_merge_heads(x):
    heads = [x[..., k, :, :] for k in range(x.shape[-3])]
    joined = heads[0]
    for piece in heads[1:-1]:
        joined = np.concatenate((joined, piece), axis=-2)
    return joined
""",
        never=(
            "1:0",
            "1:1",
            "2:0",
        ),
    ),
    Blind(
        "smoothed_loss",
        "padding counts, and ε for each symbol",
        """
def my_smoothed_loss(logits, targets, counts, smoothing):
    lp = ops.log_softmax(logits, axis=-1)
    q = np.zeros(lp.shape) + smoothing
    q = q + (1 - smoothing) * (np.arange(lp.shape[-1]) == targets[..., None])
    h = -np.sum(q * lp, axis=-1)
    h = h[counts == False]
    return h.sum() / max(len(h), 1)
""",
        says=("share it: ε/V each",),
        never=(r"False \+ 1",),
    ),
    Blind(
        "online_softmax",
        "written into in a branch and in the loop",
        """
def my_online_softmax(largest, total, output, scores, values):
    for j in range(len(scores)):
        s = scores[j]
        if s == -np.inf:
            continue
        if s > largest:
            r = np.exp(largest - s)
            total = total * r
            output *= r
            largest = s
        total = total + np.exp(s - largest)
        output += np.exp(s - largest) * values[j]
    return largest, total, output
""",
        says=(
            "in line 10, .*, and in line 13",
            r"output\.copy\(\)",
        ),
    ),
    Blind(
        "layer_norm",
        "an axis put back for two axes only",
        """
def my_layer_norm(x, gamma, beta, eps):
    m = np.mean(x, axis=-1)[:, None]
    v = np.var(x, axis=-1)[:, None]
    out = (x - m) / np.sqrt(v + eps) * gamma + beta
    return out.astype(x.dtype)
""",
        says=(r"on a batch of shape \(2, 3, 5\)",),
        never=("axis=1`",),
    ),
    Blind(
        "context_vector",
        "weights of an unmasked softmax, and the results exchanged",
        """
def context_vector(scores, keys, mask):
    def look(w):
        return (keys * np.expand_dims(w, 2)).sum(axis=1)

    raw = ops.softmax(scores)
    clean = ops.softmax(np.where(mask, scores, -np.inf))
    return clean, look(raw)
""",
        says=(r"`return look\(raw\), clean`",),
        never=("alone",),
    ),
    Blind(
        "rotary_halves",
        "neighbours, and the right half one position on",
        """
def my_rotary_halves(x, at):
    n = x.shape[-1] // 2
    left = positions.rotary(x, at)[..., :n]
    right = positions.rotary(x, np.asarray(at) + 1)[..., n:]
    return np.concatenate([left, right], axis=-1)
""",
        says=(
            r"leave out `\+ 1`",
            "turn neighbours",
        ),
        never=("// 2",),
    ),
    Blind(
        "merge_heads",
        "divided, and in place",
        """
def my_merge_heads(x):
    h, T, d_k = x.shape[-3], x.shape[-2], x.shape[-1]
    x /= h
    t_first = np.swapaxes(x, -3, -2)
    return t_first.reshape(*x.shape[:-3], T, h * d_k)
""",
        says=(
            "leave out `x /= h`",
            "Without this line",
        ),
        never=("write `x = x / h`",),
    ),
    Blind(
        "adam_step",
        "one share for both corrections",
        """
def my_adam_step(value, grad, m, v, t, lr, beta_1, beta_2, eps):
    first_moment = beta_1 * m + (1 - beta_1) * grad
    second_moment = beta_2 * v + (1 - beta_2) * np.square(grad)
    # both averages start at zero and must be corrected for it
    first_moment_corrected = first_moment / (1 - np.power(beta_1, t))
    second_moment_corrected = second_moment / (1 - np.power(beta_1, t))
    denominator = np.sqrt(second_moment_corrected) + eps
    new_value = value - lr * (first_moment_corrected / denominator)
    return new_value, first_moment, second_moment
""",
        says=(r"write `np\.power\(beta_2, t\)`",),
    ),
    Blind(
        "merge_heads",
        "all axes of length 1 dropped",
        """
def my_merge_heads(x):
    parts = np.split(x, x.shape[-3], axis=-3)
    glued = np.concatenate(parts, axis=-1)   # (..., 1, T, h*d_k)
    return glued.squeeze()
""",
        says=(r"squeeze\(axis=-3\)",),
    ),
    Blind(
        "split_heads",
        "two letters of the result exchanged",
        'np.einsum("...thd->...hdt", x.reshape(*x.shape[:-1], num_heads, -1))',
        says=(r"write `'...thd->...htd'`", "letters are its axes"),
    ),
    Blind(
        "leak_across_rows",
        "an index too many at the end",
        """
        alone = model.forward(ids[None])[0][0]
        together = model.forward(np.concatenate([others, ids[None]]))[0][-1]
        return np.abs(alone - together).max(axis=-1)[0]
        """,
        says=(r"leave out `\[0\]`",),
        never=(r"A slice `a:b`",),
    ),
    Blind(
        "multi_head_attention",
        "one leading axis taken for granted",
        """
        B, T, d_model = x.shape
        Q, K, V = ((x @ W).reshape(B, T, num_heads, -1).transpose(0, 2, 1, 3) for W in (W_Q, W_K, W_V))
        heads, weights = attention.scaled_dot_product_attention(Q, K, V)
        return heads.transpose(0, 2, 1, 3).reshape(B, T, -1) @ W_O, weights
        """,
        says=("one number for each axis", r"`\*leading, T, d_model = x.shape`"),
    ),
    Blind(
        "triage",
        "argmax of a row without a True",
        """
        start, curve, time, rows, order, cache = gauges.T
        first = np.stack([rows, time, order, cache, start | curve], axis=1).argmax(axis=1)
        return first + 1
        """,
        says=("gets 1 from you",),
    ),
    Blind(
        "masked_attention",
        "two letters of the weights exchanged",
        """
        w = ops.softmax(np.where(mask, scores, -np.inf))
        return np.einsum("...kq,...kd->...qd", w, V), w
        """,
        says=(r"write `'...qk,...kd->...qd'`",),
    ),
    Blind(
        "rounded",
        "one step for the whole array, its own smallest number for each row",
        """
        low = x.min(axis=axis, keepdims=True)
        step = (x.max() - x.min()) / (2**bits - 1)
        if step == 0:
            step = 1.0
        return low + np.round((x - low) / step) * step
        """,
        says=("the step from the whole array",),
        never=("should not depend",),
    ),
    Blind(
        "rounded",
        "from minus the largest absolute value to the largest",
        """
        amp = np.abs(x).max(axis=axis, keepdims=True)
        step = 2 * amp / (2**bits - 1)
        step = np.where(step == 0, 1.0, step)
        return -amp + np.round((x + amp) / step) * step
        """,
        says=("levels on both sides of 0",),
    ),
    Blind(
        "shift_matrix",
        "whole numbers",
        """
        M = np.eye(d_model, dtype=int)
        for col in range(0, d_model, 2):
            a = offset / base ** (col / d_model)
            M[col, col] = M[col + 1, col + 1] = np.cos(a)
            M[col, col + 1], M[col + 1, col] = np.sin(a), -np.sin(a)
        return M
        """,
        says=(r"leave out `dtype=int`. An array of whole numbers cuts off",),
    ),
    Blind(
        "rotary_halves",
        "columns picked along the second axis",
        """
        order = np.arange(x.shape[-1]).reshape(2, -1).T.ravel()
        neighbours = x[:, order]
        rotated = positions.rotary(neighbours, at)
        return rotated[:, np.argsort(order)]
        """,
        says=(r"write `...,` instead of `:,`", "all the axes in front"),
    ),
    Blind(
        "feed_forward",
        "tokens as rows of one matrix, and a bias with an axis more",
        """
        X = x.reshape(-1, x.shape[-1])
        H = np.maximum(X.dot(W_1) + b_1[None, :], 0)
        return H.dot(W_2) + b_2[None, :]
        """,
        says=(r"leave out `.reshape\(-1, x.shape\[-1\]\)`", r"leave out `\[None, :\]`. This axis"),
        never=("not a part of it",),
    ),
    Blind(
        "context_vector",
        "a sum that no string begins anew",
        """
        weights = ops.softmax(np.where(mask, scores, -np.inf))
        context = []
        total = np.zeros(keys.shape[-1])
        for b in range(len(scores)):
            for s in range(len(scores[b])):
                total = total + weights[b, s] * keys[b, s]
            context.append(total)
        return np.array(context), weights
        """,
        says=(r"move `total = np.zeros\(keys.shape\[-1\]\)` into the loop over `b`",),
    ),
    Blind(
        "attention",
        "a bracket that closes too late",
        """
        scores = Q @ K.swapaxes(-1, -2)
        scores = math.sqrt(scores / K.shape[-1])
        scores = scores if mask is None else np.where(mask, scores, -np.inf)
        weights = ops.softmax(scores)
        return weights @ V, weights
        """,
        says=(r"Line 3: write `scores / math.sqrt\(K.shape\[-1\]\)`", "brackets decide"),
        never=("A part of the formula",),
    ),
    Blind(
        "merge_heads",
        "stacked where the pieces have to be joined",
        "np.stack(np.moveaxis(x, -3, 0), axis=-1)",
        says=(r"`np.concatenate` instead of `np.stack`", "joins along one that is there"),
    ),
    Blind(
        "layer_norm",
        "another power",
        """
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 3).mean(-1, keepdims=True)
        return gamma * (x - mean) / np.sqrt(variance + eps) + beta
        """,
        says=(r"write `\(x - mean\) \*\* 2`",),
        never=("the mean of x − μ",),
    ),
    Blind(
        "adam_step",
        "a name that is nowhere set",
        """
        m = beta_1 * m + (1 - beta_1) * grad
        v = beta_2 * v + (1 - beta_2) * grad**2
        v_hat = v / (1 - beta_2**t)
        return value - lr * m_hat / (np.sqrt(v_hat) + eps), m, v
        """,
        says=("There is no `m_hat` here",),
        never=("things to mend",),
    ),
    Blind(
        "merge_heads",
        "one for what is left over",
        "x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], 1)",
        never=("leave out", "not joined"),
    ),
    Blind(
        "pre_norm_block",
        "a branch that only norms",
        """
        x = x + attend(norm_1(x))
        x = x + norm_2(x)
        return x
        """,
        never=("leave out `x = x",),
    ),
    Blind(
        "grouped_attention",
        "the result's letters in another order, in the second of two products",
        """
        h, T_q, d_k = Q.shape
        S = np.einsum("ngqd,nkd->ngqk", Q.reshape(len(K), -1, T_q, d_k), K) / math.sqrt(d_k)
        return np.einsum("ngqk,nkv->nqgv", ops.softmax(S), V).reshape(h, T_q, -1)
        """,
        says=(r"`'ngqk,nkv->ngqv'` instead of `'ngqk,nkv->nqgv'`",),
    ),
    Blind(
        "grouped_attention",
        "the width of the values for that of the keys",
        """
        h, T_q, _ = Q.shape
        h_kv, T_k, d = V.shape
        out = np.empty((h, T_q, d))
        for i in range(h):
            j = i // (h // h_kv)
            out[i] = ops.softmax(Q[i] @ K[j].T / math.sqrt(d)) @ V[j]
        return out
        """,
        says=("root of d_v",),
        never=(r"sqrt\(_\)",),
    ),
    Blind(
        "online_softmax",
        "the tile's own maximum, and a question for both",
        """
        new = scores.max()
        if new == -np.inf and largest == -np.inf:
            return largest, total, output
        scale, p = np.exp(largest - new), np.exp(scores - new)
        return new, total * scale + p.sum(), output * scale + p @ values
        """,
        says=("tile's own maximum",),
        never=("things to mend",),
    ),
    Blind(
        "rms_norm",
        "the mean of the sizes, squared",
        """
        size = np.mean(np.abs(x), axis=-1, keepdims=True)
        return (gamma * x / np.sqrt(size**2 + eps)).astype(x.dtype)
        """,
        says=("You square the mean",),
        never=("loses the sign",),
    ),
)
