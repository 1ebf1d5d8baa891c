from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clearway._defaults import KEEPS_UP
from clearway._results import Result
from clearway._run import _Listener, compare
from clearway._scenario import Scenario, Value, scenario_of

COLUMNS = [
    "load", "seed", "holds", "flows", "rejected", "failed", "unfinished", "slowdown max", "delay max us", "kept up",
    "audit", "times as long",
]  # fmt: skip

MOST_LOADS = 10_000
"""Loads of a search."""

MOST_LONGER = 1_000
"""How many times as long as its scenario says a run may last."""


@dataclass(frozen=True)
class Sustained:
    """The highest load at which a criterion holds, and the runs that say so."""

    load: float | None
    """The highest load that holds; none if even the lowest does not, or while nobody knows."""
    fails: float | None
    """The lowest load known to fail; none if the highest holds, or while nobody knows."""
    runs: pd.DataFrame
    """A row a run: what became of the class's messages, and whether the criterion holds."""
    low: float
    """The lowest load that could be the answer."""
    high: float
    """The highest."""
    interrupted: bool = False
    """Whether somebody ended the search: the answer is then between `load` and `fails`."""

    @property
    def longer(self) -> int:
        """How many times as long as the scenario says the longest run has lasted, since that was too short for the
        rule; 1 if it was not.
        """
        return int(self.runs["times as long"].max()) if len(self.runs) else 1

    def __str__(self) -> str:
        if self.interrupted:
            least = "not even known whether the lowest holds" if self.load is None else f"{self.load:g} holds"
            most = f"{self.fails:g} does not" if self.fails is not None else f"nothing is known above, to {self.high:g}"
            return f"interrupted: {least}, {most}"
        if self.load is None:
            return f"even the lowest load, {self.low:g}, does not hold"
        if self.fails is None:
            return f"even the highest load, {self.load:g}, holds"
        return f"sustains {self.load:g}; {self.fails:g} does not hold"


def sustain(
    scenario: Scenario | str | Path,
    *,
    traffic: str | None = None,
    low: float = 0.05,
    high: float = 1.0,
    resolution: float = 0.01,
    seeds: Sequence[int] = (),
    slowdown: float | None = None,
    delay_us: float | None = None,
    keeps_up: float | None = KEEPS_UP,
    lengthen: bool = True,
    threads: int | None = None,
    progress: bool | _Listener | None = None,
    told: Callable[[pd.Series[Any]], object] | None = None,
    folder: str | Path | None = None,
    keep: bool = False,
) -> Sustained:
    """The maximum sustainable load of a class of traffic, by bisection over `low`, `low + resolution`, ... up to
    `high`.

    `traffic` is the class whose load is varied and whose messages are judged: the only one that arrives by load, or
    else the first, if not given. A load holds if it does under each of the `seeds` (the scenario's own if not given):
    no message of the class is rejected or fails, and

    - unfinished work does not grow: the bytes of messages that have arrived and are not delivered, averaged over the
      last quarter of the time of arrivals, are no more than in the quarter before, but for a share of 1 - `keeps_up` of
      what arrives in a quarter. So much of what arrives is delivered. This holds for any scheme, whether its long
      messages are still under way when a run ends or not. Traffic must last so long that what is under way of it in an
      empty network, each message for its ideal time, is no more than that share of what arrives in a quarter: else a
      message more or less decides. Where it does not, the run is done again with so many times the `flows`, `duration`,
      or both of every class that arrives by load (`times as long` of `runs`); with `lengthen=False` that is a
      `ValueError`;
    - or, with `keeps_up=None`, every message completes. This is what Harmony's paper calls sustainable;
    - with `slowdown` or `delay_us`, none that completes is slower than that either.

    What is unfinished fluctuates, the more so the more sizes differ: a run in which it happens to fall holds at a load
    that another seed does not. Where that matters, give several `seeds` and more flows. That what holds at a load holds
    below it is taken for granted. The loads' own ends are tried only if the search comes to them. `told` is given the
    row of each run as it ends. Ctrl-C ends the search: what it has come to is returned, with `interrupted` set.
    `folder` and `keep` are as for `compare`: a search that was interrupted goes on where it was.

    >>> import clearway as cw
    >>> s = cw.Scenario.from_toml('''
    ... transport = "udp"
    ... [fabric.star]
    ... hosts = 2
    ... [[traffic]]
    ... sizes = { constant = "14600B" }
    ... arrivals = { periodic = { load = 0.5 } }
    ... flows = 100
    ... ''')
    >>> print(cw.sustain(s, slowdown=1.01))  # 1,460 of 1,500 bytes are payload
    sustains 0.97; 0.98 does not hold
    """
    scenario = scenario_of(scenario)
    if not (resolution > 0 and 0 < low <= high < math.inf):
        raise ValueError(
            f"low={low}, high={high}, resolution={resolution}: loads are above 0, from low up to high, in steps above 0"
        )
    if (high - low) / resolution >= MOST_LOADS:
        raise ValueError(
            f"low={low:g}, high={high:g}, resolution={resolution:g} are {(high - low) / resolution + 1:,.0f} loads, "
            f"and at most {MOST_LOADS:,} are possible"
        )
    key, name = _class(scenario, traffic)
    loads = [round(low + step * resolution, 9) for step in range(int((high - low) / resolution + 1e-6) + 1)]
    rows: list[pd.Series[Any]] = []

    def ran(variant: Scenario) -> Result:
        [result] = compare(variant, threads=threads, progress=progress, folder=folder, keep=keep).results
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def holds(load: float) -> bool:
        for seed in list(seeds) or [scenario.to_dict()["seed"]]:
            variant = scenario.with_({key: load}, seed=seed, name=f"{scenario.name}, load {load:g}, seed {seed}")
            result, longer = ran(variant), 1
            if keeps_up is not None and keeps_up < 1:
                while (more := too_short(result, name, keeps_up)) > 1:
                    longer = math.ceil(longer * more * 1.1)
                    if not lengthen or longer > MOST_LONGER:
                        raise ValueError(_said_short(name, load, keeps_up, longer))
                    result = ran(_longer(variant, longer, name))
            row = _judge(result, name, load, seed, slowdown, delay_us, keeps_up, longer)
            rows.append(row)
            if told is not None:
                told(row)
            if not row["holds"]:
                return False
        return True

    search, interrupted = Bisection(loads), False
    try:
        while (load := search.next) is not None:
            search.tell(load, holds(load))
    except KeyboardInterrupt:
        interrupted = True
    return Sustained(
        load=search.load,
        fails=search.fails,
        runs=pd.DataFrame(rows, columns=COLUMNS).reset_index(drop=True).convert_dtypes(),
        low=loads[0],
        high=loads[-1],
        interrupted=interrupted,
    )


