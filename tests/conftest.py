import sys

import hypothesis
import numpy as np
import pytest

# The same examples on every machine: a test that fails here fails everywhere.
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.load_profile("course")


# These make environments of their own, for minutes; they run when asked for.
collect_ignore = [] if any("platforms" in word for word in sys.argv) else ["platforms"]


@pytest.fixture
def rng():
    return np.random.default_rng(1706)
