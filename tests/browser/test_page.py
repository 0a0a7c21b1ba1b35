"""What stands on a notebook's page is legible in each look; after a restart and a reload, it says what to do."""

from pathlib import Path

import pytest

from lesson_utils.classroom import reloads

pytestmark = [pytest.mark.slow, pytest.mark.long_form]
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "00_start_here.ipynb"
NEW_KERNEL = "This picture does not follow its controls: the kernel is new. Run the set-up cell, then this one."
NAME_ABOVE = "If a cell above makes this name: choose Run → Run All Above Selected Cell, then run this cell."
EDITED = (
    "You edited the cell of weighted_average, but you have not run it since. This verdict is about the version before. "
    "Run that cell, then this one."
)
RIGHT = "def weighted_average(weights, values):\n    return weights @ values"
LONG = "import os, time\nopen({!r}, 'w').close()\nwhile not os.path.exists({!r}):\n    time.sleep(0.1)\ntrained = True"

# A figure with a label and a value that are nearly too wide for a phone.
WIDE = """from lesson_utils.classroom import live

@live.lab(
    width=3,
    height=1,
    gate=live.Slider("bias of the gate that keeps +", -2, 4, 0),
    scale=live.Choice("a scale for", ("each vector", "each channel"), "each vector"),
)
def wide(figure):
    figure.add_subplot()
    return "A gate of {gate} and a scale for {scale}.".format

wide()"""
TRACK = {
    ".noUi-base": "e => e.getBoundingClientRect().width > 60",
    ".widget-readout": "e => e.scrollWidth <= e.clientWidth + 1",
    ".widget-label": "e => e.scrollWidth <= e.clientWidth + 1",
    ".widget-slider": "e => e.offsetLeft + e.offsetWidth <= e.parentElement.clientWidth",
}

# On how many lines each word stands.
LINES_OF_WORDS = """node => {
    const text = node.firstChild
    return [...text.data.matchAll(/\\w+/g)].map(({index, 0: word}) => {
        const range = new Range()
        range.setStart(text, index)
        range.setEnd(text, index + word.length)
        return range.getClientRects().length
    })
}"""

# What is wrong with the outputs: what is cut off, lies over another, or can't be seen. Axe looks at contrast.
WRONG = """() => {
    const found = [], panel = document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect()
    const outputs = [...document.querySelectorAll('.jp-OutputArea-output')].filter(e => e.checkVisibility())
    const parts = selector => outputs.flatMap(e => [...e.querySelectorAll(selector)])
    const inside = selector => parts(selector).filter(e => e.checkVisibility())
    const say = (e, what) => found.push(`${what}: ${e.className || e.tagName} ${e.textContent.slice(0, 40)}`)
    for (const image of inside('img')) {
        const {left, right, width} = image.getBoundingClientRect()
        if (!image.naturalWidth || width < 280) say(image, 'not to be seen')
        if (left < panel.left || right > panel.right) say(image, 'cut off')
    }
    const controls = inside('.widget-label, .widget-readout, .noUi-target, .widget-button')
    controls.forEach((control, n) => {
        const box = control.getBoundingClientRect()
        if (control.scrollWidth > control.clientWidth + 1 && !control.matches('.noUi-target')) say(control, 'cut off')
        if (box.left < panel.left || box.right > panel.right) say(control, 'cut off')
        for (const other of controls.slice(n + 1)) {
            const {left, right, top, bottom} = other.getBoundingClientRect()
            const [width, height] = [[box.left, box.right, left, right], [box.top, box.bottom, top, bottom]]
                .map(([a, b, c, d]) => Math.min(b, d) - Math.max(a, c))
            if (width > 1 && height > 1) say(control, `over ${other.textContent}`)
        }
    })
    const forced = matchMedia('(forced-colors: active)').matches
    const edges = forced ? inside('.noUi-target, .widget-button, .widget-toggle-button') : []
    for (const edge of edges) if (parseFloat(getComputedStyle(edge).borderTopWidth) < 1) say(edge, 'without an edge')
    for (const chosen of inside('.widget-toggle-button.mod-active'))
        for (const other of chosen.parentElement.querySelectorAll('.widget-toggle-button:not(.mod-active)'))
            if (getComputedStyle(chosen).backgroundColor === getComputedStyle(other).backgroundColor)
                say(chosen, 'chosen, and looks as if it were not')
    return found
}"""


