"""Who wrote the course: `python course.py address --author "Ada Lovelace; 0000-0002-1825-0097; Her university"`.

An author is a name, an ORCID and an institution, the last two of which may be missing; one --author for each. They are
written into CITATION.cff, pyproject.toml, README and the paper. What cites the course reads them from pyproject.toml.
LICENSE and NOTICE keep "The course's authors", because each contributor holds the copyright in their own part.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from lesson_utils.classroom.files import put

ROOT = Path(__file__).resolve().parents[1]
NOBODY = "The course's authors"  # until somebody is named
ORCID = r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]"
CITED = re.compile(r"^authors:\n(?:  .+\n)+", re.MULTILINE)  # in CITATION.cff
PAPER = re.compile(r"^authors:\n(?:  .+\n)+affiliations:\n(?:  .+\n)+", re.MULTILINE)  # in docs/paper/paper.md
PROJECT = re.compile(r"(?<=^authors = )\[.+\]", re.MULTILINE)  # in pyproject.toml
BIBTEX = re.compile(r"^  author = .+$", re.MULTILINE)  # in README


def names(root: Path = ROOT) -> list[str]:
    """Return the authors' names, from pyproject.toml."""
    authors = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["authors"]
    return [author["name"] for author in authors]


def bibtex(names: Sequence[str]) -> str:
    """Return names as BibTeX takes them: what is no person's name stands in braces."""
    return " and ".join(f"{{{name}}}" if name == NOBODY else name for name in names)


def write(authors: Sequence[str], root: Path = ROOT) -> None:
    """Write these authors wherever they stand.

    Raises:
        ValueError: one of them has no name, more than three parts, or an ORCID that is none.
    """
    known = [_parts(author) for author in authors]
    places = list(dict.fromkeys(place for _, _, place in known))
    cited = paper = ""
    for name, orcid, place in known:
        given, _, family = name.rpartition(" ")
        first = f"given-names: {_quoted(given)}\n    " if given else ""  # the format wants none that is empty
        cited += f"  - {first}family-names: {_quoted(family)}\n"
        paper += f"  - name: {_quoted(name)}\n    affiliation: {places.index(place) + 1}\n"
        if orcid:
            cited += f"    orcid: https://orcid.org/{orcid}\n"
            paper += f"    orcid: {orcid}\n"
        if place:
            cited += f"    affiliation: {_quoted(place)}\n"
    at = "".join(f"  - name: {_quoted(place or 'none')}\n    index: {n}\n" for n, place in enumerate(places, 1))
    project = ", ".join(f"{{ name = {_quoted(name)} }}" for name, _, _ in known)
    _replace(root / "CITATION.cff", CITED, f"authors:\n{cited}")
    _replace(root / "docs/paper/paper.md", PAPER, f"authors:\n{paper}affiliations:\n{at}")
    _replace(root / "pyproject.toml", PROJECT, f"[{project}]")
    _replace(root / "README.md", BIBTEX, f"  author = {{{bibtex(names(root))}}},")


def _parts(author: str) -> tuple[str, str, str]:
    name, orcid, place, *more = [*(part.strip() for part in author.split(";")), "", ""]
    if not name or any(more) or (orcid and not re.fullmatch(ORCID, orcid)):
        raise ValueError(
            f"{author!r} is not an author; write a name, and behind semicolons, if there are any, an ORCID and an "
            'institution: "Ada Lovelace; 0000-0002-1825-0097; Her university"'
        )
    return name, orcid, place


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # YAML and TOML read it, too


def _replace(path: Path, pattern: re.Pattern[str], new: str) -> None:
    put(path, pattern.sub(lambda _: new, path.read_text(encoding="utf-8"), count=1))
