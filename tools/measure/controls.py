"""Measure the controls of notebook 09: what would give the same picture, and does the finding hold on another page?

Parts of `python -m tools.measure.real_model`.
"""

from typing import Any

import numpy as np

from lesson_utils.lessons.real_model import measures, paths, recall
from lesson_utils.maths.checks import Array, Ids
from tools.measure.circuits import DRAWS, PAGE_LENGTH, SKIPPED, TOKENS, hiding
from tools.measure.smollm import Part, real, repeated, saved, story
from tools.measure.texts import REPORT, texts

OTHER_TOKENS = (31, 32)  # seeds of two more sets of random tokens
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
    return {"induction_again": np.array(found).astype(np.float32)}


def moved() -> Part:
    """Move what 16.0 has written by one place, in the keys of the five heads alone: where do they look then?

    Nothing is taken away here, so that the keys are as long as ever, and only say something else.
    """
    rows = []
    for by in MOVED:
        done = [
            paths.run_patched(
                real().model,
                repeated(seed=seed)[:, :-1],
                paths.FIRST,
                "keys",
                paths.READERS,
                inputs=paths.moved_inputs(by),
            ).maps
            for seed in TOKENS
        ]
        weights = [[paths.look_near(maps, measures.COPIED, off).mean(axis=0) for off in NEAR_ANSWER] for maps in done]
        rows.append(weights)
        print(by, np.mean(weights, axis=(0, 2)).round(2), flush=True)
    return {"moved_weights": np.array(rows)}  # (moved, tokens, places from the answer, readers)


def passages() -> Part:
    """Cut the same wire while the model reads a passage of text twice: nats of both copies, and the heads' scores."""
    rows, scores = [], []
    for page in pages(PASSAGE - 1):
        twice = np.tile(page, 2)
        ids: Any = twice[:, :-1]
        first = measures.losses(real().model, twice)[:, : PASSAGE - 1].mean()
        row = [float(first)]
        for inputs in (paths.moved_inputs(0), paths.patched_inputs):
            done = paths.run_patched(real().model, ids, paths.FIRST, "keys", paths.READERS, inputs)
            row.append(float(measures.of_next(done.logits, twice)[:, PASSAGE - 1 :].mean()))
        rows.append(row)
        scores.append(measures.induction_score(done.maps, PASSAGE)[0])
        print(np.round(row, 2), np.round(scores[-1], 3), flush=True)
    return {
        "passages": np.array(rows),  # (texts, [first copy, second copy, second copy with the wire cut])
        "passages_scores": np.array(scores),  # (texts, readers), with the wire cut
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


KEPT = ((), (0,), (10,), (30,), (10, 20, 30, 40))


def kept() -> Part:
    """Measure the perplexity of a story with a window of 64 keys, and with one or more old tokens kept."""
    ids, T = pages(measures.PAGE)[0], measures.PAGE
    window = np.tri(T, dtype=bool) & ~np.tri(T, k=-64, dtype=bool)
    found = []
    for tokens in KEPT:
        mask = window | (np.isin(np.arange(T), tokens) & np.tri(T, dtype=bool))
        found.append(measures.perplexity(measures.losses(real().model, ids, mask=mask)[0, measures.SEEN :]))
        print(tokens, round(found[-1], 1), flush=True)
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


def pruning() -> Part:
    """Leave out the heads that matter least to one of three pages, or heads at random; four pages and copying judge."""
    model, rng = real().model, np.random.default_rng(4)
    own, *others = pages(PAGE_LENGTH)
    judges = [own, story(start=PAGE_LENGTH, length=PAGE_LENGTH), *others]
    orders = [np.argsort(worth, axis=None) for worth in (saved()["worth"], *saved()["worth_pages"])]
    orders += [rng.permutation(orders[0]) for _ in range(DRAWS)]

    def judged(out: Any) -> list[float]:
        on = [float(measures.losses(model, ids, knock_out=out)[:, SKIPPED:].mean()) for ids in judges]
        return [*on, measures.copying(model, repeated(1), knock_out=out)[1]]

    found: Part = {"pruned_pages": np.array(JUDGES), "pruned_count": np.array(OUT), "pruned_whole": judged(None)}
    rows = [judged(measures.heads_of(one[:OUT], 9)) for one in orders]
    print(np.round(rows, 2).tolist(), flush=True)
    return found | {"pruned": np.array(rows)}  # ([three choosers, eight draws], [four pages, copying])
