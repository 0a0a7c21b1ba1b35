"""Models of the three kinds, made by transformers and tokenizers at random weights: the same ids and logits here."""

import importlib
import json

import numpy as np
import parity  # skips where PyTorch is missing
import pytest

from lesson_utils.maths import pretrained
from lesson_utils.maths.pretrained import tokenizer as ours

REASON = "compares with other libraries; install them with: python course.py test --parity"
gguf, tokenizers, transformers, sentencepiece = (
    pytest.importorskip(name, reason=REASON) for name in ("gguf", "tokenizers", "transformers", "sentencepiece")
)
torch = parity.torch
pytestmark = parity.marks
TEXT = "".join(importlib.import_module(name).__doc__ or "" for name in ("this", "json", "re", "argparse", "decimal"))
TEXT += " don't we'LL  \n\n\t 2024 3.14 naïve Grüße 日本語 " * 4
V, POSITIONS, T = 384, 48, 23
SIZES = {"vocab_size": V, "max_position_embeddings": POSITIONS}
OF_TODAY = SIZES | {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-4,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
CONFIGS = {
    "llama": ("Llama", OF_TODAY | {"rope_theta": 500.0, "tie_word_embeddings": True}),
    "llama, two tables": ("Llama", OF_TODAY | {"tie_word_embeddings": False}),
    "llama, scaled as Llama 3": ("Llama", OF_TODAY | {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "llama, scaled": (
        "Llama", OF_TODAY | {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}}
    ),
    "qwen2": ("Qwen2", OF_TODAY | {"tie_word_embeddings": True}),
    "qwen2, two tables": ("Qwen2", OF_TODAY),
    "gpt2": ("GPT2", {"vocab_size": V, "n_positions": POSITIONS, "n_embd": 64, "n_layer": 2, "n_head": 4}),
}  # fmt: skip


# --- Tokenizers -------------------------------------------------------------------------------------------------------

NAMES = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def of_bytes(rules):
    """A byte-level tokenizer of the package, trained on a text and cut by these rules, as published ones are."""
    pre, words = (
        tokenizers.pre_tokenizers,
        tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=rules == "llama-bpe")),
    )
    digits = {"llama-bpe": "{1,3}", "qwen2": "", "deepseek-r1-qwen": ""}.get(rules)
    if digits is None:
        whole = pre.ByteLevel(add_prefix_space=False, use_regex=True)
        words.pre_tokenizer = pre.Sequence([pre.Digits(True), whole]) if rules == "smollm" else whole
    else:
        pattern = (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + digits
            + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )  # fmt: skip
        split = pre.Split(tokenizers.Regex(pattern), "isolated", False)
        words.pre_tokenizer = pre.Sequence([split, pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    if rules == "qwen2":
        words.normalizer = tokenizers.normalizers.NFC()
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=V - 8, special_tokens=NAMES, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
    )
    words.train_from_iterator([TEXT], trainer)
    words.add_tokens(["<tool>"])
    if rules == "llama-bpe":
        words.post_processor = tokenizers.processors.TemplateProcessing(
            single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
        )
    return words


def of_characters(folder):
    """SentencePiece, trained on a text: its own tokenizer, and the same one as the package tokenizers has it."""
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "sp"), model_type="bpe", vocab_size=V + 100,
        byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, remove_extra_whitespaces=False,
        normalization_rule_name="identity", minloglevel=2,
    )  # fmt: skip
    sp = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sp.model"))
    pieces = [sp.id_to_piece(id_) for id_ in range(len(sp))]
    ids = {piece: id_ for id_, piece in enumerate(pieces)}
    normal = [p for p in pieces if not (sp.is_control(ids[p]) or sp.is_unknown(ids[p]) or sp.is_byte(ids[p]))]
    pairs = [(p[:i], p[i:]) for p in normal for i in range(1, len(p)) if p[:i] in ids and p[i:] in ids]
    merges = sorted(pairs, key=lambda pair: -sp.get_score(ids["".join(pair)]))
    words = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab=ids, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    )
    words.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    )
    words.add_special_tokens(["<unk>", "<s>", "</s>"])
    kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(len(sp))]
    facts = {"model": "llama", "tokens": pieces, "scores": [sp.get_score(i) for i in range(len(sp))]}
    facts |= {"token_type": kinds, "bos_token_id": 1}
    return sp, words, {f"tokenizer.ggml.{name}": value for name, value in facts.items()}


