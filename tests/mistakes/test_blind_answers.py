"""No answer that once misled the checker misleads it again: it is told what it must be, and nothing that is not so."""

import re

import pytest
from blind_answers import BLIND
from learners import verdict

NO_REASON = r"would be right|should do what|step is missing above|another result each time"


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("answer", BLIND, ids=lambda a: f"{a.exercise}: {a.name}")
def test_nothing_misleads(answer):
    result = verdict(answer)
    assert result.passed is False
    for pattern in answer.says:
        assert re.search(pattern, result.message), result.message
    for pattern in (*answer.never, NO_REASON):
        assert not re.search(pattern, result.message), result.message
