"""The steps of a walk: a function for each kind of thing that a learner does."""

import re
import signal
import time

import psutil

from tools.chaos.walk import Kinds, Walk, words_of

NUMBER = re.compile(r"(?<![\w.#\"'])\d+(?:\.\d+)?(?![\w.\"'])")
EXTREMES = ("0", "-1", "1", "0.5", "1e9", "10**6", "-3.7", "float('nan')", "10**30")
TYPED = ("0", "-1", "1e9", "3.14159", "", "abc", "nan", "1e400", "0,5", "2 3")
WORDS = ("", "z" * 30, "Ünï🙂code", "<b>bold</b>", "a", "two words", "\\frac{1}{$", "1234567890")
KEYS = ("Home", "End", "ArrowLeft", "ArrowRight", "PageUp", "PageDown")


def run_some(walk: Walk) -> None:
    """Run some cells that follow each other."""
    code = walk.code()
    first = walk.random.randrange(len(code))
    for cell in code[first : first + walk.random.randint(1, 4)]:
        walk.run(cell)


def run_on(walk: Walk) -> None:
    """Run all cells above one of the first."""
    code = walk.code()
    walk.run(code[walk.random.randint(1, min(14, len(code) - 1))], "run-all-above")


def run_twice(walk: Walk) -> None:
    cell = walk.random.choice(walk.code())
    walk.run(cell)
    walk.run(cell)


def check(walk: Walk) -> None:
    found = [cell for cell in walk.code() if cell["source"].startswith("check.")]
    walk.run(walk.random.choice(found))


def answer(walk: Walk) -> None:
    """Choose an answer; if none is shown yet, run a cell that asks."""
    share = walk.random.random()
    if not (found := walk.page.answer(walk.path, share)):
        walk.run(walk.random.choice([cell for cell in walk.code() if cell["source"].startswith("quiz.")]))
        walk.settle()
        found = walk.page.answer(walk.path, share)
    walk.also(f"one of {found}")


def edit(walk: Walk) -> None:
    """Change a cell to an extreme, and run it; more often one that has run than one that lacks what stands above it."""
    code, share = walk.code(), walk.random.random()
    cell = walk.random.choice([cell for cell in code if cell["ran"] and share < 0.8] or code)
    lines, numbers = cell["source"].split("\n"), list(NUMBER.finditer(cell["source"]))
    line = walk.random.randrange(len(lines))
    how = walk.random.choice(("a number", "a number", "a line doubled", "a line removed"))
    if how == "a number" and numbers:
        number, new = walk.random.choice(numbers), walk.random.choice(EXTREMES)
        source = cell["source"][: number.start()] + new + cell["source"][number.end() :]
        walk.also(f"{number[0]} becomes {new}")
    else:
        lines[line : line + 1] = [] if how == "a line removed" else [lines[line]] * 2
        source = "\n".join(lines)
        walk.also(f"{how} ({line + 1})")
    walk.page.write(walk.path, cell["id"], source)
    walk.typed()
    walk.run(cell)


def undo(walk: Walk) -> None:
    """Take an edit back, and run the cell."""
    if not walk.changed:
        edit(walk)
        walk.settle()
    name = walk.random.choice(walk.changed or [walk.code()[0]["id"]])
    walk.page.undo(walk.path, name)
    walk.typed()
    walk.run({"id": name})


def move(walk: Walk) -> None:
    """Press keys on a slider."""
    if found := walk.control("slider"):
        walk.page.focus(walk.path, found[0]["id"], found[1])
        for _ in range(walk.random.randint(1, 4)):
            walk.window.press(walk.random.choice(KEYS))
        walk.follows(*found)


def drag(walk: Walk, stop: bool = False) -> None:
    """Drag a slider fast; perhaps press stop in the middle."""
    found = walk.control("slider")
    if not found:
        return
    place = walk.page.places(walk.path, found[0]["id"], found[1])
    ends = [place["left"] + walk.random.random() * (place["right"] - place["left"]) for _ in range(3)]
    points, x = [(place["x"], place["y"])], place["x"]
    for end in ends:
        points += [(x + (end - x) * part / 12, place["y"]) for part in range(1, 13)]
        x = end
    if stop:  # the picture follows some steps behind, as on a slow machine
        walk.window.drag(points, 0.1)
        time.sleep(walk.random.random() / 5)
        walk.page.interrupt(walk.path)
    else:
        walk.window.drag(points, 0.3 + walk.random.random())
    walk.follows(*found)


