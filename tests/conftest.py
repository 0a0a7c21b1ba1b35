import hypothesis
import numpy as np
import pytest

# The same examples on every machine: a test that fails here fails everywhere.
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.load_profile("course")


@pytest.fixture
def rng():
    return np.random.default_rng(1706)
