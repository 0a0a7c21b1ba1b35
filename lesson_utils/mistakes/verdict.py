"""The answer of a check, as text and as a page."""

import html
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

COLOURS = {True: "#007A5A", False: "#C14A00", None: "#6B6B6B"}
# A comment, a text, or a keyword, in a style each. The colours are those of JupyterLab's editor, in each of its themes.
PYTHON = re.compile(rf"""(#.*)|(\"{{3}}[\s\S]*?\"{{3}}|"[^"\n]*"|'[^'\n]*')|\b({"|".join(keyword.kwlist)})\b""")
STYLES = (
    "font-style:italic",
    "color:var(--jp-mirror-editor-string-color,inherit)",
    "font-weight:bold;color:var(--jp-mirror-editor-keyword-color,inherit)",
)


def to_html(text: str) -> str:
    """Return plain text with `code` in backticks and words between *stars* as HTML; a star between spaces is a star."""
    marked = r"`([^`]+)`|(?<![\w*])\*(?=[^\s*])([^*`\n]*[^\s*])\*(?![\w*])"
    return re.sub(marked, _marked, html.escape(text, quote=False)).replace("\n", "<br>")


def _marked(found: re.Match[str]) -> str:
    """Write code so that a line ends before or behind it, not in its middle, unless it is long; else emphasis."""
    if found[2]:
        return f"<em>{found[2]}</em>"
    look = ' style="white-space:nowrap"' if len(found[1]) <= 40 else ""
    return f"<code{look}>{found[1]}</code>"


def listed(messages: Iterable[str]) -> str:
    """Return the words for one or several mistakes, numbered; a message that lists some adds each of them."""
    said = [part for message in messages for part in re.split(r"(?:^|\n)\d\. ", without_head(message)) if part]
    if len(said) == 1:
        return said[0]
    head = "Two" if len(said) == 2 else "Three"
    return "\n".join([f"{head} things to mend.", *(f"{n}. {words}" for n, words in enumerate(said, 1))])


def without_head(message: str) -> str:
    """Return what a message lists, to stand behind other words."""
    return re.sub(r"^(Two|Three) things to mend\.\n", "", message)


def details(summary: str, body: str) -> str:
    """Return a line that opens on request, by mouse or keyboard, in every notebook viewer, with or without a kernel."""
    return f'<details style="margin:4px 0"><summary style="cursor:pointer">{summary}</summary>{body}</details>'


def code_to_html(source: str) -> str:
    """Return Python code as HTML, with its comments, texts and keywords told apart."""

    def coloured(found: re.Match[str]) -> str:
        return f'<span style="{STYLES[(found.lastindex or 1) - 1]}">{found[0]}</span>'

    return f'<pre style="margin:8px 0">{PYTHON.sub(coloured, html.escape(source, quote=False))}</pre>'


@dataclass(frozen=True)
class CheckResult:
    """The verdict of a check. `passed` is None for a stub that nobody has worked on yet."""

    passed: bool | None
    message: str
    misconception: str | None = None  # the name of a typed mistake; "" for one that the machine found by itself
    hints: tuple[str, ...] = field(default=(), repr=False)
    solution: str = field(default="", repr=False)
    in_pytorch: str = field(default="", repr=False)

    @property
    def headline(self) -> str:
        return {True: "Correct.", False: "Not yet.", None: "Not attempted yet."}[self.passed]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Show the message, and below it hints and solution, closed."""
        summary = "Compare with our solution" if self.passed else "Show a solution"
        code = code_to_html(self.solution)
        if self.in_pytorch:
            code += f"<p>In PyTorch:</p>{code_to_html(self.in_pytorch)}"
        help_ = details(summary, code) if self.solution else ""
        for n, hint in reversed(list(enumerate(self.hints, 1))):
            if not self.passed:  # each hint holds the next one, so nobody reads further than they need
                help_ = details(f"Hint {n} of {len(self.hints)}", f"<p>{to_html(hint)}</p>{help_}")
        box = f'<div role="status" style="border-left:4px solid {COLOURS[self.passed]};padding:2px 12px">'
        box += f"<p><strong>{self.headline}</strong> {to_html(self.message)}</p>{help_}</div>"
        return {"text/html": box, "text/plain": f"{self.headline} {self.message}"}
