"""Measure what notebook 09 shows where the real model is not installed.

Everything is written to lesson_utils/lessons/real_model/measured.npz, part by part.
`python -m tools.measure.real_model census lens` makes these parts anew, leaves the others, and prints how far they are
from what was stored. It takes the model (`python course.py real`) and half an hour of one core.
The same seeds give the same numbers, to the last digits of float32.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from lesson_utils.lessons.real_model import chatting, measures
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT
from tools.measure import circuits, controls
from tools.measure.smollm import Part, log_softmax, real, repeated, run_parts, story

SENTENCE = "The cat that the dog chased sat on the mat, and the dog that chased the cat sat on the rug."
SINK_TEXTS = ("The", "zebra", "\n", "7")


@cache
def random_one() -> GPT:
    """Return a model of the same size that was never trained."""
    return GPT(real().model.config, np.random.default_rng(0))


def census() -> Part:
    """Score all heads of the trained model and of a random one, and keep the maps of a sentence."""
    found: Part = {}
    text, twice = story(), repeated()
    for name, model in (("real", real().model), ("random", random_one())):
        scores = measures.scores_on_text(measures.all_maps(model, text[:, :-1])[0], text[0, :-1])
        scores["induction"] = measures.induction_score(measures.all_maps(model, twice), measures.COPIED).mean(axis=0)
        found[f"scores_{name}"] = np.stack([scores[score] for score in measures.SCORES])  # (5, layers, heads)
    ids = real().tokenizer.encode(SENTENCE)
    maps = measures.all_maps(real().model, ids[None])[0]
    return found | {
        "sentence": SENTENCE,
        "sentence_ids": ids,
        "tokens": np.array(real().tokenizer.tokens(ids)),
        "maps": in_bytes(maps),
    }


def in_bytes(weights: Array) -> Array:
    return np.rint(255 * weights).astype(np.uint8)


def forgetting() -> Part:
    """Measure −log p of each token of the story, with attention that forgets one thing at a time.

    Windows are measured with the first keys kept, too.
    """
    model, text = real().model, story()
    found: Part = {}

    def nats(**what: Any) -> Array:
        lost = measures.losses(model, text, attend=measures.forgetful(**what))[0, measures.SEEN :]
        print(what, round(measures.perplexity(lost), 2), flush=True)
        return lost.astype(np.float16)

    whole = nats()
    for what, amounts in measures.FORGET.items():
        for amount in amounts:
            plain = amount is None
            for first in measures.FIRST if what == "window" else (0,):
                now = whole if plain else nats(**{what: amount}, first=first)
                found[f"forget_{what}_{amount}_{first}"] = now
    found["page"] = np.array(real().tokenizer.tokens(text[0, measures.SEEN + 1 :]))
    return found


QUESTION = "Tell me about the moon in two sentences."
WRITES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "window 16": {"window": 16},
    "window 16, first 1": {"window": 16, "first": 1},
    "best 1": {"best": 1},
    "best 4": {"best": 4},
    "bits 4": {"bits": 4},
    "bits 2": {"bits": 2},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 2": {"temperature": 2.0},
}


def writing() -> Part:
    """Let the model answer with attention that forgets."""
    p, written = real(), {}
    for name, what in WRITES.items():
        attend = measures.forgetful(**what) if what else None
        written[name] = "".join(
            t.text for t in p.stream(p.chat([("user", QUESTION)]), 28, np.random.default_rng(0), attend=attend)
        )
        print(f"{name:20} {written[name]!r}", flush=True)
    return {"writes": np.array(list(written)), "written": np.array(list(written.values()))}


def sink() -> Part:
    """Measure the weight on the first token: by layer, with other first tokens, and with the first token hidden."""
    model = real().model
    text = story()[:, :-1]
    T = text.shape[1]

    def shares(ids: Ids, **forward: Any) -> Array:
        """Return the mean weight on the first two tokens, of queries from 16 on: (layers, heads, 2)."""
        return measures.all_maps(model, ids, **forward)[0, :, :, 16:, :2].mean(axis=2)

    own = shares(text)
    others = []
    for word in SINK_TEXTS:
        begin = real().tokenizer.encode(word)[:1]
        others.append(shares(np.concatenate([begin[None], text[:, 1:]], axis=1))[..., 0].mean())
    hidden = np.tri(T, dtype=bool)
    hidden[1:, 0] = False
    return {
        "sink_shares": own[..., 0],
        "sink_words": np.array(SINK_TEXTS),
        "sink_by_word": np.array(others),
        "sink_hidden": shares(text, mask=hidden),
    }


def effect() -> Part:
    """Measure the weight on each token of a sentence, and how the last prediction changes when that token is hidden."""
    model, tokenizer = real().model, real().tokenizer
    ids = tokenizer.encode("Ilse put the key on the table, went out, came back an hour later and looked for the")[None]
    T = ids.shape[1]
    logits, cache = model.forward(ids)
    maps = np.stack(model.maps(cache)["decoder"], axis=1)[0]
    p = np.exp(log_softmax(logits[0, -1]))
    moved = []
    for j in range(T - 1):
        mask = np.tri(T, dtype=bool)
        mask[j + 1 :, j] = False
        q = log_softmax(model.forward(ids, mask=mask)[0][0, -1])
        moved.append(float((p * (np.log(p) - q)).sum()))  # Kullback and Leibler's, in nats
    last = maps[:, :, -1, :-1].mean(axis=(0, 1))
    print(list(zip(tokenizer.tokens(ids[0]), last.round(3), np.round(moved, 3), strict=False)))
    return {
        "effect_tokens": np.array(tokenizer.tokens(ids[0])),
        "effect_weight": last,
        "effect_moved": np.array(moved),
    }


def speed() -> Part:
    """Measure seconds a token on one thread: with the model's own attention, and with np.sqrt instead of math.sqrt."""

    def heavy(Q: Array, K: Array, V: Array, mask: Any = None) -> tuple[Array, Array]:
        scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # a float64, and so is all that follows
        weights = ops.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        return weights @ V, weights

    taken = [chatting.seconds_a_token(real(), attend) for attend in (None, heavy, None, heavy)]
    print(np.round(taken, 3), flush=True)
    return {"speed": np.array([min(taken[::2]), min(taken[1::2])])}


