"""NDP (SIGCOMM 2017) held against the program that its authors published, on the same flows.

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

OUT = Path("out/ndp")
# Packets of a message, in units of dcPIM's bandwidth-delay product, 49 packets: its figures 3c to 3e, in three buckets.
BUCKETS = {"up to 1 BDP": (1, 49), "up to 8 BDP": (50, 392), "longer": (393, np.inf)}
PAYLOAD = 1500


def reference() -> Shown:
    """Completion times of 5,000 IMC10 flows in the authors' program and in ours, by size: within 5% in the mean and 10%
    at the 99th percentile."""
    theirs = pd.read_csv(figures.reference(HERE, "imc10_0.6.csv"))
    result = figures.run(HERE / "reference.toml", "published", {}, OUT)
    flows = figures.of_flows(result)
    ours, of_theirs = flows["fct_us"] / flows["ideal_us"], theirs["fct_us"] / flows["ideal_us"]
    rows = figures.by_size(ours, of_theirs, theirs["size_bytes"] // PAYLOAD, BUCKETS, 0.05, 0.1)
    program = "its authors' program of 2017, as dcPIM's authors ran it, 5,000 flows of IMC10 at load 0.6"
    held = Held("ndp", program, "authors' run", rows)
    return Shown(rows.assign(error=held.error), held=[held])


def _apply(options: Options, out: Path) -> None:
    global OUT
    OUT = out


PAPER = Paper(
    "ndp",
    "NDP (SIGCOMM 2017)",
    {"reference": reference},
    _apply,
    ("docs/schemes/ndp.md",),
)
