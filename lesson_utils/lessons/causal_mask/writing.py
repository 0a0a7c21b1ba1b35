"""A language model that is watched in training, writes on, and keeps its keys and values."""

import re
import textwrap
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils import live, models, ops, plots, tasks, training
from lesson_utils._checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.models.stack import Ids
from lesson_utils.lessons.causal_mask.leaks import Peeking

# --- Training, watched -----------------------------------------------------------------------------------------------


def bits(nats: float) -> float:
    return nats / float(np.log(2))


def bigram_entropy(ids: "Ids") -> float:
    """Bits a character that are left for who knows how often each character follows each other one."""
    pairs = np.unique(np.stack([ids[:-1], ids[1:]]), axis=1, return_counts=True)[1] / (len(ids) - 1)
    firsts = np.unique(ids[:-1], return_counts=True)[1] / (len(ids) - 1)
    return float((firsts * np.log2(firsts)).sum() - (pairs * np.log2(pairs)).sum())


def words_in(text: str) -> list[str]:
    """Words of at least three letters."""
    return re.findall(r"[^\W\d_]{3,}", text)


def read(vocabulary: tasks.Vocabulary, ids: "Ids") -> str:
    """The text of ids, to its end: a model that is drawn from freely also gives ends and paddings now and then."""
    return vocabulary.decode(ids[ids >= tasks.FIRST_SYMBOL])


def writes(model: models.GPT, vocabulary: tasks.Vocabulary, prompts: "Ids", length: int, skip: int = 0) -> list[str]:
    """How the model goes on from each prompt (B, T) at τ = 0.7: all but the first `skip` symbols, most words first.

    Runs of blanks and line ends are written as one blank.
    """
    ids = model.generate(prompts, length, np.random.default_rng(5), 0.7, use_cache=not isinstance(model, Peeking))
    texts = [" ".join(read(vocabulary, row).split()) for row in ids[:, skip:]]
    return sorted(texts, key=lambda text: -len(words_in(text)))


def word_shares(texts: Sequence[str], known: frozenset[str]) -> tuple[float, float]:
    """Of the words in texts: how many are known, and how many different ones there are, as shares."""
    words = [word for text in texts for word in words_in(text)]
    count = max(len(words), 1)
    return sum(word in known for word in words) / count, len(set(words)) / count


class Watch:
    """A callback of `training.fit` that measures the validation loss, and has the model write."""

    def __init__(self, model: models.GPT, vocabulary: tasks.Vocabulary, validation: Any, text: str) -> None:
        self.model, self.vocabulary, self.validation = model, vocabulary, validation
        self.known, self.prompt = frozenset(words_in(text)), text[:1]
        self.steps: list[int] = []
        self.bits: list[float] = []
        self.texts: list[str] = []
        self.shares: list[float] = []
        self(0)

    def __call__(self, step: int, *_: object) -> None:
        prompts = np.tile(self.vocabulary.encode(self.prompt), (8, 1))  # (8, 1)
        texts = writes(self.model, self.vocabulary, prompts, 120)
        self.steps.append(step)
        self.bits.append(bits(self.model.loss(self.validation)))
        self.texts.append(texts[0])
        self.shares.append(word_shares(texts, self.known)[0])

    def show(self) -> None:
        print("steps   bits   real words   what it writes (τ = 0.7; of 8 texts, the one with most words)")
        for step, loss, share, text in zip(self.steps, self.bits, self.shares, self.texts, strict=True):
            print(f"{step:5} {loss:6.2f} {share:12.0%}   {text[:72]}")


