"""Section 5: what a pass costs on a cache, and drafts that a model verifies."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.efficient_attention.bill import as_time, seconds
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT, GPTConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT_ONCE = (1, 2, 4, 8, 16, 32)


class Price(NamedTuple):
    """Seconds of one pass over n new tokens, by n; and of one product that reads as many bytes as the parameters."""

    passes: dict[int, float]
    reading: float


def price(cached: int = 200, d_model: int = 512, num_layers: int = 8) -> Price:
    """Time passes over n new tokens behind a cache of `cached`; a GPT that was never trained will do."""
    config = GPTConfig(vocab=512, d_model=d_model, num_heads=4, num_layers=num_layers, max_length=cached + 64)
    model, rng = GPT(config, np.random.default_rng(0)), np.random.default_rng(1)
    past = model.new_past()
    model.forward(rng.integers(512, size=(1, cached)), past)

    def one_pass(n: int) -> None:
        model.forward(rng.integers(512, size=(1, n)), past)
        for cache in past:
            cache.length = cached  # forget them again

    numbers = sum(parameter.value.size for parameter in model.params().values())
    matrix = np.ones((numbers // d_model, d_model), np.float32)
    vector = np.ones(d_model, np.float32)
    passes = {n: seconds(lambda n=n: one_pass(n), repeats=7) for n in AT_ONCE}  # type: ignore[misc]
    return Price(passes, seconds(lambda: matrix @ vector, repeats=7))


@plots.still(9.0, 3.2)
def price_plot(figure: "Figure", price: Price) -> str:
    """Draw the price of one pass over n new tokens, in passes over one."""
    ax, one = figure.add_subplot(), price.passes[1]
    n, cost = list(price.passes), [time / one for time in price.passes.values()]
    reading = price.reading / one
    ax.axhline(reading, color=plots.ORANGE, ls="--", lw=1.6)
    ax.annotate("reading alone", (n[-1], reading), (0, 5), textcoords="offset points", ha="right", color=plots.ORANGE)
    ax.plot(n, n, ":", color=plots.GREY)
    ax.plot(n, cost, "o-", color=plots.BLUE)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set(xlabel="new tokens in one pass", ylabel="cost, in single tokens")
    ax.set_xticks(n, [str(k) for k in n])
    ax.set_yticks(n, [str(k) for k in n])
    ax.annotate("one after the other", (n[-2], n[-2]), (-14, 0), textcoords="offset points", ha="right")
    ax.annotate("at once", (n[-2], cost[-2]), (0, -18), textcoords="offset points", color=plots.BLUE)
    ax.set_title(f"{n[-1]} tokens at once cost as much as {cost[-1]:.1f} single ones")
    listed = ", ".join(f"{k}: {c:.1f}" for k, c in zip(n, cost, strict=True))
    return (
        f"{n[-1]} tokens in one pass cost {cost[-1]:.1f} times one token ({as_time(one)}). By number: {listed}. "
        f"Reading as many bytes in one product takes {reading:.0%} of a pass over one token."
    )


def most_likely(ids: Ids, vocab: int) -> Ids:
    """After each two symbols the one that follows most often, (vocab, vocab)."""
    counts = np.zeros((vocab, vocab, vocab), np.int32)
    np.add.at(counts, (ids[:-2], ids[1:-1], ids[2:]), 1)
    return counts.argmax(axis=-1)


class Spoken(NamedTuple):
    """A text, and how many passes of the model it took after the one that read the prompt."""

    ids: list[int]
    passes: int
    drafted: int
    accepted: int


def speculate(model: GPT, prompt: Sequence[int], length: int, draft: Callable[[list[int]], int], ahead: int) -> Spoken:
    """Greedy text of a model that checks `ahead` drafted symbols in one pass; 0 is plain decoding.

    It keeps drafts while they are what the model would have said; from the first that is not, it takes its own.
    """
    ids, past = list(prompt), model.new_past()
    passes = drafted = accepted = 0
    end = len(ids) + length
    while len(ids) < end:
        guess = list(ids)
        for _ in range(min(ahead, end - len(ids) - 1)):
            guess.append(draft(guess))
        known = past[0].length
        logits: Array = model.forward(np.array([guess[known:]]), past)[0][0]
        said = logits.argmax(axis=-1)[len(ids) - 1 - known :]  # what the model says after each symbol
        new = guess[len(ids) :]
        right = next((n for n, symbol in enumerate(new) if symbol != said[n]), len(new))
        passes, drafted, accepted = passes + 1, drafted + len(new), accepted + right
        ids += [*new[:right], int(said[right])]
        for cache in past:
            cache.length = len(ids) - 1  # what was drafted in vain is forgotten
    return Spoken(ids, passes - 1, drafted, accepted)
