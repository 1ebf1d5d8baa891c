"""Knobs: settings of `flow_control.mmu`, each with a ladder of values."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clearway import _core
from clearway.programs import outside
from clearway.scenarios.quantity import amount
from clearway.scenarios.scenario import Scenario

Mmu = dict[str, Any]
"""The tables of `flow_control.mmu`, as a scenario has them."""

ALPHAS = tuple(2.0**power for power in range(-7, 4))
"""Powers of two, as switches have them (SONiC's `dynamic_th` and SAI's shared dynamic threshold)."""
PROBABILITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
RATIOS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""`ecn.max` as a multiple of `ecn.min`."""
STEPS_OF_HEADROOM = 64
"""Into how many steps what arithmetic says is divided."""
KINDS = {
    "headroom": "bytes that a lossless group has for what arrives after its pause",
    "alpha": "share of the pool's free bytes that a lossless group may take",
    "reserved": "bytes that each lossless group alone may use",
    "ecn.min": "queue length at which marks begin; ecn.max keeps its ratio",
    "ecn.max": "queue length above which every packet is marked, as a multiple of ecn.min",
    "ecn.probability_max": "probability of a mark at ecn.max",
}
ARITHMETIC = "the arithmetic of headroom"
USUAL = ("headroom", "alpha", "ecn.min", "ecn.max", "ecn.probability_max")
"""Those that are tuned unless some are named."""


class TuneError(ValueError):
    """A scenario that can't be tuned, or a key that is no knob of it."""


@dataclass(frozen=True)
class Knob:
    """A setting that is tuned."""

    key: str
    """Below `flow_control.mmu`, such as `group.0.headroom`."""
    kind: str
    values: tuple[float, ...]
    """The ladder, ascending."""
    now: float
    """The value in the scenario."""

    @property
    def bisected(self) -> bool:
        """Whether more never loses more, so that the least that loses nothing can be found by bisection."""
        return self.kind == "headroom"

    def shown(self, value: float) -> str:
        """A value in words: `84,992 B`, `0.25`, `4 x min`.

        >>> Knob("queue.0.ecn.max", "ecn.max", (2.0, 4.0), 4.0).shown(2.0)
        '2 x min'
        """
        if self.kind in ("headroom", "reserved", "ecn.min"):
            return f"{value:,.0f} B"
        return f"{value:g} x min" if self.kind == "ecn.max" else f"{value:g}"

    def put(self, mmu: Mmu, value: float) -> None:
        """Sets it in the tables. Of marks, `min` is set before `max`."""
        *path, last = self.key.split(".")
        at: Any = mmu
        for part in path:
            at = at[int(part)] if part.isdecimal() else at[part]
        if self.kind == "ecn.min":
            ratio = amount(at["max"]) / amount(at["min"])
            at["min"], at["max"] = f"{value:.0f}B", f"{max(value * ratio, value + 1):.0f}B"
        elif self.kind == "ecn.max":
            at["max"] = f"{max(amount(at['min']) * value, amount(at['min']) + 1):.0f}B"
        elif self.kind in ("headroom", "reserved"):
            at[last] = f"{value:.0f}B"
        else:
            at.pop("threshold", None)
            at[last] = value


@dataclass(frozen=True)
class Base:
    """A scenario with the tables that are tuned in it."""

    scenario: Scenario
    mmu: Mmu
    """With a table for each lossless group and queue, so that each has keys to set."""
    knobs: tuple[Knob, ...]
    notes: tuple[str, ...]

    def with_(self, setting: Mapping[str, float], seed: int | None = None) -> Scenario:
        """The scenario with these values, by key."""
        return self.scenario.with_({"flow_control": {"mmu": self.tables(setting)}}, seed=seed)

    def tables(self, setting: Mapping[str, float]) -> Mmu:
        """The tables of `flow_control.mmu` with these values."""
        tables = copy.deepcopy(self.mmu)
        # Setting ecn.min keeps the ratio that ecn.max then changes.
        for knob in sorted(self.knobs, key=lambda knob: knob.kind == "ecn.max"):
            knob.put(tables, setting[knob.key])
        return tables

    def ports(self, setting: Mapping[str, float]) -> list[Any]:
        """Lossless groups by port, with their headroom and the headroom that they need, by arithmetic."""
        return list(_core.headroom(outside.native(self.with_(setting)._core, ARITHMETIC)))

    def reserved_bytes(self, setting: Mapping[str, float]) -> float:
        """Memory that nothing else may use: of the switch that has most of it."""
        by_switch: dict[str, float] = {}
        tables = self.tables(setting)
        for port in self.ports(setting):
            mmu = tables if port["role"] is None else tables["role"][port["role"]]
            shared = {of["name"]: amount(of["headroom"]) for of in mmu.get("pool", []) if "headroom" in of}
            own = port["reserved"] + (0 if port["pool"] in shared else port["headroom"])
            by_switch[port["switch"]] = by_switch.get(port["switch"], sum(shared.values())) + own
        return max(by_switch.values())


