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
    """Run tests, each from a patient to yes or no, on all patients: (patients, tests) booleans."""
    if not tests:
        raise ValueError('there are no tests; hand over a dictionary, such as {"leak": my_leak_test}')
    found = [[bool(test(patient)) for test in tests.values()] for patient in map(casefile.patient, casefile.PATIENTS)]
    return np.array(found)


@plots.still(width=9.0, height=3.4)
def net(figure: "Figure", tests: Mapping[str, Test]) -> str:
    """Draw who is caught by which test. A healthy model that is caught is a false alarm."""
    from matplotlib.colors import to_rgb

    found = caught(tests)  # (patients, tests)
    well = casefile.PATIENTS.index(next(n for n in casefile.PATIENTS if casefile.bug_of(n) == ""))
    ill = np.delete(np.arange(len(found)), well)
    slips = [int(n) + 1 for n in ill if not found[n].any()]
    false = [name for name, alarm in zip(tests, found[well], strict=True) if alarm]
    ax = figure.add_subplot()
    colours = np.where(found.T[..., None], to_rgb(plots.BLUE), to_rgb(casefile.STILL))
    ax.imshow(colours, aspect="auto", extent=(0.5, len(found) + 0.5, len(tests), 0))
    ax.set_yticks(np.arange(len(tests)) + 0.5, tests, size=10.5)
    ax.set_xticks(casefile.PATIENTS)
    ax.set_xlabel("patient")
    ax.hlines(range(1, len(tests)), 0.5, len(found) + 0.5, color="white", lw=5)
    ax.vlines(np.arange(1.5, len(found)), 0, len(tests), color="white", lw=3)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for n in slips:
        ax.get_xticklabels()[n - 1].set(color=plots.ORANGE, weight="bold")
    title = f"{len(ill) - len(slips)} of {len(ill)} bugs are caught; {len(slips)} slip through"
    ax.set_title(title)
    listed = "; ".join(
        f"{name}: {', '.join(str(n + 1) for n in np.flatnonzero(found[:, i])) or 'nobody'}"
        for i, name in enumerate(tests)
    )
    return (
        f"{title}{': ' + ', '.join(map(str, slips)) if slips else ''}. "
        f"The healthy patient sets off {', '.join(false) or 'no test'}. Who is caught by which test: {listed}."
    )
