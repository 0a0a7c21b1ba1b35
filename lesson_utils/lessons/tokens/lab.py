"""Notebook 11 calls these names as `lab.name`."""

from lesson_utils.lessons.tokens.cutting import by_hand, merges_lab
