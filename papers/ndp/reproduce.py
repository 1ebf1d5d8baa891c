"""NDP (SIGCOMM 2017) held against the program that its authors published, on the same flows.

    python papers/ndp/reproduce.py reference

`papers/ndp/reference` holds what that program made of 5,000 flows, and says how.
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

OUT = Path("out/ndp")
# Packets of a message, in units of dcPIM's bandwidth-delay product, 49 packets: its figures 3c to 3e, in three buckets.
BUCKETS = {"up to 1 BDP": (1, 49), "up to 8 BDP": (50, 392), "longer": (393, np.inf)}
PAYLOAD = 1500


def compare(
    ours: pd.Series[float], theirs: pd.Series[float], packets: pd.Series[int], ideal: pd.Series[float], mean: float, tail: float
) -> pd.DataFrame:
    """A row a number: mean and 99th percentile of slowdown by size, of the same flows over the same ideal."""
    rows = []
    for bucket, (low, high) in BUCKETS.items():
        chosen = packets.between(low, high)
        a, b = (ours / ideal)[chosen], (theirs / ideal)[chosen]
        rows.append((bucket, "mean slowdown", a.mean(), b.mean(), mean))
        rows.append((bucket, "p99 slowdown", a.quantile(0.99), b.quantile(0.99), tail))
    return pd.DataFrame(rows, columns=list(Held.COLUMNS))


def reference() -> Shown:
    """Their program's times of 5,000 IMC10 flows and ours, by size: within 5% in the mean and 10% at the 99th percentile."""
    theirs = pd.read_csv(HERE / "reference/imc10_0.6.csv")
    result = figures.run(HERE / "reference.toml", "published", {}, OUT)
    flows = pd.DataFrame({name: pd.Series(result.flows[name]).astype(float) for name in ("flow", "fct_ps", "ideal_ps")})
    flows = flows.sort_values("flow").reset_index(drop=True)
    rows = compare(flows["fct_ps"] / 1e6, theirs["fct_us"], theirs["size_bytes"] // PAYLOAD, flows["ideal_ps"] / 1e6, 0.05, 0.1)
    program = "its authors' program of 2017, as dcPIM's authors ran it, 5,000 flows of IMC10 at load 0.6"
    held = Held("ndp", program, "authors' run", rows)
    return Shown(rows.assign(error=held.error), held=[held])


FIGURES: figures.Figures = {"reference": reference}


def main(
    which: Annotated[list[str] | None, typer.Argument(help="Figures; or all.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List them.")] = False,
) -> None:
    """Holds NDP against its authors' program."""
    figures.show(FIGURES, None if list_ else which, OUT, digits=3)


if __name__ == "__main__":
    typer.run(main)
