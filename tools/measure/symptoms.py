"""One bug at a time in the published model: what it says, its perplexity, and a map of one of its heads (notebook 10).

Each bug is planted as the catalogue of bugs has it, and taken out again. Answers are greedy and computed without a
cache, so that they are of the same pass as the perplexity; the bug of the cache is the exception.
"""

import json
import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lesson_utils
from lesson_utils.classroom.files import put
from lesson_utils.lessons import bugs
from lesson_utils.lessons.attention_bugs import MERGED
from lesson_utils.lessons.real_model import measures
from lesson_utils.maths import pretrained
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import Change, changed
from lesson_utils.maths.positions import Rotary

FILE = Path(lesson_utils.__file__).parent / "lessons" / "debugging" / "symptoms.json"
QUESTION = "What is the capital of France?"
LENGTH = 14  # tokens of an answer
SENTENCE = "The cat that the dog chased sat on the mat."
HEAD = (16, 0)  # layer and head of the map: of all heads, the one that looks most at the token before
RIGHT = "nothing is wrong"
OF_THE_CACHE = "cache starts at 0 again"
SHOWN = {  # the names that the figure shows, and those of the catalogue
    RIGHT: "",
    "no causal mask": "no mask",
    "mask one too late": "mask one too far",
    "mask inverted": "mask inverted",
    "mask after softmax": "mask after softmax",
    "no scale": "no scale",
    "scale 1/d_k": "scaled by d_k",
    "scale 1/√d_model": "scaled by √d_model",
    "softmax twice": "softmax of the weights",
    "softmax over queries": "softmax over the queries",
    "queries split, no swap": "queries split without the swap",
    "heads merged, no swap": MERGED,
    "groups tiled": "groups tiled",
    "positions left out": "rotary left out",
    "positions turn halves": "rotary pairs",
    "positions turn values, too": "values turned",
    "norm left out": "norm left out",
    "residual of the normed": "residual of the normed",
    "gate and value swapped": "gate and value swapped",
    OF_THE_CACHE: "",
}


@dataclass(frozen=True)
class Restarting(Rotary):
    """Positions behind a prompt that is `prompt` long, if each new token is taken for the first."""

    prompt: int = 0

    def turn(self, x: Array, positions: Any) -> Array:
        return super().turn(x, np.where(np.asarray(positions) >= self.prompt, 0, positions))


def planted(model: GPT, name: str, prompt: int = 0) -> AbstractContextManager[None]:
    """Plant a bug of `SHOWN` for as long as a `with` block lasts; `prompt` is the length of the chat's."""
    changes: list[Change] = []
    if name == OF_THE_CACHE:
        changes = [
            (heads, "rotary", Restarting(heads.rotary.base, prompt=prompt))
            for heads in model.heads()["decoder"]
            if heads.rotary
        ]
    elif SHOWN[name]:
        changes = bugs.changes(model, SHOWN[name])
    return changed(changes)


def perplexity(model: GPT, ids: Ids) -> float:
    """Return the perplexity of a text; NaN where the model computes no numbers."""
    with np.errstate(all="ignore"):
        logits = model.forward(ids[:, :-1])[0]
        if not np.isfinite(logits).all():
            return math.nan
        return measures.perplexity(measures.of_next(logits, ids)[0, measures.SEEN :])


def answer(p: pretrained.Pretrained, prompt: Ids, cached: bool) -> str:
    """Return what the model says greedily, with the tokens that mean no text by their names."""
    said: list[int] = []
    past, fresh = (p.model.new_past() if cached else None), prompt
    with np.errstate(all="ignore"):
        for _ in range(LENGTH):
            logits = p.model.forward(fresh[None], past)[0][0, -1]
            if not np.isfinite(logits).all():
                break
            said.append(int(logits.argmax()))
            if said[-1] in p.ends:
                break
            fresh = np.array(said[-1:]) if cached else np.array([*prompt, *said])
    return p.tokenizer.decode(said)


def run() -> None:
    """Measure all bugs, and store what was found."""
    p = pretrained.load()
    model, prompt = p.model, p.chat([("user", QUESTION)])
    story = p.tokenizer.encode(measures.STORY)[None, : measures.PAGE + 1]
    ids = p.tokenizer.encode(SENTENCE)
    layer, head = HEAD
    found = {}
    for name in SHOWN:
        cached = name == OF_THE_CACHE
        with planted(model, RIGHT if cached else name):  # a pass without a cache can't show a cache's bug
            lost = perplexity(model, story)
        with planted(model, name, len(prompt)):
            says = answer(p, prompt, cached)
            with np.errstate(all="ignore"):
                map_ = measures.all_maps(model, ids[None])[0, layer, head]  # (T, T)
        percent = np.rint(100 * map_).astype(int).tolist() if np.isfinite(map_).all() else None
        found[name] = {
            "perplexity": float(f"{lost:.3g}") if math.isfinite(lost) else None,
            "says": says,
            "map": percent,
        }
        print(f"{name:28} {lost:14,.1f} {says!r}", flush=True)
    table = {
        "question": QUESTION,
        "tokens": p.tokenizer.tokens(ids),
        "head": HEAD,
        "vocabulary": len(p.tokenizer),
        "symptoms": found,
    }
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).replace("},", "},\n")
    FILE.parent.mkdir(exist_ok=True)
    put(FILE, text + "\n")
    print(f"{FILE.name}: {FILE.stat().st_size:,} bytes")
