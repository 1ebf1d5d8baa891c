"""Tables as text: for a terminal within its width, for a pipe as tab-separated values.

A table that is too wide for a terminal is not squeezed. One row stands alone as a list of its numbers. Several rows are
printed as blocks of columns, each with the names of the rows, and the intervals come last.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Between columns.
GAP = "  "
# Text of a cell that is longer than this is folded, and its table is not cut into blocks.
LONG_TEXT = 30
# The width of a terminal that does not tell its own.
USUAL_WIDTH = 80

Column = tuple[list[str], list[str], bool]


@dataclass(frozen=True)
class Rows:
    """A table without a data frame: its rows by their names, and what these are."""

    label: str
    rows: Mapping[str, Mapping[str, Any]]
    interval: str = ""
    """The meaning of its numbers' intervals."""

    @property
    def columns(self) -> list[str]:
        """Of all rows."""
        return list(dict.fromkeys(column for row in self.rows.values() for column in row))

    def is_of_numbers(self, column: str) -> bool:
        """Whether a column has numbers."""
        return all(isinstance(row[column], int | float) for row in self.rows.values())


def records(table: pd.DataFrame | Rows) -> list[dict[str, Any]]:
    """The rows of a table, each with its name under the label of names."""
    if isinstance(table, Rows):
        return [{table.label: name, **row} for name, row in table.rows.items()]
    plain = table.rename_axis(str(table.index.name or "name")).reset_index()
    names = [str(name) for name in plain.columns]
    return [dict(zip(names, row, strict=True)) for row in plain.itertuples(index=False, name=None)]


def tsv(table: pd.DataFrame | Rows) -> str:
    """A table with one header line and full numbers; unknown values are empty."""
    if isinstance(table, Rows):
        head = [table.label, *table.columns]
    else:
        head = [str(table.index.name or "name"), *map(str, table.columns)]
    lines = ["\t".join(map(_bare, head))]
    lines += ["\t".join(_full(value) for value in row.values()) for row in records(table)]
    return "\n".join(lines)


def terminal(table: pd.DataFrame | Rows, width: int | None = None) -> str:
    """A table that fits the terminal: numbers with four digits."""
    width = width or shutil.get_terminal_size((USUAL_WIDTH, 24)).columns
    columns = [str(name) for name in table.columns]
    spans = [name for name in columns if {f"{name} low", f"{name} high"} <= set(columns)]
    ends = {f"{name} {end}" for name in spans for end in ("low", "high")}
    main = [name for name in columns if name not in ends]
    if isinstance(table, Rows):
        rows, label, named = [dict(row) for row in table.rows.values()], table.label, list(table.rows)
    else:
        rows = [{str(key): value for key, value in row.items()} for _, row in table.iterrows()]
        label, named = str(table.index.name or ""), [str(name) for name in table.index]
    names: Column = (["", label], named, False)
    inline = [_column(name, [_with_ends(row, name, name in spans) for row in rows], table) for name in main]
    if _wide([names, *inline]) <= width:
        return "\n".join(_block([names, *inline]))
    if any(not right and len(cell) > LONG_TEXT for _, cells, right in inline for cell in cells):
        return "\n".join(_folded([names, *inline], width))
    if len(rows) == 1 or _wide([names]) > width // 2:
        return "\n\n".join("\n".join(_alone(name, row, main, spans)) for name, row in zip(names[1], rows, strict=True))
    plain = [_column(name, [cell(row[name]) for row in rows], table) for name in main]
    intervals = [
        (_head(name), [_ends(row, name) for row in rows], True)
        for name in spans
        if any(_ends(row, name) != "-" for row in rows)
    ]
    parts = [_block([names, *part]) for part in _cut(plain, width - _wide([names]))]
    if intervals:
        parts.append(["Intervals"])
        parts += [_block([names, *part]) for part in _cut(intervals, width - _wide([names]))]
    return "\n\n".join("\n".join(part) for part in parts)


def cell(value: Any) -> str:
    """A number with four digits, or a text."""
    if isinstance(value, float):
        if value != value:
            return "-"
        return f"{value:,.0f}" if value.is_integer() or abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _bare(text: object) -> str:
    return " ".join(str(text).split())


def _full(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if value is None or value != value or str(value) == "<NA>":
        return ""
    return repr(value) if isinstance(value, float) else _bare(value)


def _size(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _head(name: str) -> list[str]:
    first, _, rest = name.partition(" ")
    return [first, rest] if rest else ["", first]


def _column(name: str, cells: list[str], table: pd.DataFrame | Rows) -> Column:
    if isinstance(table, Rows):
        return _head(name), cells, table.is_of_numbers(name)
    import pandas as pd

    return _head(name), cells, bool(pd.api.types.is_numeric_dtype(table[name]))


def _ends(row: dict[str, Any], name: str) -> str:
    low, high = cell(row[f"{name} low"]), cell(row[f"{name} high"])
    return "-" if "-" in (low, high) else f"{low}..{high}"


def _with_ends(row: dict[str, Any], name: str, has: bool) -> str:
    ends = _ends(row, name) if has else "-"
    return cell(row[name]) if ends == "-" else f"{cell(row[name])} ({ends})"


def _widths(columns: Sequence[Column]) -> list[int]:
    return [max(map(_size, [*head, *cells])) for head, cells, _ in columns]


def _wide(columns: Sequence[Column]) -> int:
    return sum(_widths(columns)) + len(GAP) * (len(columns) - 1)


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - _size(text))
    return space + text if right else text + space


def _block(columns: Sequence[Column]) -> list[str]:
    widths = _widths(columns)
    lines = [[head[line] for head, _, _ in columns] for line in (0, 1)]
    lines = [line for line in lines if any(line)]
    lines += [[cells[row] for _, cells, _ in columns] for row in range(len(columns[0][1]))]
    rights = [right for _, _, right in columns]
    return [GAP.join(map(_padded, line, widths, rights)).rstrip() for line in lines]


def _cut(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """Columns in groups that have room beside the names of the rows."""
    group: list[Column] = []
    for one in columns:
        if group and _wide([*group, one]) + len(GAP) > room:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _alone(name: str, row: dict[str, Any], main: list[str], spans: list[str]) -> list[str]:
    """One row as a list of its numbers, each with its interval."""
    value = max(_size(cell(row[one])) for one in main)
    label = max(map(_size, main))
    lines = [name]
    for one in main:
        ends = _ends(row, one) if one in spans else "-"
        number = _padded(cell(row[one]), value, not isinstance(row[one], str))
        lines.append(f"  {_padded(one, label, False)}{GAP}{number}{'' if ends == '-' else f'  ({ends})'}".rstrip())
    return lines


def _folded(columns: Sequence[Column], width: int) -> list[str]:
    """A table with long texts, which take several lines in their cells."""
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for head, _, right in columns:
        # Names are plain text, so brackets in them are no markup.
        table.add_column(
            Text("\n".join(line for line in head if line)), justify="right" if right else "left", overflow="fold"
        )
    for row in zip(*(cells for _, cells, _ in columns), strict=True):
        table.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=width).print(table)
    return [line.rstrip() for line in text.getvalue().rstrip("\n").split("\n")]
