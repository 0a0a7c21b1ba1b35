"""The exercises of notebook 11."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np

from lesson_utils.lessons.tokens import pieces
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off
# --- Merging one pair -----------------------------------------------------------------------------------------------

_PAIR = "i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair"


def _loop(test: str = _PAIR, then: str = "merged.append(new)\ni += 2", until: str = "i < len(ids)", last: str = "") -> str:
    """Return a loop with an index, as many write it, with some of its parts replaced; `last` is behind both branches."""
    parts = ["i = 0", f"while {until}:", f"    if {test}:", textwrap.indent(then, " " * 8), "    else:"]
    parts += ["        merged.append(ids[i])", "        i += 1"]
    return "\n".join([*parts, *([textwrap.indent(last, "    ")] if last else [])])


_AT = "at = np.flatnonzero((ids[:-1] == pair[0]) & (ids[1:] == pair[1]))\n"  # all places of the pair at once
_OVERLAPPING = (
    "np.delete(merged, at + 1)",
    "np.array([x for i, x in enumerate(merged) if i - 1 not in at])",
    "merged[[i in at or i - 1 not in at for i in range(len(ids))]]",
    "merged[[i in at or i - 1 not in at or pair[0] == pair[1] for i in range(len(ids))]]",
)
_SHORTENED = (("", " - 1"), ("(ids[i], ids[i + 1]) == pair", "ids[i] == pair[0] and ids[i + 1] == pair[1]"), ("ids[i : i + 2] = [new]", "ids[i + 1] = new; del ids[i]"))


def _pair_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, ids: Sequence[int], pair: tuple[int, int] = (4, 7), new: int = 20) -> Case:
        return Case(label, (np.array(ids), pair, new))

    return [
        case("a text with the pair twice", [5, 4, 7, 9, 7, 4, 4, 7, 6, 8]),
        case("the pair at the beginning and at the end", [4, 7, 6, 9, 5, 4, 7]),
        case("a run of three, such as a a a", [6, 4, 4, 4, 9, 5], (4, 4), 11),
        case("runs of two, four and five", [4, 4, 6, 4, 4, 4, 4, 8, 4, 4, 4, 4, 4, 9], (4, 4), 31),
        case("the first of the pair as the last id", [7, 4, 9, 4, 7, 8, 4]),
        case("a pair that is not there", [5, 7, 4, 9, 7, 4, 6], new=12),
        case("pairs in a row", [4, 7, 4, 7, 4, 7, 5], new=10),
        case("a single id", [4]),
        case("ids of two digits", [14, 7, 4, 70, 4, 7, 47]),
        case("60 ids", rng.integers(3, 7, size=60).tolist(), (5, 3), 40),
        case("60 ids with runs", rng.integers(3, 5, size=60).tolist(), (3, 3), 50),
    ]


_MERGE = Exercise(
    name="merge_pairs",
    takes="ids, pair, new",
    task="""Put `new` in the place of each `pair` of neighbours.

