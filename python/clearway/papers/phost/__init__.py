"""pHost (CoNEXT 2015) and pFabric (SIGCOMM 2013) held against the simulator of pHost's authors, on the same flows.

`reference` holds what that program made of 5,000 flows, and says how.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from clearway.papers import figures
from clearway.papers._paper import Options, Paper
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent

OUT = Path("out/phost")
PAYLOAD = 1460
# Packets of a message. Up to 8 are pHost's short flows there, whose tokens are free.
BUCKETS = {"up to 8 packets": (1, 8), "longer": (9, np.inf), "all": (1, np.inf)}


def reference() -> Shown:
    """Completion times of 5,000 IMC10 flows in the authors' simulator and in ours, by size: within 5% in the mean and
    10% at the 99th percentile."""
    theirs = pd.read_csv(figures.reference(HERE, "imc10_0.6.csv"))
    held, means = [], {}
    for scheme in ("phost", "pfabric"):
        flows = figures.of_flows(figures.run(HERE / f"reference-{scheme}.toml", "published", {}, OUT))
        ours, of_theirs = flows["fct_us"] / flows["ideal_us"], theirs[f"{scheme}_us"] / flows["ideal_us"]
        rows = figures.by_size(ours, of_theirs, theirs["size_bytes"] // PAYLOAD, BUCKETS, 0.05, 0.1)
        held.append(
            Held(scheme, "the simulator of pHost's authors, 5,000 flows of IMC10 at load 0.6", "authors' run", rows)
        )
        means[scheme] = ours.mean()
    ratio = means["phost"] / means["pfabric"]
    # The abstract: "performance on par with pFabric (within 4% for typical conditions)".
    checks = {f"pHost's mean is {ratio - 1:+.1%} of pFabric's, within 4%": abs(ratio - 1) < 0.04}
    return Shown(pd.concat({one.scheme: one.rows.assign(error=one.error) for one in held}), checks, held=held)


# pFabric's paper groups sizes so, in bytes.
PFABRIC_SIZES = {"up to 100 KB": (0, 100_000), "up to 10 MB": (100_000, 10_000_000), "longer": (10_000_000, np.inf)}
LOADS = (0.2, 0.4, 0.6, 0.8)


def pfabric_figure_9() -> Shown:
    """pFabric's figures 8 and 9: completion time over that of the same flow alone, by size and load, for two
    workloads."""
    rows: dict[tuple[str, float], dict[str, float]] = {}
    for workload, words, count in (("websearch", "web search", 5_000), ("datamining", "data mining", 2_000)):
        for load in LOADS:
            keys: figures.Keys = {"traffic.all.arrivals.poisson.load": load, "traffic.all.flows": count}
            scenario = HERE.parent / "pfabric" / f"figure-9-{workload}.toml"
            result = figures.run(scenario, f"load {load:g}", keys, OUT)
            sizes, slowdown = (pd.Series(result.flows[name]).astype(float) for name in ("bytes", "slowdown"))
            found: dict[str, float] = {}
            for name, (low, high) in {**PFABRIC_SIZES, "all": (0, np.inf)}.items():
                of = slowdown[(sizes > low) & (sizes <= high)]
                found |= {f"{name} mean": float(of.mean()), f"{name} p99": float(of.quantile(0.99))}
            rows[words, load] = found
    table = pd.DataFrame(rows).T.rename_axis(["workload", "load"])
    short = table["up to 100 KB p99"]
    # "Near theoretically optimal flow completion times even at the 99th percentile for short flows" (abstract): 1 is
    # that of a flow alone, and the ideal scheduler's is 1.4 at load 0.8.
    said = f"short flows' 99th percentile is at most 1.5 times that of a flow alone: {short.max():.2f}"
    return Shown(table, {said: bool(short.max() <= 1.5)})


def _apply(options: Options, out: Path) -> None:
    global OUT
    OUT = out


PAPER = Paper(
    "phost",
    "pHost (CoNEXT 2015) and pFabric (SIGCOMM 2013)",
    {"reference": reference, "pfabric-figure-9": pfabric_figure_9},
    _apply,
    ("docs/schemes/phost.md", "docs/schemes/pfabric.md"),
)
