"""The task of dates: from the way people write a date to the way computers do."""

import functools
import string
from collections.abc import Sequence
from datetime import date

import numpy as np

from lesson_utils.maths.checks import Ids, as_size
from lesson_utils.maths.tasks.vocabulary import PAD, Vocabulary, pad, with_ends

# Not from Python's own formats: the names these give depend on the language of the machine.
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
FIRST_DAY, LAST_DAY = date(1950, 1, 1), date(2049, 12, 31)
DATE_STYLES = ("3 March 2021", "March 3, 2021", "3/3/2021", "Wed 3 Mar 2021")  # with a slash, the day comes first

WRITTEN = Vocabulary(sorted(set("".join(MONTHS + WEEKDAYS) + string.digits + " ,/")))
ISO = Vocabulary("-" + string.digits)


def held_out(day: date) -> bool:
    """Return True for every 10th day, which is kept for testing in whatever style it is written."""
    return day.toordinal() % 10 == 0


def write_date(day: date, style: int) -> str:
    """Write a date in one of the four `DATE_STYLES`, 0…3."""
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    if as_size(style, "style", minimum=0) >= len(DATE_STYLES):
        raise ValueError(f"style={style} must be one of 0…{len(DATE_STYLES) - 1}, for {', '.join(DATE_STYLES)}")
    return (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day}/{day.month}/{day.year}",
        f"{weekday} {day.day} {month[:3]} {day.year}",
    )[style]


def date_pairs(rng: np.random.Generator, batch: int, held_out: bool = False) -> list[tuple[str, str]]:
    """Draw pairs of strings: ("3 March 2021", "2021-03-03").

    Args:
        held_out: draw from the days that are never trained on, or (default) only from the others.
    """
    days = [date.fromordinal(n) for n in rng.choice(_ordinals(held_out), as_size(batch, "batch")).tolist()]
    styles = rng.integers(len(DATE_STYLES), size=len(days)).tolist()
    return [(write_date(day, style), day.isoformat()) for day, style in zip(days, styles, strict=True)]


def encode_dates(pairs: Sequence[tuple[str, str]]) -> tuple[Ids, Ids, Ids]:
    """Encode pairs as a batch: source (B, T), padded; its lengths (B,); target (B, 12), with begin and end."""
    source, lengths = pad([WRITTEN.encode(written) for written, _ in pairs], PAD)
    return source, lengths, with_ends(np.stack([ISO.encode(iso) for _, iso in pairs]))


def dates(rng: np.random.Generator, batch: int, held_out: bool = False) -> tuple[Ids, Ids, Ids]:
    """Draw a batch of dates as people write them, and as computers do: "March 3, 2021" → "2021-03-03".

    Args:
        held_out: draw from the days that are never trained on, or (default) only from the others.

    Returns:
        source (B, T), padded, to be read with `WRITTEN.decode`; its lengths (B,); target (B, 12), with begin and
        end, to be read with `ISO.decode`.
    """
    return encode_dates(date_pairs(rng, batch, held_out))


@functools.cache
def _ordinals(held: bool) -> Ids:
    """Return the days that are held out, or all others, as Python numbers them."""
    every_day = range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1)
    return np.array([n for n in every_day if held_out(date.fromordinal(n)) == held])