PARTS: dict[str, Callable[[], Part]] = {
    "census": census,
    "knock_outs": circuits.knock_outs,
    "path_patching": circuits.path_patching,
    "induction_again": controls.induction_again,
    "moved": controls.moved,
    "passages": controls.passages,
    "names": circuits.names,
    "names_control": circuits.names_control,
    "names_two": circuits.names_two,
    "whose_untold": controls.whose_untold,
    "writes": controls.writes,
    "writes_made_up": controls.writes_made_up,
    "writes_copies": controls.writes_copies,
    "worth": circuits.worth,
    "worth_copying": circuits.worth_copying,
    "worth_pages": controls.worth_pages,
    "worth_by_mean": controls.worth_by_mean,
    "pruning": controls.pruning,
    "sink": sink,
    "first_token": circuits.first_token,
    "sink_again": controls.sink_again,
    "sink_places": controls.sink_places,
    "first_by_text": controls.first_by_text,
    "rounding": controls.rounding,
    "kept": controls.kept,
    "effect": effect,
    "lens": circuits.lens,
    "forgetting": forgetting,
    "windows": circuits.windows,
    "divisor": circuits.divisor,
    "writing": writing,
    "speed": speed,
    "positions": circuits.positions,
}


def run(names: Sequence[str] = ()) -> None:
    """Measure the named parts again; without names, all."""
    run_parts(PARTS, names)


if __name__ == "__main__":
    run(sys.argv[1:])
