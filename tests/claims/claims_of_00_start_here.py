"""What the text of notebook 00 claims of its cells. Each part runs behind the cell that it names."""

# %% first-look
weights = ops.softmax(lab.SCORES["tired"])
as_written(more_than_half=weights.argmax() == 1 and weights[1] > 0.5)

# %% sentences
wholes = [" ".join(vocabulary[word] for word in row[:12]) for row in train]
as_written(
    numbers=(len(animals), len(places), len(for_animals + for_places), len(hidden)) == (8, 8, 12, 12),
    never_tired=not any("the cat" in whole and "tired" in whole for whole in wholes),
)

# %% ten-starts
kinds = [[vocabulary.index(noun) for noun in some] for some in (animals, places)]
endings_asked, answers = held_out[:, 11], held_out[np.arange(96), held_out[:, 12]]
right = {count: [] for count in (10, 30, 100)}
read, neither, known, alike, lost, met = [], [], [], [], [], []
for seed in range(10):
    for count, shares in right.items():
        rows = np.random.default_rng(seed).permutation(train)[:count]
        some_queries, some_keys = learn(rows, seed)
        found = attend(some_queries, some_keys, held_out[:, :12]).argmax(axis=1)
        shares.append((found == held_out[:, 12]).mean())
        read.append((attend(some_queries, some_keys, rows[:, :12]).argmax(axis=1) == rows[:, 12]).all())
        if count == 10:
            neither.append(~np.isin(found, (1, 6)))
            known.append(np.isin(endings_asked, rows[:, 11]) & np.isin(answers, rows[np.arange(10), rows[:, 12]]))
    units = some_keys / np.linalg.norm(some_keys, axis=1, keepdims=True)
    alike.append((np.sum(units[kinds[0]] @ units[kinds[0]].T) - 8) / 56)  # the mean cosine of two animals
    others = held_out[np.arange(96), np.where(held_out[:, 12] == 1, 6, 1)]
    lost.append((some_keys[others] * some_queries[endings_asked]).sum(axis=1) < 0)  # of the noun that is not meant
    pairs = {(row[row[12]], row[11]) for row in rows}
    cat, tired = vocabulary.index("cat"), vocabulary.index("tired")
    others_tired = any((noun, tired) in pairs for noun in kinds[0])
    met.append(
        others_tired and any((cat, end) in pairs and (noun, end) in pairs for _, end in pairs for noun in kinds[0][1:])
    )
as_written(
    four_in_ten=0.35 < np.mean(right[10]) < 0.45,
    a_quarter_neither=0.2 < np.mean(neither) < 0.3,
    most_not_met=np.mean(known) < 0.3,
    endings_met=np.all(met),
    all_of_them=min(right[100]) == 1.0,
    by_heart=np.all(read),
    street_has_lost=np.mean(lost) > 0.9,
)

# %% none-shared
found = {"alone": [], "shared": []}
for name, pairs, nouns in (("alone", alone, 6), ("shared", three - hidden, 3)):
    rows = right_in(pairs, train)
    for seed in range(10):
        some_queries, some_keys = learn(np.random.default_rng(seed).permutation(rows), seed)
        right_now = attend(some_queries, some_keys, asked[:, :12]).argmax(axis=1) == asked[:, 12]
        units = some_keys[kinds[0][:nouns]] / np.linalg.norm(some_keys[kinds[0][:nouns]], axis=1, keepdims=True)
        found[name].append((right_now.mean(), (np.sum(units @ units.T) - nouns) / (nouns * (nouns - 1))))
own, shared = (np.array(found[name]) for name in ("alone", "shared"))
as_written(
    one_each=len({noun for noun, _ in alone}) == len({ending for _, ending in alone}) == len(alone) == 12,
    as_many=len(three - hidden) == 12 and len(right_in(alone, train)) == len(right_in(three - hidden, train)) == 96,
    two_in_three=0.6 < own[:, 0].mean() < 0.7 and own[:, 0].max() < 0.95,
    all_right=shared[:, 0].min() == 1.0,
    similar=min(alike) > 0.8 and shared[:, 1].min() > 0.5 and own[:, 1].max() < 0.4,
)

# %% learned-look
tired = look("the cat did not cross the street because it was too tired".split())
as_written(finds_the_cat=tired.argmax() == 1 and tired[1] > 0.9, unknown=look(["fluffy"]) is None)
