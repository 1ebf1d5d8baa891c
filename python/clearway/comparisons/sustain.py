"""The highest load that a scenario's scheme keeps up with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clearway.comparisons.comparison import compare
from clearway.defaults import KEEPS_UP
from clearway.results.result import Result
from clearway.running.run import _Listener
from clearway.scenarios.scenario import Scenario, Value, scenario_of

COLUMNS = [
    "load", "seed", "holds", "flows", "rejected", "failed", "unfinished", "slowdown max", "delay max us", "kept up",
    "audit", "times as long",
]  # fmt: skip

MOST_LOADS = 10_000
"""The most loads of a search."""

MOST_LONGER = 1_000
"""How many times as long as in its scenario a run may last."""


@dataclass(frozen=True)
class Sustained:
    """The highest load that holds, and the runs that were made to find it."""

    load: float | None
    """The highest load that holds; none if even the lowest does not, or if none is known yet."""
    fails: float | None
    """The lowest load known to fail; none if the highest holds, or if none is known yet."""
    runs: pd.DataFrame
    """One row for each run: what happened to the messages of the class, and whether the load holds."""
    low: float
    """The lowest load that could be the answer."""
    high: float
    """The highest."""
    interrupted: bool = False
    """Whether the search was ended before it had an answer, which then lies between `load` and `fails`."""

    @property
    def longer(self) -> int:
        """How many times as long as in the scenario the longest run lasted; 1 if the scenario's arrivals sufficed."""
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
    near: float | None = None,
    slowdown: float | None = None,
    delay_us: float | None = None,
    keeps_up: float | None = KEEPS_UP,
    lengthen: bool = True,
    threads: int | None = None,
    progress: bool | _Listener | None = None,
    tell: Callable[[pd.Series[Any]], object] | None = None,
    folder: str | Path | None = None,
    keep: bool = False,
) -> Sustained:
    """The highest load of a class of traffic that holds, by bisection over `low`, `low + resolution`, ..., `high`.

    `traffic` is the class whose load is varied and whose messages are judged, by default the first that has a load. A
    load holds if it holds with each of the `seeds` (by default the scenario's own): no message of the class is rejected
    or fails, and

    - unfinished work does not grow. Unfinished work is the bytes of messages that have arrived and are not delivered.
      Its average over the last quarter of the arrival time may exceed that over the quarter before by at most a share
      of 1 - `keeps_up` of the bytes that arrive in a quarter. The rule works for any scheme, even if long messages are
      in progress when a run ends. To decide, it needs arrivals that last long enough (`too_short`). If they do not, the
      run is repeated with a multiple of the `flows` and `duration` of every class that has a load (`times as long` of
      `runs`); with `lengthen=False` that is a `ValueError`;
    - or, with `keeps_up=None`, every message completes. Harmony's paper calls this sustainable;
    - with `slowdown` or `delay_us`, no completed message is slower than that either.

    Unfinished work fluctuates, the more so the more sizes differ, so that a load can hold with one seed and fail with
    another. If that matters, give several `seeds` and more flows. A load below one that holds is assumed to hold. The
    search begins at the load `near`, if given, and needs only two loads if that is the answer. `tell` is called with
    the row of each run as it ends. Ctrl-C ends the search: the result so far is returned, with `interrupted` set.
    `folder` and `keep` are as for `compare`: an interrupted search resumes.

    >>> import clearway as cw
    >>> s = cw.Scenario.from_toml('''
    ... timing = "ideal"
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
    scenario, loads = scenario_of(scenario), _loads(low, high, resolution)
    key, name = _class(scenario, traffic)
    rule = _Rule(name, slowdown, delay_us, keeps_up, lengthen)
    rows: list[pd.Series[Any]] = []

    run = partial(_whole, threads=threads, progress=progress, folder=folder, keep=keep)

    def holds(load: float) -> bool:
        for seed in list(seeds) or [scenario.to_dict()["seed"]]:
            variant = scenario.with_({key: load}, seed=seed, name=f"{scenario.name}, load {load:g}, seed {seed}")
            rows.append(rule.judged(variant, run, load, seed))
            if tell is not None:
                tell(rows[-1])
            if not rows[-1]["holds"]:
                return False
        return True

    search, interrupted = Bisection(loads, near), False
    try:
        while (load := search.next) is not None:
            search.tell(load, holds(load))
    except KeyboardInterrupt:
        interrupted = True
    runs = pd.DataFrame(rows, columns=COLUMNS).reset_index(drop=True).convert_dtypes()
    return Sustained(search.load, search.fails, runs, loads[0], loads[-1], interrupted)


def _whole(variant: Scenario, **how: Any) -> Result:
    """The result of a run that was not interrupted."""
    [result] = compare(variant, **how).results
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _loads(low: float, high: float, resolution: float) -> list[float]:
    """The loads among which is searched."""
    if not (resolution > 0 and 0 < low <= high < math.inf):
        raise ValueError(
            f"low={low}, high={high}, resolution={resolution}: low must be above 0, high at least low, resolution "
            "above 0"
        )
    if (high - low) / resolution >= MOST_LOADS:
        raise ValueError(
            f"low={low:g}, high={high:g}, resolution={resolution:g} give {(high - low) / resolution + 1:,.0f} loads, "
            f"and at most {MOST_LOADS:,} can be searched; choose a larger resolution"
        )
    return [round(low + step * resolution, 9) for step in range(int((high - low) / resolution + 1e-6) + 1)]


class Bisection:
    """Bisection for the highest of some ascending loads that holds, one run at a time. With a load `near` the answer
    it tries that one first, and goes from there in steps that double until the answer is between two loads."""

    def __init__(self, loads: Sequence[float], near: float | None = None) -> None:
        if near is not None and not loads[0] <= near <= loads[-1]:
            raise ValueError(
                f"near={near}: it must be among the loads that are searched, {loads[0]:g} to {loads[-1]:g}"
            )
        self._loads = loads
        # The highest load known to hold and the lowest known to fail: none yet.
        self._best, self._worst = -1, len(loads)
        self._first = None if near is None else min(range(len(loads)), key=lambda index: abs(loads[index] - near))

    @property
    def next(self) -> float | None:
        """The load to try; `None` if the answer is known."""
        if self._worst - self._best <= 1:
            return None
        middle = (self._best + self._worst) // 2
        if self._first is None:
            return self._loads[middle]
        if self._best < 0 and self._worst == len(self._loads):
            return self._loads[self._first]
        if self._worst == len(self._loads):
            return self._loads[min(self._best + max(1, self._best - self._first), self._worst - 1)]
        if self._best < 0:
            return self._loads[max(self._worst - max(1, self._first - self._worst), 0)]
        return self._loads[middle]

    def tell(self, load: float, holds: bool) -> None:
        """Reports whether that load holds."""
        index = self._loads.index(load)
        if holds:
            self._best = max(self._best, index)
        else:
            self._worst = min(self._worst, index)

    @property
    def load(self) -> float | None:
        """The highest load known to hold."""
        return self._loads[self._best] if self._best >= 0 else None

    @property
    def fails(self) -> float | None:
        """The lowest load known to fail."""
        return self._loads[self._worst] if self._worst < len(self._loads) else None


def _class(scenario: Scenario, traffic: str | None) -> tuple[str, str]:
    """The key of a class's load, and the class's name."""
    classes = scenario.to_dict()["traffic"]
    keys = {classes[int(key.split(".")[1])]["name"]: key for key in scenario._load_keys()}
    if not keys:
        raise ValueError(
            "no traffic class of this scenario has arrivals by load; set one, such as arrivals = "
            "{ poisson = { load = 0.5 } }"
        )
    if traffic is None:
        traffic = next(iter(keys))
    if traffic not in keys:
        raise ValueError(
            f"traffic={traffic!r} is not a class with arrivals by load; those are {', '.join(map(repr, keys))}"
        )
    return keys[traffic], traffic


@dataclass(frozen=True)
class _Rule:
    """The conditions on a class's messages for a load to hold. The fields are those of `sustain`."""

    name: str
    slowdown: float | None
    delay_us: float | None
    keeps_up: float | None
    lengthen: bool

    def judged(self, variant: Scenario, run: Callable[[Scenario], Result], load: float, seed: int) -> pd.Series[Any]:
        """The row of a run, after runs for longer if its arrivals are too short to decide."""
        result, longer = run(variant), 1
        if self.keeps_up is not None and self.keeps_up < 1:
            while (more := too_short(result, self.name, self.keeps_up)) > 1:
                longer = math.ceil(longer * more * 1.1)
                if not self.lengthen or longer > MOST_LONGER:
                    raise ValueError(_said_short(self.name, load, self.keeps_up, longer))
                result = run(_longer(variant, longer, self.name))
        return self._row(result, load, seed, longer)

    def _row(self, result: Result, load: float, seed: int, longer: int) -> pd.Series[Any]:
        flows = result.flows
        of_class = flows["class"] == self.name
        status, fct = flows["status"][of_class], flows["fct_ps"][of_class].astype(float)
        rejected, failed = int((status == "rejected").sum()), int((status == "failed").sum())
        unfinished = int(np.isnan(fct).sum()) - rejected - failed
        done = ~np.isnan(fct)
        slowest = float(np.max(flows["slowdown"][of_class][done], initial=0.0))
        longest_us = float(np.max(fct[done], initial=0.0)) / 1e6
        kept = kept_up(*(flows[column][of_class].astype(float) for column in ("start_ps", "delivered_ps", "bytes")))
        held = [
            rejected + failed == 0,
            unfinished == 0 if self.keeps_up is None else kept >= self.keeps_up,
            self.slowdown is None or slowest <= self.slowdown,
            self.delay_us is None or longest_us <= self.delay_us,
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
    """How many times longer arrivals must last for the rule to decide; 1 if they last long enough.

    The average work in progress in an empty network over the time T of arrivals is the sum of bytes times ideal time
    over T, and a quarter of T brings the sum of bytes over 4. Their ratio falls as 1/T. Unfinished work fluctuates by a
    part of the work in progress, whether it grows or not. So the ratio must not exceed the share that the rule
    tolerates.
    """
    flows = result.flows
    of_class = (flows["class"] == name) & ~np.isnan(flows["start_ps"].astype(float))
    start, ideal, size = (flows[column][of_class].astype(float) for column in ("start_ps", "ideal_ps", "bytes"))
    lasted = float(np.ptp(start)) if len(start) else 0.0
    if not lasted:
        raise ValueError(
            f"traffic {name!r}: {len(start)} of its messages arrive, which is too few to judge a load; give it more "
            "flows or a longer duration"
        )
    under_way = 4 * float((size * ideal).sum() / size.sum()) / lasted
    return max(1.0, under_way / (1 - keeps_up))


def _said_short(name: str, load: float, keeps_up: float, longer: int) -> str:
    return (
        f"traffic {name!r}: at load {load:g} its arrivals do not last long enough to tell whether unfinished work "
        f"grows by more than {1 - keeps_up:.2g} of the bytes that arrive, because more than that is in flight even in "
        f"an empty network. Let them last about {longer:,} times as long, by flows or duration, or judge by "
        "--all-complete (keeps_up=None)"
    )


def _longer(scenario: Scenario, times: int, name: str) -> Scenario:
    """The same scenario, with every class that has a load this many times longer."""
    said = scenario.to_dict()
    if said.get("measure", {}).get("end") is not None:
        end = said["measure"]["end"]
        raise ValueError(
            f"traffic {name!r}: its arrivals must last {times:,} times as long to judge the load, and measure.end = "
            f"{end!r} cuts them off; leave measure.end out"
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
    """The share of arriving bytes that is delivered, from the growth of unfinished work between the third and the last
    quarter of the arrival time; NaN if nothing arrives then.

    If a share of d is not delivered, unfinished work grows by d of what arrives, and so do its averages from quarter to
    quarter. A single large message at either end moves these little.
    """
    if not (~np.isnan(start)).any():
        return float("nan")
    begin, end = np.nanmin(start), np.nanmax(start)
    middle, last = (begin + (end - begin) * share for share in (0.5, 0.75))
    until = np.where(np.isnan(delivered), np.inf, delivered)

    def unfinished(since: float, to: float) -> float:
        """The average over that time."""
        within = np.minimum(until, to) - np.maximum(start, since)
        return float(np.nansum(size * np.clip(within, 0.0, None)) / (to - since))

    arrived = float(size[(start >= middle) & (start <= end)].sum()) / 2
    return (
        1.0 - (unfinished(last, end) - unfinished(middle, last)) / arrived if arrived and end > begin else float("nan")
    )
