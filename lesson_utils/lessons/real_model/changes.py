"""From 2017 to now: five changes to a GPT, each trained and measured; and models that run on a learner's functions."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lesson_utils.classroom import plots, tables
from lesson_utils.lessons.real_model import chatting, measures
from lesson_utils.lessons.real_model.measures import label
from lesson_utils.maths import attention, layers, models, tasks, training
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.models.experiments import Change, changed
from lesson_utils.maths.pretrained import Pretrained

START = "2017"
CHANGES: dict[str, dict[str, Any]] = {  # and the width of the feed-forward network, see `config_of`
    "norm before": {"norm": "pre"},
    "RMS norm": {"norm_kind": "rms"},
    "rotary": {"positions": "rotary"},
    "grouped queries": {},
    "SwiGLU": {"activation": "swiglu"},
}
ALL = tuple(CHANGES)
LADDER = tuple(ALL[:n] for n in range(len(ALL) + 1))  # one after the other
BACK = tuple(tuple(name for name in ALL if name != left_out) for left_out in ALL)  # all but one
STEPS, WIDTH, PEAK = 500, 64, 12e-3  # of four rates, best for the model of 2017 and for the one of today
LENGTH, BATCH = 64, 32  # of notebook 06


def config_of(changes: Collection[str], vocab: int, width: int = WIDTH, groups: int = 2) -> GPTConfig:
    """Configure two layers of four heads with these changes, all of nearly as many parameters.

    What queries in groups of `groups` save goes to the feed-forward network; of SwiGLU's three matrices each has two
    thirds of the width (Shazeer, 2020, section 2).
    """
    config = GPTConfig(
        vocab=vocab, d_model=width, num_heads=4, num_layers=2, max_length=LENGTH, norm="post", activation="relu"
    )
    d_ff = 4 * width
    if "grouped queries" in changes:
        config = replace(config, num_kv_heads=config.num_heads // groups)
        d_ff += width - width // groups  # W_K and W_V have lost as many numbers as that gives W_1 and W_2
    if "SwiGLU" in changes:
        d_ff = round(d_ff * 2 / 3)
    for name in changes:
        config = replace(config, **CHANGES[name])
    return replace(config, d_ff=d_ff)


def cached_bytes(config: GPTConfig) -> int:
    """Return the bytes that the keys and values of one token take, in float32."""
    return 2 * config.num_layers * (config.num_kv_heads or config.num_heads) * config.d_model // config.num_heads * 4


@dataclass(frozen=True)
class Run:
    """One training, and what came of it."""

    changes: tuple[str, ...]
    seed: int
    steps: int
    width: int
    peak: float
    parameters: int
    cached: int  # bytes a token
    bits: float  # per character of the held-out text
    seconds: float  # of a core


def train(
    changes: Collection[str] = ALL,
    seed: int = 0,
    steps: int = STEPS,
    width: int = WIDTH,
    peak: float = PEAK,
    progress: bool = True,
) -> Run:
    """Train a GPT with these changes on the course's text, and measure it on the text's last tenth."""
    if unknown := sorted(set(changes).difference(ALL)):
        raise ValueError(f"there is no change {unknown[0]!r}; there are {', '.join(ALL)}")
    text = tasks.python_text()
    vocabulary = tasks.text_vocabulary(text)
    learn, held_out = tasks.split_text(vocabulary.encode(text))
    config = config_of(changes, len(vocabulary), width)
    model, start = GPT(config, np.random.default_rng(seed)), time.process_time()
    training.fit(
        model,
        partial(tasks.text_batches, learn, LENGTH, BATCH),
        steps,
        schedule=partial(training.warmup_linear, peak=peak, warmup=min(100, steps // 4), total=steps + 1),
        seed=seed,
        progress=progress,
    )
    ordered = tuple(name for name in ALL if name in changes)
    return Run(
        changes=ordered,
        seed=seed,
        steps=steps,
        width=width,
        peak=peak,
        parameters=model.num_params(),
        cached=cached_bytes(config),
        bits=round(bits(model, held_out), 4),
        seconds=round(time.process_time() - start, 1),
    )


def runs() -> list[Run]:
    """Return the stored runs."""
    return [Run(**known | {"changes": tuple(known["changes"])}) for known in measures.stored_changes()]


def bits(model: GPT, ids: Ids) -> float:
    """Return the loss in bits per character, over all of a text in windows that do not overlap."""
    starts = np.arange(0, len(ids) - LENGTH, LENGTH)
    windows = ids[starts[:, None] + np.arange(LENGTH + 1)]  # (N, T + 1)
    parts = np.array_split(windows, -(-len(windows) // 64))
    nats = sum(model.loss((part[:, :-1], part[:, 1:])) * len(part) for part in parts) / len(windows)
    return float(nats / np.log(2))


# --- What came of it --------------------------------------------------------------------------------------------------


def measured(changes: Collection[str], steps: int = STEPS, width: int = WIDTH, peak: float = PEAK) -> list[Run]:
    """Return the stored runs with just these changes, one for each seed."""
    return [
        run
        for run in runs()
        if set(run.changes) == set(changes) and (run.steps, run.width, run.peak) == (steps, width, peak)
    ]


def changes_table() -> tables.Table:
    """List one change after the other: parameters, bytes per token in the cache, bits per character.

    The bits are those of three seeds; and of one of them at twice the steps, and at twice the width.
    """
    rows = []
    for ladder in LADDER:
        found = measured(ladder)
        lost = [run.bits for run in found]
        (longer,), (wider,) = measured(ladder, steps=2 * STEPS), measured(ladder, width=2 * WIDTH)
        name, spread = f"+ {ladder[-1]}" if ladder else START, f"{min(lost):.3f} to {max(lost):.3f}"
        rows.append((name, found[0].parameters, found[0].cached, spread, longer.bits, wider.bits))
    head = ("", "parameters", "cached bytes", "bits per character", "twice the steps", "twice the width")
    return tables.table(head, rows, ".3f")


def taken_back(change: str) -> list[float]:
    """Bits per character that the model with all changes loses without one, seed by seed."""
    without = {run.seed: run.bits for run in measured([name for name in ALL if name != change])}
    return [without[run.seed] - run.bits for run in measured(ALL)]


@plots.still(9.8, 3.8)
def changes_plot(figure: "plots.Figure") -> str:
    """Bits per character with one change after the other; and what is lost if one is taken back. Three seeds."""
    ladder, back = figure.subplots(1, 2, width_ratios=(1.4, 1))
    lost = np.array([[run.bits for run in measured(stage)] for stage in LADDER])  # (stages, seeds)
    means, at = lost.mean(axis=1), np.arange(len(LADDER))
    ladder.plot(at, means, color="#B8CFE0", zorder=1)
    ladder.plot(at, lost, "o", color=plots.BLUE, ms=5, alpha=0.8)
    names = [START, *(f"+ {name}".replace(" ", "\n", 2).replace("+\n", "+ ") for name in ALL)]
    ladder.set_xticks(at, names, size=9.5)
    ladder.set(ylabel="bits per character, held out")
    ladder.set_title(f"2017 to now: {means[0]:.2f} → {means[-1]:.2f} bits")
    losses = np.array([taken_back(name) for name in ALL])  # (changes, seeds)
    rows = np.arange(len(ALL))
    back.axvline(0, color=plots.GREY, lw=1)
    back.barh(rows, losses.mean(axis=1), height=0.5, color="#B8CFE0")
    back.plot(losses, rows, "o", color=plots.BLUE, ms=5, alpha=0.8)
    back.set_yticks(rows, ALL)
    back.invert_yaxis()
    back.set(xlabel="bits lost without it")
    missed = [name for name, of in zip(ALL, losses, strict=True) if of.min() > 0]
    back.set_title(f"Missed by all three seeds:\n{', '.join(missed)}")
    label(figure, "stored runs of small GPTs, three seeds")
    listed = "; ".join(
        f"{stage[-1] if stage else START} {', '.join(f'{x:.3f}' for x in of)}"
        for stage, of in zip(LADDER, lost, strict=True)
    )
    alone = "; ".join(f"{name} {', '.join(f'{x:+.3f}' for x in of)}" for name, of in zip(ALL, losses, strict=True))
    return (
        "… One change after the other, bits per character, "
        f"three seeds each: {listed}. Taken back alone from the model with all: {alone}. Stored results."
    )


def train_again(changes: Collection[str] = ALL, seed: int = 0) -> None:
    """Train one of them here, about half a minute, and print it beside the stored one."""
    run = train(changes, seed)
    known = [stored.bits for stored in measured(changes) if stored.seed == seed]
    print(f"{run.parameters:,} parameters, {run.bits:.3f} bits per character; stored: {known[0] if known else 'none'}")


# --- As large as SmolLM2 ----------------------------------------------------------------------------------------------

SIZES: dict[str, dict[str, Any]] = {
    "2017": {},
    "norm before": {"norm": "pre"},
    "RMS norm": {"norm_kind": "rms"},
    "rotary": {"positions": "rotary"},
    "grouped queries": {"num_kv_heads": 3},
    "SwiGLU": {"activation": "swiglu", "d_ff": 1536},
}


def five_changes() -> tables.Table:
    """List parameters, and numbers per token in the cache, of two layers as wide as SmolLM2's, change after change."""
    config = GPTConfig(vocab=1000, d_model=576, num_heads=9, num_layers=2, norm="post")
    rows = []
    for name, change in SIZES.items():
        config = replace(config, **change)
        kept = 2 * config.num_layers * (config.num_kv_heads or config.num_heads) * config.d_model // config.num_heads
        rows.append((name, GPT(config, np.random.default_rng(0)).num_params(), kept))
    return tables.table(("", "parameters", "in the cache, per token"), rows)


