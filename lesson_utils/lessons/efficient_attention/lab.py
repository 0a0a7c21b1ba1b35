"""Notebook 07 calls these names as `lab.name`."""

from lesson_utils.lessons.efficient_attention.bill import (
    bill_lab,
    measure,
    measured_bill,
    memory_curve,
    peaks,
    seconds,
    table_1,
    three_numbers,
)
from lesson_utils.lessons.efficient_attention.cache import cache_lab, three_caches, untrained_table
from lesson_utils.lessons.efficient_attention.decoding import most_likely, price, price_plot, speculate
from lesson_utils.lessons.efficient_attention.memory import memory_lab, recall, recall_table
from lesson_utils.lessons.efficient_attention.reach import (
    TEXTS,
    best_keys,
    perplexity,
    reach_lab,
    window_attention,
    window_lab,
)
from lesson_utils.lessons.efficient_attention.tiles import attend_in_tiles, tiles_lab
