"""Outputs that answer a prediction are closed in the book, as the text is that explains them."""

import json
import re
from pathlib import Path

from lesson_utils.classroom.stand_in import is_live_figure

ASKS, ANSWERS = "**Predict:**", '<details class="answer">'
CLOSED = "hide-output"  # the tag that MyST-NB knows


def add(source: Path) -> None:
    """Mark these outputs in the notebooks of a book's source folder."""
    for path in sorted((source / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        asked = False
        for cell in notebook["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                asked = text.rfind(ASKS) > text.rfind(ANSWERS) or (asked and ANSWERS not in text)
            elif asked and not is_live_figure(cell["outputs"]) and not re.match(r"quiz\.predict\(", text):
                cell["metadata"].setdefault("tags", []).append(CLOSED)
        path.write_text(json.dumps(notebook), encoding="utf-8")
