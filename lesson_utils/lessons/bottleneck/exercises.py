"""The exercises of notebook 01, and the ways to get them wrong, as learners type them."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.common_mistakes import FINITE, OWN_SOFTMAX, answers, masks, weighing
from lesson_utils.maths import attention, scores
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

# --- The additive score -------------------------------------------------------------------------------------------

ADDITIVE = (
    change('no tanh', "There is no tanh around the sum of the two parts. In a sum without it, the query's part is the same for every key: softmax cancels that part, and the weights would ignore the query.", tanh="hidden = both"),
    change('tanh after v', 'You apply tanh last, around the product with v. It belongs around the sum, before v: `np.tanh(…) @ v`.', tanh="hidden = both", score="return np.tanh(hidden @ v)"),
    change("tanh twice", "You apply tanh twice. Once is enough, around the sum, before v: `np.tanh(…) @ v`.", score="return np.tanh(hidden @ v)"),
    change('tanh on each part', "You bend the two parts one by one. In their plain sum, the query's part would be the same for every key, and softmax would cancel it. Add the two parts first, then bend the sum once: `np.tanh(… + …)`.", both="both = np.tanh(from_query) + np.tanh(from_keys)", tanh=("hidden = both", "hidden = np.tanh(both)")),
    change("tanh on one part", "You bend one of the two parts by itself. Add the two parts first, then bend the sum once: `np.tanh(… + …)`.", both=("both = np.tanh(from_query) + from_keys", "both = from_query + np.tanh(from_keys)"), tanh=("hidden = both", "hidden = np.tanh(both)")),
    change('query not lined up', "In your sum, the axis B of the query's part meets the axis S of the keys' part, because NumPy lines up from the right: an error, or, where B = S, wrong numbers without one. Give the query an axis for the keys: `(query @ W_q)[:, None]`, shape (B, 1, d_a).", query=("from_query = query @ W_q", "from_query = (query @ W_q)[None]"), both=("both = from_query + from_keys", "both = from_keys + from_query")),
    change('axis in the wrong place', "You give the query's part its new axis at the end, (B, d_a, 1). The axis of length S is the one in the middle: `(query @ W_q)[:, None]`, shape (B, 1, d_a).", query="from_query = (query @ W_q)[..., None]", both=("both = from_query + from_keys", "both = from_keys + from_query")),
    change('matrices swapped', 'You multiplied the query by W_k. The query has W_q, the keys have W_k. Only where both have the same width is there no error.', query="from_query = (query @ W_k)[:, None]", keys=("from_keys = keys @ W_q", "from_keys = keys @ W_k")),
    change("query of the first string", "Every string uses the query of the first string. Each has a query of its own.", both="both = (query[0] @ W_q) + keys @ W_k"),
    change("keys of the first string", "Every query meets the keys of the first string. Each string has keys of its own.", keys="from_keys = keys[0] @ W_k"),
    change("one matrix for both", "You use one matrix for both. The query has W_q, the keys have W_k.", keys="from_keys = keys @ W_q"),
    change('weights returned', 'You return weights. The scores are asked for; softmax comes later.', score="return ops.softmax(hidden @ v)"),
    change('multiplied', 'You multiply the two parts. The score is called additive because they are added before the tanh.', both="both = from_query * from_keys"),
    change("subtracted", "You subtract the two parts. The score is called additive because they are added before the tanh.", both=("both = from_query - from_keys", "both = from_keys - from_query")),
    change('a dot product', "This is the dot product of query and key, after a matrix each: nearly Luong's general score. The additive score adds them, bends the sum with tanh, and reads a number off it with v.", both="both = from_query * from_keys", tanh="hidden = both", score="return hidden.sum(axis=-1)"),
    change("a product of matrices", "You multiply the query's part by the keys' part, as a dot product does. The additive score adds the two parts: `(query @ W_q)[:, None] + keys @ W_k`.", query="from_query = query @ W_q", both="both = from_query @ from_keys.T"),
    change("the query left out", "Your score does not depend on the query. Its part, `(query @ W_q)[:, None]`, is added to that of the keys before the tanh.", both="both = from_keys"),
    change('v forgotten', 'You add up or average the hidden numbers as they are. v says how much each of them counts: `np.tanh(…) @ v`.', score=("return hidden.sum(axis=-1)", "return hidden.mean(axis=-1)")),
    change('v in front', 'In your product v meets the keys, as in `v @ np.tanh(…)`, and the sum would run over them. The hidden numbers are on the last axis: `np.tanh(…) @ v`.', score=("return v @ hidden", "return np.dot(v, hidden)")),
    change('not summed', 'You multiplied by v, but did not add up: a score is one number a pair. `np.tanh(…) @ v` does both.', score="return hidden * v"),
    change("nothing read off", "You return the hidden numbers, (B, S, d_a). v reads one number off each row: `np.tanh(…) @ v`.", score="return hidden"),
    change('summed over the keys', 'You summed over the keys. There must be one score for each of them: sum over the last axis, as `np.tanh(…) @ v` does.', score="return (hidden * v).sum(axis=1)"),
    change("mean in place of the sum", "You take the mean over the hidden numbers. The product with v is a sum: `np.tanh(…) @ v`.", score="return (hidden * v).mean(axis=-1)"),
    change('an axis too many', 'Your scores have an axis of length 1 too many; expected (B, S), the shape of `np.tanh(…) @ v`, where v is a vector.', score=("return hidden @ v[:, None]", "return (hidden @ v)[:, None]")),
    change('scaled', 'You divided by a width, or by its root. That belongs to dot-product scores (notebook 02); the additive score is not divided.', score=("return hidden @ v / np.sqrt(len(v))", "return hidden @ v / len(v)")),
    change('logistic function for tanh', "You used the logistic function. Bahdanau's score bends with tanh.", tanh="hidden = ops.sigmoid(both)"),
    change('ReLU for tanh', "You used ReLU, max(0, x). Bahdanau's score bends with tanh.", tanh="hidden = np.maximum(both, 0)"),
    change("side by side", "You put query and keys side by side. Here each has its own matrix, and the two products are added: `np.tanh((query @ W_q)[:, None] + keys @ W_k)`.", both="both = np.concatenate([np.broadcast_to(from_query, from_keys.shape), from_keys], axis=-1)"),
)

# --- The context vector ---------------------------------------------------------------------------------------------

CONTEXT = (
    change("letters hidden by a product", "Your product `mask * -np.inf` is NaN for the padding, where it is 0 · ∞, and −∞ for the letters, which must stay. Write `np.where(mask, scores, -np.inf)`: it keeps the letters and hides the padding.", mask="scores = scores + mask * -np.inf"),
    *masks(),
    *(m for m in weighing("the letters of a string") if m.name not in ("softmax over axis 0", "softmax over axis 1", "down the columns")),
    change('softmax over the batch', 'Your softmax runs along axis 0: the strings of the batch compete with each other. The letters of one string should: the last axis.', weights=("weights = ops.softmax(scores, axis=0)", "e = np.exp(scores - scores.max(axis=0))\nweights = e / e.sum(axis=0)")),
    change('padding scored 0', "You set the padding's scores to 0. exp(0) = 1: it still gets weight. A score of −∞ gives none.", mask="scores = scores * mask"),
    change("a score of 0 hidden", "You hide every score that is 0. A letter's score may be 0, too: it is `mask` that says where the padding is. Write `np.where(mask, scores, -np.inf)`.", mask="scores = scores * mask\nscores = np.where(scores == 0, -np.inf, scores)"),
    change("keys of the first string", "Every string gets a context from the keys of the first string. Each string has keys of its own.", average="context = weights @ keys[0]"),
    change('plain mean', 'Your context is the plain mean of all keys; the weights take no part in it.', average="context = keys.mean(axis=1)"),
    change('plain sum', 'Your context adds the keys up as they are; the weights take no part in it.', average="context = keys.sum(axis=1)"),
    change('weights of all, keys of each', 'Your weights, (B, S), are applied as one matrix to every string, as in `weights @ keys`: (B, B, d), each string with the weights of all others. Each needs its own row: `weights[:, None] @ keys`, (B, 1, S) @ (B, S, d), and drop the 1.', average="context = weights @ keys"),
    change("one mean of keys for all strings", "You mix the strings of the batch: one mean, or one sum, of all their keys stands for the keys of each. The weights of a string belong to its own keys: `(weights[:, None] @ keys)[:, 0]`. In `einsum`, the same letter stands for the strings in both.", average=("context = weights @ keys.mean(0)", "context = weights @ keys.sum(0)")),
    change('np.dot', "You combine every string's weights with every string's keys, as `np.dot` does. `@` goes through the batch side by side: `(weights[:, None] @ keys)[:, 0]`.", average="context = np.dot(weights, keys)"),
    change('not lined up', '`weights * keys` lines up (B, S) with the *last* axes of (B, S, d): an error, or wrong numbers where the sizes happen to be equal. Give the weights an axis for the width: `(weights[..., None] * keys).sum(axis=1)`.', average=("context = (weights * keys).sum(axis=1)", "context = weights * keys")),
    change('not summed', 'You weighted the keys, but did not add them up: sum over the letters, axis 1.', average="context = weights[..., None] * keys"),
    change('summed over the width', 'You summed each key to one number. Add the S keys of a string to each other: axis 1.', average="context = (weights[..., None] * keys).sum(axis=-1)"),
    change('summed over the batch', 'You summed over the strings of the batch. Add the S keys of each string to each other: axis 1.', average="context = (weights[..., None] * keys).sum(axis=0)"),
    change('divided by S', 'You divided by S, as a mean does. Weights from softmax sum to 1 already: add up, and divide by nothing.', average="context = (weights[..., None] * keys).mean(axis=1)"),
    change("divided by the number of letters", "You divide the context by the number of letters. Weights from softmax sum to 1 already.", average="context = (weights[..., None] * keys).sum(axis=1) / mask.sum(axis=1, keepdims=True)"),
    change("scores averaged", "You average with the scores, not with the weights. `weights[:, None] @ keys`, and drop the 1.", average="context = (np.where(mask, scores, 0)[:, None] @ keys)[:, 0]"),
    change("padded keys set to 0", "The padding adds nothing to your context, but its scores still count in the sum below the fraction bar. Hide its scores before softmax, with −∞.", mask="", average="context = (weights[..., None] * keys * mask[..., None]).sum(axis=1)"),
    change('an axis too many', 'Your context has shape (B, 1, d). Drop the axis of length 1: `(weights[:, None] @ keys)[:, 0]`.', average="context = weights[:, None] @ keys"),
    change("scores scaled", "You divide the scores by a root. These scores come as they are: no √d_k is asked for.", mask=("scores = np.where(mask, scores, -np.inf) / np.sqrt(keys.shape[-1])", "scores = np.where(mask, scores, -np.inf) / keys.shape[-1] ** 0.5")),
    *answers("context", "weights"),
    change("scores returned", "Your second result is the scores. Return the weights in their place, which are what softmax makes of the scores.", answer="return context, scores"),
    change("only the last string", "Only the last string's results are left. If a loop overwrites them, collect them in lists or arrays, and return those of all strings.", "for s, k, m in zip(scores, keys, mask):\n    weights = ops.softmax(np.where(m, s, -np.inf))\n    context = weights @ k\nreturn context, weights"),
)

# fmt: on

# --- The additive score ---------------------------------------------------------------------------------------------


def _additive_reference(query: Array, keys: Array, W_q: Array, W_k: Array, v: Array) -> Array:
    return attention.additive_score(query[:, None], keys, W_q, W_k, v)[:, 0]


def _additive_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, S: int, d_q: int, d_k: int, d_a: int, dtype: type = np.float64) -> Case:
        shapes = ((B, d_q), (B, S, d_k), (d_q, d_a), (d_k, d_a), (d_a,))
        return Case(label, tuple(rng.normal(size=shape).astype(dtype) for shape in shapes))

    return [
        case("2 queries with 5 keys each", 2, 5, 3, 4, 6),
        case("as many keys as queries", 4, 4, 3, 5, 2),
        case("queries as wide as keys", 2, 3, 5, 5, 4),
        case("as many keys as hidden numbers", 3, 6, 2, 4, 6),
        case("a single query", 1, 4, 2, 5, 3),
        case("a single key", 3, 1, 4, 2, 5),
        case("float32 input", 3, 4, 6, 5, 2, np.float32),
        case("widths of 1", 2, 3, 1, 1, 1),
    ]


_ADDITIVE = Exercise(
    name="additive_score",
    takes="query, keys, W_q, W_k, v",
    task="""v · tanh(q W_q + h W_k) for each string's query q and each of its keys h, before softmax; no loop.

