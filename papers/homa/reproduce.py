"""Homa (SIGCOMM 2018) held against its paper.

python papers/homa/reproduce.py figure-12
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import figures
from figures import Held, Shown

OUT = Path("out/homa")
WORKLOADS = {"figure-12-w3": "W3", "figure-12-w4": "W4"}
# Section 5.2: at 80% load the 99th percentile slowdown of the shortest half of all messages is never above 2.2, over all workloads.
PAPER_P99 = 2.2


def figure_12() -> Shown:
    """The 99th percentile of slowdown by deciles of message size at 80% load: 2.2 for the worst of the shortest half, within 5%."""
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


FIGURES: figures.Figures = {"figure-12": figure_12}


def main(
    which: Annotated[list[str] | None, typer.Argument(help="Figures; or all.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List them.")] = False,
) -> None:
    """Holds Homa against its paper."""
    figures.show(FIGURES, None if list_ else which, OUT, digits=3)


if __name__ == "__main__":
    typer.run(main)
