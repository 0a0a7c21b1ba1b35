"""Mistakes that several exercises have in common: masks, weights, the order of results.

The steps are called `mask`, `weights` and `answer`, and work on the variables `scores` and `weights`.
"""

from collections.abc import Sequence

from lesson_utils.mistakes.exercise import Change, change

OWN_SOFTMAX = (
    "e = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
    "weights = e / e.sum(axis=-1, keepdims=True)"
)  # fmt: skip
FINITE = "scores = np.where(mask, scores, -1e9)"


def masks(optional: bool = False, weights: str = "weights = ops.softmax(scores)") -> tuple[Change, ...]:
    """Return the mistakes with a mask: it is ignored, inverted, applied too late, or hides nothing.

    Args:
        optional: the mask may be None, so that each line stands behind `if mask is not None`.
        weights: the step behind the mask, as it should be.
    """

    def guarded(*lines: str) -> list[str]:
        return [f"if mask is not None:\n    {line}" if optional else line for line in lines]

    def late(*lines: str) -> dict[str, Sequence[str]]:
        return {"mask": "", "weights": [f"{weights}\n{line}" for line in guarded(*lines)]}

    return (
        change(
            "mask ignored",
            "Your weights are as if there were no mask: what is hidden gets weight. Set the scores where `mask` is False to −∞, before softmax.",
            mask="",
        ),
        change(
            "mask inverted",
            "Your mask is the wrong way round. Here True means may attend: keep the scores where it is True, and hide those where it is False.",
            mask=guarded(
                "scores = np.where(mask, -np.inf, scores)",
                "scores = np.where(mask, -1e9, scores)",
                "scores = scores - 1e9 * mask",
                "scores = np.where(mask, -1e4, scores)",
                "scores = np.where(mask, np.finfo(scores.dtype).min, scores)",
            ),
        ),
        change(
            "mask after softmax",
            "You hide after softmax, which by then has counted the hidden scores in its sum. Hide scores before it, with −∞: then the others share the whole weight.",
            **late(
                "weights = weights * mask",
                "weights = np.where(mask, weights, -np.inf)",
                "weights = np.where(mask, weights, -1e9)",
            ),
        ),
        change(
            "mask after softmax, renormalised",
            "You hide after the exponential, then divide by the row's new sum. On paper that is right. In floats the visible "
            "weights become 0 beside far larger hidden scores, and an `exp` without the maximum subtracted overflows for scores in the hundreds: either way the weights are lost. "
            "Hide scores with −∞, and only then take `ops.softmax`.",
            **late(
                "weights = weights * mask / (weights * mask).sum(axis=-1, keepdims=True)",
                "weights = weights * mask\n    total = weights.sum(axis=-1, keepdims=True)\n    weights = weights / np.where(total == 0, 1, total)"
                if optional
                else "weights = weights * mask\ntotal = weights.sum(axis=-1, keepdims=True)\nweights = weights / np.where(total == 0, 1, total)",
            ),
        ),
        change(
            "mask inverted, after softmax",
            "Two things to mend.\n1. Your mask is the wrong way round: True means may attend.\n2. You hide after softmax, which by "
            "then has counted the hidden scores in its sum. Hide scores before it, with −∞.",
            **late("weights = weights * ~mask"),
        ),
        change(
            "masked with 0",
            "Your hidden scores are 0, or close to 0. But exp(0) is 1, so what is hidden still gets weight. Use −∞, `-np.inf`.",
            mask=guarded("scores = np.where(mask, scores, 0)"),
        ),
        change(
            "mask inverted and 0",
            "Two things to mend.\n1. Your mask is the wrong way round: True means may attend.\n2. A score of 0 is an ordinary score, since exp(0) is 1. "
            "Hide with −∞.",
            mask=guarded("scores = np.where(mask, 0, scores)"),
        ),
        change(
            "mask added",
            "Your mask only shifts scores by about 1, which is too little to hide anything. Set hidden scores to −∞: "
            "`np.where(mask, …, -np.inf)`.",
            mask=guarded("scores = scores + mask", "scores = scores - ~mask", "scores = scores + ~mask"),
        ),
        change(
            "0 times infinity",
            "Your mask brings in NaN. A product with ∞ does that: 0 · ∞ is NaN, and a negative score times −∞ is +∞. Write `np.where(mask, …, -np.inf)`, without a product.",
            mask=guarded(
                "scores = scores + ~mask * -np.inf",
                "scores = scores * np.where(mask, 1, -np.inf)",
                "scores = scores + mask * -np.inf",
            ),
            weights=(weights, OWN_SOFTMAX),
        ),
        change(
            "masked with +∞",
            "Your hidden scores become very large, so what is hidden takes all the weight. Use −∞, `-np.inf`.",
            mask=guarded(
                "scores = np.where(mask, scores, 1e9)",
                "scores = np.where(mask, scores, np.inf)",
                "scores = scores + (1 - mask) * 1e9",
            ),
        ),
        change(
            "multiplied by a large number",
            "You multiply hidden scores by a large negative number. A negative score becomes a huge positive one, and takes all the weight. "
            "Choose, do not multiply: `np.where(mask, …, -np.inf)`.",
            mask=guarded("scores = scores * np.where(mask, 1, -1e9)", "scores = np.where(mask, scores, scores * -1e9)"),
        ),
        change(
            "not far enough below",
            "You hide scores with a number that is not far enough below the others: −100 is not, nor is −10 000. Where real scores are lower still, "
            "the hidden ones win. Use −∞: `np.where(mask, …, -np.inf)`.",
            mask=guarded(
                *(f"scores = np.where(mask, scores, -{n})" for n in ("100", "1", "10", "1e3", "1e4", "1e5")),
                *(f"scores = scores - {n} * ~mask" for n in ("1", "10", "100", "1000", "1e4")),
            ),
        ),
        change(
            "mask as an index",
            "You pick scores out, as an index `[mask]` does, and make one long row of them: who belongs to whom is lost. Keep the shape: `np.where(mask, …, -np.inf)`.",
            mask=guarded("scores = scores[mask]", "scores = scores[~mask]"),
        ),
    )