query: (B, d_q). keys: (B, S, d_k). W_q: (d_q, d_a). W_k: (d_k, d_a). v: (d_a,).
Returns the scores, (B, S). NumPy only. The arguments stay as they were.""",
    reference=_additive_reference,
    steps={
        "query": "from_query = (query @ W_q)[:, None]  # (B, 1, d_a): the same for every key",
        "keys": "from_keys = keys @ W_k  # (B, S, d_a)",
        "both": "both = from_query + from_keys",
        "tanh": "hidden = np.tanh(both)  # (B, S, d_a)",
        "score": "return hidden @ v  # (B, S)",
    },
    cases=_additive_cases,
    returns=("scores",),
    hints=(
        "Go from the inside out, and write down each shape. What shapes have `query @ W_q` and `keys @ W_k`?",
        "(B, d_a) and (B, S, d_a): the query's part needs an axis in the middle, `(query @ W_q)[:, None]`.",
        "`np.tanh` of the sum is (B, S, d_a). `@ v` adds up over the last axis.",
    ),
    mistakes=ADDITIVE,
    library=(attention.additive_score, scores.score_forward),
    praise="Eight cases, with sizes that happen to be equal among them. Bahdanau's score, for a whole batch at once.",
    in_pytorch="""# PyTorch has no layer for this score: in a model, W_q and W_k are nn.Linear(…, bias=False).
