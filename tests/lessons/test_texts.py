"""What the notebooks promise, held against their texts: the time it takes, short cells, words explained before use."""

import re

import pytest

from lesson_utils.classroom.course import LESSONS
from tools.prose import minutes, read, states_a_finding, with_places, words

# Each is in bold where it is introduced, and not used before. Earlier lessons may look ahead, in a cell that names or
# links the notebook.
TERMS = """
attention, weight, temperature, hidden state, embedding, loss, teacher forcing, update gate, reset gate, input gate,
output gate, forget gate, encoder–decoder, begin symbol, end symbol, clipping, learning-rate warm-up, alignment,
self-attention, cross-attention, entropy, jacobian, mask, multi-head, layer norm, batch norm, residual connection,
skip connection, residual stream, pre-norm, post-norm, rank collapse, dropout, cross-entropy, autoregressive,
causal mask, perplexity, key–value cache, unigram entropy, bigram entropy, top-k, top-p,
label smoothing, central difference, induction head, online softmax, rolling cache, linear attention,
delta rule, grouped-query attention, speculative decoding, cache parity
"""
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


@every_lesson
def test_the_time_it_says_is_the_time_it_takes(lesson):
    notebook = read(lesson)
    title = notebook.cells[0].source
    said = re.search(r"\*\*Time:\*\* about (\d+) minutes(?:, (\d+) with the sections marked \*Further\*)?\.", title)
    assert said, "the first cell says: **Time:** about 45 minutes, 70 with the sections marked *Further*."
    core, whole = (5 * round(time / 5) for time in minutes(lesson, notebook))
    assert core <= 60, "move what the core does not need into a section marked Further"
    counted = f"about {core} minutes, {whole} with the sections marked *Further*"
    assert (core, whole) == (int(said[1]), int(said[2] or said[1])), f"by `python -m tools prose` it takes {counted}"


@every_lesson
def test_cells_are_short(lesson):
    for cell, _, references in with_places(read(lesson)):
        if cell.cell_type == "code":
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= 15, f"a cell of code has at most 15 lines; these are {len(lines)}: {cell.source}"
        else:
            left_out = ("|", "- ") if references else "|"
            prose = "\n".join(line for line in cell.source.splitlines() if not line.startswith(left_out))
            count = len(words(prose))
            assert count <= 120, f"a cell of text has at most 120 words; these are {count}: {cell.source}"


@every_lesson
def test_code_cells_teach(lesson):
    """What guards the text stands in one call."""
    for cell in read(lesson).cells:
        if cell.cell_type == "code":
            assert not re.search(r"^\s*assert\b", cell.source, re.M), (
                f"its claims belong to tests/claims: {cell.source}"
            )
            assert cell.source.count("lab.as_written(") <= 1, cell.source


@pytest.fixture(scope="module")
def texts():
    """The cells of text of each lesson."""
    return {lesson: [cell.source for cell in read(lesson).cells if cell.cell_type == "markdown"] for lesson in LESSONS}


@pytest.mark.parametrize("term", re.split(r",\s+", TERMS.strip()))
def test_words_are_explained_before_they_are_used(texts, term):
    bold = re.compile(rf"\*\*{re.escape(term)}s?\*\*", re.I)
    introduce = [lesson for lesson, cells in texts.items() if bold.search("\n\n".join(cells))]
    assert introduce, f"**{term}** is nowhere in bold"
    home = introduce[0]
    for lesson in LESSONS[: LESSONS.index(home)]:
        for cell in texts[lesson]:
            assert not uses(term, cell) or looks_ahead(cell, home), f"{term!r} is for {home.notebook}: {cell}"
    # Titles, questions and what the reader is about to learn come before everything else.
    body = "\n\n".join(texts[home][1:])
    if found := bold.search(body):
        assert min(uses(term, body)) >= found.start(), f"{term!r} is used before it is introduced in bold"


def uses(term, text):
    """Where a text uses the term; code and formulas don't count."""
    plain = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", lambda match: " " * len(match[0]), text)
    return [match.start() for match in re.finditer(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", plain, re.I)]


def looks_ahead(text, lesson):
    return lesson.notebook in text or re.search(rf"\bnotebooks?\b[^.]*\b{lesson.number:02}\b", text)


@every_lesson
def test_every_figure_states_a_finding(lesson):
    """Its first sentence has a number or a verb."""
    for cell in read(lesson).cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                finding = output.data["text/plain"].split(". ")[0]
                assert states_a_finding(finding), f"{finding!r} has no number and no verb"
