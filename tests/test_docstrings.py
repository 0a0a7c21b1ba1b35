"""Docstrings say what happens: "Return …", "Draw …"; not what something is or whose it is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("lesson_utils", "tools") for path in (ROOT / folder).rglob("*.py"))
# Words that begin a noun clause or a question; a sentence that begins with one of them has no verb to do something.
NO_VERBS = """what how where which who whose whom why when whether of for that this these those
is are was were does do did has have had can could may must shall should will would
it its they their there he she one two three some any all both each every no none not only
in on at by with without within from to into as if so and or but then than
the a an""".split()


def docstrings_of(source):
    """Yield each docstring, with the thing that it belongs to."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield node, text


def problem(node, text):
    """Return what is wrong with the form of a docstring, or None."""
    if re.search('"\n *"', text):
        return "a quotation is broken in two"
    first = text.split(maxsplit=1)[0].strip("“”\"'`(,.:…").lower()
    is_property = any(ast.unparse(mark).endswith("property") for mark in getattr(node, "decorator_list", ()))
    if isinstance(node, ast.FunctionDef) and not is_property:
        return f"it begins with {first!r}: begin with a verb, such as Return or Draw" if first in NO_VERBS else None
    return f"it begins with {first!r}: say it as a sentence" if first in NO_VERBS[:12] else None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_say_what_happens(path):
    found = []
    for node, text in docstrings_of(path.read_text(encoding="utf-8")):
        if why := problem(node, text):
            found.append(f"{getattr(node, 'name', 'the module')}: {why}: {text.splitlines()[0]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('def f():\n    """Return the sum."""', None),
        ('def f():\n    """What is known of it."""', "begins with 'what'"),
        ('def f():\n    """The sum."""', "begins with 'the'"),
        ('class A:\n    """The sum."""', None),
        ('class A:\n    """Who it was."""', "begins with 'who'"),
        ('class A:\n    @property\n    def f(self):\n        """The name of its file."""', None),
        ('def f():\n    """Return it → "\n    "(...)."""', "broken in two"),
    ],
)
def test_the_form_is_checked(source, wrong):
    ((_, found),) = [(node, problem(node, text)) for node, text in docstrings_of(source)]
    assert wrong in found if wrong else found is None
