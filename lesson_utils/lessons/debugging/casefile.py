"""The case file: patients to examine, and their gauges, without names."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.debugging import broken, examined
from lesson_utils.lessons.debugging.instruments import ROUNDING
from lesson_utils.lessons.debugging.overlay import overlay
from lesson_utils.maths.checks import Array, Ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATIENTS = tuple(range(1, len(examined.BUGS) + 1))
CORE = 10  # so many patients come first; the others are for those who want more
HEALTHY = examined.HEALTHY  # beside the patients: what there is to compare with
GAUGES = (  # in the order of `alarms`
    *("start", "curve", "time", "rows", "order", "cache"),
    *("by hand", "again", "sums", "single", "ahead"),
)
STILL, MOVES = "#E3E3E3", plots.BLUE
STRIPS = ("leak in time", "leak across rows", "cache parity", "once more", "sums of weights", "order", "single symbols")


def bug_of(patient: int) -> str:
    """Return what a patient has, by number.

    Raises:
        ValueError: there is no such patient.
    """
    if patient not in PATIENTS:
        raise ValueError(f"patient={patient} is not in the file; choose 1 to {len(PATIENTS)}")
    return examined.BUGS[patient - 1]


def of(patient: int) -> examined.Examined:
    """Return what was measured about a patient, by number."""
    return examined.stored()[bug_of(patient)]


class Anonymous:
    """A trained model that does not say what is wrong with it.

    Args:
        name: what it is called here.
        bug: what it has.
        model: with its weights. Default: as training left it.
    """

    def __init__(self, name: str, bug: str, model: broken.Patient | None = None) -> None:
        model = model or examined.trained(bug)
        self._name = name
        self.forward, self.maps, self.new_past = model.forward, model.maps, model.new_past
        self.loss, self.generate = model.loss, model.generate
        self.log = list(examined.stored()[bug].losses)

    def __repr__(self) -> str:
        return f"{self._name}: .forward(ids, past) .maps(cache) .new_past() .loss(batch) .generate(…) .log"


def patient(number: int) -> Anonymous:
    """Return a patient, trained, without its name: with `forward`, `maps`, `new_past`, and the `log` of its training.

    Raises:
        ValueError: there is no such patient.
    """
    return Anonymous(f"Patient {number}", bug_of(number))


def healthy() -> Anonymous:
    """Return a healthy model of the same size, to compare with; it is none of the patients."""
    return Anonymous("A healthy model", HEALTHY)


def twin(number: int) -> Anonymous:
    """Return a model of right code with a patient's weights."""
    bug = bug_of(number)
    return Anonymous(f"The twin of patient {number}", bug, broken.twin(examined.trained(bug)))


def lines() -> Ids:
    """Return four lines of what the patients read, (4, 12): one to examine, and three for company."""
    return examined.lines()


def page() -> Ids:
    """Return a page of what the patients read, to compute a loss on: rows with the symbol after them, (16, 33)."""
    return examined.page()


def alarms(found: examined.Examined) -> tuple[bool, ...]:
    """Tell which gauges are out of the healthy range, in the order of `GAUGES`."""
    right = examined.stored()[HEALTHY]
    end, right_end = (float(np.mean(of.losses[-3:])) for of in (found, right))
    return (
        abs(found.start - right.start) > 0.5,
        abs(end - right_end) > 0.15 * right_end,
        max(found.time[: examined.CHANGED]) > ROUNDING,
        max(found.rows) > ROUNDING,
        max(found.order) < ROUNDING,
        max(found.parity) > ROUNDING,
        abs(found.by_hand - end) > 0.3,
        found.again > ROUNDING,
        max(found.sums) > ROUNDING,
        found.single < ROUNDING,
        found.ahead > ROUNDING,
    )


def gauges() -> Array:
    """Return the alarms of all patients by the first six gauges, (20, 6) booleans, for `check.triage`."""
    return np.array([alarms(of(patient))[:6] for patient in PATIENTS])


