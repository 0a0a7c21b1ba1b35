"""What the text of notebook 04 claims of its cells. Each part runs behind the cell that it names."""

# %% set-shuffle
as_written(the_same=np.abs(after - before[order]).max() < 1e-12)

# %% set-added
as_written(all_change=np.abs(swapped - with_P[order]).max(axis=1).min() > 0.1)

# %% invent-ideas
failed = [[name for name, good in meets.items() if not good] for meets in lab.verdicts().values()]
as_written(one_each=[len(names) for names in failed] == [1, 1, 1, 0], digits_jump=failed[2] == ["smooth"])

# %% table-lab
as_written(nine=(positions.wavelengths(64) <= 64).sum() == 9)

# %% two-maps
as_written(
    offset_only=lab.diagonal_spread(PE @ PE.T) < 1e-9,
    place_matters=lab.diagonal_spread(after) > 1,
    not_monotone=(np.diff((PE @ PE[0]) / 32) > 0).any(),
)

# %% rotation-check
as_written(
    one_matrix=error < 1e-12,
    five_back=(five_back[5:].argmax(axis=1) == np.arange(len(PE) - 5)).all(),
    small=weights[20].max() < 0.15,
)

# %% rotate-mine
as_written("peaks again every 6 or 7 positions" in lab.score_by_distance(rotate).alt)

# %% recall-result
ends = {kind: lab.stretches(curve, lab.BACK) for kind, curve in correct.items()}
good = np.flatnonzero(correct["rotary"] > 0.9)
as_written(
    STEPS == 400,
    learnt=min(end.trained for end in ends.values()) > 0.95,
    lost=max(*ends["sinusoidal"][1:], *ends["learned"][1:]) < 0.6,
    ten_positions=40 <= good.max() <= 44,
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
    at_60_eight_turns=largest["rotary"][60] == 55 == round(lab.BACK + 8 * lab.TURN),
    on_the_lines=beyond["rotary"] > 0.9 and 0.55 < beyond["sinusoidal"] < 0.65,
    learned_scatters=beyond["learned"] < chance + 0.1,
    five_back_inside=min((largest[kind][6:L] == lab.BACK).mean() for kind in largest) > 0.8,
    rebound=(largest["sinusoidal"][37:40] == lab.BACK).all(),
    at_60=largest["rotary"][60] in (49, 55),
)
batch = lab.recall(np.random.default_rng(7), 512, 2 * L, 43)  # the letter 43 back counts as right
wrong_turn = lab.by_position(recallers["rotary"], batch).correct[43:49].mean()
as_written(
    STEPS == 400,
    mistakes_a_turn=wrong_turn > 0.2,
    steps_down=correct["rotary"][43:49].min() > 0.75 and correct["rotary"][49:].max() < 0.45,
)

# %% held-hands
at_31, at_27 = ({pair: shares[n] for pair, *shares in rows} for n in (0, 1))
pair_0 = np.cos(31 - 5), np.cos(27 - 5)  # where pair 0 points there, as if it pointed straight at five back
as_written(
    STEPS == 400,
    pair_1=at_31.pop(1) > 0.99,
    others=max(at_31.values()) < 0.35,
    pair_0_at_27=at_27[0] > 0.97,
    away=pair_0[1] < -0.9 and pair_0[0] > 0,
)

# %% hand-drawn
parts = lab._parts(recallers["rotary"], longer, L)
hand = (parts[1] * np.exp(1j * 0.1 * np.arange(2 * L))).real  # base 10,000 and four pairs: 0.1 radians a position
alt = lab.hand_drawn(recallers["rotary"], longer).alt
as_written(
    STEPS == 400,
    lowers_up_to_25=hand.argmin() == 25,
    comes_up=hand[56] > hand[5] > hand[31],
    peaks_of_whole_turns={49, 55, 62} <= set(lab.on_turns(2 * L)),
    far_keys_score_more="Peaks that score more than 5 back: 49, 55, 62." in alt,
    stopped_finds="the highest score is 5 back" in alt,
)

