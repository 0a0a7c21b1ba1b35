"""Notebook 10 calls these names as `lab.name`."""

from lesson_utils.lessons.debugging import broken
from lesson_utils.lessons.debugging.casefile import case_lab, examine, healthy, lines, page, patient, twin
from lesson_utils.lessons.debugging.cases import diagnoses, reveal
from lesson_utils.lessons.debugging.matrix import matrix_lab
from lesson_utils.lessons.debugging.mended import treat
from lesson_utils.lessons.debugging.net import net
from lesson_utils.lessons.debugging.ports import port, rounding, streams
from lesson_utils.lessons.debugging.symptoms import symptoms_lab
from lesson_utils.lessons.debugging.tried import stored as tried
from lesson_utils.lessons.debugging.tried import ways
