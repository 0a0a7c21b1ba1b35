"""Notebook 11 calls these names as `lab.name`."""

from lesson_utils.lessons.tokens.counting import Table
from lesson_utils.lessons.tokens.cutting import by_hand, merges_lab
from lesson_utils.lessons.tokens.pieces import apply, learn
from lesson_utils.lessons.tokens.spelling import asked_plot, bags, count_letters, counters_plot, words_of
from lesson_utils.lessons.tokens.splitting import ARTICLE, SMOLLM_TOKENS, split, to_bytes
from lesson_utils.lessons.tokens.tables import costs, look_back, measure, seen_before