def test_each_look(lab):
    """Both themes, forced colours, and two narrow windows: zoomed to 200 %, and beside the list of files."""
    with lab.open(NOTEBOOK.name, 1440, 900) as notebook:
        page = notebook.page
        notebook.run_cell("weighted-average", RIGHT)
        notebook.run_all()
        page.evaluate(
            "document.querySelectorAll('.widget-toggle-buttons').forEach(e => e.querySelector('button').click())"
        )
        page.locator(".jp-OutputArea-output summary", has_text="Compare with what happened").last.wait_for()
        page.evaluate("document.querySelectorAll('.jp-OutputArea-output details').forEach(e => { e.open = true })")

        def command(name, **arguments):
            notebook.ask(f"() => jupyterapp.commands.execute({name!r}, {arguments})")
            page.wait_for_timeout(700)

        def window(width, height):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(300)

        found = {"light": page.evaluate(WRONG)}
        page.emulate_media(forced_colors="active")
        found["forced colours"] = page.evaluate(WRONG)
        page.emulate_media(forced_colors="none")
        command("apputils:change-theme", theme="JupyterLab Dark")
        page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
        found["dark"] = page.evaluate(WRONG)
        command("apputils:change-theme", theme="JupyterLab Light")
        window(720, 450)
        found["200 %"] = page.evaluate(WRONG)
        window(1024, 700)
        command("filebrowser:activate")
        found["beside the list of files"] = page.evaluate(WRONG)
        assert {look: wrong for look, wrong in found.items() if wrong} == {}


def with_tracks(page):
    page.locator(".live-figure img").wait_for()
    page.wait_for_timeout(300)
    for part, measure in TRACK.items():
        assert all(page.evaluate(f"[...document.querySelectorAll('.live-figure {part}')].map({measure})")), part


def test_on_a_phone_a_finger_can_hold_each_slider_and_words_are_whole(lab):
    with lab.open(NOTEBOOK.name, 390, 844) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        notebook.run_cell("first-look", WIDE)
        notebook.ask("() => jupyterapp.shell.collapseLeft()")
        with_tracks(page)
        assert page.locator(".live-figure .noUi-base").count() == 2
        # Beside the slider of a few values nothing can be typed, however late a slider gets its class.
        readout = "document.querySelectorAll('.live-figure .widget-readout')"
        can_type = "([number, typed]) => " + readout + "[number].isContentEditable === typed"
        page.wait_for_function(can_type, arg=[0, True])
        page.wait_for_function(can_type, arg=[1, False])
        page.evaluate("document.querySelector('.any-number').classList.replace('any-number', 'still-to-come')")
        page.wait_for_function(can_type, arg=[0, False])
        page.evaluate("document.querySelector('.still-to-come').classList.replace('still-to-come', 'any-number')")
        page.wait_for_function(can_type, arg=[0, True])

        notebook.run_cell("first-look", "print('You have solved every exercise. ' * 9)")
        printed = page.locator(".jp-OutputArea-output.jp-RenderedText pre", has_text="You have solved every")
        printed.scroll_into_view_if_needed()
        assert printed.evaluate("node => node.offsetHeight") > 40, "on several lines"
        assert set(printed.evaluate(LINES_OF_WORDS)) == {1}


TWO_PANELS = """from lesson_utils.classroom import live

@live.lab(width=9, height=3, d_k=live.Slider("d_k", 1, 64, 1))
def two(figure):
    left, right = figure.subplots(1, 2)
    (line,) = left.plot([0, 64], [0, 0])
    left.set_ylim(0, 64)

    def update(d_k):
        line.set_ydata([0, d_k])
        return f"A line up to {d_k}."

    return update

two()"""
PANELS = """[...document.querySelectorAll('.live-figure img')].map(image => {
    const {left, width} = image.getBoundingClientRect()
    const same = image.src === document.querySelector('.live-figure img').src
    return [Math.round(left), Math.round(width), image.alt, same]
})"""


