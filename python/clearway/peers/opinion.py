"""A second opinion on a scenario: another program's result beside ours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from clearway.comparisons.seeds import seeds_from
from clearway.peers import ns3
from clearway.results.result import Result
from clearway.running.run import run
from clearway.scenarios.scenario import Scenario, scenario_of

Program: TypeAlias = Literal["ns3"]
"""The programs that can be asked."""


@dataclass(frozen=True)
class Pair:
    """One seed's flows in both programs."""

    ours: Result
    ours_bytes: pd.Series
    """The bytes of each flow that were there at the end."""
    theirs: ns3.Answer


@dataclass(frozen=True)
class SecondOpinion:
    """The same flows on the same links in Clearway and in another program.

    Differences are (theirs - ours) / ours: 0.1 means that the other program takes 10% longer.
    """

    program: str
    version: str
    pairs: Sequence[Pair]
    differences: Sequence[str]
    """The differences that remain, though flows and links are the same."""
    bins: Sequence[float] | None = None

    def flows(self) -> pd.DataFrame:
        """Each flow: `seed`, `flow`, `source`, `destination`, `bytes`, its class of size, its start and both
        completion times in picoseconds (none if it did not complete), and the bytes that were there at the end."""
        return self._flows.copy()

    @functools.cached_property
    def _flows(self) -> pd.DataFrame:
        found = []
        for pair in self.pairs:
            ours = pair.ours.flows.to_pandas()
            done = pair.theirs.delivered_ps >= 0
            start = ours["start_ps"].astype(float)
            completed = ours["delivered_ps"].notna() & (ours["status"] == "completed")
            found.append(
                pd.DataFrame(
                    {
                        "seed": pair.ours.info["seed"],
                        "flow": ours["flow"],
                        "source": ours["source"],
                        "destination": ours["destination"],
                        "bytes": ours["bytes"],
                        "size": pair.ours.size_classes(self.bins),
                        "start_ps": ours["start_ps"],
                        "ideal_ps": ours["ideal_ps"].astype(float),
                        "ours_ps": (ours["delivered_ps"].astype(float) - start).where(completed),
                        "theirs_ps": pd.Series(pair.theirs.delivered_ps - start).where(done),
                        "ours_bytes": pair.ours_bytes,
                        "theirs_bytes": pair.theirs.received_bytes,
                    }
                )
            )
        return pd.concat(found, ignore_index=True)

    def sizes(self) -> pd.DataFrame:
        """By size of flows, over all seeds: how many completed in both, mean and 99th percentile of the slowdown in
        both, the difference, and the least and greatest difference of the mean among seeds."""
        flows = self._flows
        both = flows[flows["ours_ps"].notna() & flows["theirs_ps"].notna()].copy()
        for which in ("ours", "theirs"):
            both[which] = both[f"{which}_ps"] / both["ideal_ps"]
        rows = {str(name): _row(group) for name, group in both.groupby("size", observed=True)}
        if len(rows) > 1:
            rows["all"] = _row(both)
        return pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="flows"))

    def unfinished(self) -> tuple[int, int]:
        """The flows that did not complete: here, there."""
        flows = self._flows
        return int(flows["ours_ps"].isna().sum()), int(flows["theirs_ps"].isna().sum())

    def shares(self) -> pd.DataFrame:
        """Of the flows that completed in neither program, such as endless ones: the least and the greatest share of
        what they brought, and all of it in Gbit/s; empty if there are none."""
        flows = self._flows
        left = flows[flows["ours_ps"].isna() & flows["theirs_ps"].isna()]
        rows = []
        ends = {pair.ours.info["seed"]: (pair.ours.info["end_ps"], pair.theirs.ended_ps) for pair in self.pairs}
        for seed, group in left.groupby("seed"):
            which = (("clearway", "ours_bytes"), (self.program, "theirs_bytes"))
            for (name, bytes_), end in zip(which, ends[seed], strict=True):
                got = group[bytes_].astype(float)
                row = (seed, name, len(group), got.min() / got.sum(), got.max() / got.sum(), got.sum() * 8 / end * 1e3)
                rows.append(row)
        columns = ["seed", "program", "flows", "least share", "greatest share", "Gbit/s"]
        return pd.DataFrame(rows, columns=columns)

    def ports(self) -> pd.DataFrame:
        """Of all switches' ports, in both programs: packets dropped and marked, and the longest queue in bytes, each
        the mean over seeds."""
        rows = {"clearway": np.zeros(3), self.program: np.zeros(3)}
        for pair in self.pairs:
            links = pair.ours.links.to_pandas()
            switch = (links["tier"] != "from_host").to_numpy()
            ours = links.loc[switch, ["overflow_packets", "marked_packets", "queued_bytes_max"]].to_numpy(dtype=float)
            theirs = np.column_stack(
                [pair.theirs.dropped_packets, pair.theirs.marked_packets, pair.theirs.queued_bytes_max]
            )[switch]
            for name, of in (("clearway", ours), (self.program, theirs)):
                rows[name] += np.array([of[:, 0].sum(), of[:, 1].sum(), of[:, 2].max(initial=0)]) / len(self.pairs)
        columns = ["dropped packets", "marked packets", "longest queue, bytes"]
        return pd.DataFrame(list(rows.values()), columns=columns, index=pd.Index(list(rows), name="program"))

    def _repr_html_(self) -> str:
        """The table by size in a notebook."""
        return str(self.sizes().to_html())


