"""Recognise a mistake: search a fault dictionary, and edit the learner's own syntax tree."""
