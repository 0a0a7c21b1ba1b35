"""Notebook 05 calls these names as `lab.name`."""

from lesson_utils.lessons.full_block.controls import Untied, scale_sums
from lesson_utils.lessons.full_block.deep import Watch, reversal_lines, start_plot, starved, training_plot
from lesson_utils.lessons.full_block.diagram import diagram_lab
from lesson_utils.lessons.full_block.gpt_map import gpt_lab
from lesson_utils.lessons.full_block.ledger import Ledger, parts
from lesson_utils.lessons.full_block.ledger_figure import ledger_lab
from lesson_utils.lessons.full_block.places import at_start, depth_lab, first_to_last, two_places
from lesson_utils.lessons.full_block.reading import (
    bits,
    every_neuron,
    feeding,
    mean_firing,
    neurons_plot,
    own_share,
    tidiest,
)
from lesson_utils.lessons.full_block.stream import FOUR, cosines, fate, likeness, likeness_plot, river
from lesson_utils.lessons.full_block.switchboard import (
    SWITCHES,
    measure,
    parts_plot,
    random_future,
    reversal_pairs,
    right_without_cache,
    switchboard_lab,
    without,
)
from lesson_utils.lessons.full_block.today import block_of_today
from lesson_utils.lessons.full_block.wirings import wirings, wirings_plot
