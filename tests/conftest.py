import sys

import hypothesis
import numpy as np
import pytest

# The same examples on every machine: a test that fails here fails everywhere.
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.load_profile("course")


# These make environments, or the site, for minutes; they run when asked for.
asked_for = " ".join(sys.argv).replace("\\", "/")
collect_ignore = [folder for folder in ("platforms", "site") if f"tests/{folder}" not in asked_for]


@pytest.fixture
def rng():
    return np.random.default_rng(1706)