def test_on_a_phone_panels_stand_below_each_other_and_follow_the_slider(lab):
    with lab.open(NOTEBOOK.name, 390, 844) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        notebook.run_cell("first-look", TWO_PANELS)
        notebook.ask("() => jupyterapp.shell.collapseLeft()")
        page.locator(".live-figure .panel").wait_for()
        page.locator(".live-figure [role=slider]").press("End")
        page.wait_for_function("document.querySelector('.live-figure img').alt.endsWith('64.')")
        (left, width, alt, _), (below, its_width, *other) = page.evaluate(PANELS)
        assert (below, *other) == (left, "", True)
        assert min(width, its_width) > 250
        page.set_viewport_size({"width": 1280, "height": 844})
        page.locator(".live-figure .panel").wait_for(state="detached")
        assert page.evaluate(PANELS)[0][1:3] == [900, alt]


def test_beside_the_list_of_files_each_slider_has_a_track(lab):
    """However long its label is: the sliders go into two lines."""
    with lab.open(NOTEBOOK.name, 1024, 768, beside_files=True) as notebook:
        notebook.run_cell("setup")
        for source in (None, WIDE):
            notebook.run_cell("first-look", source)
            with_tracks(notebook.page)


def test_a_figure_brings_its_script_to_a_page_that_was_loaded_again_and_nothing_can_be_typed_there_either(lab):
    """After a reload without saving, the kernel lives, and the output of the set-up cell is gone."""
    with lab.open(NOTEBOOK.name) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        page.on("dialog", lambda dialog: dialog.accept())  # "Leave this page?"
        page.reload()
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady", timeout=60_000)
        kernel = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
        page.wait_for_function(f"{kernel}?.connectionStatus === 'connected'", timeout=60_000)
        notebook.ask("async panel => { await panel.revealed; await panel.sessionContext.ready }")
        assert not page.evaluate("Boolean(window.attentionCourse)")
        notebook.run_cell("first-look")
        page.locator(".live-figure img").wait_for()
        few, number = (page.locator(".live-figure .widget-readout").nth(place) for place in (0, 1))
        page.wait_for_function(
            "document.querySelector('.widget-slider:not(.any-number) .widget-readout').contentEditable === 'false'"
        )
        assert number.evaluate("node => node.isContentEditable")
        page.locator(".live-figure [role=slider]").first.press("End")
        page.wait_for_function(
            "document.querySelector('.widget-slider:not(.any-number) .widget-readout').textContent === 'wide'"
        )
        page.wait_for_timeout(500)
        assert not few.evaluate("node => node.isContentEditable")


def test_a_number_beside_a_slider_counts_also_with_a_comma_and_when_one_leaves_it(lab):
    with lab.open(NOTEBOOK.name) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        notebook.run_cell("first-look")
        figure = notebook.live_figures()[0]
        for number, leave, said in (("0.5", "Enter", "0.5"), ("0,2", "Tab", "0.2")):
            before = figure.src
            page.get_by_role("textbox", name="temperature τ").click()
            page.keyboard.press("ControlOrMeta+a")
            page.keyboard.type(number)
            page.keyboard.press(leave)
            assert figure.wait_for_picture(other_than=before)
            assert f"At temperature {said}." in figure.alt


