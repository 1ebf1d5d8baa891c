"""The authors' own ns-3 runs, flow by flow (reference/README.md): ours held against theirs by class and by size, and
what each setting of their program does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Shown

from . import scenes
from .scenes import CLASSES, classes, run

Facts = Mapping[str, Mapping[str, Any]]

# Chosen before any run was looked at. Bytes of a message, up to.
BUCKETS = {
    "up to 300 B": 300,
    "300 B to 1 KB": 1_000,
    "1 to 10 KB": 10_000,
    "10 to 100 KB": 100_000,
    "above 100 KB": 1 << 40,
}
# The tolerance on each mean and each 99th percentile, either way.
WITHIN = 0.1
# A 99th percentile is compared where at least so many flows lie above it.
FLOWS_ABOVE = 10
# Of ECMP: their hash is another. Theirs is one draw, and of ours the median of these.
SEEDS = (1, 2, 3)
# Where draws differ a lot. Memcached's under PFC have two humps: where the incast happens to meet at one core, pauses
# reach background flows, in four seeds of ten. BFC's also draw which flows share a queue.
NINE = tuple(range(1, 10))

WEB_SERVER, MEMCACHED = "webserver-incastmix.parquet", "memcached-incastmix.parquet"
PFC: dict[str, Any] = {"pfc": {}}


@dataclass
class Theirs:
    """One run of theirs."""

    column: str
    """Its completion times in the flows' file."""
    transport: str
    flow_control: dict[str, Any]
    scheme: str
    """As the accuracy page calls it."""
    facts: Facts = field(default_factory=dict)
    """Its settings, by name; each is left out once to see what it does."""
    flows: str = WEB_SERVER
    seeds: tuple[int, ...] = SEEDS
    seconds: float | None = None
    """CPU seconds that it took them, where they are known."""
    ack_bytes: int = 84
    classes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and 99th percentile in us by class, of a run of which no more is known: `column` is empty then."""

    def keys(self, without: str | None = None) -> dict[str, Any]:
        """Our keys for it, but for one fact."""
        at = f"transport.{self.transport}"
        facts = {**self.of_all(at), **self.facts}
        assert without is None or without in facts
        # The scenario has the facts of all as well, so that it runs by itself.
        keys: dict[str, Any] = {
            "transport": {self.transport: {}},
            "flow_control": self.flow_control,
            "transmission_step": "0s",
        }
        figures.reference(scenes.HERE, self.flows)
        if self.flows != WEB_SERVER:
            keys |= {f"traffic.{index}.trace.parquet.path": f"reference/{self.flows}" for index in range(3)}
        for name, fact in facts.items():
            if name != without:
                keys |= fact
        return keys

    def of_all(self, at: str) -> Facts:
        """The settings of their program for every scheme."""
        return {
            "ACKs in the class of data": {f"{at}.ack_class": 3},
            f"ACKs of {self.ack_bytes} B": {f"{at}.ack_bytes": f"{self.ack_bytes}B"},
            "times in whole ns": {"transmission_step": "1ns"},
            "NICs in the order of age": {f"{at}.turns": "by_age"},
        }

    def statistics(self) -> pd.Series[float]:
        """The numbers to compare with: see the function of that name."""
        if not self.classes:
            return statistics(self.fct())
        names = ("mean FCT, us", "p99 FCT, us")
        return pd.Series({(group, name): us for group, pair in self.classes.items() for name, us in zip(names, pair)})

    def fct(self) -> pd.DataFrame:
        """Each flow's class, size, and completion time in us."""
        flows = pd.read_parquet(figures.reference(scenes.HERE, self.flows))
        return pd.DataFrame(
            {"class": flows["class"].astype(str), "bytes": flows["size_bytes"], "us": flows[self.column] / 1e3}
        )


PFC_FACTS: Facts = {
    "alpha 1/4 at 100 Gbps, in proportion at others": {
        "flow_control.pfc.alpha": 0.25,
        "flow_control.pfc.per_rate": "100Gbps",
    },
    "headroom of 4 one-hop BDP": {"flow_control.pfc.headroom_bdps": 4.0},
}
DCQCN_FACTS: Facts = {
    "marks from 400 to 1,600 KB at 100 Gbps": {"transport.dcqcn.control": {"mark_min": "400KB", "mark_max": "1600KB"}},
    "marks at departure": {"switch.mark_at": "departure"},
}
HPCC_FACTS: Facts = {"telemetry beyond the MTU": {"transport.hpcc.control.telemetry_beyond_mtu": True}}
# Their queue 0 is for control, and their switches lose nothing under BFC, whatever their buffer.
BFC_32 = {"bfc": {"queues": {"physical": 31}, "vfids": 32_768}}
BFC_FACTS: Facts = {
    "a memory without end": {"switch.buffer.shared.bytes": "1GB"},
    "no window": {"transport.rdma.window": "unlimited"},
    "BFC as published": {"flow_control.bfc.departures": "published"},
}

