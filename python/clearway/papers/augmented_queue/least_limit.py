"""The least AQ limit at which a congestion control gets 95% of its rate: the question that section 6 leaves open.

A limit counts only if all larger ones that were tried are enough too; neighbours differ by 9%.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd

import clearway as cw
from clearway.papers import figures, slices
from clearway.papers.figures import Shown
from clearway.reports.looks import COLOURS
from clearway.reports.plots import STYLE, Picture

HERE = Path(__file__).parent

# With their defaults; and Swift with a target above the virtual delay of a packet at a tenth of a gigabit.
CONTROLS: dict[str, Any] = {
    **{name: name for name in ["newreno", "cubic", "illinois", "dctcp", "bbr", "swift"]},
    "swift 100us": {"swift": {"control": {"base_target": "100us"}}},
}
RATES_GBPS = [0.1, 1.0, 2.5, 5.0, 10.0]
LINKS_GBPS = [10, 100]
FLOWS = [1, 10]

ENOUGH = 0.95
PACKET = 1500
PAYLOAD = 1460 / PACKET
MOST = 4_096 * PACKET
# Of propagation, the scenario's three links there and back.
ROUND_TRIP_S = 60e-6
# Flows have found their rates by then.
AFTER_S = 0.1


class Case(NamedTuple):
    """A case of the search: a congestion control, its rate, the rate of its links, the number of flows."""

    control: str
    rate_gbps: float
    link_gbps: int
    flows: int


def share(case: Case, limit: int) -> float:
    """The share of its rate that the entity gets with this limit."""
    scenario = cw.Scenario.load(HERE / "beyond-least-limit.toml").with_(
        {
            "transport": CONTROLS[case.control],
            "fabric.dumbbell.host_rate": f"{case.link_gbps}Gbps",
            "fabric.dumbbell.bottleneck_rate": f"{case.link_gbps}Gbps",
            "entity.0.request.0.share.absolute": f"{case.rate_gbps}Gbps",
            "traffic.0.senders": f"0-{case.flows - 1}",
            "sharing.aq.limit.fixed.bytes": f"{limit}B",
            "name": f"{' '.join(map(str, case))} limit {limit}",
        }
    )
    result = figures.simulated(scenario, threads=1)
    arrived = result.entities.to_pandas()
    late = arrived.loc[arrived["time_ps"] > AFTER_S * 1e12, "delivered_bytes"].sum()
    seconds = float(result.info["end_ps"]) / 1e12 - AFTER_S
    return float(late) * 8 / seconds / (case.rate_gbps * 1e9 * PAYLOAD)


def least(case: Case) -> float:
    """The least limit, by halving until it is too little and then by bisection; NaN if no limit is enough."""
    enough = MOST
    if share(case, enough) < ENOUGH:
        return float("nan")
    while enough > PACKET and share(case, enough // 2) >= ENOUGH:
        enough //= 2
    if enough <= PACKET:
        return enough
    too_small = enough // 2
    for _ in range(3):
        middle = round((enough * too_small) ** 0.5)
        if share(case, middle) >= ENOUGH:
            enough = middle
        else:
            too_small = middle
    return enough


def searched(case: Case) -> tuple[float, figures.Ran]:
    """The least limit, and the runs that found it: another process makes them."""
    with figures.listened() as ran:
        found = least(case)
    ran.asked.clear()  # scenarios stay in their process
    return found, ran


def draw(table: pd.DataFrame) -> Picture:
    """A panel for each speed of links and number of flows."""
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(10, 6.4), layout="constrained")
        panels = picture.subplots(len(LINKS_GBPS), len(FLOWS), sharex=True, sharey=True)
        for axes, (link, flows) in zip(panels.flat, product(LINKS_GBPS, FLOWS)):
            part = table.xs((link, flows), level=("link_gbps", "flows"))["packets"].unstack("control")
            for colour, control in zip(COLOURS, part.columns):
                axes.plot(part.index, part[control], marker="o", color=colour, label=str(control))
            axes.set(xscale="log", yscale="log", title=f"{flows} flow{'s' * (flows > 1)}, links of {link} Gbps")
            axes.set(xlabel="rate of the AQ, Gbps", ylabel="least limit, packets")
        panels.flat[0].legend(fontsize=8)
        return picture


def least_limit() -> Shown:
    """The smallest AQ limit with which a congestion control gets 95% of its rate, in packets and in bandwidth-delay
    products (section 6's open question)."""
    cases = [Case(*case) for case in product(CONTROLS, RATES_GBPS, LINKS_GBPS, FLOWS)]
    found = slices.mapped(searched, cases, ProcessPoolExecutor(os.cpu_count()))
    for _, runs in found:
        figures.heard_of(runs)
    table = pd.DataFrame(cases).assign(packets=[limit / PACKET for limit, _ in found])
    table["bdps"] = table["packets"] * PACKET * 8 / (table["rate_gbps"] * 1e9 * ROUND_TRIP_S)
    table = table.set_index(["link_gbps", "flows", "control", "rate_gbps"])
    shown = table["bdps"].unstack("rate_gbps").add_suffix(" Gbps, BDPs")
    shown[[f"{rate:g} Gbps, packets" for rate in RATES_GBPS]] = table["packets"].unstack("rate_gbps")
    return Shown(shown, picture=draw(table))
