"""What the text of notebook 04 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.positional_encoding.lengths import stretches

# %% set-shuffle
as_written(the_same=np.abs(after - before[order]).max() < 1e-12)

# %% set-whole
as_written(blind=gaps[0] < 1e-12, sees=gaps[1] > 0.1)

# %% set-added
as_written(all_change=np.abs(swapped - with_P[order]).max(axis=1).min() > 0.1)

# %% invent-ideas
failed = [[name for name, good in meets.items() if not good] for meets in lab.verdicts().values()]
as_written(one_each=[len(names) for names in failed] == [1, 1, 1, 0], digits_jump=failed[2] == ["no jumps"])

# %% add-measured
as_written(same=np.allclose(beside, added), far=np.abs(cosines).max() < 0.2)

# %% bug-symptoms
as_written(mixed=copies > 0.1, blind=reordered < 1e-12)

# %% bug-mended
as_written(alike=copies < 1e-12, sees=reordered > 0.1)

# %% rotation-check
as_written(one_matrix=error < 1e-12)

# %% shift-used
as_written(five_back=(five_back[5:].argmax(axis=1) == np.arange(len(rows) - 5)).all())

# %% recall-result
ends = {kind: stretches(curve, lab.BACK) for kind, curve in correct.items()}
as_written(
    STEPS == 400,
    learnt=min(ends[kind].trained for kind in ("sinusoidal", "learned", "rotary")) > 0.95,
    lost=max(*ends["sinusoidal"][1:], *ends["learned"][1:]) < 0.6,
    not_learnt=max(ends["alibi"].trained, ends["none"].trained) < 0.5,
    on=ends["rotary"].to_1_5 > 0.65,
    all_fail_in_the_end=max(end.to_2 for end in ends.values()) < 0.3,
)

# %% rotate-used
as_written(STEPS == 400, as_before=np.abs(mine.correct - correct["rotary"]).max() < 0.01)

# %% recall-window
as_written(
    STEPS == 400,
    mended=min(stretches(windowed["rotary"], lab.BACK)) > 0.95,
    only=max(*stretches(windowed["sinusoidal"])[1:], *stretches(windowed["learned"])[1:]) < 0.6,
)

# %% text-result
text_ends = {kind: stretches(curve) for kind, curve in bits.items()}
far = {kind: end.to_2 for kind, end in text_ends.items()}
as_written(
    TEXT_STEPS == 400,
    none_beats=far["none"] < min(far["sinusoidal"], far["learned"], far["rotary"]),
    alibi_beats_none=far["alibi"] < far["none"],
    rotary_best=min(text_ends, key=lambda kind: text_ends[kind].trained) == "rotary",
    steady=far["alibi"] < text_ends["alibi"].trained + 0.1,
)
