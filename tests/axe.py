"""axe-core finds what keeps people out of a page: contrast, names, roles, the order of headings."""

import tarfile
from functools import cache

import pytest

from tools.site import fetch

VERSION = "4.14.1"
INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
COLOURS = ("color-contrast", "link-in-text-block")  # what another theme can change
VIOLATIONS = """async ([where, rules]) => (await axe.run(where, {runOnly: rules})).violations.map(
    ({id, nodes}) => `${id}: ${nodes.map(node => node.html.slice(0, 200)).slice(0, 3).join(' … ')}`)"""


def violations(page, where="body", rules=RULES):
    """What is wrong with a page, or with a part of it: a rule, and the nodes that break it."""
    page.evaluate(_script())
    return page.evaluate(VIOLATIONS, [where, list(rules)])


@cache
def _script():
    try:
        archive = fetch.from_npm("axe-core", VERSION, INTEGRITY)
    except fetch.Unreachable as error:
        pytest.skip(str(error))
    with tarfile.open(archive) as package:
        return package.extractfile("package/axe.min.js").read().decode()
