"""The page of findings: each with its figure, what was known before, a link to its place, and BibTeX."""

import json
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

from lesson_utils.lessons.llama import another
from tools import authors, save
from tools.prose import words
from tools.release import version
from tools.site import frames

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = tomllib.loads((ROOT / "docs/findings.toml").read_text(encoding="utf-8"))["finding"]
MODELS = tomllib.loads((ROOT / "docs/replications.toml").read_text(encoding="utf-8"))["model"]
HEAD = """# Findings

The notebooks measure what others say, and sometimes find something else. Here are {count} of these findings, about the
small models of this course. Each says what was known before, what we add, and where else it held or did not. The number
in bold stands in the notebook's stored output, below the code that computed it; the others there or in its text.

You can [challenge a finding]({issues}): measure it with another size, seed, task or model, and hand in your number.
"""
FORM = """
({name})=
## {title}

{says}

**{number}** {means}. {drag}

{figure}

*Known before:* {known}

*What we add:* {adds}

{tried}

<p><a href="{link}">See it in notebook {notebook}</a></p>

<details><summary>Cite this finding (BibTeX)</summary>

```bibtex
{cited}
```

</details>
"""
ASKED = """
(models)=
## In which models does notebook 09 hold?

This table is about the heads of notebook 09, not about the findings above. A section at the end of [notebook
12](../notebooks/12_llama.ipynb) asks a model of your own, a Llama, Qwen2 or GPT-2, what 09 asked SmolLM2. Nats are per
token. A loss counts if it is above 0.1 nats, and more than twice that of its control. We could not fetch the large
published models, so the table begins with two small ones.
[Hand in yours]({issues}).

{table}
"""
STATE = re.compile(r"\[([^]]+)\]\((\w+=\w+)\)")  # a link that sets the figure, which frames.js follows
CITED = """@misc{{attention_measured_{name},
  title = {{{title}}},
  author = {{{authors}}},
  year = {{{year}}},
  howpublished = {{Attention, measured, version {version}, notebook {notebook}}},
  url = {{{address}}}
}}"""


def add(source: Path) -> None:
    """Write the page into the folder that Sphinx reads; its notebooks hold the figures with their stops already."""
    issues = f"https://github.com/{save.slug()}/issues/new?template=4_challenge.yml"
    parts = [
        HEAD.format(count=len(FINDINGS), issues=issues),
        *(section(finding, source / "notebooks") for finding in FINDINGS),
        ASKED.format(table=models(), issues=issues.replace("4_challenge", "5_model")),
    ]
    (source / "docs" / "findings.md").write_text("".join(parts), encoding="utf-8")


def minutes() -> float:
    """Return how long the page takes the learner of `tools.prose`: three minutes for a figure that is dragged."""
    read = ("title", "says", "number", "means", "known", "adds")
    texts = " ".join(one[part] for one in FINDINGS for part in read)
    texts += " " + " ".join(word for one in FINDINGS for row in one["tried"] for word in row)
    return len(words(texts)) / 120 + sum(3 if "drag" in one else 1 for one in FINDINGS)


def section(finding: dict[str, Any], notebooks: Path) -> str:
    """Return one finding as Markdown."""
    path = notebooks / f"{finding['notebook']}.ipynb"
    made = {"figure": frames.still(path, finding["figure"]), "link": link(path, finding["figure"])}
    made["tried"] = again(finding["tried"])
    made["drag"] = STATE.sub(rf'<a href="#{finding["figure"]}?\2">\1</a>', finding.get("drag", ""))
    return FORM.format(**finding | made | {"cited": bibtex(finding), "notebook": path.stem[:2]})


def again(tried: list[list[str]]) -> str:
    """Return the table of what was measured again: what was changed, what came out, and whether the finding holds."""
    head = "| Tried again with | What came out | Does it hold? |\n|---|---|---|\n"
    return head + "\n".join(f"| {' | '.join(row)} |" for row in tried)


def models() -> str:
    """Return the table of models that were asked the questions of notebook 09: what came out, and whether they hold."""
    judged = [(model, another.rows(another.Answers(*model["answers"]))) for model in MODELS]
    lines = [["Model", *(row.finding for row in judged[0][1]), "Asked by"], ["---"] * (2 + len(judged[0][1]))]
    for model, rows in judged:
        found = [f"**{'holds' if row.holds else 'does not hold'}**: {row.found}" for row in rows]
        lines.append([f"{model['name']} ({model['what']})", *found, model["by"]])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


def bibtex(finding: dict[str, Any]) -> str:
    """Return what a reader cites."""
    owner, repository = save.slug().split("/")
    title = finding["title"].replace("√d_k", r"$\sqrt{d_k}$")
    return CITED.format(
        name=finding["name"],
        title=title,
        authors=authors.bibtex(authors.names()),
        year=2026,
        version=version(),
        notebook=finding["notebook"][:2],
        address=f"https://{owner}.github.io/{repository}/docs/findings.html#{finding['name']}",
    )
