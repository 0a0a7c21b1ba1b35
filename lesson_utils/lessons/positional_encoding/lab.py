"""Notebook 04: how a set becomes a sequence."""

from lesson_utils.lessons import as_written
from lesson_utils.lessons.positional_encoding.lengths import *
from lesson_utils.lessons.positional_encoding.table import *
