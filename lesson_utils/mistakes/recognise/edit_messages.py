"""Messages for edits: the cure first, with only what changes, then the reason."""

import ast
import copy
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lesson_utils.mistakes.recognise.learner_code import LearnerCode
from lesson_utils.mistakes.recognise.mutation_operators import KEEPS, name_called, number, with_fields
from lesson_utils.mistakes.recognise.tree_edits import Edit, all_applied, varying

# Why an edit mends a line, by its kind; the earlier, the likelier, where several would do. {old} and {new} are what changes.
REASONS = {
    "pitfall": "",  # see pitfalls.py, as for the next
    "habit": "",
    "thrown away": "The call makes a new array, and this line throws it away.",
    "results": "Return what is asked for, and in that order.",
    "axis": "The call must run along another axis.",
    "keepdims": "`keepdims=True` keeps the axis, with length 1, so that the result lines up with the array it comes from.",
    "transpose": "`@` sums over the last axis of the left array and the last but one of the right one.",
    "axes swapped": "These two axes have to change places, and no others.",
    "inverted": "True and False are the wrong way round.",
    "comparison": "",  # see _reason_of_kind
    "bound": "A slice `a:b` begins at a and ends before b.",
    "off by one": "The count is off by one.",
    "size": "`{old}` is the length of another axis.",
    "backwards": "With a step of −1, `range` counts backwards.",
    "new axis": "Arrays line up from the right, so the place of the new axis decides which axes meet.",
    "axes in front": "`:` stands for one axis, and `...` for all the axes in front.",
    "sides": "The two sides have changed places.",
    "exchanged": "Each of the two stands where the other one belongs.",
    "brackets": "The brackets decide what Python computes first.",
    "sign": "The sign is the wrong way round.",
    "complement": "The formula has 1 minus this.",
    "indented": "Inside the block, the line runs in every round.",
    "assigned": "`=` puts a new value in the place of the old one, and `+=` or `-=` changes it by that much.",
    "in place": "The line writes into an array that is still needed, or that is the caller's. A slice is a view of its array, too.",
    "keyword": "Without this argument, the call does what is asked for.",
    "unwrapped": "This step is not needed here.",
    "term": "This part is not needed here.",
    "function": "",  # DOES has the words
    "operator": "The formula needs another operation here.",
    "order": "The arguments stand in another order.",
    "letters": "Letters of `einsum` that are the same run together, and a letter that is missing behind `->` is summed over.",
    "letters in order": "In `einsum`, an array's letters are its axes, in their order; those behind `->` are the result's.",
    "letters swapped": "In `einsum`, an array's letters are its axes, in their order; those behind `->` are the result's.",
    "constant": "Another number belongs here.",
    "name": "",  # the cure says all
    "branches": "The other branch is right in every case.",
    "index": "The whole array is needed here, not a part of it.",
    "condition": "Nothing has to be asked here.",
    "statement": "It is not needed here.",
    "statements swapped": "Each line uses what the lines above it made.",
    "missing term": "A part of the formula is missing here.",
    "missing": "A step is missing here.",
    "picked": "Only a part of the array is needed here.",
    "arithmetic": "A step is missing here.",
}

