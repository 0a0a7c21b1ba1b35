"""Notebook 04 calls these names as `lab.name`."""

from lesson_utils.lessons.positional_encoding.lengths import (
    BACK,
    KINDS,
    NAMES,
    RECALL_VOCABULARY,
    SYMBOLS,
    by_position,
    length_plot,
    recall,
    stretch_lab,
    stretch_table,
)
from lesson_utils.lessons.positional_encoding.order import (
    digits_beside_sines,
    equivariance_gap,
    ideas,
    two_sentences,
    verdicts,
)
from lesson_utils.lessons.positional_encoding.rotary import rotary_lab, score_by_distance, score_maps
from lesson_utils.lessons.positional_encoding.table import clock_lab, rotation_drawn, similarity_lab, table_lab
from lesson_utils.lessons.positional_encoding.turns import held, turns_lab
