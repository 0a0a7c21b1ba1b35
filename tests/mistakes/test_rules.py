"""Each rule about what a learner may have meant earns its place: without it, an answer of the bank goes wrong."""

import re

import pytest
from blind_answers import BLIND
from learners import verdict

from lesson_utils.mistakes.recognise import plausibility, search

ANSWERS = {f"{answer.exercise}: {answer.name}": answer for answer in BLIND}
TABLES = ((plausibility, "RULES"), (search, "BESIDE"))
RULES = [(module, table, rule) for module, table in TABLES for rule in getattr(module, table) if rule.needed_by]


def goes_wrong(answer):
    message = verdict(answer).message
    missing = [pattern for pattern in answer.says if not re.search(pattern, message)]
    return missing + [pattern for pattern in answer.never if re.search(pattern, message)]


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize(("module", "table", "rule"), RULES, ids=[rule.why for *_, rule in RULES])
def test_without_the_rule_an_answer_goes_wrong(module, table, rule, monkeypatch):
    answer = ANSWERS[rule.needed_by]
    assert not goes_wrong(answer)
    monkeypatch.setattr(module, table, tuple(other for other in getattr(module, table) if other is not rule))
    assert goes_wrong(answer)