# What a call does that should not be there.
DROPPED = {
    **dict.fromkeys(("abs", "absolute", "fabs"), "`{name}` loses the sign."),
    **dict.fromkeys(("int", "floor", "trunc", "fix"), "`{name}` cuts off the decimals."),
    **dict.fromkeys(("round", "rint", "around", "ceil"), "`{name}` loses the decimals."),
    "astype": "`astype(int)` cuts off the decimals.",
    "squeeze": "`squeeze` also drops other axes of length 1.",
    **dict.fromkeys(("clip", "max", "min", "maximum", "minimum"), "`{name}` changes every value beyond its limit."),
    **dict.fromkeys(("sort", "sorted", "reversed", "flip", "roll"), "`{name}` moves the entries to other places."),
    "nan_to_num": "`nan_to_num` hides where a number is missing, and mends nothing.",
    **dict.fromkeys(("unique", "set"), "`{name}` drops what occurs twice."),
}
# What one thing does in the place of another.
CHANGED = {
    ("//", "/"): "`//` rounds down to a whole number.",
    ("*", "**"): "`a * b` is a product, and `a**b` is a power.",
    ("*", "@"): "`*` multiplies entry by entry, and `@` also adds the products up.",
    ("@", "*"): "`@` adds the products up, and `*` leaves each in its place.",
    **dict.fromkeys((("mean", "sum"), ("sum", "mean")), "`mean` also divides by the number of terms."),
    **dict.fromkeys((("std", "var"), ("var", "std")), "`std` is the root of `var`."),
    **dict.fromkeys((("tile", "repeat"), ("repeat", "tile")), "`tile` lays whole copies behind each other, and `repeat` repeats each entry on the spot."),
    **dict.fromkeys((("zeros", "ones"), ("ones", "zeros")), "`zeros` fills an array with 0 or False, and `ones` with 1 or True."),
    **dict.fromkeys((("stack", "concatenate"), ("concatenate", "stack")), "`stack` makes a new axis, and `concatenate` joins along one that is there."),
    **dict.fromkeys((("ones", "eye"), ("eye", "ones")), "`ones` fills an array with 1, and `eye` has ones on the diagonal alone."),
    ("squeeze", "squeeze"): "Without an axis, `squeeze` drops every axis of length 1.",
    **dict.fromkeys((("log10", "log"), ("log2", "log")), "To `np.exp` belongs `np.log`."),
}  # fmt: skip
# What functions do that are taken for each other.
DOES = {
    "sum": "adds the numbers up", "mean": "takes the average of the numbers", "prod": "multiplies the numbers", "median": "takes the number in the middle",
    "max": "takes the largest number", "min": "takes the smallest number", "cumsum": "returns every sum on the way",
    "maximum": "takes the larger of two numbers", "minimum": "takes the smaller of two numbers",
    "argmax": "returns the index of the largest number", "argmin": "returns the index of the smallest number",
    "zeros_like": "fills an array with 0",
    "ones_like": "fills an array with 1", "sort": "returns the numbers in order", "argsort": "returns their indices in order",
    "round": "rounds to the nearest number", "rint": "rounds to the nearest number", "floor": "rounds down",
    "ceil": "rounds up", "trunc": "cuts off the decimals",
    "tril": "keeps the entries below the diagonal", "triu": "keeps the entries above the diagonal",
}  # fmt: skip
# What to do where whole statements change.
OF_STATEMENTS = {
    "statement": "leave out `{first}`{more}.",
    "condition": "leave out `{first}`, so that what stands in it always runs.",
    "statements swapped": "exchange `{first}` and the line below it.",
    "indented": "move `{first}` below the block, as far left as the block's first line.",
    "exchanged": "exchange `{before}` and `{after}`.",
}
ADDING = {"missing", "missing term", "sign", "complement"}
TAKING = {"term", "unwrapped", "index", "statement"}
# How Python writes each of its operators.
_A = ast.Name("a")
SIGNS: dict[type[ast.AST], str] = {
    **{op: ast.unparse(ast.BinOp(_A, op(), _A)).strip("a ") for op in ast.operator.__subclasses__()},
    **{op: ast.unparse(ast.UnaryOp(op(), _A)).strip("a ") for op in ast.unaryop.__subclasses__()},
}

LONG = 60  # letters of code that are too many to compare at a glance


def touch(a: Edit, b: Edit) -> bool:
    """Tell whether two edits change the same expression: then they are told as one."""
    return not (a.words or b.words) and (b.parent is a.old or a.parent is b.old or a.old is b.new or b.old is a.new)


