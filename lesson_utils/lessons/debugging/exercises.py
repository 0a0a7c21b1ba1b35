"""The exercises of notebook 10: an instrument, where a port begins to differ, and a mask to mend.

What is to be mended is an exercise of notebook 06, with one of its mistakes in the stub."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.debugging import broken
from lesson_utils.lessons.debugging.broken import VOCAB, Toy
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

_STEP = "for t in range(prompt, len(ids)):\n    parts.append(model.forward({})[0][0])"

PARITY = (
    change("no cache in the steps", "After the prompt, `model.forward` gets no `past` or an empty one, so each symbol stands alone. Hand over the same `past` in each step.", loop=_STEP.format("ids[None, t : t + 1]")),
    change("a new cache in each step", "You make a new past in each step, so nothing is remembered. Make it once, before the prompt.", loop="for t in range(prompt, len(ids)):\n    past = model.new_past()\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])"),
    change("the prompt without the cache", "The prompt is not in the cache of the steps. Give it the same `past`: `model.forward(ids[None, :prompt], past)`.", prompt="parts = [model.forward(ids[None, :prompt])[0][0]]"),
    change("the whole run with the cache", "Your whole run fills the same `past`, so the parts come after it. The whole run has no cache.", whole="past = model.new_past()\nwhole = model.forward(ids[None], past)[0][0]", past=""),
    change("no prompt", "You feed the symbols one by one from the start. Then a cache that counts calls instead of tokens is never found, because each call brings one token. Feed the whole prompt in one call.", prompt="parts = []", loop="for t in range(len(ids)):\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])"),
    change("all again in each step", "You feed all symbols so far in each step, and the cache has them already. After the prompt, feed the new symbol only.", loop="for t in range(prompt, len(ids)):\n    parts.append(model.forward(ids[None, : t + 1], past)[0][0][-1:])"),
    change("the symbol before", "You feed the symbol before place t. At place t, feed symbol t, as an array of shape (1, 1).", loop=_STEP.format("ids[None, t - 1 : t], past")),
    change("the rest at once", "You feed all that is left at once. The task feeds it one by one, as writing does.", loop="if prompt < len(ids):\n    parts.append(model.forward(ids[None, prompt:], past)[0][0])"),
    change("with its sign", "Your differences keep their sign. First take `np.abs` of every difference, then the maximum.", answer=("return (np.concatenate(parts) - whole).max(axis=-1)", "return (whole - np.concatenate(parts)).max(axis=-1)")),
    change("largest logits compared", "You compare the largest logit of one run with the largest of the other. These may be different symbols. First subtract the logits, then take `np.abs` of every difference, then the maximum.", answer="return np.abs(np.concatenate(parts).max(axis=-1) - whole.max(axis=-1))"),
    change("over the symbols", "`axis=0` takes the maximum over the T outputs, and leaves V numbers. The task wants one for each output: `axis=-1`.", answer="return np.abs(np.concatenate(parts) - whole).max(axis=0)"),
    change("one number", "You return one number. One for each output is asked for, because the first place that differs is a clue: `axis=-1`.", answer="return np.abs(np.concatenate(parts) - whole).max()"),
    change("place", "`np.argmax` gives the place of the largest difference. The task asks for the difference itself: `.max(axis=-1)`.", answer="return np.argmax(np.abs(np.concatenate(parts) - whole), axis=-1)"),
    change("all differences together", "You put the differences of all symbols together: their sum, or the root of the sum of their squares. The task asks for the largest one.", answer=("return np.abs(np.concatenate(parts) - whole).sum(axis=-1)", "return np.sqrt(((np.concatenate(parts) - whole) ** 2).sum(axis=-1))")),
    change("mean", "You take the mean of the differences. The task asks for the largest.", answer="return np.abs(np.concatenate(parts) - whole).mean(axis=-1)"),
    change("behind the prompt only", "You return only the outputs after the prompt. The prompt's own outputs are asked for, too: a wrong mask changes those.", answer="return np.abs(np.concatenate([np.zeros((0, whole.shape[1])), *parts[1:]]) - whole[prompt:]).max(axis=-1)"),
)

DIFFERENCE = (
    change("not by size", "You compare each difference with 1e-5 itself. Rounding grows with the numbers: compare with 1e-5 times the largest number of the original's part.", limit="limit = 1e-5"),
    change("one size for all", "You compare with the largest number of all parts together. Each part has its own: a bug in a part of small numbers would be taken for rounding.", limit="limit = 1e-5 * max(np.abs(x).max() for x in original)"),
    change("one by one", "You compare each difference with its own number, as `np.allclose` does. Where that number is near 0, rounding looks large. Compare the part's largest difference with the part's largest number.", differs=("differs = np.array([(np.abs(y - x) > 1e-5 * np.abs(x)).any() for x, y in zip(original, port)])", "differs = np.array([not np.allclose(y, x) for x, y in zip(original, port)])", "differs = np.array([not np.allclose(y, x, rtol=1e-5, atol=0) for x, y in zip(original, port)])")),
    change("allclose adds its own", "`np.allclose` adds `rtol` (1e-5 if you say nothing) times each number to your limit, so twice the difference may pass. Set `rtol=0`.", differs="differs = np.array([not np.allclose(y, x, atol=1e-5 * np.abs(x).max()) for x, y in zip(original, port)])"),
    change("exactly equal", "You ask for equal numbers. Rounding alone makes them differ: allow 1e-5 of the part's largest number.", limit="limit = 0"),
    change("all numbers together", "You compare a sum or a root of squares. A bug in one number would be thinned out: take the largest difference, and the largest number.", off="off = np.array([np.linalg.norm(y - x) for x, y in zip(original, port)])", limit="limit = 1e-5 * np.array([np.linalg.norm(x) for x in original])"),
    change("the mean size", "You compare with the mean of the numbers. The limit is 1e-5 of the largest one.", limit="limit = 1e-5 * np.array([np.abs(x).mean() for x in original])"),
    change("with its sign", "Your differences keep their sign, so a port that is too small passes. First take `np.abs` of every difference, then the maximum.", off=("off = np.array([(y - x).max() for x, y in zip(original, port)])", "off = np.array([(x - y).max() for x, y in zip(original, port)])")),
    change("largest numbers compared", "You compare the largest number of one with the largest of the other. First subtract, then take `np.abs`, then the maximum.", off="off = np.array([np.abs(np.abs(y).max() - np.abs(x).max()) for x, y in zip(original, port)])"),
    change("a limit that nothing passes", "No difference is above your limit. It is 1e-5, a hundred-thousandth, of the largest number.", limit="limit = 1e5 * np.array([np.abs(x).max() for x in original])"),
    change("size with its sign", "The largest number of a part is taken with its sign. Where all its large numbers are negative, the limit becomes too small, or negative: `np.abs(…).max()`.", limit="limit = 1e-5 * np.array([x.max() for x in original])"),
    change("mean", "You take the mean of the differences. A bug in one column would be thinned out: take the largest.", off="off = np.array([np.abs(y - x).mean() for x, y in zip(original, port)])"),
    change("the first that agrees", "You stop at the first part that agrees. Stop at the first that differs: its difference is above the limit.", differs="differs = off <= limit"),
    change("all that agree", "You count all parts that agree, also those behind the first that differs. Stop at the first.", answer="return int((~differs).sum())"),
    change("0 where nothing differs", "Where nothing differs, you return 0. All parts agree there, so the answer is their number. (`argmax` of booleans without a True is 0.)", answer="return int(differs.argmax())"),
    change("the last", "You return the last part that differs. Everything behind the bug differs: look for the first.", answer="return int(np.flatnonzero(differs)[-1]) if differs.any() else len(original)"),
    change("another number where nothing differs", "Where nothing differs, all n parts agree: return `len(original)` there.", answer=("return int(differs.argmax()) if differs.any() else -1", "return int(differs.argmax()) if differs.any() else len(original) - 1")),
    change("the last that agrees", "You go on behind the first difference, and return the last part that agrees. Stop at the first that differs.", answer="return int(np.flatnonzero(~differs)[-1]) + 1 if not differs.all() else 0"),
    change("how many differ", "You count the parts that differ. Count the parts before the first of them.", answer="return int(differs.sum())"),
    change("the largest difference", "You return the place of the largest difference. A small bug grows on its way up: look for the first difference above rounding.", answer="return int(off.argmax()) if differs.any() else len(original)"),
    change("counted from 1", "Your number is one too large: if the first part differs already, 0 parts agree.", answer="return int(differs.argmax()) + 1 if differs.any() else len(original)"),
    change("the last part only", "You look at the logits alone. They say that something differs, and not where.", answer="return 0 if differs[-1] else len(original)"),
)

# fmt: on

# --- An instrument ----------------------------------------------------------------------------------------------------


def _parity_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, prompt: int, **bug: bool) -> Case:
        return Case(label, (Toy(T, **bug), rng.integers(VOCAB, size=T), prompt))

    return [
        case("a model that counts positions from 0 again in each call", 8, 3, starts_again=True),
        case("a healthy model", 8, 3),
        case("a cache that counts calls", 7, 4, counts_calls=True),
        case("a model that looks ahead", 7, 2, looks_ahead=True),
        case("a prompt of one symbol", 5, 1, starts_again=True),
        case("a prompt that nothing follows", 4, 4, looks_ahead=True),
        case("a cache that rounds what it keeps", 6, 3, rounds_past=True),
    ]


_PARITY = Exercise(
    name="cache_parity",
    called="my_cache_parity",
    takes="model, ids, prompt",
    task="""How far outputs with a cache are from those without: a prompt at once, then one by one.

