"""Notebook 08 calls these names as `lab.name`."""

from lesson_utils.lessons.training.beside import OwnAdam, backward_by, beside
from lesson_utils.lessons.training.experiment import (
    FORMS,
    aligned,
    batches,
    exact,
    exact_as,
    rungs,
    training_days,
    transformer,
    translate,
)
from lesson_utils.lessons.training.film import Camera, curve, film_lab, late_table
from lesson_utils.lessons.training.pruning import heads_map, sums_plot
from lesson_utils.lessons.training.recipes import blind_table, clip_table, schedules_plot, stored, today_table
from lesson_utils.lessons.training.slopes import slope_lab
from lesson_utils.lessons.training.survival import larger_table, starts, survival_lab
