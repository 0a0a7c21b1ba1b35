"""See that a version is ready to be released, and print what is new in it: `python -m tools.release v1.0.0`.

GitHub's workflow runs this first, when nothing is installed, so it needs the standard library only.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)  # the one place; pyproject.toml reads it, too
CITED = re.compile(r"^version: .+\ndate-released: .+$", re.MULTILINE)  # in CITATION.cff
BIBTEX = re.compile(r"(?<=^  version = \{)[\d.]+(?=\},$)", re.MULTILINE)  # in README


def version(root: Path = ROOT) -> str:
    """Return the version, from the one place where it stands."""
    return VERSION.findall((root / "lesson_utils/__init__.py").read_text(encoding="utf-8"))[0]


def news(root: Path = ROOT) -> tuple[str, str, str]:
    """Return the newest version of the changelog, its date, and what is new in it."""
    text = (root / "docs/changelog.md").read_text(encoding="utf-8")
    _, newest, *_ = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, body = newest.partition("\n")
    number, _, date = title.partition(" · ")
    return number, date, body.strip() + "\n"


def with_version(text: str, root: Path = ROOT) -> str:
    """Return the text of CITATION.cff or README with the version, and with the date that the changelog gives."""
    cited = CITED.sub(f"version: {version(root)}\ndate-released: {news(root)[1]}", text)
    return BIBTEX.sub(version(root), cited)


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return what keeps this tag from being released."""
    number, date, _ = news(root)
    found = []
    if tag != f"v{version(root)}":
        found.append(
            f"the tag is {tag}, and lesson_utils/__init__.py says {version(root)}: it must be v{version(root)}"
        )
    if number != version(root):
        found.append(f"docs/changelog.md begins with {number}: write what is new in {version(root)} above it")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        found.append(f"docs/changelog.md dates {number} {date!r}: write the day, such as 2026-11-23")
    for name in ("CITATION.cff", "README.md"):
        if with_version(text := (root / name).read_text(encoding="utf-8"), root) != text:
            found.append(f"{name} has another version or date: run python course.py save notebooks/00_start_here.ipynb")
    return found


def main() -> None:
    if found := problems(sys.argv[1] if len(sys.argv) > 1 else ""):
        sys.exit("\n".join(found))
    sys.stdout.write(news()[2])


if __name__ == "__main__":
    main()