model.forward(batch, past) takes ids (B, T) and a cache, and returns a pair; its
first part is the logits, (B, T, V). Without `past`, there is no cache.
model.new_past() makes an empty one; each call with it adds to it.
ids: (T,). prompt: how many symbols go in first, all at once. Returns (T,): for each
output the largest difference of its V logits, without sign. ids stays as it was.""",
    steps={
        "whole": "whole = model.forward(ids[None])[0][0]  # (T, V)",
        "past": "past = model.new_past()",
        "prompt": "parts = [model.forward(ids[None, :prompt], past)[0][0]]  # (prompt, V)",
        "loop": "for t in range(prompt, len(ids)):\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])  # (1, V)",
        "answer": "return np.abs(np.concatenate(parts) - whole).max(axis=-1)",
    },
    cases=_parity_cases,
    returns=("moved",),
    hints=(
        "Two runs of the same symbols: all at once without a cache, and in parts that share one cache.",
        "One `past` for all parts: `model.forward(ids[None, :prompt], past)`, then `ids[None, t : t + 1]` for each later t.",
        "Collect the logits of the parts in a list; `np.concatenate(parts)` is (T, V), as the logits of the whole run are.",
    ),
    mistakes=PARITY,
    praise="It finds the bugs of six models, and lets a healthy one pass. Keep it: it runs on every patient below.",
    library=(broken.cache_parity,),
    in_pytorch="""# With a cache, `is_causal=True` of F.scaled_dot_product_attention begins its mask at the first key: one new query