def odd_strings(count=2000):
    """Texts of all scripts and signs, of pieces of the training text, and of special tokens' names."""
    rng = np.random.default_rng(0)
    planes = [(32, 127), (9, 14), (0xA0, 0x250), (0x370, 0x600), (0x900, 0xA00), (0x2000, 0x2100), (0x2150, 0x2190)]
    planes += [(0x3040, 0x3100), (0x4E00, 0x9FA5), (0x300, 0x370), (0xFF00, 0xFF5F), (0x1F300, 0x1F600), (0, 32)]
    bits = [
        "'s",
        "'LL",
        "'ſ",
        "<|im_end|>",
        "<tool>",
        "  ",
        " \n",
        "\r\n\r\n",
        "e\u0301",
        "½",
        "Ⅷ",
        "١٢٣٤",
        "▁",
        "1234",
    ]
    for _ in range(count):
        parts = []
        for _ in range(rng.integers(1, 9)):
            match rng.integers(4):
                case 0:
                    at = rng.integers(len(TEXT))
                    parts.append(TEXT[at : at + rng.integers(1, 12)])
                case 1:
                    parts.append(bits[rng.integers(len(bits))])
                case _:
                    low, high = planes[rng.integers(len(planes))]
                    parts += map(chr, rng.integers(low, high, rng.integers(1, 5)).tolist())
        yield "".join(parts)


def facts_of(words, folder):
    """What our reader makes of the package's tokenizer."""
    from lesson_utils.maths.pretrained import folder as reading

    words.save(str(folder / "tokenizer.json"))
    return reading._tokenizer(json.loads((folder / "tokenizer.json").read_text()), {}, V + 100)


@pytest.mark.parametrize("rules", ours.RULES)
def test_byte_level_tokens_are_those_of_the_package(tmp_path, rules):
    theirs = of_bytes(rules)
    facts = facts_of(theirs, tmp_path)
    assert facts["tokenizer.ggml.pre"] == rules
    words = ours.of(facts)
    assert words.begin == ([0] if rules == "llama-bpe" else [])
    for text in odd_strings():
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert words.encode(text, special=True).tolist() == ids, repr(text)
        assert words.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_tokens_of_characters_are_those_of_two_packages(tmp_path):
    sp, theirs, facts = of_characters(tmp_path)
    by_scores, by_merges = ours.of(facts), ours.of(facts_of(theirs, tmp_path))
    assert by_scores.begin == [1]
    for text in odd_strings():
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert by_merges.encode(text, special=True).tolist() == ids, repr(text)
        if "\0" not in text:
            assert by_scores.encode(text).tolist() == sp.encode(text), repr(text)
            assert by_scores.decode(by_scores.encode(text)) == text.replace("▁", " ")


# --- Models -----------------------------------------------------------------------------------------------------------


def made(kind):
    """A model of transformers at random weights, all of them of a size that matters."""
    name, settings = CONFIGS[kind]
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(**settings, bos_token_id=0, eos_token_id=2)
    model = getattr(transformers, f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for param in model.parameters():
            param.copy_(1 + torch.randn_like(param) / 4 if param.ndim == 1 else torch.randn_like(param) / 4)
    return model


def in_folder(model, folder, dtype=None):
    model.to(dtype or torch.float32).save_pretrained(folder)
    of_bytes("gpt-2").save(str(folder / "tokenizer.json"))
    return folder


GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
}  # fmt: skip


