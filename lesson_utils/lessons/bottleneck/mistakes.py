"""The ways to get a GRU step, the additive score and the context vector wrong, as learners type them."""

# fmt: off
from lesson_utils.lessons.common_mistakes import answers, masks, weighing
from lesson_utils.mistakes.exercise import change

# --- A GRU step -------------------------------------------------------------------------------------------------------

GRU = (
    change('1 − z on the wrong side', "You keep 1 − z of the old state. Here z says how much of the old state *stays*: `(1 - z) * n + z * h`. (Some papers let z say how much is replaced; a model trained one way can't be read the other way.)", new="return z * n + (1 - z) * h"),
    change('gates swapped', 'You took r for z and z for r. The columns are, from left to right, those of r, z and n.', r="r = ops.sigmoid(x_z + h_z)", z="z = ops.sigmoid(x_r + h_r)"),
    change('reset before the product', 'You reset the state before it is multiplied: `(r * h) @ W_hn`. That is the formula of Cho et al. (2014). The variant asked for, that of PyTorch, resets after it: `r * (h @ W_hn + b_h)`. With the same weights the two differ.', n=("n = np.tanh(x_n + (r * h) @ np.split(W_h, 3, axis=-1)[2] + b_h)", "n = np.tanh(x_n + (r * h) @ np.split(W_h, 3, axis=-1)[2])")),
    change('reset on the input too', "Your r scales the whole candidate, the input's part included. It decides how much of the *old state* the candidate sees: `x_n + r * (h_n + b_h)`.", n="n = np.tanh(r * (x_n + h_n + b_h))"),
    change("reset on the input", "You put the reset gate on the input. r decides what of the old *state* the candidate sees: `np.tanh(x_n + r * (h_n + b_h))`.", n="n = np.tanh(r * x_n + h_n + b_h)"),
    change('no reset', 'You never use r. It scales what the candidate sees of the old state: `r * (h_n + b_h)`.', n=("n = np.tanh(x_n + h_n + b_h)", "n = np.tanh(x_n + h_n)")),
    change("reset of b_h only", "Your r scales b_h alone. It scales all that the candidate sees of the old state: `r * (h_n + b_h)`.", n="n = np.tanh(x_n + h_n + r * b_h)"),
    change("1 − r for r", "You take 1 − r for the reset. r near 1 keeps the old state: `r * (h_n + b_h)`.", n="n = np.tanh(x_n + (1 - r) * (h_n + b_h))"),
    change("z for r", "The candidate is reset with the wrong gate. z mixes old and new at the end; the reset is r: `r * (h_n + b_h)`.", n="n = np.tanh(x_n + z * (h_n + b_h))"),
    change("r for z", "You mix with the reset gate. The new state is `(1 - z) * n + z * h`.", new="return (1 - r) * n + r * h"),
    change('b_h outside the reset', 'You add b_h outside. It belongs to the product with the old state, and r scales both: `r * (h_n + b_h)`.', n="n = np.tanh(x_n + r * h_n + b_h)"),
    change('b_h forgotten', "You never use b_h, the candidate's second bias: `r * (h_n + b_h)`.", n="n = np.tanh(x_n + r * h_n)"),
    change("b_h added to all", "You add b_h to the gates as well. It is the candidate's alone: `r * (h_n + b_h)`.", r="r = ops.sigmoid(x_r + h_r + b_h)", z="z = ops.sigmoid(x_z + h_z + b_h)"),
    change('b forgotten', 'You never use b. It is added once, to the product with the input: `x @ W_x + b`.', x="x_r, x_z, x_n = np.split(x @ W_x, 3, axis=-1)"),
    change('b added twice', "You add b to both products. It belongs to the input's: `x @ W_x + b`, but `h @ W_h`.", h="h_r, h_z, h_n = np.split(h @ W_h + b, 3, axis=-1)"),
    change("b on the wrong product", "You add b to `h @ W_h`. It belongs to the input's part, `x @ W_x + b`; in the candidate that makes a difference, because r is in between.", x="x_r, x_z, x_n = np.split(x @ W_x, 3, axis=-1)", h="h_r, h_z, h_n = np.split(h @ W_h + b, 3, axis=-1)"),
    change('candidate without tanh', 'Your candidate has no tanh around it. tanh keeps the state between −1 and 1, however long the sequence.', n="n = x_n + r * (h_n + b_h)"),
    change('candidate with the logistic function', 'You put the logistic function around the candidate: it could never be negative. The gates are fractions, the candidate is a state: `np.tanh`.', n="n = ops.sigmoid(x_n + r * (h_n + b_h))"),
    change("candidate with ReLU", "You put ReLU around the candidate. A GRU's candidate is a tanh: a state between −1 and 1.", n="n = np.maximum(0, x_n + r * (h_n + b_h))"),
    change('gates with tanh', 'You put tanh around the gates: then they lie between −1 and 1. A gate is a fraction, between 0 and 1: `ops.sigmoid`.', r="r = np.tanh(x_r + h_r)", z="z = np.tanh(x_z + h_z)"),
    change("reset gate with tanh", "You put tanh around r: then it lies between −1 and 1. A gate is a fraction, between 0 and 1: `ops.sigmoid`.", r="r = np.tanh(x_r + h_r)"),
    change("update gate with tanh", "You put tanh around z: then it lies between −1 and 1. A gate is a fraction, between 0 and 1: `ops.sigmoid`.", z="z = np.tanh(x_z + h_z)"),
    change('gates without the logistic function', 'Your gates are bare sums. A gate is a fraction, between 0 and 1: put `ops.sigmoid` around it.', r="r = x_r + h_r", z="z = x_z + h_z"),
    change("gates without the state", "Your gates look at the input only. Each gate adds the input's block and the state's: `ops.sigmoid(x_r + h_r)`.", r="r = ops.sigmoid(x_r)", z="z = ops.sigmoid(x_z)"),
    change('candidate only', 'You return the candidate n. The new state mixes it with the old one: `(1 - z) * n + z * h`.', new="return n"),
    change('old state left out', 'You return (1 − z) · n and leave the old state out. What stays of it is z · h: this sum is how a GRU remembers.', new="return (1 - z) * n"),
    change('candidate unweighted', 'You add the whole candidate. The two shares must sum to 1: `(1 - z) * n + z * h`.', new="return n + z * h"),
    change('new state unweighted', 'You add the whole old state. The two shares must sum to 1: `(1 - z) * n + z * h`.', new="return (1 - z) * n + h"),
    change("more than one result", "You return more than the new state. One array is asked for: `return (1 - z) * n + z * h`.", new=("return (1 - z) * n + z * h, n", "return (1 - z) * n + z * h, r, z, n")),
    change(
        'cut along the batch', "You cut along axis 0, `np.split`'s default: the batch, or the rows of a matrix. The blocks of r, z and n stand side by side in the *columns*: `np.split(..., 3, axis=-1)`.",
        "W_r, W_z, W_n = np.split(W_x, 3)\nreturn x @ W_r",
        "W_r, W_z, W_n = np.split(W_h, 3)\nreturn h @ W_r",
        x="x_r, x_z, x_n = np.split(x @ W_x + b, 3)", h=("h_r, h_z, h_n = np.split(h @ W_h, 3)", "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)"),
    ),
    change("blocks in another order", "Your blocks are in another order. The columns are those of r, of z and of n, in this order: `x_r, x_z, x_n = np.split(...)`.", x=("x_z, x_r, x_n = np.split(x @ W_x + b, 3, axis=-1)", "x_n, x_r, x_z = np.split(x @ W_x + b, 3, axis=-1)", "x_r, x_n, x_z = np.split(x @ W_x + b, 3, axis=-1)"), h=("h_z, h_r, h_n = np.split(h @ W_h, 3, axis=-1)", "h_n, h_r, h_z = np.split(h @ W_h, 3, axis=-1)", "h_r, h_n, h_z = np.split(h @ W_h, 3, axis=-1)", "h_r, h_z, h_n = np.split(h @ W_h, 3, axis=-1)")),
    change('every third column', 'You take every third column. Each block is d_h columns in a row: first all of r, then all of z, then all of n.', x="x_r, x_z, x_n = ((x @ W_x + b)[..., k::3] for k in range(3))", h="h_r, h_z, h_n = ((h @ W_h)[..., k::3] for k in range(3))"),
    change('product the wrong way round', 'You put the matrix in front. Here each row of x is one sequence of the batch, so the matrix stands behind: `x @ W_x`, `h @ W_h`.', x=("x_r, x_z, x_n = np.split(W_x @ x + b, 3, axis=-1)", "x_r, x_z, x_n = np.split(np.dot(W_x, x) + b, 3, axis=-1)")),
    change("the state's product the wrong way round", "You put the matrix in front of the state. Each row of h is one sequence of the batch, so the matrix stands behind: `h @ W_h`.", h="h_r, h_z, h_n = np.split(W_h @ h, 3, axis=-1)"),
    change('* in place of @', '`x * W_x` multiplies entry by entry. A matrix product is `x @ W_x`.', x="x_r, x_z, x_n = np.split(x * W_x + b, 3, axis=-1)"),
    change("* in place of @, with the state", "`h * W_h` multiplies entry by entry. A matrix product is `h @ W_h`.", h="h_r, h_z, h_n = np.split(h * W_h, 3, axis=-1)"),
)

