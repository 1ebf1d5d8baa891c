"""Random scenarios from the schema by which scenarios are read: a key that is added is drawn from then on.

The schema says of a key what it takes; `hints` says what of that makes sense in a small network, where the schema
doesn't. A key without a hint gets values around its default, or of a ladder of its unit. Keys that can't stand together
are left to `settle`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import strategies as st

Schema = dict[str, Any]
Path: TypeAlias = "tuple[str, ...]"
Choose = Callable[[st.SearchStrategy[Any]], Any]

UNITS = {
    "Duration": {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1},
    "Rate": {"Tbps": 10**12, "Gbps": 10**9, "Mbps": 10**6, "Kbps": 10**3, "bps": 1},
    "Bytes": {"GB": 10**9, "MB": 10**6, "KB": 10**3, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1},
}
LADDERS = {
    "Duration": [0, 100_000, 1_000_000, 7_000_000, 50_000_000, 300_000_000, 2_000_000_000, 20_000_000_000],
    "Rate": [10**11, 10**10, 25 * 10**9, 37 * 10**9, 10**9, 10**8, 4 * 10**11],
    "Bytes": [1, 64, 1_000, 1_460, 3_000, 10_000, 64_000, 300_000, 2_000_000],
}
TURNS = {"transport": 1, "fabric": 5, "flow_control": 3}
"""Keys whose choices take turns, at paces of their own."""
SKIP = object()
"""The hint for a key that is not to be drawn."""


def written(amount: int, kind: str) -> str:
    """A quantity as a scenario has it, in the largest unit of which it is a whole number."""
    units = sorted(UNITS[kind].items(), key=lambda unit: -unit[1])
    return next(f"{amount // size}{unit}" for unit, size in units if amount % size == 0 and (amount or size == 1))


def amount_of(text: str, kind: str) -> int:
    """The amount of a quantity that a scenario has."""
    found = re.fullmatch(r"([0-9_.]+) *([A-Za-z]+)", text)
    assert found, text
    return round(float(found[1]) * UNITS[kind].get(found[2], UNITS[kind].get(found[2].replace("k", "K"), 1)))


@dataclass
class Ground:
    """The facts on a scenario's network once its fabric is drawn."""

    hosts: list[str] = field(default_factory=lambda: ["host0", "host1"])
    switches: list[str] = field(default_factory=lambda: ["switch0"])
    links: list[tuple[str, str]] = field(default_factory=lambda: [("host0", "switch0")])
    tour_ps: int = 10_000_000
    """About how long a packet takes from host to host."""
    classes: list[str] = field(default_factory=list)
    transports: list[str] = field(default_factory=list)