ids: (T,), whole numbers. pair: two of them, (a, b); they may be equal. new: an id
that does not occur in ids. Go from left to right. An id that was merged is used up:
a a a becomes new a. Returns the merged ids, an array; ids stays as it was.""",
    reference=pieces.merge_pairs,
    steps={
        "start": "merged = []",
        "loop": "for id_ in ids:\n    if merged and (merged[-1], id_) == pair:\n        merged[-1] = new  # both are used up\n    else:\n        merged.append(id_)",
        "answer": "return np.array(merged)",
    },
    spellings={"loop": (_loop(),)},
    cases=_pair_cases,
    returns=("merged",),
    hints=(
        "Write the new text id by id into a list, `merged`. When the last id in it and the next id of the text are the pair, what has to happen to the last one?",
        "It becomes `new`, and the next id is not written: both are used up. Otherwise append the next id. While the list is empty, there is no last id: ask `if merged and …` first.",
        "`for id_ in ids:` if `(merged[-1], id_) == pair`, then `merged[-1] = new`, else `merged.append(id_)`. At the end, `np.array(merged)`. (An index that moves on by 2 behind a pair does the same.)",
    ),
    mistakes=(
        change("an id used twice", "In a run such as a a a you merge overlapping pairs, so that the id in the middle is used twice. An id that was merged is used up: a a a becomes new a.", *(f"{_AT}merged = ids.copy()\nmerged[at] = new\nreturn {end}" for end in _OVERLAPPING)),
        change("the second id stays", "Behind each new id the second id of the pair is still there. The pair has two ids, so a merge moves on by 2, past both of them.", f"{_AT}merged = ids.copy()\nmerged[at] = new\nreturn merged", loop=(_loop(then="merged.append(new)\ni += 1"), f"i = 0\nwhile i < len(ids):\n    if {_PAIR}:\n        merged.append(new)\n        i += 1\n    merged.append(ids[i])\n    i += 1")),
        change("both places filled", "You write `new` twice, in the place of each of the two ids. The pair becomes one id, and the text gets shorter.", f"{_AT}merged = ids.copy()\nmerged[at] = new\nmerged[at + 1] = new\nreturn merged", loop=_loop(then="merged += [new, new]\ni += 2")),
        change("only the first pair", "Only the first pair of the text is merged. Go on behind it, up to the end.", f"{_AT}if len(at) == 0:\n    return ids.copy()\nmerged = ids.copy()\nmerged[at[0]] = new\nreturn np.delete(merged, at[0] + 1)", loop=_loop(then="return np.array([*merged, new, *ids[i + 2:]])")),
        change("the last id is lost", "The last id is lost where it belongs to no pair. Let the loop reach the last id, too, and ask whether a neighbour follows before you compare.", loop=_loop("(ids[i], ids[i + 1]) == pair", until="i < len(ids) - 1")),
        change("the last id always", "You append the last id in any case. If it belongs to a pair, it is merged already, and now it stands there twice. Append it only if the loop has not reached it: let the loop run up to `len(ids)`, and ask whether a neighbour follows.", loop=_loop("(ids[i], ids[i + 1]) == pair", until="i < len(ids) - 1") + "\nmerged.append(ids[-1])"),
        change("both ids each time", "Each id is the second of one pair and the first of the next, so that your loop over pairs writes it twice. Write one id each round.", "merged = []\nfor a, b in zip(ids[:-1], ids[1:]):\n    merged.extend([new] if (a, b) == pair else [a, b])\nreturn np.array(merged)"),
        change("one id compared with two", "At the end of the text, a slice of two holds a single id, and NumPy compares it with both ids of the pair. So the last id of a run such as a a a is merged alone. `tuple(…) == pair` compares the lengths, too.", loop=(_loop("(ids[i:i + 2] == pair).all()"), _loop("np.all(ids[i:i + 2] == pair)"))),
        change("a for loop skips nothing", "A `for` loop over positions also comes to the second id of a merged pair, which stays in your result: `for` sets its variable anew in each round, so nothing that you add to the variable makes the loop skip one. Write a new list in a `while` loop, and move on by 2 where you merge.", "merged = []\nfor i in range(len(ids)):\n    if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:\n        merged.append(new)\n    else:\n        merged.append(ids[i])\nreturn np.array(merged)"),
        change("a for loop that cannot skip", "Two things to mend.\n1. A `for` loop over positions also visits the second id of a merged pair and writes it again. Compare with the last id that you have written instead, or use `while` and move on by 2.\n2. The last id of the text is lost: the loop ends one position too early.", "merged = []\nfor i in range(len(ids) - 1):\n    if ids[i] == pair[0] and ids[i + 1] == pair[1]:\n        merged.append(new)\n    else:\n        merged.append(ids[i])\nreturn np.array(merged)"),
        change("shortened while it is walked", "Each merge makes the text shorter while your loop walks over it, and the loop runs past the end. (A `range` counts the length once, before the loop.) Leave the text as it is, and write the merged ids into a new list.", *(f"ids = list(ids)\nfor i in range(len(ids){stop}):\n    if {test}:\n        {then}\nreturn np.array(ids)" for stop, test, then in product(*_SHORTENED))),
        change("before the first id", "At the first id, `merged` is still empty, so `merged[-1]` does not exist. Write `if merged and …:`.", loop=tuple(f"for id_ in ids:\n    if {test}:\n        merged[-1] = new\n    else:\n        merged.append(id_)" for test in ("(merged[-1], id_) == pair", "merged[-1] == pair[0] and id_ == pair[1]"))),
        change("reads beyond the end", "At the last id you look at the one behind it, which is not there. Ask first whether its index is smaller than `len(ids)`: `… < len(ids) and …`.", loop=(_loop("(ids[i], ids[i + 1]) == pair"), _loop("ids[i] == pair[0] and ids[i + 1] == pair[1]"))),
        change("in either order", "You also merge the pair turned round, b a. The order counts: the first id must be `pair[0]`, and the second `pair[1]`.", loop=(_loop("i + 1 < len(ids) and {ids[i], ids[i + 1]} == set(pair)"), _loop("i + 1 < len(ids) and sorted((ids[i], ids[i + 1])) == sorted(pair)"))),
        change("turned round", "You look for b a, the pair turned round. The first id must be `pair[0]`, and the second `pair[1]`.", loop=_loop("i + 1 < len(ids) and (ids[i + 1], ids[i]) == pair")),
        change("only the first id compared", "You merge wherever the first id of the pair stands, whatever follows it. Compare its neighbour, too: `… == pair[1]`.", loop=_loop("i + 1 < len(ids) and ids[i] == pair[0]")),
        change("only the second id compared", "You merge wherever the second id of the pair follows, whatever stands before it. Compare the first one, too.", loop=_loop("i + 1 < len(ids) and ids[i + 1] == pair[1]")),
        change("the pair is kept", "You write `new` and also the two ids of the pair. `new` stands in their place.", loop=_loop(then="merged += [*pair, new]\ni += 2")),
        change("the pair is dropped", "The pair is gone, and nothing stands in its place. Append `new` where the pair was.", loop=_loop(then="i += 2")),
        change("from the right", "In a run such as a a a, you merge the last two. Go from left to right: a a a becomes new a.", loop="i = len(ids) - 1\nwhile i >= 0:\n    if i > 0 and (ids[i - 1], ids[i]) == pair:\n        merged.insert(0, new)\n        i -= 2\n    else:\n        merged.insert(0, ids[i])\n        i -= 1"),
        change("a slice compared with a tuple", "You compare a slice of ids with `pair` by `==`. That compares number by number and gives two answers, which `if` can't take. Write `tuple(…) == pair`, or compare both ids.", loop=(_loop("ids[i:i + 2] == pair"), _loop("i + 1 < len(ids) and ids[i:i + 2] == pair"))),
        change("nothing is merged", "No pair is merged. `pair` is a tuple of two numbers: a list or an array is never equal to it. Compare a tuple of the two neighbours: `(…, …) == pair`.", "ids.copy()", loop=_loop("i + 1 < len(ids) and [ids[i], ids[i + 1]] == pair")),
        change("single ids replaced", "You replace single ids, wherever they stand. Only the two of them as neighbours, a and then b, become `new`.", "np.where((ids == pair[0]) | (ids == pair[1]), new, ids)", "np.where(np.isin(ids, pair), new, ids)", "np.where(ids == pair[0], new, ids)"),
        change("stopped in the loop", "Your `return` stands inside the loop, which ends in its first round. It belongs below, as far left as `while`.", loop=_loop(last="return np.array(merged)")),
    ),
    library=(pieces.merge_pairs,),
    praise="Eleven texts: pairs at both ends, runs of equal ids, a pair that is not there. With this step you can learn a tokenizer.",
    in_pytorch="""# A tokenizer is a program of its own and runs before the model. nn.Embedding takes its ids as torch.long or torch.int.
