"""Pictures and lists for those who link to the book: what other sites show, and the pages that search engines read."""

import html
import io
import re
from pathlib import Path

SIZE = (1200, 630)  # of the picture, as social networks crop it
TITLE = "Attention, measured"
BELOW = "Rebuild the Transformer in plain NumPy,\nand test every claim while you watch."


def draw(file: Path) -> None:
    """Draw the picture: the course's title over its first figure."""
    from matplotlib.figure import Figure
    from PIL import Image

    from lesson_utils.lessons.start_here import lab

    picture = Image.open(io.BytesIO(lab.first_look(temperature=0.5).picture.png)).convert("RGB")
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    figure.text(0.05, 0.92, TITLE, fontsize=50, fontweight="bold", va="top")
    figure.text(0.05, 0.77, BELOW, fontsize=24, va="top", linespacing=1.4)
    axes = figure.add_axes((0.05, 0.03, 0.9, 0.52))
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
