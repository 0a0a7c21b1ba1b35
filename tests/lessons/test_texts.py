"""What the notebooks promise, held against their texts: the time it takes, short cells, words explained before use.

Only notebooks of the second edition are judged; when all are in, `EDITION_2` goes.
"""

import math
import re
from pathlib import Path

import nbformat
import pytest

from lesson_utils.classroom.course import LESSONS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
EDITION_2 = {
    "start_here",
    "bottleneck",
    "scaled_attention",
    "multi_head",
    "positional_encoding",
    "full_block",
    "causal_mask",
    "training",
    "real_model",
    "efficient_attention",
    "debugging",
}

# Each term and the lesson that introduces it, in bold, before it uses it. Earlier lessons may look ahead, in a cell
# that names or links that notebook.
TERMS = {
    "attention": "start_here",
    "weight": "start_here",
    "temperature": "start_here",
    "hidden state": "bottleneck",
    "embedding": "bottleneck",
    "loss": "bottleneck",
    "teacher forcing": "bottleneck",
    "update gate": "bottleneck",
    "reset gate": "bottleneck",
    "input gate": "bottleneck",
    "output gate": "bottleneck",
    "encoder–decoder": "bottleneck",
    "begin symbol": "bottleneck",
    "end symbol": "bottleneck",
    "clipping": "bottleneck",
    "learning-rate warm-up": "bottleneck",
    "alignment": "bottleneck",
    "forget gate": "bottleneck",
    "self-attention": "scaled_attention",
    "cross-attention": "scaled_attention",
    "entropy": "scaled_attention",
    "jacobian": "scaled_attention",
    "mask": "scaled_attention",
    "multi-head": "multi_head",
    "layer norm": "full_block",
    "batch norm": "full_block",
    "residual connection": "full_block",
    "skip connection": "full_block",
    "residual stream": "full_block",
    "pre-norm": "full_block",
    "post-norm": "full_block",
    "rank collapse": "full_block",
    "dropout": "full_block",
    "cross-entropy": "full_block",
    "autoregressive": "full_block",
    "causal mask": "causal_mask",
    "perplexity": "causal_mask",
    "exposure bias": "causal_mask",
    "key–value cache": "causal_mask",
    "unigram entropy": "causal_mask",
    "bigram entropy": "causal_mask",
    "top-k": "causal_mask",
    "top-p": "causal_mask",
    "label smoothing": "training",
    "central difference": "training",
    "induction head": "real_model",
    "logit lens": "real_model",
    "online softmax": "efficient_attention",
    "rolling cache": "efficient_attention",
    "linear attention": "efficient_attention",
    "delta rule": "efficient_attention",
    "grouped-query attention": "efficient_attention",
    "speculative decoding": "efficient_attention",
    "cache parity": "debugging",
}
# Said in a figure's first sentence, one of these makes a finding of it. So does a number.
VERBS = set(
    "is are was were has have had does do goes go gets get gives give takes take keeps keep loses lose lies lie stays "
    "stay grows grow falls fall rises rise spreads spread looks look leans lean finds find needs need holds hold makes "
    "make sees see moves move beats beat opens open differ differs agrees agree shout fades fade vanishes vanish "
    "stand stands "
    "explodes explode reads read writes write learns learn fails fail works work adds add costs cost shows show turns "
    "turn swap swaps repeat repeats match matches point points tells tell becomes become decides decide".split()
)


def lessons():
    chosen = [lesson for lesson in LESSONS if lesson.name in EDITION_2]
    return pytest.mark.parametrize("lesson", chosen, ids=[lesson.name for lesson in chosen])


def read(lesson):
    return nbformat.read(NOTEBOOKS / lesson.notebook, as_version=4)


def with_places(notebook):
    """Each cell with what its place says: is it in a part marked *Further*, is it below the references?

    Such a part begins with a heading that says so, and ends at the next heading of the same or a higher level.
    """
    level, references = math.inf, False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for marks, heading in re.findall(r"^(#+) (.+)$", cell.source, re.M):
                if "*Further*" in heading:
                    level = len(marks)
                elif len(marks) <= level:
                    level = math.inf
                references = heading == "References"
        yield cell, level < math.inf, references


def words(text):
    """Without displayed formulas, code, HTML tags, the addresses of links and the lines of tables."""
    text = re.sub(r"\$\$.*?\$\$|```.*?```|<[^>]+>", " ", text, flags=re.S)
    return [word for word in re.sub(r"\]\([^)]*\)", "]", text).split() if re.search(r"\w", word)]


def minutes(lesson):
    """A model of a learner, for the core and for the whole notebook.

    A minute for 150 words, for 20 lines of code, for a prediction and for a question of the quiz; two and a half for a
    live figure; for an exercise what its heading says, its stub included. The set-up cell, guards, the line that says
    what is solved, and those that say what comes trained are not read.
    """
    core = whole = 0.0
    for cell, further, references in with_places(read(lesson)):
        if references or cell.id in ("setup", "progress") or "exercise" in cell.metadata.get("tags", []):
            continue
        source = cell.source
        if cell.cell_type == "markdown":
            time = len(words(source)) / 150 + source.count("**Predict:**")
            time += sum(int(n) for n in re.findall(r"^### .*\*\((\d+) minutes?\b", source, re.M))
        else:
            lines = [line for line in without_guards(source).splitlines() if line.strip()]
            time = len(lines) / 20 + 2.5 * sum(WIDGET_VIEW in output.get("data", {}) for output in cell.outputs)
            time += len(lesson.questions()) * ("quiz.checkpoint(" in source)
        whole += time
        core += time * (not further)
    return core, whole


