"""The numbers that dcPIM's authors published, and ours computed in the same way.

`reference/published.csv` holds the numbers behind their plots (`simulator/py/analysis/gnuplot/data` of their
repository) and `reference/` what their program gave on lists of flows; reference/README.md says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers.figures import cell, reference

HERE = Path(__file__).parent
BDP = 72_500
# The bounds of short, medium and long flows on its lists, in bytes of whole packets.
PACKETS = (49 * 1_460, 392 * 1_460)
# The size classes of their figures 3c to 3e.
EDGES = (BDP, 2 * BDP, 4 * BDP, 8 * BDP, 16 * BDP)
CLASSES = ("up to 1 BDP", "1 to 2 BDP", "2 to 4 BDP", "4 to 8 BDP", "8 to 16 BDP", "over 16 BDP")


def published(fabric: str = "leaf_spine") -> pd.DataFrame:
    """Mean and 99th percentile of slowdown, a row a workload, load, class of flows and scheme."""
    table = pd.read_csv(reference(HERE, "published.csv"))
    return (
        table[table["fabric"] == fabric]
        .set_index(["workload", "load", "flows", "scheme"])[["mean", "p99", "utilisation"]]
        .sort_index()
    )


def published_for(theirs: pd.DataFrame, workload: str, load: float, scheme: str) -> pd.DataFrame:
    """The rows of `published` for one workload, load and scheme, by class of flows."""
    return pd.DataFrame(theirs.xs((workload, load, scheme), level=("workload", "load", "scheme")))


def plotted(result: cw.Result, hosts_per_rack: int = 16, payload: int = 1_460) -> pd.DataFrame:
    """Each completed flow's bytes, and slowdown by the ideal time of the authors' plots, on the leaf-spine: it
    counts no header of the message's packets, so that long flows read 2.7% higher than by ours. Where packets carry
    `payload` bytes in place of 1,460, those of as many packets of 1,460."""
    flows = result.flows
    size, fct_us = np.asarray(flows["bytes"], float) * 1_460 / payload, np.asarray(flows["fct_ps"], float) / 1e6
    across = np.asarray(flows["src"]) // hosts_per_rack != np.asarray(flows["dst"]) // hosts_per_rack
    at_100_gbps = np.where(across, size + 1.5 * 1_500 + 2.5 * 40, size + 1_500 + 2 * 40) * 8 / 100e3
    done = np.asarray(flows["status"]) == "completed"
    found = pd.DataFrame({"bytes": size, "slowdown": fct_us / (np.where(across, 5.2, 2.6) + at_100_gbps)})
    return pd.DataFrame(found.loc[done])


def one_way(result: cw.Result, hosts_per_rack: int = 16) -> pd.DataFrame:
    """The same until the message is received, without the way back in either time: what a message of one packet to
    another rack takes alone is 2.9 us."""
    flows = result.flows
    size = np.asarray(flows["bytes"], float)
    took_us = (np.asarray(flows["delivered_ps"], float) - np.asarray(flows["start_ps"], float)) / 1e6
    across = np.asarray(flows["src"]) // hosts_per_rack != np.asarray(flows["dst"]) // hosts_per_rack
    at_100_gbps = np.where(across, size + 1.5 * 1_500 + 2.5 * 40, size + 1_500 + 2 * 40) * 8 / 100e3
    done = np.asarray(flows["status"]) == "completed"
    found = pd.DataFrame({"bytes": size, "slowdown": took_us / (np.where(across, 2.6, 1.3) + at_100_gbps)})
    return pd.DataFrame(found.loc[done])


def by_their_program(result: cw.Result, hosts_per_rack: int = 16) -> pd.DataFrame:
    """The same by the ideal time of their program (reference/README.md): each of the message's packets has a header,
    each link 0.65 us."""
    flows = result.flows
    size, fct_us = np.asarray(flows["bytes"], float), np.asarray(flows["fct_ps"], float) / 1e6
    across = np.asarray(flows["src"]) // hosts_per_rack != np.asarray(flows["dst"]) // hosts_per_rack
    sent = (size * 1_500 / 1_460 + 40) * 8 / 100e3 + np.where(across, 2 * 1_540 * 8 / 400e3, 0.0) + 1_540 * 8 / 100e3
    done = np.asarray(flows["status"]) == "completed"
    found = pd.DataFrame({"bytes": size, "slowdown": fct_us / (2 * np.where(across, 4, 2) * 0.65 + sent)})
    return pd.DataFrame(found.loc[done])


def by_class(flows: pd.DataFrame, edges: Sequence[float] = EDGES, classes: Sequence[str] = CLASSES) -> pd.DataFrame:
    """How many, mean and 99th percentile of slowdown, one row per class; and of all."""
    names = np.asarray(classes)[np.searchsorted(edges, flows["bytes"], side="left")]
    groups = {name: flows["slowdown"][names == name] for name in classes} | {"all": flows["slowdown"]}
    return pd.DataFrame(
        {
            name: {"flows": len(one), "mean": one.mean(), "p99": one.quantile(0.99)}
            for name, one in groups.items()
            if len(one)
        }
    ).T


# Fewer flows of a class have no mean worth comparing, or no 99th percentile: ten flows above it.
AT_LEAST = {"mean": 100, "p99": 1_000}


def compared(
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    within: Mapping[str, float],
    bucket: str = "{}",
    only: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The rows of a `figures.Held`: each class of both, mean and 99th percentile."""
    rows = [
        {
            "bucket": bucket.format(name),
            "statistic": f"{statistic} slowdown",
            "ours": ours.loc[name, statistic],
            "theirs": theirs.loc[name, statistic],
            "within": within[statistic],
        }
        for name in only or ours.index
        if name in ours.index and name in theirs.index
        for statistic in ("mean", "p99")
        if cell(ours, name, "flows") >= AT_LEAST[statistic]
    ]
    return pd.DataFrame(rows, columns=["bucket", "statistic", "ours", "theirs", "within"])