PYRRHA: dict[str, Any] = {"pyrrha": {}}
PYRRHA_FACTS: Facts = {"Pyrrha as published": {"flow_control.pyrrha.departures": "published"}}

RUNS = {
    "PFC": Theirs("fct_ns_pfc", "rdma", PFC, "rdma over pfc", PFC_FACTS, seconds=256),
    "Pyrrha": Theirs("fct_ns_pyrrha", "rdma", PYRRHA, "rdma over pyrrha, published", PYRRHA_FACTS, seconds=463),
    "Pyrrha by the paper's text": Theirs("fct_ns_pyrrha", "rdma", PYRRHA, "rdma over pyrrha"),
    "DCQCN + PFC": Theirs("fct_ns_dcqcn_pfc", "dcqcn", PFC, "dcqcn over pfc", {**PFC_FACTS, **DCQCN_FACTS}),
    "HPCC + PFC": Theirs(
        "fct_ns_hpcc_pfc", "hpcc", PFC, "hpcc over pfc", {**PFC_FACTS, **HPCC_FACTS}, seconds=287, ack_bytes=112
    ),
    "BFC-32": Theirs("fct_ns_bfc32", "rdma", BFC_32, "rdma over bfc", BFC_FACTS, seeds=NINE, seconds=757),
    "PFC, Memcached": Theirs("fct_ns_pfc", "rdma", PFC, "rdma over pfc", PFC_FACTS, flows=MEMCACHED, seeds=NINE),
    "Pyrrha, Memcached": Theirs(
        "",
        "rdma",
        PYRRHA,
        "rdma over pyrrha, published",
        PYRRHA_FACTS,
        flows=MEMCACHED,
        classes={"vulnerable": (6.16, 9.28), "background": (6.14, 8.82)},
    ),
}


def ours(result: cw.Result) -> pd.DataFrame:
    """The same of a run of ours."""
    flows = result.flows
    return pd.DataFrame(
        {"class": classes(result), "bytes": flows["bytes"].astype(int), "us": flows["fct_ps"].astype(float) / 1e6}
    )


def statistics(flows: pd.DataFrame) -> pd.Series[float]:
    """Means and 99th percentiles by class, and by class and size, each of enough flows."""
    rows: dict[tuple[str, str], float] = {}
    sizes = pd.cut(flows["bytes"], [0, *BUCKETS.values()], labels=list(BUCKETS))
    for group in CLASSES:
        chosen = flows["class"] == group
        parts = {group: chosen} | {f"{group}, {name}": chosen & (sizes == name) for name in BUCKETS}
        # All of one bucket is the class itself.
        for name, part in parts.items():
            times = flows.loc[part, "us"]
            if name != group and len(times) in (0, chosen.sum()):
                continue
            rows[name, "mean FCT, us"] = float(times.mean())
            if len(times) >= 100 * FLOWS_ABOVE:
                rows[name, "p99 FCT, us"] = float(times.quantile(0.99))
    return pd.Series(rows)


def held(name: str, seeds: tuple[int, ...] | None = None) -> tuple[figures.Held, pd.DataFrame]:
    """Ours against one run of theirs, and ours over theirs of each seed."""
    them = RUNS[name]
    seeds = seeds or them.seeds
    theirs = them.statistics()
    results = {seed: run("reference", f"{name} seed {seed}", {**them.keys(), "seed": seed}) for seed in seeds}
    each = pd.DataFrame({seed: statistics(ours(result)) for seed, result in results.items()}).loc[theirs.index]
    rows = pd.DataFrame({"ours": each.median(axis=1), "theirs": theirs, "within": WITHIN})
    rows = rows.rename_axis(["bucket", "statistic"]).reset_index()
    count = len(pd.read_parquet(figures.reference(scenes.HERE, them.flows), columns=["src"]))
    sizes = "web server" if them.flows == WEB_SERVER else "Memcached"
    against = f"ns-3 of Pyrrha's authors, {count:,} flows of {sizes} sizes"
    held = figures.Held(them.scheme, against, "authors' run", rows, f"{seeds[0]} to {seeds[-1]}, median")
    return held, each.div(theirs, axis=0)


