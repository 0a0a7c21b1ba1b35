"""A learner's own tests as a net: which patients each of them catches, and who slips through all."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.debugging import casefile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Test = Callable[[casefile.Anonymous], Any]


def caught(tests: Mapping[str, Test]) -> np.ndarray:
    """Run tests, each from a patient to yes or no, on a healthy model and on all patients: (1 + patients, tests).

    Raises:
        ValueError: there are no tests, or a test can't be run on a patient.
    """
    if not tests:
        raise ValueError('there are no tests; hand over a dictionary, such as {"leak": my_leak_test}')
    examined = [casefile.healthy(), *map(casefile.patient, casefile.PATIENTS)]
    return np.array([[_says(name, test, patient) for name, test in tests.items()] for patient in examined])


def _says(name: str, test: Test, patient: casefile.Anonymous) -> bool:
    try:
        return bool(test(patient))
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"the test “{name}” takes a patient and says yes or no, as `lambda patient: … > 1e-3` does; here it ended "
            f"in {told}"
        ) from error


@plots.still(width=9.0, height=3.4)
def net(figure: "Figure", tests: Mapping[str, Test]) -> str:
    """Draw who is caught by which test. A healthy model stands first: if it is caught, this is a false alarm.

    Nobody is told here which patient is well: who is caught by no test is marked, patient 9 as well as 10.
    """
    from matplotlib.colors import to_rgb

    found = caught(tests)  # (1 + patients, tests)
    well, rows = found[0], found[1:]
    ill = [n for n in casefile.PATIENTS if casefile.bug_of(n)]
    bugs = sum(bool(rows[n - 1].any()) for n in ill)
    slips = [n for n in casefile.PATIENTS if not rows[n - 1].any()]
    false = [name for name, alarm in zip(tests, well, strict=True) if alarm]
    ax = figure.add_subplot()
    blue, still, orange = (np.array(to_rgb(colour)) for colour in (plots.BLUE, casefile.STILL, plots.ORANGE))
    colours = np.where(found.T[..., None], blue, still)  # (tests, 1 + patients, 3)
    colours[well, 0] = orange
    places = np.array([0, *(np.array(casefile.PATIENTS) + 0.5)])  # a gap between the healthy model and the patients
    for x, column in zip(places, colours.swapaxes(0, 1), strict=True):
        ax.imshow(column[:, None], aspect="auto", extent=(x - 0.5, x + 0.5, len(tests), 0))
    ax.set(xlim=(-0.5, places[-1] + 0.5), ylim=(len(tests), 0))
    ax.set_yticks(np.arange(len(tests)) + 0.5, tests, size=10.5)
    ax.set_xticks(places, ["healthy", *map(str, casefile.PATIENTS)])
    ax.get_xticklabels()[0].set(rotation=45, ha="right", rotation_mode="anchor", size=10.5)
    ax.set_xlabel("patient (orange: caught by no test)")
    ax.hlines(range(1, len(tests)), -0.5, places[-1] + 0.5, color="white", lw=5)
    ax.vlines(places[1:] - 0.5, 0, len(tests), color="white", lw=3)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for n in slips:
        ax.get_xticklabels()[n].set(color=plots.ORANGE, weight="bold")
    alarms = f"{len(false) or 'no'} false alarm{'' if len(false) == 1 else 's'}"
    title = f"{bugs} of {len(ill)} bugs are caught, with {alarms}"
    ax.set_title(title)
    listed = "; ".join(
        f"{name}: {', '.join(str(n + 1) for n in np.flatnonzero(rows[:, i])) or 'nobody'}"
        for i, name in enumerate(tests)
    )
    return (
        f"{title}. Caught by no test: {', '.join(map(str, slips)) or 'nobody'}. The healthy model sets off "
        f"{', '.join(false) or 'no test'}. Who is caught by which test: {listed}."
    )