def _strips(found: examined.Examined) -> list[tuple[list[float], list[bool]]]:
    """Return, for each of `STRIPS`, how far things move, and where that is wrong."""
    at = examined.CHANGED
    moves_wrongly = lambda moved: [x > ROUNDING for x in moved]  # noqa: E731
    return [
        (found.time, [x > ROUNDING and t < at for t, x in enumerate(found.time)]),
        (found.rows, moves_wrongly(found.rows)),
        (found.parity, moves_wrongly(found.parity)),
        ([found.again], [found.again > ROUNDING]),
        (found.sums, moves_wrongly(found.sums)),
        (found.order, [x < ROUNDING for x in found.order]),
        ([found.single], [found.single < ROUNDING]),
    ]


def _largest(strip: int, moved: list[float]) -> str:
    x = max(moved[: examined.CHANGED]) if strip == 0 else max(moved)
    return "0" if x == 0 else "rounding" if x < ROUNDING else f"{x:.2g}"


def _picture(found: examined.Examined) -> Array:
    """Return the strips as an image, (7, 12, 3): a cell for each output, grey where it is still, orange where wrong."""
    from matplotlib.colors import to_rgb

    still, moves, wrong = (np.array(to_rgb(colour)) for colour in (STILL, MOVES, plots.ORANGE))
    image = np.empty((len(STRIPS), examined.T, 3))
    for row, (moved, alarm) in enumerate(_strips(found)):
        cells = [wrong if bad else moves if x > ROUNDING else still for x, bad in zip(moved, alarm, strict=True)]
        image[row] = np.repeat(cells, examined.T // len(cells), axis=0)
    return image


@live.lab(
    width=9.4,
    height=4.6,
    neutral="A healthy model comes first, which is none of the patients.",
    patient=live.Choice("patient", (HEALTHY, *PATIENTS), HEALTHY),
)
def case_lab(figure: "Figure") -> live.Update:
    """Show the gauges, a map and a sample of a patient without a name, or of a healthy model."""
    grid = figure.add_gridspec(2, 3, height_ratios=(1, 0.13), width_ratios=(1, 1.15, 1))
    right, T, at = examined.stored()[HEALTHY], examined.T, examined.CHANGED
    curve, moving = overlay(figure, grid[0, 0], xlim=(0, examined.STEPS), ylim=(0, 9))
    steps = np.append(0, np.arange(len(right.losses)) * examined.WINDOW + examined.WINDOW / 2)
    curve.plot(steps, _curve(right), color=plots.GREY, lw=1.6)
    curve.set(xlabel="step (grey: healthy)", ylabel="loss in training, nats")
    (line,) = moving.plot(steps, steps, color=plots.BLUE)

    names, strips = overlay(figure, grid[0, 1], xlim=(0, T + 3), ylim=(len(STRIPS), 0))
    names.set_yticks(np.arange(len(STRIPS)) + 0.5, STRIPS, size=10)
    names.set_xticks([at + 0.5], [f"symbol {at}"], size=9.5)
    names.tick_params(length=0)
    names.spines[:].set_visible(False)
    cells = strips.imshow(np.ones((len(STRIPS), T, 3)), aspect="auto", extent=(0, T, len(STRIPS), 0))
    strips.set(xlim=(0, T + 3), ylim=(len(STRIPS), 0))
    strips.hlines(range(1, len(STRIPS)), 0, T, color="white", lw=5)
    strips.vlines(range(1, T), 0, len(STRIPS), color="white", lw=0.8)
    numbers = [strips.text(T + 0.3, row + 0.5, "", va="center", size=10) for row in range(len(STRIPS))]

    axes, weights = overlay(figure, grid[0, 2], xlim=(0, T), ylim=(T, 0))
    axes.set(xlabel="key", ylabel="query", xticks=[], yticks=[])
    blues = plots.colour_map(*plots.WEIGHTS_MAP)
    image = weights.imshow(np.zeros((T, T)), cmap=blues, vmin=0, vmax=1, extent=(0, T, T, 0), aspect="auto")
    weights.plot([0, *np.repeat(np.arange(1, T), 2), T], np.repeat(np.arange(T), 2), color=plots.GREY, lw=0.8)
    below = figure.add_subplot(grid[1, :])
    below.set_axis_off()
    written = below.text(0, 0.4, "", family="monospace", size=11, va="center", in_layout=False)

    def update(patient: int | str) -> str:
        found = right if patient == HEALTHY else of(int(patient))
        who = "A healthy model" if patient == HEALTHY else f"Patient {patient}"
        ringing = [name for name, alarm in zip(GAUGES, alarms(found), strict=True) if alarm]
        line.set_ydata(_curve(found))
        line.set_visible(patient != HEALTHY)
        line.set_color(plots.ORANGE if {"start", "curve", "by hand"} & set(ringing) else plots.BLUE)
        cells.set_data(_picture(found))
        said = [_largest(row, moved) for row, (moved, _) in enumerate(_strips(found))]
        for text, number in zip(numbers, said, strict=True):
            text.set_text(number)
        map_ = _map(HEALTHY if patient == HEALTHY else bug_of(int(patient)))
        image.set_data(map_)
        end = float(np.mean(found.losses[-3:]))
        moving.set_title(f"Loss {found.start:.1f} → {end:.2f}; by hand {found.by_hand:.2f}", size=11)
        ill = sum(any(wrong) for _, wrong in _strips(found))
        strips.set_title(f"{ill or 'None'} of {len(STRIPS)} {'are' if ill > 1 else 'is'} unlike healthy", size=11)
        weights.set_title(f"{found.ahead:.0%} looks ahead", size=11)
        written.set_text(f"{who} writes: “{found.sample}”")
        readings = "; ".join(f"{name} {number}" for name, number in zip(STRIPS, said, strict=True))
        verb = "are" if ringing[1:] else "is"
        return (
            f"{who}: {', '.join(ringing) or 'no gauge'} {verb} unlike a healthy model's. "
            f"Loss in training {found.start:.1f}, at the end {end:.2f}, by hand {found.by_hand:.2f}. {readings}. "
            f"Of all attention weights {found.ahead:.0%} lie on later symbols. It writes: {found.sample}"
        )

    return update


def _curve(found: examined.Examined) -> Array:
    """Return the loss before training and then the means of training, as far as they fit into the picture."""
    return np.minimum([found.start, *found.losses], 9)


def _map(bug: str) -> Array:
    """Return the weights of the first head of the last layer, on a line of the text, (T, T)."""
    model = examined.trained(bug)
    _, cache = model.forward(examined.lines()[:1])
    map_: Array = model.maps(cache)["decoder"][-1][0, 0]
    return map_


def examine(patient: int, seed: int = 0) -> None:
    """Train this patient here, with another start if you like, and print what the instruments say beside the file."""
    _, found = examined.examine(bug_of(patient), seed)
    filed = of(patient)
    print(f"patient {patient}          here    on file")
    rows = [("loss at the start", found.start, filed.start), ("loss at the end", found.losses[-1], filed.losses[-1])]
    rows.append(("loss by hand", found.by_hand, filed.by_hand))
    for (name, x), (_, y) in zip(_extremes(found), _extremes(filed), strict=True):
        rows.append((name, x, y))
    for name, x, y in rows:
        print(f"{name:17} {x:8.2g} {y:8.2g}")
    print("It writes:", found.sample)


def _extremes(found: examined.Examined) -> list[tuple[str, float]]:
    strips = _strips(found)
    return [
        (name, max(moved[: examined.CHANGED] if row == 0 else moved))
        for row, (name, (moved, _)) in enumerate(zip(STRIPS, strips, strict=True))
    ]
