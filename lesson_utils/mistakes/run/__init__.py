"""Run a learner's function: on copies, within limits, and with the kernel put back afterwards."""
