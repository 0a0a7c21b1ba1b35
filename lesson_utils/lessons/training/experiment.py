"""The experiment of notebook 08: written dates to ISO dates, what guessing would reach, and how a model is judged."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Any

import numpy as np

from lesson_utils.maths import models, tasks
from lesson_utils.maths.checks import Ids
from lesson_utils.maths.tasks import written_dates

LENGTH = 11  # symbols to predict: ten characters, and the end
Batch = tuple[Ids, Ids]
KnockOut = Mapping[str, Mapping[int, Collection[int]]]  # place -> layer -> heads


def transformer(seed: int = 0, **choices: Any) -> models.Transformer:
    """Make a small encoder–decoder for dates: d_model 32, 4 heads, 1 + 1 layers, unless `choices` say otherwise."""
    sizes: dict[str, Any] = {"d_model": 32, "num_heads": 4, "num_layers": 1} | choices
    config = models.TransformerConfig(vocab=len(tasks.WRITTEN), target_vocab=len(tasks.ISO), **sizes)
    return models.Transformer(config, np.random.default_rng(seed))


def batches(rng: np.random.Generator, batch: int = 64) -> Batch:
    """Make a batch for `training.fit`: written dates (B, S), ISO dates with begin and end (B, 12); no held-out day."""
    source, _, target = tasks.dates(rng, batch)
    return source, target


@cache
def dates_of(held_out: bool = True, n: int = 500, styles: tuple[int, ...] = (0, 1, 2, 3)) -> Batch:
    """Make the same batch of dates each time: days never trained on, or others; in some of the `tasks.DATE_STYLES`."""
    rng = np.random.default_rng(99)
    days = [date.fromisoformat(iso) for _, iso in tasks.date_pairs(rng, n, held_out)]
    drawn = rng.choice(styles, n).tolist()
    pairs = [(tasks.write_date(day, style), day.isoformat()) for day, style in zip(days, drawn, strict=True)]
    source, _, target = tasks.encode_dates(pairs)
    return source, target


def predicted(model: models.Transformer, batch: Batch, knock_out: KnockOut | None = None) -> Ids:
    """Return the likeliest symbol at each place of the true target, (B, 11)."""
    with models.trying(model, knock_out):
        logits, _ = model.forward(batch[0], batch[1][:, :-1])
    return np.asarray(logits.argmax(axis=-1))


def exact(model: models.Transformer, batch: Batch | None = None) -> float:
    """Return the share of dates that come out right to the last symbol.

    Where each symbol is the likeliest behind the true ones before it, the model writes the same by itself.
    """
    batch = dates_of() if batch is None else batch
    return float((predicted(model, batch) == batch[1][:, 1:]).all(axis=1).mean())


FORMS: dict[str, Callable[[date], str]] = {  # that no date of the training is written in
    "3 Mar 2021": lambda day: f"{day.day} {_month(day)[:3]} {day.year}",
    "3 March, 2021": lambda day: f"{day.day} {_month(day)}, {day.year}",
    "Mar 3, 2021": lambda day: f"{_month(day)[:3]} {day.day}, {day.year}",
    "Mar 3 2021": lambda day: f"{_month(day)[:3]} {day.day} {day.year}",
    "March 3 2021": lambda day: f"{_month(day)} {day.day} {day.year}",
    "Wed 3 March 2021": lambda day: f"{written_dates.WEEKDAYS[day.weekday()]} {day.day} {_month(day)} {day.year}",
    "03/03/2021": lambda day: f"{day.day:02}/{day.month:02}/{day.year}",
    "2021/3/3": lambda day: f"{day.year}/{day.month}/{day.day}",
}


def _month(day: date) -> str:
    return written_dates.MONTHS[day.month - 1]


def exact_as(model: models.Transformer, form: str, n: int = 300) -> float:
    """Return the share of held-out dates that come out right if they are written in one of `FORMS`."""
    days = [date.fromisoformat(iso) for _, iso in tasks.date_pairs(np.random.default_rng(99), n, held_out=True)]
    source, _, target = tasks.encode_dates([(FORMS[form](day), day.isoformat()) for day in days])
    return exact(model, (source, target))


def translate(model: models.Transformer, written: str) -> str:
    """Return what the model writes for a date."""
    return tasks.ISO.decode(model.decode(tasks.WRITTEN.encode(written)[None], LENGTH)[0])


# --- What guessing reaches -------------------------------------------------------------------------------------------


def training_days() -> int:
    """Count the days that are not held out."""
    first, last = tasks.FIRST_DAY, tasks.LAST_DAY
    return sum(not tasks.held_out(first + timedelta(n)) for n in range((last - first).days + 1))


@cache
def rungs(smoothing: float = 0.0) -> dict[str, float]:
    """Losses, in nats a symbol, of those who guess: all symbols alike, by frequency, by the symbol before, and by
    place and the symbols before. Counted over all days that are not held out.

    smoothing: the guessers were trained with so much label smoothing; the loss itself is without it.
    """
    first, last = tasks.FIRST_DAY, tasks.LAST_DAY
    days = (first + timedelta(n) for n in range((last - first).days + 1))
    target = tasks.with_ends(np.stack([tasks.ISO.encode(d.isoformat()) for d in days if not tasks.held_out(d)]))
    before, wanted = target[:, :-1], target[:, 1:]  # (N, 11) each
    begun = [wanted[:, :place] @ (20 ** np.arange(place, dtype=np.int64)) for place in range(LENGTH)]  # a number each
    return {
        "all alike": float(np.log(len(tasks.ISO))),
        "by symbol": _guess(np.zeros(wanted.size, np.int64), wanted.ravel(), smoothing),
        "by pair": _guess(before.ravel(), wanted.ravel(), smoothing),
        "all before": float(np.mean([_guess(begun[n], wanted[:, n], smoothing) for n in range(LENGTH)])),
    }


def _guess(known: Ids, wanted: Ids, smoothing: float) -> float:
    """Return the loss of a guesser who has counted how often each symbol follows each thing that can be known."""
    _, at, both = np.unique(known * 100 + wanted, return_inverse=True, return_counts=True)
    _, within, alone = np.unique(known, return_inverse=True, return_counts=True)
    p = both[at] / alone[within]
    return float(-np.log((1 - smoothing) * p + smoothing / len(tasks.ISO)).mean())


def aligned(pairs: Sequence[tuple[str, str]]) -> str:
    """Teacher forcing, seen: of each pair the source, what the decoder reads, and what it must say, in line."""
    lines = []
    for written, iso in pairs:
        lines += [
            f"encoder reads   {written}",
            f"decoder reads   ⟨ {' '.join(iso)}",
            f"must say        {' '.join(iso)} ⟩",
            "",
        ]
    return "\n".join(lines[:-1])
