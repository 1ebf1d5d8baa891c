"""The schemes, fabrics and workloads that there are, and the schema of scenarios."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from clearway import _core
from clearway.scenarios.forecast import memory_bytes_max
from clearway.scenarios.scenario import Scenario, _toml

if TYPE_CHECKING:
    import pandas as pd


class Link(TypedDict):
    """A directed link of a network."""

    from_node: str
    to_node: str
    tier: str
    rate_bps: int


def schemes() -> pd.DataFrame:
    """The transports, flow controls and sharing mechanisms: what each is, what it needs, where it is described.

    `family` is how its senders learn what the network can carry, `compared` whether `compare_all` runs it, `beside`
    which other scheme it runs with there, and `rejects` whether it may refuse messages because it has no room.

    >>> import clearway as cw
    >>> cw.schemes().loc["dcpim", "title"]
    'dcPIM: Datacenter Parallel Iterative Matching'
    """
    return _frame(_core.schemes())


def workloads() -> pd.DataFrame:
    """The published distributions of flow sizes.

    >>> import clearway as cw
    >>> "websearch" in cw.workloads().index
    True
    """
    return _frame(_core.workloads())


def fabrics() -> pd.DataFrame:
    """The topologies and their parameters.

    >>> import clearway as cw
    >>> "leaf_spine" in cw.fabrics().index
    True
    """
    schema = json.loads(_core.fabric_schema())
    rows = []
    for variant in schema["oneOf"]:
        (name, body), *_ = variant["properties"].items()
        parameters = _resolve(schema, body).get("properties", {})
        rows.append({"name": name, "summary": variant.get("description", ""), "parameters": ", ".join(parameters)})
    return _frame(rows)


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Imported here: `clearway check` needs the module and no data frames, which take a second to import."""
    import pandas as pd

    return pd.DataFrame(rows).set_index("name")


def _resolve(schema: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    reference = body.get("$ref")
    return schema["$defs"][reference.rsplit("/", 1)[1]] if reference else body


@dataclass(frozen=True)
class Network:
    """The nodes of a network and its directed links: names, and for each link the places of its ends in them, its tier
    and its rate.
    """

    names: list[str]
    from_: array[int]
    to: array[int]
    tier: array[int]
    rate_bps: array[int]

    def nodes(self) -> list[str]:
        """All names, hosts first."""
        return sorted(self.names, key=lambda name: not name.startswith("host"))

    def links(self) -> list[Link]:
        """All links, by name."""
        ends = zip(self.from_, self.to, self.tier, self.rate_bps)
        return [
            {"from_node": self.names[a], "to_node": self.names[b], "tier": _TIERS[tier], "rate_bps": rate}
            for a, b, tier, rate in ends
        ]

    def cables(self) -> dict[tuple[str, str, int], list[tuple[int, int]]]:
        """The cables, each once and in one direction, as the places of their ends, by kind of ends and rate."""
        kinds = [name.rstrip("0123456789") for name in self.names]
        found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
        seen: set[int] = set()
        for a, b, rate in zip(self.from_, self.to, self.rate_bps):
            cable = (a << 32 | b) if a < b else (b << 32 | a)
            if cable not in seen:
                seen.add(cable)
                found.setdefault((kinds[a], kinds[b], rate), []).append((a, b))
        return found


_TIERS = ("from_host", "up", "down", "to_host")


def network(scenario: Scenario) -> Network:
    """The network of a scenario."""
    # No more of the scenario: transports of crates are none of the core's, and a plan would take long.
    traffic = 'traffic = [{ sizes = { constant = "1B" }, arrivals = "all_at_once", flows = 1 }]'
    bare = f'fabric = {_toml(scenario.to_dict()["fabric"])}\ntransport = "udp"\n{traffic}'
    names, *columns = _core.network(_core.Scenario.parse(bare, scenario.name, ".", []), memory_bytes_max(None))
    return Network(names, *(array(kind, raw) for kind, raw in zip("IIIQ", columns)))


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario, for editors and other programs."""
    parsed: dict[str, Any] = json.loads(_core.schema())
    return parsed
