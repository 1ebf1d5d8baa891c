"""Homa (SIGCOMM 2018) held against its paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from clearway.papers import figures
from clearway.papers._paper import Options, Paper
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent
AEOLUS = HERE.parent / "aeolus"

OUT = Path("out/homa")
WORKLOADS = {"figure-12-w3": "W3", "figure-12-w4": "W4"}
# Section 5.2: at 80% load the 99th percentile slowdown of the shortest half of all messages is never above 2.2, over
# all workloads.
PAPER_P99 = 2.2


def figure_12() -> Shown:
    """99th percentile of slowdown by deciles of message size at 80% load: at most 2.2 in the shortest half, within
    5%."""
    table = {}
    for scenario, workload in WORKLOADS.items():
        result = figures.run(HERE / f"{scenario}.toml", "paper", {}, OUT)
        flows = pd.DataFrame({name: pd.Series(result.flows[name]).astype(float) for name in ("bytes", "slowdown")})
        # Many messages have the same size: those of one size are in one decile.
        decile = np.minimum(np.searchsorted(flows["bytes"].quantile(np.arange(0.1, 1.0, 0.1)), flows["bytes"]), 9) + 1
        table[workload] = flows.groupby(decile)["slowdown"].quantile(0.99)
    highest = pd.DataFrame(table).loc[:5].max().max()
    rows = [("W3 and W4, the shortest half by tenths", "highest p99 slowdown", highest, PAPER_P99, 0.05)]
    held = Held(
        "homa", "its paper's figure 12, p99 at 80% load", "paper", pd.DataFrame(rows, columns=list(Held.COLUMNS))
    )
    return Shown(pd.DataFrame(table).rename_axis("decile"), held=[held])


# Section 5 of Aeolus' paper: by this factor its tail is shorter than Homa's.
AEOLUS_GAIN = 20.0
QUEUES = ("port", "class", "one")


def bursts() -> Shown:
    """Homa and Aeolus on it (SIGCOMM 2020) when bursts overflow buffers: 99th percentile of slowdown, by which queue's
    length makes Aeolus drop packets."""
    schemes: dict[str, figures.Keys] = {"homa": {"transport": "homa"}}
    schemes |= {f'queue = "{queue}"': {"transport": {"homa_aeolus": {"queue": queue}}} for queue in QUEUES}
    rows = {}
    for name, keys in schemes.items():
        result = figures.run(AEOLUS / "bursts.toml", name, keys, OUT)
        flows = pd.DataFrame({key: pd.Series(result.flows[key]).astype(float) for key in ("bytes", "slowdown")})
        links = result.links.to_pandas()
        rows[name] = {
            "up to 72,500 B p99": flows.loc[flows["bytes"] <= 72_500, "slowdown"].quantile(0.99),
            "all p99": flows["slowdown"].quantile(0.99),
            "packets lost": links["overflow_packets"].sum(),
        }
    table = pd.DataFrame(rows).T.rename_axis("scheme")
    tails = table["all p99"].astype(float)
    said = [("all", "p99 slowdown of Homa over Aeolus's", tails["homa"] / tails['queue = "port"'], AEOLUS_GAIN, 0.25)]
    held = Held("homa_aeolus", "its paper: Homa's tail", "paper", pd.DataFrame(said, columns=list(Held.COLUMNS)))
    return Shown(table, held=[held])


def _apply(options: Options, out: Path) -> None:
    global OUT
    OUT = out


PAPER = Paper(
    "homa",
    "Homa (SIGCOMM 2018)",
    {"figure-12": figure_12, "bursts": bursts},
    _apply,
    ("docs/schemes/homa.md",),
)
