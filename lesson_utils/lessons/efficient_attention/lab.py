"""Notebook 07: what attention costs, and what can be saved. Here is all that it calls `lab.`."""

from lesson_utils.classroom.claims import as_timed, as_written
from lesson_utils.lessons.efficient_attention.bill import *
from lesson_utils.lessons.efficient_attention.cache import *
from lesson_utils.lessons.efficient_attention.decoding import *
from lesson_utils.lessons.efficient_attention.memory import *
from lesson_utils.lessons.efficient_attention.reach import *
from lesson_utils.lessons.efficient_attention.tiles import *