merged = []
for id_ in ids.tolist():
    merged[-1:] = [new] if (*merged[-1:], id_) == pair else [*merged[-1:], id_]
merged = torch.tensor(merged)""",
)

# --- Learning all merges ----------------------------------------------------------------------------------------------


def _learned(most: str = "pair = Counter(pairwise(ids)).most_common(1)[0][0]", step: str = "ids = merge(ids, pair, new)", keep: str = "pairs.append(pair)", news: str = "range(base, base + count)", last: str = "") -> str:
    """Return the loop with some of its lines replaced."""
    return "\n".join([f"for new in {news}:", *(textwrap.indent(line, "    ") for line in (most, keep, step, last) if line)])


def _texts(rng: np.random.Generator) -> Sequence[Case]:
    """Draw texts in which, before each merge, one pair is more frequent than all others: nobody has to break a tie."""

    def case(label: str, length: int, count: int, kinds: int, base: int) -> Case:
        while True:
            words = [rng.integers(kinds, size=rng.integers(2, 5)) for _ in range(6)]
            ids = np.concatenate([words[min(rng.geometric(0.4) - 1, 5)] for _ in range(length)])[:length]
            rest, alone = ids, True
            for new in range(base, base + count):
                (pair, most), (_, second) = Counter(pairwise(rest.tolist())).most_common(2)
                alone, rest = alone and most > second, pieces.merge_pairs(rest, pair, new)
            if alone:
                return Case(label, (ids, count, base))

    return [
        case("40 ids, 3 merges", 40, 3, 4, 4),
        case("30 ids, a single merge", 30, 1, 5, 5),
        case("90 ids, 6 merges", 90, 6, 6, 6),
        case("60 ids, new ones from 50 on", 60, 4, 5, 50),
        case("120 ids of two kinds, 5 merges", 120, 5, 2, 2),
        case("70 ids, 4 merges, more ids than in the text", 70, 4, 3, 9),
    ]


_LEARN = Exercise(
    name="learn_merges",
    takes="ids, count, base",
    task="""Learn `count` merges from a text.

