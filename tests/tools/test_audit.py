"""`python -m tools.audit`: what npm says is read, and what has been judged is left out."""

import json
import subprocess

import pytest

from tools import audit

WEAKNESS = {
    "source": 1,
    "name": "ws",
    "title": "It may be kept busy",
    "url": "https://github.com/advisories/GHSA-aaaa-bbbb-cccc",
    "severity": "high",
    "range": "<8.17.1",
}
REPORT = {"vulnerabilities": {"ws": {"via": [WEAKNESS]}, "pyodide": {"via": ["ws"]}}}  # pyodide has it from ws


def test_a_weakness_is_one_line_until_it_is_judged(monkeypatch):
    assert audit.weaknesses({"vulnerabilities": {}}) == []
    (line,) = audit.weaknesses(REPORT)
    assert line == "ws <8.17.1: It may be kept busy (https://github.com/advisories/GHSA-aaaa-bbbb-cccc)"
    monkeypatch.setitem(audit.JUDGED, "GHSA-aaaa-bbbb-cccc", "the site has no server")
    assert audit.weaknesses(REPORT) == []


def test_no_answer_is_no_good_news():
    with pytest.raises(ValueError, match=r"npm could not look anything up: audit endpoint returned an error"):
        audit.weaknesses({"message": "audit endpoint returned an error"})


@pytest.mark.parametrize(
    ("python", "report", "code"), [(0, {"vulnerabilities": {}}, 0), (1, REPORT, 1), (0, REPORT, 1)]
)
def test_both_are_looked_up_and_either_fails(python, report, code, monkeypatch, capsys):
    asked = []

    def run(command, **options):
        asked.append(" ".join(command[:2]))
        return subprocess.CompletedProcess(command, 1, stdout=json.dumps(report))

    monkeypatch.setattr(subprocess, "call", lambda command: asked.append(command[2]) or python)
    monkeypatch.setattr(subprocess, "run", run)
    assert audit.main() == code
    assert asked == ["pip_audit", "npm install", "npm audit"]
    assert ("ws <8.17.1" if report is REPORT else "no weakness in mathjax@") in capsys.readouterr().out