def based(scenario: Scenario, wanted: Iterable[str] = ()) -> Base:
    """The knobs of a scenario: those that are `wanted` (`alpha`, `group.1.alpha`, `headroom=1KB..80KB`), or
    the usual ones.
    """
    control = scenario.to_dict().get("flow_control")
    if not isinstance(control, Mapping) or "mmu" not in control:
        raise TuneError(
            'flow_control: is not mmu, the switch whose settings are tuned; write flow_control = "mmu", or import a '
            "switch (docs/cookbook/switch.md)"
        )
    mmu = copy.deepcopy(dict(control["mmu"]))
    core = outside.native(scenario._core, ARITHMETIC)
    ports = _core.headroom(core)
    if not ports:
        raise TuneError("flow_control.mmu.lossless: no class of packets is lossless, so that nothing pauses")
    notes: list[str] = []
    room, marked = core.ports()
    for _, tables, mine in _by_role(mmu, ports):
        _complete(tables, mine, marked, notes)
    ports = _core.headroom(outside.native(scenario.with_({"flow_control": {"mmu": mmu}})._core, ARITHMETIC))
    mtu = amount(scenario.to_dict()["host"]["mtu"])
    every: list[Knob] = []
    for prefix, tables, mine in _by_role(mmu, ports):
        own = [*_of_groups(tables, mine, room), *_of_pools(tables, mine), *_of_queues(tables, mine, mtu)]
        every += [replace(knob, key=prefix + knob.key) for knob in own]
    return Base(scenario, mmu, tuple(_chosen(every, list(wanted))), tuple(dict.fromkeys(notes)))


Row = Mapping[str, Any]
"""A lossless group at a port, as `_core.headroom` has it."""


def _by_role(mmu: Mmu, ports: Sequence[Row]) -> Iterable[tuple[str, Mmu, list[Row]]]:
    """The tables of each role of switches that has lossless groups: what their keys begin with, and their ports."""
    for role in sorted({port["role"] for port in ports}, key=lambda role: -1 if role is None else role):
        tables = mmu if role is None else mmu["role"][role]
        yield "" if role is None else f"role.{role}.", tables, [port for port in ports if port["role"] == role]


def _complete(mmu: Mmu, ports: Sequence[Row], marked: Sequence[Any], notes: list[str]) -> None:
    """Adds tables for lossless groups and queues that have none, with what they have without."""
    for port in ports:
        if port["table"] is None and not any(port["group"] in of["groups"] for of in mmu.get("group", [])):
            mmu.setdefault("group", []).append({"groups": [port["group"]], "alpha": 2.0, "xon_offset": "3000B"})
    if any("ecn" in of for of in mmu.get("queue", [])) or not marked:
        return
    _, least, most, probability, per, _ = marked[0]
    scale = max(port["rate_bps"] for port in ports) / per if per else 1.0
    least, most = max(least * scale, 1.0), max(most * scale, least * scale + 1.0)
    ecn = {"min": f"{least:.0f}B", "max": f"{most:.0f}B", "probability_max": probability}
    for queue in sorted({queue for port in ports for queue in port["queues"]}):
        table = next((of for of in mmu.get("queue", []) if queue in of["queues"]), None)
        alike = next((of for of in mmu.get("queue", []) if of.get("ecn") == ecn and len(of) == 2), None)
        if table is not None:
            table["ecn"] = dict(ecn)
        elif alike is not None:
            alike["queues"].append(queue)
        else:
            mmu.setdefault("queue", []).append({"queues": [queue], "ecn": dict(ecn)})
    notes.append(f"marks of lossless queues as the transports ask for them: from {least:,.0f} to {most:,.0f} B")


def _of_groups(mmu: Mmu, ports: Sequence[Row], room: int) -> Iterable[Knob]:
    for index, table in enumerate(mmu.get("group", [])):
        mine = [port for port in ports if port["table"] == index]
        if not mine:
            continue
        rows = sorted({port["row"] for port in mine if port["row"] is not None})
        for key, of, own in [
            (f"lookup.{row}.", table["lookup"][row], [port for port in mine if port["row"] == row]) for row in rows
        ] or [("", table, mine)]:
            needed, now = max(port["needed"] for port in own), max(port["headroom"] for port in own)
            yield _ladder(f"group.{index}.{key}headroom", needed, now)
            if "alpha" in of:
                yield Knob(f"group.{index}.{key}alpha", "alpha", _with(ALPHAS, of["alpha"]), float(of["alpha"]))
            reserved = amount(of.get("reserved", 0))
            ladder = (0.0, *_geometric(2_048.0, max(room / 64, 4_096.0), 2.0))
            yield Knob(f"group.{index}.{key}reserved", "reserved", _with(ladder, reserved), reserved)


