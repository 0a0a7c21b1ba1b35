"""Notebook 10: it runs. Is it right?"""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.debugging import broken, instruments
from lesson_utils.lessons.debugging.casefile import case_lab, characters, examine, gauges, table
from lesson_utils.lessons.debugging.cases import reveal
from lesson_utils.lessons.debugging.matrix import blind, found, matrix_lab, shares
from lesson_utils.lessons.debugging.symptoms import symptoms_lab
from lesson_utils.lessons.debugging.tried import stored as tried

__all__ = [
    "as_written",
    "blind",
    "broken",
    "case_lab",
    "characters",
    "examine",
    "found",
    "gauges",
    "instruments",
    "matrix_lab",
    "reveal",
    "shares",
    "symptoms_lab",
    "table",
    "tried",
]
