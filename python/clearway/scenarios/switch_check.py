"""Arithmetic about switches' configuration, before any run: `clearway switch check`.

The switches are those of `flow_control.mmu`. Headroom by port is the simulator's own arithmetic, for
frames as large as real links carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clearway import _core
from clearway.programs import outside
from clearway.scenarios.quantity import amount
from clearway.scenarios.scenario import Scenario

FRAME_BYTES = 9_216
"""The largest frame that is assumed on links, both before a pause and of the class that it stops."""

Row = Mapping[str, Any]
"""A lossless group at a port, as `_core.headroom` has it."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    key: str
    said: str
    fine: bool


def check(scenario: Scenario) -> list[Finding]:
    """Findings, good and bad; `scenario` is one with `flow_control.mmu`. Switches that are alike are looked at once.

    >>> import clearway as cw
    >>> tiny = cw.Scenario.load("examples/tiny.toml").with_(flow_control="mmu")
    >>> print(check(tiny)[0].said)
    headroom 15,189 B follows from the packets of this scenario; frames of 9,216 B need 38,337 B at 40 m
    """
    read = scenario.to_dict()
    mmu = read.get("flow_control", {})
    mmu = mmu.get("mmu") if isinstance(mmu, dict) else None
    if mmu is None:
        raise ValueError("needs a scenario with flow_control.mmu, as clearway import sonic writes it")
    by_switch: dict[str, list[Row]] = {}
    for row in _core.headroom(outside.native(scenario._core, "the arithmetic of headroom"), FRAME_BYTES):
        by_switch.setdefault(row["switch"], []).append(row)
    alike: dict[str, list[str]] = {}
    for name, rows in by_switch.items():
        alike.setdefault(str([_without_names(row) for row in rows]), []).append(name)
    found = []
    for names in alike.values():
        of = f"{names[0]}: " if len(alike) > 1 else ""
        rows = by_switch[names[0]]
        role = rows[0]["role"]
        findings = _Switch(mmu if role is None else mmu["role"][role], rows).findings()
        found += [Finding(f"{of}{one.key}", one.said, one.fine) for one in findings]
    return found


def _without_names(row: Row) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("switch", "neighbour")}


class _Switch:
    def __init__(self, mmu: Mapping[str, Any], rows: Sequence[Row]) -> None:
        self.mmu, self.rows = mmu, rows
        self.ports = len({row["neighbour"] for row in rows})
        tc = range(8)
        maps = mmu.get("maps", {})
        self.group_of = maps.get("tc_to_group") or list(tc)
        self.queue_of = maps.get("tc_to_queue") or list(tc)
        self.lossless = list(mmu.get("lossless", range(1, 8)))
        self.pools = {pool["name"]: pool for pool in mmu.get("pool", [])}

    def findings(self) -> Iterator[Finding]:
        seen = set[str]()
        for row in self.rows:
            # Of ports that are alike, the first.
            kind = str(_without_names(row))
            if kind not in seen:
                seen.add(kind)
                yield from self.of_group(row)
        yield from self.shared_headroom()
        yield from self.service()

    def limit(self, row: Row, busy: int, others: float = 0.0) -> float:
        """Bytes at which one of `busy` groups pauses; others hold a multiple of what is free."""
        if row["alpha"] is None:
            return float(row["limit"])
        return float(row["reserved"] + row["alpha"] * row["shared_bytes"] / (1 + busy * row["alpha"] + others))

    def of_group(self, row: Row) -> Iterator[Finding]:
        has, needed = row["headroom"], row["needed"]
        metres = row["cable_m"]
        table = self.mmu["group"][row["table"]] if row["table"] is not None else {}
        if row["row"] is None and "headroom" not in table:
            said = f"headroom {has:,} B follows from the packets of this scenario; frames of {FRAME_BYTES:,} B need"
            yield Finding(f"group {row['group']}", f"{said} {needed:,} B at {metres:.0f} m", True)
            yield from self.marks_first(row)
            yield from self.beside_lossy(row)
            return
        said = f"headroom {has:,} B, and {needed:,} B are for a pause at {metres:.0f} m"
        more = "" if has >= needed else f": lossless packets are lost; write headroom = {needed} B or more"
        yield Finding(f"group {row['group']}", said + more, has >= needed)
        yield from self.marks_first(row)
        yield from self.beside_lossy(row)

    def marks_first(self, row: Row) -> Iterator[Finding]:
        group = row["group"]
        for queue in row["queues"]:
            ecn = next((of.get("ecn") for of in self.mmu.get("queue", []) if queue in of["queues"]), None)
            if ecn is None:
                yield Finding(f"queue {queue}", "has no ecn: nothing slows senders down before a pause", False)
                continue
            least = amount(ecn["min"])
            busy = max((n for n in range(1, 8 * self.ports + 1) if self.limit(row, n) > least), default=0)
            said = f"ecn begins at {least:,.0f} B, and group {group} pauses at {self.limit(row, 1):,.0f} B alone"
            if busy == 0:
                yield Finding(f"queue {queue}", f"{said}: pauses come first; write ecn.min below that", False)
            else:
                of = f"{busy} of {8 * self.ports} groups" if busy < 8 * self.ports else "any number of groups"
                yield Finding(f"queue {queue}", f"{said}: marks come first while {of} are busy", True)

    def beside_lossy(self, row: Row) -> Iterator[Finding]:
        lossless = {self.group_of[tc] for tc in self.lossless}
        same = [of for of in self.mmu.get("group", []) if of.get("pool", row["pool"]) == row["pool"] and "alpha" in of]
        lossy = [float(of["alpha"]) for of in same if not lossless & set(of["groups"])]
        if not lossy or row["alpha"] is None:
            return
        busy = max(self.ports // 2, 1)
        at, needed = self.limit(row, 1, busy * max(lossy)), row["needed"]
        said = (
            f"with {busy} lossy groups at their limit (alpha {max(lossy):g}) group {row['group']} pauses at {at:,.0f} B"
        )
        more = "" if at >= needed else f", less than the {needed:,} B of a round trip: its link runs dry; write a "
        more += "" if at >= needed else "smaller alpha for lossy groups, or reserved"
        yield Finding(f"group {row['group']}", said + more, at >= needed)

    def shared_headroom(self) -> Iterator[Finding]:
        for name, pool in self.pools.items():
            if "headroom" not in pool:
                continue
            asked, has = sum(row["headroom"] for row in self.rows if row["pool"] == name), amount(pool["headroom"])
            said = f"shared headroom of {has:,.0f} B, and {asked:,.0f} B if all lossless groups pause at once"
            share = "" if has >= asked else f": it holds {has / asked:.0%} of them; more at once lose packets"
            yield Finding(f"pool {name}", said + share, has >= asked)

    def service(self) -> Iterator[Finding]:
        levels = self.mmu.get("schedule", [])
        queues = {self.queue_of[tc] for tc in self.lossless}
        capped = {queue for of in self.mmu.get("queue", []) if "max_rate" in of for queue in of["queues"]}
        kept = {queue for of in self.mmu.get("queue", []) if "min_rate" in of for queue in of["queues"]}
        before: list[int] = []
        for level in levels:
            weights = level.get("weights") or [1] * len(level["queues"])
            for queue, weight in zip(level["queues"], weights, strict=False):
                if queue in queues:
                    starves = [number for number in before if number not in capped]
                    said = f"{weight / sum(weights):.0%} of what its level gets"
                    if starves and queue not in kept:
                        said += f"; queues {starves} go first and can take everything: write max_rate for them"
                    yield Finding(f"queue {queue}", said, not starves or queue in kept)
            before += level["queues"]
