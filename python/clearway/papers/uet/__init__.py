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


@dataclass(frozen=True)
class Case:
    """A case of `validate_uec_sender.txt` and `validate_uec_rcv.txt` (htsim/sim/datacenter, commit 40ccb05 of August
    2025): the last acknowledgement in microseconds."""

    keys: Mapping[str, Any]
    entropies: int
    bound: float
    """The bounds of their script."""
    theirs: tuple[float, float]
    """Results of their program with NSCC alone and with RCCC alone (`validate_outputs`)."""
    within: float | None
    """How far ours may be off, chosen before the first run: 0.1% where nothing is random, 5% where the narrow link is a
    host's, 10% where it is inside the network. With one path for each flow hashes decide: only the bound holds then."""


def _incast(k: int, senders: str | None, receiver: int, degree: int) -> Mapping[str, Any]:
    """As many hosts of a fat-tree send to one."""
    to = {"traffic.messages.receivers": str(receiver), "traffic.messages.flows": degree}
    among = {} if senders is None else {"traffic.messages.senders": senders}
    return {TREE: k, **among, **to, "traffic.messages.pattern": {"incast": {"degree": degree}}}


MANY = {"traffic.messages.flows": 1024}
CASES = {
    "single flow, fat-tree of 16": Case(
        {"traffic.messages.senders": "0", "traffic.messages.receivers": "13", "traffic.messages.flows": 1},
        64,
        190,
        (176.2, 177.368),
        0.001,
    ),
    "16-node incast, fat-tree of 16": Case(_incast(4, "0-14", 15, 15), 64, 2_550, (2_478.53, 2_464.44), 0.05),
    "128-node incast, fat-tree of 128": Case(_incast(8, None, 33, 127), 64, 23_000, (21_029.3, 20_891.4), 0.05),
    "16-node permutation, 128 entropies": Case({}, 128, 210, (194.022, 195.673), 0.05),
    "1,024-node permutation, 128 entropies": Case({**MANY, TREE: 16}, 128, 220, (200.507, 203.384), 0.05),
    "the same, one path for each flow": Case({**MANY, TREE: 16}, 1, 1_300, (889.92, 1_063.0), None),
    "the same, leaf-spine at 4:1": Case({**MANY, **_racks(8)}, 128, 880, (785.774, 749.717), 0.1),
    "the same, leaf-spine at 8:1": Case({**MANY, **_racks(4)}, 128, 1_760, (1_443.43, 1_459.06), 0.1),
}


def validation() -> Shown:
    """The cases by which UET's authors validate their simulator: the last acknowledgement in us, theirs and ours. Ours
    draws other permutations and other hashes."""
    table: dict[str, dict[str, float | None]] = {}
    rows: dict[str, list[tuple[str, str, float, float, float]]] = {control: [] for control in CONTROLS}
    checks = {}
    for name, case in CASES.items():
        table[name] = {"bound": case.bound}
        for control, theirs in zip(CONTROLS, case.theirs):
            transport = {"uet": {"congestion_control": control, "entropies": case.entropies}}
            keys = {**case.keys, "transport": transport}
            result = figures.run(HERE / "validation.toml", f"{name} {control}", keys, OUT)
            last = float(figures.of_flows(result)["fct_us"].max())
            table[name] |= {f"{control}, theirs": theirs, f"{control}, ours": last}
            checks[f"{name}, {control}: at most {case.bound:,.0f} us: {last:,.1f}"] = last <= case.bound
            if case.within is not None:
                rows[control].append((name, "last acknowledgement, us", last, theirs, case.within))
        table[name]["allowed"] = case.within
    program = "uet-htsim's own validation, {} alone"
    held = [
        Held("uet", program.format(control.upper()), "authors' run", pd.DataFrame(of, columns=list(Held.COLUMNS)))
        for control, of in rows.items()
    ]
    return Shown(pd.DataFrame(table).T.rename_axis("case"), checks, held=held)


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