def weighing(over: str = "the keys") -> tuple[Change, ...]:
    """Return the mistakes with softmax: over another axis, twice, or none."""
    own = OWN_SOFTMAX.replace("-1", "{}").format
    return (
        change(
            "down the columns",
            f"Your softmax does not run over {over}. For each query, the weights of {over} sum to 1.",
            weights=("weights = ops.softmax(scores, axis=-2)", own(-2, -2)),
        ),
        change(
            "softmax over axis 0",
            f"Your softmax runs over axis 0. It must run over {over}, the last axis. `ops.softmax` takes that axis by itself.",
            weights=("weights = ops.softmax(scores, axis=0)", own(0, 0)),
        ),
        change(
            "softmax over axis 1",
            "Your softmax runs over axis 1, counted from the front. The keys are the last axis, and `ops.softmax` takes that axis by itself.",
            weights=("weights = ops.softmax(scores, axis=1)", own(1, 1)),
        ),
        change(
            "softmax over everything",
            "Your softmax runs over the whole array. Each row is a set of weights of its own: the last axis.",
            weights=(
                "e = np.exp(scores - scores.max())\nweights = e / e.sum()",
                "e = np.exp(scores)\nweights = e / e.sum()",
            ),
        ),
        change(
            "no softmax",
            "You average with the scores themselves. Turn them into weights first, not negative and with sum 1: `ops.softmax`.",
            weights=("weights = scores", "weights = np.where(np.isfinite(scores), scores, 0)"),
        ),
        change(
            "divided by the sum",
            "You divide the scores themselves by their sum. That gives negative weights where scores have both signs: exponentiate first.",
            weights="weights = scores / scores.sum(axis=-1, keepdims=True)",
        ),
        change(
            "softmax twice",
            "Softmax is applied twice, which makes the weights nearly equal. Once is enough.",
            weights="weights = ops.softmax(ops.softmax(scores))",
        ),
        change(
            "log-softmax",
            "These are the logarithms of the weights. Exponentiate them, or take `ops.softmax`.",
            weights="weights = ops.log_softmax(scores)",
        ),
        change(
            "sigmoid for softmax",
            "You squash each score by itself (the logistic function). Softmax makes the scores of a row compete: the weights of a row sum to 1.",
            weights=("weights = ops.sigmoid(scores)", "weights = 1 / (1 + np.exp(-scores))"),
        ),
        change(
            "largest only",
            "All the weight goes to the largest score. Softmax leaves the others a share.",
            weights="weights = (scores == scores.max(axis=-1, keepdims=True)).astype(scores.dtype)",
        ),
    )


def softmax_inside(mistakes: Sequence[Change], body: dict[str, str], besides: Sequence[str] = ()) -> tuple[Change, ...]:
    """Return the mistakes of the exercise on softmax for an answer that writes softmax anew.

    Args:
        body: the steps of that exercise.
        besides: beginnings of the names of mistakes that are left out.
    """
    found = []
    for mistake in mistakes:
        if mistake.name.startswith(tuple(besides)):
            continue
        ways = []
        for way in mistake.ways:
            text = way[""] if "" in way else "\n".join(line for line in {**body, **way}.values() if line)
            text = text if "return" in text else f"return {text}"
            ways.append({"weights": "x = scores\n" + text.replace("return ", "weights = ")})
        found.append(Change(f"softmax: {mistake.name}", f"Look at your softmax. {mistake.message}", tuple(ways)))
    return tuple(found)


def answers(*names: str) -> tuple[Change, ...]:
    """Return the mistakes with several results: in another order, or only one of them."""
    return (
        change(
            "results swapped",
            f"Your results are in the wrong order. Return first the {', then the '.join(names)}.",
            answer=f"return {', '.join(reversed(names))}",
        ),
        *(
            change(
                f"only the {name}",
                f"You return `{name}` alone. Asked for are {', '.join(names)}, in this order.",
                answer=f"return {name}",
            )
            for name in names
        ),
    )
