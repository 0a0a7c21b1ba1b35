"""The book's moving figures: pictures for a grid of settings, drawn when the site is built.

Each notebook is run, in a process of its own, as far as its last live figure. Its live figures draw the pictures. The
page gets the controls' stops, and docs/_static/frames.js does the rest. Pictures are kept until a source changes.
"""

import hashlib
import html
import io
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from lesson_utils.classroom import live
from lesson_utils.classroom.formats import minus
from lesson_utils.classroom.stand_in import is_live_figure

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs" / "_build" / "frames"
MOST_FRAMES, MOST_BYTES = 160, 2_500_000  # of a figure: what is drawn in some seconds, and fits into 3 MB
QUIETLY = {"COURSE_TRAIN": "no", "COURSE_PROGRESS": "off", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
FEWEST = 5  # stops of a slider, before choices lose any
ASKING = re.compile(r"\b(?:drag|set|choose|try|type|go to)\b", re.I)  # in a sentence that asks to try something

IMPORTED = re.compile(r"lesson_utils\.lessons\.(\w+)")
STILL = r"<img .*(?=<p><em>A picture of a live figure)"  # a stored picture, and the calls that show it

# Texts to choose from where none can be typed, and a few stops where there are too many. A control with one stop is not
# shown. All others are thinned evenly, but for numbers that the text asks readers to try: see `asked`.
Chosen = dict[str, tuple[Any, ...]]
STOPS: dict[str, Chosen] = {
    "00_start_here/learned-look": {"ending": ("tired", "hungry", "wide", "icy", "fluffy")},
    "01_bottleneck/word-lab": {"word": ("attention", "aabbccdd"), "more": (0, 3, 10)},
    "06_causal_mask/leak-lab": {"T": (12,), "token": (0, 2, 4, 6, 8, 11), "layers": (1, 2, 4)},
    "06_causal_mask/sampling-lab": {
        "prompt": ("The ", "If the "),
        "temperature": (0.0, 0.4, 0.8, 1.2, 1.5, 2.0),
        "top_p": (0.5, 0.8, 0.95, 1.0),
    },
    "08_training/film-lab": {"typed": ("March 3, 2021", "17.11.1984")},
}


class Failed(Exception):
    """An error for a notebook that did not show what its page promises; the message says why."""


# --- In the build -----------------------------------------------------------------------------------------------------


def add(source: Path, most: int = MOST_FRAMES) -> list[Path]:
    """Draw what is missing; then put the stops into the notebooks in `source`, and the pictures into its `_static`.

    The figures begin at their telling settings. Returns the folders of what was drawn, for `begin`.
    """
    started = time.perf_counter()
    notebooks = sorted((source / "notebooks").glob("*.ipynb"))
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        folders = list(workers.map(drawn, notebooks, itertools.repeat(most)))
    for path, folder in zip(notebooks, folders, strict=True):
        ours = source / "_static" / "frames" / path.stem
        shutil.copytree(folder, ours, ignore=shutil.ignore_patterns("*.html"))
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if is_live_figure(cell.get("outputs", ())):
                begin(cell, folder, "telling")
        path.write_text(json.dumps(notebook), encoding="utf-8")
    pictures = [file for folder in folders for file in folder.glob("*.webp")]
    figures = sum(len(list(folder.glob("*.js"))) for folder in folders)
    megabytes = sum(file.stat().st_size for file in pictures) / 1e6
    seconds = time.perf_counter() - started
    print(f"Live figures: {figures}, {len(pictures)} pictures, {megabytes:.1f} MB, in {seconds:.0f} s", flush=True)
    return folders


def begin(cell: dict[str, Any], folder: Path, where: str) -> None:
    """Let a cell's figure begin at a setting, as its picture and its controls' stops: see `begins`."""
    for data in (output["data"] for output in cell["outputs"] if "text/html" in output.get("data", {})):
        before, after = re.split(STILL, "".join(data["text/html"]), flags=re.S)
        data["text/html"] = before + (folder / f"{cell['id']}.{where}.html").read_text(encoding="utf-8") + after


def on_front_page(source: Path, film: str, figure: str = "00_start_here/first-look") -> None:
    """Put the figure itself into the book's copy of README, in the place of the film that shows it at work."""
    stem, _, name = figure.partition("/")
    alive = still(source / "notebooks" / f"{stem}.ipynb", name)
    readme = source / "README.md"
    text = re.sub(rf"^!\[.*\]\({film}\)$", lambda _: alive, readme.read_text(encoding="utf-8"), flags=re.MULTILINE)
    readme.write_text(text, encoding="utf-8")


def still(notebook: Path, name: str) -> str:
    """Return the stored picture of a cell as the book shows it below the cell, for a page that has no cell to run."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown = (o.get("data", {}) for cell in found if cell["id"] == name for o in cell["outputs"])
    (picture,) = (text for data in shown if "<img" in (text := "".join(data.get("text/html", ""))))
    picture = re.sub(r"<p><em>.*?</em></p>", "", picture)
    return f'<div class="cell_output"><div class="text_html">{picture}</div></div>'


def drawn(notebook: Path, most: int) -> Path:
    """Return the folder with a notebook's pictures, which are drawn anew if one of their sources has changed."""
    numbers = [sorted(some) for some in asked(notebook).values()]
    digest = hashlib.sha256(sources(notebook) + repr([cells(notebook), numbers]).encode()).hexdigest()[:12]
    folder = KEPT / f"at most {most}" / f"{notebook.stem}-{digest}"
    if not folder.exists():
        for old in folder.parent.glob(f"{notebook.stem}-*"):
            shutil.rmtree(old)
        unfinished = folder.with_suffix(".part")
        unfinished.mkdir(parents=True)
        command = [sys.executable, "-m", "tools.site.frames", str(notebook), str(unfinished), str(most)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COURSE_")} | QUIETLY
        done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)
        if done.returncode:
            raise Failed(f"{notebook.name}: {done.stderr.strip() or done.stdout.strip()}")
        unfinished.rename(folder)
        print(f"Figures of {notebook.stem} are drawn.", flush=True)  # a sign of life: all of them take minutes
    return folder


def sources(notebook: Path) -> bytes:
    """Return a hash of what draws a notebook's pictures beside its own code.

    That is this file, the package without the lessons that this one does not import, and three libraries' versions.
    """
    import matplotlib
    import numpy as np
    import PIL

    package = ROOT / "lesson_utils"
    lessons = {path.name: path for path in (package / "lessons").iterdir() if path.is_dir()}
    needed, more = set[str](), [notebook]
    while more:
        named = {name for file in more for name in IMPORTED.findall(file.read_text(encoding="utf-8"))}
        more = [file for name in (named & lessons.keys()) - needed for file in lessons[name].glob("*.py")]
        needed |= named
    total = hashlib.sha256(" ".join((np.__version__, matplotlib.__version__, PIL.__version__)).encode())
    others = {lessons[name] for name in lessons.keys() - needed}
    for file in (Path(__file__), *sorted(package.rglob("*"))):
        if file.is_file() and file.suffix not in (".pyc", ".css", ".js") and others.isdisjoint(file.parents):
            total.update(file.read_bytes())
    return total.digest()


def cells(notebook: Path) -> list[tuple[str, str, bool]]:
    """Return the id and the code of each code cell up to the last live figure, and whether it shows one."""
    found = [
        (cell["id"], "".join(cell["source"]), is_live_figure(cell["outputs"]))
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    last = max((number for number, (*_, shows) in enumerate(found) if shows), default=-1)
    return found[: last + 1]


def asked(notebook: Path) -> dict[str, set[float]]:
    """Return, for each cell with a live figure, the numbers that its text, or a finding, asks readers to set."""
    found: dict[str, set[float]] = {}
    cells_, here = json.loads(notebook.read_text(encoding="utf-8"))["cells"], ""
    waiting: set[float] = set()  # what the text asks before the next figure may be meant for that one, or for this
    for cell in cells_:
        if cell["cell_type"] == "markdown":
            for sentence in filter(ASKING.search, re.split(r"(?<=[.!?:])\s", "".join(cell["source"]))):
                numbers = {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", sentence)}
                waiting |= numbers
                if here:
                    found[here] |= numbers
        elif is_live_figure(cell["outputs"]):
            here = cell["id"]
            found[here], waiting = waiting, set()
    for finding in tomllib.loads((ROOT / "docs/findings.toml").read_text(encoding="utf-8"))["finding"]:
        if finding["notebook"] == notebook.stem and finding["figure"] in found:
            found[finding["figure"]] |= {float(number) for number in re.findall(r"=([\d.]+)\)", finding["drag"])}
    return found


# --- For one notebook, in its own process -----------------------------------------------------------------------------


def shown(notebook: Path) -> dict[str, live.LiveFigure]:
    """Run a notebook's cells, and return the live figures by the cells' ids; fail if they are not those stored."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    found: dict[str, live.LiveFigure] = {}
    todo, said, before = cells(notebook), io.StringIO(), Path.cwd()
    show, current = live.LiveFigure._ipython_display_, ""
    live.LiveFigure._ipython_display_ = lambda figure: found.update({current: figure})  # type: ignore[assignment, method-assign]
    os.chdir(ROOT / "notebooks")
    try:
        for current, code, _ in todo:  # noqa: B007
            with redirect_stdout(said), redirect_stderr(said):
                shell.run_cell(code)  # an error that matters leaves a figure out
    finally:
        os.chdir(before)
        InteractiveShell.clear_instance()
        live.LiveFigure._ipython_display_ = show  # type: ignore[method-assign]
    if missing := [name for name, _, shows in todo if shows != (name in found)]:
        raise Failed(f"cells {', '.join(missing)} do not show what is stored of them\n{said.getvalue()[-3000:]}")
    return found


def draw(
    place: str,
    figure: live.LiveFigure,
    folder: Path,
    chosen: Chosen,
    most: int = MOST_FRAMES,
    asked: Collection[float] = (),
) -> None:
    """Write the pictures and the stops of a figure into a folder; its place is NOTEBOOK/CELL."""
    values, name = stops(figure, chosen, most, asked), folder / place.rpartition("/")[2]
    for where, start in begins(figure).items():
        figure.set(**start)
        say = {
            "figure": place,
            "call": figure.lab.call(),
            "note": note(figure, values),
            "controls": [described(figure, control, stops_, start[control]) for control, stops_ in values.items()],
            "plays": played(figure, values),
        }
        told = json.dumps(say).replace("<", r"\u003c")
        told = f'<script type="application/json" class="live-stops">{told}</script>'
        name.with_suffix(f".{where}.html").write_text(figure.shown() + told, encoding="utf-8")
    pictures: dict[tuple[str, str, str], int] = {}  # each once, though many settings may show it
    frames, size = [], 0
    for setting in itertools.product(*values.values()):
        picture = figure.set(**dict(zip(values, setting, strict=True)))
        content = webp(picture.png)
        file = folder / f"{hashlib.sha256(content).hexdigest()[:12]}.webp"
        if not file.exists():
            size += file.write_bytes(content)
        cuts = " ".join(map(str, picture.cuts))  # a title that has grown may lie over one of another setting's
        frames.append(pictures.setdefault((file.name, picture.alt, cuts), len(pictures)))
    if size > 3_000_000:
        raise Failed(f"{place}: {len(frames)} pictures take {size:,} bytes, of 3,000,000")
    grid = json.dumps({"frames": frames, "pictures": list(pictures)})
    name.with_suffix(".js").write_text(f"liveFrames({json.dumps(place)}, {grid})\n", encoding="utf-8")


def begins(figure: live.LiveFigure) -> dict[str, dict[str, Any]]:
    """Return where a figure can begin: as its cell opens it, and at the telling setting, the last of several."""
    start = figure.values
    figure.set(**dict(*figure.lab.telling[-1:]))
    telling = figure.values
    figure.set(**start)
    return {"start": start, "telling": telling}


def stops(
    figure: live.LiveFigure, chosen: Chosen, most: int = MOST_FRAMES, asked: Collection[float] = ()
) -> dict[str, list[Any]]:
    """Return the stops of each control, few enough to draw all combinations, with those that are asked for."""
    start, first = figure.values, {name: control.value for name, control in figure.controls.items()}
    homes = {name: {setting[name] for setting in begins(figure).values()} for name in first}
    alone = ({name: value} for name, control in figure.controls.items() for value in control.extremes())
    tried = dict.fromkeys(tuple((first | moved).items()) for moved in ({}, *alone))
    sizes = [len(webp(figure.set(**dict(setting)).png)) for setting in tried]
    figure.set(**start)
    most = min(most, MOST_BYTES * len(sizes) // sum(sizes))
    values = {name: list(chosen.get(name, control.values())) for name, control in figure.controls.items()}
    for name, home in homes.items():
        for value in home.difference(values[name]):
            raise Failed(f"{figure.lab.call()}: {name} starts at {value!r}, where it has no stop")
    full = {name: tuple(some) for name, some in values.items()}
    kept = {name: {*homes[name], *wanted(some, asked)} for name, some in full.items()}
    while math.prod(map(len, values.values())) > most:
        free = [name for name, some in values.items() if len(some) > len(kept[name])]
        if not free:
            break
        name = max(free, key=lambda name: order(figure.controls[name], name in chosen, len(values[name])))
        values[name] = thinned(full[name], kept[name], len(values[name]) - 1)
    return values


def order(control: live.Control, chosen: bool, count: int) -> tuple[int, bool, bool, bool, int]:
    """Return a control's place in the order of thinning.

    The slider with most stops comes first; then choices between numbers; then texts; last, stops that were chosen. A
    control keeps two stops as long as another one has more.
    """
    numbers = all(isinstance(value, int | float) for value in control.values())
    fine = isinstance(control, live.Slider | live.LogSlider) and count > FEWEST
    return min(count, 3), not chosen, numbers, fine, count


def wanted(values: Collection[Any], asked: Collection[float]) -> list[Any]:
    """Return those of a control's values that are among the numbers asked for."""
    numbers = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return [value for value in numbers if any(math.isclose(value, number) for number in asked)]


def thinned(values: tuple[Any, ...], kept: Collection[Any], count: int) -> list[Any]:
    """Return `count` of the values, evenly spaced: both ends, and each kept one in the place of its neighbour."""
    homes = sorted(values.index(value) for value in kept)
    if count <= len(homes):
        return [values[place] for place in homes]
    last = len(values) - 1
    places = [round(n * last / (count - 1)) for n in range(count)]
    for home in homes:
        if home not in places:
            within = [n for n in range(1, count - 1) if places[n] not in homes]
            free = within or [n for n in range(count) if places[n] not in homes]
            places[min(free, key=lambda n: abs(places[n] - home))] = home
    return [values[place] for place in sorted(places)]


def described(figure: live.LiveFigure, name: str, values: list[Any], start: Any) -> dict[str, Any]:
    """Describe a control for the page's script: its kind, and for each stop its text and its part in the call."""
    control = figure.controls[name]
    numbers = all(isinstance(value, int | float) for value in values)
    kind = "checkbox" if isinstance(control, live.Switch) else "range" if numbers else "select"
    call = ["" if value == control.value else f"{name}={live.as_read(value)!r}" for value in values]
    texts = [text_of(value) for value in values]
    keys = [f"{name}={value}" for value in values]  # in links to this state
    return {
        "label": control.label,
        "kind": kind,
        "texts": texts,
        "call": call,
        "keys": keys,
        "start": values.index(start),
    }


def played(figure: live.LiveFigure, values: dict[str, list[Any]]) -> list[list[int]]:
    """Return the settings through which a figure plays, as places of its stops; without those that have no stop."""
    first = {name: control.value for name, control in figure.controls.items()}
    settings = [first | dict(setting) for setting in figure.lab.plays]
    there = (setting for setting in settings if all(setting[name] in some for name, some in values.items()))
    return [[some.index(setting[name]) for name, some in values.items()] for setting in there]


def text_of(value: Any) -> str:
    """Return the text beside a control."""
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if isinstance(value, str) else minus(text)


def note(figure: live.LiveFigure, values: dict[str, list[Any]]) -> str:
    """Return a sentence, as HTML, on the settings that only the notebook has."""
    named = {name: f"<i>{html.escape(control.label)}</i>" for name, control in figure.controls.items()}
    fewer, typed, absent = [], [], []
    for name, control in figure.controls.items():
        there, all_values = len(values[name]), len(control.values())
        if isinstance(control, live.Word):
            typed.append(named[name])
        elif there == 1 < all_values:
            absent.append(named[name])
        elif there < all_values:
            fewer.append(f"{there} of the {all_values} values of {named[name]}")
    parts = ((fewer, "{}"), (absent, "only the notebook has {}"), (typed, "in the notebook you type {} yourself"))
    said = "; ".join(sentence.format(listed(words)) for words, sentence in parts if words)
    return f"Drawn beforehand{said and ': '}{said}. Run this cell for the figure itself."


def listed(words: list[str]) -> str:
    """Join words as a sentence lists them."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def webp(png: bytes) -> bytes:
    """Compress a picture without loss, to two thirds of its bytes."""
    from PIL import Image

    content = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(content, "webp", lossless=True, method=2, quality=50)
    return content.getvalue()


if __name__ == "__main__":  # as `drawn` calls it
    try:
        notebook, folder = map(Path, sys.argv[1:3])
        numbers = asked(notebook)
        for cell, figure in shown(notebook).items():
            place = f"{notebook.stem}/{cell}"
            draw(place, figure, folder, STOPS.get(place, {}), int(sys.argv[3]), numbers[cell])
    except Failed as error:
        sys.exit(str(error))
