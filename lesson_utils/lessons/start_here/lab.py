"""Notebook 00 calls these names as `lab.name`."""

from lesson_utils.lessons.start_here.first_look import first_look, moving_it
