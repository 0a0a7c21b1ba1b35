"""Training: optimizers, learning-rate schedules, the loop.

A model is whatever is `Trainable`: it has `params()`, and `loss_and_grad(batch, rng)` returns a loss and adds its
gradient to each `Param.grad`.
"""

from lesson_utils.maths.machine import single_thread
from lesson_utils.maths.training.loop import History, Stopped, Trainable, fit, stopped
from lesson_utils.maths.training.optimizers import SGD, Adam, Optimizer, clip_gradients
from lesson_utils.maths.training.schedules import warmup_linear
