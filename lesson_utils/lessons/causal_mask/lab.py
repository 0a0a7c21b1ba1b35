"""Notebook 06: how to train on the future without looking at it."""

from lesson_utils.lessons import as_written
from lesson_utils.lessons.causal_mask.leaks import *
from lesson_utils.lessons.causal_mask.writing import *
