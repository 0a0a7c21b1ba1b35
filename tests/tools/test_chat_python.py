"""The Python of the chat's page, where no browser is needed: the conversation, a learner's lines, the model's parts."""

import asyncio
import json

import numpy as np
import pytest
import tiny_llama
import tiny_models

from lesson_utils.maths import pretrained
from lesson_utils.maths.attention import scaled_dot_product_attention
from lesson_utils.maths.layers import Linear, Packed
from tools.site.chat import conversation, make, packed_products
from tools.site.chat.conversation import Conversation
from tools.site.chat.own_attention import LINES, made

QUESTION = "the heat"
BEGINS = {"tokenizer.chat_template": "", "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 259}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "tiny.gguf"
    facts = tiny_llama.facts() | {"llama.context_length": 400}
    path.write_bytes(tiny_llama.gguf(facts, tiny_llama.arrays(np.random.default_rng(0))))
    return path


@pytest.fixture
def chat(path):
    return Conversation(path, 300)


class Ear:
    """What was said: pieces with their probabilities, and how far the model had read."""

    def __init__(self, chat, stop_at=None):
        self.chat, self.stop_at, self.pieces, self.reading = chat, stop_at, [], []

    def say(self, piece, probability):
        self.pieces.append((piece, probability))
        if len(self.pieces) == self.stop_at:
            self.chat.stop()

    def read(self, tokens, of):
        self.reading.append((tokens, of))
        if self.stop_at == 0:
            self.chat.stop()


def ask(chat, text=QUESTION, stop_at=None, temperature=0):
    ear = Ear(chat, stop_at)
    return asyncio.run(chat.answer(text, temperature, ear.say, ear.read)), ear


def natively(path, ids, length):
    return list(pretrained.load(path, 400, progress=False).stream(ids, length, np.random.default_rng(0)))


def change(chat, heads=(), window=None, lines=LINES):
    return chat.change(json.dumps({"heads": list(heads), "window": window, "lines": lines}))


# --- The conversation -------------------------------------------------------------------------------------------------


def test_an_answer_is_what_the_library_writes(path):
    chat = Conversation(path, 400)
    chat.warm_up()
    why, ear = ask(chat)
    expected = natively(path, chat.real.chat([("user", QUESTION)]), conversation.LONGEST)
    assert [piece for piece, _ in ear.pieces] == [token.text for token in expected]
    np.testing.assert_allclose([p for _, p in ear.pieces], [token.probability for token in expected], atol=1e-5)
    assert why == "long"
    assert ear.reading[-1][0] == ear.reading[-1][1]
    for text in ("a", "5 men", "… he", "'s", "<|im_end|>", "é", "🙂"):  # read in two pieces, and cut as in one
        chat.begin()
        expected = natively(path, chat.real.chat([("user", text)]), 3)
        assert [piece for piece, _ in ask(chat, text, stop_at=3)[1].pieces] == [token.text for token in expected], text
    assert ask(chat, "a\ud800")[0].startswith("The text holds half a character")


def test_a_model_without_a_template_continues_what_was_written_so_far(tmp_path):
    path = tmp_path / "own.gguf"
    path.write_bytes(tiny_models.gguf("gpt2", **BEGINS))
    chat, problem = conversation.opened(str(path))
    assert problem == ""
    facts = json.loads(chat.facts())
    assert (facts["talks"], facts["context"], facts["name"]) == (False, tiny_models.CONTEXT, "Tiny gpt2")
    prompt = chat.real.prompt("the hat")
    chat.warm_up()
    _, first = ask(chat, "the hat ", stop_at=4)
    real = pretrained.load(path, progress=False)

    def natively(ids, length):
        return list(real.stream(ids, length, np.random.default_rng(0)))

    said = natively(prompt, 4)
    assert [piece for piece, _ in first.pieces] == [token.text for token in said]
    _, second = ask(chat, "12", stop_at=3)
    ids = [*prompt, *(token.id for token in said), *real.tokenizer.encode("\n12")]
    assert [piece for piece, _ in second.pieces] == [token.text for token in natively(ids, 3)]
    chat.begin()
    assert ask(chat, "the hat", stop_at=4)[1].pieces == first.pieces
    assert len(json.loads(chat.look("the hat")[0])["tokens"]) == len(prompt)


def test_a_file_that_is_no_model_of_a_known_kind_is_a_sentence(tmp_path):
    path = tmp_path / "own.gguf"
    path.write_bytes(tiny_llama.gguf(tiny_llama.facts() | {"general.architecture": "gemma"}, {}))
    chat, problem = conversation.opened(str(path))
    assert chat is None
    assert problem.endswith(
        "holds a model of the kind 'gemma'; those that have a place here are 'llama', 'qwen2', 'gpt2'."
    )


def test_a_stopped_turn_is_closed_and_the_next_one_follows_it(chat, path):
    why, ear = ask(chat, stop_at=5)
    assert (why, len(ear.pieces)) == ("stopped", 5)
    _, after = ask(chat, "and he?", stop_at=20)
    tokenizer, first = chat.real.tokenizer, chat.real.chat([("user", QUESTION)])
    said = [token.id for token in natively(path, first, 5)]
    system, second = (chat.real.chat(turns) for turns in ([], [("user", "and he?")]))
    close = [tokenizer.special["<|im_end|>"], *tokenizer.encode("\n")]
    open_ = [tokenizer.special["<|im_start|>"], *tokenizer.encode("assistant\n")]
    ids = [*first, *said, *close, *second[len(system) - len(open_) :]]
    assert [piece for piece, _ in after.pieces] == [token.text for token in natively(path, ids, 20)]


def test_a_stop_while_it_reads_takes_the_message_back(chat):
    before = chat.past[0].length, chat.unread
    why, ear = ask(chat, "the " * 100, stop_at=0)
    assert why == "unread"
    assert ear.reading == [(conversation.PIECE, ear.reading[0][1])]
    assert (chat.past[0].length, chat.unread) == before
    assert ask(chat, stop_at=3)[0] == "stopped"


def test_a_conversation_that_is_full_says_so_and_a_new_one_begins(chat):
    assert ask(chat, "x" * 400)[0] == "full"
    assert chat.past[0].length == 0
    while ask(chat, temperature=1)[0] != "full":  # each turn takes at least its question's tokens
        pass
    assert chat.past[0].length <= 300
    chat.begin()
    assert ask(chat, stop_at=2)[0] == "stopped"


def test_what_is_certain_of_the_next_turn_is_read_before_somebody_asks(chat):
    begun = chat.unread
    chat.warm_up()
    opening = chat.past[0].length
    assert (opening, chat.unread) == (len(begun), [])
    _, first = ask(chat, stop_at=5)
    chat.warm_up()
    assert chat.unread == []
    assert chat.past[0].length > opening
    chat.begin()
    assert (chat.past[0].length, chat.unread) == (opening, []), "the opening stays read"
    assert ask(chat, stop_at=5)[1].pieces == first.pieces
    change(chat, lines=LINES.replace("scores = Q", "scores = 2 * Q"))
    assert (chat.past[0].length, chat.unread) == (0, begun), "a changed model has read nothing yet"
    chat.warm_up()
    assert chat.past[0].length == 0, "somebody's lines are not run before somebody asks"
    assert ask(chat, stop_at=2)[0] == "stopped"


# --- What a learner changes -------------------------------------------------------------------------------------------


def test_heads_are_switched_off_and_the_maps_are_the_models(chat):
    ids = chat.real.tokenizer.encode(QUESTION)
    told, maps = chat.look(QUESTION)
    T, (L, h) = len(ids), (tiny_llama.LAYERS, tiny_llama.HEADS)
    found = np.frombuffer(maps, np.uint8).reshape(L, h, T, T) / 255
    expected = np.concatenate(chat.model.maps(chat.model.forward(ids[None])[1])["decoder"])
    np.testing.assert_allclose(found, expected, atol=0.51 / 255)
    told = json.loads(told)
    assert told["next"] == told["plain"]
    assert change(chat, heads=[(0, 1), (1, 3), (1, 0)]) == ""
    assert chat.heads == {0: [1], 1: [3, 0]}
    other = json.loads(chat.look(QUESTION)[0])
    assert [token for token, _ in other["plain"]] == [token for token, _ in told["plain"]]
    np.testing.assert_allclose([p for _, p in other["plain"]], [p for _, p in told["plain"]], rtol=1e-4)
    assert abs(other["next"][0][1] - told["next"][0][1]) > 1e-3


@pytest.mark.parametrize(("window", "visible"), [((2, 0), [3, 4]), ((2, 1), [0, 3, 4]), ((9, 0), range(5))])
def test_a_window_hides_what_is_before_it(chat, window, visible):
    change(chat, window=window)
    ids = chat.real.tokenizer.encode("abcde")
    _, maps = chat.look("abcde")
    rows = np.frombuffer(maps, np.uint8).reshape(-1, 5, 5)[:, -1]
    assert not rows[:, [key for key in range(5) if key not in visible]].any()
    past = chat.model.new_past()  # the same, a token at a time
    for id_ in ids:
        logits, _ = chat.forward(np.array([id_]), past, last=True)
    np.testing.assert_allclose(logits[0, 0], chat.forward(ids, last=True)[0][0, 0], atol=1e-4)


BEGIN = "def attention(Q, K, V, mask=None):\n    "


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("def attention(Q, K, V, mask=None)\n    return 1", "Line 1 is not Python: expected ':'."),
        ("def other(Q): pass", "These lines define no function with the name attention."),
        (f"{BEGIN}scores = Q\n    return softmx(scores)", "Line 3 stops with NameError: name 'softmx' is not defined."),
        ("def attention(Q): pass", "The function cannot be called with TypeError: "),
        (f"{BEGIN}pass", "The function must return two arrays: return weights @ V, weights."),
        (f"{BEGIN}return Q, Q", "The second array that the function returns has the shape (1, 4, 3, 4)."),
        (f"{BEGIN}return Q * np.nan, Q @ K.swapaxes(-1, -2)", "The first array that the function returns holds NaN"),
        (f"{BEGIN}return 'ab', None", "The first array that the function returns does not consist of numbers."),
        (f"{BEGIN}if mask is None: 1 / 0\n    return V, Q @ K.swapaxes(-1, -2)", "Line 2 stops with ZeroDivisionError"),
    ],
)
def test_an_error_in_a_learners_function_is_a_sentence(chat, lines, sentence):
    assert change(chat, heads=[(0, 0)]) == ""
    assert change(chat, lines=lines).startswith(sentence)
    assert chat.heads == {0: [0]}, "nothing has changed"
    assert ask(chat, stop_at=2)[0] == "stopped"


