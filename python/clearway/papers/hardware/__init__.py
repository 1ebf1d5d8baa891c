"""Collectives held against clusters: nccl-tests tables that their owners have published.

The constants of a cluster's library come from every second size of its tables (`clearway calibrate`); a job with these
constants then runs at flow level for every size, and the other sizes say how good that is. A few of them run at packet
level, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

import clearway as cw
from clearway.calibration.fit import SHOWN, Calibration, Machine, calibrate_cells
from clearway.calibration.logs import Cell
from clearway.papers import figures
from clearway.papers._paper import Options, Paper
from clearway.papers.accuracy import LINE, beside_measured
from clearway.papers.figures import Held, Shown
from clearway.papers.hardware.measurements import single
from clearway.papers.hardware.software import hosts
from clearway.reports.plots import STYLE, Picture

HERE = Path(__file__).parent

MEAN, MOST, RING = 0.07, 0.15, 0.05
"""Chosen before the run: the mean error and the 90th percentile of all held-out sizes, and SparkRing's mean."""

# A packet is a jumbo frame of RoCE; the network has one link a host, so that nothing but the library's own constants
# slows a collective. They contain the network's delays, which the fabric therefore does not have.
JOB = """
name = "{name}"
transport = "rdma"
flow_control = "pfc"
host = {{ mtu = "9048B", header = "48B" }}
measure.interval = "0s"
fabric.star = {{ hosts = {hosts}, rate = "{nic}Gbps", propagation = "0s", switch_delay = "0s" }}
[[job]]
hosts = "0-{last}"
ranks = {ranks}
ranks_per_host = {ranks_per_host}
local = {{ rate = "{local}Gbps", delay = "100ns", multicast = {multicast} }}
steps = [{{ {kind} = {{ bytes = "{bytes}B"{algorithm} }} }}]
[job.library]
{library}
"""

_KINDS = {"all_reduce_ring": "all_reduce", "sendrecv": "send_recv"}


def systems() -> pd.DataFrame:
    """The known facts of each system."""
    return pd.read_csv(HERE / "systems.csv", keep_default_na=False).set_index("system")


def cells(system: str) -> list[Cell]:
    """A system's measurements."""
    table = pd.read_csv(HERE / "nccl_tests.csv")
    columns = ("collective", "ranks", "bytes", "time_us")
    rows = zip(*(table.loc[table["system"] == system, name] for name in columns))
    return [Cell(_KINDS.get(kind, kind), int(ranks), int(size), float(us)) for kind, ranks, size, us in rows]


def machine(system: str) -> Machine:
    """The links of a system."""
    of: Any = systems().loc[system]
    return Machine(
        int(of["ranks_per_host"]),
        int(of["nic_gbps"]) * 10**9,
        int(of["local_gbps"]) * 10**9,
        of["multicast"] == "yes",
        int(of["channels"]),
        of["like"] == "ring" or of["algorithm"] == "ring",
    )


def scenario(system: str, found: Calibration, kind: str, ranks: int, size: int) -> cw.Scenario:
    """The test of one size on a system."""
    of: Any = systems().loc[system]
    library = found.library.split("\n", 1)[1]
    if of["algorithm"]:
        library = library.replace('like = "ring"', 'like = "nccl"')
    text = JOB.format(
        name=f"{kind} of {size} B, {system}",
        hosts=max(int(of["hosts"]), 2),
        last=int(of["hosts"]) - 1,
        nic=of["nic_gbps"],
        ranks=ranks,
        ranks_per_host=of["ranks_per_host"],
        local=of["local_gbps"],
        multicast=str(of["multicast"] == "yes").lower(),
        kind=kind,
        bytes=size,
        algorithm=f', algorithm = "{of["algorithm"]}"' if of["algorithm"] else "",
        library=library,
    )
    return cw.Scenario.from_toml(text)


def _us(result: cw.Result) -> float:
    return float(result.collectives["time_ps"][0]) / 1e6


def table_of(system: str) -> tuple[Calibration, pd.DataFrame]:
    """The constants of a system, and all its sizes by runs at flow level."""
    found = calibrate_cells(machine(system), cells(system), half=True)
    ours = []
    row: Any
    for row in found.cells.itertuples():
        wanted = scenario(system, found, row.collective, int(row.ranks), int(row.bytes))
        ours.append(_us(cw.run(wanted, level="flow", progress=False)))
    return found, found.cells.assign(formula_us=found.cells["ours_us"], ours_us=ours)