def contradict(a: Edit, b: Edit) -> bool:
    """Tell whether one of two edits puts in what the other one takes out, or, of an expression or a line, turns round."""
    adding = [edit.kind in ADDING for edit in (a, b)]
    if (a.kind in TAKING and adding[1] and _is_moved(a, b)) or (b.kind in TAKING and adding[0] and _is_moved(b, a)):
        return True
    return any(adding) if touch(a, b) else all(adding) and a.line == b.line


def _is_moved(taken: Edit, put: Edit) -> bool:
    """Tell whether what one edit takes out, another one puts in: the same names, or one call for another."""
    gone, come = _words(*taken.texts()), _words(*reversed(put.texts()))
    return not gone.isdisjoint(come) or all(any("(" in word for word in words) for words in (gone, come))


def _words(text: str, other: str) -> set[str]:
    """Return the names in a text, with the bracket of a call, that another text does not have."""
    names, its = (set(re.findall(r"[^\W\d]\w*\(?", x)) for x in (text, other))
    return names - its


def repair_messages(edits: Sequence[Edit], learner: LearnerCode) -> list[str]:
    """Return what a learner reads of edits that mend lines together; of two of one expression, what both change at once."""
    for a, b in itertools.combinations(edits, 2):
        if told := _told_as_one(a, b, learner):
            return [told, *repair_messages([edit for edit in edits if edit not in (a, b)], learner)]
    return [repair_message(edit, learner).strip() for edit in edits]


def _told_as_one(a: Edit, b: Edit, learner: LearnerCode) -> str:
    """Return the words for two edits of one place, or of code inside the other's: followed one by one, they are at odds."""
    is_one_place = touch(a, b)
    if not is_one_place and (a.line != b.line or any(e.words or e.cure or e.kind == "results" for e in (a, b))):
        return ""
    parts = [_changed_part([edit], learner.body) for edit in (a, b)]
    if [*map(_plain, parts[0])] == [*map(_plain, reversed(parts[1]))]:
        return "{}: exchange `{}` and `{}`. {}".format(_lines(a, learner), *map(_plain, parts[0]), REASONS["exchanged"])
    one, other = (learner.text(old) for old, _ in parts)
    is_inside = (one in other or other in one) and not any(_left_out(*part) for part in parts)
    if not is_one_place and one != other and not is_inside:
        return ""
    cure = f"{_lines(a, learner)}: {_write_instead([a, b], *_changed_part([a, b], learner.body), learner)}"
    # Of a place that both change, each one's reason alone is not true.
    why = [reason(e, *part) if is_one_place else own_reason(*part) for e, part in zip((a, b), parts, strict=True)]
    return " ".join(filter(None, dict.fromkeys([cure, *why])))


def _plain(node: ast.AST) -> str:
    """Return code in one spelling: `0::2` is `::2`."""
    text = ast.unparse(node)
    return text.removeprefix("0") if isinstance(node, ast.Slice) and text.startswith("0:") else text


def _write_instead(edits: Sequence[Edit], old: ast.AST, new: ast.AST, learner: LearnerCode) -> str:
    """Return what to write instead of a learner's code, written as they write: with no brackets but those that it takes."""
    before, after = learner.text(old), _in_brackets_if_needed(ast.unparse(old), ast.unparse(new), edits, learner)
    if '"' in before and "'" not in before:
        after = after.replace("'", '"')
    for own in re.findall(r"(?<![\w.])\d[\d_.]*e[+-]?\d+", before):  # 1e-5, and not 1e-05
        after = after.replace(repr(float(own)), own)
    if isinstance(old, ast.Tuple) and isinstance(new, ast.Tuple) and not before.startswith("("):
        after = after[1:-1]
    return f"write `{after}` instead of `{before}`."


