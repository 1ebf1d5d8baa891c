"""An example of each key of a scenario: a line of a shipped scenario that has it, or of what a scenario is with every
default filled in, under each scheme.

Scenarios and the schema are walked side by side, so a key's example is found wherever its table may stand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import clearway as cw
from clearway.scenarios.scenario import _toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "python/clearway", "crates/sim/examples/bench/scenarios")
# A longer value is not shown where a shorter one is to be had.
LONG = 60

# Keys that no shipped scenario has.
OTHERS = Path(__file__).with_name("keys.toml")
# Tables whose keys are set one by one; others as a whole.
OPEN = ("", "traffic", "traffic.ring", "switch", "measure", "host", "live")


class Examples:
    """Examples by the table of the schema in which a key stands."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._types = schema["$defs"]
        # By the table's properties (which the schema has once) and the key: values, shipped ones first.
        self._found: dict[tuple[int, str], list[Any]] = {}
        # By the key and what is said of it: keys that several tables have alike.
        self._alike: dict[tuple[str, str], list[Any]] = {}
        for scenario in [*_shipped(), *_as_read(others()), *_as_read(_schemes())]:
            self._walk(schema, scenario)

    def of(self, properties: dict[str, Any], key: str) -> str:
        """A line of a scenario; empty if none has the key."""
        own = self._found.get((id(properties), key), [])
        lines = [_line(key, value) for value in own or self._alike.get((key, json.dumps(properties[key])), [])]
        return next((line for line in lines if len(line) <= LONG), min(lines, key=len, default=""))

    def _walk(self, schema: dict[str, Any], value: Any) -> None:
        for one in self._alternatives(schema):
            if isinstance(value, list) and one.get("type") == "array":
                for item in value:
                    self._walk(one.get("items", {}), item)
            properties = one.get("properties")
            if isinstance(value, dict) and properties and set(value) <= set(properties):
                for key, inner in value.items():
                    self._found.setdefault((id(properties), key), []).append(inner)
                    self._alike.setdefault((key, json.dumps(properties[key])), []).append(inner)
                    self._walk(properties[key], inner)

    def _alternatives(self, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        while "$ref" in schema:
            schema = self._types[schema["$ref"].rsplit("/", 1)[-1]]
        choices = schema.get("oneOf") or schema.get("anyOf")
        if not choices:
            yield schema
        for choice in choices or ():
            yield from self._alternatives(choice)


def _line(key: str, value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return f"[[{key}]]"
    if isinstance(value, dict) and len(_toml(value)) > LONG:
        return f"[{key}]"
    return f"{key} = {_toml(value)}"


def _shipped() -> Iterator[dict[str, Any]]:
    """The scenarios in the repository, which tests run."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.toml")):
            read = tomllib.loads(path.read_text(encoding="utf-8"))
            # Sweeps and tenants are no scenarios.
            if "fabric" in read:
                yield read


def others() -> Iterator[cw.Scenario]:
    """Scenarios of their own for keys that no shipped one has."""
    text = (ROOT / "examples/tiny.toml").read_text(encoding="utf-8")
    racks = {"fabric": {"leaf_spine": {"racks": 2, "hosts_per_rack": 4, "spines": 2}}}
    tiny = cw.Scenario.from_toml(text, folder=ROOT).with_(racks)
    for name, keys in tomllib.loads(OTHERS.read_text(encoding="utf-8")).items():
        # Entities first: what shares the network needs some.
        order = sorted(_keys("", keys), key=lambda one: one[0] != "entity")
        yield tiny.with_({**dict(order), "name": name})


def _keys(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if path not in OPEN or not isinstance(value, dict):
        yield path, value
        return
    for key, inner in value.items():
        yield from _keys(f"{path}.{key}" if path else key, inner)


def _schemes() -> Iterator[cw.Scenario]:
    tiny = cw.Scenario.load(ROOT / "examples/tiny.toml")
    for name, kind in cw.schemes()["kind"].items():
        # Sharing mechanisms need entities: scenarios with those are shipped.
        if key := {"transport": "transport", "flow control": "flow_control"}.get(kind):
            yield tiny.with_({key: name})
    yield tiny.with_(transport=Mine())


class Mine(cw.Control):
    """A control of one's own, which no file can hold."""

    rates = True
    tcp: ClassVar[Mapping[str, Any]] = {"rto_min": "5ms"}


def _as_read(scenarios: Iterable[cw.Scenario]) -> Iterator[dict[str, Any]]:
    """With every default filled in."""
    for scenario in scenarios:
        yield tomllib.loads(scenario.to_toml())
