"""Models like Llama, Qwen2 and GPT-2, in a GGUF and in a folder: the same model, or one clear line."""

import json

import numpy as np
import pytest
import tiny_llama
import tiny_models
from tiny_models import HEADS, LAYERS, D, V

from lesson_utils.maths import gradcheck, pretrained
from lesson_utils.maths.pretrained import tokenizer
from lesson_utils.maths.pretrained.architectures import TwoTables


def load(path):
    return pretrained.load(path, progress=False)


def in_gguf(kind, path, arrays=None, **facts):
    named = arrays or tiny_models.arrays(kind)
    if kind == "llama":
        named = {name: tiny_models.side_by_side(array, name) for name, array in named.items()}
    path.write_bytes(tiny_llama.gguf(tiny_models.facts(kind) | facts, named))
    return load(path)


@pytest.fixture
def ids(rng):
    return rng.integers(0, V, (2, 9))


def gpt2(arrays, ids):
    """A GPT-2 once more, written down anew, in float64 and one head at a time. (T,) → (T, V)."""
    w, (T,), d_k = {name: array.astype(np.float64) for name, array in arrays.items()}, ids.shape, D // HEADS

    def norm(x, name):
        spread = np.sqrt(x.var(axis=-1, keepdims=True) + tiny_models.EPS)
        return (x - x.mean(axis=-1, keepdims=True)) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["token_embd.weight"][ids] + w["position_embd.weight"][:T]
    for layer in range(LAYERS):
        qkv, heads = linear(norm(x, f"blk.{layer}.attn_norm"), f"blk.{layer}.attn_qkv"), []
        for head in range(HEADS):
            q, k, v = (qkv[:, i * D + head * d_k : i * D + (head + 1) * d_k] for i in range(3))
            weights = np.exp(q @ k.T / np.sqrt(d_k)) * np.tri(T)
            heads.append(weights / weights.sum(axis=1, keepdims=True) @ v)
        x = x + linear(np.concatenate(heads, axis=1), f"blk.{layer}.attn_output")
        h = linear(norm(x, f"blk.{layer}.ffn_norm"), f"blk.{layer}.ffn_up")
        h = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + linear(h, f"blk.{layer}.ffn_down")
    return norm(x, "output_norm") @ w["token_embd.weight"].T


# --- The same model ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_folder_and_a_gguf_are_the_same_model(tmp_path, kind, ids):
    first, second = in_gguf(kind, tmp_path / "a.gguf"), load(tiny_models.folder(kind, tmp_path / "b"))
    logits, _ = first.model.forward(ids)
    np.testing.assert_allclose(second.model.forward(ids)[0], logits, atol=1e-5 * np.abs(logits).max())
    size = sum(array.size for array in tiny_models.arrays(kind).values())
    assert first.model.num_params() == second.model.num_params() == size
    assert first.model.config.max_length == second.model.config.max_length == tiny_models.CONTEXT
    assert (first.name, second.name) == (f"Tiny {kind}", "b")
    assert first.ends == second.ends == {V - 1}
    text = "the hat 12 é<|im_end|>"
    assert first.tokenizer.encode(text, special=True).tolist() == second.tokenizer.encode(text, special=True).tolist()


def test_logits_of_a_gpt2_are_those_of_the_same_model_written_down_anew(tmp_path, ids):
    real = in_gguf("gpt2", tmp_path / "a.gguf")
    expected = np.stack([gpt2(tiny_models.arrays("gpt2"), row) for row in ids])
    np.testing.assert_allclose(real.model.forward(ids)[0], expected, atol=1e-5 * np.abs(expected).max())
    shorter = pretrained.load(tmp_path / "a.gguf", max_length=9, progress=False)
    np.testing.assert_allclose(shorter.model.forward(ids)[0], expected, atol=1e-5 * np.abs(expected).max())


