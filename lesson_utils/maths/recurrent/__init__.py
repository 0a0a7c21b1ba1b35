"""Recurrent networks: `cells` is one step of an RNN, GRU or LSTM; `through_time` unrolls it, and back."""

from lesson_utils.maths.recurrent.cells import CELLS, gru_cell, init_params, lstm_cell, rnn_cell
from lesson_utils.maths.recurrent.through_time import (
    Recurrent,
    gradient_norms_through_time,
    recurrence_backward,
    recurrence_forward,
    unroll_backward,
    unroll_forward,
)