@plots.still(8.6, 4.0)
def loss_plot(figure: "Figure", history: training.History, watch: Watch, rungs: dict[str, float]) -> str:
    """The loss in bits a character, between the rungs of what simpler knowledge would reach."""
    losses = np.array([bits(loss) for loss in history.losses])
    window = max(1, len(losses) // 60)
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    last, (name, below) = watch.bits[-1], min(rungs.items(), key=lambda rung: rung[1])
    where = f"{below - last:.1f} below" if last < below else f"{last - below:.1f} above"
    finding = f"{last:.2f} bits a character, {where} “{name}”"
    ax = figure.add_subplot(xlabel="training steps", ylabel="bits a character")
    for name, height in rungs.items():
        ax.axhline(height, color=plots.GREY, lw=1, ls=":")
        ax.text(len(losses), height + 0.08, f"{name}: {height:.2f}", color=plots.GREY, ha="right")
    ax.plot(window / 2 + np.arange(len(smooth)), smooth, color=plots.BLUE, label="training (moving average)")
    ax.plot(watch.steps, watch.bits, "o--", color=plots.ORANGE, label="validation")
    ax.set_ylim(0, min(max(watch.bits[0], *rungs.values()), 10) + 0.8)
    ax.set_xlim(0, len(losses))
    ax.set_title(finding)
    ax.legend(loc="lower left")
    points = ", ".join(f"{step}: {loss:.2f}" for step, loss in zip(watch.steps, watch.bits, strict=True))
    lines = ", ".join(f"{name} {height:.2f}" for name, height in rungs.items())
    return f"{finding}. Validation loss by step: {points}. Lines to compare with: {lines}."


# --- Live sampling ---------------------------------------------------------------------------------------------------

TOP_KS = ("1", "2", "5", "10", "20", "all")
SHOWN, LINE, WRITTEN = 10, 46, 180  # bars, characters a line, characters to write


class Draw(NamedTuple):
    """The next character's distribution, before and after the cuts, and a text drawn so."""

    model: Array  # what the model says, (V,)
    drawn: Array  # what is drawn from, (V,)
    text: str


def _untrained() -> tuple[models.GPT, tasks.Vocabulary]:
    """As large as the notebook's."""
    vocabulary = tasks.text_vocabulary(tasks.python_text())
    config = models.GPTConfig(vocab=len(vocabulary), d_model=64, num_heads=4, num_layers=2, max_length=64)
    return models.GPT(config, np.random.default_rng(0)), vocabulary


@live.lab(
    height=3.7,
    prompt=live.Word("prompt", "The ", longest=30),
    temperature=live.Slider("temperature τ", 0.0, 2.0, 0.8, 0.1),
    top_k=live.Choice("top-k", TOP_KS, "all"),
    top_p=live.Slider("top-p", 0.1, 1.0, 1.0, 0.05),
    example=_untrained,
)
def sampling_lab(figure: "Figure", model: models.GPT, vocabulary: tasks.Vocabulary) -> live.Update:
    """The trained model writes on: prompt, temperature, top-k, top-p → the next character, and a text."""
    chart, page = figure.subplots(1, 2, width_ratios=(1, 1.75))
    rows = np.arange(SHOWN)
    bars = chart.barh(rows, np.zeros(SHOWN), color=plots.BLUE, label="drawn from")
    (dots,) = chart.plot(np.zeros(SHOWN), rows, "D", color=plots.ORANGE, ms=5, label="model, τ = 1", ls="none")
    names = [chart.text(-0.03, row, "", ha="right", va="center", family="monospace") for row in rows]
    chart.set(xlim=(0, 1.05), xlabel="probability of the next character", yticks=(), ylim=(SHOWN - 0.4, -0.6))
    chart.legend(loc="lower right")
    page.set(xlim=(0, 1), ylim=(0, 1), xticks=(), yticks=())
    page.spines[:].set_visible(False)
    body = page.text(0, 0.97, "", va="top", family="monospace", fontsize=12.5, linespacing=1.5)

    def draw(prompt: str, temperature: float, top_k: str, top_p: float) -> Draw:
        k = None if top_k == "all" else int(top_k)
        ids = vocabulary.encode(prompt)[None]  # (1, T)
        logits = model.forward(ids)[0][0, -1]  # (V,)
        written = model.generate(ids, WRITTEN, np.random.default_rng(8), temperature, k, top_p)
        drawn = models.distribution(logits, temperature, k, top_p)
        return Draw(ops.softmax(logits), drawn, read(vocabulary, written[0]))

    def update(prompt: str, temperature: float, top_k: str, top_p: float) -> str:
        usable = "".join(c for c in prompt if c in vocabulary.characters)
        unknown = "".join(sorted(set(prompt) - set(usable)))
        now = draw(usable or vocabulary.characters[0], round(temperature, 2), top_k, round(top_p, 2))
        likeliest = np.argsort(-now.model, kind="stable")[:SHOWN]
        labels = [name_of(vocabulary, int(i)) for i in likeliest]
        for bar, name, label, i in zip(bars, names, labels, likeliest, strict=False):
            bar.set_width(now.drawn[i])
            name.set_text(drawable({"an end": "∎", "space": "␣", "line end": "⏎"}.get(label, label)))
        dots.set_data(now.model[likeliest], rows[: len(likeliest)])
        possible = int((now.drawn > 0).sum())
        words = words_in(now.text)
        first = "Greedy: the likeliest" if temperature == 0 else f"{possible} of {len(now.drawn)} can be drawn"
        finding = f"{len(words)} word{'s' * (len(words) != 1)}, {len(set(words))} of them different"
        if unknown:  # what it has never read it can't go on from
            finding += f" (left out: {unknown[:8]})"
        chart.set_title(first)
        page.set_title(drawable(finding))
        body.set_text(as_lines(now.text))
        top = zip(labels[:5], likeliest, strict=False)
        listed = ", ".join(f"{label} {now.drawn[i]:.2f} ({now.model[i]:.2f})" for label, i in top)
        return (
            f"Temperature {temperature:.1f}, top-k {top_k}, top-p {top_p:.2f}. {first}; next character, drawn from "
            f"(model at τ = 1): {listed}. {finding}. The text: {' '.join(now.text.split())}"
        )

    return update


def name_of(vocabulary: tasks.Vocabulary, id_: int) -> str:
    """A character that can be seen."""
    text = vocabulary.decode(np.array([id_]))
    return {"": "an end", " ": "space", "\n": "line end"}.get(text, text)


def as_lines(text: str) -> str:
    """A text for a monospaced page: its line ends as ⏎, runs of blanks as one."""
    text = " ".join(text.replace("\n", "⏎ ").split())
    return drawable("\n".join(textwrap.wrap(text, LINE)))


def drawable(text: str) -> str:
    """What the figures' font has no letter for becomes □; and `$` begins no formula."""
    letters = _letters()
    return "".join(c if c == "\n" or ord(c) in letters else "□" for c in text).replace("$", r"\$")


@cache
def _letters() -> frozenset[int]:
    from matplotlib import font_manager

    return frozenset(font_manager.get_font(font_manager.findfont("DejaVu Sans Mono")).get_charmap())


# --- The key–value cache ---------------------------------------------------------------------------------------------


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
    """Generate with and without the cache, with a model of the notebook's size, untrained, and room for all."""
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
                if time.perf_counter() - start > 5:  # in a browser, one turn has to do
                    break
            (_, a), (_, b) = turns[0]
            cached, uncached = (min(turn[side][0] for turn in turns) for side in (0, 1))
            rows.append(Timing(length, cached, uncached, bool((a == b).all())))
    return rows


@plots.still(7.0, 3.7)
def cache_plot(figure: "Figure", timings: Sequence[Timing]) -> str:
    """How many times as fast generation is with the cache, by length."""
    last = timings[-1]
    finding = f"{last.length} characters: about {last.ratio:.0f} times as fast with the cache"
    lengths, ratios = [t.length for t in timings], [t.ratio for t in timings]
    ax = figure.add_subplot(xlabel="characters generated", ylabel="time without / time with")
    ax.axhline(1, color=plots.GREY, lw=1, ls=":")
    ax.plot(lengths, ratios, "o-", color=plots.BLUE)
    ax.set_xscale("log", base=2)
    ax.set_xticks(lengths, [str(n) for n in lengths])
    ax.set_ylim(0, 1.15 * max(ratios))
    ax.set_title(finding)
    listed = ", ".join(f"{t.length}: {t.ratio:.1f}" for t in timings)
    return f"{finding}, in one run. Ratio by length: {listed}."