def test_a_qwen2_without_its_biases_is_a_llama_whose_pairs_are_halves(tmp_path, ids):
    arrays = tiny_models.arrays("qwen2")
    plain = {name: array for name, array in arrays.items() if not name.endswith("bias")}
    none = plain | {name: 0 * array for name, array in arrays.items() if name not in plain}
    llama, qwen2 = in_gguf("llama", tmp_path / "a.gguf", plain), in_gguf("qwen2", tmp_path / "b.gguf", none)
    assert (llama.model.config.rotary.pairs, qwen2.model.config.rotary.pairs) == ("adjacent", "halves")
    logits, _ = llama.model.forward(ids)
    np.testing.assert_allclose(qwen2.model.forward(ids)[0], logits, atol=1e-5 * np.abs(logits).max())
    assert np.abs(in_gguf("qwen2", tmp_path / "c.gguf", arrays).model.forward(ids)[0] - logits).max() > 0.1


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_an_output_layer_of_its_own(tmp_path, kind, ids, rng):
    own = rng.normal(size=(V, D)).astype(np.float32)
    arrays = tiny_models.arrays(kind)
    first = in_gguf(kind, tmp_path / "a.gguf", arrays | {"output.weight": own})
    named = tiny_models.named_arrays(kind) | {"lm_head.weight": own}
    second = load(tiny_models.folder(kind, tmp_path / "b", named, tie_word_embeddings=False))
    tied = load(tiny_models.folder(kind, tmp_path / "c", named, tie_word_embeddings=True))
    hidden = first.model.stack.forward(first.model.tokens.forward(ids)[0], np.tri(9, dtype=np.float32))[0]
    for real in (first, second):
        assert isinstance(real.model.tokens.embedding, TwoTables)
        np.testing.assert_allclose(real.model.forward(ids)[0], hidden @ own.T, atol=1e-4)
    np.testing.assert_allclose(tied.model.forward(ids)[0], hidden @ arrays["token_embd.weight"].T, atol=1e-4)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_such_a_model_can_be_trained_on(tmp_path, kind, ids, rng):
    """Its gradients, of biases and of a second table too, are those of finite differences."""
    own = rng.normal(size=(V, D)).astype(np.float32)
    model = in_gguf(kind, tmp_path / "a.gguf", tiny_models.arrays(kind) | {"output.weight": own}).model
    for param in model.params().values():
        param.value = param.value.astype(np.float64) / 3
    few = {name: param for name, param in model.params().items() if "blocks.0.attention" in name or "output" in name}
    batch = ids[:, :-1], ids[:, 1:]
    gradcheck.check_params(lambda: model.loss_and_grad(batch), few, rng, samples=3)


def test_a_scaled_rotation_is_told_in_both_forms(tmp_path, ids):
    """Llama 3's: a pair that turns round often keeps its rate, one that hardly does turns 8 times slower."""
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling |= {"original_max_position_embeddings": 256}
    real = load(tiny_models.folder("llama", tmp_path / "a", rope_scaling=scaling))
    slower = real.model.config.rotary.slower
    turns = 256 / (2 * np.pi * tiny_models.BASE ** np.array([0, 0.5]))  # 41 and 1.8
    between = (turns[1] - 1) / (4 - 1)
    assert slower == pytest.approx((1, 1 / (between + (1 - between) / 8)), rel=1e-6)
    freqs = np.array(slower, np.float32)
    again = in_gguf("llama", tmp_path / "a.gguf", tiny_models.arrays("llama") | {"rope_freqs.weight": freqs})
    np.testing.assert_allclose(again.model.forward(ids)[0], real.model.forward(ids)[0], atol=1e-4)
    facts = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0}
    halved = in_gguf("llama", tmp_path / "b.gguf", **facts)
    assert halved.model.config.rotary.scale == 0.5
    linear = load(tiny_models.folder("llama", tmp_path / "c", rope_scaling={"type": "linear", "factor": 2.0}))
    np.testing.assert_allclose(linear.model.forward(ids)[0], halved.model.forward(ids)[0], atol=1e-4)


