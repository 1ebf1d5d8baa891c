"""The same scenario by the machine's clock and in the simulator, flow by flow.

Both drive the same nodes, so the history is the same, packet for packet (`digest`), if the machine keeps pace; what is
left is how late the machine told receivers. A clock that is slower than the machine's (`live.dilation`) lets any
machine keep pace: it is chosen from the packets of the simulated run, for HOPS_PER_SECOND of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import clearway as cw
from clearway.papers import figures, slices
from clearway.papers.figures import Shown, draw
from clearway.papers.r2c2 import rack

PAPERS = Path(__file__).parents[1]
OUT = Path("out/maze")
# So many times the flows below: tests are content with fewer.
scale = 1.0

# The rate of one worker of any machine with content written and checked; one of ours does 2 M and more.
HOPS_PER_SECOND = 400_000
# The Kolmogorov-Smirnov distance of two distributions is to be below this.
DISTANCE = 0.05

Keys = Mapping[str, Any]


class Pair:
    """A scenario run both ways."""

    def __init__(self, name: str, scenario: str, keys: Keys) -> None:
        wanted = cw.Scenario.load(PAPERS / f"{scenario}.toml").with_({"name": name, **keys})
        self.name = name
        if slices.current() is not None:
            figures.simulated(wanted)
            raise slices.Enough  # before anything runs live
        wanted = to_one_end(wanted)
        self.simulated = cw.run(wanted, progress=figures.telling)
        seconds = self.simulated.info["end_ps"] / 1e12
        self.dilation = max(math.ceil(self.simulated.info["packet_hops"] / HOPS_PER_SECOND / seconds), 1)
        lives = {"live.dilation": self.dilation, "live.wait": "sleep"}
        self.live = cw.live(wanted.with_(lives), progress=figures.telling)
        if self.simulated.interrupted or self.live.interrupted:
            raise KeyboardInterrupt
        figures.heard(self.simulated.info, name, self.simulated.scenario_toml)

    @property
    def both(self) -> list[cw.Result]:
        """Simulated, live."""
        return [self.simulated, self.live]

    def row(self) -> dict[str, Any]:
        """How far live is from simulated."""
        slowdown = [values(result, "slowdown") for result in self.both]
        info = self.live.info
        in_time = next(finding for finding in info["audit"] if finding["name"] == "in time")
        return {
            "flows that completed": len(slowdown[0]),
            "million packet-hops": info["packet_hops"] / 1e6,
            "dilation": self.dilation,
            "same history": info["digest"] == self.simulated.digest,
            "slowdown: distance": distance(*slowdown),
            "mean, simulated": slowdown[0].mean(),
            "live": slowdown[1].mean(),
            "p99, simulated": np.quantile(slowdown[0], 0.99),
            "live ": np.quantile(slowdown[1], 0.99),
            "longest queues: distance": distance(*(queues(result) for result in self.both)),
            "late, us": values(self.live, "late_ps").mean() / 1e6,
            "in time": bool(in_time["ok"]),
        }


def to_one_end(wanted: cw.Scenario) -> cw.Scenario:
    """The scenario up to a fixed time. A run that ends with its last flow ends within a moment of that, which is not
    the same moment live: so there is one more flow, which would begin later.
    """
    end_us = math.ceil(cw.run(wanted).info["end_ps"] / 1e6)
    never = {"name": "after the end", "sizes": {"constant": "1B"}, "arrivals": "all_at_once", "flows": 1}
    said = wanted.to_dict()
    measure = {key: value for key, value in said["measure"].items() if key != "drain"}
    traffic = [*said["traffic"], {**never, "start": f"{2 * end_us}us"}]
    return wanted.with_({"measure": {**measure, "end": f"{end_us}us"}, "traffic": traffic})


def values(result: cw.Result, column: str) -> npt.NDArray[np.float64]:
    """A column of the flows that completed."""
    numbers = result.flows[column].astype(float)
    return np.asarray(numbers[~np.isnan(numbers)])


def queues(result: cw.Result) -> npt.NDArray[np.float64]:
    """The longest queue of each port of a switch, in bytes."""
    links = result.links
    return np.asarray(links["queued_bytes_max"][links["tier"] != "from_host"].astype(float))


def distance(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Kolmogorov and Smirnov's: the greatest difference of two distribution functions."""
    at = np.concatenate([one, other])
    of = [np.searchsorted(np.sort(values), at, side="right") / len(values) for values in (one, other)]
    return float(np.abs(of[0] - of[1]).max())