def in_gguf(model, path, packing="F32"):
    """Write a model as llama.cpp's converter does: in its own names, a Llama's queries and keys in another order."""
    config, kind = model.config, model.config.model_type
    get = lambda *names: next(getattr(config, name) for name in names if hasattr(config, name))  # noqa: E731
    width, heads = get("hidden_size"), get("num_attention_heads")
    out = gguf.GGUFWriter(path, kind)
    out.add_name("Tiny")
    out.add_block_count(get("num_hidden_layers"))
    out.add_context_length(POSITIONS)
    out.add_embedding_length(width)
    out.add_feed_forward_length(4 * width if kind == "gpt2" else config.intermediate_size)
    out.add_head_count(heads)
    if kind == "gpt2":
        out.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        out.add_head_count_kv(config.num_key_value_heads)
        out.add_layer_norm_rms_eps(config.rms_norm_eps)
        turning = config.rope_parameters
        out.add_rope_freq_base(turning["rope_theta"])
        if turning["rope_type"] == "linear":
            out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            out.add_rope_scaling_factor(turning["factor"])
    words = json.loads(of_bytes("gpt-2").to_str())
    tokens = [*sorted(words["model"]["vocab"], key=words["model"]["vocab"].get), "<tool>"]
    tokens += [f"[PAD{n}]" for n in range(len(tokens), V)]
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([3 if t in NAMES else 4 if t == "<tool>" else 5 if t.startswith("[PAD") else 1 for t in tokens])
    out.add_token_merges([" ".join(pair) for pair in words["model"]["merges"]])
    named = gguf.get_tensor_name_map(gguf.MODEL_ARCH[kind.upper()], get("num_hidden_layers"))
    for name, param in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = param.numpy()
        if name.endswith(CONV):
            array = array.T
        if kind == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            count = heads if "q_proj" in name else config.num_key_value_heads
            array = array.reshape(count, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        of = getattr(gguf.GGMLQuantizationType, packing if array.ndim == 2 else "F32")
        array = np.ascontiguousarray(array)
        out.add_tensor(named.get_name(name, (".weight", ".bias")), gguf.quantize(array, of), raw_dtype=of)
    if kind == "llama" and config.rope_parameters["rope_type"] == "llama3":
        rates = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config).inv_freq.numpy()
        plain = 500.0 ** (-np.arange(0, width // heads, 2) / (width // heads))
        out.add_tensor("rope_freqs.weight", (plain / rates).astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def agree(found, expected):
    """Compare logits, at once and token by token."""
    ids = np.random.default_rng(1).integers(0, V, (2, T))
    with torch.no_grad():
        logits = expected(torch.from_numpy(ids)).logits.float().numpy()
    scale = np.abs(logits).max()
    np.testing.assert_allclose(found.forward(ids)[0] / scale, logits / scale, atol=1e-4)
    past = found.new_past()
    parts = [found.forward(part, past)[0] for part in np.split(ids, [5, *range(6, T)], axis=1)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1) / scale, logits / scale, atol=1e-4)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("form", ["folder", "gguf"])
def test_logits_are_those_of_transformers(tmp_path, kind, form):
    model = made(kind)
    path = in_folder(model, tmp_path) if form == "folder" else in_gguf(model, tmp_path / "tiny.gguf")
    real = pretrained.load(path, progress=False)
    agree(real.model, model)
    assert real.model.config.max_length == POSITIONS
    assert len(real.tokenizer) == V


CONV = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # GPT-2's matrices, which have a column for each output


def rounded(kind, function):
    """A model whose matrices went through a rounding, a row for each output."""
    model = made(kind)
    with torch.no_grad():
        for name, param in model.named_parameters():
            if param.ndim == 2:
                turn = param.T if name.endswith(CONV) else param
                turn.copy_(torch.from_numpy(function(np.ascontiguousarray(turn.numpy()))))
    return model


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_folders_of_half_precision(tmp_path, kind, dtype):
    model, to = made(kind), getattr(torch, dtype)
    expected = made(kind)
    with torch.no_grad():
        for param in expected.parameters():
            param.copy_(param.to(to).float())
    agree(pretrained.load(in_folder(model, tmp_path, to), progress=False).model, expected)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
@pytest.mark.parametrize("packing", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_1"])
def test_packed_files(tmp_path, kind, packing):
    """By kinds of ours, and by one of the package gguf."""
    of = getattr(gguf.GGMLQuantizationType, packing)
    path = in_gguf(made(kind), tmp_path / "tiny.gguf", packing)
    expected = rounded(kind, lambda array: gguf.dequantize(gguf.quantize(array, of), of))
    for packed in (False, True):
        agree(pretrained.load(path, progress=False, packed=packed).model, expected)