class Drawing:
    """One scenario that is being drawn: hypothesis' choices, the schema, and what is known of the network so far."""

    def __init__(
        self, choose: Choose, schema: Schema, hints: dict[str, Any], often: dict[str, int], number: int
    ) -> None:
        """Scenarios of a number have the same transport, fabric and flow control, so that each has its turn."""
        self.choose, self._number = choose, number
        self.ground = Ground()
        self._types, self._schema = schema["$defs"], schema
        self._hints, self._often = hints, often

    def one_of(self, *values: Any) -> Any:
        """One of these; the first where nothing else is needed for a failure."""
        return self.choose(st.sampled_from(values))

    def whether(self, percent: int) -> bool:
        """True with this probability; False where nothing else is needed for a failure."""
        return self.choose(st.integers(0, 99)) >= 100 - percent

    def number(self, least: int, most: int) -> int:
        """A whole number, smaller ones where nothing else is needed."""
        return self.choose(st.integers(least, most))

    def tours(self, *counts: float) -> str:
        """A time of this many tours through the network."""
        return written(round(self.ground.tour_ps * self.one_of(*counts)), "Duration")

    def key(self, path: Path, *, hinted: bool = True) -> Any:
        """A value for a key of a scenario; `SKIP` for none."""
        schema = self._schema
        for name in path:
            schema = self._at(schema, name)
        return self.value(schema, path, hinted=hinted)

    def item(self, path: Path) -> Any:
        """One entry of a list of tables."""
        schema = self._schema
        for name in path:
            schema = self._at(schema, name)
        one = next(one for one in self._alternatives(schema) if one.get("type") == "array")
        return self.value(one["items"], path, hinted=False)

    def _at(self, schema: Schema, name: str) -> Schema:
        for one in self._alternatives(schema):
            if name in one.get("properties", {}):
                return one["properties"][name]
            if one.get("type") == "array":
                return self._at(one["items"], name)
        raise KeyError(name)

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._types[schema["$ref"].rsplit("/", 1)[-1]]
        return schema

    def _alternatives(self, schema: Schema) -> Iterator[Schema]:
        found = self._resolved(schema)
        choices = found.get("oneOf") or found.get("anyOf")
        if not choices:
            if "enum" in found:
                yield from ({"const": value} for value in found["enum"])
            elif found.get("type") != "null":
                yield found
            return
        for choice in choices:
            yield from self._alternatives(choice)

    def _known(self, table: dict[str, Any], path: Path) -> Any:
        """The entry of a table for a path: of the whole, after a "^", or of the longest of its ends that it has."""
        ends = ["^" + ".".join(path), *(".".join(path[first:]) for first in range(len(path)))]
        return next((table[end] for end in ends if end in table), None)

    def value(self, schema: Schema, path: Path, *, hinted: bool = True) -> Any:
        """A value for what stands at a path."""
        if hinted and (hint := self._known(self._hints, path)) is not None:
            return hint(self, path) if callable(hint) else self.one_of(*hint)
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        if (kind := "Duration" if name == "Time" else name) in LADDERS:
            return self._quantity(kind, schema.get("default"), path)
        options = list(self._alternatives(schema))
        if not options:
            return SKIP
        if len(path) == 1 and path[0] in TURNS:
            options = self._of_turn(options, TURNS[path[0]])
        one = options[0] if len(options) == 1 else self.choose(st.sampled_from(options))
        return self._plain(one, path, schema.get("default"))

    def _of_turn(self, options: list[Schema], step: int) -> list[Schema]:
        """Those with the name whose turn it is."""
        names = [one.get("const") or next(iter(one["properties"])) for one in options]
        there = list(dict.fromkeys(names))
        turn = there[(self._number * step + self._number // len(there)) % len(there)]
        return [one for one, name in zip(options, names) if name == turn]

    def _plain(self, schema: Schema, path: Path, default: Any) -> Any:
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type")
        kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
        if "properties" in schema:
            return self.table(schema, path)
        if kind == "array":
            return self._list(schema, path)
        if kind == "boolean":
            return self.choose(st.booleans())
        if kind == "integer":
            return self._integer(schema, default if default is not None else schema.get("default"), path)
        if kind == "number":
            near = [default, default / 2, default * 1.1, default * 2] if default else [0.5, 0.05, 0.3, 1.0, 2.0]
            return float(self.one_of(*near))
        return default if isinstance(default, str) else SKIP

    def _list(self, schema: Schema, path: Path) -> Any:
        items = schema.get("items", {})
        found = [self.value(items, path, hinted=False) for _ in range(self.number(1, 3))]
        return [one for place, one in enumerate(found) if one is not SKIP and one not in found[:place]]

    def _integer(self, schema: Schema, default: int | None, path: Path) -> int:
        least, most = schema.get("minimum", 0), schema.get("maximum", 2**63 - 1)
        if path[0] == "fabric":
            near = [2, 1, 3, 4]
        else:
            near = [1, 2, 3, 8] if default is None else [default, 1, 2, default // 2, default + 1, default * 2]
        return min(max(self.one_of(*near), least), most)

    def _quantity(self, kind: str, default: str | None, path: Path) -> str:
        if path[0] == "fabric":
            # Most fabrics are fast; some have slow links, some long ones.
            ladder = LADDERS[kind][:4] if self.whether(80) else [10**8, 10**6, 10**10]
            if kind == "Duration":
                ladder = [200_000, 50_000, 3_000_000] if self.whether(80) else [10**8, 10**10]
                # Between nodes that two threads may have there is some delay.
                ladder = ladder if path[-1] == "propagation" else [*ladder, 0]
            return written(self.one_of(*ladder), kind)
        if isinstance(default, str) and (amount := amount_of(default, kind)):
            return written(max(1, self.one_of(amount, amount // 2, amount * 2, amount // 10, amount * 10)), kind)
        return written(self.one_of(*LADDERS[kind]), kind)

    def table(self, schema: Schema, path: Path) -> dict[str, Any]:
        """A table with the keys that it needs, and some others."""
        found: dict[str, Any] = {}
        for name in schema["properties"]:
            self._drawn(schema, name, path, found)
        return found

    def _drawn(self, schema: Schema, name: str, path: Path, found: dict[str, Any]) -> None:
        here = (*path, name)
        percent = self._known(self._often, here)
        if path[:1] == ("fabric",) and self._resolved(schema["properties"][name]).get("type") in ("integer", "array"):
            # Its default may be large.
            percent = 100
        if name in schema.get("required", []) or self.whether(15 if percent is None else percent):
            value = self.value(schema["properties"][name], here)
            if value is not SKIP:
                found[name] = value

    def scenario(self, ground_of: Callable[[dict[str, Any]], Ground | None]) -> dict[str, Any]:
        """A scenario: first its fabric, then what names parts of it, then all else."""
        found: dict[str, Any] = {}
        names = list(self._schema["properties"])
        first = ["fabric", "host", "transport", "traffic", "job", "sharing"]
        for name in [*first, *(name for name in names if name not in first)]:
            self._drawn(self._schema, name, (), found)
            if name == "fabric":
                # A fabric that is refused is left to what makes scenarios valid.
                self.ground = copy.deepcopy(ground_of(found["fabric"])) or self.ground
            if name == "transport":
                self.ground.transports.append(name_of(found["transport"]))
        needed = [] if found.get("traffic") or found.get("job") else ["traffic"]
        needed += ["entity"] if found.get("sharing", "physical_queue") != "physical_queue" else []
        for name in needed:
            found.setdefault(name, self.value(self._schema["properties"][name], (name,)))
        return found


def name_of(choice: Any) -> str:
    """The name of what was chosen, such as `dcpim` of `{ dcpim = { rounds = 3 } }`."""
    return next(iter(choice)) if isinstance(choice, dict) else str(choice)
