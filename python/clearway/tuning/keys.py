"""Lines for a scenario and for SONiC's configuration; and the key that keeps a switch from being lossless."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clearway import _core
from clearway.scenarios.quantity import amount
from clearway.scenarios.sonic import WRITTEN_BY
from clearway.tuning.knobs import Base, Knob
from clearway.tuning.trials import Setting

LISTS = ("pool", "group", "queue")
DEFAULTS = {"xon": "0B", "xon_offset": "0B", "drop": False, "at_departure": False}
"""Values that a snippet leaves out."""


def snippet(base: Base, setting: Setting) -> str:
    """The tables with these values, to put into a scenario in place of its own; pools too, which the others name."""
    tables = base.tables(setting)
    changed = {"pool", *(knob.key.split(".")[0] for knob in base.knobs)}
    lines = ["[flow_control.mmu]"]
    for name in ("pool", "group", "queue", "role"):
        if name in changed and tables.get(name):
            rows = [f"    {_inline(table)}," for table in tables[name]]
            lines += [f"{name} = [", *rows, "]"]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        said = {key: inner for key, inner in value.items() if key not in DEFAULTS or inner != DEFAULTS[key]}
        return "{ " + ", ".join(f"{key} = {_inline(inner)}" for key, inner in said.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def sonic(base: Base, setting: Setting) -> list[str]:
    """Which keys of SONiC's configuration to change, and to what; none if the scenario was not imported from one."""
    core = base.scenario._core
    text = core.parts()[0] if isinstance(core, _core.Scenario) else ""
    if WRITTEN_BY not in text:
        return []
    named = {name: _named(text, name) for name in LISTS}
    changed = [knob for knob in base.knobs if setting[knob.key] != knob.now]
    said = [line for knob in changed for line in _of_knob(base, setting, knob, named)]
    return list(dict.fromkeys(said))


def _named(text: str, name: str) -> list[str]:
    """By element of a list of the scenario: the comment after it, which says where it comes from."""
    found = re.search(rf"^{name} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    lines = found[1].splitlines() if found else []
    return [line.partition("  # ")[2].strip() for line in lines if line.strip().startswith("{")]


def _of_knob(base: Base, setting: Setting, knob: Knob, named: Mapping[str, Sequence[str]]) -> Iterator[str]:
    value, tables, key, of_role = setting[knob.key], base.tables(setting), knob.key, ""
    if key.startswith("role."):
        number, key = key.removeprefix("role.").split(".", 1)
        tables = tables["role"][int(number)]
        of_role = f"{', '.join(tables['switches'])}: "
    name, number, *rest = key.split(".")
    index = int(number)
    words = named[name][index].split(", ") if index < len(named[name]) and not of_role else []

    def place(table: str) -> str:
        return of_role + next((word for word in words if word.startswith(f"{table}|")), f"{table}|*")

    if name == "pool":
        yield f"{of_role}BUFFER_POOL|{tables['pool'][index]['name']}|xoff: {value:.0f}"
    elif name == "queue":
        at, ecn = place("WRED_PROFILE"), tables["queue"][index]["ecn"]
        if knob.kind == "ecn.probability_max":
            yield f"{at}|green_drop_probability: {value * 100:.0f}"
            return
        yield f"{at}|green_min_threshold: {amount(ecn['min']):.0f}"
        yield f"{at}|green_max_threshold: {amount(ecn['max']):.0f}"
    else:
        row = tables["group"][index]["lookup"][int(rest[1])] if rest[0] == "lookup" else None
        at = place("BUFFER_PROFILE")
        if row is not None:
            at = f"{of_role}pg_profile_lookup.ini|{amount(row['rate']) / 1e6:.0f} {row['cable_m']:g}m"
        if knob.kind == "headroom":
            yield f"{at}|xoff: {value:.0f}"
        elif knob.kind == "reserved":
            yield f"{at}|size: {value:.0f}, and xoff more where it holds xoff"
        else:
            yield f"{at}|{'threshold' if row is not None else 'dynamic_th'}: {math.log2(value):.0f}"


def shortage(base: Base, setting: Setting) -> str:
    """Which setting keeps a switch from being lossless although headroom suffices, by arithmetic."""
    tables = base.tables(setting)
    by_switch: dict[str, list[Any]] = {}
    for port in base.ports(setting):
        by_switch.setdefault(port["switch"], []).append(port)
    for ports in by_switch.values():
        role = ports[0]["role"]
        if said := _short_of(tables if role is None else tables["role"][role], ports):
            return said
    return "headroom suffices by arithmetic; a failed link or a watchdog may lose packets: clearway explain says where"


def _short_of(mmu: Mapping[str, Any], ports: Sequence[Any]) -> str:
    """The shortage of a switch; empty if there is none."""
    switch = ports[0]["switch"]
    for pool in mmu.get("pool", []):
        needed = sum(port["needed"] for port in ports if port["pool"] == pool["name"])
        if "headroom" in pool and needed > amount(pool["headroom"]):
            return (
                f"pool {pool['name']} shares {amount(pool['headroom']):,.0f} B of headroom, and the lossless groups of "
                f"{switch} need {needed:,} B if all pause at once; write more"
            )
    short = next((port for port in ports if port["headroom"] < port["needed"]), None)
    if short is not None:
        return (
            f"group {short['group']} of {switch} has {short['headroom']:,} B of headroom for {short['neighbour']}, and "
            f"{short['needed']:,} B arrive with and after the packet that asks for a pause; tune headroom, or write it"
        )
    lossless = {queue for port in ports for queue in port["queues"]}
    for of in mmu.get("queue", []):
        if lossless & set(of["queues"]) and ("alpha" in of or "threshold" in of):
            limit = f"alpha {of['alpha']:g}" if "alpha" in of else f"threshold {of['threshold']}"
            return (
                f"{limit} of queues {of['queues']} of {switch} holds lossless packets on the egress side, where one "
                "that finds no room is lost, whatever headroom there is; delete it, or write more than ingress admits"
            )
    egress = [pool for pool in mmu.get("pool", []) if pool["side"] == "egress"]
    ingress = sum(amount(of["bytes"]) for of in mmu.get("pool", []) if of["side"] == "ingress")
    ingress += sum(port["headroom"] for port in ports)
    small = next((pool for pool in egress if amount(pool["bytes"]) < ingress), None)
    if small is not None:
        return (
            f"headroom suffices by arithmetic, and the egress pool {small['name']} of {switch} has {small['bytes']} "
            f"for what ingress pools and headroom of {ingress:,.0f} B admit; write as much"
        )
    return ""
