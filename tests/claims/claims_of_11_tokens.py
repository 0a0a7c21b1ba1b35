"""What the text of notebook 11 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.tokens.lab import SIZES, SMOLLM
from lesson_utils.lessons.tokens.pieces import LEVELS

# %% words
as_written(
    a_hundred=95 < len(set(text)) < 110,
    a_quarter=0.25 < list(kinds.values()).count(1) / len(kinds) < 0.3,
)

# %% tenths
as_written(
    one_in_twenty=0.045 < len(new) / len(words_in(vocabulary.decode(held_out))) < 0.055 and round(one_in[-1]) == 20,
    the_others=(round(min(one_in)), round(max(one_in))) == (10, 57),
    remove="Remove" in new and "remove" in kinds,
)

# %% pairs
as_written(blanks=pairs.most_common(1)[0][0] == (" ", " "))

# %% back
as_written(back="".join(spelled[i] for i in tokens) == line, half=0.4 < len(tokens) / len(line) < 0.6)

# %% own-text
as_written(
    back="".join(cut) == my_text,
    twenty=len(my_merges) == 20,
    words_early="wood" in [p.strip() for p in my_pieces],
)

# %% two-thousand
at = {level: measured.bits[n] for n, level in enumerate(LEVELS)}  # bits a character, by 1 to 4 pieces
a_token = measured.characters / measured.tokens
names = spell(merges)
as_written(
    two_thousand=len(merges) == 2000,
    they_fall=round(at[0][0], 2) == 3.34 and round(at[2000][0], 1) == 2.0,
    the_last_raise=at[2000][0] > at[1400][0] and at[2000][0] - at[1400][0] < 0.03,
    falls_until_then=(np.diff(measured.bits[:-1, 0]) < 0).all(),
    four_change_little=np.ptp(measured.bits[:, 3]) < 0.07,
    four_characters=round(a_token[-1], 1) == 4.0 and round(60 / a_token[-1]) == 15,
    object_is_one="object" in names,
    strawberry=[names[i] for i in encode("strawberry", merges)] == ["str", "a", "w", "ber", "r", "y"],
    never="strawberry" not in text,
)

# %% look-back
letters, one, two = measured.letters, measured.bits[:, 0], measured.bits[:, 1]
near = [(b, n * a) for n, column in ((1, one), (2, two)) for b, a in zip(column, a_token, strict=True) if n * a <= 4]
as_written(
    together=max(abs(b - np.interp(a, range(1, 8), letters)) for b, a in near) < 0.15,
    five_is_worse=(np.diff(letters[3:]) > 0).all() and letters.argmin() == 3,
    two_are_best_at_six=5.5 < 2 * a_token[two.argmin()] < 6.5,
    best=round(two.min(), 2) == 1.84 and round(letters.min(), 2) == 1.90,
    no_other_order=measured.bits.min() == two.min(),
)
(a, b), seven = ends[6:8], lab.LONGEST  # more than half of this tenth stands in the rest, too
counted, read = (vocabulary.encode(part) for part in (text[:a] + text[b:], text[a:b]))
longer = lab.costs(lab.Table(counted, seven, V), read).sum(axis=1)
as_written(repetition_rewards=longer.argmin() == seven)

# %% seen
shares = {}
for count, reads in ((0, 5), (350, 2), (0, 6), (700, 2)):
    counted, read = (lab.apply(ids, merges[:count], V) for ids in (train, held_out))
    shares[count, reads] = lab.seen_before(lab.Table(counted, reads, V + count), read)
as_written(more_often=shares[350, 2] > shares[0, 5] + 0.03 and shares[700, 2] > shares[0, 6] + 0.03)

# %% shuffled
as_written(rises=(np.diff(found.bits[:, 0]) > 0).all())

# %% compare
found = {}
for count, reads in ((0, 4), (700, 2)):
    counted, read = (lab.apply(ids, merges[:count], V) for ids in (train, held_out))
    nats = lab.costs(lab.Table(counted, reads, V + count), read)[reads]
    found[count] = len(read), nats.mean() / np.log(2), nats.sum() / np.log(2) / len(held_out)
as_written(
    a_token=[round(found[count][1], 2) for count in (0, 700)] == [1.90, 5.56],
    a_character=[round(found[count][2], 2) for count in (0, 700)] == [1.90, 1.84],
    a_third=0.3 < found[700][0] / found[0][0] < 0.36,
)

# %% asked
as_written(in_front=len(SMOLLM["strawberry"]) == 3 and len(SMOLLM[" strawberry"]) == 1)

# %% counters
shares = {name: dict(zip(SIZES, counter.right.mean(axis=0), strict=True)) for name, counter in counters.items()}
as_written(
    sixty=0.57 < shares["pieces"][100] < 0.63,
    no_r=round(none, 2) == 0.56,
    letters=(counters["letters"].right == 1).all() and SIZES[0] == 25,
    unknowns=[bags[name].shape[1] for name in ("letters", "pieces")] == [26, 790],
)

# %% controls
shares |= {name: dict(zip(SIZES, counter.right.mean(axis=0), strict=True)) for name, counter in controls.items()}
both_read = controls["both"].right
as_written(
    unknowns=[bags[name].shape[1] for name in ("both", "disguised")] == [816, 780],
    all_occur=bags["disguised"].any(axis=0).mean() > 0.9,
    at_100=[round(shares[name][100], 2) for name in ("disguised", "pieces")] == [0.63, 0.60],
    no_mistake=(both_read[:, 2:] == 1).all() and SIZES[2] == 100,
    in_the_end=shares["disguised"][800] > 0.995 and shares["pieces"][800] < 0.92,
    a_third=0.3 < 1 - counters["pieces"].unknown[-1] < 0.36 and counters["pieces"].known[-1] > 0.98,
)

# %% pattern
parts = GPT_2.findall("It's 3.11, isn't  it? dog_2\n  x")
as_written(
    as_gpt_2=parts == ["It", "'s", " 3", ".", "11", ",", " isn", "'t", " ", " it", "?", " dog", "_", "2", "\n ", " x"],
    nothing_lost="".join(GPT_2.findall(text)) == text,
)

# %% walls
as_written(
    crosses=any(p == "of the " for p in both["without walls"]) and crossing == 0,
    three_for_sixteen=[sum("object" in p for p in pieces) for pieces in both.values()] == [16, 3],
)

# %% walls-tenths
change = bits[1] / bits[0] - 1
as_written(
    four_per_cent=0.035 < max(abs(change)) < 0.045,
    eight_fall=(change < 0).sum() == 8,
    two_that_repeat=set(np.flatnonzero(change > 0)) == set(np.argsort(repeats)[-2:]),
)

# %% languages
tokens_of = {name: lab.SMOLLM_TOKENS[name] / len(lab.to_bytes(sentence)) for name, sentence in lab.ARTICLE.items()}
stay = [
    len(lab.apply(lab.to_bytes(lab.ARTICLE[n]), byte_merges, 256)) / len(lab.to_bytes(lab.ARTICLE[n]))
    for n in ("Greek", "Hindi", "Chinese")
]
as_written(
    hindi=max(lab.SMOLLM_TOKENS, key=lab.SMOLLM_TOKENS.get) == "Hindi",
    seven_times=round(lab.SMOLLM_TOKENS["Hindi"] / lab.SMOLLM_TOKENS["English"]) == 7,
    three_bytes=len("म".encode()) == 3,
    a_byte=round(tokens_of["Hindi"], 2) == 0.39 < min(tokens_of[n] for n in ("Finnish", "Greek", "Chinese")),
    most_bytes=max(rows, key=lambda row: row[2])[0] == "Hindi" and sorted(row[2] for row in rows)[-2] < 233 / 1.4,
    single_bytes=min(stay) > 0.95,
)
