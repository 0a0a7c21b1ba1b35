"""The notebooks' lists of references say what docs/references.bib says."""

import re

import nbformat
import pytest

from tools import save
from tools.site import findings

ENTRY = re.compile(
    r"@\w+\{(\w+), year = \{(\d{4})\}, (eprint|doi|url) = \{(\S+)\},\n  author = \{(.+)\},\n  title = \{\{(.+)\}\}\}\n"
)
ADDRESS = {"eprint": "https://arxiv.org/abs/", "doi": "https://doi.org/", "url": ""}
BIB = (save.ROOT / "docs/references.bib").read_text(encoding="utf-8")
FOUND = {ADDRESS[kind] + place: (year, author, title) for _, year, kind, place, author, title in ENTRY.findall(BIB)}
NOTEBOOKS = sorted(save.NOTEBOOKS.glob("*.ipynb"))
CITED = re.compile(r"\[([^\]]+)\]\((https://[^)]+)\)(?:, (\d{4}))?")


def references(path):
    """Each line of a notebook's lists, with what it cites: the title as it stands there, the address, the year."""
    for cell in nbformat.read(path, 4).cells:
        if cell.id.startswith("references"):
            for line in cell.source.splitlines():
                yield from ((line, *cited) for cited in CITED.findall(line))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_reference_has_its_author_title_and_year(path):
    for line, title, address, said in references(path):
        assert address in FOUND, f"add it to docs/references.bib: {line}"
        year, author, whole = FOUND[address]
        assert re.match(r"\{?([^,}]+)", author)[1].split("-")[0] in line, line
        assert said in ("", year), line
        assert title.casefold() in whole.casefold() or not whole.isascii(), line


def test_each_entry_is_used_and_findings_cite_from_here():
    assert len(FOUND) == BIB.count("@")
    in_findings = {address for one in findings.FINDINGS for _, address, _ in CITED.findall(one["known"])}
    assert {address for path in NOTEBOOKS for _, _, address, _ in references(path)} | in_findings == set(FOUND)


def test_the_paper_cites_what_its_own_file_holds():
    paper, bib = ((save.ROOT / "docs/paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    assert set(re.findall(r"[\[ ]@(\w+)", paper)) == set(re.findall(r"^@\w+\{(\w+),", bib, re.M))
    assert 250 <= len(paper.split()) <= 1000, "the length that the journal asks for"
