"""The exercises of notebook 06."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lesson_utils.lessons.causal_mask import mistakes
from lesson_utils.lessons.causal_mask.capstone import Parameters, parameters
from lesson_utils.maths import attention as library
from lesson_utils.maths import models, ops, positions
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.mistakes.exercise import Case, Exercise

# --- The causal mask ------------------------------------------------------------------------------------------------


def _mask_cases(rng: np.random.Generator) -> Sequence[Case]:
    sizes = ((4, 4), (2, 5), (3, 7), (1, 6), (5, 6), (1, 1))
    return [Case(f"T_q = {T_q} and T_k = {T_k}", (T_q, T_k)) for T_q, T_k in sizes]


_MASK = Exercise(
    name="causal_mask",
    called="my_causal_mask",
    takes="T_q, T_k",
    task="""The causal mask for the last T_q of T_k positions.

T_q: how many queries, at least 1. T_k: how many keys, at least T_q. Returns
booleans, (T_q, T_k), True = may attend. NumPy; no `attention.causal_mask`.""",
    reference=library.causal_mask,
    steps={
        "i": "i = np.arange(T_q)[:, None]  # (T_q, 1)",
        "j": "j = np.arange(T_k)  # (T_k,)",
        "compare": "return j <= i + T_k - T_q  # (T_q, T_k)",
    },
    cases=_mask_cases,
    returns=("mask",),
    hints=(
        "Where does query i stand? With 2 queries and 5 keys, the queries stand at positions 3 and 4.",
        "Query i stands at position i + T_k − T_q, and may see every key j up to there.",
        "Let NumPy compare all pairs: `np.arange(T_q)[:, None]` is a column of i, `np.arange(T_k)` a row of j. (`np.tri` with "
        "`k=T_k - T_q` does the same.)",
    ),
    mistakes=mistakes.MASK,
    library=(library.causal_mask,),
    praise="Six shapes, from a whole sequence at once to one query with a long past, which sees everything.",
)

# --- Masked attention -----------------------------------------------------------------------------------------------


def _masked_reference(scores: Array, V: Array, mask: Mask) -> tuple[Array, Array]:
    weights = ops.softmax(np.where(mask, scores, -np.inf))
    return weights @ V, weights


def _masked_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *sizes: int, leading: tuple[int, ...] = (), empty: bool = False, **kinds: type) -> Case:
        T_q, T_k, d_v = sizes
        dtype = kinds.get("dtype", np.float64)
        mask = rng.random((*leading, T_q, T_k)) < 0.5
        mask[..., 1] |= ~mask.any(axis=-1)
        if empty:
            mask[..., T_q // 2, :] = False
        arrays: list[Array] = [rng.normal(size=(*leading, *shape)).astype(dtype) for shape in ((T_q, T_k), (T_k, d_v))]
        return Case(label, (*arrays, mask))

    batch = case("a batch of 2 with a padding mask, (2, 1, T_k)", 3, 5, 4, leading=(2,))
    scores, V, _ = batch.arguments
    loud, loud_V, loud_mask = case("", 4, 5, 2, empty=True).arguments
    one = np.array([[True], [False], [True]])
    return [
        case("3 queries and 5 keys", 3, 5, 4),
        case("a query that may attend to nothing", 4, 6, 3, empty=True),
        Case(batch.label, (scores, V, library.padding_mask(np.array([3, 0]), 5))),
        case("leading axes (2, 3)", 3, 4, 5, leading=(2, 3), empty=True),
        Case("scores of ±800, hidden ones far above", (800 * loud + 3000 * ~loud_mask, loud_V, loud_mask)),
        case("float32 input", 5, 3, 2, empty=True, dtype=np.float32),
        Case("scores near −3 · 10⁹", (loud - 3e9, loud_V, loud_mask)),
        Case("one mask for all queries, (T_k,)", (*case("", 3, 6, 4).arguments[:2], np.arange(6) < 4)),
        Case("a single key, hidden from one of 3 queries", (rng.normal(size=(3, 1)), rng.normal(size=(1, 2)), one)),
        Case("a mask that hides all", (*case("", 2, 4, 3).arguments[:2], np.zeros((2, 4), bool))),
    ]


_ATTENTION = Exercise(
    name="masked_attention",
    called="my_masked_attention",
    takes="scores, V, mask",
    task="""Weights and output from scores that are scaled already.