def test_what_is_typed_at_a_control_leaves_the_cell_as_it_is(lab):
    """JupyterLab makes a heading of the cell by 5, cuts it by x, deletes it by dd."""
    with lab.open(NOTEBOOK.name) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        notebook.run_cell("first-look", WIDE)
        page.locator(".live-figure img").wait_for()
        page.wait_for_function(
            "document.querySelector('.widget-slider:not(.any-number) .widget-readout')?.contentEditable === 'false'"
        )
        before = [(cell["id"], cell["cell_type"]) for cell in notebook.cells]
        sliders = page.locator(".live-figure .widget-slider")
        for number in range(2):
            slider = sliders.nth(number)
            handle = slider.locator("[role=slider]")
            for part in (".widget-readout", ".widget-label", ".noUi-base", "[role=slider]"):
                if number == 0 and part == ".widget-readout":
                    continue  # it takes what is typed
                box = slider.locator(part).bounding_box()
                page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
                assert handle.evaluate("node => node === document.activeElement"), (number, part)
                page.keyboard.type("5xddM ")
                assert handle.evaluate("node => node === document.activeElement"), (number, part)
        page.wait_for_timeout(500)
        assert [(cell["id"], cell["cell_type"]) for cell in notebook.cells] == before
        page.keyboard.press("Home")
        page.wait_for_function(
            "document.querySelector('.widget-slider:not(.any-number) .widget-readout').textContent === 'each vector'"
        )
        page.keyboard.press("End")
        page.wait_for_function(
            "document.querySelector('.widget-slider:not(.any-number) .widget-readout').textContent === 'each channel'"
        )


def test_after_a_restart_figures_and_missing_names_say_what_to_do(lab):
    with lab.open(NOTEBOOK.name) as notebook:
        page = notebook.page
        notebook.run_cell("setup")
        notebook.run_cell("first-look")
        slider = page.locator(".live-figure [role=slider]").nth(1)
        slider.press("ArrowLeft")
        page.wait_for_timeout(3500)
        notes = page.locator(".no-answer")
        assert notes.count() == 0, "the picture has followed"
        notebook.ask("({sessionContext}) => sessionContext.restartKernel()")
        slider.press("ArrowLeft")
        notes.wait_for(timeout=30_000)
        assert notes.all_text_contents() == [NEW_KERNEL]
        notebook.run_cell("weighted-average-check")
        page.wait_for_function("document.querySelectorAll('.no-answer').length === 2")
        assert notes.all_text_contents()[1] == NAME_ABOVE
        notebook.run_cell("setup")
        notebook.run_cell("first-look")
        page.wait_for_function("document.querySelectorAll('.no-answer').length === 1")


def test_after_a_restart_a_prediction_does_not_say_that_it_is_noted(lab):
    with lab.open(NOTEBOOK.name) as notebook:
        options = notebook.page.locator(".prediction button")
        noted = notebook.page.get_by_text("Noted. Go on below.").locator("visible=true")
        notebook.run_cell("setup")
        notebook.run_cell("predict-tired")
        options.first.click()
        noted.wait_for()
        notebook.ask("({sessionContext}) => sessionContext.restartKernel()")
        options.last.click()
        notebook.page.get_by_text("Nobody notes your choice: the kernel is new.").wait_for()
        assert noted.count() == 0


def test_a_verdict_about_a_version_that_no_longer_stands_there_says_so(lab):
    with lab.open(NOTEBOOK.name) as notebook:
        notebook.run_cell("setup")
        number = [cell["id"] for cell in notebook.cells].index("weighted-average")

        def edit(source):
            notebook.ask(f"({{content}}) => content.widgets[{number}].model.sharedModel.setSource({source!r})")

        def notes():
            notebook.run_cell("weighted-average-check")
            notebook.page.locator(".jp-OutputArea-output [role=status][data-compared]").wait_for()
            return notebook.page.locator(".no-answer").all_text_contents()

        notebook.run_cell("weighted-average", RIGHT.replace("weights @ values", "values"))
        edit(RIGHT)
        assert notes() == [EDITED]
        notebook.run_cell("weighted-average", RIGHT)
        assert notes() == []
        edit(RIGHT.replace("weights @ values", "("))
        assert notes() == [EDITED], "green, under a cell that holds something else"
        edit(RIGHT)
        assert notes() == [], "as it was run"


