"""The moving picture of README's first screen, a live figure under its controls: `python -m tools save --film`.

A GIF, because GitHub lets its readers stop one. Its pixels are those of the figure; the controls are drawn as they look
in a notebook.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import plots
from lesson_utils.classroom.formats import short
from lesson_utils.classroom.live import LiveFigure
from lesson_utils.lessons.start_here import lab

if TYPE_CHECKING:
    from PIL.Image import Image

FILM = Path(__file__).resolve().parents[2] / "notebooks" / "pictures" / "live_figure.gif"
# Where the figure goes, control by control; at each of these it rests.
STORY: tuple[dict[str, Any], ...] = (
    {"temperature": 1.0},
    {"temperature": 0.1},
    {"ending": "wide"},
    {"temperature": 10.0},
    {"ending": "tired"},
    {"temperature": 1.0},
)
STEP, REST = 70, 1200  # milliseconds


def frames() -> Iterator[tuple["Image", int]]:
    """Yield each picture, and the milliseconds for which it is shown."""
    figure = lab.first_look(**STORY[0])
    strip = Strip(figure)
    for scene in STORY:
        ((name, goal),) = scene.items()
        values = figure.controls[name].values()
        here, there = values.index(figure.values[name]), values.index(goal)
        ways = range(here, there, 1 if there > here else -1)[1:] if isinstance(goal, float) else ()
        for place in (*ways, there):
            yield strip.over(figure.set(**{name: values[place]})), REST if place == there else STEP


class Strip:
    """A strip of controls, drawn side by side over their figure."""

    def __init__(self, figure: LiveFigure):
        self.figure, count = figure, len(figure.controls)
        self.drawing = plots.figure(figure.lab.width, 0.45)
        self.drawing.set_layout_engine("none")
        self.knobs, self.texts = {}, {}
        with plots.style():
            for number, (name, control) in enumerate(figure.controls.items()):
                axes = self.drawing.add_axes((0.01 + number / count, 0, 0.9 / count, 1), xlim=(0, 1), ylim=(-1, 1))
                axes.set_axis_off()
                axes.text(0, 0, control.label, va="center")
                axes.plot([0.62, 0.84], [0, 0], color="#BBBBBB", lw=3, solid_capstyle="round")
                (self.knobs[name],) = axes.plot([0], [0], "o", color=plots.BLUE, ms=11)
                self.texts[name] = axes.text(1, 0, "", va="center", ha="right")

    def over(self, picture: plots.Picture) -> "Image":
        """Return one image: the controls where the figure's controls stand, and its picture below."""
        from PIL import Image

        for name, value in self.figure.values.items():
            values = self.figure.controls[name].values()
            self.knobs[name].set_xdata([0.62 + 0.22 * values.index(value) / (len(values) - 1)])
            self.texts[name].set_text(value if isinstance(value, str) else short(value))
        controls = plots.picture(self.drawing, "controls")
        above, below = (Image.open(io.BytesIO(png)) for png in (controls.png, picture.png))
        whole = Image.new("P", (below.width, above.height + below.height))
        whole.putpalette(below.getpalette() or ())
        whole.paste(above, (0, 0))  # all pictures of the course have one palette
        whole.paste(below, (0, above.height))
        return whole


def make(path: Path = FILM) -> None:
    """Draw the moving picture, and store it."""
    images, times = zip(*frames(), strict=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=times, loop=0)
