"""The numbers that pictures show, apart from how they are drawn: `plots` draws them with matplotlib for papers and
notebooks, `charts` with Bokeh for report pages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clearway.reports.spec import SPEC
from clearway.results.statistics import sizes

if TYPE_CHECKING:
    import pandas as pd

    from clearway.results.result import Result

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SPENT: tuple[tuple[str, str, str], ...] = tuple((a, b, c) for a, b, c in SPEC["spent"]["parts"])
"""Where a flow's time goes: column, label, colour."""
GROUP = 25
"""Flows in a point of slowdown by size, at least, unless a line has fewer."""
TIERS: dict[str, str] = SPEC["tiers"]


@dataclass(frozen=True)
class Some:
    """Some flows of a result, and what they are called: a line of a picture."""

    name: str
    result: Result
    flows: Bools

    def floats(self, column: str) -> Floats:
        """A column of the table `flows`, of these flows."""
        return floats(self.result, column)[self.flows]


def every(results: Sequence[Result]) -> list[Some]:
    """All flows of each result."""
    return [Some(result.name, result, np.full(len(result.flows), True)) for result in results]


def split(results: Sequence[Result]) -> list[Some]:
    """All flows of each of several results; those of a single one by class and transport, if it has more than one."""
    if len(results) != 1:
        return every(results)
    columns = [np.asarray(results[0].flows[name], dtype=object).astype(str) for name in ("class", "transport")]
    kinds = list(dict.fromkeys(zip(*(column.tolist() for column in columns))))
    if len(kinds) < 2:
        return every(results)
    several = [place for place in (0, 1) if len({kind[place] for kind in kinds}) > 1]
    return [
        Some(", ".join(kind[place] for place in several), results[0], (columns[0] == kind[0]) & (columns[1] == kind[1]))
        for kind in kinds
    ]


def floats(result: Result, column: str) -> Floats:
    """A column of the table `flows`; NaN where there is no value."""
    return np.asarray(result.flows[column], dtype=np.float64)


def by_size(lines: Sequence[Some]) -> list[dict[str, Floats]]:
    """Slowdown by flow size, columns by line: flows sorted by size and divided into groups of equal number, alike in
    all
    lines. `size` is the group's median in bytes; its flows are larger than `low` and not larger than `high`.
    """
    every = np.concatenate([line.floats("bytes") for line in lines]) if lines else np.empty(0)
    groups = int(np.clip(len(every) / max(len(lines), 1) / GROUP, 1, 16))
    limits = np.unique(np.quantile(every, np.linspace(0, 1, groups + 1))) if len(every) else every
    return [_grouped(line, limits) for line in lines]


def _grouped(line: Some, limits: Floats) -> dict[str, Floats]:
    size, slowdown = line.floats("bytes"), line.floats("slowdown")
    group = np.clip(np.searchsorted(limits, size, side="left") - 1, 0, None)
    known = ~np.isnan(slowdown)
    rows = []
    for index in np.unique(group[known]):
        values = slowdown[known & (group == index)]
        median = np.median(size[group == index])
        low = float(limits[index]) if index else 0.0
        high = float(limits[min(index + 1, len(limits) - 1)])
        rows.append((median, len(values), values.mean(), *np.quantile(values, [0.5, 0.99]), low, high))
    columns = ("size", "flows", "mean", "p50", "p99", "low", "high")
    found = {column: np.array([row[place] for row in rows], dtype=float) for place, column in enumerate(columns)}
    return {**found, "flows": found["flows"].astype("int32")}


def distribution(line: Some, column: str) -> tuple[Floats, Floats]:
    """At most 500 values of a column in order, and the share of flows up to each. The share is of all flows, so it ends
    below 1 if some did not complete.
    """
    values = np.sort(line.floats(column))
    values = values[~np.isnan(values)]
    if not len(values):
        return values, values
    at = np.unique(np.linspace(0, len(values) - 1, 500).astype(int))
    return values[at], (at + 1) / int(line.flows.sum())


def tiers(results: Sequence[Result]) -> list[str]:
    """The tiers of links whose utilisation some result has."""
    known = [set(result.utilisation["tier"]) for result in results if "utilisation" in result.tables]
    return [tier for tier in TIERS if any(tier in of for of in known)]


def utilisation(result: Result, tier: str) -> tuple[Floats, Floats]:
    """Time in ms, and the share of a tier's capacity that was used; empty if the result has none."""
    if tier not in tiers([result]):
        return np.empty(0), np.empty(0)
    table = result.utilisation
    of_tier = table["tier"] == tier
    return thinned(table["time_ps"][of_tier] / 1e9, table["utilisation"][of_tier], np.mean)


