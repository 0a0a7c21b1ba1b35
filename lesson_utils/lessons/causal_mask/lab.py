"""Notebook 06 calls these names as `lab.name`."""

from lesson_utils.lessons.causal_mask.caching import cache_lab, cache_times
from lesson_utils.lessons.causal_mask.capstone import in_double, parameters
from lesson_utils.lessons.causal_mask.contexts import by_context, context_plot, mixed_bits
from lesson_utils.lessons.causal_mask.counting import count, print_tables
from lesson_utils.lessons.causal_mask.heads import looks_lab, maps_of, reach
from lesson_utils.lessons.causal_mask.influence import influence, influence_plot
from lesson_utils.lessons.causal_mask.ladder import climb, ladder_plot, trained_gpt
from lesson_utils.lessons.causal_mask.leaks import KINDS, Peeking, allowed, leak, leak_lab, maps, weights_table
from lesson_utils.lessons.causal_mask.watched import (
    Watch,
    bigram_entropy,
    bits,
    known_words,
    read,
    read_along,
    triangle,
    unsure,
    window_bits,
    windows,
    word_shares,
    writes,
)
from lesson_utils.lessons.causal_mask.writing import sampling_lab
