"""Notebook 03 calls these names as `lab.name`."""

from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.circle import circle_lab
from lesson_utils.lessons.multi_head.drawings import heads_drawn, named_entries, scrambled, split_lab
from lesson_utils.lessons.multi_head.experiment import OFFSETS, SYMBOLS, examine, scramble
from lesson_utils.lessons.multi_head.figures import (
    accuracy_plot,
    digits,
    heads_lab,
    one_head_blurs,
    one_head_lab,
    removal_plot,
)
