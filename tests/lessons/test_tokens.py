"""The numbers behind notebook 11: merges, cuts and their way back, tables of pieces, a counter of letters."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.lessons.tokens import lab, pieces
from lesson_utils.lessons.tokens.pieces import Table
from lesson_utils.maths import tasks

TEXT = tasks.python_text()[:4000]
VOCABULARY = tasks.text_vocabulary(TEXT)
BASE = len(VOCABULARY)

texts = st.lists(st.integers(0, 3), min_size=1, max_size=60).map(np.array)  # few ids, so that pairs and runs are common
pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))


def merged_by_hand(ids, pair, new):
    """One id after the other."""
    found, at = [], 0
    while at < len(ids):
        together = tuple(ids[at : at + 2]) == pair
        found.append(new if together else ids[at])
        at += 1 + together
    return found


def before_merging(tokens, merges, base):
    """The ids of the text that the tokens were cut from."""
    inside = [[n] for n in range(base)]
    for first, second in merges:
        inside.append(inside[first] + inside[second])
    return [n for token in tokens for n in inside[token]]


def probability_by_hand(text, before, id_, V):
    """Witten and Bell's method C with plain counts, from the shortest context to the longest."""
    p = 1 / V
    for n in range(len(before) + 1):
        context = before[len(before) - n :]
        next_ids = Counter(text[i + n] for i in range(len(text) - n) if text[i : i + n] == context)
        if next_ids:
            p = (next_ids[id_] + len(next_ids) * p) / (next_ids.total() + len(next_ids))
    return p


# --- Merging --------------------------------------------------------------------------------------------------------


@given(texts, pairs)
def test_a_merge_is_what_going_from_left_to_right_finds(ids, pair):
    before = ids.copy()
    assert pieces.merge_pairs(ids, pair, 9).tolist() == merged_by_hand(ids.tolist(), pair, 9)
    assert (ids == before).all()


@given(texts)
def test_the_quick_loop_learns_what_the_plain_loop_learns(ids):
    plain, rest = [], ids
    for new in range(4, 12):
        if len(rest) < 2 or Counter(pairwise(rest)).most_common(1)[0][1] < 2:
            break
        plain.append(pieces.commonest_pair(rest, new))
        rest = pieces.merge_pairs(rest, plain[-1], new)
    learned = pieces.learn(ids, 8, 4)
    # Its counts overlap in runs, as those of the notebook do: a a a has two pairs.
    assert [tuple(pair) for pair in learned.tolist()] == plain


@pytest.mark.parametrize("count", [-3.7, -1, 2.5])
def test_how_many_merges_there_are_is_a_whole_number(count):
    with pytest.raises(ValueError, match="count"):
        pieces.learn(np.array([0, 1, 0, 1]), count, 4)


def test_of_pairs_that_are_as_frequent_the_smallest_ids_come_first():
    assert pieces.commonest_pair(np.array([3, 1, 0, 2, 3, 1, 0, 2]), 4) == (0, 2)


@given(texts)
def test_no_merge_crosses_a_wall(ids):
    learned = pieces.learn(ids, 8, 4, wall=0)
    assert 0 not in learned


# --- Cutting, and back -----------------------------------------------------------------------------------------------

MERGES = pieces.learn(VOCABULARY.encode(TEXT), 150, BASE)
NAMES = pieces.spelled(MERGES, pieces.characters(VOCABULARY))
RANKS = {(int(a), int(b)): rank for rank, (a, b) in enumerate(MERGES)}
written = st.text(VOCABULARY.characters, max_size=80)


@given(written)
def test_decoding_gives_the_text_back(text):
    ids = VOCABULARY.encode(text)
    tokens = pieces.apply(ids, MERGES, BASE)
    assert "".join(NAMES[id_] for id_ in tokens) == text
    assert before_merging(tokens, MERGES, BASE) == ids.tolist()


@given(written)
def test_merging_the_first_learned_first_is_applying_all_in_their_order(text):
    ids = VOCABULARY.encode(text)
    assert pieces.cut(ids.tolist(), RANKS, BASE) == pieces.apply(ids, MERGES, BASE).tolist()


