"""Notebook 05 calls these names as `lab.name`."""

from lesson_utils.lessons.full_block.counts import PAPER_ROWS, count_parameters, vocabulary_for
from lesson_utils.lessons.full_block.deep import Watch, reversal_lines, training_plot
from lesson_utils.lessons.full_block.diagram import diagram_lab
from lesson_utils.lessons.full_block.ledger import Ledger, parts
from lesson_utils.lessons.full_block.ledger_figure import ledger_lab
from lesson_utils.lessons.full_block.places import at_start, depth_lab, first_to_last, two_places
from lesson_utils.lessons.full_block.reading import bits, feeding, neurons, neurons_plot
from lesson_utils.lessons.full_block.stream import cosines, likeness, likeness_plot, river, stream_without_norm
from lesson_utils.lessons.full_block.switchboard import (
    SWITCHES,
    measure,
    parts_plot,
    reversal_pairs,
    switchboard_lab,
    without,
)
from lesson_utils.lessons.full_block.wirings import wirings, wirings_plot
