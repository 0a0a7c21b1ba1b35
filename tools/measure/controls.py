"""Measure the controls of notebook 09: what would give the same picture, and does the finding hold on another page?

Parts of `python -m tools.measure.real_model`.
"""

from typing import Any

import numpy as np

from lesson_utils.lessons.real_model import direct, measures, paths, recall
from lesson_utils.maths import models
from lesson_utils.maths.attention import scaled_dot_product_attention
from lesson_utils.maths.checks import Array, Ids, Mask
from tools.measure.circuits import DRAWS, LENGTHS, PAGE_LENGTH, SKIPPED, TOKENS, hiding
from tools.measure.smollm import Part, real, repeated, saved, story
from tools.measure.texts import REPORT, texts

OTHER_TOKENS = (31, 32, *range(51, 59))  # seeds of ten more sets of random tokens
MOVED = (0, 1, -1)  # places
NEAR_ANSWER = (-1, 0, 1)  # places from the answer
PASSAGE = 60  # tokens


def pages(length: int) -> list[Ids]:
    """Return the first tokens of a story, a report and a manual, and the one that follows them."""
    encode = real().tokenizer.encode
    return [encode(text)[None, : length + 1] for text in (measures.STORY, REPORT, texts()["manual"])]


def induction_again() -> Part:
    """Measure the induction scores of all heads on other random tokens: (tokens, layers, heads)."""
    found = [
        measures.induction_score(measures.all_maps(real().model, repeated(seed=seed)), measures.COPIED).mean(axis=0)
        for seed in OTHER_TOKENS
    ]
    print([[f"{n // 9}.{n % 9}" for n in np.flatnonzero(scores > 0.3)] for scores in found], flush=True)
    return {"induction_again": np.array(found).astype(np.float16)}


def moved() -> Part:
    """Move what 16.0 has written by one place, in the keys of the five heads alone: where do they look then?

    Nothing is taken away here, so that the keys are as long as ever, and only say something else. As a control, what
    another previous-token head has written is moved.
    """

    def weights(head: tuple[int, int], by: int) -> list[list[Array]]:
        inputs = paths.moved_inputs(by)
        done = [
            paths.run_patched(real().model, repeated(seed=seed)[:, :-1], head, "keys", paths.READERS, inputs).maps
            for seed in TOKENS
        ]
        near = [[paths.look_near(maps, measures.COPIED, off).mean(axis=0) for off in NEAR_ANSWER] for maps in done]
        print(head, by, np.mean(near, axis=(0, 2)).round(2), flush=True)
        return near

    second = saved()["path_heads"][1]
    return {
        "moved_weights": np.array([weights(paths.FIRST, by) for by in MOVED]),  # (moved, tokens, places, readers)
        "moved_other": np.array(weights((int(second[0]), int(second[1])), 1)),  # (tokens, places, readers)
    }


def passages() -> Part:
    """Cut the same wire while the model reads a passage of text twice: nats of both copies, and the heads' scores.

    Controls: without all nine induction heads; and after the same words in another order, for what words alone help.
    """
    model, nine, rng = real().model, measures.strongest(saved()["scores_real"][3], 9), np.random.default_rng(0)
    rows, scores = [], []

    def second(logits: Array, twice: Ids, length: int) -> float:
        return float(measures.of_next(logits, twice)[:, length - 1 :].mean())

    for once in (repeated()[:, : measures.COPIED], *pages(PASSAGE - 1)):
        length, twice = once.shape[1], np.tile(once, 2)
        shuffled = [np.concatenate([rng.permuted(once, axis=1), once], axis=1) for _ in range(3)]
        row = [float(measures.losses(model, twice)[:, : length - 1].mean())]
        for inputs in (paths.moved_inputs(0), paths.patched_inputs):
            done = paths.run_patched(model, twice[:, :-1], paths.FIRST, "keys", paths.READERS, inputs)
            row.append(second(done.logits, twice, length))
        row.append(second(measures.run(model, twice[:, :-1], knock_out=nine)[0], twice, length))
        row.append(float(np.mean([second(model.forward(ids[:, :-1])[0], ids, length) for ids in shuffled])))
        rows.append(row)
        scores.append(measures.induction_score(done.maps, length).mean(axis=0))
        print(np.round(row, 2), np.round(scores[-1], 3), flush=True)
    return {  # (random tokens and three texts, …)
        "passages": np.array(
            rows
        ),  # first copy, second copy, it with the wire cut, without nine heads, shuffled before
        "passages_scores": np.array(scores),  # of the readers, with the wire cut
    }