def _in_brackets_if_needed(before: str, after: str, edits: Sequence[Edit], learner: LearnerCode) -> str:
    """Return code in brackets, if it would mean something else without them in the place of what was there."""

    def times(text: str, edits: Sequence[Edit]) -> int:
        with all_applied(edits):
            return "\n".join(map(ast.unparse, learner.body)).count(f"({text})")

    come, gone = times(after, edits) - times(after, ()), times(before, ()) - times(before, edits)
    return f"({after})" if come > gone else after


def _lines(edit: Edit, learner: LearnerCode) -> str:
    """Return which lines an edit mends: "Line 3", or "Lines 3, 5 and 6"."""
    places = () if edit.cure or _is_in_lines_alike(edit) else edit.also
    return _numbered((edit, *places), learner)


def _numbered(edits: Sequence[Edit], learner: LearnerCode) -> str:
    numbers = [str(n) for n in sorted({e.line for e in edits})]
    return f"Lines {', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else f"Line {numbers[0]}"


def _is_in_lines_alike(edit: Edit) -> bool:
    """Tell whether an edit does the same to other names in other lines."""
    return edit.kind != "exchanged" and any(varying(e) != edit.words for e in edit.also)


def repair_message(edit: Edit, learner: LearnerCode) -> str:
    """Return what a learner reads of the edit that mends a line of theirs."""
    line = _lines(edit, learner)
    if edit.cure:
        return f"{line}: {edit.cure} {edit.why}"
    if edit.words:
        kind = "inverted" if edit.words[0].startswith("~") else edit.kind
        return f"{line}: {_statement_cure(edit, learner)} {own_reason(edit.old, edit.new) or _reason_of_kind(kind, edit, *edit.words)}"
    old, new = _changed_part([edit], learner.body)
    if isinstance(old, ast.Attribute) and isinstance(new, ast.Attribute) and not isinstance(old.value, ast.Name):
        is_method = ast.dump(old.value) == ast.dump(new.value)
        old, new = (ast.Name(f".{old.attr}"), ast.Name(f".{new.attr}")) if is_method else (old, new)
    if isinstance(old, ast.IfExp) and edit.kind == "branches" and not isinstance(new, ast.IfExp):
        return f"{line}: leave out the special case, `{ast.unparse(new)}` is right in every case."
    if edit.kind == "results":
        elements = edit.new.elts if isinstance(edit.new, ast.Tuple) else [edit.new]
        return f"{line}: write `return {', '.join(map(ast.unparse, elements))}`. {REASONS['results']}"
    gone, written = _left_out(old, new), learner.source.splitlines()[edit.line - 1].replace(" ", "")
    before, after = learner.text(old), ast.unparse(new)
    which = f" in `{before}`" if written.count(gone.replace(" ", "")) > 1 else ""
    inside = ""
    if "…" in gone:
        inside = f" around `{after}`" if len(after) <= LONG else ", and keep what stands for the dots"
    cure = f"leave out `{gone}`{which}{inside}." if gone else _write_instead([edit], old, new, learner)
    return f"{line}: {cure} {reason(edit, old, new)}"


def _statement_cure(edit: Edit, learner: LearnerCode) -> str:
    before, after = edit.texts()
    if edit.kind in OF_STATEMENTS:
        more = " and what stands in it" if "\n" in before else ""
        return OF_STATEMENTS[edit.kind].format(first=before.partition("\n")[0], more=more, before=before, after=after)
    inside = _in_brackets_if_needed(before, after, [edit], learner)
    cure = f"write `{inside}` instead of `{before}`" if after else f"leave out `{before}`"
    cure = cure if before else f"add `{after}` to each call"
    if _is_in_lines_alike(edit):
        return f"{cure}, and change {_numbered(edit.also, learner).lower()} in the same way."
    lines = {e.line for e in (edit, *edit.also)}
    if len(lines) <= len(edit.also):
        cure += f", everywhere in {'these lines' if len(lines) > 1 else 'this line'}"
    return f"{cure}."


