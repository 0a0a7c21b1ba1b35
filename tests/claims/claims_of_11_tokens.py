"""What the text of notebook 11 claims of its cells. Each part runs behind the cell that it names."""

from lesson_utils.lessons.tokens.lab import SIZES, SMOLLM
from lesson_utils.lessons.tokens.pieces import LEVELS, commonest_pair

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
as_written(blanks=pairs.most_common(1)[0][0] == (" ", " "), three_times=len(list(pairwise("    "))) == 3)

# %% six-merges
line, twice = vocabulary.encode("the theme of the other thesis"), []
for new_id in range(V, V + 6):
    twice.append([count for _, count in Counter(pairwise(line.tolist())).most_common(2)])
    line = merge(line, commonest_pair(line, new_id), new_id)
as_written(five_each=twice[0] == [5, 5], none_occurs_twice=twice[3][0] == 2 and twice[4][0] == twice[5][0] == 1)

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
    the_nine_fall=(measured_tenths[:9, 2, 0] < measured_tenths[:9, 1, 0]).all(),
    four_gain=[round(100 * f(1 - measured_tenths[:8, 2, 1] / measured_tenths[:8, 0, 1])) for f in (min, max)]
    == [8, 51],
    four_change_little=np.ptp(measured.bits[:, 3]) < 0.07,
    four_characters=round(a_token[-1], 1) == 4.0 and round(60 / a_token[-1]) == 15,
    object_is_one="object" in names,
    strawberry=[names[i] for i in encode("strawberry", merges)] == ["str", "a", "w", "ber", "r", "y"],
    never="strawberry" not in text,
)

# %% look-back
letters, one, two = measured.letters, measured.bits[:, 0], measured.bits[:, 1]
as_written(
    more_at_four=all(
        measured.back[0, k] < 4 and np.interp(4, measured.back[:, k], measured.bits[:, k]) > letters[3] + 0.1
        for k in (0, 1)
    ),
    less_at_seven=all(np.interp(7, measured.back[:, k], measured.bits[:, k]) < letters[6] for k in (0, 1)),
    five_is_worse=(np.diff(letters[3:]) > 0).all() and letters.argmin() == 3,
    nine_or_ten=9 < measured.back[two.argmin(), 1] < 9.5,
    best=round(two.min(), 2) == 1.84 and round(letters.min(), 2) == 1.90,
    no_other_order=measured.bits.min() == two.min(),
)
contexts = np.lib.stride_tricks.sliding_window_view(train, 5)
as_written(most_are_rare=np.mean(np.unique(contexts, axis=0, return_counts=True)[1] <= 2) > 0.5)

# %% seen
kneser_ney = {setting: bits[1] for setting, bits in smoothed.items()}
as_written(
    seven=round(kneser_ney[0, 7], 2) == 1.69,
    seven_pieces=round(kneser_ney[100, 7], 2) == 1.65,
    smoothing_saves_more=smoothed[0, 4][0] - kneser_ney[0, 7] > 2 * (smoothed[0, 4][0] - smoothed[700, 2][0]),
    as_above=[round(smoothed[s][0], 2) for s in ((0, 4), (700, 2))] == [1.90, 1.84],
)

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
    sooner=all(shares["disguised"][n] > shares["pieces"][n] + 0.08 for n in (400, 800)),
)

# %% unknowns
as_written(
    met=round(counters["pieces"].new[2], 2) == 0.85 and SIZES[2] == 100,
    fewer_merges=round(fewer[200], 2) == 0.94 and (np.diff(list(fewer.values())) <= 0).all(),
    five_ids=0.99 < five < 1,
)

# %% pattern
parts = GPT_2.findall("It's 3.11, isn't  it? dog_2\n  x")
as_written(
    as_gpt_2=parts == ["It", "'s", " 3", ".", "11", ",", " isn", "'t", " ", " it", "?", " dog", "_", "2", "\n ", " x"],
    nearly=GPT_2.findall("x² a½") == ["x²", " a½"],
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
    characters=(round(len(hindi) / 63, 1), round(233 / len(hindi), 1)) == (1.4, 2.7),
    a_byte=[round(tokens_of[n], 2) for n in ("Hindi", "English")] == [0.39, 0.21],
    bytes_explain=round(233 / 63, 1) == 3.7 and [row[2] for row in rows if row[0] in ("English", "Hindi")] == [63, 233],
    the_rest=round(tokens_of["Hindi"] / tokens_of["English"], 1) == 1.9,
    gpt_4o=lab.GPT_4O_TOKENS["Hindi"] == 25,
    parts=len(GPT_2.findall(hindi)) == 55 and GPT_2.findall("मी") == ["म", "ी"],
    single_bytes=min(stay) > 0.95,
)
