"""Shared by the figures of R2C2's paper: who carries the rack's flows, runs, what is measured of them, and how it
is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Keys, draw
from clearway.reports.looks import COLOURS

__all__ = ["draw"]

HERE = Path(__file__).parent
OUT = Path("out/r2c2")

# So many times the flows below: tests are content with fewer.
scale = 1.0
# At these loads windows of 100 ns are too short to be worth sharing among threads.
THREADS = 1

# A Pareto law of shape 1.05 has no variance: what few flows decide is told over several seeds.
SEEDS = (1, 2, 3)
INTERVALS = ("100ns", "1us", "10us", "100us")
# The paper does not say how many flows its runs have.
FLOWS = {"100ns": 20_000, "1us": 10_000, "10us": 5_000, "100us": 3_000}
SHORT_BYTES, LONG_BYTES = 100_000, 1_000_000
PACKET_BYTES = 1_500

UNLIMITED = {"shared": {"bytes": "1GB"}}
SCHEMES: dict[str, dict[str, Any]] = {
    "TCP": {"transport": "newreno", "switch.buffer": {"per_port": {"bytes": "150KB"}}, "switch.balancing": "ecmp"},
    # Hosts send as fast as they are let; nothing is lost, so nothing needs to be sent again.
    "PFQ": {
        "transport": {"udp": {"patience": "1s"}},
        "flow_control": {"per_flow_queues": {"margin": "60KB"}},
        "switch.buffer": UNLIMITED,
        "switch.balancing": "spray",
    },
    # A flow begins with its fair share as its sender sees it (section 3.1), or at the rate that it would have alone
    # (section 3.3.2).
    "R2C2": {"transport": {"r2c2": {"first_rate": "fair"}}, "switch.buffer": UNLIMITED},
    "R2C2 alone": {"transport": {"r2c2": {"first_rate": "alone"}}, "switch.buffer": UNLIMITED},
}
READINGS = ("R2C2", "R2C2 alone")
TRANSPORTS = {"TCP": "newreno", "PFQ": "udp", "R2C2": "r2c2", "R2C2 alone": "r2c2"}


def run(scenario: str, name: str, sets: Keys) -> cw.Result:
    """A scenario with some keys set; it is an error if the audit finds anything."""
    return figures.run(HERE / f"{scenario}.toml", name, sets, OUT, THREADS)


def rack(name: str, keys: Keys, every: str, seed: int, flows: int | None = None) -> cw.Result:
    """The rack's flows with the given time between arrivals, over some transport; the usual number of them, or
    `flows`."""
    sets = {
        **keys,
        "seed": seed,
        "traffic.0.arrivals.poisson.every": every,
        "traffic.0.flows": flows or round(FLOWS[every] * scale),
    }
    return run("rack", f"{name} {every} seed {seed}", sets)


class Runs:
    """The results of several seeds."""

    def __init__(self, results: Iterable[cw.Result]) -> None:
        self.results = list(results)
        self.flows = pd.concat(
            [flows_of(result) for result in self.results], keys=range(len(self.results)), names=["run"]
        )
        self.queues = np.concatenate([queues_of(result) for result in self.results])

    @property
    def short_us(self) -> pd.Series[float]:
        """Completion times of flows of less than 100 KB."""
        return self.flows.loc[self.flows["bytes"] < SHORT_BYTES, "fct_us"].dropna()

    @property
    def long_gbps(self) -> pd.Series[float]:
        """Throughputs of flows of more than 1 MB: payload over completion time."""
        return self.flows.loc[self.flows["bytes"] > LONG_BYTES, "gbps"].dropna()

    @property
    def unfinished(self) -> int:
        return int(self.flows["fct_us"].isna().sum())

    def row(self) -> pd.Series[float]:
        """The numbers of figures 10 to 14."""
        short, long = self.short_us, self.long_gbps
        return pd.Series(
            {
                "short p50 us": short.median(),
                "short p99 us": short.quantile(0.99),
                "long mean Gbps": long.mean(),
                "long p50 Gbps": long.median(),
                "long p99 Gbps": long.quantile(0.99),
                "long flows": len(long),
                "queue p50 KB": np.median(self.queues) / 1e3,
                "queue p99 KB": np.quantile(self.queues, 0.99) / 1e3,
                "queue max KB": self.queues.max() / 1e3,
                "at once": max(at_once(flows) for _, flows in self.flows.groupby("run")),
                "unfinished": self.unfinished,
                "lost": sum(int(result.links.to_pandas()["overflow_packets"].sum()) for result in self.results),
            }
        )

    def cost(self) -> pd.Series[float]:
        """The cost of a run: mean times, and the peak memory."""
        infos = [result.info for result in self.results]
        return pd.Series(
            {
                "million packet hops": np.mean([info["packet_hops"] for info in infos]) / 1e6,
                "seconds": np.mean([info["wall_seconds"] for info in infos]),
                "MB": max(info["peak_memory_bytes"] for info in infos) / 1e6,
            }
        )


def runs(scheme: str, every: str = "1us", **settings: Any) -> Runs:
    """TCP, PFQ or R2C2, with the paper's settings but for these of its transport's, over all seeds."""
    found = _runs(scheme, every, **settings)
    for result in found.results:
        figures.heard(result.info, result.name, result.scenario_toml)
    return found


def forget() -> None:
    """Makes `runs` look again, at other options."""
    _runs.cache_clear()


@cache
def _runs(scheme: str, every: str, **settings: Any) -> Runs:
    name = " ".join([scheme, *(f"{key} {value}" for key, value in settings.items())])
    return Runs(rack(name, keys_of(scheme, **settings), every, seed) for seed in SEEDS)


def keys_of(scheme: str, **settings: Any) -> dict[str, Any]:
    """The keys of a scheme, with some settings of its transport's."""
    return {**SCHEMES[scheme], **{f"transport.{TRANSPORTS[scheme]}.{key}": value for key, value in settings.items()}}