scores = torch.tanh((query @ W_q)[:, None] + keys @ W_k) @ v""",
)

# --- The context vector ---------------------------------------------------------------------------------------------


def _context_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, S: int, d: int, size: float = 1.0, dtype: type = np.float64) -> Case:
        scores, keys = size * rng.normal(size=(B, S)), rng.normal(size=(B, S, d))
        lengths = rng.integers(1, S + 1, size=B)
        lengths[rng.integers(B)] = max(S - 1, 1)  # at least one string is padded
        mask = np.arange(S) < lengths[:, None]  # (B, S)
        return Case(label, (scores.astype(dtype), keys.astype(dtype), mask))

    scores, keys, _ = case("", 3, 4, 5).arguments
    scores[0, 1] = 0  # of a letter
    loud, loud_keys, loud_mask = case("", 3, 5, 2).arguments
    loud[0] -= 1000  # far below the other rows, too
    loud[~loud_mask] += 3000
    far, far_keys, far_mask = case("", 4, 6, 3).arguments  # below any number that might be put in the place of −∞
    return [
        case("2 strings of up to 5 letters", 2, 5, 3),
        Case("3 strings without padding", (scores, keys, np.ones((3, 4), bool))),
        case("as many strings as letters", 4, 4, 6),
        case("keys as wide as strings are long", 3, 5, 5),
        case("all three sizes equal", 4, 4, 4),
        case("a single string", 1, 6, 2),
        case("a single letter", 3, 1, 4),
        case("scores in the hundreds", 3, 6, 2, size=300.0),
        Case("padding that scores far above the letters", (loud, loud_keys, loud_mask)),
        Case("letters that score near −300 000", (np.where(far_mask, far - 3e5, far), far_keys, far_mask)),
        case("float32 input", 2, 6, 4, dtype=np.float32),
        Case("padding in front of the letters", (*case("", 3, 5, 2).arguments[:2], np.arange(5) >= [[2], [0], [4]])),
    ]


_CONTEXT = Exercise(
    name="context_vector",
    takes="scores, keys, mask",
    task="""One look back, for a batch of padded strings.

