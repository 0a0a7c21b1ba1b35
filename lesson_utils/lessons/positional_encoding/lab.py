"""Notebook 04: how a set becomes a sequence."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.positional_encoding.lengths import (
    BACK,
    KINDS,
    NAMES,
    RECALL_VOCABULARY,
    SYMBOLS,
    ByPosition,
    Stretches,
    by_position,
    length_plot,
    recall,
    stretch_curves,
    stretch_lab,
    stretch_table,
    stretched,
    stretches,
)
from lesson_utils.lessons.positional_encoding.order import (
    digits_beside_sines,
    equivariance_gap,
    ideas,
    two_sentences,
    verdicts,
)
from lesson_utils.lessons.positional_encoding.rotary import diagonal_spread, rotary_lab, score_maps
from lesson_utils.lessons.positional_encoding.table import (
    clock_lab,
    rotation_drawn,
    similarity,
    similarity_lab,
    table_lab,
)

__all__ = [
    "BACK",
    "KINDS",
    "NAMES",
    "RECALL_VOCABULARY",
    "SYMBOLS",
    "ByPosition",
    "Stretches",
    "as_written",
    "by_position",
    "clock_lab",
    "diagonal_spread",
    "digits_beside_sines",
    "equivariance_gap",
    "ideas",
    "length_plot",
    "recall",
    "rotary_lab",
    "rotation_drawn",
    "score_maps",
    "similarity",
    "similarity_lab",
    "stretch_curves",
    "stretch_lab",
    "stretch_table",
    "stretched",
    "stretches",
    "table_lab",
    "two_sentences",
    "verdicts",
]
