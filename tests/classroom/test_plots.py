"""Pictures carry alternative text, use the house style, and leave matplotlib as it was."""

import base64
import io
import itertools

import colorspacious
import matplotlib
import matplotlib.colors
import numpy as np
import pytest
from PIL import Image

from lesson_utils.classroom import plots


def contrast(a, b):
    dark, light = sorted((plots.luminance(a), plots.luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def test_colours_are_readable_as_text_on_white():
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.005)  # the example every contrast checker gives
    for colour in (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE, plots.GREY, plots.INK):
        assert contrast(colour, "white") >= 4.5


@pytest.mark.parametrize(
    ("colours", "kind", "least"),
    [
        ((plots.BLUE, plots.ORANGE), "deuteranomaly", 40),
        ((plots.BLUE, plots.ORANGE), "protanomaly", 40),
        ((plots.BLUE, plots.ORANGE), "tritanomaly", 40),
        ((plots.QUERY, plots.KEY, plots.VALUE), "deuteranomaly", 20),
        ((plots.QUERY, plots.KEY, plots.VALUE), "protanomaly", 15),  # "tritanomaly" has one man in ten thousand
    ],
)
def test_colours_that_are_compared_differ_for_colour_blind_readers(colours, kind, least):
    """Black and white are 100 apart. All that needs more colours needs dashes, markers or words beside them, too."""
    space = {"name": "sRGB1+CVD", "cvd_type": kind, "severity": 100}
    rgb = map(matplotlib.colors.to_rgb, colours)
    seen = [np.clip(colorspacious.cspace_convert(colour, space, "sRGB1"), 0, 1) for colour in rgb]
    for a, b in itertools.combinations(seen, 2):
        assert colorspacious.deltaE(a, b, input_space="sRGB1") > least


def test_maps_can_be_read_without_their_colours():
    def lightness(name, steps):
        return np.array([plots.luminance(colour[:3]) for colour in plots.colour_map(name, steps)(np.arange(steps))])

    assert (np.diff(lightness(*plots.WEIGHTS_MAP)) < 0).all()
    scores = lightness(*plots.SCORES_MAP)
    middle = len(scores) // 2
    assert (np.diff(scores[: middle + 1]) > 0).all()
    assert (np.diff(scores[middle:]) < 0).all()


def test_titles_that_do_not_fit_small_letters_and_large_pictures_are_refused_where_notebooks_are_tested(monkeypatch):
    with pytest.raises(ValueError, match="alt is empty"):
        plots.picture(plots.figure(), " ")
    wide = plots.figure(2, 1)
    wide.add_subplot(title="A title that is far too long for two inches")
    with pytest.raises(ValueError, match=r"'A title that is far .* runs out of the picture; make it shorter"):
        plots.picture(wide, "An empty plot.")
    monkeypatch.delenv("COURSE_STRICT")
    assert plots.picture(wide, "An empty plot.").png
    monkeypatch.setenv("COURSE_STRICT", "1")
    for text, size, least in (("small", 6.4, "6.4"), ("$d_k$", 9, "6.3")):
        small = plots.figure(2, 1)
        small.text(0.5, 0.5, text, size=size)
        with pytest.raises(ValueError, match=f"has letters of {least} points; make them at least 6.5"):
            plots.picture(small, "A text.")
    noise = plots.figure(9, 9)
    noise.add_subplot().imshow(np.random.default_rng(0).normal(size=(500, 500)))
    with pytest.raises(ValueError, match=r"a picture of [\d,]+ bytes; notebooks store at most 60,000"):
        plots.picture(noise, "Noise.")


def test_style_lasts_as_long_as_its_block():
    before = dict(matplotlib.rcParams)
    with plots.style():
        assert matplotlib.rcParams["axes.titlelocation"] == "left"
    plots.picture(plots.figure(), "Nothing.")
    assert dict(matplotlib.rcParams) == before


def test_picture_shows_the_figure_with_its_alternative_text():
    figure = plots.figure(4, 3)
    figure.add_subplot().plot([0, 1], [0, 1], color=plots.ORANGE, lw=5)
    picture = plots.picture(figure, 'A line, "rising".')
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    assert image.size == (4 * 125, 3 * 125)
    assert (picture.width, picture.height) == (400, 300)
    assert image.getpixel((0, 0)) == (255, 255, 255)
    error = np.abs(np.asarray(image) - np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int))
    assert error.mean() < 0.5  # 256 colours, well chosen
    assert error.max() < 50  # where a letter meets a line

    bundle = picture._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]) == picture.png
    assert 'alt="A line, &quot;rising&quot;."' in bundle["text/html"]
    assert bundle["text/plain"] == 'A line, "rising".'


def test_a_still_draws_in_the_house_style_and_shows_its_text():
    @plots.still(4, 2)
    def line(figure, *, title):
        """A line."""
        assert matplotlib.rcParams["axes.titlelocation"] == "left"
        figure.add_subplot().plot([0, 1])
        return f"{title}: a line rises."

    picture = line(title="Here")
    assert (picture.width, picture.height, picture.alt) == (400, 200, "Here: a line rises.")
    assert line.__doc__ == "A line."


def test_a_heatmap_shows_each_number_where_it_is_and_as_text():
    alt = plots.describe([[0.9, 0.1]], ["it"], ["cat", "dog"], "It looks at the cat")
    assert alt == "It looks at the cat. Heat map, query by key. Largest in each row: it: cat 0.90."
    ax = plots.figure().add_subplot()
    matrix = np.array([[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]])
    plots.draw_heatmap(ax, matrix)
    shown = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts}
    assert shown == {ij: f"{matrix[ij]:.1f}".replace("-", "−") for ij in np.ndindex(2, 3)}
    np.testing.assert_array_equal(ax.images[0].get_array(), matrix)
    assert ax.images[0].norm.vmin == -0.6  # negative numbers: colours around 0


def test_heatmap_numbers_contrast_with_their_cells():
    ax = plots.figure().add_subplot()
    plots.draw_heatmap(ax, np.linspace(-1, 1, 12)[None])
    image = ax.images[0]
    for text, value in zip(ax.texts, image.get_array()[0], strict=True):
        assert contrast(text.get_color(), image.cmap(image.norm(value))) >= 4.5, text.get_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), r"matrix has shape \(2,\); expected two axes"),
        ((np.zeros((0, 3)),), r"shape \(0, 3\)"),
        (([[np.nan]],), "all numbers finite"),
        ((np.eye(2), ["a"]), r"1 row and 2 column names for a matrix of shape \(2, 2\)"),
        ((np.array([["a"]]),), "matrix has dtype"),
    ],
)
def test_heatmap_refuses_what_is_no_matrix(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.draw_heatmap(plots.figure().add_subplot(), *arguments)
