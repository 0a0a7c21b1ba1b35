"""Recognise a mistake: search a fault dictionary, and edit the learner's own syntax tree.

`search` has the table of stages. `fault_bank` is the dictionary, and `lookup` looks into it; `tree_edits` walks the
learner's tree and applies `mutation_operators` to it, with `ingredients` borrowed from the solution; `plausibility` ranks
edits, and `edit_messages` puts them into words.
"""
