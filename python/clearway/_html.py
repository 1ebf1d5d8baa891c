"""The parts of report pages. Each page is one file that opens anywhere, without network, and prints."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from clearway import _core
from clearway._places import check_page
from clearway._plots import Picture


def write(title: str, parts: Iterable[str], path: Path, css: str = "") -> Path:
    """Writes a page of these parts, some of which may be empty: the whole file or nothing.

    Only pages are replaced.
    """
    body = "\n".join(
        [
            *(part for part in parts if part),
            f"<footer>Clearway {escape(_core.__version__)} ({escape(_core.COMMIT)})</footer>",
        ]
    )
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{_CSS}{css}</style></head>\n<body>\n{body}\n</body>\n'
        "</html>\n"
    )
    check_page(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return path


def section(title: str, body: str) -> str:
    """A section with a heading; empty if it has no body."""
    return f"<section><h2>{escape(title)}</h2>\n{body}\n</section>" if body else ""


def figure(picture: Picture, caption: str) -> str:
    """A picture with its caption."""
    return f"<figure>{picture.svg()}<figcaption>{escape(caption)}</figcaption></figure>"


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


_CSS = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: #1d2025; background: #fff;
  max-width: 62rem; margin: 2.5rem auto 4rem; padding: 0 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 0.8rem; padding-bottom: 0.25rem; border-bottom: 1px solid #dfe2e7; }
h3 { font-size: 0.95rem; margin: 1.2rem 0 0.4rem; }
.subtitle { color: #555b66; margin: 0.3rem 0 0; }
.warning { margin: 1.2rem 0; padding: 0.7rem 1rem; background: #fff4e5; border-left: 4px solid #d55e00; }
.note, figcaption { color: #555b66; font-size: 0.85rem; margin: 0.5rem 0 0; max-width: 50rem; }
figure { margin: 0 0 1.2rem; }
figure svg { width: 100%; height: auto; display: block; }
figure svg text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif !important; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 0.3rem 0.6rem; text-align: right; vertical-align: top; }
th { color: #555b66; font-weight: 600; vertical-align: bottom; }
thead { border-bottom: 1px solid #aab0ba; }
th.text, td.text, th.run { text-align: left; }
th.group { text-align: center; }
td.text:first-child, th.run { color: #1d2025; font-weight: 600; white-space: nowrap; }
tr.first td { border-top: 1px solid #e7e9ed; }
tbody tr:first-child td { border-top: 0; }
.summary tbody td, .summary tbody th { border-top: 1px solid #e7e9ed; font-size: 0.95rem; padding: 0.45rem 0.6rem; }
small { font-weight: 400; }
.summary td.best { font-weight: 700; }
.span { color: #7b818c; white-space: nowrap; }
summary { font-size: 0.95rem; font-weight: 600; cursor: pointer; margin: 1.2rem 0 0.4rem; }
.dot { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; margin-right: 0.5em; }
pre { background: #f6f7f9; padding: 0.8rem 1rem; overflow-x: auto; font-size: 0.78rem; line-height: 1.45; }
footer { color: #7b818c; font-size: 0.8rem; margin-top: 3rem; }
@media print {
  @page { margin: 14mm; }
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; }
  section, figure, tr { break-inside: avoid; }
  section:last-of-type, pre { break-inside: auto; }
  h2 { break-after: avoid; margin-top: 1.4rem; }
  pre { white-space: pre-wrap; background: none; border: 1px solid #dfe2e7; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""
