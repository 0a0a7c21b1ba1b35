"""A button that brings the real model to where it is missing: by pip, or in a browser from the site of the course."""

import asyncio
import html
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import ipywidgets

from lesson_utils.classroom import stand_in
from lesson_utils.maths import machine, pretrained

if TYPE_CHECKING:
    from lesson_utils.maths.pretrained import Pretrained

model_of_site: Any
try:  # in the JupyterLite of the course's site, where it lies beside the library
    import model_of_site  # type: ignore[import-not-found, no-redef]
except ModuleNotFoundError:
    model_of_site = None

Tell = Callable[[str], None]
MISSING = "The real model is not here, so what follows shows its stored results."
HOW = "To have it here, press the button. Then run this cell again, and the cells below it."
BY_PIP = "(In a terminal, `python course.py real` does the same.)"
FROM_SITE = (
    "The model comes from this site, and your browser keeps it. If you have talked to it\n"
    "on the site's own page, your browser has it already."
)


def brought() -> "Pretrained | None":
    """Return the model that the button has brought into a browser."""
    found: Pretrained | None = model_of_site.brought if model_of_site else None
    return found


def offer() -> None:
    """Say that the model is missing, and show the button."""
    from_site = model_of_site is not None
    if machine.is_browser() and not from_site:
        print(MISSING)  # on a site of somebody else's there is no model, and a browser has no pip
        return
    label = "Fetch the model (93 MB)" if from_site else "Install the model (98 MB)"
    print(MISSING, HOW, FROM_SITE if from_site else BY_PIP, sep="\n")
    button = Offer(label, model_of_site.bring if from_site else install)
    note = "Run this cell to see the button."
    stand_in.show({"text/html": f"<p><em>{note}</em></p>", "text/plain": note}, button.widget)


async def install(tell: Tell) -> str:
    """Install the model for this Python, in a thread, and say so."""
    tell("The model is being installed …")
    await asyncio.to_thread(pretrained.install)
    return "The model is installed."


class Offer:
    """The button, and a line that says how far it is. The work is a task of the kernel's own loop."""

    def __init__(self, label: str, bring: Callable[[Tell], Awaitable[str]]) -> None:
        self.bring = bring
        self.button = ipywidgets.Button(description=label, button_style="primary", layout={"width": "max-content"})
        self.line = ipywidgets.HTML()
        self.button.on_click(self._begin)
        self.widget = ipywidgets.VBox([self.button, self.line])
        self.task: asyncio.Task[None] | None = None

    def tell(self, sentence: str) -> None:
        said = f'<span role="status">{html.escape(sentence)}</span>'
        if said != self.line.value:  # of a hundred parts of a megabyte, one
            self.line.value = said

    def _begin(self, button: object = None) -> None:
        self.button.disabled = True
        self.tell("Looking for the model …")
        self.task = asyncio.get_running_loop().create_task(self.work())

    async def work(self) -> None:
        """Bring the model, and say in the end what is to be done, or what went wrong."""
        try:
            self.tell(f"{await self.bring(self.tell)} Now run this cell again, and the cells below it.")
        except RuntimeError as error:
            self.tell(str(error))
            self.button.disabled = False