def test_hints_stay_open_when_a_check_is_run_again(lab):
    with lab.open(NOTEBOOK.name) as notebook:
        notebook.run_cell("setup")
        notebook.run_cell("weighted-average", RIGHT.replace("weights @ values", "values"))
        notebook.run_cell("weighted-average-check")
        hints = notebook.page.locator(".jp-OutputArea-output [role=status] details")
        assert hints.count() > 1
        hints.first.locator("summary").first.click()
        for _ in range(2):
            notebook.run_cell("weighted-average-check")
            notebook.page.locator(".jp-OutputArea-output details[open]").wait_for()
            assert notebook.page.locator(".jp-OutputArea-output details[open]").count() == 1
        hints.first.locator("summary").first.click()
        notebook.page.wait_for_timeout(300)
        notebook.run_cell("weighted-average-check")
        assert notebook.page.locator(".jp-OutputArea-output details[open]").count() == 0


def test_a_reload_while_a_cell_runs_is_said(lab, tmp_path):
    with lab.open(NOTEBOOK.name) as notebook:
        page, began, go = notebook.page, tmp_path / "began", tmp_path / "go"
        notebook.run_cell("setup")
        notebook.ask("({context}) => context.save()")
        number = [cell["id"] for cell in notebook.cells].index("weighted-average")
        notebook.ask(
            f"""({{content}}) => {{
                content.activeCellIndex = {number}
                content.activeCell.model.sharedModel.setSource({LONG.format(*map(str, (began, go)))!r})
                jupyterapp.commands.execute('notebook:run-cell')
            }}"""
        )
        while not began.exists():
            page.wait_for_timeout(100)
        page.wait_for_timeout(1000 * reloads.LOADING + 500)  # the set-up cell ended before the page could be reloaded
        page.reload()
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady", timeout=60_000)
        kernel = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
        page.wait_for_function(f"{kernel}?.connectionStatus === 'connected'", timeout=60_000)
        go.touch()  # the page is there again, and the cell ends
        notebook.ask("async panel => { await panel.revealed; await panel.sessionContext.ready }")
        (output,) = notebook.run_cell("weighted-average-check", "print(trained)")
        assert "".join(output["text"]).startswith("The page was reloaded while this cell ran:\n    import os, time\n")
        assert "".join(output["text"]).endswith("\nTrue\n")


PLAYS = """() => {
    const figure = document.querySelector('.live-figure')
    return [figure.querySelector('.widget-play button').ariaLabel, figure.querySelector('img').alt.split(':')[0]]
}"""


@pytest.mark.parametrize("why", ["all predicted", "nothing predicted", "less motion", "a hand"])
def test_a_figure_plays_once_when_predictions_are_made_and_motion_is_wanted(lab, why):
    with lab.open(NOTEBOOK.name) as notebook:
        page = notebook.page
        page.emulate_media(reduced_motion="reduce" if why == "less motion" else "no-preference")
        for cell in ("setup", "predict-tired", "predict-wide"):
            notebook.run_cell(cell)
            if cell != "setup":
                page.locator(".prediction").last.wait_for()
        if why != "nothing predicted":
            for prediction in page.locator(".prediction").all():
                prediction.locator("button").first.click()
        notebook.run_cell("first-look")
        page.locator(".live-figure .widget-play button").first.wait_for()
        page.locator(".live-figure img").scroll_into_view_if_needed()
        if why in ("all predicted", "a hand"):
            page.wait_for_function("document.querySelector('.live-figure .fa-pause')")
        if why == "a hand":
            page.wait_for_timeout(1000)
            page.locator(".live-figure [role=slider]").last.press("ArrowRight")
        if why == "all predicted":
            page.wait_for_function(f"({PLAYS})()[1] === '… too wide'", timeout=20_000)
            page.wait_for_function("document.querySelector('.live-figure .fa-play')")
        page.wait_for_timeout(3000)
        label, title = page.evaluate(PLAYS)
        assert label == "Play"
        assert title == ("… too wide" if why == "all predicted" else "… too tired")
        alike = "every word alike" in page.locator(".live-figure img").get_attribute("alt")
        assert alike == (why in ("nothing predicted", "less motion"))