def whose_untold() -> Part:
    """Measure a person's own surname and another's where the text has told neither: (places away, people, 2)."""
    people = recall.PEOPLE
    found = [
        [
            [recall.surname_nats(real(), f"{who.split()[0]} {other.split()[1]}", told=False) for other in (who, away)]
            for who, away in zip(people, [*people[by:], *people[:by]], strict=True)
        ]
        for by in recall.AWAY
    ]
    print(np.diff(found).mean(axis=(1, 2)).round(2), flush=True)
    return {"two_untold": np.array(found)}


def writes() -> Part:
    """Measure what each head writes of ten surnames' first pieces, where it looks, and what is lost when it is off.

    In logits that a surname is ahead of the nine others. A head is off by zeros, and by its mean.
    """
    model, pieces = real().model, direct.first_pieces(real())
    norm = model.stack.norm
    assert norm is not None
    found: dict[str, list[Any]] = {name: [] for name in ("direct", "rest", "ahead", "looks", "cost")}
    for who, piece in zip(recall.PEOPLE, pieces, strict=True):
        ids, (own, others) = real().tokenizer.encode(recall.prompt(who))[None], direct.rows(real(), who)

        def ahead(part: Array, stream: Array, rows: Any = (own, others)) -> Array:
            return direct.ahead(part, stream, norm.gamma.value, *rows)

        whole = direct.parts(model, ids)
        found["direct"].append(ahead(whole.heads, whole.stream))
        found["rest"].append(ahead(whole.others, whole.stream))
        found["ahead"].append(ahead(whole.stream, whole.stream))
        told = int(np.flatnonzero(ids[0] == piece)[0])
        found["looks"].append(whole.maps[..., [told, -1]])
        for by in ("zero", "mean"):
            left = [
                ahead(x[0, -1], x[0, -1]) for *_, x in measures.streams_without_each_head(model, ids, by, direct.FROM)
            ]
            found["cost"].append(found["ahead"][-1] - np.reshape(left, (-1, model.config.num_heads)))
        print(who, round(float(found["ahead"][-1]), 1), flush=True)
    return {
        "writes_direct": np.array(found["direct"]).astype(np.float16),  # (people, layers, heads)
        "writes_rest": np.array(found["rest"]).astype(np.float16),  # (people, [embedding, each feed-forward network])
        "writes_ahead": np.array(found["ahead"]).astype(np.float32),  # (people,)
        "writes_looks": np.array(found["looks"]).astype(np.float16),  # (…, heads, [at the surname, at itself])
        "writes_cost": np.array(found["cost"]).reshape(len(pieces), 2, -1, 9).swapaxes(0, 1).astype(np.float16),
    }  # the last is ([zero, mean], people, layers from 16 on, heads)


def writes_made_up() -> Part:
    """Measure what all parts write of ten surnames without the head that writes most, less what they write with it.

    The scale of the final norm is held fixed. What is lost in all is then more than `writes` finds: the norm's part.
    """
    model, changes = real().model, []
    norm = model.stack.norm
    assert norm is not None
    layer, head = direct.shown()[0]
    for who in recall.PEOPLE:
        ids, rows = real().tokenizer.encode(recall.prompt(who))[None], direct.rows(real(), who)
        found = [direct.parts(model, ids)]
        with models.trying(model, {"decoder": {layer: [head]}}):
            found.append(direct.parts(model, ids))
        scale = found[0].stream  # of the whole model, for both
        pushed = [[direct.ahead(x, scale, norm.gamma.value, *rows) for x in (one.heads, one.others)] for one in found]
        changes.append([now - before for before, now in zip(*pushed, strict=True)])
    heads, others = (np.array(part) for part in zip(*changes, strict=True))
    print((layer, head), heads.sum(axis=(1, 2)).mean().round(2), others.sum(axis=1).mean().round(2), flush=True)
    return {
        "writes_made_up": heads.astype(np.float16),  # (people, layers, heads), the head itself among them
        "writes_made_up_rest": others.astype(np.float16),  # (people, [embedding, each feed-forward network])
    }