def without_guards(source):
    source = re.sub(r"^@trained\..*|^TRAIN = .*|^from lesson_utils import trained$", "", source, flags=re.M)
    return re.sub(r"^( *)lab\.as_(?:written|timed)\((?:.*\)|[^\n]*\n(?:.*\n)*?\1\))$", "", source, flags=re.M)


@lessons()
def test_the_time_it_says_is_the_time_it_takes(lesson):
    title = read(lesson).cells[0].source
    said = re.search(r"\*\*Time:\*\* about (\d+) minutes(?:, (\d+) with the sections marked \*Further\*)?\.", title)
    assert said, "the first cell says: **Time:** about 45 minutes, 70 with the sections marked *Further*."
    core, whole = minutes(lesson)
    assert core <= 60, f"the core takes {core:.0f} minutes"
    assert core == pytest.approx(int(said[1]), rel=0.15), f"{core:.0f} of {whole:.0f} minutes without *Further*"
    assert whole == pytest.approx(int(said[2] or said[1]), rel=0.15), f"{whole:.0f} minutes in all"


def test_the_model_of_time_counts_what_it_says(monkeypatch):
    cell = nbformat.v4.new_markdown_cell
    code = nbformat.v4.new_code_cell
    live = nbformat.v4.new_output("display_data", {WIDGET_VIEW: {}})
    notebook = nbformat.v4.new_notebook(
        cells=[
            cell("# Title\n" + "word " * 298),
            cell("## 1 · More · *Further*\n**Predict:** $$a = b + c$$ [a](b.c)"),
            code("lab.x()", outputs=[live]),
            cell("### Exercise 1 · It *(10 minutes, hard)*"),
            cell("## 2 · Core"),
            code("x = 1\nlab.as_written(\n    right=x == 1,\n)\nlab.as_written(right=x == 1)\n" + "x = 2\n" * 19),
            cell("## References\n" + "word " * 1000),
        ]
    )
    monkeypatch.setitem(globals(), "read", lambda lesson: notebook)
    core, whole = minutes(LESSONS[0])
    assert core == pytest.approx(301 / 150 + 20 / 20)
    assert whole - core == pytest.approx(11 / 150 + 1 + 2.5 + 1 / 20 + 10)


@lessons()
def test_cells_are_short(lesson):
    for cell, _, references in with_places(read(lesson)):
        if cell.cell_type == "code":
            assert len([line for line in cell.source.splitlines() if line.strip()]) <= 15, cell.source
        elif not references:
            prose = "\n".join(line for line in cell.source.splitlines() if not line.startswith("|"))
            assert len(words(prose)) <= 120, f"{len(words(prose))} words: {cell.source}"


@lessons()
def test_code_cells_teach(lesson):
    """What guards the text stands in one call."""
    for cell in read(lesson).cells:
        if cell.cell_type == "code":
            assert not re.search(r"^\s*assert\b", cell.source, re.M), cell.source
            assert cell.source.count("lab.as_written(") <= 1, cell.source


def uses(term, text):
    """Where a text uses the term; code and formulas don't count."""
    plain = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", lambda match: " " * len(match[0]), text)
    return [match.start() for match in re.finditer(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", plain, re.I)]


def looks_ahead(text, lesson):
    return lesson.notebook in text or re.search(rf"\bnotebooks?\b[^.]*\b{lesson.number:02}\b", text)


@lessons()
@pytest.mark.parametrize(("term", "home"), TERMS.items())
def test_words_are_explained_before_they_are_used(lesson, term, home):
    (home,) = [other for other in LESSONS if other.name == home]
    text = [cell.source for cell in read(lesson).cells if cell.cell_type == "markdown"]
    if lesson.number < home.number:
        for cell in text:
            assert not uses(term, cell) or looks_ahead(cell, home), f"{term!r} is for {home.notebook}: {cell}"
    if lesson == home:
        # Titles, questions and what the reader is about to learn come before everything else.
        body = "\n\n".join(text[1:])
        bold = re.search(rf"\*\*{re.escape(term)}s?\*\*", body, re.I) or re.search(
            rf"\*\*{re.escape(term)}s?\*\*", text[0], re.I
        )
        assert bold, f"**{term}** is nowhere in bold"
        if bold.string is body:
            assert min(uses(term, body)) >= bold.start(), f"{term!r} is used before it is introduced in bold"


@lessons()
def test_every_figure_states_a_finding(lesson):
    for cell in read(lesson).cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                finding = output.data["text/plain"].split(". ")[0]
                assert re.search(r"\d", finding) or VERBS & set(re.findall(r"[a-z]+", finding.lower())), finding
