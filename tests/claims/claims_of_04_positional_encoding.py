"""What the text of notebook 04 claims of its cells. Each part runs behind the cell that it names."""

# %% set-shuffle
as_written(the_same=np.abs(after - before[order]).max() < 1e-12)

# %% set-whole
as_written(blind=gaps[0] < 1e-12, sees=gaps[1] > 0.1)

# %% set-added
as_written(all_change=np.abs(swapped - with_P[order]).max(axis=1).min() > 0.1)

# %% invent-ideas
failed = [[name for name, good in meets.items() if not good] for meets in lab.verdicts().values()]
as_written(one_each=[len(names) for names in failed] == [1, 1, 1, 0], digits_jump=failed[2] == ["smooth"])

# %% digits-drawn
n = np.arange(64)
gray = (n ^ n >> 1)[:, None] // 2 ** np.arange(6) % 2  # neighbours differ in one digit
as_written(gray_code=lab.largest_step(gray.astype(float)) <= 0.5, different=len(np.unique(gray, axis=0)) == 64)

# %% add-measured
as_written(same=np.allclose(beside, added), far=np.abs(cosines).max() < 0.2)

# %% bug-symptoms
as_written(mixed=copies > 0.1, blind=reordered < 1e-12)

# %% bug-mended
as_written(alike=copies < 1e-12, sees=reordered > 0.1)

# %% two-maps
as_written(
    offset_only=lab.diagonal_spread(rows @ rows.T) < 1e-9,
    place_matters=lab.diagonal_spread((rows @ U) @ (rows @ W).T) > 1,
)

# %% rotation-check
as_written(one_matrix=error < 1e-12)

# %% shift-used
as_written(
    five_back=(five_back[5:].argmax(axis=1) == np.arange(len(rows) - 5)).all(),
    small=weights[20].max() < 0.15,
)

# %% rotate-mine
as_written("peaks again every 6 or 7 positions" in lab.score_by_distance(rotate).alt)

# %% recall-result
ends = {kind: lab.stretches(curve, lab.BACK) for kind, curve in correct.items()}
good = np.flatnonzero(correct["rotary"] > 0.9)
as_written(
    STEPS == 400,
    learnt=min(ends[kind].trained for kind in ("sinusoidal", "learned", "rotary")) > 0.95,
    lost=max(*ends["sinusoidal"][1:], *ends["learned"][1:]) < 0.6,
    not_learnt=max(ends["alibi"].trained, ends["none"].trained) < 0.5,
    ten_positions=40 <= good.max() <= 44,
    four_of_five=0.7 < correct["rotary"][48] < 0.85,
    comes_back=correct["sinusoidal"][37:40].max() > 1.5 * max(correct["sinusoidal"][34:36].min(), 0.1),
    all_fail_in_the_end=max(end.to_2 for end in ends.values()) < 0.3,
)

# %% turns-lab
offsets, _ = lab._weights_by_offset(recallers, longer)
shares = {kind: lab.share_on_turns(weights) for kind, weights in offsets.items()}
beyond = {kind: float(share[L:].mean()) for kind, (share, _) in shares.items()}
chance = float(shares["rotary"][1][L:].mean())
largest = {kind: weights.argmax(axis=1) for kind, weights in offsets.items()}
as_written(
    on_the_lines=beyond["rotary"] > 0.9 and 0.55 < beyond["sinusoidal"] < 0.65,
    learned_scatters=beyond["learned"] < chance + 0.1,
    five_back_inside=min((largest[kind][6:L] == lab.BACK).mean() for kind in largest) > 0.8,
    rebound=(largest["sinusoidal"][37:40] == lab.BACK).all(),
    at_60=largest["rotary"][60] in (49, 55),
)

# %% held-hands
stopped = [lab.held(recallers["rotary"], few, pairs, L - 1)[48:].mean() for pairs in ((), (0,), (1,), (2,), (3,))]
as_written(pair_1=stopped[2] > 0.99, others=max(stopped[:2] + stopped[3:]) < 0.35)

