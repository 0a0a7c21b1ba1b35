"""The numbers behind notebook 06: the leak meter, entropies, what is drawn from, and the labs made from a model."""

from collections import Counter

import numpy as np
import pytest

from lesson_utils.lessons import bugs
from lesson_utils.lessons.causal_mask import counting, gpts, lab
from lesson_utils.maths import attention, models, ops, tasks, training

TEXT = tasks.python_text()[:2000]
VOCABULARY = tasks.text_vocabulary(TEXT)
CONFIG = models.GPTConfig(vocab=len(VOCABULARY), d_model=8, num_heads=2, num_layers=1, max_length=16)


@pytest.fixture(scope="module")
def model():
    return models.GPT(CONFIG, np.random.default_rng(0))


# --- The leak meter -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in lab.KINDS if kind != "late, renormalised"])
@pytest.mark.parametrize("T", [4, 11, 24])
def test_the_right_mask_leaks_exactly_nothing_and_every_wrong_one_visibly(kind, T):
    for position in range(kind != "causal", T):
        moved, weights = lab.leak(T, position, kind)
        if kind == "causal":
            assert (moved[:position] == 0).all()
            assert (moved[position:] > 0).all()
            np.testing.assert_allclose(weights.sum(axis=-1), 1)
        else:
            assert moved[:position].max() > 1e-4, position  # where the figure's scale begins


@pytest.mark.slow
def test_a_leak_by_rounding_is_called_so():
    alt = lab.leak_lab.example(kind="late, renormalised", layers=4).picture.alt
    assert "Rounding: 5 of 6 earlier outputs" in alt


@pytest.mark.parity
def test_pytorch_takes_the_opposite_mask_in_one_place():
    reason = "compares with PyTorch; install it with: python course.py test --parity"
    torch = pytest.importorskip("torch", reason=reason)
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    ours = torch.from_numpy(attention.causal_mask(5))
    as_here = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=ours)
    expected, _ = attention.scaled_dot_product_attention(*(x.numpy(),) * 3, attention.causal_mask(5))
    np.testing.assert_allclose(as_here.numpy(), expected, rtol=1e-4, atol=1e-5)
    one, K, V = (x[:, :T] for T in (1, 5, 5))
    first = torch.nn.functional.scaled_dot_product_attention(one, K, V, is_causal=True)
    np.testing.assert_allclose(first.numpy(), V[:, :1].numpy(), rtol=1e-4, atol=1e-5)  # aligned top left
    layer = torch.nn.MultiheadAttention(8, 1, batch_first=True)
    weights = layer(x, x, x, attn_mask=ours)[1].detach().numpy()[0]
    assert (weights[:4][np.tri(5, dtype=bool)[:4]] == 0).all()  # each query sees its future only
    assert np.isnan(weights[4]).all()  # the last one nothing
    silent = layer(x, x, x, attn_mask=ours, need_weights=False)[0].detach().numpy()[0, 4]
    np.testing.assert_allclose(silent, layer.out_proj.bias.detach().numpy(), atol=1e-6)  # its heads give zeros
    assert (layer(x, x, x, attn_mask=~ours)[1].detach().numpy()[0][~ours.numpy()] == 0).all()


def test_masked_weights_are_those_of_the_library():
    scores, mask = np.random.default_rng(0).normal(size=(5, 5)), attention.causal_mask(5)
    right = ops.softmax(np.where(mask, scores, -np.inf))
    for kind, expected in (("causal", right), ("none", ops.softmax(scores)), ("too late", mask * ops.softmax(scores))):
        np.testing.assert_allclose(lab.masked_weights(scores, kind), expected)


def test_a_model_without_its_bug_has_its_parameters_and_is_right(model):
    wrong = lab.trained_under("mask after softmax", CONFIG, VOCABULARY.encode(TEXT), 2, 0)
    ids = VOCABULARY.encode(TEXT)[None, :12]
    right = lab.unplanted(wrong)
    seen = np.triu(lab.influence(wrong, ids[0]), 1)
    assert (seen[np.triu_indices(12, 1)] > 0).all()
    assert not np.triu(lab.influence(right, ids[0]), 1).any()
    np.testing.assert_allclose(right.forward(ids)[0][:, -1], wrong.forward(ids)[0][:, -1], atol=1e-5)  # nothing ahead
    assert lab.trained_under("", CONFIG, VOCABULARY.encode(TEXT), 2, 0).forward(ids)[0].shape == (1, 12, CONFIG.vocab)


def test_the_picture_of_the_late_mask_says_what_training_and_writing_pay():
    late = np.array([[0.5, 20.0], [0.7, 30.0]])
    alt = lab.late_plot(["as in training", "as it writes"], {"right mask": np.full((2, 2), 2.6), "too late": late}).alt
    assert alt.startswith("Too late: 0.6 bits in training, 25 as it writes.")
    assert "as it writes 20.00 to 30.00" in alt