# --- What a folder may be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("halved", [lambda x: x.astype("f2"), lambda x: (x.view("<u4") >> 16).astype("<u2")])
def test_numbers_of_half_the_bits_in_two_files(tmp_path, halved):
    """float16, and bfloat16, which is float32 without its last 16 bits; and masks that old files keep."""
    exact = {
        name: (array.view("<u4") >> 20 << 20).view("<f4") for name, array in tiny_models.named_arrays("gpt2").items()
    }
    expected = load(tiny_models.folder("gpt2", tmp_path / "a", exact)).model.params()
    named = {f"transformer.{name}": halved(array) for name, array in exact.items()}
    named["transformer.h.0.attn.bias"] = np.ones((1, 1, 4, 4))
    folder, order = tiny_models.folder("gpt2", tmp_path / "b"), sorted(named)
    for i, part in enumerate((order[:7], order[7:])):
        content = tiny_models.safetensors({name: named[name] for name in part})
        (folder / f"model-0000{i}-of-00002.safetensors").write_bytes(content)
    (folder / "model.safetensors").unlink()
    for name, param in load(folder).model.params().items():
        np.testing.assert_array_equal(param.value, expected[name].value)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("llama", {"model_type": "gemma"}, r"holds a model of the kind 'gemma'; those that have a place here"),
        ("llama", {"hidden_act": "gelu"}, r"config\.json says hidden_act='gelu'; here, only 'silu' is known"),
        ("llama", {"attention_bias": True}, r"config\.json says attention_bias=True; here, only False is known"),
        ("gpt2", {"activation_function": "gelu"}, r"activation_function='gelu'; here, only 'gelu_new' is known"),
        ("qwen2", {"use_sliding_window": True}, r"use_sliding_window=True; here, only False is known"),
        ("llama", {"rope_scaling": {"rope_type": "yarn"}}, r"has positions scaled by 'yarn'; known are 'linear'"),
        ("llama", {"rope_scaling": {"rope_type": "llama3"}}, r"json is not as expected \(KeyError: 'factor'\)"),
        ("llama", {"rope_scaling": "yes"}, r"json is not as expected \(AttributeError: "),
        ("llama", {"head_dim": 2}, r"turns 2 columns of each head by its position; here, it is all 4"),
        ("llama", {"num_hidden_layers": 3}, r"is not complete: blk\.2\.attn_norm\.weight is missing"),
        ("llama", {"tie_word_embeddings": False}, r"is not complete: lm_head\.weight is missing"),
        ("gpt2", {"n_positions": 65}, r"position_embd\.weight has shape \(64, 16\), expected \(65, 16\)"),
        ("gpt2", {"n_embd": None}, r"json is not as expected \(KeyError: 'n_embd'\)"),
        ("qwen2", {"hidden_size": 32, "head_dim": 8}, r"has shape \(261, 16\), expected \(261, 32\)"),
    ],
)  # fmt: skip
def test_what_config_json_says_and_is_not_known(tmp_path, kind, change, message):
    with pytest.raises(ValueError, match=message) as caught:
        load(tiny_models.folder(kind, tmp_path, **change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"type": "WordPiece", "vocab": {}}}, r"tokenizer\.json holds WordPiece with the steps \['digits'"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, r"holds BPE with the steps \['\{\"type\": \"Whitespace\"\}'\]"),
        ({"normalizer": {"type": "Lowercase"}}, r"Lowercase.* known are the byte pairs of GPT-2, SmolLM, Llama 3 "),
        ({"added_tokens": [{"id": 261, "content": "x", "special": True}]}, r"gives 'x' the id 261; the table .* 261"),
        ({"model": 3}, r"json is not as expected \(AttributeError: "),
    ],
)  # fmt: skip
def test_what_tokenizer_json_says_and_is_not_known(tmp_path, change, message):
    folder = tiny_models.folder("llama", tmp_path)
    (folder / "tokenizer.json").write_text(json.dumps(tiny_models.words() | change))
    with pytest.raises(ValueError, match=message):
        load(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"safetensors is cut off, or is no safetensors: its arrays begin at byte 8 of 0"),
        (b"\xff" * 8, r"is cut off, or is no safetensors: its arrays begin at byte"),
        (b"\2" + bytes(7) + b"{]", r"is cut off, or is damaged: what it says is no JSON"),
        (b"\2" + bytes(7) + b"[]", r"contradicts itself: expected names with values"),
        (tiny_models.safetensors({"a": np.ones(3)}), r"a is .*; expected a shape and bytes that fit, of \['F32', "),
        (tiny_models.safetensors({"a": np.ones(3, np.float32)})[:-1], r"is cut off: a ends at byte .*, the file at"),
        (tiny_models.safetensors({"a": np.ones(3, np.float32)}), r"has a, which has no place in this model"),
    ],
)  # fmt: skip
def test_safetensors_that_are_none(tmp_path, content, message):
    folder = tiny_models.folder("llama", tmp_path)
    (folder / "more.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_a_folder_that_lacks_a_file_or_has_a_gguf(tmp_path):
    folder = tiny_models.folder("qwen2", tmp_path)
    assert load(folder / "model.safetensors").model.num_params() == load(folder).model.num_params()
    (folder / "config.json").unlink()
    with pytest.raises(
        ValueError, match=r"holds model\.safetensors, tokenizer\.json; expected a \.gguf file, or config"
    ):
        load(folder)
    (folder / "one.gguf").write_bytes(tiny_models.gguf("gpt2"))
    assert load(folder).name == "Tiny gpt2"


# --- Text -------------------------------------------------------------------------------------------------------------


def test_who_talks_and_who_continues_a_text(tmp_path):
    folder = tiny_models.folder("gpt2", tmp_path)
    real = load(folder)
    assert not real.talks
    with pytest.raises(ValueError, match="is no chat model of a known form; let it continue a text: stream"):
        real.chat([])
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "<|im_start|>"}))
    assert load(folder).talks
    assert "You are a helpful assistant." in load(folder).tokenizer.decode(load(folder).chat([]))


