"""Tasks are what they say, vocabularies lose nothing, and what is held out stays out."""

import hashlib
import re
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import tasks
from lesson_utils.maths.tasks import BOS, EOS, FIRST_SYMBOL, PAD, Vocabulary

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
sizes = st.integers(1, 9)


@given(st.text())
def test_decode_undoes_encode(text):
    vocabulary = Vocabulary(sorted({*text, "a"}))
    ids = vocabulary.encode(text)
    assert ids.dtype == np.int64
    assert ids.shape == (len(text),)
    assert ((ids >= FIRST_SYMBOL) & (ids < len(vocabulary))).all()
    assert vocabulary.decode(ids) == text


def test_a_vocabulary_keeps_the_order_stops_at_the_end_and_shows_no_specials():
    vocabulary = Vocabulary("cab")
    assert len(vocabulary) == 6
    assert vocabulary.encode("abc").tolist() == [4, 5, 3]
    assert (PAD, BOS, EOS) == (0, 1, 2)
    assert Vocabulary("ab").decode([BOS, 3, PAD, 4, EOS, 3, 3, EOS]) == "ab"
    assert Vocabulary("ab").decode([]) == ""


def test_letters_read_the_tasks_of_symbols_and_ends_are_put_around_each_row(rng):
    vocabulary = tasks.letters(26)
    source, target = tasks.reversal(rng, 1, 6)
    assert vocabulary.decode(target[0]) == vocabulary.decode(source[0])[::-1]
    assert len(tasks.letters(62)) == 65
    np.testing.assert_array_equal(tasks.with_ends([[5, 6], [7, 8]]), [[BOS, 5, 6, EOS], [BOS, 7, 8, EOS]])


@given(seeds, sizes, sizes, sizes)
def test_reversal(rng, batch, length, num_symbols):
    source, target = tasks.reversal(rng, batch, length, num_symbols)
    assert source.shape == target.shape == (batch, length)
    assert source.dtype == target.dtype == np.int64
    assert ((source >= FIRST_SYMBOL) & (source < FIRST_SYMBOL + num_symbols)).all()
    assert target.tolist() == [row[::-1] for row in source.tolist()]


def test_every_symbol_is_drawn_and_every_window(rng):
    for source, _ in (tasks.reversal(rng, 50, 20, 5), tasks.gather(rng, 50, 20, 3, 5)):
        assert set(source.ravel().tolist()) == set(range(FIRST_SYMBOL, FIRST_SYMBOL + 5))
    x, y = tasks.text_batches(np.arange(10), 4, 500, rng)
    assert set(x[:, 0].tolist()) == set(range(6))
    assert y.max() == 9


def test_batches_have_every_length_and_no_other_and_defaults_are_those_of_the_course(rng):
    for batches, shapes, top in (
        (tasks.reversal_batches(batch=2, shortest=3, longest=6, num_symbols=4), {(2, T) for T in range(3, 7)}, 4),
        (tasks.reversal_batches(), {(64, T) for T in range(3, 21)}, 26),
    ):
        drawn = [batches(rng) for _ in range(300)]
        assert {source.shape for source, _ in drawn} == shapes
        assert max(source.max() for source, _ in drawn) == FIRST_SYMBOL + top - 1
        for source, target in drawn:
            np.testing.assert_array_equal(target, source[:, ::-1])
    source, target = tasks.gather(rng, 5)
    assert target.shape == (5, 24, 4)
    assert source.max() < FIRST_SYMBOL + 20
    assert len(tasks.letters()) == 29


@given(seeds, sizes, sizes, st.data())
def test_gather_reports_what_stands_at_the_offsets(rng, batch, T, data):
    k = data.draw(st.integers(1, T))
    offsets = data.draw(st.none() | st.permutations(range(T)).map(lambda p: p[:k]))
    source, target = tasks.gather(rng, batch, T, k, num_symbols=7, offsets=offsets)
    assert source.shape == (batch, T)
    assert target.shape == (batch, T, k)
    offsets = tasks.scattered_offsets(T, k) if offsets is None else offsets
    for b, t, i in np.ndindex(target.shape):
        assert target[b, t, i] == source[b, (t + offsets[i]) % T]


@given(sizes, st.data())
def test_scattered_offsets_are_different_places(T, data):
    k = data.draw(st.integers(1, T))
    offsets = tasks.scattered_offsets(T, k)
    assert len(set(offsets)) == k
    assert all(0 <= offset < T for offset in offsets)
    assert offsets == tasks.scattered_offsets(T, T)[:k]
    assert tasks.scattered_offsets(24, 4) == (1, 12, 23, 10)  # in the course


FORMATS = ("%d %B %Y", "%B %d, %Y", "%d/%m/%Y", "%a %d %b %Y")  # what the four styles are to the standard library


def days_of(*years):
    for year in years:
        day = date(year, 1, 1)
        while day.year == year:
            yield day
            day += timedelta(1)


@pytest.mark.parametrize("style", range(4))
def test_every_day_is_written_as_the_standard_library_does_without_zeros_in_front(style):
    for day in days_of(1950, 1999, 2000, 2021, 2049):
        want = re.sub(r"\b0(?=\d)", "", day.strftime(FORMATS[style]))
        assert tasks.write_date(day, style) == want
        assert tasks.WRITTEN.decode(tasks.WRITTEN.encode(want)) == want
        assert tasks.ISO.decode(tasks.ISO.encode(day.isoformat())) == day.isoformat()


