"""The numbers behind notebook 06: the leak meter, entropies, what is drawn from, and the labs made from a model."""

import numpy as np
import pytest

from lesson_utils.lessons.causal_mask import caching, capstone, lab, leaks, watched, writing
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
    assert alt.startswith("Rounding: 5 of 6 before")


@pytest.mark.parity
def test_pytorch_takes_the_opposite_mask_in_one_place():
    reason = "compares with PyTorch; install it with: python course.py test --parity"
    torch = pytest.importorskip("torch", reason=reason)
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    ours = torch.from_numpy(attention.causal_mask(5))
    as_here = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=ours)
    expected, _ = attention.scaled_dot_product_attention(*(x.numpy(),) * 3, attention.causal_mask(5))
    np.testing.assert_allclose(as_here.numpy(), expected, rtol=1e-4, atol=1e-5)
    layer = torch.nn.MultiheadAttention(8, 1, batch_first=True)
    weights = layer(x, x, x, attn_mask=ours)[1].detach().numpy()[0]
    assert (weights[:4][np.tri(5, dtype=bool)[:4]] == 0).all()  # each query sees its future only
    assert np.isnan(weights[4]).all()  # the last one nothing
    assert (layer(x, x, x, attn_mask=~ours)[1].detach().numpy()[0][~ours.numpy()] == 0).all()


def test_masked_weights_are_those_of_the_library():
    scores, mask = np.random.default_rng(0).normal(size=(5, 5)), attention.causal_mask(5)
    right = ops.softmax(np.where(mask, scores, -np.inf))
    for kind, expected in (("causal", right), ("none", ops.softmax(scores)), ("too late", mask * ops.softmax(scores))):
        np.testing.assert_allclose(leaks.masked_weights(scores, kind), expected)


def test_the_peeking_model_is_the_gpt_without_its_mask(model):
    peeking = lab.Peeking(CONFIG, np.random.default_rng(0))
    ids = VOCABULARY.encode("attention")[None]
    honest, seeing = model.forward(ids)[0], peeking.forward(ids)[0]
    assert np.abs(honest[:, 0] - seeing[:, 0]).max() > 1e-3
    single = ids[:, :1]  # nothing to peek at
    np.testing.assert_allclose(model.forward(single)[0], peeking.forward(single)[0], rtol=1e-5, atol=1e-5)
    peeking.loss_and_grad((ids[:, :-1], ids[:, 1:]))
    assert all(np.abs(param.grad).max() > 0 for name, param in peeking.params().items() if "W_" in name)


# --- Training, watched ----------------------------------------------------------------------------------------------


def test_bigram_entropy():
    assert lab.bigram_entropy(np.tile([3, 4], 50)) == pytest.approx(0, abs=1e-9)
    independent = np.random.default_rng(0).integers(4, size=20_000)
    assert lab.bigram_entropy(independent) == pytest.approx(tasks.unigram_entropy(independent), abs=0.01)


@pytest.mark.slow
def test_watch_measures_and_prints_as_it_goes(capsys):
    model = models.GPT(CONFIG, np.random.default_rng(0))
    ids = VOCABULARY.encode(TEXT)
    held_out = tasks.text_batches(ids, 16, 4, np.random.default_rng(0))
    watch = lab.Watch(model, VOCABULARY, held_out, TEXT)
    assert len(capsys.readouterr().out.splitlines()) == 2  # the head, and what it writes untrained
    history = training.fit(
        model, lambda rng: tasks.text_batches(ids, 16, 8, rng), 20, lr=1e-2, callback=watch, every=8, progress=False
    )
    seen = watch.seen
    assert seen.steps == [0, 8, 16, 20]
    assert seen.bits[0] > seen.bits[-1] == pytest.approx(lab.bits(model.loss(held_out)))
    assert all(0 <= share <= 1 for share in seen.shares)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["8", "16", "20"]
    lab.read_along(seen)
    assert capsys.readouterr().out.splitlines()[2:] == printed
    rungs = {"log₂ V": 5.4, "unigram entropy": 0.1}
    assert "above what pairs tell" in lab.loss_plot(history, seen, rungs).alt
    assert "below what pairs tell" in lab.loss_plot(history, seen, {"floor": 20.0}).alt