scores: (..., T_q, T_k), of any size. V: (..., T_k, d_v). mask: booleans that broadcast to
the scores, True = may attend; a query that may attend to nothing gets zeros.
Returns `output, weights`, (..., T_q, d_v) and (..., T_q, T_k). NumPy, and `ops.softmax`.
The arguments stay as they were.""",
    reference=_masked_reference,
    steps={
        "mask": "scores = np.where(mask, scores, -np.inf)",
        "weights": "weights = ops.softmax(scores)  # a row of −∞ becomes zeros; a softmax of your own must mind 0/0",
        "average": "output = weights @ V  # (..., T_q, d_v)",
        "answer": "return output, weights",
    },
    cases=_masked_cases,
    returns=("output", "weights"),
    hints=(
        "First hide, then softmax, then average. What does softmax divide by, in a row where all is hidden?",
        "`np.where(mask, scores, -np.inf)` hides, and also works for a mask that broadcasts. `ops.softmax` gives zeros for a row "
        "of nothing but −∞.",
        "With a softmax of your own: exponentiate, multiply by `mask`, and divide by the sum, or by 1 where the sum is 0.",
    ),
    mistakes=mistakes.ATTENTION,
    library=(library.scaled_dot_product_attention,),
    praise="Ten cases: rows that see nothing, masks that broadcast, scores of 800 and −3 · 10⁹, float32. No NaN, and no mean of what is hidden.",
)

# --- Sampling -------------------------------------------------------------------------------------------------------


def _sampling_cases(rng: np.random.Generator) -> Sequence[Case]:
    settings = (
        (7, 0.5, 2),
        (9, 2.0, 3),
        (6, 1.0, 2),
        (5, 0.7, 5),
        (8, 1.5, 1),
        (30, 0.8, 10),
        (11, 0.001, 4),
        (1, 0.7, 1),
    )
    cases = [Case(f"{V} logits, temperature {t}, top_k {k}", (rng.normal(size=V) + 1, t, k)) for V, t, k in settings]
    close = 1 + 0.002 * rng.normal(size=6)
    cases.append(Case("6 logits that are nearly equal, temperature 0.001, top_k 4", (close, 0.001, 4)))
    return [*cases, Case("10 logits near −2000, temperature 1.2, top_k 3", (rng.normal(size=10) - 2000, 1.2, 3))]


_SAMPLING = Exercise(
    name="sampling_probabilities",
    called="my_probabilities",
    takes="logits, temperature, top_k",
    task="""The probabilities from which the next symbol is drawn.

logits: (V,), no two of them equal. temperature: above 0, also 0.001. top_k: from 1 to V.
Returns (V,): softmax of the `top_k` largest logits at this temperature, 0 for
all others. NumPy, and `ops.softmax`. logits stay as they were.""",
    steps={
        "limit": "limit = np.sort(logits)[-top_k]  # the top_k-th largest",
        "cut": "kept = np.where(logits >= limit, logits, -np.inf)",
        "heat": "kept = kept / temperature",
        "answer": "return ops.softmax(kept)",
    },
    cases=_sampling_cases,
    returns=("probabilities",),
    hints=(
        "Two changes to the logits, then softmax. Which logit is the smallest that may stay?",
        "`np.sort(logits)[-top_k]` is the `top_k`-th largest. All below it become −∞, so that softmax gives them 0.",
        "`ops.softmax(kept / temperature)`: dividing −∞ by the temperature leaves it at −∞.",
    ),
    mistakes=mistakes.SAMPLING,
    praise="Ten settings, from top_k = 1 to no cut at all. `rng.choice(V, p=probabilities)` draws the symbol.",
)

# --- One decoding step ----------------------------------------------------------------------------------------------


def _decode_reference(x: Array, W_Q: Array, W_K: Array, W_V: Array, K: Array, V: Array) -> tuple[Array, Array, Array]:
    K, V = np.concatenate([K, x @ W_K]), np.concatenate([V, x @ W_V])
    return library.scaled_dot_product_attention(x @ W_Q, K, V)[0], K, V


def _decode_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, t: int, d_model: int, d_k: int, d_v: int, dtype: type = np.float64) -> Case:
        shapes = ((1, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v), (t, d_k), (t, d_v))
        return Case(label, tuple((rng.normal(size=shape) / math.sqrt(shape[0])).astype(dtype) for shape in shapes))

    def first(case: Case) -> Case:
        x, W_Q, W_K, W_V, K, V = case.arguments
        return Case("an empty cache, the first step", (x, W_Q, W_K, W_V, K[:0], V[:0]))

    return [
        case("4 past positions", 4, 7, 6, 3),
        case("2 past positions", 2, 6, 4, 5),
        case("widths that are all 4, and 6 past positions", 6, 4, 4, 4),
        first(case("", 1, 5, 4, 6)),
        case("float32 input", 6, 8, 2, 3, np.float32),
        case("keys and values of width 1", 3, 5, 1, 1),
    ]


_DECODING = Exercise(
    name="decode_step",
    called="my_decode_step",
    takes="x, W_Q, W_K, W_V, K, V",
    task="""One head, one new position, with a cache.