def against(
    scenario: Scenario | str | Path,
    program: Program = "ns3",
    *,
    seeds: int | Iterable[int] = 1,
    bins: Sequence[float] | None = None,
    interpreter: str | Path | None = None,
    threads: int | None = None,
    progress: Callable[[str, float, int], None] | None = None,
) -> SecondOpinion:
    """Runs a scenario here, and the same flows on the same links in another program.

    `seeds`: how many, from the scenario's own on, or which. `bins`: upper limits of sizes in bytes, as
    `Result.slowdown` takes them. `interpreter`: the Python that has ns-3, by default that of `CLEARWAY_NS3`, or this
    one. `progress` is called with a label, the simulated seconds and the number of completed flows.

    Raises ValueError if the program cannot express the scenario, with each reason, or is not there.

    >>> import clearway as cw
    >>> cw.against("examples/tiny.toml", "ns3")
    Traceback (most recent call last):
    ...
    ValueError: ns-3 cannot run this scenario: transport: ns-3 has no udp; it has newreno, cubic, dctcp, ...
    """
    if program != "ns3":
        raise ValueError(f"program={program!r}: can be 'ns3'")
    wanted = scenario_of(scenario)
    read = wanted.to_dict()
    if refused := list(ns3.refusals(read)):
        raise ValueError("ns-3 cannot run this scenario: " + "; ".join(refused))
    where = ns3.python(interpreter)
    pairs = []
    for seed in seeds_from(int(read["seed"]), seeds):
        of = wanted.with_(seed=seed)
        ours = run(of, threads=threads)
        unfinished = np.unique(ours.flows["destination"][ours.flows["status"] != "completed"])
        if len(unfinished):
            # The table of flows has no bytes of flows that did not complete.
            ours = run(of.with_({"measure.arrivals": unfinished.tolist()}), threads=threads)
        label = f"ns-3, seed {seed}"
        listen = None if progress is None else functools.partial(progress, label)
        theirs = ns3.run(of, ours, where, listen)
        pairs.append(Pair(ours, _arrived(ours, int(read["measure"]["rows_max"])), theirs))
    return SecondOpinion("ns3", pairs[0].theirs.version, pairs, list(ns3.differences(read)), bins)


def _arrived(result: Result, rows_max: int) -> pd.Series:
    """The bytes of each flow that were there at the end; none if there were too many packets to record each."""
    whole = result.flows.to_pandas()["bytes"].astype(float)
    completed = pd.Series(result.flows["status"] == "completed")
    if completed.all():
        return whole
    arrivals = result.arrivals.to_pandas()
    if len(arrivals) >= rows_max:
        return whole.where(completed)
    got = arrivals.groupby("flow")["bytes"].sum().reindex(range(len(whole)), fill_value=0).astype(float)
    return whole.where(completed, got.reset_index(drop=True))


def _row(group: pd.DataFrame) -> dict[str, float]:
    by_seed = group.groupby("seed")[["ours", "theirs"]].mean()
    each = by_seed["theirs"] / by_seed["ours"] - 1
    row: dict[str, float] = {"count": len(group)}
    for name in ("mean", "p99"):
        both = [group[which].mean() if name == "mean" else group[which].quantile(0.99) for which in ("ours", "theirs")]
        ours, theirs = map(float, both)
        row |= {f"{name} here": ours, f"{name} there": theirs, f"{name} differs": theirs / ours - 1}
    return row | {"least": float(each.min()), "greatest": float(each.max())}
