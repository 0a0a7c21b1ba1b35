"""What the text of notebook 12 claims of its cells. Each part runs behind the cell that it names."""

# %% swiglu-use
zeros = swiglu(np.zeros((1, 3)), np.ones((3, 8)), np.ones((3, 8)), np.ones((8, 3)))
as_written(equal=3 * 576 * 1536 == 2 * 576 * 4 * 576, wide=8 * 576 == 3 * 1536, works=not zeros.any())

# %% halves-use
as_written(reordered=np.abs(converted - scores).max() < 1e-12, mixed=np.abs(mixed - scores).max() > 1)

# %% grouped-use
as_written(same=np.abs(grouped(Q, K, V) - own).max() < 1e-12)

# %% ladder
averages, lost = ladder.mean(axis=1), back - ladder[-1]  # (7,), (6, 10)
longer = four_times_longer()
later = longer[1:-1] - longer[-1]  # (4, 10)
as_written(
    STEPS == 250,
    from_to=(round(averages[0], 2), round(averages[-1], 2)) == (3.10, 2.86),
    one_step=averages[3] - averages[4] > 0.9 * (averages[0] - averages[-1]),
    rotary=lost[3].min() > 0 and round(lost[3].mean(), 2) == 0.23,
    no_difference=all(lost[n].min() < 0 < lost[n].max() for n in (2, 4, 5)),
    better=lost[:2].max() < 0 and lost[:2].mean(axis=1).round(2).tolist() == [-0.08, -0.03],
    later=later[2:].min() > 0 and later[2:].mean(axis=1).round(2).tolist() == [0.06, 0.22],
    place=later[0].min() < 0 < later[0].max(),
    layer_norm=later[1].max() < 0 and round(later[1].mean(), 2) == -0.02,
)

# %% tiny
as_written(alpaca=lab.LETTERS.decode(answer(tiny, lab.asked("alpaca"), 6, **TODAY)) == "acapla")

# %% of-2017
letters = {name: lab.right(partial(read, tiny, **TODAY | swap)) for name, swap in OF_2017.items()}
as_written(
    relu_gate=letters["ReLU as the gate"] > 0.93,
    takes=min(letters[name] for name in ("as it is", "layer norm", "own keys")) > 0.93,
    not_these=max(letters[name] for name in ("pairs in halves", "sinusoids added", "norm after")) < 0.5,
)

# %% parts-table
nats = {name: float(found.nats.mean()) for name, found in trials.items()}
answers = {name for name, found in trials.items() if "Paris" in found.says}
as_written(
    layer_norm=(round(nats["as it is"], 2), round(nats["layer norm"], 2)) == (3.37, 3.42),
    same=abs(nats["own keys"] - nats["as it is"]) < 1e-3,
    three=answers == {"as it is", "layer norm", "own keys"},
    lost=abs(nats["pairs in halves"] - nats["not turned"]) < 0.05 and nats["not turned"] > nats["as it is"] + 1.5,
    said=len({trials[name].says for name in answers}) == 1 and lab.STORED_ANSWER in trials["as it is"].says,
)

# %% directions
as_written(
    one=round(max(gates.one) - whole, 2) == 0.12,
    thirty=len(gates.one) == 30 and (round(gates.unread - whole, 1), round(every - whole, 1)) == (0.7, 5.6),
    mean=round(float(means.max()), 3) == 0.001 and means.max() < 1 / 576,
    random=out.random.max() - nats["as it is"] < 0.5 and out.mean < out.random.max(),
    main=round(out.main - nats["as it is"]) == 12 and out.share > 0.4,
)

# %% share-lab
more = one_for_all - shared[0]
as_written(
    STEPS == 250,
    gigabytes=[round(lab.cache_bytes(131072, share) / 1e9) for share in (1.0, 0.25)] == [69, 17],
    kept=(round(shared[1].mean(), 2), round(shared[0].mean(), 2)) == (2.86, 2.87),
    four=(sum(more < 0), round(more.mean(), 2)) == (4, 0.02),
)

# %% came-back-table
beta = no_beta - ladder[-1]
as_written(
    small=(small - ladder[-1]).min() > 0 and round((small - ladder[-1]).mean(), 1) == 0.3,
    no_mean=beta.min() < 0 < beta.max() and abs(beta.mean()) < 0.005,
)

# %% ask-another
as_written(
    copies=(answers.copying, answers.heads) == (2, 4),
    no_bystanders=answers.others > answers.without > 1,
    wire=answers.keys > 2 * answers.queries,
    no_sink=answers.sink < answers.even and abs(answers.hidden) < 0.01,
)