# --- The additive score -------------------------------------------------------------------------------------------

ADDITIVE = (
    change('no tanh', "There is no tanh. Without it the score is a sum of a part from the query and a part from the key, and the query's part is the same for every key: softmax cancels it, and the weights ignore the query.", tanh="hidden = both"),
    change('tanh after v', 'You apply tanh last, around the product with v. It belongs around the sum, before v: `np.tanh(...) @ v`.', tanh="hidden = both", score="return np.tanh(hidden @ v)"),
    change("tanh twice", "You apply tanh twice. Once is enough, around the sum, before v: `np.tanh(...) @ v`.", score="return np.tanh(hidden @ v)"),
    change('tanh on each part', "You bend the two parts one by one. As without any tanh, the query's part is then the same for every key, and softmax cancels it. Add first: `np.tanh(from_query + from_keys)`.", both="both = np.tanh(from_query) + np.tanh(from_keys)", tanh=("hidden = both", "hidden = np.tanh(both)")),
    change("tanh on one part", "You bend one part only. Add first, then bend the sum: `np.tanh(from_query + from_keys)`.", both=("both = np.tanh(from_query) + from_keys", "both = from_query + np.tanh(from_keys)"), tanh=("hidden = both", "hidden = np.tanh(both)")),
    change('query not lined up', "The query's part has shape (B, d_a), that of the keys (B, S, d_a). NumPy lines up from the right, so that B meets S: an error, or, where B = S, wrong numbers without one. Give the query an axis for the keys: `(query @ W_q)[:, None]`, shape (B, 1, d_a).", query=("from_query = query @ W_q", "from_query = (query @ W_q)[None]"), both=("both = from_query + from_keys", "both = from_keys + from_query")),
    change('axis in the wrong place', "You give the query's part its new axis at the end, (B, d_a, 1). The axis of length S is the one in the middle: `(query @ W_q)[:, None]`, shape (B, 1, d_a).", query="from_query = (query @ W_q)[..., None]", both=("both = from_query + from_keys", "both = from_keys + from_query")),
    change('matrices swapped', 'You multiplied the query by W_k and the keys by W_q. Only where both have the same width is there no error.', query="from_query = (query @ W_k)[:, None]", keys=("from_keys = keys @ W_q", "from_keys = keys @ W_k")),
    change("one matrix for both", "You use one matrix for both. The query has W_q, the keys have W_k.", keys="from_keys = keys @ W_q"),
    change('weights returned', 'You return weights. The scores are asked for; softmax comes later.', score="return ops.softmax(hidden @ v)"),
    change('multiplied', 'You multiply the two parts. The score is called additive because they are added before the tanh.', both="both = from_query * from_keys"),
    change("subtracted", "You subtract the two parts. The score is called additive because they are added before the tanh.", both=("both = from_query - from_keys", "both = from_keys - from_query")),
    change('a dot product', "This is the dot product of query and key, after a matrix each: nearly Luong's general score. The additive score adds them, bends the sum with tanh, and reads a number off it with v.", both="both = from_query * from_keys", tanh="hidden = both", score="return hidden.sum(axis=-1)"),
    change("the query left out", "Your score does not depend on the query. Its part, `(query @ W_q)[:, None]`, is added to that of the keys before the tanh.", both="both = from_keys"),
    change('v forgotten', 'You add up the hidden numbers as they are. v says how much each of them counts: `hidden @ v`.', score=("return hidden.sum(axis=-1)", "return hidden.mean(axis=-1)")),
    change('v in front', 'You put v in front, as the formula is written. `@` would sum over the keys. The hidden numbers are on the last axis: `np.tanh(...) @ v`.', score=("return v @ hidden", "return np.dot(v, hidden)")),
    change('not summed', 'You multiplied by v, but did not add up: a score is one number a pair. `hidden @ v` does both.', score="return hidden * v"),
    change("nothing read off", "You return the hidden numbers, (B, S, d_a). v reads one number off each row: `hidden @ v`.", score="return hidden"),
    change('summed over the keys', 'You summed over the keys. There must be one score for each of them: sum over the last axis, as `hidden @ v` does.', score="return (hidden * v).sum(axis=1)"),
    change("mean in place of the sum", "You take the mean over the hidden numbers. The product with v is a sum: `hidden @ v`.", score="return (hidden * v).mean(axis=-1)"),
    change('an axis too many', 'Your scores have an axis of length 1 too many; expected (B, S). v is a vector: `hidden @ v`.', score=("return hidden @ v[:, None]", "return (hidden @ v)[:, None]")),
    change('scaled', 'You divided by a root of a width. That belongs to dot products of many terms (notebook 02); the additive score has none.', score=("return hidden @ v / np.sqrt(len(v))", "return hidden @ v / len(v)")),
    change('logistic function for tanh', "You used the logistic function. Bahdanau's score bends with tanh.", tanh="hidden = ops.sigmoid(both)"),
    change('ReLU for tanh', "You used ReLU, max(0, x). Bahdanau's score bends with tanh.", tanh="hidden = np.maximum(both, 0)"),
    change("side by side", "You put query and keys side by side. Here each has its own matrix, and the two products are added: `np.tanh((query @ W_q)[:, None] + keys @ W_k)`.", both="both = np.concatenate([np.broadcast_to(from_query, from_keys.shape), from_keys], axis=-1)"),
)

