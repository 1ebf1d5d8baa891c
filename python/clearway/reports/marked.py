"""Parts of pages in Markdown that a command writes, between two marks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clearway.files.whole import replace


def put(page: str | Path, name: str, text: str) -> Path:
    """Puts a text between a page's marks of this name; ValueError if they are not there once each, in this order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "page.md"
    ...     _ = page.write_text("<!-- it: begin -->\\nold\\n<!-- it: end -->\\n")
    ...     put(page, "it", "new\\n").read_text()
    '<!-- it: begin -->\\nnew\\n<!-- it: end -->\\n'
    """
    path, before, (begin, end) = Path(page), check(page, name), marks(name)
    head, tail = before[: before.index(begin) + len(begin)], before[before.index(end) :]
    replace(path, lambda part: part.write_text(f"{head}\n{text}{tail}", encoding="utf-8"))
    return path


def check(page: str | Path, name: str) -> str:
    """The page as it is; ValueError if it has not these marks once each, in this order."""
    begin, end = marks(name)
    text = Path(page).read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise ValueError(f"{page}: has no place for the table; write the two lines {begin} and {end} there")
    return text


def marks(name: str) -> tuple[str, str]:
    """The two lines that a part of this name is between."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown, in lines.

    >>> table(["scheme", "ms"], [["dctcp", "1.5"]])
    ['| scheme | ms |', '|---|---|', '| dctcp | 1.5 |']
    """
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def absent(reasons: Mapping[str, str]) -> list[str]:
    """Who did not take part and why, in lines for a page; none if all did. `reasons` are errors: a key, what is wrong,
    and advice, which is left out.
    """
    by_reason: dict[str, list[str]] = {}
    for name, why in reasons.items():
        by_reason.setdefault(why.partition(": ")[2].partition("; ")[0], []).append(name)
    said = "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
    return textwrap.wrap(said, 120, initial_indent="Not there: ", break_long_words=False) if said else []
