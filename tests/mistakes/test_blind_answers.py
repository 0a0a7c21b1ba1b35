"""No answer that once misled the checker misleads it again: it is told what it must be, and nothing that is not so."""

import re
from collections import Counter

import pytest
from blind_answers import BLIND
from learners import EXERCISES, verdict

NO_REASON = r"would be right|should do what|step is missing above|another result each time"
ANSWERS = [
    pytest.param(answer, id=f"{answer.exercise}: {answer.name}", marks=[pytest.mark.own_job] if answer.weekly else [])
    for answer in BLIND
]


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("answer", ANSWERS)
def test_nothing_misleads(answer):
    result = verdict(answer)
    assert result.passed is False
    for pattern in answer.says:
        assert re.search(pattern, result.message), result.message
    for pattern in (*answer.never, NO_REASON):
        assert not re.search(pattern, result.message), result.message


def test_the_bank_can_be_read():
    """Each answer is of an exercise, and says what the message must, or must not, say; none is there twice."""
    assert {answer.exercise for answer in BLIND} <= set(EXERCISES)
    assert all(answer.body.strip() and (answer.says or answer.never) for answer in BLIND)
    assert max(Counter((answer.exercise, answer.name) for answer in BLIND).values()) == 1
    assert max(Counter((answer.exercise, answer.body) for answer in BLIND).values()) == 1
