"""Measure what notebook 09 shows where the real model is not installed.

Everything is written to lesson_utils/lessons/real_model/measured.npz, part by part.
`python -m tools.measure.real_model census lens` makes these parts anew and leaves the others. It takes the model
(`python course.py real`) and ten minutes of one core.
The same seeds give the same numbers, to the last digits of float32.
"""

import io
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.lessons.real_model import chatting, grow, measures
from lesson_utils.maths import ops, pretrained
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT
from tools.measure.texts import REPORT, texts

FILE = Path(__file__).parents[2] / "lesson_utils/lessons/real_model/measured.npz"
SENTENCE = "The cat that the dog chased sat on the mat, and the dog that chased the cat sat on the rug."
SINK_TEXTS = ("The", "zebra", "\n", "7")
Part = dict[str, Any]


@cache
def real() -> pretrained.Pretrained:
    """Load the published model, once."""
    return pretrained.load()


@cache
def random_one() -> GPT:
    """Return a model of the same size that was never trained."""
    return GPT(real().model.config, np.random.default_rng(0))


def story(start: int = 0, length: int = measures.PAGE) -> Ids:
    """Return tokens of the story and the one that follows them, (1, length + 1)."""
    return real().tokenizer.encode(measures.STORY)[None, start : start + length + 1]


def repeated(batch: int = 3) -> Ids:
    return measures.copies(np.random.default_rng(7), len(real().tokenizer), batch)


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


COUNTS = (0, 1, 2, 4, 8, 16)


def knock_outs() -> Part:
    """Measure the loss without the k strongest heads of a kind: on the first copy, on the second, and on the story."""
    induction, previous = saved()["scores_real"][3], saved()["scores_real"][0]
    twice, text, rng = repeated(), story(length=120), np.random.default_rng(3)
    orders = {"induction": np.argsort(-induction, axis=None), "previous": np.argsort(-previous, axis=None)}
    orders |= {f"random {draw}": rng.permutation(induction.size) for draw in range(3)}
    found: Part = {"knock_counts": np.array(COUNTS)}
    whole = (*measures.copying(real().model, twice), float(measures.losses(real().model, text)[:, 16:].mean()))
    for kind, order in orders.items():
        rows = [whole]
        for k in COUNTS[1:]:
            out = measures.heads_of(order[:k], induction.shape[1])
            on_text = float(measures.losses(real().model, text, knock_out=out)[:, 16:].mean())
            rows.append((*measures.copying(real().model, twice, knock_out=out), on_text))
            print(f"{kind:10} {k:3} {np.round(rows[-1], 2)}", flush=True)
        found[f"knock_{kind.replace(' ', '_')}"] = np.array(rows)  # (counts, [first copy, second copy, story])
    return found


PRUNED = (0, 27, 54, 81, 108, 135)


def pruning() -> Part:
    """Measure how much each head is worth on one page; then knock out the least important ones together.

    Their loss is measured on this page, on another one, and on copying.
    """
    model, T = real().model, 96
    page, other, twice = story(length=T), story(start=200, length=T), repeated(1)
    worth = measures.without_each_head(model, page, 16) - measures.losses(model, page)[:, 16:].mean()
    order, rng = np.argsort(worth, axis=None), np.random.default_rng(4)
    drawn, rows = rng.permutation(worth.size), []
    for k in PRUNED:
        row = []
        for chosen in (order, drawn):
            out = measures.heads_of(chosen[:k], worth.shape[1])
            row += [measures.losses(model, ids, knock_out=out)[:, 16:].mean() for ids in (page, other)]
            row.append(np.float64(measures.copying(model, twice, knock_out=out)[1]))
        rows.append(row)
        print(k, np.round(row, 2), flush=True)
    # (counts, [least important: page, other, copying; random: the same])
    return {"worth": worth, "pruned_counts": np.array(PRUNED), "pruned": np.array(rows)}


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
            plain = amount is None or (what, amount) == ("temperature", 1.0)
            for first in measures.FIRST if what == "window" else (0,):
                now = whole if plain else nats(**{what: amount}, first=first)
                found[f"forget_{what}_{amount}_{first}"] = now
    found["page"] = np.array(real().tokenizer.tokens(text[0, measures.SEEN + 1 :]))
    return found


def together() -> Part:
    """Measure nats a token with several savings at once, on three texts: (windows, first, best, bits, texts)."""
    pages = [measures.STORY, REPORT, texts()["manual"]]
    ids = np.stack([real().tokenizer.encode(page)[: measures.PAGE + 1] for page in pages])  # (3, T + 1)
    stops = list(measures.TOGETHER.values())
    found = np.full((*map(len, stops), len(pages)), np.nan)
    for place in np.ndindex(found.shape[:-1]):
        window, first, best, bits = (amounts[n] for amounts, n in zip(stops, place, strict=True))
        same = list(place)  # as another setting, which has been measured
        if window == "all":
            same[1] = 0
        if window != "all" and best != "all" and first + window <= best:
            same[2] = 0
        if tuple(same) != place:
            found[place] = found[tuple(same)]
            continue
        attend = measures.forgets(window, first, best, bits)
        found[place] = measures.losses(real().model, ids, attend=attend)[:, measures.SEEN :].mean(axis=-1)
        print(window, first, best, bits, found[place].round(4).tolist(), f"{time.process_time():.0f} s", flush=True)
    return {"together": found}


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
    """Let the model answer with attention that forgets, and without the heads that copy."""
    p, written = real(), {}
    for name, what in WRITES.items():
        attend = measures.forgetful(**what) if what else None
        written[name] = "".join(
            t.text for t in p.stream(p.chat([("user", QUESTION)]), 28, np.random.default_rng(0), attend=attend)
        )
        print(f"{name:20} {written[name]!r}", flush=True)
    names = p.tokenizer.encode("Varn, Ilse, gull, donkey, brass. Varn, Ilse, gull,")
    for k in (0, 4):
        out = measures.strongest(saved()["scores_real"][3], k)
        written[f"copies, without {k}"] = "".join(
            t.text for t in p.stream(names, 8, np.random.default_rng(0), knock_out=out)
        )
        print(k, written[f"copies, without {k}"], flush=True)
    return {"writes": np.array(list(written)), "written": np.array(list(written.values()))}