# --- Models that run on the learner's functions: a small one of today's build, and the real one if it is there --------

Function = Callable[..., Any]


class OwnNorm(layers.RMSNorm):
    """RMS norm by a given function, with the γ and ε of another."""

    def __init__(self, right: layers.RMSNorm, function: Function) -> None:
        vars(self).update(vars(right))
        self.function = function

    def forward(self, x: Array) -> tuple[Array, Any]:
        return self.function(x, self.gamma.value, self.eps), None


class OwnTurn:
    """Rotary positions by a given function."""

    def __init__(self, function: Function) -> None:
        self.turn = function


def _norms(model: models.GPT, function: Function) -> list[Change]:
    holders = [model.stack, *(place for block in model.stack.blocks for place in (block.attention, block.feed_forward))]
    return [(h, "norm", OwnNorm(h.norm, function)) for h in holders if isinstance(h.norm, layers.RMSNorm)]


def _groups(model: models.GPT, function: Function) -> list[Change]:
    """Let single queries with a cache use the function, which knows no mask."""
    shared = model.stack.heads()[0].num_heads // model.stack.heads()[0].num_kv_heads

    def attend(Q: Array, K: Array, V: Array, mask: Mask | None = None) -> tuple[Array, Array]:
        output, weights = attention.scaled_dot_product_attention(Q, K, V, mask)
        if mask is None:  # K and V come with each head repeated
            rows = zip(Q, K[:, ::shared], V[:, ::shared], strict=True)
            output = np.stack([function(q, k, v) for q, k, v in rows])
        return output, weights

    return [(heads, "attend", attend) for heads in model.stack.heads()]