def queues(result: Result, column: str) -> tuple[Floats, Floats]:
    """Time in ms, and the largest of the simultaneous samples in KB; empty if the result has none."""
    if "queues" not in result.tables or not len(result.queues):
        return np.empty(0), np.empty(0)
    table = result.queues
    time, at = np.unique(table["time_ps"], return_inverse=True)
    longest = np.zeros(len(time))
    np.maximum.at(longest, at, table[column].astype(float))
    return thinned(time / 1e9, longest / 1e3, np.max)


def entities(result: Result) -> dict[str, tuple[Floats, Floats]]:
    """Of each entity: time in ms, and what it sent and arrived in the interval until then, in Gbps. Empty without
    entities, or samples of them.
    """
    if "entities" not in result.tables or not len(result.entities):
        return {}
    table = result.entities
    times, at = np.unique(table["time_ps"].astype(float), return_inverse=True)
    spans = np.diff(times, prepend=0.0)
    names, found = np.asarray(table["entity"], dtype=object).astype(str), {}
    for name in dict.fromkeys(names):
        bits = np.zeros(len(times))
        np.add.at(bits, at[names == name], table["delivered_bytes"][names == name].astype(float) * 8)
        known = spans > 0
        found[name] = thinned(times[known] / 1e9, bits[known] * 1e3 / spans[known], np.mean)
    return found


def thinned(x: Floats, y: Floats, summary: Callable[[Any], Any]) -> tuple[Floats, Floats]:
    """At most 300 points, each a summary of its neighbours."""
    if len(x) <= 300:
        return x, y
    cuts = np.linspace(0, len(x), 301).astype(int)
    parts = list(itertools.pairwise(cuts))
    return np.array([x[a:b].mean() for a, b in parts]), np.array([summary(y[a:b]) for a, b in parts])


def of_size(result: Result, size: str) -> Bools:
    """Completed flows of a size class."""
    return np.asarray((sizes(result) == size) & ~np.isnan(floats(result, "fct_ps")), dtype=bool)


def parts(result: Result) -> dict[str, Floats]:
    """Where the time of each flow went: picoseconds by the columns of SPENT, which add up to the completion time.

    The time at the sender, `wait_ps`, is divided. The flow's earlier packets take at least as long as in an empty
    network. The rest is waiting: for the sender's own limits, or, if the flow repeated packets, for its recovery as
    well.
    """
    known = {column: floats(result, column) for column, _, _ in SPENT if column in result.flows.columns}
    wait = floats(result, "wait_ps")
    alone = floats(result, "ideal_ps") - known["serialised_ps"] - known["propagation_ps"]
    message = np.clip(alone, 0, wait)
    repeated = floats(result, "resent_packets") > 0
    rest = wait - message
    divided = {"message_ps": message, "limits_ps": np.where(repeated, 0, rest)}
    return divided | {"recovery_ps": np.where(repeated, rest, np.where(np.isnan(rest), np.nan, 0.0))} | known


def spent(results: Sequence[Result], size: str) -> dict[str, Floats]:
    """Where the time of completed flows of a size class went: mean microseconds, a row a result, a column a cause."""
    known = [(parts(result), of_size(result, size)) for result in results]
    return {
        column: np.array([of[column][done].mean() / 1e6 if done.any() else 0.0 for of, done in known])
        for column, _, _ in SPENT
    }


def fullest(result: Result) -> pd.DataFrame:
    """For each tier, the link that came nearest to its bound."""
    frame = result.guarantees.to_pandas()
    nearest = frame.loc[frame.groupby("tier", observed=True)["share"].idxmax()]
    return nearest.set_index("tier").reindex(list(TIERS))


def waits(result: Result, least: float) -> tuple[Floats, Floats, float]:
    """Waits in microseconds, the share of packets that waited longer than each, and the bound. The share falls below
    `least` at the longest wait.
    """
    table = result.guaranteed_waits
    longer = np.append(1 - table["quantile"][:-1], least / 100)
    times = np.concatenate([[0.0], table["wait_ps"] / 1e6])
    return times, np.concatenate([[1.0], longer]), float(table["wait_bound_ps"][-1] / 1e6)


def racks(result: Result) -> dict[int, str]:
    """The switch of each host; of a host with several links, the first."""
    links = result.links
    out = links["tier"] == "from_host"
    ends = zip(links["from_node"][out][::-1], links["to_node"][out][::-1])
    return {int(str(host).removeprefix("host")): str(switch) for host, switch in ends if str(host).startswith("host")}