ids: (T,), whole numbers below base. Each merge takes the most frequent pair of neighbours
and puts a new id in its place, everywhere: base for the first merge, then base + 1, and so
on. In a tie, any of the most frequent pairs is right. `merge` is yours, from exercise 1.
Returns the pairs in the order of the merges, an array, (count, 2). ids stays as it was.""",
    steps={"start": "pairs = []", "loop": _learned(), "answer": "return np.array(pairs)"},
    cases=_texts,
    returns=("pairs",),
    scope={"merge": pieces.merge_pairs, "Counter": Counter, "pairwise": pairwise},
    library=(pieces.learn,),
    hints=(
        "One round of the loop makes one merge. What do you have to do again in each round, because the merge before has changed the text?",
        "In each round: count all pairs of neighbours, keep the most frequent one, and merge it. The new id is base in the first round. `Counter(pairwise(ids))` counts.",
        "`for new in range(base, base + count):` the pair is `Counter(pairwise(ids)).most_common(1)[0][0]`, then `ids = merge(ids, pair, new)`. Append each pair to a list. At the end, `np.array(...)` of the list.",
    ),
    mistakes=(
        change("counted once", "You count the pairs once, before the first merge. A merge changes the text: old pairs get rarer, and pairs with the new id appear. Count again before each merge.", "np.array([pair for pair, _ in Counter(pairwise(ids)).most_common(count)])", start="pairs = []\ncounts = Counter(pairwise(ids))", loop=_learned("pair = counts.most_common(1)[0][0]", keep="pairs.append(pair)\ndel counts[pair]")),
        change("the text stays", "All your pairs are the same one, because no count of yours sees a merged text. Count inside the loop, so that each round counts anew, and keep what `merge` returns: `ids = merge(…)`.", start="pairs = []\nfirst = Counter(pairwise(ids)).most_common(1)[0][0]", loop=(_learned("pair = first"), _learned(step="merge(ids, pair, new)"), _learned(step="merged = merge(ids, pair, new)"))),
        change("the rarest pair", "You take a rare pair. The most frequent one has the *largest* count.", loop=_learned("counts = Counter(pairwise(ids))\npair = min(counts, key=counts.get)")),
        change("the largest ids", "You take the pair with the largest ids. Which pair has the largest *count*?", loop=_learned("pair = max(Counter(pairwise(ids)))")),
        change("one new id for all", "Every merge gets the same new id, so that different pieces look alike from then on. The first merge gets base, and each one after it gets the next number.", loop=_learned(step="ids = merge(ids, pair, base)")),
        change("one too high", "Your new ids begin at base + 1. The first merge gets base itself: let the number grow only after it has been used.", loop=_learned(news="range(base + 1, base + count + 1)")),
        change("every second new id", "Your new ids grow by 2 from merge to merge, because you count on twice: once by the loop's variable, and once by changing `base`. One of them is enough.", loop=_learned(news="range(base, base + 2 * count, 2)")),
        change("the largest id so far", "Your new id depends on which ids occur in the text. Not all ids below base have to occur. The first merge gets base, and each one after it gets the next number.", loop=(_learned(step="ids = merge(ids, pair, max(ids) + 1)"), _learned(step="ids = merge(ids, pair, len(set(ids)))"))),
        change("new ids that exist", "Your new ids begin at 0, and these ids stand for characters already. The first new id is base.", loop=(_learned(news="range(count)"), _learned(news="range(1, count + 1)"))),
        change("from base to count", "`count` says how many merges to learn, and your loop takes it for the last id. It should go from base up to base + count.", loop=_learned(news="range(base, count)")),
        change("one too few", "You learn one merge too few. A `range` ends before its last number: `range(base, base + count)` gives `count` numbers, and the first of them is base.", loop=(_learned(news="range(base, base + count - 1)"), _learned(news="range(base + 1, base + count)"))),
        change("two frequent ids", "You count single ids. Two ids that are frequent need not be neighbours: count pairs.", loop=_learned("pair = tuple(id_ for id_, _ in Counter(ids.tolist()).most_common(2))")),
        change("no pair", "You give `merge` a single number, an id or a count, in the place of a pair of ids. The keys of `Counter(pairwise(ids))` are pairs, and its values are counts.", loop=(_learned("pair = Counter(ids).most_common(1)[0][0]"), _learned("counts = Counter(pairwise(ids))\npair = max(counts.values())"))),
        change("the second in the second round", "In the second round you take the second pair, and so on. Each round counts anew, so that the most frequent pair is first every time: `Counter(…).most_common(1)[0][0]`.", loop=_learned("pair = Counter(pairwise(ids)).most_common()[new - base][0]")),
        change("old counts stay", "Your counts add up over the rounds, so that pairs that are gone still count. Begin each round with a new `Counter`.", start="pairs, counts = [], Counter()", loop=_learned("counts.update(pairwise(ids))\npair = counts.most_common(1)[0][0]")),
        change("the pair before the text", "`merge` takes the text first, then the pair, then the new id.", loop=_learned(step="ids = merge(pair, ids, new)")),
        change("every second pair", "You count only every second pair. In a b c, both a b and b c are pairs of neighbours.", loop=_learned("pair = Counter(zip(ids[::2], ids[1::2])).most_common(1)[0][0]")),
        change("in either order", "You count a b and b a together. They are different pairs.", loop=_learned("pair = Counter(tuple(sorted(pair)) for pair in pairwise(ids)).most_common(1)[0][0]")),
        change("with its count", "This is (pair, count). Write `.most_common(1)[0][0]`.", loop=_learned("pair = Counter(pairwise(ids)).most_common(1)[0]")),
        change("a list with its count", "`Counter(…).most_common(1)` is a list with one entry, (pair, count). The pair alone is `Counter(…).most_common(1)[0][0]`.", loop=_learned("pair = Counter(pairwise(ids)).most_common(1)")),
        change("rows with counts", "Keep the pair, without its count.", loop=tuple(_learned("pair, most = Counter(pairwise(ids)).most_common(1)[0]", keep=f"pairs.append({row})") for row in ("(*pair, most)", "(most, *pair)"))),
        change("the merged text", "You return the merged text. The pairs are asked for, in the order of the merges.", answer="return ids"),
        change("the new ids", "You return the new ids. The pair that each of them stands for is asked for.", "np.arange(base, base + count)"),
        change("the last pair", "You return the last pair alone. All pairs are asked for: keep each one in a list.", answer="return np.array(pair)"),
        change("one long row", "All ids stand in one long row. Append each pair as it is, so that its two ids stay together.", loop=_learned(keep="pairs.extend(pair)")),
        change("three in a row", "You keep three numbers for each merge. The two ids of the pair are enough: the new ids are base, base + 1, and so on.", loop=_learned(keep="pairs.append((*pair, new))")),
        change("stopped in the loop", "Your `return` stands inside the loop, which ends in its first round. It belongs below, as far left as `for`.", loop=_learned(last="return np.array(pairs)")),
        change("the other way round", "Your pairs stand in the wrong order. The first merge comes first.", answer="return np.array(pairs[::-1])"),
    ),
    praise="Right for six texts. Byte-pair tokenizers, such as GPT-2's, are learned by this loop.",
)

# --- Bits a character -----------------------------------------------------------------------------------------------


def _bits_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, longest: int = 9, dtype: type = np.float64) -> Case:
        nats: Array = rng.gamma(2.0, 1.5, size=T).astype(dtype)
        return Case(label, (nats, rng.integers(1, longest + 1, size=T)))

    return [
        case("6 tokens", 6),
        case("a single token", 1),
        case("40 tokens of up to 15 characters", 40, 15),
        case("tokens that are single characters", 7, 1),
        case("float32 input", 12, dtype=np.float32),
        Case("two tokens of 1 and 9 characters", (np.array([4.0, 1.0]), np.array([1, 9]))),
        case("600 tokens", 600),  # the product of their probabilities is too small for a number
    ]


_BITS = Exercise(
    name="bits_per_character",
    takes="nats, lengths",
    task="""Bits a character, from what a model pays for each token.

