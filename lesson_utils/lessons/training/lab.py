"""Notebook 08 calls these names as `lab.name`."""

from lesson_utils.lessons.training.beside import train_beside
from lesson_utils.lessons.training.experiment import (
    aligned,
    batches,
    dates_of,
    exact,
    predicted,
    rungs,
    transformer,
    translate,
)
from lesson_utils.lessons.training.film import Camera, film_lab
from lesson_utils.lessons.training.pruning import by_importance, heads_map, prune_plot, without
from lesson_utils.lessons.training.slopes import slope_lab
from lesson_utils.lessons.training.survival import larger_table, starts, survival_lab
