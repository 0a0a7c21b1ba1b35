"""A version stands in one place, and everything that names it agrees before it is released."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

import lesson_utils
from tools import release

ROOT = release.ROOT
FILES = ("lesson_utils/__init__.py", "docs/changelog.md", "CITATION.cff", "README.md")


@pytest.fixture
def copy(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_this_version_is_ready():
    assert release.version() == lesson_utils.__version__
    assert release.problems(f"v{lesson_utils.__version__}") == []
    assert re.match(r"\S.+\S\n", release.news()[2])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"version = {{{lesson_utils.__version__}}}" in readme


def test_what_does_not_agree_is_named(copy):
    edit(copy / FILES[0], lesson_utils.__version__, "9.8.7")
    edit(copy / FILES[1], f" · {release.news()[1]}", " · soon")
    said = "\n".join(release.problems(f"v{lesson_utils.__version__}", copy))
    assert "it must be v9.8.7" in said
    assert "write what is new in 9.8.7 above it" in said
    assert "write the day" in said
    assert "CITATION.cff has another version" in said
    assert "README.md has another version" in said


def test_save_writes_version_and_day(copy):
    edit(copy / FILES[0], lesson_utils.__version__, "9.8.7")
    edit(copy / FILES[1], f"## {lesson_utils.__version__} · ", "## 9.8.7 · 2030-01-02\n\nNews.\n\n## 1.0.0 · ")
    for name in FILES[2:]:
        text = (copy / name).read_text(encoding="utf-8")
        (copy / name).write_text(release.with_version(text, copy), encoding="utf-8")
    cited = yaml.safe_load((copy / FILES[2]).read_text(encoding="utf-8"))
    assert (cited["version"], str(cited["date-released"])) == ("9.8.7", "2030-01-02")
    assert release.problems("v9.8.7", copy) == []
    assert release.news(copy)[2] == "News.\n"


def test_the_security_page_lists_what_the_jail_is_tried_for():
    """Each attempt of tools/teacher/jail.py, in words."""
    jail = (ROOT / "tools/teacher/jail.py").read_text(encoding="utf-8")
    page = Path(ROOT / ".github/SECURITY.md").read_text(encoding="utf-8")
    attempts = re.findall(r'attempt\("(.+?)"', jail)
    assert len(attempts) == 4
    for words in ("to read a file of yours, or to write into one", "to write into the course"):
        assert words in page
    for words in ("to connect to a server", "your processes", "your network", "your disks", "your environment"):
        assert words in page
