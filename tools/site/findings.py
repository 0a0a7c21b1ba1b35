"""The page of findings: discoveries of the notebooks' own, each with its figure, a link to its place, and BibTeX."""

import json
import re
import tomllib
import unicodedata
from pathlib import Path

from tools import save
from tools.prose import words
from tools.release import version
from tools.site import frames

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = tomllib.loads((ROOT / "docs/findings.toml").read_text(encoding="utf-8"))["finding"]
HEAD = """# Findings

The notebooks measure what others say, and sometimes find something else. Here are {count} discoveries of their own.
They hold for the small models of this course, and each notebook says how far it looked. Every number on this page
stands in the notebook's stored output, below the code that computed it.
"""
FORM = """
({name})=
## {title}

{says}

**{number}** {means}. {drag}

{figure}

<p><a href="{link}">See it in notebook {notebook}</a></p>

<details><summary>Cite this finding (BibTeX)</summary>

```bibtex
{cited}
```

</details>
"""
CITED = """@misc{{attention_measured_{name},
  title = {{{title}}},
  author = {{{{The course's authors}}}},
  year = {{{year}}},
  howpublished = {{Attention, measured, version {version}, notebook {notebook}}},
  url = {{{address}}}
}}"""


def add(source: Path) -> None:
    """Write the page into the folder that Sphinx reads; its notebooks hold the figures with their stops already."""
    parts = [HEAD.format(count=len(FINDINGS)), *(section(finding, source / "notebooks") for finding in FINDINGS)]
    (source / "docs" / "findings.md").write_text("".join(parts), encoding="utf-8")


def minutes() -> float:
    """Return how long the page takes the learner of `tools.prose`: three minutes for a figure that is dragged."""
    texts = " ".join(" ".join((one["title"], one["says"], one["number"], one["means"])) for one in FINDINGS)
    return len(words(texts)) / 120 + sum(3 if "drag" in one else 1 for one in FINDINGS)


def section(finding: dict[str, str], notebooks: Path) -> str:
    """Return one finding as Markdown."""
    path = notebooks / f"{finding['notebook']}.ipynb"
    made = {"figure": frames.still(path, finding["figure"]), "link": link(path, finding["figure"])}
    return FORM.format(**{"drag": ""} | finding | made | {"cited": bibtex(finding), "notebook": path.stem[:2]})


def link(notebook: Path, figure: str) -> str:
    """Return the way from the page to the section in which the figure stands."""
    heading = ""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            heading = (re.findall(r"^##+ (.+)$", "".join(cell["source"]), re.MULTILINE) or [heading])[-1]
        elif cell["id"] == figure:
            return f"../notebooks/{notebook.stem}.html#{anchor(heading)}"
    raise KeyError(figure)


def anchor(heading: str) -> str:
    """Return a section's name on its page, as Sphinx makes it; a test of the book follows these links."""
    letters = unicodedata.normalize("NFKD", heading.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"^[\d-]+|-$", "", re.sub(r"[^a-z0-9]+", "-", letters))


def bibtex(finding: dict[str, str]) -> str:
    """Return what a reader cites."""
    owner, repository = save.slug().split("/")
    title = finding["title"].replace("√d_k", r"$\sqrt{d_k}$")
    return CITED.format(
        name=finding["name"],
        title=title,
        year=2026,
        version=version(),
        notebook=finding["notebook"][:2],
        address=f"https://{owner}.github.io/{repository}/docs/findings.html#{finding['name']}",
    )
