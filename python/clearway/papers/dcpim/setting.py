"""Shared by the figures of dcPIM's paper: its schemes, their runs, and the measurements of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Keys, cell

from .published import BDP, one_way, plotted

HERE = Path(__file__).parent

OUT = Path("out/dcpim")

# How many flows, and for how long, as a share of what the scenarios say.
scale = 1.0

# Seeds of what is measured with confidence, and of whom, where not all are wanted.
seeds = 3

only: frozenset[str] = frozenset()

# The paper's protocols, in its order, then those that its section 5 and its rivals' papers speak of. HPCC stands on
# PFC, with the 16 MB a switch that table 1 has; NDP brings its queues of 8 packets.
PFC: Keys = {"flow_control": "pfc", "switch.buffer": {"shared": {"bytes": "16MB"}}}

PAPER: Mapping[str, Keys] = {
    "dcPIM": {"transport": {"dcpim": {"departures": "paper"}}},
    "Homa Aeolus": {"transport": "homa_aeolus"},
    "NDP": {"transport": "ndp"},
    "HPCC": {"transport": "hpcc", **PFC},
}

MORE: Mapping[str, Keys] = {
    "Homa": {"transport": "homa"},
    "pHost": {"transport": "phost"},
    "pFabric": {"transport": "pfabric"},
}

ALL = {**PAPER, **MORE}

# The rivals as dcPIM's authors ran them, where that is known, beside those by their own papers (papers/ndp/reference,
# docs/schemes/homa.md): NDP's program of 2017 with `-cwnd 48`, whose packets have 1,500 B of payload and 64 of headers;
# Homa Aeolus's simulation with one unscheduled level and RTTbytes of 72,000, whose times end where a message is
# received.
AS_RUN: Mapping[str, Keys] = {
    "NDP (as run)": {
        "transport": {
            "ndp": {"departures": "published", "initial_window": "75072B", "path_penalty": False, "rto": "1ms"}
        },
        "host.mtu": "1564B",
        "host.header": "64B",
    },
    "Homa Aeolus (as run)": {"transport": {"homa_aeolus": {"homa": {"rtt_bytes": "72000B", "unscheduled_levels": 1}}}},
}

BOTH = {**ALL, **AS_RUN}

COLOURS = dict(
    zip(BOTH, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#00553d", "#8a3c00"))
)

WORKLOADS = {"imc10": "IMC10", "websearch": "web search", "datamining": "data mining"}

KEYS = {
    "dcPIM": "dcpim",
    "Homa Aeolus": "homa_aeolus",
    "NDP": "ndp",
    "HPCC": "hpcc",
    "NDP (as run)": "ndp",
    "Homa Aeolus (as run)": "homa_aeolus",
}

# As the accuracy page calls them.
SCHEMES = {
    **KEYS,
    "HPCC": "hpcc over pfc",
    "NDP (as run)": "ndp, as dcPIM's authors ran it",
    "Homa Aeolus (as run)": "homa_aeolus, one way, as dcPIM's authors ran it",
}

SIZES = ("short", "medium", "long")

PROGRAM: Keys = {"transport": {"dcpim": {"departures": "authors_2022"}}}

LATER_PROGRAM: Keys = {"transport": {"dcpim": {"departures": "authors_2023"}}}

THEIR_PROGRAM = "its authors' program"

THEIR_PLOTS = "the numbers behind its authors' plots"

PLOTS = "the numbers behind the plots of dcPIM's authors"

# Of what their plots show: their runs have 1,000,000 flows and other draws.
OF_PLOTS = {"mean": 0.05, "p99": 0.15}

# Of rivals, whose settings there are known in part.
OF_RIVALS = {"mean": 0.1, "p99": 0.2}

# Of what their program gave on the very same flows: that program's own spread when ties fall in another order is 0.6%
# and 6%.
OF_PROGRAM = {"mean": 0.02, "p99": 0.06}


def wanted(schemes: Mapping[str, Keys]) -> Mapping[str, Keys]:
    """Those that were asked for, dcPIM always."""
    return {name: keys for name, keys in schemes.items() if not only or name in only or name == "dcPIM"}


def run(scenario: str, name: str, keys: Keys, flows: bool = True) -> cw.Result:
    """A scenario with some keys set."""
    path = HERE / f"{scenario}.toml"
    if flows and scale != 1.0:
        count = next(part["flows"] for part in cw.Scenario.load(path).to_dict()["traffic"] if "flows" in part)
        keys = {**keys, "traffic.all.flows": max(20, round(count * scale))}
    return figures.run(path, name, keys, OUT)


def as_run(scenario: str, scheme: str, keys: Keys, name: str = "") -> cw.Result:
    """A run of a figure of the leaf-spine. NDP's program is given each message as a number of its own, larger packets,
    at the same times."""
    if scheme == "NDP (as run)":
        traffic = cw.Scenario.load(HERE / f"{scenario}.toml").to_dict()["traffic"][0]
        load = traffic["arrivals"]["poisson"]["load"] * 1_564 / 1_500
        keys = {**keys, "traffic.all.arrivals.poisson.load": round(load, 6)}
        if "round_to" in traffic:
            keys = {**keys, "traffic.all.round_to": "1500B"}
        else:
            keys = {**keys, "traffic.all.sizes.constant": f"{math.ceil((BDP + 1) / 1_460) * 1_500}B"}  # figure 4b
    return run(scenario, f"{scheme} {name}".strip(), keys)


def as_plotted(scheme: str, result: cw.Result) -> pd.DataFrame:
    """Bytes and slowdown of its flows as dcPIM's plots compute them, as far as that is known."""
    if scheme == "Homa Aeolus (as run)":
        return one_way(result)
    return plotted(result, payload=1_500 if scheme == "NDP (as run)" else 1_460)


