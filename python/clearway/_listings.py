from __future__ import annotations

import json
from typing import Any

import pandas as pd

from clearway import _core
from clearway._scenario import Scenario, _toml


def schemes() -> pd.DataFrame:
    """The transports, flow controls and sharing mechanisms: what each is, what it needs, where it is described.

    `family` is how its senders learn what the network can carry, `compared` whether `compare_all` runs it, `beside`
    which other scheme it runs with there, and `rejects` whether it may refuse messages for want of room.

    >>> import clearway as cw
    >>> cw.schemes().loc["dcpim", "title"]
    'dcPIM: Datacenter Parallel Iterative Matching'
    """
    return pd.DataFrame(_core.schemes()).set_index("name")


def workloads() -> pd.DataFrame:
    """The published distributions of flow sizes.

    >>> import clearway as cw
    >>> "websearch" in cw.workloads().index
    True
    """
    return pd.DataFrame(_core.workloads()).set_index("name")


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
    return pd.DataFrame(rows).set_index("name")


def _resolve(schema: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    reference = body.get("$ref")
    return schema["$defs"][reference.rsplit("/", 1)[1]] if reference else body


def nodes_and_links(scenario: Scenario) -> tuple[list[str], pd.DataFrame]:
    """The names of the nodes of a scenario's network, hosts first, and its directed links: from, to, tier, rate_bps."""
    from clearway._run import run

    traffic = {"sizes": {"constant": "1B"}, "arrivals": "all_at_once", "flows": 1}
    keys = {
        "fabric": scenario.to_dict()["fabric"],
        "transport": "udp",
        "measure": {"end": "1ps", "interval": "0s"},
        "traffic": [traffic],
    }
    text = "\n".join(f"{key} = {_toml(value)}" for key, value in keys.items())
    links = run(Scenario.from_toml(text, scenario.name), threads=1, progress=False).links.to_pandas()
    columns = links[["from", "to", "tier", "rate_bps"]].astype({"from": str, "to": str, "tier": str, "rate_bps": int})
    nodes = dict.fromkeys([*columns["from"], *columns["to"]])
    return sorted(nodes, key=lambda name: not name.startswith("host")), columns


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario, for editors and other programs."""
    parsed: dict[str, Any] = json.loads(_core.schema())
    return parsed
