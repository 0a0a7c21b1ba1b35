"""Notebook 01 calls these names as `lab.name`."""

from lesson_utils.lessons.bottleneck.experiment import (
    accuracy,
    answer,
    fit,
    kept,
    reach,
    untrained,
    with_doubles,
)
from lesson_utils.lessons.bottleneck.figures import (
    CAPACITY,
    CAPACITY_LENGTHS,
    TRAINED_ON_REPEATS,
    accuracy_plot,
    capacity_lab,
    kept_plot,
)
from lesson_utils.lessons.bottleneck.gradients import gradient_lab, gradient_norms, new_cell, vanish_or_explode
from lesson_utils.lessons.bottleneck.maps import looks_and_causes, one_off
from lesson_utils.lessons.bottleneck.networks import one_vector
from lesson_utils.lessons.bottleneck.runs import (
    KEPT_OF_16,
    LONGER,
    ONE_LETTER_LATE,
    PASSED_ON,
    TIMES_ASKED,
    memory_plot,
)
from lesson_utils.lessons.bottleneck.scores import SMALL, learning_lab, small_maps, small_model
from lesson_utils.lessons.bottleneck.translation import before_and_after, sentence
from lesson_utils.lessons.bottleneck.words import word_lab
from lesson_utils.lessons.bottleneck.yours import with_look_back
