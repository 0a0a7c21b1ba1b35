"""The two pieces of HTML that checks and questions are made of."""

import html
import re


def to_html(text: str) -> str:
    """Return plain text with `code` in backticks as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)).replace("\n", "<br>")


def details(summary: str, body: str) -> str:
    """Return a line that opens on request, by mouse or keyboard, in every notebook viewer, with or without a kernel."""
    return f'<details style="margin:4px 0"><summary style="cursor:pointer">{summary}</summary>{body}</details>'