def compared(scenes: Mapping[str, tuple[str, Keys]]) -> tuple[pd.DataFrame, dict[str, bool], list[Pair]]:
    """A row for each scene, and what must hold of each."""
    pairs = [Pair(name, scenario, keys) for name, (scenario, keys) in scenes.items()]
    table = pd.DataFrame({pair.name: pair.row() for pair in pairs}).T.rename_axis("scene")
    checks = {}
    for pair in pairs:
        row: Any = table.loc[pair.name]
        checks[f"{pair.name}: the same flows are delivered, with right content"] = (
            pair.live.unfinished == pair.simulated.unfinished
            and all(finding["ok"] for finding in pair.live.info["audit"] if finding["name"] != "in time")
        )
        checks[f"{pair.name}: the history is the simulator's, packet for packet"] = bool(row["same history"])
        checks[f"{pair.name}: distance of slowdowns {row['slowdown: distance']:.3f}, below {DISTANCE}"] = (
            row["slowdown: distance"] < DISTANCE
        )
        checks[f"{pair.name}: distance of longest queues {row['longest queues: distance']:.3f}, below {DISTANCE}"] = (
            row["longest queues: distance"] < DISTANCE
        )
        checks[f"{pair.name}: the machine kept pace"] = bool(row["in time"])
    return table, checks, pairs


def cdf(title: str, of: Mapping[str, npt.NDArray[np.float64]], axis: str) -> Callable[[Any], object]:
    """Distribution functions in one panel."""

    def panel(axes: Any) -> None:
        for (name, numbers), style in zip(of.items(), ("-", "--", ":", "-.")):
            axes.plot(np.sort(numbers), np.arange(1, len(numbers) + 1) / len(numbers), style, label=name)
        axes.set(title=title, xlabel=axis, ylabel="share", ylim=(0, 1))
        axes.legend()

    return panel


def figure_7() -> Shown:
    """The cross-validation of R2C2, whole: 1,000 flows of 10 MB on a 4 x 4 torus, links of 5 Gbps and 2.5 Gbps."""
    flows = {"traffic.0.flows": max(round(1000 * scale), 4)}
    slow = {"fabric.torus.rate": "2.5Gbps", "fabric.torus.host_rate": "10Gbps"}
    # As many bytes a second for what the links carry.
    slow |= {"traffic.0.arrivals.poisson.every": "2ms"}
    table, checks, pairs = compared(
        {"5 Gbps": ("r2c2/maze", flows), "2.5 Gbps": ("r2c2/maze", {**flows, **slow})},
    )
    panels = []
    for pair in pairs:
        names = ("simulated", "live")
        panels += [
            cdf(
                f"Flows, {pair.name}",
                {name: rack.flows_of(of)["gbps"].dropna().to_numpy() for name, of in zip(names, pair.both)},
                "average throughput (Gbps)",
            ),
            cdf(
                f"Queues, {pair.name}",
                {name: queues(result) / 1e3 for name, result in zip(names, pair.both)},
                "longest over the run (KB)",
            ),
        ]
    return Shown(table, checks, draw(panels, columns=2))


def cross_validation() -> Shown:
    """Other systems live and simulated: dcPIM, DCTCP, Harmony, Pyrrha under incast, Augmented Queue."""
    of = round(600 * scale)
    testbed = {"traffic.0.flows": of, "measure.drain": "200ms"}
    # Flows that end: the paper's last as long as the run.
    ends: dict[str, Any] = {"measure.end": "60ms", "measure.interval": "1ms"}
    ends |= {f"traffic.{entity}.sizes.constant": "200KB" for entity in range(4)}
    # With few flows the shift of one is a distance.
    ends |= {f"traffic.{entity}.flows": max(round(60 * scale), 3) for entity in range(1, 4)}
    table, checks, _ = compared(
        {
            "dcPIM": ("dcpim/figure-7-testbed", {**testbed, "transport": {"dcpim": {"departures": "paper"}}}),
            "DCTCP": ("dcpim/figure-7-testbed", {**testbed, "transport": "dctcp"}),
            "Harmony": ("harmony/testbed", {"traffic.0.duration": f"{max(10 * scale, 1):g}ms"}),
            "Pyrrha, an incast": ("maze/incast", {"traffic.1.flows": max(round(300 * scale), 20)}),
            "AQ, four entities": ("augmented_queue/table-2-four", ends),
        }
    )
    return Shown(table, checks)


def testbeds() -> Shown:
    """The papers' testbeds live: dcPIM's 32 servers (section 4.2) and Harmony's 8 (section 5.1)."""
    dcpim = {"traffic.0.flows": max(round(2000 * scale), 20), "measure.drain": "200ms"}
    table, checks, _ = compared(
        {
            "dcPIM, section 4.2": (
                "dcpim/figure-7-testbed",
                {**dcpim, "transport": {"dcpim": {"departures": "paper"}}},
            ),
            "CUBIC, section 4.2": ("dcpim/figure-7-testbed", {**dcpim, "transport": "cubic"}),
            "Harmony, section 5.1": ("harmony/testbed", {"traffic.0.duration": f"{max(30 * scale, 1):g}ms"}),
        }
    )
    return Shown(table, checks)
