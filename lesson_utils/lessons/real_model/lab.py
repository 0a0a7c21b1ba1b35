"""Notebook 09 calls these names as `lab.name`."""

from lesson_utils.lessons.real_model.breaking import knock_out_lab, prune_lab, without
from lesson_utils.lessons.real_model.changes import changes_plot, changes_table, train_again
from lesson_utils.lessons.real_model.chatting import answer, chat, load, seconds_a_token, writes
from lesson_utils.lessons.real_model.finding import census, census_lab, heads_above
from lesson_utils.lessons.real_model.forgetting import forget_lab, temperature_curve
from lesson_utils.lessons.real_model.grow import by_hand, copied, grow, repeats
from lesson_utils.lessons.real_model.growing import chain_drawn, grow_lab, how_soon, trap_plot
from lesson_utils.lessons.real_model.inside import effect_plot, five_changes, lens_lab, sink_plot
from lesson_utils.lessons.real_model.own import runs_on
from lesson_utils.lessons.real_model.stored import stored
from lesson_utils.lessons.real_model.together import forgets, together_lab
