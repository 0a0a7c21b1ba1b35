"""Notebook 07 calls these names as `lab.name`."""

from lesson_utils.lessons.efficient_attention.bill import (
    bill_lab,
    clock_table,
    compared,
    measure,
    measured_bill,
    seconds,
)
from lesson_utils.lessons.efficient_attention.cache import cache_lab, directions_table, savings_table
from lesson_utils.lessons.efficient_attention.choose import choose_lab
from lesson_utils.lessons.efficient_attention.decoding import most_likely, price, price_plot, speculate
from lesson_utils.lessons.efficient_attention.memory import memory_lab, recall_table
from lesson_utils.lessons.efficient_attention.reach import (
    best_keys,
    perplexity,
    sink_table,
    window_attention,
    window_lab,
    window_table,
)
from lesson_utils.lessons.efficient_attention.roofline import measured_roofline, roofline
from lesson_utils.lessons.efficient_attention.rounding import round_lab
from lesson_utils.lessons.efficient_attention.tiles import attend_in_tiles, tiles_lab
from lesson_utils.lessons.efficient_attention.ways import four_ways, measured_ways