def own_reason(old: object, new: object) -> str:
    """Return the reason that holds for just this edit: of the call that goes, or of what changes into what; "" if none."""
    name = name_called(old)
    if name and isinstance(old, ast.Call) and isinstance(new, ast.AST):
        if ast.dump(new) in map(ast.dump, list(ast.walk(old))[1:]):  # a part of it
            to = " ".join(map(ast.unparse, old.args)) if name == "astype" else "int"
            if re.search(r"int(8|16)", to):
                return f"`{to}` has no room for larger numbers, which start again from its smallest."
            if name in ("max", "min") and (old.keywords or len(old.args) < 2):
                return f"`{name}` leaves one number of many."
            return DROPPED.get(name, "").format(name=name) if "int" in to else ""
        kept = map(ast.unparse, getattr(new, "keywords", ()))
        if any(k.arg == "dtype" and "int" in ast.unparse(k) and ast.unparse(k) not in kept for k in old.keywords):
            return "An array of whole numbers cuts off the decimals of what is put into it."
        if isinstance(new, ast.Call) and any(k.arg == "order" for k in old.keywords):
            return "`order='F'` counts the first index fastest, so that the entries move to other places."
    if isinstance(old, ast.BinOp) and isinstance(new, ast.BinOp):
        has_same_sides = ast.dump(with_fields(old, op=new.op)) == ast.dump(new)
        return CHANGED.get((SIGNS[type(old.op)], SIGNS[type(new.op)]), "") if has_same_sides else ""
    return CHANGED.get((name, name_called(new)), "")


def reason(edit: Edit, old: ast.AST, new: ast.AST) -> str:
    """Return why an edit mends a line: its own reason, or that of its kind."""
    gone = _left_out(old, new)
    if edit.why:
        return edit.why
    if gone == ".T":
        return "`.T` turns the order of all axes round."
    has_sign = ast.UnaryOp in map(type, (edit.old, edit.new, edit.parent))  # −1 for −2 is an axis, maybe, or the last
    if edit.kind == "off by one" and has_sign:
        return ""
    kind = "off by one" if edit.kind == "term" and gone in ("- 1", "+ 1") else "inverted" if gone == "~" else edit.kind
    return own_reason(edit.old, edit.new) or _reason_of_kind(kind, edit, ast.unparse(old), ast.unparse(new))


def _reason_of_kind(kind: str, edit: Edit, old: str, new: str) -> str:
    if kind == "index" and old.endswith("::-1]"):
        return "A step of −1 turns the order round."
    if kind == "index" and re.search("None|newaxis", ast.unparse(edit.old.slice)):  # type: ignore[attr-defined]
        return "This axis of length 1 is one too many."
    names = name_called(edit.old), name_called(edit.new)
    if kind == "function" and all(name in DOES for name in names):
        return " and ".join(f"`{name}` {DOES[name]}" for name in names) + "."
    operators = {type(getattr(node, "op", None)) for node in (edit.old, edit.new)}
    if kind == "operator" and operators == {ast.Add, ast.Sub}:
        return REASONS["sign"]
    if kind == "off by one" and isinstance(edit.parent, ast.Assign) and isinstance(edit.new, ast.Constant):
        return REASONS["constant"]
    has_axis = "axis" in old or any(map(_is_axis, getattr(edit.old, "args", ())))
    if kind == "axis" and names[0] in KEEPS and "axis" in new and not has_axis:
        return "Without `axis`, the call takes all numbers of the array together."
    if kind == "constant" and "-np.inf" in new:
        return "Scores may be lower than any number, and −∞ is below them all."
    if kind == "comparison" and is_limit(edit):
        return "The two signs differ where both sides are equal."
    return REASONS[kind].format(old=old, new=new)


def _is_axis(argument: ast.expr) -> bool:
    return number(argument) is not None or isinstance(argument, ast.Tuple)


def is_limit(edit: Edit) -> bool:
    """Tell whether an edit puts `<` in the place of `<=`, or the reverse: the limit itself belongs to one side."""
    operators = {type(op) for node in (edit.old, edit.new) for op in getattr(node, "ops", ())[:1]}
    return operators in ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE})