nats: (T,), −ln p of each token. lengths: (T,), how many characters each token has,
at least 1. Returns one number: all bits, divided by all characters.
nats and lengths stay as they were.""",
    steps={"bits": "bits = nats / np.log(2)", "answer": "return bits.sum() / lengths.sum()"},
    cases=_bits_cases,
    returns=("bits",),
    hints=(
        "Two steps: turn nats into bits, then divide what the whole text costs by its number of characters. What is −log₂ p, if you know −ln p?",
        "log₂ p = ln p / ln 2, so divide by `np.log(2)`. Sum the bits of all tokens, and sum the lengths of all tokens.",
    ),
    mistakes=(
        change("nats are not bits", "These are nats. A nat is 1 / ln 2 bits, about 1.44: divide by `np.log(2)`.", bits="bits = nats"),
        change("times ln 2", "You multiply by ln 2, which turns bits into nats. From nats to bits, divide by `np.log(2)`.", bits="bits = nats * np.log(2)"),
        change("the wrong logarithm", "You divide by the logarithm of 2 to base 10. Nats are natural logarithms: divide by `np.log(2)`.", bits="bits = nats / np.log10(2)"),
        change("the product of probabilities", "You multiply the probabilities of all tokens. In a long text the product is smaller than any number that a computer keeps, and becomes 0. Add up the logarithms instead: `nats.sum()`.", "-np.log2(np.prod(np.exp(-nats))) / lengths.sum()"),
        change("the logarithm of the nats", "`nats` is a logarithm already, −ln p. To change its base, divide by `np.log(2)`; no second logarithm is needed.", bits=("bits = np.log2(nats)", "bits = np.log(nats) / np.log(2)", "bits = -np.log2(nats)")),
        change("bits a token", "You divide by the number of tokens. Divide by the number of characters, `lengths.sum()`.", answer=("return bits.mean()", "return bits.sum() / len(lengths)")),
        change("a mean of ratios", "You divide token by token and then average, so that a token of one character counts as much as one of nine. Divide the sum of all bits by the sum of all characters.", answer=("return (bits / lengths).mean()", "return np.mean(bits / lengths)")),
        change("a sum of ratios", "You divide token by token and add the results up. Add up first: all bits, divided by all characters.", answer="return (bits / lengths).sum()"),
        change("upside down", "This is characters a bit. Turn it around: bits divided by characters.", answer=("return lengths.sum() / bits.sum()", "return lengths.mean() / bits.mean()")),
        change("multiplied", "You multiply by the characters a token has. The bits of one token are shared among its characters: divide.", answer=("return bits.mean() * lengths.mean()", "return bits.sum() * lengths.sum()", "return (bits * lengths).mean()")),
        change("the whole text", "This is what the whole text costs. Divide by its number of characters, `lengths.sum()`.", answer="return bits.sum()"),
        change("weighted by length", "This averages the tokens' bits, weighted by their lengths: a number of bits a token. Divide the sum of all bits by the sum of all characters.", answer=("return (bits * lengths).sum() / lengths.sum()", "return np.average(bits, weights=lengths)")),
        change("not added up", "You return a number for each token. Add up all bits and all characters, then divide once.", answer="return bits / lengths"),
        change("a perplexity", "This is a perplexity, 2 to the power of the bits. The bits themselves are asked for.", answer="return 2 ** (bits.sum() / lengths.sum())"),
    ),
    praise="Right for seven texts. In this unit, models with different tokenizers can be compared.",
    in_pytorch="""# F.cross_entropy(logits, ids, reduction="none") gives these nats. Its default is their mean: nats a token.
bits = nats.sum() / torch.log(torch.tensor(2.0)) / lengths.sum()""",
)

# fmt: on

EXERCISES = (_MERGE, _LEARN, _BITS)
