"""Notebook 08: does it really work?"""

from lesson_utils.classroom.claims import as_written
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
from lesson_utils.lessons.training.survival import claims_of_rates, larger_table, means, starts, survival_lab, survivors

__all__ = [
    "Camera",
    "aligned",
    "as_written",
    "batches",
    "by_importance",
    "claims_of_rates",
    "dates_of",
    "exact",
    "film_lab",
    "heads_map",
    "larger_table",
    "means",
    "predicted",
    "prune_plot",
    "rungs",
    "slope_lab",
    "starts",
    "survival_lab",
    "survivors",
    "transformer",
    "translate",
    "without",
]