scores: (B, S), of one step of the decoder. keys: (B, S, d), the encoder's states. mask: (B, S), True where
there is a letter; every string has one. Returns context, (B, d), and weights, (B, S).
NumPy, and `ops.softmax`. The arguments stay as they were.""",
    steps={
        "mask": "scores = np.where(mask, scores, -np.inf)",
        "weights": "weights = ops.softmax(scores)  # (B, S), each row sums to 1",
        "average": "context = (weights[:, None] @ keys)[:, 0]  # (B, 1, S) @ (B, S, d) → (B, 1, d) → (B, d)",
        "answer": "return context, weights",
    },
    spellings={"weights": (OWN_SOFTMAX,), "mask": (FINITE,)},
    cases=_context_cases,
    returns=("context", "weights"),
    hints=(
        "Hide the padding, make weights of the scores, and average the keys with them. Which axis must sum to 1?",
        "`np.where(mask, scores, -np.inf)`, then `ops.softmax`: it works on the last axis, the letters.",
        "Line up (B, S) with (B, S, d): `(weights[..., None] * keys).sum(axis=1)`.",
    ),
    mistakes=CONTEXT,
    praise="Twelve cases: padding, equal sizes that hide mistakes, scores in the hundreds, float32. This is a look back.",
    in_pytorch="""# True means "padding" in the key_padding_mask of nn.MultiheadAttention: pass it ~mask.
weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
context = (weights[:, None] @ keys)[:, 0]""",
)

EXERCISES = (_ADDITIVE, _CONTEXT)
