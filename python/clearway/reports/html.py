"""The parts of report pages. Each page is one file that opens anywhere, without network, and prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from clearway import _core
from clearway.files.places import check_page
from clearway.files.whole import replace
from clearway.reports.looks import Look


def write(title: str, parts: Iterable[str], path: Path, css: str = "") -> Path:
    """Writes a page of these parts, some of which may be empty: the whole file or nothing.

    Only pages are replaced.
    """
    shown = [part for part in parts if part]
    body = "\n".join(
        [
            *_with_contents(shown),
            _UNFOLD if any("<details" in part for part in shown) else "",
            f"<script>{_EXPORT}</script>" if any("<table" in part or "<figure" in part for part in shown) else "",
            f"<footer>Clearway {escape(_core.__version__)} ({escape(_core.COMMIT)})</footer>",
        ]
    )
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    style = f"{_CSS}{_WITHIN}{_PRINT}{css}"
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{style}</style></head>\n'
        f"<body class=report>\n{body}\n</body>\n</html>\n"
    )
    check_page(path)
    replace(path, lambda part: part.write_text(page, encoding="utf-8"))
    return path


def section(title: str, body: str) -> str:
    """A section with a heading; empty if it has no body."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return f'<section id="{name}"><h2>{escape(title)}</h2>\n{body}\n</section>' if body else ""


# Folded parts would not be printed.
_UNFOLD = """<script>addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
});</script>"""

_SECTION = re.compile(r'<section id="([^"]+)"><h2>(.*?)</h2>')


def _with_contents(parts: Sequence[str]) -> list[str]:
    """The parts, with links to the sections before the first of them, if there are some."""
    links = [f'<a href="#{found[1]}">{found[2]}</a>' for part in parts if (found := _SECTION.match(part))]
    if len(links) < 3:
        return list(parts)
    first = next(index for index, part in enumerate(parts) if _SECTION.match(part))
    return [*parts[:first], f"<nav aria-label=Contents>{''.join(links)}</nav>", *parts[first:]]


def swatch(look: Look) -> str:
    """A piece of a line with its marker, as legends and tables have it beside a name."""
    drawn = _SHAPES[look.marker]
    return (
        f'<svg class=swatch viewBox="0 0 34 12" width=34 height=12 aria-hidden=true fill="{look.colour}" '
        f'stroke="{look.colour}" stroke-width=2><path d="M0 6H34" stroke-dasharray="{_STROKES[look.dash]}"/>'
        f'<path d="{drawn}" stroke=none transform="translate(17 6)"/></svg>'
    )


_STROKES = {"-": "none", "--": "7 3", "-.": "7 3 2 3", ":": "2 3"}
# Around (0, 0), by matplotlib's words.
_SHAPES = {
    "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "s": "M-4-4H4V4H-4Z",
    "^": "M0-5L5 4H-5Z",
    "D": "M0-5L5 0L0 5L-5 0Z",
    "v": "M0 5L5-4H-5Z",
    "h": "M-5 0L-2.5-4.4H2.5L5 0L2.5 4.4H-2.5Z",
    "*": "M0-6L1.6-2L5.7-1.9L2.5 .8L3.5 4.9L0 2.5L-3.5 4.9L-2.5 .8L-5.7-1.9L-1.6-2Z",
    "P": "M-1.5-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5V-1.5H-1.5Z",
}


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], text: int) -> str:
    """A table whose first `text` columns are words and the others numbers. A run is named in its first row."""
    cells = "".join(f"<th{' class=text' if index < text else ''}>{escape(name)}" for index, name in enumerate(head))
    lines, before = [], None
    for row in rows:
        shown = ["" if row[0] == before else row[0], *row[1:]]
        mark = "" if row[0] == before else " class=first"
        before = row[0]
        line = "".join(
            f"<td{' class=text' if index < text else ''}>{escape(str(cell))}" for index, cell in enumerate(shown)
        )
        lines.append(f"<tr{mark}>{line}</tr>")
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def number(value: Any) -> str:
    """A number with about three digits."""
    if np.isnan(value):
        return "–"
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


_EXPORT = files("clearway.reports").joinpath("export.js").read_text(encoding="utf-8")
# Within reports; the playground has it, too.
_WITHIN = files("clearway.reports").joinpath("report.css").read_text(encoding="utf-8")
_CSS = """
:root { color-scheme: light dark; --ink: #1d2025; --soft: #555b66; --faint: #7b818c; --page: #fff; --quiet: #f6f7f9;
  --rule: #dfe2e7; --line: #e7e9ed; --strong: #aab0ba; --warn: #fff4e5; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e3e6eb; --soft: #aab0ba; --faint: #8a8f98; --page: #16181c; --quiet: #20242a; --rule: #3a3f47;
    --line: #2a2e35; --strong: #555b66; --warn: #3a2a12; }
}
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink);
  background: var(--page); max-width: 68rem; margin: 2.5rem auto 4rem; padding: 0 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
nav { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; margin: 1.2rem 0 0; font-size: 0.85rem; }
a { color: inherit; }
.subtitle { color: var(--soft); margin: 0.3rem 0 0; }
.save { color: var(--faint); font-size: 0.75rem; margin: 0.2rem 0 1rem; }
.save button { font: inherit; color: var(--soft); background: none; border: 0; padding: 0 0.35rem; cursor: pointer;
  text-decoration: underline; }
footer { color: var(--faint); font-size: 0.8rem; margin-top: 3rem; }
"""
# After those of the screen.
_PRINT = """
@media print {
  table { zoom: 0.85; }
  section { overflow: visible; }
  .summary tbody td, .summary tbody th, .summary th { font-size: 7pt; padding: 0.2rem; }
  nav, .save { display: none; }
  @page { margin: 14mm; }
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; }
  section, figure, tr { break-inside: avoid; }
  section:last-of-type, pre { break-inside: auto; }
  h2 { break-after: avoid; margin-top: 1.4rem; }
  pre { white-space: pre-wrap; background: none; border: 1px solid var(--rule); }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""
