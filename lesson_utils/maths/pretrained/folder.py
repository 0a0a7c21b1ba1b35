"""A folder as Hugging Face's libraries write it: config.json, tokenizer.json, and arrays in *.safetensors.

It says what a GGUF says, in other words; here they are put into GGUF's, so that whoever reads a model needs to know one
language only. A .safetensors file is eight bytes that say how long its description is, the description as JSON, and the
arrays. (It is read here rather than by the package `safetensors`, which gives NumPy no bfloat16.)

Source: README.md of huggingface/safetensors; the classes LlamaConfig, Qwen2Config and GPT2Config of transformers.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.maths.checks import Array
from lesson_utils.maths.pretrained import arrays, tokenizer
from lesson_utils.maths.pretrained.arrays import ArrayInfo, Arrays, bytes_of

Json = dict[str, Any]
FILES = "config.json, tokenizer.json and *.safetensors"
KINDS = {"F32": arrays.F32, "F16": arrays.F16, "BF16": arrays.BF16}

# --- config.json ------------------------------------------------------------------------------------------------------

# GGUF's name of a fact, and its name here: a Llama's and Qwen2's, or a GPT-2's.
_FACTS = {
    "block_count": ("num_hidden_layers", "n_layer"),
    "context_length": ("max_position_embeddings", "n_positions"),
    "embedding_length": ("hidden_size", "n_embd"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_epsilon",),
    "rope.freq_base": ("rope_theta",),
    "rope.dimension_count": ("head_dim",),
}
# Settings that other models of the same kind may have, and the only value for which our layers stand.
_USUAL = {"hidden_act": "silu", "activation_function": "gelu_new", "scale_attn_weights": True} | dict.fromkeys(
    ("attention_bias", "mlp_bias", "use_sliding_window", "scale_attn_by_inverse_layer_idx", "add_cross_attention"),
    False,
)

# --- The arrays' names ------------------------------------------------------------------------------------------------

_NAMES = {
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}  # fmt: skip
_NAME = re.compile(r"(?:model\.|transformer\.)?(?:(?:layers|h)\.(\d+)\.)?(.+)\.(weight|bias)")
_TURNED = re.compile(r".*\.c_(attn|proj|fc)\.weight")  # GPT-2's matrices have a column for each output
_NO_WEIGHTS = re.compile(r"(.*\.)?(rotary_emb\.inv_freq|attn\.(masked_)?bias)")  # old files keep masks and rates

# --- tokenizer.json ---------------------------------------------------------------------------------------------------

_BEGIN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# The steps of cutting and of normalising, and what GGUF calls them: its model, and its rules or whether ▁ comes first.
_CUTS = {
    (("words",), ()): ("gpt2", "gpt-2"),
    (("digits", "words"), ()): ("gpt2", "smollm"),
    ((f"{_BEGIN}{{1,3}}{_REST}", "bytes"), ()): ("gpt2", "llama-bpe"),
    ((f"{_BEGIN}{_REST}", "bytes"), ("NFC",)): ("gpt2", "qwen2"),
    ((f"{_BEGIN}{_REST}", "bytes"), ()): ("gpt2", "deepseek-r1-qwen"),
    ((), ("▁ before it", "▁ for a space")): ("llama", True),
    ((), ("▁ for a space",)): ("llama", False),
}


class Folder(Arrays):
    """The same as `gguf.Reader`, of a folder.

    Raises:
        ValueError: a file is missing, is cut off, is no JSON, or says what is not known; the message says which.
    """

    pairs = "halves"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.arrays, self._made = Path(path), {}, dict[str, Array]()
        files, there = sorted(self.path.glob("*.safetensors")), sorted(file.name for file in self.path.iterdir())
        if not (files and {"config.json", "tokenizer.json"} <= set(there)):
            found = ", ".join(there[:6]) or "nothing"
            raise ValueError(f"{self.path} holds {found}; expected a .gguf file, or {FILES}")
        config, words = (_json(self.path / f"{name}.json") for name in ("config", "tokenizer"))
        for file in files:
            self.arrays |= _described(file)
        try:
            self.facts = self._facts(config)
            self._rename(config.get("tie_word_embeddings", config.get("model_type") == "gpt2"))
            table = self.arrays.get("token_embd.weight")
            self.facts |= _tokenizer(words, config, table.shape[0] if table else 0)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"{self.path}: config.json or tokenizer.json is not as expected ({what})") from None
        for name in ("tokenizer_config.json", "chat_template.jinja"):
            if (file := self.path / name).exists():
                text = file.read_text(encoding="utf-8", errors="replace")
                self.facts["tokenizer.chat_template"] = (
                    text if name.endswith(".jinja") or "chat_template" in text else ""
                )

    def _facts(self, config: Json) -> Json:
        """Say in GGUF's names what config.json says, and put the rates of a scaled rotation among the arrays."""
        for name, usual in _USUAL.items():
            if config.get(name, usual) != usual:
                raise ValueError(
                    f"{self.path}: config.json says {name}={config[name]!r}; here, only {usual!r} is known"
                )
        kind, turning = config.get("model_type"), config.get("rope_parameters") or config.get("rope_scaling") or {}
        config = {"rope_theta": turning.get("rope_theta")} | {k: v for k, v in config.items() if v is not None}
        facts: Json = {"general.architecture": kind, "general.name": self.path.resolve().name}
        for fact, names in _FACTS.items():
            facts |= {f"{kind}.{fact}": config[name] for name in names if config.get(name) is not None}
        if kind == "gpt2":
            facts.setdefault("gpt2.feed_forward_length", 4 * config["n_embd"])
        scaling = turning.get("rope_type", turning.get("type", "default"))
        if scaling == "llama3":
            d_k = config["hidden_size"] // config["num_attention_heads"]
            self._made["rope_freqs.weight"] = slowed(d_k, config["rope_theta"] or 10000.0, turning)
        elif scaling != "default":
            facts |= {f"{kind}.rope.scaling.type": scaling, f"{kind}.rope.scaling.factor": turning.get("factor")}
        return facts

    def _rename(self, tied: bool) -> None:
        """Give the arrays GGUF's names, and turn those that have a column for each output."""
        theirs, self.arrays = self.arrays, {}
        for name, info in theirs.items():
            if _TURNED.fullmatch(name) and len(info.shape) == 2:
                info = info._replace(shape=info.shape[::-1], columns=slice(0, info.shape[1]))
            if (parts := _NAME.fullmatch(name)) and parts[2] in _NAMES:
                name = f"{_NAMES[parts[2]]}.{parts[3]}"
                name = name if parts[1] is None else f"blk.{int(parts[1])}.{name}"
            if name in self.arrays:
                self.fail(f"{name} is there twice")
            self.arrays[name] = info
        if tied:
            self.arrays.pop("output.weight", None)  # a copy of the table
        elif "output.weight" not in self.arrays:
            raise ValueError(f"{self.path} is not complete: lm_head.weight is missing")
        for name, array in self._made.items():
            self.arrays[name] = ArrayInfo(self.path, array.shape, arrays.F32, 0, 0)

    def read(self, name: str) -> Array:
        return self._made[name] if name in self._made else super().read(name)