BYTE_MERGES = pieces.learn(pieces.to_bytes(TEXT), 50, 256)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_bytes_know_every_character(text):
    tokens = pieces.apply(pieces.to_bytes(text), BYTE_MERGES, 256)
    assert bytes(before_merging(tokens, BYTE_MERGES, 256)).decode() == text


@given(written)
def test_walls_are_left_out_of_what_is_decoded(text):
    assert VOCABULARY.decode(pieces.walled(text.split(" "), VOCABULARY)) == text.replace(" ", "")


# --- Tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1, 3])
def test_what_a_text_costs_is_what_plain_counts_say(order):
    ids = VOCABULARY.encode(TEXT)
    text, read = ids[:3000].tolist(), ids[3000:3050]
    costs = pieces.costs(Table(ids[:3000], order, BASE), read)[order]
    for t, (id_, cost) in enumerate(zip(read.tolist(), costs, strict=True)):
        before = read[max(0, t - order) : t].tolist()
        assert cost == pytest.approx(-np.log(probability_by_hand(text, before, id_, BASE)))


def test_merges_change_tokens_and_not_characters():
    ids = VOCABULARY.encode(TEXT)
    found = pieces.measure(ids[:3500], ids[3500:], MERGES, BASE, (0, 10, 150), (1, 2))
    assert found.characters == 500 == found.tokens[0]
    assert (np.diff(found.tokens) < 0).all()
    assert found.bits.shape == (3, 2)
    tokens = pieces.apply(ids[3500:], MERGES, BASE)
    table = Table(pieces.apply(ids[:3500], MERGES, BASE), 2, BASE + 150)
    assert found.back[0].tolist() == pytest.approx([1, 2], abs=0.01)
    assert found.bits[2, 1] == pytest.approx(pieces.costs(table, tokens)[2].sum() / np.log(2) / 500, abs=0.002)


def test_a_table_looks_back_at_the_pieces_before_and_into_its_own():
    # Of ab|cde|f with one piece before: a sees 0, b 1, c 2, d 3, e 4, f 3.
    assert pieces.looked_back(np.array([2, 3, 1]), 1) == pytest.approx(13 / 6)
    assert pieces.looked_back(np.array([2, 3, 1]), 2) == pytest.approx(15 / 6)


# --- Counting letters -----------------------------------------------------------------------------------------------


def test_bags_count_pieces():
    words = ["error", "class"]
    assert (lab.bags(words, VOCABULARY, MERGES[:0]).sum(axis=1) == 5).all()
    assert lab.bags(words, VOCABULARY, MERGES[:0]).max(axis=1).tolist() == [3, 2]  # r, s
    assert lab.bags(words, VOCABULARY, MERGES).sum() < 10


def test_who_reads_letters_learns_to_count_exactly():
    words = lab.words_of(tasks.python_text())[::10]
    X = lab.bags(words, VOCABULARY, MERGES[:0])
    counts = np.array([word.count("r") for word in words])
    found = lab.count_letters(lambda X, y: np.linalg.lstsq(X, y)[0], X, counts, (10, 200), 2)
    assert (found.right[:, 1] == 1).all()
    assert found.right[:, 0].mean() < 1


def test_words_are_found_whole():
    assert lab.words_of("The class Foo has fooBar, and classes_2; class") == ["class", "classes"]


# --- The live figure ------------------------------------------------------------------------------------------------


def test_merges_make_fewer_and_longer_pieces():
    figure = lab.merges_lab.example()
    letters = figure.set(count=0, text="the class").alt
    assert letters.startswith("This text in 9 pieces, after 0 merges.")
    assert "in pieces: t | h | e | ␣ | c" in letters
    assert int(figure.set(count=200, text="the class").alt.split()[3]) < 9
    assert "□" in figure.set(count=0, text="a☂b").alt  # a character that is not in the text it learned from
    assert figure.set(count=10, text="").alt.startswith("This text in 0 pieces")