x: (1, d_model). W_Q, W_K: (d_model, d_k). W_V: (d_model, d_v). The caches K and V
hold t rows, (t, d_k) and (t, d_v); t may be 0. Returns `output, K, V`: (1, d_v),
and the caches with one row more. NumPy, and `ops.softmax`.
The arguments stay as they were.""",
    reference=_decode_reference,
    steps={
        "q": "q = x @ W_Q  # (1, d_k)",
        "k": "k = x @ W_K",
        "v": "v = x @ W_V",
        "grow_K": "K = np.concatenate([K, k])  # (t + 1, d_k)",
        "grow_V": "V = np.concatenate([V, v])  # (t + 1, d_v)",
        "score": "scores = q @ K.T  # (1, t + 1)",
        "scale": "scores = scores / math.sqrt(K.shape[-1])",
        "mask": "# no mask: all keys are past or present",
        "weights": "weights = ops.softmax(scores)",
        "average": "output = weights @ V  # (1, d_v)",
        "answer": "return output, K, V",
    },
    cases=_decode_cases,
    returns=("output", "K", "V"),
    hints=(
        "Only the new position is computed: one query, one key, one value. What does the query need besides its own key?",
        "Append first: `K = np.concatenate([K, x @ W_K])`, shape (t + 1, d_k); V likewise. Then the query meets all keys.",
        "No mask is needed: nothing in the cache lies in the future. `ops.softmax(x @ W_Q @ K.T / math.sqrt(K.shape[-1])) @ V`.",
    ),
    mistakes=mistakes.DECODING,
    praise="Six cases, the empty cache among them. With this step, text of length T takes T rows of work, not T² / 2.",
)

# --- A whole GPT ----------------------------------------------------------------------------------------------------


def my_feed_forward(x: Array, W_1: Array, b_1: Array, W_2: Array, b_2: Array) -> Array:
    return ops.linear(ops.relu(ops.linear(x, W_1, b_1)), W_2, b_2)


# What the learner has written in other notebooks, by the names it has there.
PARTS: dict[str, Any] = {
    "my_table": positions.sinusoidal_encoding,
    "my_split_heads": library.split_heads,
    "my_merge_heads": library.merge_heads,
    "my_attention": library.scaled_dot_product_attention,
    "my_layer_norm": ops.layer_norm,
    "my_feed_forward": my_feed_forward,
    "my_causal_mask": library.causal_mask,
}


def _gpt_reference(
    ids: Array, table: Array, layers: Sequence[Parameters], gamma: Array, beta: Array, num_heads: int
) -> Array:
    x = table[ids] * math.sqrt(table.shape[1]) + positions.sinusoidal_encoding(ids.shape[1], table.shape[1])
    for p in layers:
        y = ops.layer_norm(x, p.gamma_1, p.beta_1)
        mask = library.causal_mask(ids.shape[1])
        x = x + library.multi_head_attention(y, y, p.W_Q, p.W_K, p.W_V, p.W_O, num_heads, mask)[0]
        x = x + my_feed_forward(ops.layer_norm(x, p.gamma_2, p.beta_2), p.W_1, p.b_1, p.W_2, p.b_2)
    logits: Array = ops.layer_norm(x, gamma, beta) @ table.T
    return logits


def _gpt_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, T: int, **sizes: int) -> Case:
        config = models.GPTConfig(**sizes, dtype=np.float64)  # type: ignore[arg-type]
        model = models.GPT(config, rng)
        for name, param in model.params().items():
            if name.endswith(("gamma", "beta", ".b")):  # as training leaves them, not as it finds them
                param.value += 0.3 * rng.normal(size=param.value.shape)
        p = parameters(model)
        return Case(label, (rng.integers(config.vocab, size=(B, T)), *p.values()))

    return [
        case("one layer, two heads, 5 symbols", 1, 5, vocab=7, d_model=6, num_heads=2, num_layers=1, d_ff=9),
        case("three layers, three heads, a batch of 2", 2, 4, vocab=9, d_model=12, num_heads=3, num_layers=3, d_ff=10),
        case("two layers, one head, 6 symbols", 1, 6, vocab=5, d_model=4, num_heads=1, num_layers=2, d_ff=16),
        case("a single symbol", 2, 1, vocab=6, d_model=8, num_heads=4, num_layers=2, d_ff=8),
        case("as many sequences as symbols and heads", 3, 3, vocab=5, d_model=6, num_heads=3, num_layers=1, d_ff=6),
    ]


_GPT = Exercise(
    name="gpt",
    called="my_gpt",
    takes="ids, table, layers, gamma, beta, num_heads",
    task="""A whole GPT: from symbols to the logits of the next ones.