# --- The context vector ---------------------------------------------------------------------------------------------

CONTEXT = (
    *masks(),
    *(m for m in weighing("the letters of a string") if m.name not in ("softmax over axis 0", "softmax over axis 1", "down the columns")),
    change('softmax over the batch', 'Your softmax runs along axis 0: the strings of the batch compete with each other. The letters of one string should: the last axis.', weights=("weights = ops.softmax(scores, axis=0)", "e = np.exp(scores - scores.max(axis=0))\nweights = e / e.sum(axis=0)")),
    change('padding scored 0', "You set the padding's scores to 0. exp(0) = 1: it still gets weight. A score of −∞ gives none.", mask="scores = scores * mask"),
    change('plain mean', 'Your context is the plain mean of all keys; the weights take no part in it.', average="context = keys.mean(axis=1)"),
    change('plain sum', 'Your context adds the keys up as they are; the weights take no part in it.', average="context = keys.sum(axis=1)"),
    change('weights of all, keys of each', '`weights @ keys` reads (B, S) as one matrix and applies it to every string: (B, B, d), each string with the weights of all others. Each needs its own row: `weights[:, None] @ keys`, (B, 1, S) @ (B, S, d), and drop the 1.', average="context = weights @ keys"),
    change('np.dot', "`np.dot` combines every string's weights with every string's keys. `@` goes through the batch side by side: `weights[:, None] @ keys`.", average="context = np.dot(weights, keys)"),
    change('not lined up', '`weights * keys` lines up (B, S) with the *last* axes of (B, S, d): an error, or wrong numbers where the sizes happen to be equal. Give the weights an axis for the width: `weights[..., None] * keys`.', average=("context = (weights * keys).sum(axis=1)", "context = weights * keys")),
    change('not summed', 'You weighted the keys, but did not add them up: sum over the letters, axis 1.', average="context = weights[..., None] * keys"),
    change('summed over the width', 'You summed each key to one number. Add the S keys of a string to each other: axis 1.', average="context = (weights[..., None] * keys).sum(axis=-1)"),
    change('summed over the batch', 'You summed over the strings of the batch. Add the S keys of each string to each other: axis 1.', average="context = (weights[..., None] * keys).sum(axis=0)"),
    change('divided by S', 'You divided by the number of letters. The weights sum to 1 already: `sum`, not `mean`.', average="context = (weights[..., None] * keys).mean(axis=1)"),
    change("divided by the number of letters", "You divide the context by the number of letters. The weights sum to 1 already.", average="context = (weights[..., None] * keys).sum(axis=1) / mask.sum(axis=1, keepdims=True)"),
    change("scores averaged", "You average with the scores, not with the weights. `weights[:, None] @ keys`, and drop the 1.", average="context = (np.where(mask, scores, 0)[:, None] @ keys)[:, 0]"),
    change("padded keys set to 0", "You set the padding's keys to 0. They then add nothing, but their weights are still in the sum, and the letters' weights are too small. Hide their scores, with −∞.", mask="", average="context = (weights[..., None] * keys * mask[..., None]).sum(axis=1)"),
    change('an axis too many', 'Your context has shape (B, 1, d). Drop the axis of length 1: `(weights[:, None] @ keys)[:, 0]`.', average="context = weights[:, None] @ keys"),
    change("scores scaled", "You divide the scores by a root. These scores come as they are: no √d_k is asked for.", mask=("scores = np.where(mask, scores, -np.inf) / np.sqrt(keys.shape[-1])", "scores = np.where(mask, scores, -np.inf) / keys.shape[-1] ** 0.5")),
    *answers("context", "weights"),
    change("scores returned", "Your second result is the scores. Return the weights, what softmax makes of them: `return context, weights`.", answer="return context, scores"),
)