class Bisection:
    """The highest of some rising loads that holds, a run at a time."""

    def __init__(self, loads: Sequence[float]) -> None:
        self._loads = loads
        # Beyond both ends stands what is known without a run: no load holds, and every load fails.
        self._best, self._worst = -1, len(loads)

    @property
    def next(self) -> float | None:
        """The load to try; none if the answer is known."""
        return self._loads[(self._best + self._worst) // 2] if self._worst - self._best > 1 else None

    def tell(self, load: float, holds: bool) -> None:
        """What was found of that load."""
        index = self._loads.index(load)
        if holds:
            self._best = max(self._best, index)
        else:
            self._worst = min(self._worst, index)

    @property
    def load(self) -> float | None:
        """The highest that is known to hold."""
        return self._loads[self._best] if self._best >= 0 else None

    @property
    def fails(self) -> float | None:
        """The lowest that is known to fail."""
        return self._loads[self._worst] if self._worst < len(self._loads) else None


def _class(scenario: Scenario, traffic: str | None) -> tuple[str, str]:
    """The key of a class's load, and the class's name."""
    classes = scenario.to_dict()["traffic"]
    keys = {classes[int(key.split(".")[1])]["name"]: key for key in scenario._load_keys()}
    if not keys:
        raise ValueError("no traffic class of this scenario has arrivals by load")
    if traffic is None:
        traffic = next(iter(keys))
    if traffic not in keys:
        raise ValueError(f"traffic={traffic!r}: the classes that arrive by load are {', '.join(map(repr, keys))}")
    return keys[traffic], traffic


def _judge(
    result: Result,
    name: str,
    load: float,
    seed: int,
    slowdown: float | None,
    delay_us: float | None,
    keeps_up: float | None,
    longer: int,
) -> pd.Series[Any]:
    """The row of a run."""
    flows = result.flows
    of_class = flows["class"] == name
    status, fct = flows["status"][of_class], flows["fct_ps"][of_class].astype(float)
    rejected, failed = int((status == "rejected").sum()), int((status == "failed").sum())
    unfinished = int(np.isnan(fct).sum()) - rejected - failed
    done = ~np.isnan(fct)
    slowest = float(np.max(flows["slowdown"][of_class][done], initial=0.0))
    longest_us = float(np.max(fct[done], initial=0.0)) / 1e6
    kept = kept_up(*(flows[column][of_class].astype(float) for column in ("start_ps", "delivered_ps", "bytes")))
    held = [
        rejected + failed == 0,
        unfinished == 0 if keeps_up is None else kept >= keeps_up,
        slowdown is None or slowest <= slowdown,
        delay_us is None or longest_us <= delay_us,
    ]
    values = [
        load,
        seed,
        all(held),
        int(of_class.sum()),
        rejected,
        failed,
        unfinished,
        slowest,
        longest_us,
        kept,
        result.ok,
        longer,
    ]
    return pd.Series(dict(zip(COLUMNS, values, strict=True)), dtype=object)


def too_short(result: Result, name: str, keeps_up: float) -> float:
    """How many times as long arrivals must last for the rule to tell; 1 if they last long enough.

    What is under way in an empty network, as an average over the time T of arrivals, is the sum of bytes times ideal
    time over T, and what arrives in a quarter of T is the sum of bytes over 4. Their ratio falls as 1/T. Unfinished
    work moves by some of what is under way, whether it grows or not: so the ratio must not be above the share that the
    rule lets pass.
    """
    flows = result.flows
    of_class = (flows["class"] == name) & ~np.isnan(flows["start_ps"].astype(float))
    start, ideal, size = (flows[column][of_class].astype(float) for column in ("start_ps", "ideal_ps", "bytes"))
    lasted = float(np.ptp(start)) if len(start) else 0.0
    if not lasted:
        raise ValueError(
            f"traffic {name!r}: {len(start)} of its messages arrive, which is too few to tell what is sustained; give "
            "it more flows, or a longer duration"
        )
    under_way = 4 * float((size * ideal).sum() / size.sum()) / lasted
    return max(1.0, under_way / (1 - keeps_up))


def _said_short(name: str, load: float, keeps_up: float, longer: int) -> str:
    return (
        f"traffic {name!r}: at load {load:g} its arrivals are too short to tell whether unfinished work grows by more "
        f"than {1 - keeps_up:.2g} of what arrives: what is under way in an empty network is more than that. They must "
        f"last about {longer:,} times as long: set its flows or duration, or judge by --all-complete (keeps_up=None)"
    )


def _longer(scenario: Scenario, times: int, name: str) -> Scenario:
    """The same, with every class that arrives by load so many times as long."""
    said = scenario.to_dict()
    if said.get("measure", {}).get("end") is not None:
        end = said["measure"]["end"]
        raise ValueError(
            f"traffic {name!r}: its arrivals are too short for the rule, and measure.end = {end!r} keeps them from "
            f"lasting {times:,} times as long; leave it out"
        )
    keys: dict[str, Value] = {}
    for index in {int(key.split(".")[1]) for key in scenario._load_keys()}:
        traffic = said["traffic"][index]
        if traffic.get("flows") is not None:
            keys[f"traffic.{index}.flows"] = int(traffic["flows"]) * times
        if traffic.get("duration") is not None:
            parts = re.fullmatch(r"([0-9.]+)\s*([a-z]+)", traffic["duration"])
            number, unit = parts.groups()  # type: ignore[union-attr]
            keys[f"traffic.{index}.duration"] = f"{float(number) * times:.15g}{unit}"
    return scenario.with_(keys, name=f"{scenario.name}, {times} times as long")


def kept_up(start: Any, delivered: Any, size: Any) -> float:
    """The share of what arrives by which unfinished work does not grow, from the third quarter of the time of arrivals
    to the last; NaN if nothing arrives then.

    With a share of d left undelivered, unfinished work grows by d of what arrives: so do its averages from quarter to
    quarter, which a single large message at either end moves little.
    """
    if not (~np.isnan(start)).any():
        return float("nan")
    begin, end = np.nanmin(start), np.nanmax(start)
    middle, last = (begin + (end - begin) * share for share in (0.5, 0.75))
    until = np.where(np.isnan(delivered), np.inf, delivered)

    def unfinished(since: float, to: float) -> float:
        """On average over that time."""
        within = np.minimum(until, to) - np.maximum(start, since)
        return float(np.nansum(size * np.clip(within, 0.0, None)) / (to - since))

    arrived = float(size[(start >= middle) & (start <= end)].sum()) / 2
    return (
        1.0 - (unfinished(last, end) - unfinished(middle, last)) / arrived if arrived and end > begin else float("nan")
    )
