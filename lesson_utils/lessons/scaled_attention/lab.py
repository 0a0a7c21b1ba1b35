"""Notebook 02: what softmax(QKᵀ/√d_k)V does, and why the √d_k. Here is all that it calls `lab.`."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.scaled_attention.averages import three_scores, weighted_average
from lesson_utils.lessons.scaled_attention.bank import SENTENCES, bank_lab, embed
from lesson_utils.lessons.scaled_attention.film import FILM_KEYS, FILM_MINUTES, film_lab
from lesson_utils.lessons.scaled_attention.formula import formula_lab
from lesson_utils.lessons.scaled_attention.variance import fan, raw_scores, scaling_lab, shouting, softmax_health

__all__ = [
    "FILM_KEYS",
    "FILM_MINUTES",
    "SENTENCES",
    "as_written",
    "bank_lab",
    "embed",
    "fan",
    "film_lab",
    "formula_lab",
    "raw_scores",
    "scaling_lab",
    "shouting",
    "softmax_health",
    "three_scores",
    "weighted_average",
]