def test_one_backward_pass_finds_what_changing_each_token_finds(model):
    ids = VOCABULARY.encode(TEXT)[:8]
    late = models.GPT(CONFIG, np.random.default_rng(0))
    bugs.plant(late, "mask after softmax")
    for kind, sees in ((model, np.tri(8)), (late, np.ones((8, 8)))):
        kind.loss_and_grad((ids[None, :-1], ids[None, 1:]))
        before = {name: param.grad.copy() for name, param in kind.params().items()}
        np.testing.assert_array_equal(lab.influence(kind, ids) > 0, sees)
        for name, param in kind.params().items():
            np.testing.assert_array_equal(param.grad, before[name])  # nothing is left behind
    alt = lab.influence_plot({"one": np.tri(4), "other": np.ones((4, 4))}).alt
    assert alt.startswith("one: no output looks ahead. other: 6 of 6 pairs look ahead")


# --- Tables that count ----------------------------------------------------------------------------------------------


def by_hand(ids, context, V, order=None):
    """Kneser and Ney's recursion as it stands in the book, in slow Python."""
    n = len(context)
    order = n if order is None else order
    shorter = by_hand(ids, context[1:], V, order) if n else np.full(V, 1 / V)
    grams = [tuple(ids[i : i + n + 1]) for i in range(len(ids) - n)]
    if n < order:  # behind how many different characters a gram stands, not how often
        starts = range(order - n - 1, len(ids) - n - 1)  # what stands behind a context of full length
        grams = [gram[1:] for gram in {tuple(ids[i : i + n + 2]) for i in starts}]
    counts = Counter(grams)
    once, twice = (sum(count == k for count in counts.values()) for k in (1, 2))
    discount = once / (once + 2 * twice) if once and twice else 0.5
    own = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == tuple(context)}
    if not own:
        return shorter
    kept = np.array([max(own.get(s, 0) - discount, 0) for s in range(V)])
    return (kept + discount * len(own) * shorter) / sum(own.values())


def test_a_table_gives_the_probabilities_of_kneser_and_ney():
    ids = np.random.default_rng(2).integers(5, size=80).tolist()
    for order in (0, 1, 3):
        table = counting.Table(ids, order, 5)
        contexts = np.random.default_rng(3).integers(5, size=(20, 3))
        found = table.probabilities(contexts)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        for context, p in zip(contexts.tolist(), found, strict=True):
            np.testing.assert_allclose(p, by_hand(ids, context[3 - order :], 5))
        np.testing.assert_allclose(
            table.probabilities(contexts, contexts[:, :1])[:, 0], found[range(20), contexts[:, 0]]
        )
    for context, p in zip(contexts.tolist(), table.probabilities(contexts[:, 1:]), strict=True):  # too short for it
        np.testing.assert_allclose(p, by_hand(ids, context[1:], 5))


def test_a_table_reads_what_the_windows_hold_and_no_more():
    ids = VOCABULARY.encode(TEXT)
    tables = lab.count(ids, 3, len(VOCABULARY))
    assert [(n, table.order) for n, table in tables.items()] == [(1, 1), (2, 2), (3, 3)]
    table = tables[3]
    x, y = tasks.text_batches(ids, 6, 4, np.random.default_rng(0))
    wanted = [
        -np.log2(table.probabilities(x[b : b + 1, max(0, t - 2) : t + 1])[0, y[b, t]])
        for b in range(4)
        for t in range(6)
    ]
    assert table.bits((x, y)) == pytest.approx(np.mean(wanted))
    assert counting.seen_before(table, x[:, :3]) == 1
    assert counting.seen_before(table, np.full((1, 3), 3)) == float(VOCABULARY.characters[0] * 3 in TEXT)
    with pytest.raises(ValueError, match="order=8"):
        counting.Table(ids, 8, len(VOCABULARY))


def test_windows_hold_a_text_once_and_their_bits_are_the_loss(model):
    x, y = lab.windows(np.arange(100), 16)
    np.testing.assert_array_equal(x.ravel(), np.arange(96))
    np.testing.assert_array_equal(y, x + 1)
    batch = lab.windows(VOCABULARY.encode(TEXT), 16)
    found = lab.window_bits(model, batch)
    assert found.shape == (len(batch[0]),)
    assert found.mean() == pytest.approx(gpts.bits(model.loss(batch)), rel=1e-4)
    assert gpts.uncertain(np.array([1.0, 3.0, 1.0, 3.0])) == pytest.approx(2 * np.sqrt(4 / 3) / 2)


