"""Headroom in SONiC's lookup tables (`pg_profile_lookup.ini`) beside the formula: `clearway switch headroom`.

The formula is that of SONiC's design "dynamically headroom calculation": two frames, both ways of the cable, and what a
neighbour still sends from when a pause arrives until it stops (`flow_control.pfc.headroom`). A table says neither its
frames nor its cells. A line through the rows of one rate tells the part that grows with the cable from the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clearway import _core
from clearway.reports import marked
from clearway.scenarios.sonic import SonicError, lookup_of
from clearway.scenarios.switch_check import FRAME_BYTES

MARK = "headroom of lookup tables"
NAME = "pg_profile_lookup.ini"
TABLES_MAX = 10_000


@dataclass(frozen=True)
class Table:
    """A file, and the kind of chip that SONiC's `platform_asic` beside it names."""

    path: Path
    chip: str


def formula(rate_gbps: float, cable_m: float) -> int:
    """Headroom in bytes for a link, by the simulator's own arithmetic.

    >>> formula(100, 300) - formula(100, 0)  # both ways of 300 m
    37878
    """
    return _core.headroom_by_formula(round(rate_gbps * 1e9), cable_m, FRAME_BYTES)


def both_ways(rate_gbps: float) -> float:
    """Bytes on both ways of a metre of cable."""
    return (formula(rate_gbps, 1_000.0) - formula(rate_gbps, 0.0)) / 1_000.0


def tables(places: Iterable[Path]) -> list[Table]:
    """The tables in folders, such as a checkout of sonic-buildimage, and those that are named."""
    found: list[Table] = []
    for place in places:
        if place.is_dir():
            found += [Table(path, _chip(path, place)) for path in sorted(place.rglob(NAME)) if path.is_file()]
        else:
            found.append(Table(place, _chip(place, place.parent)))
        if len(found) > TABLES_MAX:
            raise SonicError(f"{place}: has more than {TABLES_MAX:,} tables; name a smaller folder")
    if not found:
        raise SonicError(f"{', '.join(map(str, places))}: no {NAME} is in there")
    return found


def _chip(path: Path, top: Path) -> str:
    """The content of `platform_asic` in the folders above a table, up to the folder that was searched."""
    for folder in path.parents:
        file = folder / "platform_asic"
        if file.is_file():
            return re.sub(r"[^\w.-]", "", file.read_text(encoding="utf-8", errors="replace")[:80].strip())
        if folder == top:
            break
    return "not said"


def rows(found: Sequence[Table]) -> pd.DataFrame:
    """One row a row of a table: its headroom, and that of the formula, in bytes."""
    kept = []
    for table in found:
        for row in lookup_of(table.path):
            gbps = row.speed / 1_000
            kept.append(
                {
                    "table": str(table.path),
                    "chip": table.chip,
                    "gbps": gbps,
                    "cable_m": row.cable_m,
                    "bytes": row.xoff,
                    "formula": formula(gbps, row.cable_m),
                }
            )
    frame = pd.DataFrame(kept, columns=["table", "chip", "gbps", "cable_m", "bytes", "formula"])
    return frame.assign(error=frame["bytes"] / frame["formula"] - 1)


def terms(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a table and rate with several lengths of cable: the part that grows with the cable and the part that
    does not, each as a multiple of the formula's.
    """
    lines = []
    for (table, rate), of in frame.groupby(["table", "gbps"]):
        gbps = float(str(rate))
        if of["cable_m"].nunique() < 2:
            continue
        slope, at_zero = np.polyfit(of["cable_m"], of["bytes"], 1)
        rest, cable = formula(gbps, 0.0), both_ways(gbps)
        lines.append(
            {
                "table": table,
                "chip": of["chip"].iloc[0],
                "gbps": gbps,
                "cable": slope / cable,
                "rest": at_zero / rest,
            }
        )
    return pd.DataFrame(lines, columns=["table", "chip", "gbps", "cable", "rest"])


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a kind of chip, and one of all: tables, rows, errors, and terms beside the formula's."""
    parts = terms(frame)
    kinds = [kind for kind, _ in Counter(frame["chip"]).most_common()]
    lines = []
    for kind in [*kinds, "all"]:
        of = frame if kind == "all" else frame[frame["chip"] == kind]
        part = parts if kind == "all" else parts[parts["chip"] == kind]
        worst = of.iloc[int(of["error"].abs().to_numpy().argmax())]
        lines.append(
            {
                "chip": kind,
                "tables": of["table"].nunique(),
                "rows": len(of),
                "median error": of["error"].median(),
                "median of |error|": of["error"].abs().median(),
                "worst": worst["error"],
                "worst at": f"{worst['gbps']:g} Gbps, {worst['cable_m']:g} m",
                "below": (of["bytes"] < of["formula"]).mean(),
                "cable": part["cable"].median(),
                "rest": part["rest"].median(),
            }
        )
    return pd.DataFrame(lines).set_index("chip")


def markdown(found: Sequence[Table]) -> str:
    """The summary as a page has it."""
    frame = rows(found)
    table = summary(frame)
    distinct = len({table.path.read_bytes() for table in found})
    empty = len(found) - frame["table"].nunique()
    lines = [
        f"{len(found)} tables, {distinct} of them different and {empty} without a row; {len(frame):,} rows in all.",
        "",
    ]
    head = ["chip", "tables", "rows", "median error", "median of \\|error\\|", "worst", "at", "below formula"]
    head += ["cable: times formula", "rest: times formula"]
    lines += marked.table(head, (_cells(str(name), row) for name, row in table.iterrows()))
    by_rate = terms(frame).groupby("gbps")[["cable", "rest"]].median()
    lines += ["", *marked.table(["Gbps", "cable: times formula", "rest: times formula"], _by_rate(by_rate))]
    return "\n".join(lines) + "\n"


def _cells(name: str, row: pd.Series[Any]) -> list[str]:
    def percent(value: float) -> str:
        return f"{value:+.0%}"

    return [
        name,
        str(row["tables"]),
        f"{row['rows']:,}",
        percent(row["median error"]),
        f"{row['median of |error|']:.0%}",
        percent(row["worst"]),
        str(row["worst at"]),
        f"{row['below']:.0%}",
        _times(row["cable"]),
        _times(row["rest"]),
    ]


def _by_rate(table: pd.DataFrame) -> Iterator[list[str]]:
    for gbps, row in table.iterrows():
        yield [f"{gbps:g}", _times(row["cable"]), _times(row["rest"])]


def _times(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"