COPIED_TOKENS, IN_A_TEXT = 2000, 100


def writes_copies() -> Part:
    """Measure how many of 2,000 tokens each head's W_V W_O copies, read from the table and from random texts."""
    model = real().model
    ids = np.random.default_rng(0).choice(np.arange(100, len(real().tokenizer)), COPIED_TOKENS, replace=False)
    table, norm = model.tokens.embedding.table.value[ids], model.stack.norm
    assert norm is not None
    streams = direct.in_text(model, ids.reshape(-1, IN_A_TEXT))
    found = [
        [direct.copying_shares(block, x, norm.gamma.value, table) for x in (table, stream)]
        for block, stream in zip(model.stack.blocks, streams, strict=True)
    ]
    shares, places = np.array(found).transpose(2, 1, 0, 3)  # from (layers, [table, text], …, heads)
    return {
        "writes_copies": shares.astype(np.float16),  # ([table, text], layers, heads)
        "writes_places": places.astype(np.float16),  # the median place among 2,000, of the same shape
    }


def sink_again() -> Part:
    """Hide the first token as in `circuits.first_token` on three texts; and let the middle one see a few before it."""
    half, rows, counts = measures.PAGE // 2, [], []

    def lost(ids: Ids, mask: Array) -> float:
        return float(measures.losses(real().model, ids, mask=mask)[0, half + 1 :].mean())

    def middle_sees(T: int, count: int) -> Array:
        mask = hiding(T, 1, half)
        mask[half, : half + 1 - count] = False
        return mask

    for ids in pages(measures.PAGE):
        T = ids.shape[1] - 1
        masks = np.tri(T, dtype=bool), hiding(T, 0), hiding(T, 1, half), middle_sees(T, 1), middle_sees(T, 2)
        rows.append([lost(ids, mask) for mask in masks])
        first = measures.all_maps(real().model, ids[:, :-1])[0, :, :, 3:, 0].mean(axis=-1)
        counts.append(int((first > 0.5).sum()))
        print(np.round(rows[-1], 2), counts, flush=True)
    found = {"sink_counts": np.array(counts)}  # heads that rest on the first token, of each text
    return found | {
        "sink_again": np.array(rows)
    }  # (texts, [as it is, from the start, from the middle, one sees 1, sees 2])


SINK_PLACES, SEES = (32, 96, 150), (1, 2, 3)


def sink_places() -> Part:
    """Hide the first token from one place on; a token there sees only itself, or one or two before it, too.

    On three texts and at three places: (texts, places, [nobody sees only itself, 1, 2, 3 tokens are seen]), in nats
    more than the text as it is.
    """
    rows = []
    for ids in pages(measures.PAGE):
        T = ids.shape[1] - 1
        for at in SINK_PLACES:
            masks = [np.tri(T, dtype=bool), *(hiding(T, 1, at) for _ in (0, *SEES))]
            for mask, count in zip(masks[2:], SEES, strict=True):
                mask[at, : at + 1 - count] = False
            lost = [float(measures.losses(real().model, ids, mask=mask)[0, at + 1 :].mean()) for mask in masks]
            rows.append(np.subtract(lost[1:], lost[0]))
            print(at, rows[-1].round(2), flush=True)
    return {"sink_places": np.array(rows).reshape(-1, len(SINK_PLACES), 1 + len(SEES))}


def first_by_text() -> Part:
    """Measure the share of the first token by length, of four texts: (texts, lengths)."""
    four = (measures.STORY, REPORT, texts()["manual"], texts()["story"])
    shares = [
        [
            float(measures.all_maps(real().model, real().tokenizer.encode(text)[None, :length])[0, :, :, 16:, 0].mean())
            for length in LENGTHS
        ]
        for text in four
    ]
    print(np.round(shares, 2).tolist(), flush=True)
    return {"first_by_text": np.array(shares)}