def test_no_two_days_are_written_alike_and_every_10th_is_held_out():
    days = list(days_of(2019, 2020, 2021))
    written = [tasks.write_date(day, style) for day in days for style in range(4)]
    assert len(set(written)) == len(written)
    assert tuple(tasks.write_date(date(2021, 3, 3), style) for style in range(4)) == tasks.DATE_STYLES
    held = [day for day in days if tasks.held_out(day)]
    assert {(b - a).days for a, b in pairwise(held)} == {10}
    assert {day.toordinal() % 10 for day in held} == {0}  # the days that stored models have not seen


def test_the_days_are_those_of_a_hundred_years_and_training_and_testing_share_none_and_miss_none(rng):
    every_day = {day.isoformat() for day in days_of(*range(1950, 2050))}
    assert (min(every_day), max(every_day)) == (tasks.FIRST_DAY.isoformat(), tasks.LAST_DAY.isoformat())
    seen = {held: {iso for _, iso in tasks.date_pairs(rng, 200_000, held_out=held)} for held in (False, True)}
    for held, days in seen.items():
        assert all(tasks.held_out(date.fromisoformat(iso)) == held for iso in days)
    assert len(every_day - seen[True] - seen[False]) < 0.01 * len(every_day)
    assert seen[True] | seen[False] <= every_day


@pytest.mark.parametrize("held_out", [False, True])
def test_a_batch_of_dates_can_be_read_and_is_right(rng, held_out):
    source, lengths, target = tasks.dates(rng, 500, held_out)
    assert source.shape == (500, lengths.max())
    assert target.shape == (500, 12)
    assert (target[:, 0] == BOS).all()
    assert (target[:, -1] == EOS).all()
    styles = set()
    for row, length, iso in zip(source, lengths, target, strict=True):
        assert (row[:length] >= FIRST_SYMBOL).all()
        assert (row[length:] == PAD).all()
        day = date.fromisoformat(tasks.ISO.decode(iso))
        assert tasks.held_out(day) == held_out
        styles.add([tasks.write_date(day, style) for style in range(4)].index(tasks.WRITTEN.decode(row)))
    assert styles == {0, 1, 2, 3}


@given(st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1, max_size=6), st.integers(-1, 5))
def test_padding_can_be_taken_off_again(sequences, value):
    ids, lengths = tasks.pad(sequences, value)
    assert ids.shape == (len(sequences), max(map(len, sequences)))
    assert [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)] == sequences
    for row, length in zip(ids, lengths, strict=True):
        assert (row[length:] == value).all()


def test_everything_drawn_comes_from_the_generator():
    ids = np.arange(100)
    drawings = [
        lambda rng: tasks.reversal(rng, 3, 8),
        lambda rng: tasks.gather(rng, 3),
        lambda rng: tasks.dates(rng, 20),
        lambda rng: tasks.encode_dates(tasks.date_pairs(rng, 20)),
        lambda rng: tasks.text_batches(ids, 5, 4, rng),
        tasks.reversal_batches(shortest=8, longest=8),
    ]
    for draw in drawings:
        one, same, other = (draw(np.random.default_rng(seed)) for seed in (1, 1, 2))
        for a, b in zip(one, same, strict=True):
            np.testing.assert_array_equal(a, b)
        assert draw is not drawings[3] or (one[0] == drawings[2](np.random.default_rng(1))[0]).all()
        assert one[0].shape != other[0].shape or (one[0] != other[0]).any()


def test_pythons_text_is_the_one_that_the_notebooks_numbers_come_from():
    text = tasks.python_text()
    assert len(text) == 465_126
    assert hashlib.sha256(text.encode()).hexdigest().startswith("71f2ff5d99bdc1f9")
    vocabulary = tasks.text_vocabulary(text)
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert 4 < tasks.unigram_entropy(vocabulary.encode(text)) < 5.5
    for ids, bits in (([7, 7, 7], 0), ([3, 4, 5, 6], 2), ([3, 3, 4, 5], 1.5)):
        np.testing.assert_allclose(tasks.unigram_entropy(ids), bits, rtol=1e-14)


def test_a_file_of_ones_own(tmp_path, monkeypatch):
    path = tmp_path / "own.txt"
    text = "Grüße, 世界!\n" * 200
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert tasks.read_text(path) == tasks.read_text(str(path)) == text
    path.write_text("short", encoding="utf-8")
    assert tasks.read_text(path, minimum=5) == "short"
    for content, message in (
        (b"short", "has 5 characters; a model needs at least 1000 to learn from"),
        (b"", "is empty; a model needs at least 1000"),
        (b"abc\xff" * 500, "is not text in UTF-8 (byte 3); in an editor, save it as plain"),
        (b"a\0" * 1000, "is not text: it holds zero bytes"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(f"own.txt {message}")):
            tasks.read_text(path)
    with pytest.raises(ValueError, match="is a folder; give a text file in it"):
        tasks.read_text(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=re.escape(f"there is no file missing.txt in {tmp_path}")):
        tasks.read_text("missing.txt")


@given(seeds, st.integers(2, 40), sizes, st.data())
def test_the_next_character_is_to_be_predicted(rng, length, batch, data):
    T = data.draw(st.integers(1, length - 1))
    ids = np.arange(length) + 100
    x, y = tasks.text_batches(ids, T, batch, rng)
    assert x.shape == y.shape == (batch, T)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(np.diff(x), 1)
    assert x.min() >= 100
    assert y.max() < 100 + length


@given(st.integers(0, 50), st.sampled_from((0.01, 0.1, 0.5, 0.9)))
def test_no_character_is_both_trained_and_validated_on(length, fraction):
    train, validation = tasks.split_text(np.arange(length), fraction)
    assert [*train, *validation] == list(range(length))
    assert abs(len(validation) - fraction * length) < 1
