"""Mutation testing of a learner's test: it passes the right function, and how many wrong ones does it find?

The idea is DeMillo, Lipton and Sayward's ("Hints on test data selection", 1978): change a right program in one place, and a
good test fails. A changed program is a mutant; one that the test lets pass is a survivor, and shows what the test does not
look at. Here the mutants are the mistakes that the exercise knows (`mutants`). `analysis.judge_test` runs the test on each.
"""
