"""The book's own pages: README on its front page, docs/, and what GitHub looks for in .github/.

And what others show of them: the picture of a link, and the list that search engines read.
"""

import base64
import html
import io
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

PREVIEW = (1200, 630)  # of the picture, as social networks crop it
TITLE = "Attention, measured"
BELOW = "Rebuild the Transformer in NumPy, and test every claim."


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


def draw_previews(folder: Path, notebooks: Path) -> None:
    """Draw the course's picture, and one for each notebook: its question over the figure that teachers project."""
    from lesson_utils.classroom.course import LESSONS
    from lesson_utils.lessons.start_here import lab
    from tools.site import frames

    folder.mkdir()
    draw_preview(folder / "index.png", lab.first_look(temperature=0.5).picture.png, TITLE, BELOW)
    teaching = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
    projected = dict(re.findall(r"^\| (\d\d) \| .*? \| `(lab\.\w+)` \|", teaching, re.M))
    for lesson in LESSONS:
        notebook = notebooks / lesson.notebook
        call = projected[f"{lesson.number:02}"]
        cell = next(name for name, code, shows in frames.cells(notebook) if shows and f"{call}(" in code)
        (picture, *_) = re.findall(r"data:image/png;base64,([^'\"]+)", frames.still(notebook, cell))
        draw_preview(folder / f"{notebook.stem}.png", base64.b64decode(picture), lesson.title, lesson.question)


def draw_preview(file: Path, png: bytes, title: str, below: str) -> None:
    """Draw a picture for those who share a link: a title and some words over a figure."""
    from matplotlib.figure import Figure
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    figure = Figure(figsize=(PREVIEW[0] / 100, PREVIEW[1] / 100), dpi=100, facecolor="white")
    figure.text(0.05, 0.92, title, fontsize=50, fontweight="bold", va="top")
    figure.text(0.05, 0.77, below, fontsize=24, va="top")
    axes = figure.add_axes((0.05, 0.03, 0.9, 0.64))
    axes.set_axis_off()
    axes.imshow(picture, interpolation="lanczos")
    figure.savefig(file)


def list_pages(site: Path, base: str) -> None:
    """Write the list of the book's pages, sitemap.xml, as search engines ask for it; theirs is the `base` address."""
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    book = (page for page in pages if re.fullmatch(r"index\.html|(notebooks|docs|chat)/[^/]+\.html", page))
    rows = "".join(f"<url><loc>{html.escape(base + page)}</loc></url>\n" for page in book)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    (site / "sitemap.xml").write_text(f"{head}{rows}</urlset>\n", encoding="utf-8")
