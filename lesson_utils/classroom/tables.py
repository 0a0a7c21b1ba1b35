"""Tables for notebooks: cells on the page that a screen reader reads by row and column, and columns of plain text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lesson_utils.classroom.formats import minus
from lesson_utils.mistakes.verdict import to_html


@dataclass(frozen=True)
class Table:
    """A table, ready to be shown: its head, and its rows as texts."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]  # for each column, whether it stands at the right, as numbers do

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        def row(texts: Sequence[str], first: str, rest: str) -> str:
            cells = []
            for n, (text, right) in enumerate(zip(texts, self.right, strict=True)):
                kind = (rest if n else first) if text else "td"  # a corner without a word is not a header
                cells.append(f'<{kind} style="text-align:{"right" if right else "left"}">{to_html(text)}</{kind[:2]}>')
            return f"<tr>{''.join(cells)}</tr>"

        top = row(self.head, 'th scope="col"', 'th scope="col"')
        body = "".join(row(texts, 'th scope="row"', "td") for texts in self.rows)
        return {"text/html": f"<table><thead>{top}</thead><tbody>{body}</tbody></table>", "text/plain": str(self)}

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = []
        for row in (self.head, *self.rows):
            texts = zip(row, widths, self.right, strict=True)
            lines.append("  ".join(f"{text:>{width}}" if right else f"{text:{width}}" for text, width, right in texts))
        return "\n".join(line.rstrip() for line in lines)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], form: str | Sequence[str] = ".2f") -> Table:
    """Return a table to show, as the last line of a cell or by `display`.

    Args:
        head: what each column is.
        rows: one thing a column. The first names its row. Text is shown as it is, whole numbers as 12,345, and other
            numbers in `form`.
        form: a format such as ".2f" or ".0%"; or one for each column.

    Raises:
        ValueError: a row has more or fewer columns than the head.
    """
    rows = [tuple(row) for row in rows]
    if odd := next((row for row in rows if len(row) != len(head)), None):
        raise ValueError(f"a row has {len(odd)} columns, {odd}; the head has {len(head)}, {tuple(head)}")
    forms = [form] * len(head) if isinstance(form, str) else form
    texts = tuple(tuple(_written(x, f) for x, f in zip(row, forms, strict=True)) for row in rows)
    right = tuple(bool(rows) and not any(isinstance(row[n], str) for row in rows) for n in range(len(head)))
    return Table(tuple(head), texts, right)


def _written(x: object, form: str) -> str:
    if isinstance(x, str):
        return x
    whole = hasattr(x, "__index__")  # Python's and NumPy's integers
    return minus(f"{x:,}" if whole else format(x, form))