def flows_of(result: cw.Result) -> pd.DataFrame:
    """Of each flow: its length, start, completion time and throughput; null where it has not completed."""
    table = result.flows.to_pandas()
    times = table[["start_ps", "fct_ps"]].astype("float64") / 1e6
    flows = pd.DataFrame({"bytes": table["bytes"], "start_us": times["start_ps"], "fct_us": times["fct_ps"]})
    flows["gbps"] = flows["bytes"] * 8e-3 / flows["fct_us"]
    return flows


def at_once(flows: pd.DataFrame) -> int:
    """The most flows under way at once."""
    starts = np.sort(flows["start_us"].to_numpy())
    ends = np.sort((flows["start_us"] + flows["fct_us"]).fillna(np.inf).to_numpy())
    return int((np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")).max())


def queues_of(result: cw.Result) -> npt.NDArray[np.float64]:
    """The longest that each queue between nodes has been, in bytes: those to and from hosts are a node's own inside."""
    links = result.links.to_pandas()
    return links.loc[links["tier"].isin(["up", "down"]), "queued_bytes_max"].to_numpy(float)


def measures(result: cw.Result) -> pd.DataFrame:
    """The transport's measurements of each flow, one column for each."""
    table = result.tables["measures"].to_arrow().to_pandas()
    found: pd.DataFrame = table.pivot(index="flow", columns="measure", values="value").astype(float)
    return found


def control_bytes(result: cw.Result) -> int:
    """The bytes of R2C2's control packets on links between nodes."""
    counters = result.tables["counters"].to_arrow().to_pandas().set_index("counter")["value"]
    return int(counters[["broadcast_copied_bytes", "unicast_control_bytes"]].sum())


def events(result: cw.Result) -> int:
    """The broadcasts that nodes have sent about their flows."""
    counters = result.tables["counters"].to_arrow().to_pandas().set_index("counter")["value"]
    return int(counters["broadcasts"])


def control_bytes_of_event(long_flows: int, control: str) -> float:
    """The bytes that links carry for an event while each node has the given number of long flows: the additional bytes
    of a run with ten more flows, over its additional events."""
    who = {"centralised": {"controller": 0}} if control == "centralised" else control
    sets = {"traffic.0.flows": 512 * long_flows, "transport.r2c2.control": who}
    with_events = run("control", f"{control} {long_flows}", sets)
    without = run("control", f"{control} {long_flows} alone", {**sets, "traffic.1.start": "1s"})
    return (control_bytes(with_events) - control_bytes(without)) / (events(with_events) - events(without))


def cdf(title: str, values: Mapping[str, pd.Series[float]], x: str, *, log_x: bool = False) -> Callable[[Axes], None]:
    """One distribution per line."""

    def panel(axes: Axes) -> None:
        for colour, (name, of) in zip(COLOURS, values.items()):
            axes.ecdf(of.to_numpy(), color=colour, label=name)
        if log_x:
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0)
        axes.set(title=title, xlabel=x, ylabel="CDF")
        axes.legend(fontsize=7, loc="lower right")

    return panel


def bars(title: str, table: pd.DataFrame, x: str, y: str, *, log_y: bool = False) -> Callable[[Axes], None]:
    """A group a row and a bar a column."""

    def panel(axes: Axes) -> None:
        width = 0.8 / len(table.columns)
        for index, (name, values) in enumerate(table.items()):
            places = np.arange(len(table)) + (index + 0.5) * width - 0.4
            axes.bar(places, values.to_numpy(float), width * 0.94, color=COLOURS[index % len(COLOURS)], label=str(name))
        axes.set_xticks(range(len(table)), [str(name) for name in table.index])
        axes.set(title=title, xlabel=x, ylabel=y)
        if log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 1.15 * float(np.nanmax(table.to_numpy(float))))
        axes.legend(fontsize=7, ncols=len(table.columns), loc="upper left")

    return panel


def lines(title: str, table: pd.DataFrame, x: str, y: str) -> Callable[[Axes], None]:
    """A line a column, by the index, in equal steps if that is names."""

    def panel(axes: Axes) -> None:
        names = not pd.api.types.is_numeric_dtype(table.index)
        places = range(len(table)) if names else table.index
        for colour, (name, values) in zip(COLOURS, table.items()):
            axes.plot(places, values.to_numpy(float), marker="o", markersize=4, color=colour, label=str(name))
        if names:
            axes.set_xticks(range(len(table)), [str(name) for name in table.index])
        # Panels may share their axis: the tallest sets it.
        axes.set(
            title=title,
            xlabel=x,
            ylabel=y,
            ylim=(0, max(axes.get_ylim()[1], 1.08 * float(np.nanmax(table.to_numpy(float))))),
        )
        axes.legend(fontsize=7)

    return panel


def table_of(rows: Mapping[Any, pd.Series[float]], names: str | list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows).T.rename_axis(names)
