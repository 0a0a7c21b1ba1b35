"""The page that a notebook is: what its first output brings for answers and live figures.

`page.js` opens all answers at once, gives the controls of live figures their names, and says what a picture shows when
the hand rests. `page.css` keeps these controls in sight. `panels.js`, also for the book, cuts pictures on phones.
"""

import json
import sys
from pathlib import Path

from lesson_utils.classroom import reloads

STYLE, *SCRIPTS = (
    Path(__file__).with_name(f).read_text(encoding="utf-8") for f in ("page.css", "page.js", "panels.js")
)
SCRIPT = "".join(SCRIPTS)
IN_A_BROWSER = (
    "Your work is kept in this browser, on this machine.\n"
    "A reload opens this notebook as it was last saved. Then run its cells again.\n"
    "For a copy of your own, press the button Download my notebooks."
)


def ready() -> None:
    """Say that the set-up is done, and bring the page its script and style."""
    from IPython.display import display

    from lesson_utils.classroom import live

    live.before_shown[:] = [bring]
    reloads.set_up()
    print("Ready.")
    if sys.platform == "emscripten":
        print(IN_A_BROWSER)
    page = f'<style>{STYLE}</style><div class="open-answers"></div><script>{SCRIPT}</script>'
    display({"text/html": page, "text/plain": ""}, raw=True)


def bring() -> None:
    """Bring script and style to a page that was loaded again, and has not run the set-up cell since.

    With each figure: JupyterLab runs no script of an output that is out of sight, so that the first may bring nothing.
    """
    if not reloads.was_reloaded():
        return
    from IPython.display import display

    # The style stays when this output goes, as the script does.
    keep = f"document.head.appendChild(document.createElement('style')).textContent = {json.dumps(STYLE)}"
    once = f"if (!window.attentionCourse) {keep};\n{SCRIPT}"
    display({"text/html": f"<script>{once}</script>", "text/plain": ""}, raw=True)