def _halves(model: models.GPT, function: Function) -> list[Change]:
    """Permute the columns of W_Q and W_K as a converted file does, and turn halves."""
    changes: list[Change] = []
    for heads in model.stack.heads():
        d_k = heads.W_Q.value.shape[1] // heads.num_heads
        for W in (heads.W_Q, heads.W_K):
            per_head = W.value.reshape(len(W.value), -1, d_k)
            changes.append(
                (W, "value", np.concatenate([per_head[..., ::2], per_head[..., 1::2]], -1).reshape(W.value.shape))
            )
        changes.append((heads, "rotary", OwnTurn(function)))
    return changes


PARTS = {"norm": _norms, "groups": _groups, "halves": _halves}


def small_model() -> models.GPT:
    """Make a GPT with all five changes, untrained."""
    config = models.GPTConfig(
        vocab=50,
        d_model=48,
        num_heads=6,
        num_kv_heads=2,
        num_layers=2,
        norm="pre",
        norm_kind="rms",
        positions="rotary",
        activation="swiglu",
    )
    return models.GPT(config, np.random.default_rng(0))


def logits(model: models.GPT, ids: Ids) -> Array:
    """Return the logits after each symbol, (T, V): the first half at once, then one by one with a cache."""
    past, half = model.new_past(), ids.shape[1] // 2
    parts = [model.forward(ids[:, :half], past)[0]]
    parts += [model.forward(ids[:, t : t + 1], past)[0] for t in range(half, ids.shape[1])]
    return np.concatenate(parts, axis=1)[0]


def difference(part: str, function: Function) -> float:
    """Return how far the small model's logits move when a part, such as "norm", is by a function."""
    model, ids = small_model(), np.random.default_rng(1).integers(50, size=(1, 12))
    before = logits(model, ids)
    with changed(PARTS[part](model, function)):
        return float(np.abs(logits(model, ids) - before).max())


def runs_on(part: str, function: Function, smollm: Pretrained | None = None) -> None:
    """Let a small model run on a function, and the real one too if it is there, and print what comes of it.

    Args:
        part: "norm", "groups" or "halves"; the last for the small model only, because the real one has another base.
    """
    moved = difference(part, function)
    print(f"a small model of this build: its logits {'stay as they are' if moved < 1e-3 else f'move by {moved:.2g}'}")
    if smollm and part != "halves":
        with changed(PARTS[part](smollm.model, function)):
            print("SmolLM2:", chatting.answer(smollm))