def reference() -> Shown:
    """The authors' own ns-3 runs and ours: our completion times over theirs by class and size, median and range over
    seeds."""
    comparisons = {name: held(name) for name in RUNS}
    columns: dict[tuple[str, str], pd.Series[float]] = {}
    for name, (_, each) in comparisons.items():
        columns |= {(name, what): getattr(each, what)(axis=1) for what in ("median", "min", "max")}
    table = pd.DataFrame(columns)
    checks = {}
    for name, them in RUNS.items():
        if them.seconds is not None:
            taken = float(run("reference", f"{name} seed 1", {**them.keys(), "seed": 1}).info["cpu_seconds"])
            checks[f"{name}: {taken:.1f} CPU seconds, a tenth of ns-3's {them.seconds:g} at most"] = (
                taken < them.seconds / 10
            )
    return Shown(table, checks, held=[one for one, _ in comparisons.values()])


def settings() -> Shown:
    """The runs of `reference` with one setting of the authors' program left out at a time: our completion times over
    theirs, seed 1."""
    rows = {}
    for name, them in RUNS.items():
        theirs = them.statistics()
        wanted = [row for row in theirs.index if row[0] in CLASSES]
        facts = {**them.of_all(f"transport.{them.transport}"), **them.facts}
        for label, without in {"all of them": None, **{f"without {fact}": fact for fact in facts}}.items():
            result = run("reference", f"{name} {label}", {**them.keys(without), "seed": 1})
            rows[name, label] = (statistics(ours(result)) / theirs)[wanted]
    table = pd.DataFrame(rows).T
    table.columns = [f"{group} {statistic.partition(' ')[0]}" for group, statistic in map(tuple, table.columns)]
    return Shown(table)


# Each departure of their BFC from BFC (docs/schemes/flow-control.md).
BFC_DEPARTURES = ("first_queue", "random_sharing", "lowest_first", "hosts_by_flow")


def bfc_departures() -> Shown:
    """BFC-32 in the authors' comparison without each departure of their program from BFC: completion times over
    Pyrrha's, both as published, on the flows of `reference`; median of three seeds."""
    them = RUNS["BFC-32"]
    left_out: dict[str, dict[str, Any]] = {
        "as published": {},
        **{
            f"without {one}": {"flow_control.bfc.departures": [each for each in BFC_DEPARTURES if each != one]}
            for one in BFC_DEPARTURES
        },
        "without all four": {"flow_control.bfc.departures": []},
    }
    columns = {f"{group} {word}": (group, f"{word} FCT, us") for group in CLASSES[:2] for word in ("mean", "p99")}
    pyrrha = {seed: statistics(ours(run_of("Pyrrha", f"seed {seed}", {}, seed))) for seed in SEEDS}
    rows = {"theirs": over(them.statistics(), RUNS["Pyrrha"].statistics(), columns)}
    for name, keys in left_out.items():
        # The first are runs of `reference`.
        label = "" if name == "as published" else f"{name} "
        each = [
            over(statistics(ours(run_of("BFC-32", f"{label}seed {seed}", keys, seed))), pyrrha[seed], columns)
            for seed in SEEDS
        ]
        rows[name] = pd.DataFrame(each).median()
    table = pd.DataFrame(rows).T.rename_axis("BFC-32 over Pyrrha, times")
    mean = table["vulnerable mean"]
    published, fair, none = (float(mean[name]) for name in ("as published", "without lowest_first", "without all four"))
    said = [("vulnerable", "BFC-32's mean FCT over Pyrrha's, times", published, float(mean["theirs"]), WITHIN)]
    compared = figures.Held(
        "rdma over bfc",
        "ns-3 of Pyrrha's authors, BFC-32 over Pyrrha",
        "authors' run",
        pd.DataFrame(said, columns=list(figures.Held.COLUMNS)),
        f"{SEEDS[0]} to {SEEDS[-1]}, median",
    )
    checks = {
        f"their scheduler favours BFC: vulnerable flows' mean is {published:.1f} times Pyrrha's with lowest_first, "
        f"{fair:.1f} without": fair > published,
        f"their BFC favours it more: {none:.1f} times without any departure": none > fair,
    }
    return Shown(table, checks, held=[compared])


def run_of(name: str, label: str, keys: Mapping[str, Any], seed: int) -> cw.Result:
    """One of `RUNS`, with more keys set."""
    return run("reference", f"{name} {label}", {**RUNS[name].keys(), **keys, "seed": seed})


def over(some: pd.Series[float], others: pd.Series[float], columns: Mapping[str, tuple[str, str]]) -> pd.Series[float]:
    """Ratios of some statistics to others."""
    return pd.Series({name: float(some[at]) / float(others[at]) for name, at in columns.items()})
