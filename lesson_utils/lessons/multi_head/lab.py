"""Notebook 03 calls these names as `lab.name`."""

from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.circle import circle_lab
from lesson_utils.lessons.multi_head.drawings import heads_drawn, named_entries, scrambled, split_lab
from lesson_utils.lessons.multi_head.experiment import (
    OFFSETS,
    SYMBOLS,
    examine,
    scramble,
    share_on_task,
    survey,
    widths,
)
from lesson_utils.lessons.multi_head.figures import accuracy_plot, head_jobs, one_head_blurs, removals
from lesson_utils.lessons.multi_head.further import circuits, digits, tasks_plot
from lesson_utils.lessons.multi_head.live_maps import heads_lab, one_head_lab, width_lab
