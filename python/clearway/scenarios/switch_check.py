"""Arithmetic about a switch's configuration, before any run: `clearway switch check`.

The switch is that of `flow_control.mmu`, with the ports, the rate and the length of links of `fabric.star`, as
`clearway import sonic` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clearway.scenarios.quantity import LIGHT_M_PER_S, amount

FRAME_BYTES = 9_216
"""The largest frame that is assumed on links, both before a pause and of the class that it stops."""
PAUSE_BYTES = 64


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    key: str
    said: str
    fine: bool


def check(scenario: Mapping[str, Any]) -> list[Finding]:
    """Findings, good and bad; `scenario` is one with `flow_control.mmu` and `fabric.star`."""
    mmu = scenario.get("flow_control", {})
    mmu = mmu.get("mmu") if isinstance(mmu, dict) else None
    star = scenario.get("fabric", {}).get("star")
    if mmu is None or star is None:
        raise ValueError("needs a scenario with flow_control.mmu and fabric.star, as clearway import sonic writes it")
    return list(_Switch(mmu, star).findings())


class _Switch:
    def __init__(self, mmu: Mapping[str, Any], star: Mapping[str, Any]) -> None:
        self.mmu, self.ports = mmu, int(star.get("hosts", 8))
        self.rate = amount(star.get("rate", "100Gbps"))
        self.metres = amount(star.get("propagation", "200ns")) * LIGHT_M_PER_S
        maps = mmu.get("maps", {})
        tc = range(8)
        self.group_of = maps.get("tc_to_group") or list(tc)
        self.queue_of = maps.get("tc_to_queue") or list(tc)
        self.lossless = list(mmu.get("lossless", range(1, 8)))
        self.pools = {pool["name"]: pool for pool in mmu.get("pool", [])}

    def findings(self) -> Iterator[Finding]:
        for group in sorted({self.group_of[tc] for tc in self.lossless}):
            table = next((of for of in self.mmu.get("group", []) if group in of["groups"]), None)
            if table is not None:
                yield from self.of_group(group, table)
        yield from self.shared_headroom()
        yield from self.service()

    def row(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = [row for row in table.get("lookup", []) if amount(row["rate"]) == self.rate]
        long_enough = [row for row in rows if row["cable_m"] + 0.5 >= self.metres]
        if long_enough:
            return min(long_enough, key=lambda row: float(row["cable_m"]))
        return max(rows, key=lambda row: float(row["cable_m"])) if rows else table

    def needed(self) -> int:
        """Bytes for a pause at least: the frame that asks for it, both ways of the cable, two frames, the pause."""
        return int(2 * self.metres / LIGHT_M_PER_S * self.rate / 8) + 3 * FRAME_BYTES + PAUSE_BYTES

    def limit(self, given: Mapping[str, Any], pool: Mapping[str, Any], busy: int, others: float = 0.0) -> float:
        """Bytes at which one of `busy` groups pauses; others hold a multiple of what is free."""
        reserved = amount(given.get("reserved", 0))
        if "alpha" in given:
            free = amount(pool["bytes"]) / (1 + busy * float(given["alpha"]) + others)
            return reserved + float(given["alpha"]) * free
        return reserved + (amount(given["threshold"]) if "threshold" in given else amount(pool["bytes"]))

    def of_group(self, group: int, table: Mapping[str, Any]) -> Iterator[Finding]:
        given = self.row(table)
        key = f"group {group}"
        if table.get("lookup") and given is table:
            yield Finding(key, f"lookup has no row for {self.rate / 1e9:g} Gbps; write one", False)
            return
        if "headroom" in given:
            has, needed = amount(given["headroom"]), self.needed()
            said = f"headroom {has:,.0f} B, and {needed:,} B are for a pause at {self.metres:.0f} m"
            more = "" if has >= needed else f": lossless packets are lost; write headroom = {needed} B or more"
            yield Finding(key, said + more, has >= needed)
        pool = self.pools.get(table.get("pool", "")) or next(
            (pool for pool in self.mmu.get("pool", []) if pool["side"] == "ingress"), None
        )
        if pool is None:
            return
        yield from self.marks_first(group, given, pool)
        yield from self.beside_lossy(group, given, table, pool)

    def marks_first(self, group: int, given: Mapping[str, Any], pool: Mapping[str, Any]) -> Iterator[Finding]:
        queues = sorted({self.queue_of[tc] for tc in self.lossless if self.group_of[tc] == group})
        for queue in queues:
            ecn = next((of.get("ecn") for of in self.mmu.get("queue", []) if queue in of["queues"]), None)
            if ecn is None:
                yield Finding(f"queue {queue}", "has no ecn: nothing slows senders down before a pause", False)
                continue
            least = amount(ecn["min"])
            busy = max((n for n in range(1, 8 * self.ports + 1) if self.limit(given, pool, n) > least), default=0)
            alone = self.limit(given, pool, 1)
            said = f"ecn begins at {least:,.0f} B, and group {group} pauses at {alone:,.0f} B alone"
            if busy == 0:
                yield Finding(f"queue {queue}", f"{said}: pauses come first; write ecn.min below that", False)
            else:
                of = f"{busy} of {8 * self.ports} groups" if busy < 8 * self.ports else "any number of groups"
                yield Finding(f"queue {queue}", f"{said}: marks come first while {of} are busy", True)

    def beside_lossy(
        self, group: int, given: Mapping[str, Any], table: Mapping[str, Any], pool: Mapping[str, Any]
    ) -> Iterator[Finding]:
        lossless = {self.group_of[tc] for tc in self.lossless}
        same = [of for of in self.mmu.get("group", []) if of.get("pool") == table.get("pool") and "alpha" in of]
        lossy = [float(of["alpha"]) for of in same if not lossless & set(of["groups"])]
        if not lossy or "alpha" not in given:
            return
        busy = max(self.ports // 2, 1)
        at = self.limit(given, pool, 1, busy * max(lossy))
        needed = self.needed()
        said = f"with {busy} lossy groups at their limit (alpha {max(lossy):g}) group {group} pauses at {at:,.0f} B"
        more = "" if at >= needed else f", less than the {needed:,} B of a round trip: its link runs dry; write a "
        more += "" if at >= needed else "smaller alpha for lossy groups, or reserved"
        yield Finding(f"group {group}", said + more, at >= needed)

    def shared_headroom(self) -> Iterator[Finding]:
        for name, pool in self.pools.items():
            if "headroom" not in pool:
                continue
            of_groups = [
                amount(self.row(of).get("headroom", 0))
                * len({self.group_of[tc] for tc in self.lossless} & set(of["groups"]))
                for of in self.mmu.get("group", [])
                if of.get("pool") == name
            ]
            asked, has = self.ports * sum(of_groups), amount(pool["headroom"])
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