def drag_and_stop(walk: Walk) -> None:
    drag(walk, stop=True)


def choose(walk: Walk) -> None:
    """Tick a box, or write a word."""
    if found := walk.control("choice", "text"):
        figure, number = found
        if figure["controls"][number]["kind"] == "choice":
            walk.page.tick(walk.path, figure["id"], number)
        else:
            walk.page.writeWord(walk.path, figure["id"], number, walk.random.choice(WORDS))
        walk.follows(figure, number)


def type_number(walk: Walk) -> None:
    """Type something beside a slider."""
    if found := walk.control("slider", typed=True):
        words = walk.random.choice(TYPED)
        walk.also(repr(words))
        walk.page.mark(walk.path, found[0]["id"], found[1])
        for key in ("Delete", *words, "Enter"):
            walk.window.press(key)
        walk.follows(*found)


def interrupt(walk: Walk) -> None:
    """Run a cell that may train a model, and press stop."""
    code = walk.code()
    walk.run(walk.random.choice([cell for cell in code if "train" in cell["source"]] or code))
    time.sleep(walk.random.random() ** 2 * 4)
    walk.page.interrupt(walk.path)


def restart(walk: Walk) -> None:
    walk.page.restart(walk.path)
    walk.begins_anew()


def kill(walk: Walk) -> None:
    """Kill the kernel, perhaps while it works."""
    if walk.random.random() < 0.5:
        walk.run(walk.random.choice(walk.code()))
    (kernel,) = walk.kernels()
    kernel.kill()
    kernel.wait(10)
    give_up = time.monotonic() + 40  # the server looks every few seconds
    while not walk.kernels() and time.monotonic() < give_up:
        time.sleep(0.1)
    walk.begins_anew()
    walk.settle()
    if walk.random.random() < 0.5:  # and go on
        run_on(walk)


def sleep(walk: Walk) -> None:
    """Let kernel and server sleep, while the learner goes on."""
    processes = psutil.Process().children(recursive=True)
    asleep = [one for mark in ("jupyterlab", "ipykernel") for one in processes if mark in words_of(one)]
    found = walk.control("slider")
    for process in asleep:
        process.send_signal(signal.SIGSTOP)
    try:
        if found:
            walk.page.focus(walk.path, found[0]["id"], found[1])
            for _ in range(6):
                walk.window.press(walk.random.choice(KEYS))
        time.sleep(walk.random.randint(1, 5))
    finally:
        for process in asleep:
            process.send_signal(signal.SIGCONT)
    if found:
        walk.follows(*found)


def reload(walk: Walk) -> None:
    """Load the page again, perhaps while a cell runs; half of the time after saving."""
    if walk.random.random() < 0.5:
        walk.also("saved")
        walk.each_notebook(walk.save)
    if walk.random.random() < 0.3:
        walk.run(walk.random.choice(walk.code()))
    walk.reload()


def other(walk: Walk) -> None:
    """Open the other notebook beside this one, or go back to the first."""
    walk.path = walk.paths[walk.paths.index(walk.path) - 1]
    walk.also(walk.path)
    walk.bring()
    if not walk.page.figures(walk.path):
        walk.page.run(walk.path, "setup")


# What a step can be: how often, among all, and what it does.
KINDS: Kinds = {
    "run some cells": (5, run_some),
    "run all above": (6, run_on),
    "run a figure": (8, Walk.run_figure),
    "run a cell twice": (3, run_twice),
    "a check": (3, check),
    "an answer": (4, answer),
    "edit and run": (8, edit),
    "undo and run": (3, undo),
    "keys on a slider": (6, move),
    "drag a slider": (6, drag),
    "a choice or a word": (4, choose),
    "type beside a slider": (4, type_number),
    "stop a cell": (4, interrupt),
    "stop in a drag": (4, drag_and_stop),
    "restart the kernel": (2, restart),
    "kill the kernel": (2, kill),
    "sleep and wake": (3, sleep),
    "reload": (4, reload),
    "save": (2, Walk.save),
    "the other notebook": (3, other),
}
