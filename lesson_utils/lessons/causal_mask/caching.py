"""The key–value cache: drawn as it grows, and what it is worth."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import live, plots
from lesson_utils.maths import models, training
from lesson_utils.maths.machine import is_browser

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

CONTEXT, STEPS = 12, 18  # of the drawing
LINE = "The class of an object"


def computed(step: int, cached: bool) -> tuple[int, int, int]:
    """Return the positions that a step computes: the first, one behind the last, and how many of them.

    Steps count from 1. A full context goes on from its second half, as in `GPT.generate`, with a new cache.
    """
    half = CONTEXT // 2
    restarts = 0 if step <= CONTEXT else 1 + (step - CONTEXT - 1) // (CONTEXT - half + 1)
    start = restarts and CONTEXT + 1 - half + (restarts - 1) * (CONTEXT - half + 1)
    seen = step - start
    fresh = step == 1 or (restarts > 0 and seen == half)
    return start, step, seen if fresh or not cached else 1


@live.lab(
    height=4.4,
    neutral="After one symbol, both ways have computed one position.",
    step=live.Slider("symbols read", 1, STEPS, 1),
    cached=live.Switch("with a cache", True),
)
def cache_lab(figure: "Figure") -> live.Update:
    """Keys and values as they grow by a row a symbol, and which positions are computed at each step."""
    from matplotlib.collections import PolyCollection

    figure.set_layout_engine("none")
    width, height = figure.get_size_inches()
    store = d.paper(figure.add_axes((0.01, 0, 4.0 / width, 1 - d.TITLE / height)), 4.0, height - d.TITLE)
    row, top = 0.275, height - d.TITLE - 0.42
    columns = {"q": (0.75, 0.75, plots.QUERY), "K": (1.75, 0.95, plots.KEY), "V": (2.9, 0.95, plots.VALUE)}
    rows = {}
    for name, (left, wide, colour) in columns.items():
        rows[name] = PolyCollection([], edgecolors=colour, linewidths=1.0)
        store.add_collection(rows[name], autolim=False)
        store.text(left + wide / 2, top + 0.1, name, ha="center", weight="bold", color=colour, zorder=0.5)
    names = [
        store.text(0.55, top - (i + 0.5) * row, "", ha="right", va="center", family="monospace") for i in range(CONTEXT)
    ]

    grid = figure.add_axes((5.0 / width, 0.62 / height, 3.7 / width, 3.2 / height))
    image = grid.imshow(
        np.ones((STEPS, STEPS, 3)), extent=(0.5, STEPS + 0.5, STEPS - 0.5, -0.5), interpolation="nearest", aspect="auto"
    )
    grid.set(xlabel="step", ylabel="position computed", xticks=(1, 5, 10, 15), yticks=(0, 5, 10, 15))
    pale, new = (np.array(d.tint(plots.BLUE, s)) for s in (0.4, 1.0))

    def update(step: int, cached: bool) -> str:
        pixels, total = np.ones((STEPS, STEPS, 3)), 0
        for s in range(1, step + 1):
            _, end, count = computed(s, cached)
            pixels[end - count : end, s - 1] = new if s == step else pale
            total += count
        image.set_data(pixels)
        start, end, count = computed(step, cached)
        seen = end - start
        for name, (left, wide, colour) in columns.items():
            shown = range(seen - count if name == "q" else 0, seen)
            ends = [(top - (i + 1) * row + 0.03, top - i * row - 0.03) for i in shown]
            rows[name].set_verts([d.corners(left, low, left + wide, high) for low, high in ends])
            rows[name].set_facecolor([d.tint(colour, 0.85 if i >= seen - count else 0.15) for i in shown])
        for i, label in enumerate(names):
            label.set_text(LINE[start + i].replace(" ", "␣") if i < seen else "")
        if cached and step > 1 and count > 1:
            finding = f"Context of {CONTEXT} is full: {count} rows made anew"
        elif cached:
            finding = f"{count} row is new, {seen - 1} are kept"
        else:
            finding = f"All {seen} rows are computed"
        store.set_title(finding)
        without = sum(computed(s, False)[2] for s in range(1, step + 1))
        cost = f"{step} symbol{'s' * (step > 1)}: {total} computed" + f", not {without}" * (total < without)
        grid.set_title(cost)
        return (
            f"{finding}. {'With' if cached else 'Without'} a cache. Positions: {cost}. "
            f"Keys and values of {seen} positions, “{LINE[start:end]}”; strong colours: computed in this step."
        )

    return update


# --- What it is worth -------------------------------------------------------------------------------------------------


class Timing(NamedTuple):
    """One length, generated with the cache and without."""

    length: int
    cached: float  # seconds
    uncached: float
    same: bool  # the same text?

    @property
    def ratio(self) -> float:
        return self.uncached / self.cached


def cache_times(lengths: Sequence[int] = (32, 64, 128, 256, 512)) -> list[Timing]:
    """Generate with and without the cache, with a model of the notebook's size, untrained, and room for all.

    In a browser, the three shortest lengths only.
    """
    lengths = lengths[:3] if is_browser() else lengths
    config = models.GPTConfig(vocab=100, d_model=64, num_heads=4, num_layers=2, max_length=max(lengths) + 1)
    model = models.GPT(config, np.random.default_rng(0))

    def timed(length: int, use_cache: bool) -> "tuple[float, Ids]":
        start = time.perf_counter()
        ids = model.generate(np.array([[1]]), length, np.random.default_rng(1), use_cache=use_cache)
        return time.perf_counter() - start, ids

    rows = []
    with training.single_thread():
        for length in lengths:
            # In turns, and the best of several: what else the machine does would count for one side only.
            turns, start = [], time.perf_counter()
            for _ in range(min(max(2, 768 // length), 20)):
                turns.append((timed(length, True), timed(length, False)))
                if time.perf_counter() - start > (1 if is_browser() else 5):
                    break
            (_, a), (_, b) = turns[0]
            cached, uncached = (min(turn[side][0] for turn in turns) for side in (0, 1))
            rows.append(Timing(length, cached, uncached, bool((a == b).all())))
    return rows
