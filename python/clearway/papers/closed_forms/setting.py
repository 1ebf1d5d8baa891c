"""Shared by the laws: running a small scenario, and reading its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Held
from clearway.scenarios.listings import schemes

# Bytes of a full packet on the wire and of its payload, of a control packet; ns that a byte takes at 100 Gbps.
PACKET, PAYLOAD, CONTROL = 1500, 1460, 40
BYTE_NS = 0.08
SLOT_US = PACKET * BYTE_NS / 1e3

Row = tuple[str, str, float, float, float]


def run(text: str, keys: Mapping[str, Any] | None = None) -> cw.Result:
    """A small scenario with ideal hosts and clocks, and with some keys set; its audit holds."""
    return figures.simulated(cw.Scenario.from_toml(text).with_({"timing": "ideal", **(keys or {})}), threads=1)


def names(kind: str) -> list[str]:
    """Schemes of a kind, as the catalogue has them."""
    return [str(name) for name, row in schemes().iterrows() if row["kind"] == kind]


def held(scheme: str, law: str, rows: Iterable[Row]) -> Held:
    """A scheme's numbers beside those of a law."""
    return Held(scheme, law, "closed form", pd.DataFrame(list(rows), columns=list(Held.COLUMNS)))


def delivered_us(result: cw.Result) -> np.ndarray[Any, np.dtype[np.float64]]:
    """When each message was there; NaN for one that never was."""
    return np.asarray(pd.Series(result.flows["delivered_ps"]).astype(float)) / 1e6


def link(result: cw.Result, source: str, target: str) -> pd.Series[Any]:
    """The row of a directed link."""
    links = result.links.to_pandas()
    [row] = [row for _, row in links[(links["from_node"] == source) & (links["to_node"] == target)].iterrows()]
    return row


def sampled(result: cw.Result, table: str, column: str, from_ms: float = 0.0, **where: str) -> pd.Series[Any]:
    """A column of a table of samples from a time on, of the rows named."""
    rows = result.tables[table].to_arrow().to_pandas()
    chosen = rows["time_ps"] >= from_ms * 1e9
    for key, value in where.items():
        chosen &= rows[key] == value
    found: pd.Series[Any] = rows[chosen].set_index("time_ps")[column].astype(float)
    return found