def _of_pools(mmu: Mmu, ports: Sequence[Row]) -> Iterable[Knob]:
    """Headroom that groups share: at most what all of them need at once, at the switch that needs most."""
    for index, pool in enumerate(mmu.get("pool", [])):
        needed: dict[str, int] = {}
        for port in ports:
            if port["pool"] == pool["name"]:
                needed[port["switch"]] = needed.get(port["switch"], 0) + port["needed"]
        if "headroom" in pool and needed:
            yield _ladder(f"pool.{index}.headroom", max(needed.values()), amount(pool["headroom"]))


def _ladder(key: str, needed: int, now: float) -> Knob:
    """Headroom from nothing to what arithmetic says, of the port that needs most."""
    step = max(math.ceil(needed / STEPS_OF_HEADROOM), 1)
    ladder = [float(needed - step * back) for back in range(STEPS_OF_HEADROOM) if needed - step * back > 0]
    return Knob(key, "headroom", (0.0, *reversed(ladder)), float(now))


def _of_queues(mmu: Mmu, ports: Sequence[Row], mtu: float) -> Iterable[Knob]:
    lossless = {queue for port in ports for queue in port["queues"]}
    for index, table in enumerate(mmu.get("queue", [])):
        if not lossless & set(table["queues"]) or "ecn" not in table:
            continue
        ecn, key = table["ecn"], f"queue.{index}.ecn."
        least, most = amount(ecn["min"]), amount(ecn["max"])
        top = max(max(port["limit"] for port in ports), 4 * least, 32 * mtu)
        yield Knob(f"{key}min", "ecn.min", _with(_geometric(2 * mtu, top, math.sqrt(2)), least), least)
        ratio = most / least if least else 2.0
        yield Knob(f"{key}max", "ecn.max", _with(RATIOS, ratio), ratio)
        now = float(ecn["probability_max"])
        yield Knob(f"{key}probability_max", "ecn.probability_max", _with(PROBABILITIES, now), now)


def _geometric(least: float, most: float, factor: float) -> tuple[float, ...]:
    steps = int(math.log(most / least, factor) + 1e-9)
    return tuple(float(round(least * factor**step)) for step in range(steps + 1))


def _with(ladder: Sequence[float], now: float) -> tuple[float, ...]:
    """The ladder with the value that the scenario has."""
    return tuple(sorted({*ladder, now}))


def _chosen(every: Sequence[Knob], wanted: Sequence[str]) -> list[Knob]:
    found: dict[str, Knob] = {}
    for said in wanted or [kind for kind in USUAL if any(knob.kind == kind for knob in every)]:
        name, _, span = (part.strip() for part in said.partition("="))
        short = name.removeprefix("flow_control.mmu.")
        own = [knob for knob in every if short in (knob.kind, knob.key) or knob.key.endswith(f".{short}")]
        if not own:
            known = ", ".join(dict.fromkeys([*(knob.kind for knob in every), *(knob.key for knob in every)]))
            raise TuneError(f"--key {said}: is nothing that can be tuned here; that is {known}")
        for knob in own:
            found[knob.key] = _within(knob, span, said) if span else knob
    return sorted(found.values(), key=lambda knob: list(KINDS).index(knob.kind))


def _within(knob: Knob, span: str, said: str) -> Knob:
    """The knob with a ladder of this range."""
    low, dots, high = span.partition("..")
    try:
        ends = amount(low.strip()), amount(high.strip())
    except (ValueError, KeyError):
        ends = (math.nan, math.nan)
    if not dots or not ends[0] < ends[1]:
        raise TuneError(f"--key {said}: write a range such as {knob.kind}=10KB..80KB, the lower end first")
    values = sorted({*(value for value in knob.values if ends[0] <= value <= ends[1]), *ends})
    if (knob.kind == "alpha" and ends[0] <= 0) or (knob.kind == "ecn.max" and ends[0] <= 1):
        raise TuneError(f"--key {said}: {'0 is no alpha' if knob.kind == 'alpha' else 'ecn.max must be above ecn.min'}")
    if knob.kind == "ecn.probability_max" and ends[1] > 1:
        raise TuneError(f"--key {said}: a probability is at most 1")
    return replace(knob, values=tuple(values))