# %% held-angles
pointed = {back: lab.held(recallers["rotary"], few, (1,), L - 1, to=back)[48:].mean() for back in (5, 20, 37, 50)}
pair_0 = lab.held(recallers["rotary"], few, (0,), L - 1, to=28)[48:].mean()
as_written(another_hand_may_do=pair_0 > 0.95)
as_written(newness_is_not_it=pointed[37] > 0.95 > 0.6 > pointed[5], direction=pointed[20] > 0.95 > 0.6 > pointed[50])

# %% rotate-used
as_written(STEPS == 400, as_before=mine.mean() > 0.99, nonsense=other.mean() < 0.2)

# %% starts-held
for seed, num_heads in ((1, 4), (2, 4), (0, 2), (1, 2), (2, 2)):
    (free, fastest, slow), (at_5, at_20, at_37, at_50) = other_rotary(seed, num_heads)
    as_written(
        same_hand=slow > 0.99,
        fastest_helps=fastest > free,
        same_story=num_heads == 2 or (min(at_20, at_37) > 0.95 and at_50 < at_5 < 0.7),
    )
two = [other_rotary(seed, 2)[0][0] for seed in (0, 1, 2)]
as_written(two_heads_fail_less=min(two) > 0.5, by_seed=np.ptp(two) > 0.3)

# %% recall-window
as_written(
    STEPS == 400,
    mended=min(lab.stretches(windowed["rotary"], lab.BACK)) > 0.95,
    only=max(*lab.stretches(windowed["sinusoidal"])[1:], *lab.stretches(windowed["learned"])[1:]) < 0.6,
    eight_times=far[lab.BACK :].min() > 0.9,
)

# %% text-result
text_ends = {kind: lab.stretches(curve) for kind, curve in bits.items()}
far = {kind: end.to_2 for kind, end in text_ends.items()}
narrow, wide = lab.stretches(windows[8]), lab.stretches(windows[L])
as_written(
    TEXT_STEPS == 400,
    none_beats=far["none"] < min(far["sinusoidal"], far["learned"], far["rotary"]),
    alibi_beats_none=far["alibi"] < far["none"],
    rotary_best=min(text_ends, key=lambda kind: text_ends[kind].trained) == "rotary",
    steady=far["alibi"] < text_ends["alibi"].trained + 0.1,
    window_beats_alibi=all(a < b - 0.1 for a, b in zip(wide, text_ends["alibi"], strict=True)),
    hundredths=max(a - b for a, b in zip(narrow, wide, strict=True)) < 0.1,
)

# %% text-longer
long_ends = {kind: lab.stretches(longer_trained(kind)) for kind in lab.KINDS}
as_written(
    better_within=all(long_ends[kind].trained < text_ends[kind].trained for kind in lab.KINDS),
    tables_worse=all(
        min(np.subtract(long_ends[kind], text_ends[kind])[1:]) > 0.4 for kind in ("sinusoidal", "learned")
    ),
    rotary_worse=long_ends["rotary"].to_2 > text_ends["rotary"].to_2 + 0.3,
    none_rises=[round(ends["none"].to_2 - ends["none"].trained, 1) for ends in (text_ends, long_ends)] == [0.1, 0.3],
    alibi_holds=long_ends["alibi"].to_2 < long_ends["alibi"].trained + 0.1,
)

# %% stretch-lab
means = {
    key: (curve[L // 4 : L].mean(), curve[L : 2 * L].mean(), curve[2 * L :].mean())
    for key, curve in lab.stretch_curves(model, pages, L).items()
}
nothing, squeezed, slower = means["larger base", 1], means["interpolation", 2], means["larger base", 4]
as_written(
    window_is_best=all((np.array(means["window", 1]) <= np.array(mean) + 1e-9).all() for mean in means.values()),
    a_whole_bit=0.9 < squeezed[0] - nothing[0] < 1.2 and abs(squeezed[1] - squeezed[0]) < 0.1,
    larger_base=0.03 < slower[0] - nothing[0] < 0.07 and 3.4 < nothing[1] < 3.5 and 2.6 < slower[1] < 2.7,
    further_out=slower[2] > nothing[2] - 0.5,
)

# %% similarity-lab
alike = lab.similarity(8, 10, 64)[0]
as_written(swings=round(alike[44], 2) == 0.54 and alike.min() < -0.5)