def sink() -> Part:
    """Measure the weight on the first token: by layer, with other first tokens, and with the first token hidden.

    The lengths of its vectors and its values are measured, too.
    """
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
    stream = measures.streams(model, text)
    norms = np.stack([np.linalg.norm(x[0], axis=-1) for x in stream])  # (layers + 1, T)
    _, cache = model.forward(text)
    values = np.stack(
        [np.linalg.norm(c.attention.inner.attended.V[0], axis=-1).mean(axis=0) for c in cache.stack.blocks]
    )  # (layers, T)
    lost = [measures.losses(model, story(), mask=mask)[0, 16:].mean() for mask in (np.tri(T, dtype=bool), hidden)]
    return {
        "sink_shares": own[..., 0],
        "sink_words": np.array(SINK_TEXTS),
        "sink_by_word": np.array(others),
        "sink_hidden": shares(text, mask=hidden),
        "sink_lost": np.array(lost),
        "sink_norms": np.stack([norms[:, 0], np.median(norms[:, 1:], axis=1)]),
        "sink_values": np.stack([values[:, 0], np.median(values[:, 1:], axis=1)]),
    }


def effect() -> Part:
    """Measure the weight on each token of a sentence, and how the last prediction changes when that token is hidden."""
    model, tokenizer = real().model, real().tokenizer
    ids = tokenizer.encode("Ilse put the key on the table, went out, came back an hour later and looked for the")[None]
    T = ids.shape[1]
    logits, cache = model.forward(ids)
    maps = np.stack(model.maps(cache)["decoder"], axis=1)[0]
    weight = np.array([maps[:, :, j + 1 :, j].mean() for j in range(T - 1)])
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
        "effect_mean": weight,
        "effect_moved": np.array(moved),
    }


def log_softmax(logits: Array) -> Array:
    top = logits.max()
    result: Array = (logits - top - np.log(np.exp(logits - top).sum())).astype(np.float64)
    return result


LENS_TEXTS = ("The capital of France is the city of", "The opposite of hot is", "Monday, Tuesday, Wednesday,")


def lens() -> Part:
    """Find the five likeliest next tokens, as if each layer were the last."""
    found: Part = {"lens_texts": np.array(LENS_TEXTS)}
    for n, text in enumerate(LENS_TEXTS):
        words, shares = [], []
        for x in measures.streams(real().model, real().tokenizer.encode(text)[None]):
            p = np.exp(log_softmax(measures.logits_of(real().model, x)[0, -1]))
            top = np.argsort(-p)[:5]
            words.append(real().tokenizer.tokens(top))
            shares.append(p[top])
        print(text, [(w[0], round(float(s[0]), 2)) for w, s in zip(words, shares, strict=True)], flush=True)
        found |= {f"lens_words_{n}": np.array(words), f"lens_shares_{n}": np.array(shares)}
    return found


def speed() -> Part:
    """Measure seconds a token on one thread: with the model's own attention, and with np.sqrt instead of math.sqrt."""

    def heavy(Q: Array, K: Array, V: Array, mask: Any = None) -> tuple[Array, Array]:
        scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # a float64, and so is all that follows
        weights = ops.softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        return weights @ V, weights

    taken = [chatting.seconds_a_token(real(), attend) for attend in (None, heavy, None, heavy)]
    print(np.round(taken, 3), flush=True)
    return {"speed": np.array([min(taken[::2]), min(taken[1::2])])}


STEPS, SEEDS = 800, (0, 1)


def kind_of_positions(kind: str) -> Part:
    """Train two layers on repeats with one kind of positions; return the share right by step, for two seeds."""
    curves = []
    for seed in SEEDS:
        film = grow.grow(2, STEPS, kind, seed=seed, progress=False, every=STEPS // 20)
        curves.append([moment.right for moment in film.moments])
        print(kind, seed, np.round(curves[-1][::5], 2), flush=True)
    return {f"positions_{kind}": np.array(curves), "positions_steps": np.array([m.step for m in film.moments])}


PARTS: dict[str, Callable[[], Part]] = {
    "census": census,
    "knock_outs": knock_outs,
    "forgetting": forgetting,
    "together": together,
    "sink": sink,
    "effect": effect,
    "lens": lens,
    "writing": writing,
    "pruning": pruning,
    "speed": speed,
    **{kind: partial(kind_of_positions, kind) for kind in ("rotary", "learned", "sinusoidal", "alibi", "none")},
}


def saved() -> dict[str, Any]:
    if not FILE.exists():
        return {}
    with np.load(FILE, allow_pickle=False) as file:
        return dict(file)


def run(names: Sequence[str] = ()) -> None:
    """Measure the named parts again; without names, all."""
    for name in names or PARTS:
        print(f"--- {name}", flush=True)
        new = PARTS[name]()
        whole = io.BytesIO()
        np.savez_compressed(whole, **saved() | {key: np.asarray(value) for key, value in new.items()})
        put(FILE, whole.getvalue())
    print(f"{FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    run(sys.argv[1:])
