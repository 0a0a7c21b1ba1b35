"""Messages for edits: of the learner's own line, and of a line of the solution that does the same as the learner's."""

import ast

from lesson_utils.mistakes.recognise.tree_edits import Edit

# What an edit says of what was written; the earlier, the likelier, where several would do.
REASONS = {
    "results": "what is returned is in another order, or not all of it",
    "axis": "the axis is another one",
    "keepdims": "the number of axes that are left does not fit",
    "transpose": "an array lies the wrong way round",
    "axes swapped": "other axes have to change places",
    "inverted": "True and False are the wrong way round",
    "comparison": "the comparison is another one",
    "bound": "the slice has another end",
    "off by one": "a number is {size} by one",
    "size": "this is another size than the one that belongs here",
    "new axis": "the new axis is in another place",
    "sides": "the two sides have changed places",
    "brackets": "the brackets belong elsewhere",
    "sign": "the sign is turned around",
    "indented": "the line stands inside the block; it belongs below it, as far left as its first line",
    "assigned": "`=` puts a new value in the place of the old one, `+=` adds to it",
    "in place": "it writes into an array that is still needed, or that is the caller's; make a new one",
    "keyword": "an argument is too much",
    "unwrapped": "there is one call too many",
    "term": "a part of it does not belong here",
    "function": "this is another function than the one that belongs here",
    "operator": "the operation is another one",
    "order": "the arguments are in another order",
    "letters": "the letters of the result are others",
    "constant": "this is another number than the one that belongs here",
    "name": "this is another variable than the one that belongs here",
    "branches": "the branches have changed places, or there is one too many",
    "index": "the index does not belong here",
    "condition": "there is nothing to ask here",
    "statement": "this line does not belong here",
    "statements swapped": "the two lines are in the wrong order",
    "missing term": "a factor or a term is missing",
    "missing": "something is missing around it",
    "picked": "a part of it is asked for",
    "arithmetic": "something is missing around it",
    "inserted": "a step is missing",
    "part": "something else belongs here",
}

# Of an edit of the solution, the learner has what comes after it: what was left out is missing there.
REVERSED = REASONS | {
    "unwrapped": "a step is missing",
    "term": "a part of it is missing",
    "index": "an index is missing",
    "keyword": "an argument is missing",
    "missing": "there is a step too many",
    "missing term": "there is a factor or a term too many",
    "picked": "only a part of it is left",
    "condition": "a question is missing",
    "branches": "a branch is missing",
    "indented": "a line stands below the block; it belongs inside",
}


def repair_message(edit: Edit, first_line: int, with_reason: bool) -> str:
    """Return what a learner reads of the edit that mends a line.

    Args:
        first_line: the number of the function's first line.
        with_reason: say what was wrong with the line; else only what would be right, which is all that was measured.
    """
    line, reason = first_line + edit.line - 1, REASONS[edit.kind].format(size=_size(edit.old, edit.new))
    before, after = edit.texts()
    if edit.kind == "inserted":
        return f"A step is missing above line {line}, such as `{after}`.".replace("\n", "`, `")
    if not after:
        why = f"{reason}. Leave it out" if edit.kind == "statement" else reason
        return f"Line {line}, `{before}`: {why}."
    if edit.kind == "statements swapped":
        return f"Line {line}, `{before}`, and the one below it are in the wrong order."
    if not with_reason:
        return f"Line {line}: where `{before}` stands, `{after}` would be right."
    return f"Line {line}, `{before}`: {reason}. It should do what `{after}` does."


def mutant_message(edit: Edit) -> str:
    """Return what a learner without a source reads of an edit of the solution that does the same as their answer."""
    before, after = edit.texts()
    if not after:
        return f"Your results are those without `{before}`: this step is missing, or comes to nothing."
    reason = REVERSED[edit.kind].format(size=_size(edit.new, edit.old))
    return f"Your results are those of `{after}` where `{before}` belongs: {reason}."


def same_numbers_message(edit: Edit) -> str:
    """Return the remark for lines unlike the solution's: results that are the same need not have gone wrong in the same way."""
    before, after = edit.texts()
    changed = f"with `{after}` in the place of `{before}`" if after else f"without `{before}`"
    return f"Our solution gives the same numbers {changed}; the mistake need not be the same."


def _size(has: object, wants: object) -> str:
    """Return whether one of two expressions that are one apart is too large or too small."""
    if not (isinstance(has, ast.expr) and isinstance(wants, ast.expr)):
        return "off"
    try:
        return "too large" if ast.literal_eval(has) > ast.literal_eval(wants) else "too small"
    except (ValueError, TypeError):
        a, b = ast.unparse(has), ast.unparse(wants)
        if a == f"{b} + 1" or b == f"{a} - 1":
            return "too large"
        return "too small" if b == f"{a} + 1" or a == f"{b} - 1" else "off"
