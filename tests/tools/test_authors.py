"""Authors are named once, and stand in the citation, the package and the paper."""

import shutil
import tomllib

import pytest
import yaml

from tools import authors

FILES = ("CITATION.cff", "pyproject.toml", "README.md", "docs/paper/paper.md")


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "docs/paper").mkdir(parents=True)
    for name in FILES:
        shutil.copy(authors.ROOT / name, tmp_path / name)
    return tmp_path


def test_authors_are_written_wherever_they_stand(copy):
    ada, oscar = "Ada King Lovelace; 0000-0002-1825-0097; A: university", "Oscar O'Neil;; A: university"
    authors.write(["Ada"], copy)
    assert "given-names" not in (copy / "CITATION.cff").read_text(encoding="utf-8"), "none, where there is one word"
    for written in ([ada], [ada, oscar]):  # again, and more of them
        authors.write(written, copy)
    cited = yaml.safe_load((copy / "CITATION.cff").read_text(encoding="utf-8"))["authors"]
    assert cited[0]["orcid"] == "https://orcid.org/0000-0002-1825-0097"
    assert (cited[1]["given-names"], cited[1]["family-names"], cited[1]["affiliation"]) == (
        "Oscar",
        "O'Neil",
        "A: university",
    )
    head, _, body = (
        (copy / "docs/paper/paper.md").read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    )
    paper = yaml.safe_load(head)
    assert paper["authors"][0] == {"name": "Ada King Lovelace", "affiliation": 1, "orcid": "0000-0002-1825-0097"}
    assert paper["affiliations"] == [{"name": "A: university", "index": 1}]
    assert body.startswith("\n# Summary")
    assert authors.names(copy) == ["Ada King Lovelace", "Oscar O'Neil"]
    assert "  author = {Ada King Lovelace and Oscar O'Neil},\n" in (copy / "README.md").read_text(encoding="utf-8")
    assert tomllib.loads((copy / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == "lesson-utils"


@pytest.mark.parametrize("wrong", ["", "; 0000-0002-1825-0097", "Ada Lovelace; 1825", "Ada; ; b; c"])
def test_what_is_no_author_is_refused(copy, wrong):
    with pytest.raises(ValueError, match="is not an author; write a name, and behind semicolons"):
        authors.write([wrong], copy)
    assert (copy / "CITATION.cff").read_bytes() == (authors.ROOT / "CITATION.cff").read_bytes()


def test_until_then_the_files_agree():
    readme = (authors.ROOT / "README.md").read_text(encoding="utf-8")
    assert f"  author = {{{authors.bibtex(authors.names())}}},\n" in readme