def rounding() -> Part:
    """Measure the stream after each layer in float32, and how far attention in float64 is from it: (layers + 1, 2)."""
    ids = story(length=64)[:, :-1]
    with models.trying(real().model, None, "zero", in_float64):
        exact = measures.streams(real().model, ids)
    rows = [
        (np.abs(x - y).max(), np.abs(x).max()) for x, y in zip(measures.streams(real().model, ids), exact, strict=True)
    ]
    print([(f"{off:.0e}", f"{size:.0f}") for off, size in rows], flush=True)
    return {"rounding": np.array(rows, np.float64)}  # [largest difference, largest number]


def in_float64(Q: Array, K: Array, V: Array, mask: Mask | None = None) -> tuple[Array, Array]:
    """Attend in float64: from the first layer on, the stream is float64, too."""
    Q, K, V = (x.astype(np.float64) for x in (Q, K, V))
    return scaled_dot_product_attention(Q, K, V, mask)


KEPT = ((), (0,), (1,), (10,), (30,), (10, 20, 30, 40))


def kept() -> Part:
    """Measure the perplexity of three texts with a window of 64 keys, and with one or more old tokens kept."""
    T = measures.PAGE
    window = np.tri(T, dtype=bool) & ~np.tri(T, k=-64, dtype=bool)
    found = []
    for tokens in KEPT:
        mask = window | (np.isin(np.arange(T), tokens) & np.tri(T, dtype=bool))
        lost = (measures.losses(real().model, ids, mask=mask)[0, measures.SEEN :] for ids in pages(T))
        found.append([measures.perplexity(nats) for nats in lost])
        print(tokens, np.round(found[-1], 1), flush=True)
    return {"kept_tokens": np.array([" ".join(map(str, tokens)) for tokens in KEPT]), "kept": np.array(found)}


# --- The least important heads ----------------------------------------------------------------------------------------

JUDGES = ("story", "its next\npage", "report", "manual")
CHOOSERS = (0, 2, 3)  # these pages choose, too
OUT = 27


def worth_pages() -> Part:
    """Measure what each head is worth, switched off alone, on a report and on a manual: (2, layers, heads)."""
    found = []
    for ids in pages(PAGE_LENGTH)[1:]:
        whole = measures.losses(real().model, ids)[:, SKIPPED:].mean()
        found.append(measures.without_each_head(real().model, ids, SKIPPED) - whole)
    return {"worth_pages": np.array(found).astype(np.float32)}


def worth_by_mean() -> Part:
    """Measure what each head is worth to three pages, if its mean takes its place: (pages, layers, heads)."""
    found = []
    for ids in pages(PAGE_LENGTH):
        whole = measures.losses(real().model, ids)[:, SKIPPED:].mean()
        found.append(measures.without_each_head(real().model, ids, SKIPPED, by="mean") - whole)
    return {"worth_by_mean": np.array(found).astype(np.float32)}


def pruning() -> Part:
    """Leave out the heads that matter least to one of three pages, or heads at random; four pages and copying judge.

    By zeros; and by means, with the heads that matter least by means.
    """
    return {
        "pruned_pages": np.array(JUDGES),
        "pruned_count": np.array(OUT),
        "pruned_whole": np.array(_judged(None, "zero")),
        "pruned": _pruned([saved()["worth"], *saved()["worth_pages"]], "zero"),
        "pruned_by_mean": _pruned([*saved()["worth_by_mean"]], "mean"),
    }


def _pruned(worths: list[Array], by: str) -> Array:
    """Return what is left without the least important heads: ([three choosers, eight draws], [four pages, copying])."""
    rng, orders = np.random.default_rng(4), [np.argsort(worth, axis=None) for worth in worths]
    orders += [rng.permutation(orders[0]) for _ in range(DRAWS)]
    rows = [_judged(measures.heads_of(one[:OUT], 9), by) for one in orders]
    print(by, np.round(rows, 2).tolist(), flush=True)
    return np.array(rows)


def _judged(out: Any, by: str) -> list[float]:
    model, (own, *others) = real().model, pages(PAGE_LENGTH)
    judges = [own, story(start=PAGE_LENGTH, length=PAGE_LENGTH), *others]
    on = [float(measures.losses(model, ids, knock_out=out, by=by)[:, SKIPPED:].mean()) for ids in judges]
    return [*on, measures.copying(model, repeated(1), knock_out=out, by=by)[1]]
