"""Makes a drawn scenario valid: what an error names is left out, until nothing is refused.

A refusal that names nothing of the scenario is a find: who reads it doesn't know what to change.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import clearway as cw

from swarm.draw import amount_of, written

TRIES = 80
HOPS_MAX = 12_000
"""Packets over links, by the estimate: some hundredths of a second."""
SAMPLES_MAX = 500
"""All threads stop for each."""


@dataclass
class Settled:
    """The fate of a scenario."""

    scenario: dict[str, Any] | None
    """None if it was refused whatever was left out."""
    refusals: list[tuple[str, str]] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    hops: int = 0


def toml(scenario: dict[str, Any]) -> str:
    """A scenario as a person would write it: tables of lists under their own headings."""
    lines, tables = [], []
    for key, value in scenario.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            tables += [[f"[[{key}]]", *(f"{inner} = {_value(one[inner])}" for inner in one)] for one in value]
        else:
            lines.append(f"{key} = {_value(value)}")
    return "\n".join([*lines, *("\n" + "\n".join(table) for table in tables)]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'


def settled(drawn: dict[str, Any], folder: Path) -> Settled:
    """A scenario that can be run at packet level, and doesn't take long."""
    scenario, found = copy.deepcopy(drawn), Settled(None)
    for _ in range(TRIES):
        try:
            read = cw.Scenario.from_toml(toml(scenario), "swarm", folder)
            read.check()
            foreseen = read.forecast(probe_seconds=0, memory_limit=float("inf"))
        except cw.ScenarioError as error:
            found.refusals.append((error.key, error.message))
            if not error.key or not error.message:
                found.nameless.append(str(error))
                return found
            if not _without(scenario, error.key):
                return found
            continue
        found.hops = foreseen.packet_hops
        interval_ps = amount_of(read.to_dict()["measure"]["interval"], "Duration")
        if foreseen.end_ps > interval_ps * SAMPLES_MAX > 0:
            scenario["measure"]["interval"] = written(foreseen.end_ps // SAMPLES_MAX + 1, "Duration")
        elif found.hops <= HOPS_MAX:
            found.scenario = scenario
            return found
        elif not _shorter(scenario):
            return found
    return found


def _steps(key: str) -> list[str | int]:
    """The steps of a key's path, such as `traffic[0].arrivals` and `traffic.0.arrivals`."""
    return [int(step) if step.isdecimal() else step for step in re.split(r"[.\[\]]+", key) if step]


def _without(scenario: dict[str, Any], key: str) -> bool:
    """Leaves out what a key names, or as much of it as there is; or else what may be in its way. Whether it could."""
    steps = _steps(key)
    if key == "traffic" and not scenario.get("traffic"):
        scenario["traffic"] = IN_THE_WAY["traffic"]
        return True
    while steps:
        inside: Any = scenario
        for step in steps[:-1]:
            inside = _inside(inside, step)
        last = steps[-1]
        if isinstance(inside, dict) and last in inside and not (len(steps) == 1 and last in NEEDED):
            del inside[last]
            return True
        if isinstance(inside, list) and isinstance(last, int) and last < len(inside):
            del inside[last]
            if not inside:
                _without(scenario, ".".join(map(str, steps[:-1])))
            return True
        steps.pop()
    for name, plain in IN_THE_WAY.items():
        if name in scenario and scenario[name] != plain:
            if plain is None:
                del scenario[name]
            else:
                scenario[name] = plain
            return True
    return False


NEEDED = ("fabric", "transport", "measure")
RANKS = 4
"""Ranks of a job that is made shorter."""
IN_THE_WAY: dict[str, Any] = {
    "sharing": None,
    "entity": None,
    "flow_control": None,
    "failure": None,
    "link": None,
    "job": None,
    "switch": None,
    "host": None,
    "transport": "dctcp",
    "traffic": [{"name": "class 0", "sizes": {"constant": "3KB"}, "arrivals": "all_at_once", "flows": 4}],
    "fabric": {"star": {"hosts": 3}},
}
"""Keys that are left out, or made plain, if an error names a key that the text doesn't have."""


def _inside(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    if isinstance(value, list) and isinstance(step, str):
        return next((one for one in value if isinstance(one, dict) and one.get("name") == step), None)
    return None


def _shorter(scenario: dict[str, Any]) -> bool:
    """Makes what is sent less. Whether it could."""
    for one in scenario.get("traffic", []):
        if one.get("flows", 0) > 2:
            one["flows"] = 2
            return True
    for one in scenario.get("traffic", []):
        if "sizes" in one and one["sizes"] != {"constant": "3KB"}:
            one["sizes"] = {"constant": "3KB"}
            return True
    for one in scenario.get("job", []):
        if one.get("iterations", 1) > 1:
            del one["iterations"]
            return True
    # A job on all hosts of a large fabric: fewer ranks.
    for one in scenario.get("job", []):
        if "steps" in one and one.get("ranks", RANKS + 1) > RANKS:
            one["ranks"] = RANKS
            return True
    for name in ("job", "traffic"):
        if len(scenario.get(name, [])) > 1:
            scenario[name].pop()
            return True
    return False
