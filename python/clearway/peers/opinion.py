"""A second opinion on a scenario: another program's result beside ours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from clearway.comparisons.seeds import seeds_from
from clearway.peers import kernel, ns3
from clearway.peers.answer import Answer
from clearway.results.result import Result
from clearway.running.run import run
from clearway.scenarios.scenario import Scenario, scenario_of

Program: TypeAlias = Literal["ns3", "kernel"]
"""The programs that can be asked; `kernel` is that of this machine."""


@dataclass(frozen=True)
class Pair:
    """One seed's flows in both programs."""

    ours: Result
    ours_bytes: pd.Series
    """The bytes of each flow that were there at the end."""
    theirs: Answer


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

    def senders(self) -> pd.DataFrame:
        """The packets with content that hosts sent, and those of them that they sent again, in both programs, each the
        mean over seeds; empty if the other program doesn't say that."""
        rows = {"clearway": np.zeros(2), self.program: np.zeros(2)}
        for pair in self.pairs:
            ours, theirs = pair.ours.flows, pair.theirs
            if theirs.sent_packets is None or theirs.resent_packets is None:
                return pd.DataFrame()
            here = [ours["sent_packets"].sum(), ours["resent_packets"].sum()]
            there = [theirs.sent_packets.sum(), theirs.resent_packets.sum()]
            for name, of in (("clearway", here), (self.program, there)):
                rows[name] += np.array(of, dtype=float) / len(self.pairs)
        columns = ["sent packets", "sent again"]
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
    captures: Mapping[str, str | Path] | None = None,
    threads: int | None = None,
    progress: Callable[[str, float, int], None] | None = None,
) -> SecondOpinion:
    """Runs a scenario here, and the same flows on the same links in another program.

    `program`: "ns3", or "kernel", the TCP of this machine's kernel over a live fabric, which needs root and takes the
    time that the scenario says. `seeds`: how many, from the scenario's own on, or which. `bins`: upper limits of sizes
    in bytes, as `Result.slowdown` takes them. `interpreter`: the Python that has ns-3, by default that of
    `CLEARWAY_NS3`, or this one. `captures`: with "kernel" and one seed, names of files by link or node, such as
    `{"switch0": "trace"}`: what they carry is written to `trace.here.pcapng` and `trace.there.pcapng`. `progress` is
    called with a label, the seconds of the network's time and the number of completed flows.

    Raises ValueError if the program cannot express the scenario, with each reason, or is not there, or if the machine
    could not follow.

    >>> import clearway as cw
    >>> cw.against("examples/tiny.toml", "ns3")
    Traceback (most recent call last):
    ...
    ValueError: ns-3 cannot run this scenario: transport: ns-3 has no udp; it has newreno, cubic, dctcp, ...
    """
    if program not in NAMES:
        raise ValueError(f"program={program!r}: can be {' or '.join(map(repr, NAMES))}")
    wanted = scenario_of(scenario)
    read, name, peer = wanted.to_dict(), NAMES[program], ns3 if program == "ns3" else kernel
    if refused := list(peer.refusals(read)):
        raise ValueError(f"{name} cannot run this scenario: " + "; ".join(refused))
    which = seeds_from(int(read["seed"]), seeds)
    files = _files(program, captures, len(which))
    ask = _asks(program, read, interpreter, {link: there for link, (_, there) in files.items()})
    pairs = []
    for seed in which:
        of = wanted.with_(seed=seed)
        ours = run(of, threads=threads, pcap={link: here for link, (here, _) in files.items()})
        unfinished = np.unique(ours.flows["destination"][ours.flows["status"] != "completed"])
        if len(unfinished):
            # The table of flows has no bytes of flows that did not complete.
            ours = run(of.with_({"measure.arrivals": unfinished.tolist()}), threads=threads)
        listen = None if progress is None else functools.partial(progress, f"{name}, seed {seed}")
        theirs = ask(of, ours, listen)
        pairs.append(Pair(ours, _arrived(ours, int(read["measure"]["rows_max"])), theirs))
    return SecondOpinion(program, pairs[0].theirs.version, pairs, list(peer.differences(read)), bins)


NAMES = {"ns3": "ns-3", "kernel": "the kernel"}
"""How sentences call the programs."""
_Ask: TypeAlias = Callable[[Scenario, Result, Callable[[float, int], None] | None], Answer]


def _files(program: str, captures: Mapping[str, str | Path] | None, seeds: int) -> dict[str, tuple[str, str]]:
    """The files of captures, by link or node: ours, theirs."""
    if not captures:
        return {}
    if program != "kernel":
        raise ValueError("captures: only the kernel's packets are written to files; ns-3 writes its own")
    if seeds != 1:
        raise ValueError(f"captures: {seeds} seeds would have the same files; take one")
    stems = {link: str(file).removesuffix(".pcapng") for link, file in captures.items()}
    return {link: (f"{stem}.here.pcapng", f"{stem}.there.pcapng") for link, stem in stems.items()}


def _asks(program: str, read: Mapping[str, Any], interpreter: str | Path | None, captures: Mapping[str, str]) -> _Ask:
    """A function that runs flows in the program; ValueError if the program is not there."""
    if program == "ns3":
        where = ns3.python(interpreter)
        return lambda of, ours, listen: ns3.run(of, ours, where, listen)
    if interpreter is not None:
        raise ValueError("interpreter: names the Python that has ns-3; the kernel needs none")
    [(transport, _)] = read["transport"].items()
    if reason := kernel.missing(kernel.CONTROLS[transport]):
        raise ValueError(f"the kernel can't be asked here: {reason}")

    def ask(of: Scenario, ours: Result, listen: Callable[[float, int], None] | None) -> Answer:
        theirs = kernel.run(of, ours, listen, captures)
        if reason := kernel.late(ours, theirs):
            raise ValueError(f"the machine could not follow: {reason}; take slower links, longer delays or less load")
        return theirs

    return ask


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
