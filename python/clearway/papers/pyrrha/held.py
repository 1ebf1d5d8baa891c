"""The references of Pyrrha's figures: the paper's numbers, the range that its section 1 gives for all comparisons,
and runs of the authors' program."""

from __future__ import annotations

from typing import Any

import pandas as pd

from clearway.papers.figures import Held, cell

from . import ns3
from .scenes import CLASSES

COLUMNS = list(Held.COLUMNS)


def gain(table: pd.DataFrame, base: str, ours: str, column: str) -> float:
    """How many times less it is."""
    return cell(table, base, column) / cell(table, ours, column)


def against_paper(scheme: str, where: str, rows: list[tuple[str, str, float, float, float]], seeds: str = "1") -> Held:
    """Rows beside the paper's numbers: bucket, statistic, ours, theirs, and the allowed deviation."""
    return Held(scheme, f"the paper's {where}", "paper", pd.DataFrame(rows, columns=list(Held.COLUMNS)), seeds)


# Section 1, of all comparisons together: mean FCT of uncongested flows falls by 42.8 to 98.2%, their 99th percentile is
# 1.6 to 215 times lower. As the middle of each range and what is either side of it.
LESS, TIMES = (70.5, 27.7 / 70.5), (108.3, 106.7 / 108.3)
RANGE = "section 1 (42.8 to 98.2%, 1.6 to 215 times)"


def in_range(table: pd.DataFrame, base: str, ours: str, group: str = "vulnerable", bucket: str = "") -> list[Any]:
    """The gain of flows over a base, for the paper's range. Background flows share no path with the incast: where no
    storm of pauses reaches them they have nothing to gain."""
    less = 100 * (1 - 1 / gain(table, base, ours, f"{group} mean"))
    times = gain(table, base, ours, f"{group} p99")
    bucket = ", ".join(part for part in (bucket, group) if part)
    return [
        (bucket, f"mean FCT falls against {base}, %", less, *LESS),
        (bucket, f"p99 FCT is lower than {base}'s, times", times, *TIMES),
    ]


# The runs of `ns3` that have the settings of a figure's: other draws of the flows, of the same sizes and loads.
AUTHORS = {
    ("Web Server", "PFC"): "PFC",
    ("Web Server", "BFC-32 (published)"): "BFC-32",
    ("Web Server", "Pyrrha"): "Pyrrha by the paper's text",
    ("Web Server", "DCQCN + PFC"): "DCQCN + PFC",
    ("Web Server", "HPCC + PFC"): "HPCC + PFC",
    ("Memcached", "PFC"): "PFC, Memcached",
    ("Memcached", "Pyrrha"): "Pyrrha, Memcached",
}
WITHIN_DRAW = 0.25


def beside_authors(table: pd.DataFrame) -> list[Held]:
    """Rows of a table by workload and pair beside what the authors' program gave, by class."""
    held = []
    for (workload, pair), name in AUTHORS.items():
        if (workload, pair) in table.index:
            them, theirs = ns3.RUNS[name], ns3.RUNS[name].statistics()
            rows = [
                (
                    f"{workload}, {group}",
                    f"{what} FCT, us",
                    cell(table, (workload, pair), f"{group} {what}"),
                    us,
                    WITHIN_DRAW,
                )
                for group in CLASSES
                for what in ("mean", "p99")
                for us in [theirs.get((group, f"{what} FCT, us"))]
                if us is not None
            ]
            frame = pd.DataFrame(rows, columns=list(Held.COLUMNS))
            held.append(Held(them.scheme, "ns-3 of Pyrrha's authors, another draw of the flows", "authors' run", frame))
    return held
