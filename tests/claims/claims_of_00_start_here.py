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
nouns = [[vocabulary.index(noun) for noun in some] for some in (animals, places)]
hits, known, alike, apart, met = [], [], [], [], []
for seed in range(10):
    few = np.random.default_rng(seed).permutation(train)[:10]
    asked, answers = held_out[:, 11], held_out[np.arange(96), held_out[:, 12]]
    known.append(np.isin(asked, few[:, 11]) & np.isin(answers, few[np.arange(10), few[:, 12]]))
    few_queries, few_keys = learn(few, seed)
    hits.append((attend(few_queries, few_keys, held_out[:, :12]).argmax(axis=1) == held_out[:, 12]).mean())
    many = np.random.default_rng(seed).permutation(train)[:100]
    _, many_keys = learn(many, seed)
    units = many_keys / np.linalg.norm(many_keys, axis=1, keepdims=True)
    pairs = {(row[row[12]], row[11]) for row in many}
    cat, tired = vocabulary.index("cat"), vocabulary.index("tired")
    others_tired = any((noun, tired) in pairs for noun in nouns[0])
    met.append(
        others_tired and any((cat, end) in pairs and (noun, end) in pairs for _, end in pairs for noun in nouns[0][1:])
    )
    alike.append((np.sum(units[nouns[0]] @ units[nouns[0]].T) - 8) / 56)  # the mean cosine of two animals
    apart.append(np.mean(units[nouns[0]] @ units[nouns[1]].T))
as_written(
    four_in_ten=0.35 < np.mean(hits) < 0.45,
    most_not_met=np.mean(known) < 0.3,
    endings_met=np.all(met),
    all_of_them=min(new) == max(new) == 1.0,
    ten_by_heart=min(read) == 1.0,
    nearly_the_same=min(alike) > 0.8 and max(apart) < 0,
)

# %% learned-look
tired = look("the cat did not cross the street because it was too tired".split())
as_written(finds_the_cat=tired.argmax() == 1 and tired[1] > 0.9, unknown=look(["fluffy"]) is None)