def _left_out(old: ast.AST, new: ast.AST) -> str:
    """Return what goes if one of its own operands or arguments stands in the place of an expression; "" if none does."""
    rest = ast.dump(new)
    match old:
        case ast.BinOp(left=left, op=op, right=right) if rest == ast.dump(left):
            return f"{SIGNS[type(op)]} {_in_brackets(right)}"
        case ast.BinOp(left=left, op=op, right=right) if rest == ast.dump(right):
            return f"{_in_brackets(left)} {SIGNS[type(op)]}"
        case ast.UnaryOp(op=op, operand=operand) if rest == ast.dump(operand):
            return SIGNS[type(op)]
        case ast.Attribute(value=value, attr=attr) if rest == ast.dump(value):
            return f".{attr}"
        case ast.Subscript(value=value) if ast.unparse(new) in (ast.unparse(value), f"{ast.unparse(value)}[:]"):
            inner = ast.unparse(value)
            return ast.unparse(old).removeprefix(f"({inner})").removeprefix(inner)
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if rest == ast.dump(value):
            return f".{ast.unparse(ast.Call(ast.Name(attr), old.args, old.keywords))}"
        case ast.Call(args=args) if rest in map(ast.dump, args):
            shown = [ast.Name("…") if ast.dump(a) == rest else a for a in args]
            return ast.unparse(ast.Call(old.func, shown, old.keywords))
        case ast.Call(keywords=keywords) if isinstance(new, ast.Call) and len(new.keywords) == len(keywords) - 1:
            kept = [ast.dump(k) for k in new.keywords]
            return ", ".join(ast.unparse(k) for k in keywords if ast.dump(k) not in kept)
    return ""


def _in_brackets(node: ast.expr) -> str:
    return f"({ast.unparse(node)})" if isinstance(node, ast.BinOp | ast.Compare | ast.IfExp) else ast.unparse(node)


def _changed_part(edits: Sequence[Edit], body: Sequence[ast.stmt]) -> tuple[ast.AST, ast.AST]:
    """Return the smallest part of a body that edits change and that stands only once in its line, before and after."""
    before = copy.deepcopy(ast.Module(list(body), []))
    with all_applied(edits):
        after = copy.deepcopy(ast.Module(list(body), []))
    way = list(_differing(before, after))
    whole = next((pair for pair in reversed(way) if isinstance(pair[0], ast.stmt)), way[0])
    line, found = ast.unparse(whole[0]), None
    for a, b in reversed(way):
        text = ast.unparse(a)
        if not isinstance(a, ast.expr | ast.keyword) or line.count(text) != 1 or ast.unparse(b) == ":":
            continue
        if isinstance(a, ast.Name) or getattr(a, "attr", "") == "shape" or number(a) is not None:
            found = (a, b) if not found or isinstance(a, ast.UnaryOp) else found  # what stands around it says more
        else:
            return found if found and len(text) > LONG else (a, b)
    return found or whole


def _differing(a: ast.AST, b: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the pairs of nodes on the way down to the only place in which two trees differ."""
    yield a, b
    if type(a) is not type(b):
        return
    apart: list[tuple[Any, Any]] = []
    for name in a._fields:
        x, y = getattr(a, name, None), getattr(b, name, None)
        alike = isinstance(x, list) and isinstance(y, list) and len(x) == len(y)
        pairs = zip(x, y, strict=True) if alike else [(x, y)]  # type: ignore[arg-type]
        apart += [(p, q) for p, q in pairs if _dumped(p) != _dumped(q)]
    if len(apart) == 1 and all(isinstance(n, ast.expr | ast.stmt | ast.keyword | ast.comprehension) for n in apart[0]):
        yield from _differing(*apart[0])


def _dumped(x: object) -> object:
    return ast.dump(x) if isinstance(x, ast.AST) else x
