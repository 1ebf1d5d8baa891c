"""UET (Ultra Ethernet Specification 1.0, 2025) held against `uet-htsim`, the simulator in which its authors work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from clearway.papers import figures
from clearway.papers._paper import Options, Paper
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent

OUT = Path("out/uet")
CONTROLS = ("nscc", "rccc")
TREE = "fabric.fat_tree.k"


def _racks(spines: int) -> Mapping[str, Any]:
    """A leaf-spine of 1,024 hosts with as many spines for the 32 hosts of a rack."""
    of = {"racks": 32, "hosts_per_rack": 32, "spines": spines, "spine_rate": "100Gbps"}
    return {"fabric": {"leaf_spine": {**of, "propagation": "1us", "switch_delay": "0s"}}}


# When the first, the median and the last message is acknowledged, in us.
Times = tuple[float, float, float]
STATISTICS = ("first", "median", "last")


@dataclass(frozen=True)
class Case:
    """A case of `validate_uec_sender.txt` and `validate_uec_rcv.txt` (htsim/sim/datacenter, commit 40ccb05 of August
    2025): when the first, the median and the last message is acknowledged, in microseconds."""

    keys: Mapping[str, Any]
    entropies: int
    bound: float
    """The bounds of their script."""
    theirs: Mapping[str, Times]
    """Results of their program with NSCC alone and with RCCC alone: first and last as in `validate_outputs`, and the
    medians of the same runs, made again."""
    within: float | None
    """How far ours may be off, chosen before the first run: 0.1% where nothing is random, 5% where the narrow link is a
    host's, 10% where it is inside the network. With one path for each flow hashes decide: only the bound holds then."""


def _incast(k: int, senders: str | None, receiver: int, degree: int) -> Mapping[str, Any]:
    """As many hosts of a fat-tree send to one."""
    to = {"traffic.messages.receivers": str(receiver), "traffic.messages.flows": degree}
    among = {} if senders is None else {"traffic.messages.senders": senders}
    return {TREE: k, **among, **to, "traffic.messages.pattern": {"incast": {"degree": degree}}}


def _theirs(nscc: Times, rccc: Times) -> Mapping[str, Times]:
    return {"nscc": nscc, "rccc": rccc}


MANY = {"traffic.messages.flows": 1024}
# Which message is first is partly chance: how far ours may be off then.
FIRST_WITHIN = 0.25
CASES = {
    "single flow, fat-tree of 16": Case(
        {"traffic.messages.senders": "0", "traffic.messages.receivers": "13", "traffic.messages.flows": 1},
        64,
        190,
        _theirs((176.2, 176.2, 176.2), (177.368, 177.368, 177.368)),
        0.001,
    ),
    "16-node incast, fat-tree of 16": Case(
        _incast(4, "0-14", 15, 15),
        64,
        2_550,
        _theirs((1_273.56, 2_287.67, 2_478.53), (2_368.38, 2_450.67, 2_464.44)),
        0.05,
    ),
    "128-node incast, fat-tree of 128": Case(
        _incast(8, None, 33, 127),
        64,
        23_000,
        _theirs((10_787.9, 20_796.1, 21_029.3), (20_354.6, 20_820.3, 20_891.4)),
        0.05,
    ),
    "16-node permutation, 128 entropies": Case(
        {}, 128, 210, _theirs((187.97, 190.951, 194.022), (186.898, 190.683, 195.673)), 0.05
    ),
    "1,024-node permutation, 128 entropies": Case(
        {**MANY, TREE: 16}, 128, 220, _theirs((167.619, 194.454, 200.507), (168.902, 193.237, 203.384)), 0.05
    ),
    "the same, one path for each flow": Case(
        {**MANY, TREE: 16}, 1, 1_300, _theirs((167.962, 385.151, 889.92), (169.94, 449.989, 1_063.0)), None
    ),
    "the same, leaf-spine at 4:1": Case(
        {**MANY, **_racks(8)}, 128, 880, _theirs((167.619, 622.436, 785.774), (167.841, 693.125, 749.717)), 0.1
    ),
    "the same, leaf-spine at 8:1": Case(
        {**MANY, **_racks(4)}, 128, 1_760, _theirs((167.312, 1_222.705, 1_443.43), (167.713, 1_364.755, 1_459.06)), 0.1
    ),
}


def validation() -> Shown:
    """The cases by which UET's authors validate their simulator: the acknowledgements of the first, the median and the
    last message in us, theirs and ours. Ours draws other permutations and other hashes."""
    table: dict[tuple[str, str], dict[str, float | None]] = {}
    rows: dict[str, list[tuple[str, str, float, float, float]]] = {control: [] for control in CONTROLS}
    checks = {}
    for name, case in CASES.items():
        for control in CONTROLS:
            transport = {"uet": {"congestion_control": control, "entropies": case.entropies}}
            keys = {**case.keys, "transport": transport}
            times = figures.of_flows(figures.run(HERE / "validation.toml", f"{name} {control}", keys, OUT))["fct_us"]
            ours = (float(times.min()), float(times.median()), float(times.max()))
            checks[f"{name}, {control}: at most {case.bound:,.0f} us: {ours[-1]:,.1f}"] = ours[-1] <= case.bound
            for statistic, mine, theirs in zip(STATISTICS, ours, case.theirs[control]):
                of = table.setdefault((name, statistic), {})
                of |= {f"{control}, theirs": theirs, f"{control}, ours": mine}
                if case.within is not None:
                    within = max(case.within, FIRST_WITHIN) if statistic == "first" and len(times) > 1 else case.within
                    rows[control].append((name, f"{statistic} message, us", mine, theirs, within))
    program = "uet-htsim's own validation, {} alone"
    held = [
        Held("uet", program.format(control.upper()), "authors' run", pd.DataFrame(of, columns=list(Held.COLUMNS)))
        for control, of in rows.items()
    ]
    return Shown(pd.DataFrame(table).T.rename_axis(["case", "message"]), checks, held=held)


def _apply(options: Options, out: Path) -> None:
    global OUT
    OUT = out


PAPER = Paper(
    "uet",
    "Ultra Ethernet Transport (2025)",
    {"validation": validation},
    _apply,
    ("docs/schemes/uet.md",),
)
