"""Notebook 06: how to train on the future without looking at it."""

from lesson_utils.classroom.claims import as_timed, as_written
from lesson_utils.lessons.causal_mask.caching import Timing, cache_lab, cache_times
from lesson_utils.lessons.causal_mask.capstone import Parameters, compared, in_double, parameters
from lesson_utils.lessons.causal_mask.heads import looks_lab, maps_of, reach
from lesson_utils.lessons.causal_mask.leaks import (
    KINDS,
    Peeking,
    allowed,
    leak,
    leak_lab,
    maps,
    masked_weights,
    weights_table,
)
from lesson_utils.lessons.causal_mask.watched import (
    Watch,
    bigram_entropy,
    bits,
    characters,
    known_words,
    loss_plot,
    read,
    read_along,
    triangle,
    unsure,
    word_shares,
    words_in,
    writes,
)
from lesson_utils.lessons.causal_mask.writing import LINE, laid_out, sampling_lab, write_on

__all__ = [
    "KINDS",
    "LINE",
    "Parameters",
    "Peeking",
    "Timing",
    "Watch",
    "allowed",
    "as_timed",
    "as_written",
    "bigram_entropy",
    "bits",
    "cache_lab",
    "cache_times",
    "characters",
    "compared",
    "in_double",
    "known_words",
    "laid_out",
    "leak",
    "leak_lab",
    "looks_lab",
    "loss_plot",
    "maps",
    "maps_of",
    "masked_weights",
    "parameters",
    "reach",
    "read",
    "read_along",
    "sampling_lab",
    "triangle",
    "unsure",
    "weights_table",
    "word_shares",
    "words_in",
    "write_on",
    "writes",
]
