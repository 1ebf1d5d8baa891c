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
    theirs = pd.read_csv(HERE / "reference/imc10_0.6.csv")
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


def _apply(options: Options, out: Path) -> None:
    global OUT
    OUT = out


PAPER = Paper(
    "phost",
    "pHost (CoNEXT 2015) and pFabric (SIGCOMM 2013)",
    {"reference": reference},
    _apply,
    ("docs/schemes/phost.md",),
)