def test_words_are_letters_only_and_their_shares():
    assert watched.words_in("a def_x straße, 12 the_end") == ["def", "straße", "the", "end"]
    assert lab.word_shares(["one two", "two 2 six"], frozenset({"two", "six"})) == (0.75, 0.75)
    assert lab.word_shares(["?!"], frozenset()) == (0, 0)


# --- Sampling -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "left_out"), [("", ""), ("Who €ß", "ß€"), ("$$", "$"), ("日本", "日本")])
def test_any_prompt_will_do(model, prompt, left_out):
    alt = lab.sampling_lab(model, VOCABULARY).set(prompt=prompt).alt
    assert ("left out" in alt) == bool(left_out)
    assert left_out in alt


def test_greedy_is_the_same_as_top_1(model):
    figure = lab.sampling_lab(model, VOCABULARY)
    greedy = figure.set(temperature=0.0).alt.partition("The text:")[2]
    assert greedy == figure.set(temperature=1.5, top_k="1").alt.partition("The text:")[2]


def test_a_text_is_laid_out_with_the_probabilities_of_its_characters():
    text = "costs $5  and $6\n\n" + "word " * 30 + "x" * 100
    lines = writing.laid_out(text, np.arange(len(text)))
    assert all(len(line) == len(found) <= writing.LINE + 1 for line, found in lines)
    assert "".join(line for line, _ in lines).startswith("costs $5 and $6⏎⏎word word ")
    visible = {"⏎": "\n"}
    for line, found in lines:
        assert [text[int(p)] for p in found] == [visible.get(character, character) for character in line]


def test_what_is_written_on_is_what_generate_writes_and_as_probable_as_the_model_says(model):
    ids = VOCABULARY.encode("The ")[None]
    for temperature, top_k, top_p in ((0.0, None, 1.0), (1.2, 5, 1.0), (1.0, None, 0.7)):
        setting = (temperature, top_k, top_p)
        # Far beyond the context of 16.
        written, found = writing.write_on(model, ids, 40, np.random.default_rng(3), *setting)
        np.testing.assert_array_equal(written, model.generate(ids, 40, np.random.default_rng(3), *setting)[0])
        said = ops.softmax(model.forward(written[None, :12])[0][0].astype(float))
        np.testing.assert_allclose(found[4:13], [said[t - 1, written[t]] for t in range(4, 13)], rtol=1e-3)


# --- The learner's own GPT ------------------------------------------------------------------------------------------


def test_the_solution_is_the_librarys_gpt_on_any_parameters(model):
    from lesson_utils.lessons.causal_mask.exercises import EXERCISES

    gpt = EXERCISES[-1]
    assert len(gpt.solution.splitlines()) == 1 + 15
    ids = VOCABULARY.encode(TEXT)[None, :16]
    own = gpt.program({})
    wanted = capstone.in_double(model).forward(ids)[0]
    np.testing.assert_allclose(own(ids, *lab.parameters(model).values()), wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(wanted, model.forward(ids)[0], atol=1e-3)


def test_a_row_that_sees_nothing_is_counted():
    alt = lab.allowed(["one"], np.array([[True, False], [False, False]])).alt
    assert "1 row sees nothing. Query by keys: 0 sees 0; 1 sees none" in alt


# --- The cache ------------------------------------------------------------------------------------------------------


def test_the_drawing_of_the_cache_counts_what_generate_computes(monkeypatch):
    model = models.GPT(models.GPTConfig(vocab=9, d_model=8, num_heads=2, max_length=12), np.random.default_rng(0))
    forward, counted = model.forward, []

    def counting(ids, *more):
        counted.append(ids.shape[1])
        return forward(ids, *more)

    monkeypatch.setattr(model, "forward", counting)
    for cached in (True, False):
        counted.clear()
        model.generate([[3]], 40, np.random.default_rng(0), use_cache=cached)
        assert counted == [caching.computed(step, cached)[2] for step in range(1, 41)]


def test_a_ratio_is_how_many_times_as_long_it_takes_without_a_cache():
    assert caching.Timing(8, cached=1.0, uncached=3.0, same=True).ratio == 3
