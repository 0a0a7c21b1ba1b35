"""A head that has learned "five back", beyond its training length: where it looks, and which hand leads it there."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.positional_encoding.lengths import BACK, LOOKS, NAMES, by_position, recall
from lesson_utils.maths import ops, positions
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, GPTConfig, trying
from lesson_utils.maths.tasks import Ids, Pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TURN = 2 * np.pi  # the fastest hand comes round after so many positions: its rate is 1 in every table


def on_turns(length: int) -> list[int]:
    """Return the whole offsets below `length` that are nearest to five back and whole turns of the fastest hand."""
    return [n for n in (round(BACK + TURN * k) for k in range(length)) if n < length]


def five_back(model: GPT, ids: Ids, L: int) -> Array:
    """Return the weights, (T, T), mean over sequences, of the head that looks five back most within L positions."""
    _, cache = model.forward(ids)
    maps = np.concatenate([weights.mean(axis=0) for weights in model.maps(cache)["decoder"]])  # (layers · h, T, T)
    return max(maps, key=lambda weights: float(np.diagonal(weights[:L, :L], -BACK).mean()))


def by_offset(weights: Array) -> Array:
    """Write the weights of each query by how far back their keys stand: (T, T), 0 where there is no such key."""
    T = len(weights)
    back = np.arange(T)[:, None] - np.arange(T)  # the key of query t that stands n back is key t − n
    return np.where(back >= 0, weights[np.arange(T)[:, None], np.maximum(back, 0)], 0.0)


def share_on_turns(offsets: Array) -> tuple[Array, Array]:
    """Return which share of each query's weight lies on `on_turns`, and which share of its keys does, (T,) each."""
    T = len(offsets)
    on = on_turns(T)
    return offsets[:, on].sum(axis=1), np.array([sum(n <= t for n in on) / (t + 1) for t in range(T)])


def _measured(recallers: Mapping[str, GPT], longer: Ids) -> tuple[dict[str, Array], int]:
    L = longer.shape[1] // 2
    return {kind: by_offset(five_back(recallers[kind], longer, L)) for kind in ("rotary", "sinusoidal", "learned")}, L


def _example() -> tuple[dict[str, GPT], Ids]:
    models = {}
    for kind in ("rotary", "sinusoidal", "learned"):
        config = GPTConfig(vocab=20, d_model=16, num_heads=2, num_layers=1, positions=kind)
        models[kind] = GPT(config, np.random.default_rng(0))
    return models, recall(np.random.default_rng(1), 2, 64)[0]


@live.lab(
    height=4.3,
    neutral="It opens within the training length; what comes beyond is drawn when the position gets there.",
    controls=lambda offsets, L: {
        "kind": live.Choice("positions", tuple(offsets), "rotary"),
        "position": live.Slider("query at position", BACK + 1, 2 * L - 1, L - 8),
    },
    prepare=_measured,
    example=_example,
)
def turns_lab(figure: "Figure", offsets: Mapping[str, Array], L: int) -> live.Update:
    """Show how far back the five-back head looks: its largest weight up to a position, and all its weights there."""
    trail_ax, bars_ax = figure.subplots(1, 2, width_ratios=(1.1, 1))
    T = 2 * L
    turns = [BACK + TURN * k for k in range(len(on_turns(T)))]
    trail_ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    trail_ax.text(L - 1, 0.5, "trained up to here", ha="right", va="bottom", color=plots.GREY)
    look: Any = {"color": plots.GREY, "lw": 1, "ls": ":"}
    dotted = trail_ax.hlines(turns, -0.5, T - 0.5, **look), bars_ax.vlines(turns, 0, 1.04, **look)
    (trail,) = trail_ax.plot([], [], "o", ms=5, color=plots.BLUE, clip_on=False)
    (last,) = trail_ax.plot([0], [0], "o", ms=11, color=plots.INK, clip_on=False, zorder=5)
    (bars,) = bars_ax.plot([], [], drawstyle="steps-mid", color=plots.BLUE)
    trail_ax.set(xlim=(-0.5, T - 0.5), ylim=(-0.5, T - 0.5), xlabel="query at position")
    trail_ax.set_ylabel("largest weight: how far back")
    trail_ax.set_xticks([0, L // 2, L, L + L // 2, T - 1])
    bars_ax.set(xlim=(-0.5, T - 0.5), ylim=(0, 1.04), xlabel="how far back", ylabel="weight")

    def update(kind: str, position: int) -> str:
        weights = offsets[kind]
        colour = LOOKS[kind][0]
        so_far = np.arange(BACK + 1, position + 1)
        largest = weights[so_far].argmax(axis=1)
        trail.set_data(so_far, largest)
        last.set_data([position], [largest[-1]])
        bars.set_data(np.arange(position + 1), weights[position, : position + 1])
        for line in (trail, bars):
            line.set_color(colour)
        share, chance = (values[position] for values in share_on_turns(weights))
        beyond = position >= L
        for lines in dotted:
            lines.set_visible(beyond)
        label = "how far back" + f" (dotted: {BACK}, plus whole turns)" * beyond
        if bars_ax.get_xlabel() != label:  # axes that stay need not be drawn again
            bars_ax.set_xlabel(label)
        trail_ax.set_title(f"{NAMES[kind].capitalize()}, position {position}: looks {largest[-1]} back")
        bars_ax.set_title(
            f"{share:.0%} on dotted lines (evenly: {chance:.0%})" if beyond else f"Weights of position {position}"
        )
        found = (
            f"The head that learned five back, with {NAMES[kind]} positions: at position {position} its largest weight "
            f"is {largest[-1]} back"
        )
        if not beyond:
            return f"{found}, within the training length."
        return (
            f"{found}. {share:.0%} of its weight lies on offsets of {BACK} and whole turns of the fastest hand, the "
            f"dotted lines; spread evenly it would be {chance:.0%}."
        )

    return update


def held(model: GPT, batch: Pair, pairs: Collection[int], last: int, to: int | None = None) -> Array:
    """Test a rotary model some of whose hands stop: further apart than `last`, these pairs turn no further.

    Args:
        to: the distance whose angle they then get; None: `last`.

    Returns:
        the share of right answers at each position, (T,).
    """

    stop = last if to is None else to

    def attend(Q: Array, K: Array, V: Array, mask: Array) -> tuple[Array, Array]:
        T, d = Q.shape[-2:]
        rates = TURN / positions.wavelengths(d)
        apart = np.arange(T)[:, None] - np.arange(T)
        q, k = (np.ascontiguousarray(x, np.float64).view(np.complex128) for x in (Q, K))  # a pair is a + bi
        scores = np.zeros((*Q.shape[:-1], T))
        for i, rate in enumerate(rates):
            angle = rate * (np.where(apart > last, stop, apart) if i in pairs else apart)
            scores += (q[..., :, None, i] * np.conj(k[..., None, :, i]) * np.exp(1j * angle)).real
        weights = ops.softmax(np.where(mask, scores / np.sqrt(d), -np.inf)).astype(V.dtype)
        return weights @ V, weights

    with trying(model, attend=attend):
        return by_position(model, batch, rotate=lambda x, at: x).correct  # attend turns, so nothing is turned before
