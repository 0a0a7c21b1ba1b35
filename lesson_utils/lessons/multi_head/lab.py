"""Notebook 03: why eight small looks instead of one big one."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.circle import circle_lab, score_needed, spread_keys
from lesson_utils.lessons.multi_head.drawings import heads_drawn, named_entries, scrambled, split_lab
from lesson_utils.lessons.multi_head.experiment import (
    OFFSETS,
    SYMBOLS,
    Result,
    by_offset,
    diversity,
    examine,
    held_out,
    main_offset,
    scramble,
)
from lesson_utils.lessons.multi_head.figures import (
    accuracy_plot,
    digits,
    heads_lab,
    one_head_blurs,
    one_head_lab,
    removal_plot,
)

__all__ = [
    "OFFSETS",
    "SYMBOLS",
    "Result",
    "accuracy_plot",
    "as_written",
    "by_offset",
    "circle_lab",
    "digits",
    "diversity",
    "examine",
    "heads_drawn",
    "heads_lab",
    "held_out",
    "main_offset",
    "named_entries",
    "one_head_blurs",
    "one_head_lab",
    "removal_plot",
    "score_needed",
    "scramble",
    "scrambled",
    "signed",
    "split_lab",
    "spread_keys",
]
