"""Notebook 09 calls these names as `lab.name`."""

from lesson_utils.lessons.real_model.breaking import damage_plot, knock_out_lab, prune_plot, prune_table, without
from lesson_utils.lessons.real_model.changes import changes_plot, changes_table, five_changes, train_again
from lesson_utils.lessons.real_model.chatting import answer, chat, load, pieces, seconds_a_token, writes
from lesson_utils.lessons.real_model.direct import copies_table, who_writes, writes_plot
from lesson_utils.lessons.real_model.finding import census, census_lab, heads_above
from lesson_utils.lessons.real_model.forgetting import divisor_plot, forget_lab, windows_plot
from lesson_utils.lessons.real_model.grow import by_hand, copied, grow, repeats
from lesson_utils.lessons.real_model.growing import (
    chain_drawn,
    grow_lab,
    positions_plot,
    trap_plot,
    without_table,
)
from lesson_utils.lessons.real_model.inside import effect_plot, hidden_table, hiding_plot, sink_plot
from lesson_utils.lessons.real_model.lens import lens_lab
from lesson_utils.lessons.real_model.own import runs_on
from lesson_utils.lessons.real_model.recall import names_plot, recalls, word_list
from lesson_utils.lessons.real_model.stored import stored
from lesson_utils.lessons.real_model.wires import cut, cut_real, moved_table, passages_table, wire_lab, wire_table
