"""The book's own pages: README on its front page, docs/, and what GitHub looks for in .github/."""

import os
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Where a page stands in the repository, and in the book. Servers often hide folders whose names begin with a dot.
MOVED = {
    "docs/index.md": "index.md",
    ".github/CONTRIBUTING.md": "docs/contributing.md",
    ".github/SECURITY.md": "docs/security.md",
}
SITE = re.compile(r"\[([^]]+)\]\(https://[\w-]+\.github\.io/[\w.-]+/((?:notebooks|docs)[^)]*)\)")
LINK = re.compile(r"(?<=\]\()([\w./-]+)(?=[#)])")


def add(source: Path, docs: Path = ROOT / "docs") -> None:
    """Copy the pages into the folder that Sphinx reads; `docs` holds those of docs/."""
    texts = {f"docs/{path.name}": path for path in sorted(docs.glob("*.md"))}
    texts |= {name: ROOT / name for name in ("README.md", *MOVED) if name not in texts}
    (source / "docs").mkdir()
    for name, path in texts.items():
        (source / MOVED.get(name, name)).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for name in texts:
        page = source / MOVED.get(name, name)
        page.write_text(with_links(page.read_text(encoding="utf-8"), name, source), encoding="utf-8")


def with_links(text: str, name: str, source: Path) -> str:
    """Return a page's text with links as the book needs them: a file that it does not hold is shown on GitHub."""
    url = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    old = "" if name == "docs/index.md" else os.path.dirname(name)  # its links are written for where it will stand
    new = os.path.dirname(MOVED.get(name, name))

    def moved(link: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(old, link[0])).replace(os.sep, "/")
        target = MOVED.get(target, target)
        if (source / target).exists() or not (ROOT / target).exists():  # what is nowhere, Sphinx complains of
            return os.path.relpath(target, new or ".").replace(os.sep, "/")
        return f"{url}/blob/main/{target}"

    def inside(link: re.Match[str]) -> str:  # as HTML: Sphinx knows no anchors of notebooks
        return f'<a href="{os.path.relpath(link[2], new or ".").replace(os.sep, "/")}">{link[1]}</a>'

    return SITE.sub(inside, LINK.sub(moved, text))