def test_texts_begin_with_the_token_that_the_model_was_trained_to_find_there(tmp_path):
    begin = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|im_start|>"}}, {"Sequence": {}}]}
    folder = tiny_models.folder("llama", tmp_path)
    assert load(folder).prompt("the").tolist() == load(folder).tokenizer.encode("the").tolist()
    words = tiny_models.words() | {"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, begin]}}
    (folder / "tokenizer.json").write_text(json.dumps(words))
    assert load(folder).prompt("the").tolist() == [V - 2, *load(folder).tokenizer.encode("the")]


PIECES = {"▁": -9.0, "h": -9.0, "a": -9.0, "t": -9.0, "e": -9.0, "he": -1.0, "▁t": -2.0, "▁the": -3.0, "at": -0.5}


def of_characters(prefix=True, **also):
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(PIECES)]
    facts = {"tokens": tokens, "token_type": kinds, "scores": [0.0] * 259 + [*PIECES.values()], "model": "llama"}
    facts |= {"bos_token_id": 1, "add_space_prefix": prefix} | also
    return tokenizer.of({f"tokenizer.ggml.{name}": fact for name, fact in facts.items()})


def test_characters_are_joined_where_a_space_is_one():
    words = of_characters()
    assert words.tokens(words.encode("the hat")) == [" the", " ", "h", "at"]
    assert words.tokens(words.encode("the", special=True)) == [" the"]
    assert words.tokens(of_characters(prefix=False).encode("the")) == ["t", "he"]
    assert words.encode("é").tolist() == [259, *(3 + byte for byte in "é".encode())]
    assert words.encode("<s>a", special=True).tolist() == [1, 259, 261]
    assert words.begin == [1]
    for text in ("", "the  hat", " the", "日本 é\n"):
        assert words.decode(words.encode(text)) == text
    with pytest.raises(ValueError, match="half a character"):
        words.encode("a\ud800")


@pytest.mark.parametrize(
    ("also", "message"),
    [
        ({"scores": [0.0]}, "it has no scores, a number for each token"),
        ({"token_type": [1] * (259 + len(PIECES))}, "0 of 256 bytes have a token"),
        ({"bos_token_id": 10**9}, "the first token of texts holds 1000000000"),
    ],
)
def test_pieces_that_are_none_are_refused(also, message):
    with pytest.raises(ValueError, match=message):
        of_characters(**also)
