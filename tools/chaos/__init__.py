"""Chaos: random walks of a learner who does anything at all (`python -m tools.chaos`)."""
