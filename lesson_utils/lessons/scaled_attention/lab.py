"""Notebook 02 calls these names as `lab.name`."""

from lesson_utils.lessons.scaled_attention.bank import bank_lab, embed
from lesson_utils.lessons.scaled_attention.both import crossed, examine, root_or_smaller_steps, with_and_without
from lesson_utils.lessons.scaled_attention.formula import formula_lab
from lesson_utils.lessons.scaled_attention.soft_lookup import FILM_KEYS, FILM_MINUTES, FILMS, film_lab
from lesson_utils.lessons.scaled_attention.symmetry import three_scores
from lesson_utils.lessons.scaled_attention.variance import NUM_KEYS, fan, looks, raw_scores, slope_lab
