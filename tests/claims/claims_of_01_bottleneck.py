"""What the text of notebook 01 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.bottleneck import experiment

# %% train-fixed
answers = {word: lab.answer(fixed, word)[0] for word in ("cat", "planet", "strawberries")}
as_written(
    two_right=all(answers[word] == word[::-1] for word in ("cat", "planet")),
    anagram=answers["strawberries"] != "seirrebwarts" and sorted(answers["strawberries"]) == sorted("strawberries"),
)

# %% kept
k = kept[16]
as_written(
    places_lost=0.87 < k.present < 0.95 and 1 / 3 < k.in_place < 0.45,
    roughly_where=0.87 < k.in_order < 0.95,
    anagrams=kept[12].anagrams > 0.6,
)

# %% fixed-right
as_written(eight=right[8] > 0.5, ten=right[10] < 0.5, sixteen=right[16] < 0.1)

# %% bits-counted
as_written(
    all_runs=all(min(present, pairs) > 0.85 > 0.45 > place for present, place, pairs, _ in lab.KEPT_OF_16.values()),
    mostly_anagrams=all(anagrams > 0.6 for *_, anagrams in lab.KEPT_OF_16.values()),
    this_run=np.abs(np.subtract(lab.KEPT_OF_16["this run"][:3], kept[16][:3])).max() < 0.05,
    bits=(round(everything - order), round(order)) == (22, 44),
    far_more=kept[16].prompted > kept[16].in_place + 0.2,
)

# %% capacity-lab
longest = {
    (size, steps): max(
        n for n, share in zip(lab.CAPACITY_LENGTHS, lab.CAPACITY[None, size, steps], strict=True) if share >= 0.5
    )
    for size in (16, 32, 64, 128)
    for steps in (2500, 10_000)
}
gains = [longest[2 * size, steps] - longest[size, steps] for size in (16, 32, 64) for steps in (2500, 10_000)]
as_written(a_few_letters=all(2 <= gain <= 4 for gain in gains), each_fails=max(longest.values()) < 20)

# %% passed-on
eight, narrow = lab.CAPACITY_LENGTHS.index(8), lab.CAPACITY[None, 32, 2500]
as_written(
    nearly_as_many=max(np.subtract(lab.PASSED_ON[64], lab.PASSED_ON[32])) < 0.07,
    twice=lab.PASSED_ON[32][eight] > 2 * narrow[eight],
    as_well=all(few >= share for few, share in zip(lab.PASSED_ON[16], narrow, strict=True)),
)

# %% accuracy
inside = [share[name][length] for name in ("Bahdanau", "Luong") for length in range(4, 21, 2)]
as_written(
    collapses=share["one fixed vector"][16] < 0.1,
    holds=min(inside) > 0.9,
    beyond=share["Bahdanau"][28] < 0.3 and share["Luong"][28] > 0.4,
)

# %% yours
as_written(same=lab.accuracy(yours, 12) == lab.accuracy(bahdanau, 12))

# %% doubles
for model in models.values():
    shares = lab.with_doubles(model, 8)
    as_written(
        doubles=shares.doubled < 0.2 if model is fixed else shares.doubled > 0.9,
        apart=0.6 < shares.apart < shares.different if model is fixed else shares.apart > 0.75,
    )
apart = [lab.with_doubles(model, 8).apart for model in attentive.values()]
as_written(one_in_five=abs(apart[0] - 0.8) < 0.03, holds_all=apart[1] > 0.97)

# %% memory
at = dict(zip(lab.CAPACITY_LENGTHS, range(9), strict=True))
small_look, large_vector = lab.CAPACITY["general", 16, 10_000], lab.CAPACITY[None, 128, 10_000]
counts = [lab.untrained(None, 128).num_params(), lab.untrained("general", 16).num_params()]
as_written(
    fewest=luong.num_params() < min(fixed.num_params(), bahdanau.num_params()),
    parameters=small_look[at[20]] > large_vector[at[20]] and counts[0] > 25 * counts[1],
    training=lab.CAPACITY["general", 16, 2500][at[12]] < 0.6 < 0.95 < small_look[at[12]],
    states=experiment.SEEN[40][at[12]] < 0.05 < experiment.SEEN[4][at[12]] < 0.2 < 0.9 < experiment.SEEN[1][at[12]],
    hardly_better=0 < lab.LONGER["every fourth state"] - lab.LONGER["one vector of 64"] < 0.1,
    not_numbers_alone=experiment.SEEN[4][at[12]] < lab.CAPACITY[None, 192, 2500][at[12]],
)

# %% one-way-map
looks, decides = experiment.looks(one_way, long_word), experiment.influence(one_way, long_word)
as_written(
    right=lab.answer(one_way, long_word)[0] == long_word[::-1],
    one_late=experiment.weight_on(looks, 1) > 0.9 > 0.1 > experiment.weight_on(looks, 0, 1),
    decides=decides[:, ::-1].diagonal().min() > 0.8,
    from_other_starts=all(late > 0.9 and itself > 0.9 for late, itself in lab.OTHER_STARTS),
)

# %% maps
on = {name: experiment.weight_on(experiment.looks(model, long_word)) for name, model in attentive.items()}
before = experiment.looks(bahdanau, long_word)
effect = {name: experiment.influence(model, long_word)[:, ::-1].diagonal().min() for name, model in attentive.items()}
as_written(
    right=all(lab.answer(model, long_word)[0] == long_word[::-1] for model in attentive.values()),
    looks=on["Luong"] > 0.8 and on["Bahdanau"] < 0.65,
    two_letters=on["Bahdanau"] + experiment.weight_on(before, 1) > 0.75,
    decides=min(effect.values()) > 0.8,
)

# %% small-maps
last = {kind: snapshots[max(snapshots)] for kind, snapshots in small.items()}
as_written(
    after=min(last[kind].rows for kind in ("dot", "general", "concat")) > 0.9,
    before=max(last[kind].rows for kind in ("concat before", "Bahdanau")) < 0.5,
    three_runs=min(lab.TIMES_ASKED["concat"]) > 0.9
    and max(*lab.TIMES_ASKED["concat before"], *lab.TIMES_ASKED["Bahdanau"]) < 0.5,
    all_right=min(now.letters for now in last.values()) > 0.95,
)

# %% learning-lab
dot = small["dot"]
as_written(
    whole_strings=dot[100].rows > 0.8 and dot[100].strings < 0.4,
    nearly_together=all(
        abs(small[kind][step].rows - small[kind][step].letters) < 0.15
        for kind in ("dot", "general", "concat")
        for step in (75, 100, 200, 400, 600)
    ),
    map_leads_once=dot[50].rows > dot[50].letters + 0.1 and small["general"][50].rows > small["general"][50].letters,
)

# %% vanish
far = {scale: experiment.gradient_norms("rnn", scale)[experiment.FURTHEST] for scale in (1.0, 1.5, 2.0, 3.0)}
as_written(
    vanishes=left[1.0] < 3e-4,
    explodes=left[3.0] > 50,
    seems_safe=0.5 < left[2.0] < 5,
    is_not=far[2.0] > 10 and far[1.5] < 1e-4,
)

# %% gradient-lab
norms = {
    (kind, bias): experiment.gradient_norms(kind, 1.0, bias)[20]
    for kind in ("rnn", "gru", "lstm")
    for bias in (-2, 0, 4)
}
as_written(
    about_as_long=0.2 < norms["gru", 0] / norms["rnn", 0] < 5,
    open_keeps=norms["gru", 4] > 0.3 and norms["lstm", 4] > 0.1,
    shut_forgets=max(norms["gru", -2], norms["lstm", -2]) < norms["rnn", 0] / 100,
)

# %% gru-runs
kept_by = {}
for gate in (0, 4, -2):
    rng = np.random.default_rng(0)
    params = lab.new_cell("gru", rng, gate_bias=gate)
    inputs, change = rng.normal(size=(20, 1, 16)), 1e-4 * rng.normal(size=(1, 32))
    h, changed = np.zeros((1, 32)), change
    for x in inputs:
        h, changed = step(x, h, *params), step(x, changed, *params)
    kept_by[gate] = np.linalg.norm(changed - h) / np.linalg.norm(change)
as_written(open_keeps=kept_by[4] > 0.3, half_forgets=kept_by[0] < 0.01, shut_forgets=kept_by[-2] < 1e-5)

# %% reach-numbers
one, others = memory["one fixed vector"], [*memory["Bahdanau"], *memory["Luong"]]
as_written(
    learned=min(one) > 30 * max(memory["untrained"]),
    shorter=max(others) < min(one),
    backwards=memory["Bahdanau"][1] > 50 * memory["untrained"][1],
    forwards=1 / 200 < memory["Bahdanau"][0] / memory["untrained"][0] < 1 / 50,
)
