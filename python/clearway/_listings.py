from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from clearway import _core, _outside
from clearway._scenario import Scenario, _toml

if TYPE_CHECKING:
    import pandas as pd


# A directed link of a network.
Link = TypedDict("Link", {"from": str, "to": str, "tier": str, "rate_bps": int})


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


def nodes_and_links(scenario: Scenario) -> tuple[list[str], list[Link]]:
    """The names of the nodes of a scenario's network, hosts first, and its directed links."""
    traffic = {"sizes": {"constant": "1B"}, "arrivals": "all_at_once", "flows": 1}
    keys = {
        "fabric": scenario.to_dict()["fabric"],
        "transport": "udp",
        "measure": {"end": "1ps", "interval": "0s"},
        "traffic": [traffic],
    }
    text = "\n".join(f"{key} = {_toml(value)}" for key, value in keys.items())
    bare = Scenario.from_toml(text, scenario.name)
    (_, _, tables), _ = _outside.simulate(bare._core, 1, None, None, None, None)
    columns = {name: _values(kind, raw, names) for name, _, _, kind, raw, names in dict(tables)["links"]}
    ends = zip(columns["from"], columns["to"], columns["tier"], columns["rate_bps"])
    links: list[Link] = [
        {"from": source, "to": target, "tier": tier, "rate_bps": rate} for source, target, tier, rate in ends
    ]
    nodes = dict.fromkeys([*columns["from"], *columns["to"]])
    return sorted(nodes, key=lambda name: not name.startswith("host")), links


def _values(kind: str, raw: bytes, names: list[str]) -> list[Any]:
    """A column of the core's, as `_results` makes an Arrow column of it; empty if it is of another kind."""
    if kind == "names":
        return [names[place] for place in array("I", raw)]
    return array("Q", raw).tolist() if kind == "u64" else []


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario, for editors and other programs."""
    parsed: dict[str, Any] = json.loads(_core.schema())
    return parsed
