"""Measure which heads of the real model copy, what they read, and where attention goes that has nothing to read.

Parts of `python -m tools.measure.real_model`.
"""

from typing import Any

import numpy as np

from lesson_utils.lessons.real_model import grow, measures, paths, recall
from lesson_utils.lessons.real_model import lens as lens_module
from lesson_utils.maths.checks import Array, Ids
from tools.measure.smollm import Part, log_softmax, real, repeated, saved, story
from tools.measure.texts import REPORT, texts

COUNTS, DRAWS = (0, 1, 2, 4, 8), 8
NEAR = range(16, 25)  # layers of the induction heads, and of the head that they read
TOKENS = (7, 21)  # seeds of two sets of random tokens


def neither(layers: range = NEAR) -> Ids:
    """Return heads of some layers that are neither induction nor previous-token heads, counted through all layers."""
    previous, induction = saved()["scores_real"][[0, 3]]
    plain = np.flatnonzero((previous < 0.3) & (induction < 0.3))
    return plain[np.isin(plain // previous.shape[1], layers)]


def others(count: int, layers: range = NEAR) -> list[dict[int, list[int]]]:
    """Draw so many of these heads, eight times; each draw of few heads is the beginning of one of more."""
    rng, pool = np.random.default_rng(3), neither(layers)
    return [measures.heads_of(rng.permutation(pool)[:count], 9) for _ in range(DRAWS)]


def knock_outs() -> Part:
    """Measure the loss without the k strongest heads of a kind, by zero and by their mean; and without k others.

    On the first copy, on the second, and on the story.
    """
    model, text = real().model, story(length=120)
    previous, induction = saved()["scores_real"][[0, 3]]

    def lost(out: Any, by: str = "zero", seed: int = 7) -> list[float]:
        copied = measures.copying(model, repeated(seed=seed), knock_out=out, by=by)
        on_text = float(measures.losses(model, text, knock_out=out, by=by)[:, 16:].mean())
        return [*copied, on_text]

    found: Part = {"knock_counts": np.array(COUNTS)}
    for by in ("zero", "mean"):
        whole = lost(None)
        for kind, scores in (("induction", induction), ("previous", previous)):
            rows = [whole, *(lost(measures.strongest(scores, k), by) for k in COUNTS[1:])]
            found[f"knock_{kind}_{by}"] = np.array(rows)  # (counts, 3)
            print(kind, by, np.round(rows, 2).tolist(), flush=True)
        drawn = [[whole] * DRAWS, *([lost(out, by) for out in others(k)] for k in COUNTS[1:])]
        found[f"knock_others_{by}"] = np.array(drawn).swapaxes(0, 1)  # (draws, counts, 3)
        print("others", by, np.round(found[f"knock_others_{by}"][:, :, 1], 2).tolist(), flush=True)
    again = [None, *(measures.strongest(scores, k) for scores, k in ((induction, 4), (previous, 1))), *others(4)]
    found["knock_again"] = np.array([[lost(out, by, 21) for by in ("zero", "mean")] for out in again])
    print("other tokens", np.round(found["knock_again"][..., 1], 2).tolist(), flush=True)
    return found


def sources() -> list[tuple[int, int]]:
    """Return the six strongest previous-token heads that stand below all readers."""
    scores = saved()["scores_real"][0]
    order = [(int(n) // 9, int(n) % 9) for n in np.argsort(-scores, axis=None)]
    return [head for head in order if head[0] < min(paths.READERS)][:6]


def path_patching() -> Part:
    """Take one previous-token head out of the queries, keys or values of five induction heads.

    For two sets of random tokens; by zero and by the mean; and, as a control, out of the keys of five other heads
    of the same layers.
    """
    model, scores, nats = real().model, [], []
    ids = [repeated(seed=seed) for seed in TOKENS]
    heads = sources()

    def without(**how: Any) -> tuple[list[Array], list[float]]:
        done = [paths.copying_without(model, tokens, **how) for tokens in ids]
        print(how, np.round([score for score, _ in done], 3).tolist(), np.round([n for _, n in done], 2), flush=True)
        return [score for score, _ in done], [n for _, n in done]

    nothing = {"inputs": lambda x, written, *rest: paths.patched_inputs(x, 0 * written, *rest)}
    whole = without(**nothing)
    for head in heads:
        rows = [without(head=head, into=into) for into in paths.INPUTS]
        scores.append([row[0] for row in rows])
        nats.append([row[1] for row in rows])
    by_mean = [without(into=into, by="mean") for into in paths.INPUTS]
    rng, control = np.random.default_rng(5), []
    for _ in range(DRAWS):
        readers = {
            layer: sorted(rng.permutation(neither(range(layer, layer + 1)) % 9)[: len(of)].tolist())
            for layer, of in paths.READERS.items()
        }
        control.append(without(readers=readers)[1])
    return {
        "path_heads": np.array(heads),
        "path_whole_scores": np.array(whole[0]),  # (tokens, readers)
        "path_whole_nats": np.array(whole[1]),  # (tokens,)
        "path_scores": np.array(scores),  # (heads, inputs, tokens, readers)
        "path_nats": np.array(nats),  # (heads, inputs, tokens)
        "path_mean_nats": np.array([row[1] for row in by_mean]),  # (inputs, tokens), head 16.0
        "path_control_nats": np.array(control),  # (draws, tokens), 16.0 out of the keys of others
    }


def names() -> Part:
    """Measure −log p of invented surnames after the first name, with heads off; and write on from a list of words."""
    p, scores = real(), saved()["scores_real"]
    four, nine, first = (measures.strongest(of, k) for of, k in ((scores[3], 4), (scores[3], 9), (scores[0], 1)))
    off: dict[str, Any] = {"all": None, "four": four, "nine": nine, "first": first}
    found: Part = {"names_people": np.array(recall.PEOPLE)}
    for name, out in off.items():
        for by in ("zero", "mean") if out else ("zero",):
            key = f"names_{name}" + ("_mean" if by == "mean" else "")
            found[key] = np.array([recall.surname_nats(p, who, knock_out=out, by=by) for who in recall.PEOPLE])
            print(key, found[key].round(2), flush=True)
    found["names_untold"] = np.array([recall.surname_nats(p, who, told=False) for who in recall.PEOPLE])
    print("untold", found["names_untold"].round(2), flush=True)
    drawn = [[recall.surname_nats(p, who, knock_out=out) for who in recall.PEOPLE] for out in others(4)]
    found["names_others"] = np.array(drawn)  # (draws, people)
    print(found["names_others"].round(2).tolist(), flush=True)
    outs = {"all heads": None, "4 induction heads off": four, "16.0 off": first, "4 other heads off": others(4)[0]}
    lists = [recall.continues(p, recall.WORDS, knock_out=out) for out in outs.values()]
    print(lists, flush=True)
    return found | {"words_off": np.array(list(outs)), "words_written": np.array(lists)}


def names_control() -> Part:
    """Measure the surnames without nine other heads of the layers of the nine induction heads, in eight draws."""
    drawn = [[recall.surname_nats(real(), who, knock_out=out) for who in recall.PEOPLE] for out in others(9)]
    print(np.round(drawn, 2).tolist(), flush=True)
    return {"names_nine_others": np.array(drawn)}


TWO = {"all": None, "four": (3, 4), "nine": (3, 9), "first": (0, 1)}  # which score, and how many of the strongest


def names_two() -> Part:
    """Measure a person's own surname and another's, in a text with both; without nine other heads in eight draws."""
    scores, people = saved()["scores_real"], recall.PEOPLE
    found: Part = {}

    def nats(out: Any) -> list[list[tuple[float, float]]]:
        two = [
            [
                recall.of_two(real(), who, people[(n + away) % len(people)], first, knock_out=out)
                for n, who in enumerate(people)
            ]
            for away, first in recall.ARRANGEMENTS
        ]
        print([sum(own < other for own, other in row) for row in two], "of", len(people), flush=True)
        return two

    for name, chosen in TWO.items():
        out = measures.strongest(scores[chosen[0]], chosen[1]) if chosen else None
        found[f"two_{name}"] = np.array(nats(out))  # (arrangements, people, [own, other])
    return found | {"two_nine_others": np.array([nats(out) for out in others(9)])}  # (draws, …)


PAGE_LENGTH, SKIPPED = 96, 16


def worth() -> Part:
    """Measure what each head is worth, switched off alone, on a page of the story: (layers, heads)."""
    ids = story(length=PAGE_LENGTH)
    whole = measures.losses(real().model, ids)[:, SKIPPED:].mean()
    return {"worth": (measures.without_each_head(real().model, ids, SKIPPED) - whole).astype(np.float32)}


def worth_copying() -> Part:
    """Measure what each head is worth, switched off alone, for the second copy of random tokens: (layers, heads)."""
    ids, first = repeated(1), measures.COPIED - 1
    whole = measures.losses(real().model, ids)[:, first:].mean()
    return {"worth_copying": (measures.without_each_head(real().model, ids, first) - whole).astype(np.float32)}


SENTENCES = (
    "Ilse put the key on the table, went out, came back an hour later and looked for the",
    "Nobody in the village had ever heard the old man speak about the sea, and nobody asked",
    "When the last train had left the station, the woman in the red coat turned around and walked into",
)
HIDDEN = ("from the start", "from the middle", "from the last token")
DEPTH = 15  # layers after which the stream is measured
LENGTHS = (32, 48, 96, 192, 384)


def hiding(T: int, case: int, start: int | None = None) -> Array:
    """Return a causal mask in which the first token is hidden from all later queries, the later half, or the last."""
    mask = np.tri(T, dtype=bool)
    mask[(1, T // 2 if start is None else start, T - 1)[case] :, 0] = False
    return mask


def first_token() -> Part:
    """Measure what the first token is worth: hidden from the start, from the middle, from the last query.

    And where the weight and the longest vectors then are; and its share by length of the text, and in a chat.
    """
    p = real()
    model, moved = p.model, []
    for sentence in SENTENCES:
        ids = p.tokenizer.encode(sentence)[None]
        log_p = log_softmax(model.forward(ids)[0][0, -1])
        row = []
        for case in range(3):
            log_q = log_softmax(model.forward(ids, mask=hiding(ids.shape[1], case))[0][0, -1])
            row.append(float((np.exp(log_p) * (log_p - log_q)).sum()))
        moved.append(row)
        print(sentence[:20], np.round(row, 2), flush=True)
    found: Part = {"first_sentences": np.array(SENTENCES), "first_moved": np.array(moved)}  # (sentences, cases)
    ids, half = story(), measures.PAGE // 2
    T = measures.PAGE
    alone = hiding(T, 1, half)
    alone[half, :half] = False  # one token in the middle sees only itself, as a first token does
    lost, shares, norms = [], [], []
    for mask in (np.tri(T, dtype=bool), hiding(T, 0), hiding(T, 1, half), alone):
        logits, cache = model.forward(ids[:, :-1], mask=mask)
        maps = np.stack(model.maps(cache)["decoder"], axis=1)[0]  # (layers, heads, T, T)
        lost.append(float(measures.of_next(logits, ids)[0, half + 1 :].mean()))
        shares.append(maps[:, :, half + 1 :].mean(axis=(0, 1, 2)))  # (T,): weight on each key, of later queries
        x, _ = model.tokens.forward(ids[:, :-1])
        for block in model.stack.blocks[:DEPTH]:
            x, _ = block.forward(x, mask.astype(x.dtype))
        norms.append(np.linalg.norm(x[0], axis=-1))
        if len(lost) == 2:  # hidden from the start: is this the text without its first token?
            shorter = model.forward(ids[:, 1:-1])[0]
            found["first_same"] = float(np.abs(logits[:, 1:] - shorter).max())
        print(round(lost[-1], 3), shares[-1][[0, 1, half]].round(3), norms[-1][[0, 1, half]].round(0), flush=True)
    print(np.median(norms, axis=1), found["first_same"], flush=True)
    by_length = []
    for length in LENGTHS:
        maps = measures.all_maps(model, story(length=length)[:, :-1])[0, :, :, 16:, 0]
        by_length.append((float(maps.mean()), int((maps.mean(axis=-1) > 0.5).sum())))
    chat = p.chat([("user", "What is the capital of France?")])[None]
    maps = measures.all_maps(model, chat)[0, :, :, 16:, 0]
    by_length.append((float(maps.mean()), int((maps.mean(axis=-1) > 0.5).sum())))
    print(by_length, chat.shape, flush=True)
    return found | {
        "first_lost": np.array(lost),  # nats per token of the second half of the page, four cases
        "first_shares": np.array(shares).astype(np.float32),  # (cases, T)
        "first_norms": np.array(norms).astype(np.float32),  # (cases, T), after 15 layers
        "first_lengths": np.array([*LENGTHS, chat.shape[1]]),  # the last is a chat
        "first_by_length": np.array(by_length),  # (lengths, [share, heads above one half])
    }


REFERS = 100  # tokens of the story, then the same again
FORGETS: dict[str, dict[str, Any]] = {
    "all keys": {},
    "window 64": {"window": 64},
    "window 64, first": {"window": 64, "first": 1},
    "window 128, first": {"window": 128, "first": 1},
    "16 best keys": {"best": 16},
    "8 best keys": {"best": 8},
}


def windows() -> Part:
    """Measure the perplexity of the story, a report and a manual, and of a text that says the same thing twice."""
    encode = real().tokenizer.encode
    pages_ = np.stack([encode(text)[: measures.PAGE + 1] for text in (measures.STORY, REPORT, texts()["manual"])])
    twice = np.tile(encode(measures.STORY)[:REFERS], 2)[None]
    rows = []
    for name, what in FORGETS.items():
        attend = measures.forgetful(**what)
        lost = measures.losses(real().model, pages_, attend=attend)[:, measures.SEEN :].mean(axis=-1)
        again = measures.losses(real().model, twice, attend=attend)[0, REFERS:].mean()
        rows.append([*lost, again])
        print(name, np.exp(rows[-1]).round(2), flush=True)
    return {"windows": np.array(list(FORGETS)), "windows_lost": np.array(rows)}  # nats, (ways, [three texts, repeat])


DIVISORS = (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0)


def divisor() -> Part:
    """Measure three texts with the scores divided by other numbers than √d_k."""
    encode = real().tokenizer.encode
    pages_ = np.stack([encode(text)[: measures.PAGE + 1] for text in (measures.STORY, REPORT, texts()["manual"])])
    rows = []
    for factor in DIVISORS:
        attend = measures.forgetful(temperature=factor)
        rows.append(measures.losses(real().model, pages_, attend=attend)[:, measures.SEEN :].mean(axis=-1))
        print(factor, np.exp(rows[-1]).round(2), flush=True)
    return {"divisors": np.array(DIVISORS), "divisors_lost": np.array(rows)}


LENS = (
    "The capital of France is the city of",
    "The capital of Italy is the city of",
    "The opposite of hot is",
    "Monday, Tuesday, Wednesday,",
    "The largest planet of the solar system is called",
    "Varn, Ilse, gull, donkey, brass. Varn, Ilse, gull,",
)


def lens() -> Part:
    """Find the likeliest next tokens as if each layer were the last, and the place and log p of the final answer."""
    p = real()
    found: Part = {"lens_texts": np.array(LENS)}
    for n, text in enumerate(LENS):
        reading = lens_module.read(p, text)
        found |= {f"lens_{name}_{n}": values for name, values in reading._asdict().items() if name != "text"}
        print(text, reading.words[-1, 0], reading.ranks.tolist(), flush=True)
    return found


STEPS, SEEDS, NEAREST = 800, (0, 1, 2), 9
KINDS = ("rotary", "learned", "sinusoidal")


def positions() -> Part:
    """Train two layers on repeats with each kind of positions: do they copy, and with which heads?"""
    found: Part = {"positions_kinds": np.array(KINDS)}
    right, pair, profiles, without = [], [], [], []
    test = grow.repeats(np.random.default_rng(99), 128)
    for kind in KINDS:
        films = [grow.grow(2, STEPS, kind, seed=seed, progress=False, every=STEPS // 20) for seed in SEEDS]
        right.append([[m.right for m in film.moments] for film in films])
        pair.append([[(m.previous[0].max(), m.induction[1].max()) for m in film.moments] for film in films])
        row, out = [], []
        for film in films:
            maps = grow.measured(film.model, *test)[2][:, 0, :, 16:]  # layer 0: (B, h, queries, T)
            near = [np.diagonal(maps, 16 - back, -2, -1).mean(axis=(0, 2)) for back in range(NEAREST)]
            row.append(np.array(near).T)  # (h, distances)
            out.append([grow.copied(film.model, knock_out={0: [head]}) for head in range(2)])
        profiles.append(row)
        without.append(out)
        print(
            kind,
            np.round([r[-1] for r in right[-1]], 2),
            np.round([q[-1] for q in pair[-1]], 2).tolist(),
            np.round(out, 2).tolist(),
            np.round(row, 2).tolist(),
            flush=True,
        )
        found["positions_steps"] = np.array([m.step for m in films[0].moments])
    return found | {
        "positions_right": np.array(right),  # (kinds, seeds, moments)
        "positions_pair": np.array(pair),  # (kinds, seeds, moments, [previous of layer 0, induction of layer 1])
        "positions_near": np.array(profiles),  # (kinds, seeds, heads, distances)
        "positions_without": np.array(without),  # (kinds, seeds, heads of layer 0)
    }