def test_the_loss_by_context_reads_the_last_characters_only(model):
    ids = np.concatenate([VOCABULARY.encode(TEXT)] * 2)
    table = counting.Table(ids, 2, len(VOCABULARY))
    one, two, four = counting.by_context(table, ids, (1, 2, 4), places=120)
    assert one.shape == (counting.STRETCHES,)
    np.testing.assert_array_equal(two, four)
    assert abs(one - two).max() > 0.01
    at = np.linspace(64, len(ids) - 1, 120).astype(int)
    p = [ops.softmax(model.forward(ids[None, i - 3 : i])[0][0, -1].astype(float))[ids[i]] for i in at]
    found = counting.by_context(model, ids, (3,), places=120)
    np.testing.assert_allclose(found[0], -np.log2(p).reshape(60, 2).mean(axis=1), rtol=1e-4)
    q = table.probabilities(np.stack([ids[i - 2 : i] for i in at]), ids[at][:, None])[:, 0]
    both = counting.by_context(model, ids, (3,), beside=table, places=120)
    np.testing.assert_allclose(both[0], -np.log2((p + q) / 2).reshape(60, 2).mean(axis=1), rtol=1e-4)


def test_the_title_of_the_figure_of_contexts_is_read_off_its_curves():
    noise = np.random.default_rng(0).normal(size=60)
    noise -= noise.mean()
    tables = {1: noise + 3.0, 4: noise + 1.9, 7: noise + 2.0}
    falling = np.linspace(3, 1, len(counting.LENGTHS))[:, None] + noise
    first = next(n for n, values in zip(counting.LENGTHS, falling, strict=True) if values.mean() < 1.9)
    alt = lab.context_plot({"short": falling + 1, "GPT, 9 steps": falling}, tables).alt
    assert alt.startswith(f"With {first} characters or more, the GPT of 9 steps beats every table")
    wavering = falling + 20 * np.random.default_rng(1).normal(size=60)  # what may be chance is not called a finding
    assert "No GPT here beats" in lab.context_plot({"a": falling, "b": wavering}, tables).alt


# --- Training, watched ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_watch_measures_and_prints_as_it_goes(capsys):
    model = models.GPT(CONFIG, np.random.default_rng(0))
    ids = VOCABULARY.encode(TEXT)
    held_out = tasks.text_batches(ids, 16, 4, np.random.default_rng(0))
    watch = lab.Watch(model, VOCABULARY, held_out, TEXT)
    assert len(capsys.readouterr().out.splitlines()) == 2  # the head, and what it writes untrained
    training.fit(
        model, lambda rng: tasks.text_batches(ids, 16, 8, rng), 20, lr=1e-2, callback=watch, every=8, progress=False
    )
    seen = watch.seen
    assert seen.steps == [0, 8, 16, 20]
    assert seen.bits[0] > seen.bits[-1] == pytest.approx(gpts.bits(model.loss(held_out)))
    assert all(0 <= share <= 1 for share in seen.shares)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["8", "16", "20"]
    lab.read_along(seen)
    assert capsys.readouterr().out.splitlines()[2:] == printed


# --- Sampling -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "left_out"), [("", ""), ("Who €ß", "ß€"), ("$$", "$"), ("日本", "日本")])
def test_any_prompt_will_do(model, prompt, left_out):
    alt = lab.sampling_lab(model, VOCABULARY).set(prompt=prompt).alt
    assert ("left out" in alt) == bool(left_out)
    assert left_out in alt


def test_what_is_written_on_is_what_generate_writes_and_as_probable_as_the_model_says(model):
    ids = VOCABULARY.encode("The ")[None]
    for temperature, top_k, top_p in ((0.0, None, 1.0), (1.2, 5, 1.0), (1.0, None, 0.7)):
        setting = (temperature, top_k, top_p)
        # Far beyond the context of 16.
        written, found = lab.write_on(model, ids, 40, np.random.default_rng(3), *setting)
        np.testing.assert_array_equal(written, model.generate(ids, 40, np.random.default_rng(3), *setting)[0])
        said = ops.softmax(model.forward(written[None, :12])[0][0].astype(float))
        np.testing.assert_allclose(found[4:13], [said[t - 1, written[t]] for t in range(4, 13)], rtol=1e-3)


# --- The learner's own GPT ------------------------------------------------------------------------------------------


def test_the_solution_is_the_librarys_gpt_on_any_parameters(model):
    from lesson_utils.lessons.causal_mask.exercises import EXERCISES

    gpt = next(exercise for exercise in EXERCISES if exercise.name == "gpt")
    assert len(gpt.solution.splitlines()) == 1 + 15
    ids = VOCABULARY.encode(TEXT)[None, :16]
    own = gpt.program({})
    wanted = lab.in_double(model).forward(ids)[0]
    np.testing.assert_allclose(own(ids, *lab.parameters(model).values()), wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(wanted, model.forward(ids)[0], atol=1e-3)
