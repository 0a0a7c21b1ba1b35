"""Notebook 02 calls these names as `lab.name`."""

from lesson_utils.lessons.scaled_attention.averages import three_scores, weighted_average
from lesson_utils.lessons.scaled_attention.bank import SENTENCES, bank_lab, embed
from lesson_utils.lessons.scaled_attention.formula import formula_lab
from lesson_utils.lessons.scaled_attention.soft_lookup import FILM_KEYS, FILM_MINUTES, FILMS, film_lab
from lesson_utils.lessons.scaled_attention.variance import fan, raw_scores, scaling_lab, shouting, softmax_health
