"""What the text of notebook 01 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.bottleneck import lab as lesson

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
    prompted=round(k.prompted, 2) == 0.69,
)

# %% varied
of = varied()
present, place, _, twelve = (dict(zip(of, column, strict=True)) for column in zip(*of.values(), strict=True))
base, steps, alphabet = (f"64 numbers, {what}" for what in ("this run", "10,000 steps", "an alphabet of 4"))
wide = "128 numbers, network as wide"
as_written(
    in_place=[round(100 * place[name]) for name in (alphabet, steps, wide, base)] == [80, 66, 59, 37],
    all_starts=all(0.33 < place[name] < 0.4 and present[name] > 0.87 for name in list(of)[:3]),
    nine_of_ten=twelve[alphabet] > 0.88,
    network=[round(100 * place[f"32 numbers, {what}"]) for what in ("network as wide", "network of 64")] == [20, 29],
)

# %% accuracy
inside = [share[name][length] for name in ("Bahdanau", "Luong") for length in range(4, 21, 2)]
as_written(
    eight=share["one fixed vector"][8] > 0.5,
    sixteen=share["one fixed vector"][16] < 0.1,
    holds=min(inside) > 0.9,
    beyond=share["Bahdanau"][28] < 0.3 and share["Luong"][28] > 0.4,
    about_step_20=all(19 <= step <= 21 for step in slips.values()),
)

# %% yours
as_written(
    same=lab.accuracy(yours, 12) == lab.accuracy(bahdanau, 12),
    loses_doubles=lab.answer(fixed, "aabbccdd")[0] != "ddccbbaa",
)

# %% doubles
wide, practised = repeats()
one, luong_8, bahdanau_8 = (lab.with_doubles(model) for model in models.values())
as_written(
    pairs=round(one.doubled, 2) == 0.04 and round(one.apart, 2) == 0.79,
    half=0.45 < wide.doubled < 0.55 and 0.45 < practised.doubled < 0.6,
    price=practised.different < one.different - 0.2,
    no_letter_lost=luong_8.apart == 1 and round(luong_8.ended, 2) == 0.8,
    hardly_notices=min(luong_8.doubled, bahdanau_8.doubled) > 0.95,
)

# %% few-states
found = few_states(4, 3)
at_12 = {name: [found[name, seed][12] for seed in range(3)] for name in lesson.DECODERS}
product = lesson.multiplying(lesson.untrained("general")).num_params()
simple, *others = (at_12[name] for name in lesson.DECODERS)
as_written(
    fewer=luong.num_params() < fixed.num_params(),
    fewer_than_bahdanau=product < bahdanau.num_params(),
    three_of_four=all(min(shares) > 0.75 for shares in others),
    few=max(simple) < 0.3,
    longer=[round(100 * shares[12]) for shares in longer().values()] == [75],
    only_the_last=len(last) == 4 and max(last.values()) < 0.1,
)

# %% one-way-map
own, late = (
    {name: [lesson.weight_on(matrix, later) for matrix in found[:2]] for name, found in readers.items()}
    for later in (0, 1)
)
first, second, third = readers
as_written(
    right=all(answers[0] == word[::-1] for *_, answers, _ in readers.values()),
    late_and_carries=min(late[first]) > 0.9 > 0.1 > max(own[first]),
    from_the_second_row=(readers[first][0].argmax(axis=1)[1:] == np.arange(len(word) - 1, 0, -1)).all(),
    own=min(own[second]) > 0.85,
    divided=own[third][0] > 0.35 and late[third][0] > 0.35,
    one_carries=own[third][1] > 0.9 and late[third][1] < 0.15,
)

# %% banana
banana, follow, before = zip(*((answers[1], *shares) for *_, answers, shares in readers.values()), strict=True)
as_written(
    two_of_three=0.6 < follow[0] < 0.75,
    hardly_ever=max(*follow[1:], *before[1:]) < 0.1,
    anab=banana == ("anab", "ananab", "ananab"),
)

# %% score-costs
params = {kind: sum(p.value.size for p in lab.untrained(kind).decoder.score) for kind in ("dot", "general", "concat")}
decoder = lab.untrained("additive").decoder
additive = sum(p.value.size for p in (decoder.query.W, decoder.key.W, decoder.v))
as_written(parameters=[row[2] for row in rows] == [params["dot"], params["general"], additive, params["concat"]])

# %% asked
after, before, with_symbol = ({score: asked()[score, when] for score in params} for when in lesson.TIMES)
as_written(
    nine_of_ten=min(min(shares) for shares in (*after.values(), *with_symbol.values())) > 0.9,
    each_score_each_start=all(max(before[score]) < min(after[score]) for score in params),
    by_score=min(before["general"]) > 0.5 > max(before["concat"]),
)

# %% gradient-lab
norms = {
    (kind, bias): lesson.gradient_norms(kind, 1.0, bias)[20] for kind in ("rnn", "gru", "lstm") for bias in (-2, 0, 4)
}
as_written(
    ten_thousandths=all(1e-4 < norms[kind, 0] < 3e-4 for kind in ("rnn", "gru")),
    open_passes=min(norms["gru", 4], norms["lstm", 4]) > 0.3,
    shut_forgets=max(norms["gru", -2], norms["lstm", -2]) < norms["rnn", 0] / 100,
    for_its_bias=norms["lstm", 0] > 10 * norms["gru", 0] > 10 * lesson.gradient_norms("lstm", gate_bias=-1)[20],
)