def by_size(result: cw.Result, bins: Sequence[float] | None = (BDP, 8 * BDP)) -> dict[str, float]:
    """Mean and 99th percentile of all flows, and of short, medium and long ones."""
    sizes = pd.concat([result.slowdown(), result.slowdown(by="size", bins=bins).set_axis(SIZES)])
    return {f"{size} {name}": cell(sizes, size, name) for size in ("all", *SIZES) for name in ("mean", "p99")}


def slowdowns(runs: Mapping[tuple[str, str], cw.Result]) -> pd.DataFrame:
    """A row a workload and scheme: mean and 99th percentile of all flows, and by size."""
    rows = {}
    for at, result in runs.items():
        rows[at] = {**by_size(result), "unfinished": result.unfinished}
    return pd.DataFrame(rows).T.rename_axis(["workload", "scheme"])


def all_to_all(prefix: str, schemes: Mapping[str, Keys]) -> pd.DataFrame:
    """The three workloads by each scheme."""
    runs = {
        (words, scheme): run(f"{prefix}-{workload}", scheme, keys)
        for workload, words in WORKLOADS.items()
        for scheme, keys in schemes.items()
    }
    return slowdowns(runs)


def within(values: pd.Series[float], low: float, high: float, spread: float = 0.1, least: float = 0.0) -> bool:
    """Whether all are within the paper's range, give or take a tenth of its ends; of what they are above `least`,
    where no value can be below it: a slowdown of 1.14 is no tenth off from 1.04."""
    return bool(values.between(least + (low - least) * (1 - spread), least + (high - least) * (1 + spread)).all())


def span(values: pd.Series[float]) -> str:
    """The least and the most of some values."""
    return f"{values.min():.3g}-{values.max():.3g}"


def of(table: pd.DataFrame, scheme: str, column: str) -> pd.Series[float]:
    """The results of the workloads for a scheme."""
    return table.xs(scheme, level="scheme")[column]


OFFSETS_US = (0, 0.3, 1, 3, 7.5, 15, 30, 1_000)

DRIFTS_PPM = (0, 10, 100)