# %% slowed
cured = {row[0]: row[1:] for row in rows}
as_written(
    STEPS == 400,
    by_2=min(cured["[1] by 2"][:2]) > 0.99,
    by_4=0.95 < min(cured["[1] by 4"][:3]) < 0.99,
    by_parts=min(cured["[1, 2, 3] by 2"][:2]) > 0.99,
    not_five_back=max(*cured["[0, 1, 2, 3] by 2"][:3], *cured["[0] by 2"][:3]) < 0.12,
    ten_back=min(cured["[0, 1, 2, 3] by 2"][3], cured["[0] by 2"][3]) > 0.8,
)

halves = lab.by_position(recallers["rotary"], few, rotate=partial(positions.rotary, pairs="halves")).correct
as_written(STEPS == 400, wrong_pairs=halves[lab.BACK : L].mean() < 0.2)

# %% starts-held
of_ten = {row[0]: row[1:] for row in rows}
as_written(
    STEPS == 400,
    all_fail=of_ten["nothing"][2] < 0.3,
    all_cured=min(of_ten["pair 1 at half its rate"][1], of_ten["pair 1 stops at 31"][1]) > 0.98,
    pair_0_helps_little=of_ten["pair 0 stops at 31"][2] < 0.7,
    old_angle_fails=of_ten["far keys: pair 1 as at 5, old"][2] < 0.7,
    old_angle_works=of_ten["far keys: pair 1 as at 20, old"][1] > 0.98,
    new_angle_works=of_ten["far keys: pair 1 as at 37, new"][0] > 0.9,
    new_angle_fails=of_ten["far keys: pair 1 as at 50, new"][2] < 0.2,
)

# %% offsets
at = by_offset()
plain, stops, half = (np.array([at[back][:, n, 1] for back in at]) for n in (0, 3, 2))  # (12, 3)
within, further = (np.array([at[back][:, n, 0] for back in at]) for n in (2, 8))
as_written(
    STEPS == 400,
    stopping_always=stops.min() > 0.97,
    near_fails=plain[:5].max() < 0.3,
    near_is_cured=min(half[:5].min(), within[:5].min()) > 0.95,
    far_is_harmed=within[5:].max() < 0.7 and half[5:].max() < 0.7,
    most_hold=(plain[5:] > 0.8).sum() >= 16,
    one_turn_further=further[6].min() > 0.9,
)
base_2, base_4 = (million(times)[:, :, 1] for times in (2, 4))
as_written(
    STEPS == 400, holds=base_2[:, 0].min() > 0.99, fails=base_4[:, 0].max() < 0.6, mended=base_4[:, [2, 3]].min() > 0.99
)

# %% recall-window
as_written(
    STEPS == 400,
    window_for_rotary=rotary[0] < 0.3 and rotary[1] > 0.99,
    not_for_the_table=from_rows(0).max() < 0.4,
    rows_for_the_table=from_rows(L)[:, 0].min() > 0.95,
    eight_times=far[lab.BACK :].min() > 0.9,
    offset=min(shares := lab.share_of_offset(recallers["sinusoidal"], L)) > 0.435 and max(shares) < 0.765,
    untrained=min(at_first := lab.share_of_offset(recaller("sinusoidal"), L)) > 0.045 and max(at_first) < 0.205,
)

# %% text-result
text_ends = {kind: lab.stretches(curve) for kind, curve in bits.items()}
far = {kind: end.to_2 for kind, end in text_ends.items()}
narrow, wide = lab.stretches(windows[8]), lab.stretches(windows[L])
as_written(
    none_beats=far["none"] < min(far["sinusoidal"], far["learned"], far["rotary"]),
    alibi_beats_none=far["alibi"] < far["none"],
    rotary_best=min(text_ends, key=lambda kind: text_ends[kind].trained) == "rotary",
    steady=far["alibi"] < text_ends["alibi"].trained + 0.1,
    window_beats_alibi=all(a < b - 0.1 for a, b in zip(wide, text_ends["alibi"], strict=True)),
    hundredths=max(a - b for a, b in zip(narrow, wide, strict=True)) < 0.1,
)
