"""Notebook 10 calls these names as `lab.name`."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.debugging import broken
from lesson_utils.lessons.debugging.casefile import case_lab, examine, gauges, table
from lesson_utils.lessons.debugging.cases import reveal
from lesson_utils.lessons.debugging.matrix import matrix_lab
from lesson_utils.lessons.debugging.symptoms import symptoms_lab
from lesson_utils.lessons.debugging.tried import stored as tried