def test_an_error_that_comes_later_takes_the_message_back(chat):
    lines = LINES.replace("    weights", "    if K.shape[-2] > 60: raise RuntimeError('too far')\n    weights", 1)
    assert change(chat, lines=lines) == ""
    why, _ = ask(chat, "the the")
    assert why == "Line 7 stops with RuntimeError: too far."
    assert {cache.length for cache in chat.past} == {0}
    assert json.loads(chat.look("x" * 20)[0])["tokens"] == ["x"] * 20
    assert "problem" in json.loads(chat.look("")[0])


def test_the_lines_on_the_page_are_attention(rng):
    Q, K, V = rng.normal(size=(3, 1, 2, 5, 4)).astype(np.float32)
    attend = made(LINES, 2, 4)
    for mask in (None, np.broadcast_to(np.tri(5, dtype=bool), (1, 2, 5, 5))):
        for ours, theirs in zip(attend(Q, K, V, mask), scaled_dot_product_attention(Q, K, V, mask), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)


# --- What the page fetches --------------------------------------------------------------------------------------------


def test_experiments_switch_off_heads_of_the_real_model():
    induction, previous, others = make.experiments()
    assert (18, 6) in induction["heads"]
    assert (16, 0) in previous["heads"]
    assert len(others["heads"]) == len(induction["heads"])
    assert not set(others["heads"]) & set(induction["heads"])
    for experiment in (induction, previous, others):
        assert all(layer in range(30) and head in range(9) for layer, head in experiment["heads"])
        assert str(len(experiment["heads"])) in experiment["name"]


def test_packed_matrices_are_settled_without_a_change_of_their_numbers(rng):
    linear = Linear(64, 32, rng, bias=False)
    numbers, scale, least = rng.integers(0, 256, (2, 16, 32), np.uint8), *rng.random((2, 2, 32)).astype(np.float16)
    linear.W.value = Packed(numbers, scale, least, transposed=True)
    before = np.asarray(linear.W.value)
    packed_products.settle(linear)
    settled = linear.W.value
    assert settled.scale.dtype == settled.least.dtype == np.float32
    for array in (settled.numbers, settled.scale, settled.least):
        assert packed_products.place(array) == array.ctypes.data
        assert array.ctypes.data % packed_products.LINE == 0
    np.testing.assert_array_equal(np.asarray(linear.W.value), before)
