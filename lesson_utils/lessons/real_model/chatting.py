"""The real model at work: loaded if it is there, else offered; and talking."""

import asyncio
import html
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ipywidgets
import numpy as np

from lesson_utils.classroom import plots, stand_in
from lesson_utils.classroom.drawings import tint
from lesson_utils.lessons.real_model.measures import NAME, stored
from lesson_utils.maths import machine, pretrained
from lesson_utils.maths.pretrained import Pretrained, Token

# --- A button that brings the model to where it is missing: by pip, or in a browser from the site of the course -------

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


def brought() -> Pretrained | None:
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


# --- The model at work ------------------------------------------------------------------------------------------------

QUESTION = "What is the capital of France?"
LONGEST = 120  # tokens of an answer


def load(path: str | None = None) -> Pretrained | None:
    """Load the real model, if it is here or a path is given; else offer to bring it and return None."""
    p = brought() if path is None else None
    if p is None:
        if path is None and pretrained.find() is None:
            offer()
            return None
        p = pretrained.load(path)
    name = "SmolLM2-135M-Instruct" if p.name.lower().startswith(NAME) else p.name
    print(f"{name}: {p.model.num_params() / 1e6:.1f} million parameters.")
    return p


def coloured(tokens: Iterable[Token]) -> str:
    """Tokens as HTML: the more surprising to the model, the darker the blue below. A gap shows where each ends."""
    spans = []
    for token in tokens:
        r, g, b = (round(255 * channel) for channel in tint(plots.BLUE, 0.75 * (1 - token.probability)))
        text = html.escape(token.text).replace("\n", "<br>")
        spans.append(
            f'<span title="p = {token.probability:.2f}" '
            f'style="border-bottom:4px solid rgb({r},{g},{b});margin-right:1px">{text}</span>'
        )
    return f'<div style="font-size:110%;line-height:1.8">{"".join(spans)}</div>'


@dataclass(frozen=True)
class Said:
    """An answer, for Jupyter to show."""

    tokens: list[Token]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": coloured(self.tokens), "text/plain": "".join(token.text for token in self.tokens)}


def chat(p: Pretrained | None, question: str = QUESTION, temperature: float = 0.0) -> Any:
    """Make a box to ask in, an answer that comes token by token, and a button to stop it."""
    if p is None:
        print("Stored, since the model is not here:")
        print("you:   Tell me about the moon in two sentences.")
        print("model:", stored()["written"][0], "…")
        return None
    if os.environ.get("COURSE_STRICT"):  # where notebooks are stored or tested: nobody is there to ask, or to stop it
        prompt = p.chat([("user", question)])
        said = list(p.stream(prompt, LONGEST, np.random.default_rng(0), temperature))
        return Said(said)
    return Chat(p, question, temperature)


class Chat:
    """The box and what happens in it. The answer comes in a task of the kernel's own loop, so that buttons work."""

    def __init__(self, p: Pretrained, question: str, temperature: float) -> None:
        self.p, self.temperature, self.rng = p, temperature, np.random.default_rng()
        self.task: asyncio.Task[None] | None = None
        wide = ipywidgets.Layout(width="min(640px, 100% - 4px)")  # its margins
        near = {"description_width": "initial"}  # the label at the left edge, above the buttons
        self.box = ipywidgets.Text(value=question, description="you", style=near, layout=wide, continuous_update=True)
        self.ask = ipywidgets.Button(description="Ask", button_style="primary")
        self.stop = ipywidgets.Button(description="Stop", disabled=True)
        self.answer = ipywidgets.HTML()
        self.ask.on_click(self._ask)
        self.stop.on_click(self._stop)
        self.box.on_msg(self._on_key)
        self.widget = ipywidgets.VBox([self.box, ipywidgets.HBox([self.ask, self.stop]), self.answer])

    def _ipython_display_(self) -> None:
        """Display it, with a line for readers of the saved notebook, where the widget is gone."""
        note = "Run this cell to talk to the model."
        stand_in.show({"text/html": f"<p><em>{note}</em></p>", "text/plain": note}, self.widget)

    def _ask(self, button: object = None) -> None:
        if self.task and not self.task.done():
            return
        self.task = asyncio.get_running_loop().create_task(self.write())

    def _on_key(self, box: object, content: dict[str, Any], buffers: object) -> None:
        """Enter asks, too."""
        if content.get("event") == "submit":
            self._ask()

    def _stop(self, button: object = None) -> None:
        if self.task:
            self.task.cancel()

    async def write(self) -> None:
        """Answer what is in the box."""
        self.ask.disabled, self.stop.disabled = True, False
        said: list[Token] = []
        try:
            prompt = self.p.chat([("user", self.box.value)])
            for token in self.p.stream(prompt, LONGEST, self.rng, self.temperature):
                said.append(token)
                self.answer.value = coloured(said)
                await asyncio.sleep(0.01)  # time for a click on Stop to come in
        except (ValueError, MemoryError) as error:  # too long a question, half a character, a full tab of a browser
            self.answer.value = f'<pre role="alert">{html.escape(str(error))}</pre>'
        finally:
            self.ask.disabled, self.stop.disabled = False, True


def answer(p: Pretrained, question: str = QUESTION, length: int = 20, **how: Any) -> str:
    """Return its answer, always the likeliest token. `how`: attend, knock_out."""
    return "".join(
        token.text for token in p.stream(p.chat([("user", question)]), length, np.random.default_rng(0), **how)
    )
