"""What notebooks draw with: it fits its paper, updates in place, and shows what it is given."""

import numpy as np
import pytest

from lesson_utils.classroom import drawings, legible, plots


@pytest.fixture
def ax():
    with plots.style():
        yield drawings.sheet(plots.figure(6, 3))


def test_a_sheet_counts_in_inches_and_leaves_room_for_its_title(ax):
    ax.set_title("A finding")
    ax.figure.canvas.draw()
    (x0, y0), (x1, y1) = ax.transData.transform([(1, 1), (2, 2)])
    assert (x1 - x0, y1 - y0) == pytest.approx((ax.figure.dpi, ax.figure.dpi))
    assert not legible.titles_outside(ax.figure)


def test_a_box_knows_the_middles_of_its_sides(ax):
    box = drawings.box(ax, 2, 1, "encoder", width=1.2, height=0.4)
    assert (box.left, box.right) == ((1.4, 1), (2.6, 1))
    assert (box.bottom, box.top) == ((2, 0.8), (2, 1.2))


@pytest.mark.parametrize("rise", [0.0, 0.5, -0.5])
def test_threads_start_and_end_where_they_should(ax, rise):
    starts, ends = np.array([[1.0, 1.0]]), np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    threads = drawings.Threads(ax, starts, ends, rise=rise)
    paths = [path.vertices for path in threads.lines.get_paths()]
    for path, end in zip(paths, ends, strict=True):
        assert path[0] == pytest.approx(starts[0])
        assert path[-1] == pytest.approx(end)
    tops = [np.abs(path[:, 1] - 1).max() for path in paths]
    assert tops[2] == pytest.approx(abs(rise))  # the longest
    if rise:
        assert tops[0] > 0.1  # a loop
        assert tops[1] < tops[2]


def test_threads_are_as_thick_as_their_weights_and_the_heavy_ones_darker(ax):
    threads = drawings.Threads(ax, np.zeros((3, 2)), np.ones((3, 2)), widest=10)
    threads.set([0.001, 0.2, 0.8])
    assert threads.lines.get_linewidths() == pytest.approx([0, 2, 8])
    light = [plots.luminance(colour[:3]) for colour in threads.lines.get_colors()]
    assert light[1] > light[2]


def test_a_matrix_shows_its_numbers_in_legible_ink_and_hatches_what_is_hidden(ax):
    matrix = drawings.Matrix(ax, 1, 2, (2, 11), colour=plots.VALUE)
    weights = np.array([np.linspace(0, 1, 11)] * 2)
    matrix.set(weights, hidden=(weights == 0) | (weights == 1), strength=weights)
    assert len(matrix.hatch.get_paths()) == 4
    for ink, cell in zip(matrix.numbers.get_facecolor(), matrix.cells.get_facecolor(), strict=True):
        dark, light = sorted((plots.luminance(ink[:3]), plots.luminance(cell[:3])))
        assert (light + 0.05) / (dark + 0.05) >= 4.3
    widths = np.array([np.ptp(path.vertices[:, 0]) for path in matrix.numbers.get_paths()]).reshape(2, 11)
    assert (widths[:, [0, -1]] == 0).all()
    assert (widths[:, 1:-1] > 0.2).all()
    assert widths.max() < 0.42