# sees that key only. Hand over a mask, or none where a single query may see all keys.
whole, past = torch.as_tensor(model.forward(ids[None])[0][0]), model.new_past()
steps = [ids[None, :prompt], *(ids[None, t : t + 1] for t in range(prompt, len(ids)))]
parts = [torch.as_tensor(model.forward(step, past)[0][0]) for step in steps]
moved = (torch.cat(parts) - whole).abs().amax(-1)""",
)


# --- Ports ------------------------------------------------------------------------------------------------------------


def _difference_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(
        label: str, sizes: Sequence[float], bugs: Sequence[float], low: int = 4, at: tuple[int, ...] = (1, 2, 2)
    ) -> Case:
        """Parts with numbers up to some size, and a port off by so much of it: by rounding, or by a bug.

        Args:
            low: the part whose numbers are all negative, if there is one.
            at: the number that a bug moves.
        """
        original, port = [], []
        for n, (size, bug) in enumerate(zip(sizes, bugs, strict=True)):
            x = rng.uniform(-0.9, 0.4, size=(2, 5, 3))
            x[0, 0, 0], x[1, 1, 1] = -1, 1e-4  # the largest number is negative, and another is near 0
            rounding = (0, 1e-6 * np.abs(x), 1e-6, 7e-6)[min(max(n - (low == 1), 0), 3)]  # by size, as the sum grows
            off = rng.uniform(-1, 1, size=x.shape) * rounding
            off[1, 1, 1] = 1e-6 * (n > 1)
            off[at] += bug * (-1) ** n
            original.append((-np.abs(x) if n == low else x) * size)
            port.append(original[-1] + off * size)
        return Case(label, (original, port))

    none, grows = [0.0] * 12, [2e-5, 1e-4, 2e-3, 5e-3, 0.01, 0.02]
    return [
        case("a bug in the third part", (1, 8, 8, 9, 7), (0, 0, 2e-5, 2e-4, 1e-4)),
        case("no bug, and large numbers", (1, 2000, 500), none[:3]),
        case("a bug in a part of small numbers", (0.5, 300, 0.01, 30, 300), (0, 0, 3e-4, 1e-3, 0)),
        case("a bug in the first part", (2, 2, 3), (0.1, 0.2, 0.1), at=(0, 0, 0)),
        case("a difference that is gone in the end", (1, 1, 0.5, 1, 4, 2, 2), (0, 0, 0, 1e-3, 2e-3, 0, 0)),
        case("one part", (3,), (0,)),
        case("twelve parts", (10.0 ** rng.uniform(-1, 2, size=12)).tolist(), none[:6] + grows),
        case(
            "a bug in the fifth of twelve",
            (10.0 ** rng.uniform(-1, 1, size=12)).tolist(),
            none[:4] + grows + none[:2],
            low=1,
        ),
    ]


_DIFFERENCE = Exercise(
    name="first_difference",
    called="my_first_difference",
    takes="original, port",
    task="""How many parts of a port agree with the original, before the first that differs.