def collectives() -> Shown:
    """Times of collectives on twelve clusters, beside those of jobs whose library has constants from every second
    size."""
    held, lines, rows, shown, everything = [], [], [], systems()["shown"], []
    for system in systems().index:
        found, table = table_of(str(system))
        table = table.assign(off=table["ours_us"] / table["measured_us"] - 1)
        name = str(shown[system])
        everything.append(table.assign(system=name))
        out = table[table["held_out"]]
        # A measurement that was fitted is shown, and no check.
        bucket = table["collective"] + table["bytes"].map(lambda size: f", {size:,} B")
        kept = pd.DataFrame(
            {
                "bucket": bucket.where(table["held_out"], bucket + ", fitted"),
                "statistic": "time, us",
                "ours": table["ours_us"],
                "theirs": table["measured_us"],
                "within": np.where(table["held_out"], MOST, 1.0),
            }
        )
        line = pd.DataFrame(
            {
                "bucket": bucket[table["held_out"]],
                "statistic": LINE,
                "ours": (1 + found.line.to_numpy()) * table.loc[table["held_out"], "measured_us"],
                "theirs": table.loc[table["held_out"], "measured_us"],
                "within": 0.99,
            }
        )
        held.append(Held(name, f"{table['ranks'].iloc[0]} ranks, nccl-tests", "hardware", pd.concat([kept, line])))
        lines.append(float(found.line.abs().mean()))
        values = {constant.key: constant for constant in found.constants}
        rows.append(
            {
                "system": name,
                "sizes": len(table),
                "held out": len(out),
                "mean error": float(out["off"].abs().mean()),
                "worst": float(out["off"].abs().max()),
                "a line": lines[-1],
                **{key: _said(values[key]) if key in values else "" for key in _SHOWN},
                "not physical": ", ".join(one.key for one in found.constants if one.determined and not one.physical),
                "not explained": "; ".join(found.unexplained),
            }
        )
    systems_, every = pd.DataFrame(rows).set_index("system"), pd.concat(everything)
    out = every.loc[every["held_out"], "off"].abs()
    checks = {
        f"mean error of {len(out)} held-out sizes: {out.mean():.1%}, at most {MEAN:.0%}": bool(out.mean() <= MEAN),
        f"90th percentile: {out.quantile(0.9):.1%}, at most {MOST:.0%}": bool(out.quantile(0.9) <= MOST),
    }
    for system in systems_.index:
        mean, straight = (figures.cell(systems_, system, name) for name in ("mean error", "a line"))
        checks[f"{system}: {mean:.1%}, a line {straight:.1%}"] = mean <= straight
    ring = figures.cell(systems_, "SparkRing 4 x GB10", "mean error")
    checks[f"SparkRing: {ring:.1%}, at most {RING:.0%}"] = ring <= RING
    return Shown(systems_, checks, _picture(every), held)


_SHOWN = ("launch", "simple", "send_recv", "step_latency", "nic_efficiency", "local_efficiency", "copy")


def _said(of: Any) -> str:
    factor, unit = SHOWN[of.key]
    low, high = of.low * factor, of.high * factor
    return f"{of.value * factor:.3g} ({low:.3g} to {high:.3g}) {unit}".strip() if of.determined else "unknown"


def _picture(every: pd.DataFrame) -> Picture:
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(6.4, 5.6), layout="constrained")
        out = every[every["held_out"]]
        beside_measured(picture.subplots(), out.groupby("system", sort=False), "measured_us", "ours_us")
    return picture


# System, collective, size: held-out sizes of different systems, algorithms and protocols.
AT_PACKET_LEVEL = (
    ("aws_2x_p5_16xH100_32x100G_EFA", "all_reduce", 32),
    ("aws_2x_p5_16xH100_32x100G_EFA", "all_reduce", 33_554_432),
    ("gcp_a3mega_2n_16xH100_8x200G", "all_gather", 33_554_432),
    ("sparkring_4xGB10_200G_ring", "all_reduce", 8_388_608),
)


def packets() -> Shown:
    """The same jobs at packet level, for a few sizes: beside flow level, and beside the library's formula."""
    rows = []
    for system, kind, size in AT_PACKET_LEVEL:
        found = calibrate_cells(machine(system), cells(system), half=True)
        ranks = next(cell.ranks for cell in cells(system) if cell.kind == kind)
        wanted = scenario(system, found, kind, ranks, size)
        flow = _us(cw.run(wanted, level="flow", progress=False))
        by_packets = _us(figures.simulated(wanted, threads=1))
        [formula] = found.predict(kind, ranks, [size])
        rows.append((systems().loc[system, "shown"], f"{kind}, {size:,} B", by_packets, flow, formula))
    columns = ["system", "collective", "packets, us", "flow level, us", "formula, us"]
    table = pd.DataFrame(rows, columns=columns).set_index(columns[:2])
    off = {name: (table["packets, us"] / table[name] - 1).abs().max() for name in ("flow level, us", "formula, us")}
    checks = {
        f"packets and {name[:-4]}: {worst:.1%} apart at most, 5% allowed": bool(worst <= 0.05)
        for name, worst in off.items()
    }
    return Shown(table, checks, note="the library's formula and flow level")


def _apply(options: Options, out: Path) -> None:
    """Nothing here has options, and small runs are not kept."""


PAPER = Paper(
    "hardware",
    "Collectives, experts, a switch, and software of hosts, as measured on hardware",
    {"collectives": collectives, "packets": packets, "single": single, "hosts": hosts},
    _apply,
    ("docs/training-measured.md", "docs/software-measured.md"),
)
