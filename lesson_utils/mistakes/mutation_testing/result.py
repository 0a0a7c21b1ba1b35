"""The answer of `check.finds_bugs`: how many bugs a test finds, which survive, and why; as text and as a page."""

import html
import re
from dataclasses import dataclass, field

from lesson_utils.mistakes.verdict import COLOURS, CheckResult, details, to_html


@dataclass(frozen=True)
class TestResult(CheckResult):
    """The bugs that a test finds, and those that survive it."""

    __test__ = False  # for pytest: this class is no test
    found: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()  # names of the reasons
    groups: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)  # why, and which
    more: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # titles and code, to be opened

    @property
    def total(self) -> int:
        return len(self.found) + len(self.survivors)

    @property
    def text(self) -> str:
        return "\n".join([self.message, *("\n  · ".join([why, *which]) for why, which in self.groups)])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Show the message, a square for each bug (filled if it was found), the reasons, and code to be opened."""
        page = f"<p><strong>{self.headline}</strong> {_linked(self.message)}</p>"
        if self.total:
            style = "display:inline-block;width:14px;height:14px;margin-right:3px;border:2px solid"
            squares = f'<span style="{style} {COLOURS[True]};background:{COLOURS[True]}"></span>' * len(self.found)
            squares += f'<span style="{style} {COLOURS[False]}"></span>' * len(self.survivors)
            words = f"{len(self.found)} of {self.total} bugs found"
            page += f'<p role="img" aria-label="{words}" style="margin:4px 0;line-height:1">{squares}</p>'
        for why, which in self.groups:
            items = "".join(f"<li>{_linked(bug)}</li>" for bug in which)
            page += f'<p style="margin:8px 0 0">{to_html(why)}</p><ul style="margin:2px 0 0">{items}</ul>'
        page += "".join(details(html.escape(title), f"<pre>{html.escape(code)}</pre>") for title, code in self.more)
        box = f'<div role="status" style="border-left:4px solid {COLOURS[self.passed]};padding:2px 12px">{page}</div>'
        return {"text/html": box, "text/plain": f"{self.headline} {self.text}"}


def _linked(text: str) -> str:
    """Return a text as HTML, with `owner/name#7` as a link."""
    link = r'<a href="https://github.com/\1/issues/\2" target="_blank">\g<0></a>'
    return re.sub(r"\b([\w.-]+/[\w.-]+)#(\d+)", link, to_html(text))
