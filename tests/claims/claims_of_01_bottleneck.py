"""What the text of notebook 01 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.classroom.claims import as_written
from lesson_utils.lessons.bottleneck import experiment

# %% vanish
as_written(vanishes=left[1.0] < 3e-4, between=0.02 < left[1.5] < 0.1, explodes=left[3.0] > 50)

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

# %% fixed-right
as_written(eight=right[8] > 0.5, ten=right[10] < 0.5, sixteen=right[16] < 0.1)

# %% kept
k, word = kept[16], "strawberries"
as_written(
    order_lost=k.present > 0.85 > 0.45 > k.in_place,
    anagrams=kept[12].anagrams > 0.6,
    none_missing=sorted(lab.answer(fixed, word)[0]) == sorted(word),
)

# %% capacity-numbers
gains = [longest[2 * size, steps] - longest[size, steps] for size in (16, 32, 64) for steps in (2500, 10_000)]
as_written(a_few_letters=all(2 <= gain <= 4 for gain in gains))

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
    different, doubled = lab.with_doubles(model, 8)
    as_written(doubles=doubled < 0.2 if model is fixed else doubled > 0.9)

# %% memory
as_written(
    fewest=luong.num_params() < min(fixed.num_params(), bahdanau.num_params()),
    most=bahdanau.num_params() > fixed.num_params(),
)

# %% reach-numbers
one, others = memory["one fixed vector"], [*memory["Bahdanau"], *memory["Luong"]]
as_written(learned=min(one) > 30 * max(memory["untrained"]), not_needed=max(others) < min(one))

# %% score-table
as_written(two_families=np.allclose(maps["additive"], maps["concat"]) and np.allclose(maps["dot"], maps["general"]))

# %% four-maps
as_written(
    after=all(lab.mirrored(four[kind][600].alignment) >= 7 for kind in ("dot", "general", "concat")),
    before=lab.mirrored(four["additive"][600].alignment) <= 6,
)

# %% learned-numbers
asked_after = [four[kind] for kind in ("dot", "general", "concat")]
as_written(
    nothing_at_first=max(lab.mirrored(s[0].alignment) for s in asked_after) <= 3,
    map_first=all(lab.mirrored(s[100].alignment) >= 5 and s[100].accuracy < 0.5 for s in asked_after),
)

# %% maps
on = {name: experiment.weight_on(experiment.looks(model, word)) for name, model in attentive.items()}
effect = {name: experiment.influence(model, word)[:, ::-1].diagonal().min() for name, model in attentive.items()}
as_written(
    right=all(lab.answer(model, word)[0] == word[::-1] for model in attentive.values()),
    looks=on["Luong"] > 0.8 and on["Bahdanau"] < 0.65,
    decides=min(effect.values()) > 0.8,
)

# %% one-way-map
on_it, one_later = (experiment.weight_on(experiment.looks(one_way, word), later) for later in (0, 1))
as_written(
    right=lab.answer(one_way, word)[0] == word[::-1],
    one_off=one_later > 0.8 > 0.3 > on_it,
    decides=experiment.influence(one_way, word)[:, ::-1].diagonal().min() > 0.8,
)