def slowed(d_k: int, base: float, settings: Json) -> Array:
    """Return by how much each pair of columns turns slower in Llama 3.1 and later, (d_k / 2,), float32.

    A pair that turns round often within the old context keeps its rate; one that does so seldom, turns `factor` times
    slower; between the two it goes gradually.
    """
    names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    factor, low, high, old = (float(settings[name]) for name in names)
    turns = old / (2 * math.pi * base ** (np.arange(0, d_k, 2) / d_k))  # within the old context, (d_k / 2,)
    keep = np.clip((turns - low) / (high - low), 0, 1)
    return np.asarray(1 / ((1 - keep) / factor + keep), np.float32)


def _json(path: Path, content: bytes | None = None) -> Json:
    try:
        found = json.loads(path.read_bytes() if content is None else content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is cut off, or is damaged: what it says is no JSON ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} contradicts itself: expected names with values")
    return found


def _described(path: Path) -> Iterator[tuple[str, ArrayInfo]]:
    """Yield the arrays of a .safetensors file, by their own names."""
    size = path.stat().st_size
    with path.open("rb") as file:
        base = 8 + int.from_bytes(file.read(8), "little")
        if base > size:
            raise ValueError(f"{path} is cut off, or is no safetensors: its arrays begin at byte {base} of {size}")
        described = _json(path, file.read(base - 8))
    described.pop("__metadata__", None)
    for name, entry in described.items():
        if _NO_WEIGHTS.fullmatch(name):
            continue
        try:
            kind, shape, (start, stop) = KINDS[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
            fits = len(shape) <= 4 and all(type(n) is int and n >= 0 for n in (*shape, start, stop))
            fits = fits and bytes_of(shape, kind) == stop - start
        except (LookupError, TypeError, ValueError):
            fits = False
        if not fits:
            raise ValueError(
                f"{path}: {name} is {str(entry)[:200]}; expected a shape and bytes that fit, of {[*KINDS]}"
            )
        if base + stop > size:
            raise ValueError(f"{path} is cut off: {name} ends at byte {base + stop}, the file at {size}")
        yield name, ArrayInfo(path, shape, kind, base + start, base + stop)


def _tokenizer(words: Json, config: Json, rows: int) -> Json:
    """Say in GGUF's names what tokenizer.json says, for a table of so many rows."""
    model, what = words["model"], {"pre_tokenizer": "pretokenizers", "normalizer": "normalizers"}
    cuts, normal = (tuple(map(_step, _sequence(words.get(name), inner))) for name, inner in what.items())
    spelt = {name: model[name] for name in ("continuing_subword_prefix", "end_of_word_suffix") if model.get(name)}
    if model.get("type", "BPE") != "BPE" or spelt or (cuts, normal) not in _CUTS:
        raise ValueError(
            f"tokenizer.json holds {model.get('type')} with the steps {[*normal, *cuts]} {spelt or ''}; known are the "
            f"byte pairs of GPT-2, SmolLM, Llama 3 and Qwen2, and those of SentencePiece with ▁ for a space"
        )
    kind, rules = _CUTS[cuts, normal]
    tokens, kinds = [f"[PAD{id_}]" for id_ in range(rows)], [tokenizer.UNUSED] * rows
    named = [(id_, token, tokenizer.NORMAL) for token, id_ in model["vocab"].items()]
    for token in words.get("added_tokens") or ():
        named.append((token["id"], token["content"], tokenizer.CONTROL if token["special"] else tokenizer.USER))
    for id_, token, of in named:
        if type(id_) is not int or not 0 <= id_ < rows:
            raise ValueError(f"tokenizer.json gives {token!r} the id {id_!r}; the table of embeddings has {rows} rows")
        is_byte = kind == "llama" and re.fullmatch("<0x[0-9A-F]{2}>", token)
        tokens[id_], kinds[id_] = token, tokenizer.BYTE if is_byte else of
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    ranks = {merge.replace(" ", ""): -float(rank) for rank, merge in reversed(list(enumerate(merges)))}
    end, begin = config.get("eos_token_id"), _first_of_all(words.get("post_processor"))
    facts: Json = {"model": kind, "tokens": tokens, "token_type": kinds, "merges": merges}
    facts |= {"scores": [ranks.get(token, -float(len(merges))) for token in tokens]}
    facts |= {"pre" if kind == "gpt2" else "add_space_prefix": rules, "add_bos_token": begin is not None}
    facts |= {
        "bos_token_id": tokens.index(begin) if begin in tokens else None,
        "ignore_merges": model.get("ignore_merges"),
    }
    facts |= {"eos_token_id": end[0] if isinstance(end, list) and end else end}
    return {f"tokenizer.ggml.{name}": value for name, value in facts.items() if value is not None}


def _sequence(found: Json | None, name: str) -> list[Json]:
    return [] if found is None else found[name] if found["type"] == "Sequence" else [found]


def _step(step: Json) -> str:
    """Describe a step in a word, or by its pattern."""
    match step:
        case {"type": "ByteLevel", "add_prefix_space": False}:
            return "words" if step.get("use_regex", True) else "bytes"
        case {"type": "Digits", "individual_digits": True}:
            return "digits"
        case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}:
            return str(pattern)
        case {"type": "Prepend", "prepend": "▁"}:
            return "▁ before it"
        case {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}:
            return "▁ for a space"
    return "NFC" if step == {"type": "NFC"} else json.dumps(step)[:200]


def _first_of_all(processor: Json | None) -> str | None:
    """Return the token that is put before every text, if there is one."""
    for step in _sequence(processor, "processors"):
        if step["type"] == "TemplateProcessing" and "SpecialToken" in step["single"][0]:
            return str(step["single"][0]["SpecialToken"]["id"])
    return None