ids: (B, T). table: (V, d_model), embeddings and output layer in one; embeddings are
multiplied by √d_model. layers: for each layer a `p` with p.gamma_1, p.beta_1, p.W_Q,
p.W_K, p.W_V, p.W_O, p.gamma_2, p.beta_2, p.W_1, p.b_1, p.W_2, p.b_2. gamma, beta: of
the last norm, (d_model,). num_heads: h; all ε are 1e-5. Returns logits, (B, T, V).
All functions `my_…` from above. The arguments stay as they were.""",
    reference=_gpt_reference,
    steps={
        "sizes": "T, d_model = ids.shape[1], table.shape[1]",
        "embed": "x = table[ids] * math.sqrt(d_model)  # (B, T, d_model)",
        "place": "x = x + my_table(T, d_model)",
        "mask": "mask = my_causal_mask(T, T)",
        "layers": mistakes.gpt_layers(),
        "norm": "x = my_layer_norm(x, gamma, beta, 1e-5)",
        "answer": "return x @ table.T  # (B, T, V)",
    },
    cases=_gpt_cases,
    returns=("logits",),
    hints=(
        "Embed, add positions, make one mask; then for each layer two halves, x = x + f(norm(x)); then a last norm and the "
        "product with the table.",
        "Attention of a layer: y = `my_layer_norm(x, p.gamma_1, p.beta_1, 1e-5)`; Q = `my_split_heads(y @ p.W_Q, num_heads)`, K "
        "and V likewise; heads, _ = `my_attention(Q, K, V, mask)`; `x = x + my_merge_heads(heads) @ p.W_O`.",
        "Its other half: y = `my_layer_norm(x, p.gamma_2, p.beta_2, 1e-5)`, of the new x; `x = x + my_feed_forward(y, p.W_1, p.b_1, "
        "p.W_2, p.b_2)`. Before the first layer: `table[ids] * math.sqrt(d_model) + my_table(T, d_model)`.",
    ),
    mistakes=mistakes.GPT,
    praise="Five models, of one to three layers and one to four heads: yours gives their logits. The next cell lets it read and write.",
    scope=PARTS,
)

EXERCISES = (_MASK, _ATTENTION, _SAMPLING, _DECODING, _GPT)
