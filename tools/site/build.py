"""The published site: `python -m tools site`. The book shows the stored notebooks, and its figures move.

Beside it stand JupyterLite (`lite`) and a page to chat with a published model (`chat`).
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from lesson_utils.classroom import page as notebook_page
from lesson_utils.classroom.stand_in import is_live_figure
from tools import save
from tools.site import fetch, findings, frames, pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = DOCS / "_build" / "site"
MATHJAX = "3.2.2"
MATHJAX_INTEGRITY = "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw=="
MATHJAX_FILES = ("LICENSE", "es5/tex-chtml.js", "es5/output/chtml/fonts/")  # its license, and what a page loads
ASKS, ANSWERS = "**Predict:**", '<details class="answer">'
OURS = "From here on our "
CLOSED = "hide-output"  # the tag that MyST-NB knows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools site", description="Build the book, JupyterLite and the chat."
    )
    parser.add_argument("--no-lite", action="store_true", help="leave JupyterLite and the chat out")
    words = parser.parse_args()
    try:
        build(SITE, with_lite=not words.no_lite)
    except (fetch.Failed, frames.Failed) as error:
        sys.exit(f"python -m tools site: {error}")
    print(f"Written to {SITE}")


def build(site: Path, with_lite: bool) -> None:
    """Write the whole site into a folder, replacing what was there."""
    shutil.rmtree(site, ignore_errors=True)
    if with_lite:  # first: a book is not to promise what could not be built
        from tools.site import lite
        from tools.site.chat import make

        lite.build(site / "lite")
        make.build(site / "chat")
    build_book(site, with_lite)


def build_book(site: Path, with_lite: bool, docs: Path = DOCS, most_frames: int = frames.MOST_FRAMES) -> None:
    """Run Sphinx on a folder that mirrors the repository, so that links lead where they lead there.

    Args:
        docs: the folder of the pages; a test has one with a link that leads nowhere.
        most_frames: pictures of a live figure, at most; a test draws fewer.
    """
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        source, doctrees = Path(name, "source"), Path(name, "doctrees")
        shutil.copytree(ROOT / "notebooks", source / "notebooks", ignore=shutil.ignore_patterns(".*"))
        for folder in ("_static", "_templates"):
            shutil.copytree(docs / folder, source / folder)
        shutil.copy(Path(notebook_page.__file__).with_name("panels.js"), source / "_static")
        for file in (docs / "conf.py", ROOT / "NOTICE", ROOT / "pyproject.toml"):
            shutil.copy(file, source)
        pages.add(source, docs)
        unpack_mathjax(source / "_static" / "mathjax")
        drawn = frames.add(source, most_frames)
        pages.draw_previews(source / "_static" / "previews", source / "notebooks")
        findings.add(source)
        frames.on_front_page(source, film="notebooks/pictures/live_figure.gif")
        close_answers(source, drawn)
        if with_lite:
            for name in ("README.md", "index.md"):
                link_to_chat(source / name)
        command: list[str | Path] = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
        command += ["-d", doctrees, source, site]
        tag = ["-t", "lite"] if with_lite else []
        if subprocess.run([*command, *tag], cwd=ROOT).returncode:
            sys.exit("python -m tools site: Sphinx could not make the book; what it found wrong stands above.")
    owner, repository = save.slug().split("/")
    pages.list_pages(site, f"https://{owner}.github.io/{repository}/")
    written = [file for file in site.rglob("*") if file.is_file() and site / "lite" not in file.parents]
    megabytes = sum(file.stat().st_size for file in written) / 1e6
    print(f"Book: {len(written)} files, {megabytes:.1f} MB, in {time.perf_counter() - started:.0f} s")


def link_to_chat(page: Path) -> None:
    """Let a page at the top of the book lead to the chat beside it, where it names the public address."""
    text, here = page.read_text(encoding="utf-8"), r'<a href="chat/index.html">\1</a>'
    text, count = re.subn(r"\[([^]\n]+)\]\(https://\S+/chat/index\.html\)", here, text)
    assert count == 1, f"{page.name} has one link to the chat"
    page.write_text(text, encoding="utf-8")


def unpack_mathjax(folder: Path) -> None:
    """Unpack the part of MathJax that a page loads, and its license."""
    with tarfile.open(fetch.from_npm("mathjax", MATHJAX, MATHJAX_INTEGRITY)) as archive:
        for member in archive.getmembers():
            name = member.name.removeprefix("package/")
            if name.startswith(MATHJAX_FILES):
                member.name = name.removeprefix("es5/")
                archive.extract(member, folder, filter="data")


def close_answers(source: Path, drawn: list[Path]) -> None:
    """Mark the outputs that answer a prediction: the book closes them, as the text is closed that explains them.

    A live figure stays open, but begins where its cell opens it, not at its telling setting. The list of contents goes,
    because each page of the book has one beside its text.
    """
    for path, folder in zip(sorted((source / "notebooks").glob("*.ipynb")), drawn, strict=True):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        first = notebook["cells"][0]
        first["source"] = save.CONTENTS.sub("", "".join(first["source"]))
        asked = False
        for cell in notebook["cells"]:
            text = "".join(cell["source"])
            if "outputs" in cell:  # whose function runs is news to those who write one
                cell["outputs"] = [out for out in cell["outputs"] if not "".join(out.get("text", "")).startswith(OURS)]
            if cell["cell_type"] == "markdown":
                asked = text.rfind(ASKS) > text.rfind(ANSWERS) or (asked and ANSWERS not in text)
            elif asked and is_live_figure(cell["outputs"]):
                frames.begin(cell, folder, "start")
            elif asked and not re.match(r"quiz\.predict\(", text):
                cell["metadata"].setdefault("tags", []).append(CLOSED)
        path.write_text(json.dumps(notebook), encoding="utf-8")