original, port: lists of n arrays, the stream after each part, in the same order.
A part agrees if its largest difference, without sign, is at most 1e-5 times the
largest number, without sign, of the original's part: that much may be rounding.
Returns a whole number: 0 if the first part differs, n if all agree. Both lists stay as they were.""",
    steps={
        "off": "off = np.array([np.abs(y - x).max() for x, y in zip(original, port)])  # (n,)",
        "limit": "limit = 1e-5 * np.array([np.abs(x).max() for x in original])  # (n,)",
        "differs": "differs = off > limit",
        "answer": "return int(differs.argmax()) if differs.any() else len(original)",
    },
    cases=_difference_cases,
    returns=("agree",),
    hints=(
        "Go through both lists at once, `zip(original, port)`. What is the largest difference, and what may be rounding?",
        "`np.abs(y - x).max()` against `1e-5 * np.abs(x).max()`. With a loop, return at the first that is too large.",
        "`differs.argmax()` is the place of the first True. If there is none it is 0, so ask `differs.any()` first.",
    ),
    mistakes=DIFFERENCE,
    praise="Right for bugs in small numbers and for rounding in large ones.",
    in_pytorch="""# Rounding depends on the dtype: bfloat16 keeps two to three digits, so compare in float32.
original, port = ([torch.as_tensor(x).float() for x in parts] for parts in (original, port))
differs = [bool((y - x).abs().max() > 1e-5 * x.abs().max()) for x, y in zip(original, port)]
agree = differs.index(True) if True in differs else len(original)""",
)


# --- Mend it ----------------------------------------------------------------------------------------------------------

_BASE = next(lesson for lesson in LESSONS if "causal_mask" in lesson.exercises).exercise("causal_mask")
(_WRONG,) = (change for change in _BASE.mistakes if change.name == "queries counted from the start")
MEND = replace(
    _BASE,
    name="mend_mask",
    called="mended_mask",
    task="""The causal mask of the last T_q of T_k positions, (T_q, T_k), True = may attend.
T_q is at least 1. Returns booleans. NumPy; no `attention.causal_mask`.""",
    broken=_WRONG.ways[0],
    symptom="It runs, and in training it is right. Symptom: with a cache the model writes other text than without. One new "
    "query after a long past sees the first key only.",
    hints=("Print it for T_q = 1, T_k = 4. Where in the sequence does that query stand?", *_BASE.hints[-1:]),
    praise="Mended. (The bug is one that `check.causal_mask` knows from notebook 06.)",
)
EXERCISES = (_PARITY, _DIFFERENCE, MEND)
