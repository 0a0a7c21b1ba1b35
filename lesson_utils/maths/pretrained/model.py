"""A model from a file, in the course's own `models.GPT`, with its tokenizer: `load`; and text from it, token by token.

The layers are those of the course, with other numbers in them (`architectures` says which).
"""

import codecs
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import machine, models, ops, progress_bar
from lesson_utils.maths.checks import Ids, as_ids, as_size
from lesson_utils.maths.layers import Attend
from lesson_utils.maths.models.experiments import HeadsOf
from lesson_utils.maths.pretrained import smollm2, tokenizer
from lesson_utils.maths.pretrained.architectures import build
from lesson_utils.maths.pretrained.arrays import Arrays
from lesson_utils.maths.pretrained.folder import Folder
from lesson_utils.maths.pretrained.gguf import Reader
from lesson_utils.maths.pretrained.tokenizer import Tokenizer

SYSTEM = "You are a helpful assistant."  # what most chat models were trained to read first
ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>")  # by these names, in files of all kinds


class Token(NamedTuple):
    """A token from `Pretrained.stream`. `text` is empty where a character is not complete yet."""

    id: int
    text: str
    probability: float


class Pretrained:
    """A model, its tokenizer, and the ids at which it ends an answer.

    `talks`: it was trained on conversations, and `chat` writes them as it read them. Others continue a text.
    """

    def __init__(
        self, name: str, model: models.GPT, tokenizer: Tokenizer, ends: frozenset[int], talks: bool = True
    ) -> None:
        self.name, self.model, self.tokenizer, self.ends = name, model, tokenizer, ends
        self.talks = talks and {"<|im_start|>", "<|im_end|>"} <= set(tokenizer.special)

    def prompt(self, text: str) -> Ids:
        """Return the ids of a text to go on from, (T,), with what this model was trained to find before every text."""
        return np.array([*self.tokenizer.begin, *self.tokenizer.encode(text)], np.int64)

    def chat(self, messages: Sequence[tuple[str, str]], system: str | None = None) -> Ids:
        """Return the ids of a conversation up to where the model is to answer, (T,).

        Args:
            messages: who says what, such as [("user", "Hello!"), ("assistant", "Hi."), ("user", "How are you?")].
                Whatever they say is text, never a token that ends a turn.
            system: what the model is told first. Default: as it was trained.

        Raises:
            ValueError: this model was not trained on conversations of this form.
        """
        if not self.talks:
            raise ValueError(f"{self.name} is no chat model of a known form; let it continue a text: stream(prompt(…))")
        if system is None:
            system = smollm2.SYSTEM if self.name.lower().startswith("smollm2") else SYSTEM
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


def load(
    path: str | os.PathLike[str] | None = None,
    max_length: int | None = None,
    progress: bool = True,
    packed: bool = False,
) -> Pretrained:
    """Load SmolLM2-135M-Instruct, or any model like Llama, Qwen2 or GPT-2 from your disk, in float32.

    Args:
        path: of a GGUF file; or of a folder with config.json, tokenizer.json and *.safetensors. Default: what
            `install` brought.
        max_length: the context: how many tokens the model looks back on at most. Default: 1,024, or what the model was
            trained for, if that is less.
        progress: show a bar while it loads.
        packed: leave matrices in 4 or 8 bits a number where the file has them so, see `layers.Packed`: a fifth of the
            memory and the same answers, but each token takes longer.

    Raises:
        FileNotFoundError: there is no such file, or the package is not installed.
        ValueError: the file is cut off, is not the model that it says, or is of a kind that is not known; the message
            says what it holds.
        MemoryError: the model does not fit into the memory that is free.
    """
    file = _opened(path or smollm2.find())
    words = tokenizer.of(file.facts)
    model, sources = build(file, len(words), max_length)
    _check_memory(sum(info.takes(packed) for info in file.arrays.values()))
    _fill(model, file, sources, progress, packed)
    named = [file.facts.get(f"tokenizer.ggml.{end}_token_id") for end in ("eos", "eot")]
    ends = frozenset(end for end in [*named, *map(words.special.get, ENDS)] if isinstance(end, int))
    template = file.facts.get("tokenizer.chat_template")
    name = str(file.facts.get("general.name", file.path.stem))
    return Pretrained(name, model, words, ends, talks=isinstance(template, str) and "<|im_start|>" in template)


def _opened(path: str | os.PathLike[str] | None) -> Arrays:
    if path is None:
        raise FileNotFoundError(
            "the model is not installed; run `python course.py real`, or here: pretrained.install()"
        )
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; give the path of a .gguf file, or of a folder")
    if path.suffix == ".safetensors":
        path = path.parent
    if path.is_dir():
        only = list(path.glob("*.gguf"))
        return Reader(only[0]) if len(only) == 1 else Folder(path)
    return Reader(path)


def _fill(model: models.GPT, file: Arrays, sources: dict[str, list[str]], progress: bool, packed: bool) -> None:
    """Read a file's arrays into the parameters of a model."""
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
        param, as_theirs = params[name], name.startswith("tokens.")  # tables
        keep = packed and name != "tokens.learned"  # positions are taken row by row
        matrix = file.packed(*names) if keep or not as_theirs else None
        if keep and matrix is not None:
            value: Any = matrix if as_theirs else matrix.T
        else:
            size, shape = param.value.size, param.value.shape
            if packed:
                value = np.empty(shape, np.float32)
            else:
                value, room = room[:size].reshape(shape), room[size:]
            if matrix is not None:
                matrix.unpack_into(value)  # turned while it has 4 or 8 bits: half the time of turning what is unpacked
            else:
                np.concatenate([file.read(part) for part in names], out=value if as_theirs else value.T)
        assert value.shape == param.value.shape, name
        param.value = value


def _check_memory(size: int) -> None:
    """Raise an error, before anything is unpacked, if there is too little memory."""
    needed, free = 1.3 * size, machine.free_memory()
    if free is not None and free < needed:
        raise MemoryError(
            f"the model takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; close other notebooks"
        )
