"""The queue of a port and the use of its link over time: of ports that were watched (`measure.ports`), or
of links whose packets were recorded (`measure.packets`).
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clearway.results import packets
from clearway.results.times import time_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway.results.result import Result


def _advice(name: str) -> str:
    return (
        f"watch it: `clearway run RESULT/scenario.toml --set 'measure.ports=[\"{name}\"]' --out OUT`, RESULT being its "
        "folder; or record its packets: measure.packets = {}"
    )


def links_of(result: Result, port: str) -> list[int]:
    """The links, by number, that a name stands for: "leaf0-host0", or a node and the number of its port, "leaf0:0"."""
    ends = list(zip(result.links["from_node"].astype(str), result.links["to_node"].astype(str)))
    found = re.fullmatch(r"(.+):(\d+)", port)
    if found is None:
        if named := [number for number, (a, b) in enumerate(ends) if f"{a}-{b}" == port]:
            return named
        near = [f"{a}-{b}" for a, b in ends if a == port.split("-")[0]][:8]
        there = f"; from there: {', '.join(near)}" if near else f", such as {ends[0][0]}-{ends[0][1]}"
        raise ValueError(f"{result.name!r} has no link {port!r}: a link is its two nodes{there}")
    node, number = found[1], int(found[2])
    of_node = [link for link, (a, _) in enumerate(ends) if a == node]
    if number >= len(of_node):
        there = f"its ports are 0 to {len(of_node) - 1}" if of_node else f"there is no node {node!r}"
        raise ValueError(f"{result.name!r} has no port {port!r}: {there}")
    return [of_node[number]]


def _watched(result: Result, port: str) -> pd.DataFrame | None:
    """The rows of `ports` of one port; none if it was not watched."""
    links = links_of(result, port)
    if "ports" not in result.tables:
        return None
    rows = result.ports.to_pandas().astype({"time_ps": "int64", "free_ps": "int64", "sent_bytes": "int64"})
    return rows[rows["link"].isin(links)] if set(links) <= _asked(result) else None


def _asked(result: Result) -> set[int]:
    """The links of the ports that the scenario watches."""
    # Not read as a scenario: a result may come from another person, and its scenario name files and programs.
    asked = tomllib.loads(result.scenario_toml).get("measure", {}).get("ports", [])
    return {link for port in asked for link in links_of(result, port)}


def queue(result: Result, port: str) -> pd.DataFrame:
    """The bytes that waited at a port, at each change; see `Result.queue`."""
    watched = _watched(result, port)
    if watched is None:
        if "packets" not in result.tables:
            raise ValueError(f"{result.name!r} did not watch {port}: {_advice(port)}")
        return packets.queue(result, port)
    columns = {"queue_bytes": "bytes", "queue_bytes_max": "most_bytes"}
    found = watched[list(columns)].rename(columns=columns).astype("int64")
    found.insert(0, "time_us", watched["time_ps"] / 1e6)
    return found.sort_values("time_us", kind="stable", ignore_index=True)


def use(result: Result, port: str, every: str) -> pd.DataFrame:
    """The share of its rate that a port's link used; see `Result.use`."""
    step = time_of(every)
    if step <= 0:
        raise ValueError(f"every={every!r}: an interval is longer than 0")
    end = float(result.info["end_ps"])
    times = np.append(np.arange(0.0, end, step), end)
    sent = np.zeros(len(times))
    rates = result.links["rate_bps"].astype(float)
    links = links_of(result, port)
    for link in links:
        at, bytes_ = _sent(result, port, link, float(rates[link]))
        sent += np.interp(times, at, bytes_, left=0.0)
    could = np.diff(times) * sum(float(rates[link]) for link in links) / 8e12
    return pd.DataFrame({"time_us": times[1:] / 1e6, "bytes": np.diff(sent), "use": np.diff(sent) / could})


def _sent(result: Result, port: str, link: int, rate_bps: float) -> tuple[npt.NDArray[np.float64], Any]:
    """Bytes that a link has carried, at times between which they grow evenly."""
    watched = _watched(result, port)
    if watched is not None:
        rows = watched[watched["link"] == link].sort_values("time_ps", kind="stable")
        begins, ends = rows["time_ps"].to_numpy(float), rows["free_ps"].to_numpy(float)
        done = rows["sent_bytes"].to_numpy(float)
        begun = done - np.maximum(ends - begins, 0) * rate_bps / 8e12
    else:
        if "packets" not in result.tables:
            raise ValueError(f"{result.name!r} did not watch {port}: {_advice(port)}")
        frame = packets.packets(result)
        rows = frame[frame["link"] == link]
        begins, ends = rows["time_ps"].to_numpy(float), rows["last_ps"].to_numpy(float)
        done = rows["bytes"].to_numpy(float).cumsum()
        begun = done - rows["bytes"].to_numpy(float)
    # The next row may begin before what this one has begun to send is sent.
    until = np.minimum(np.maximum(ends, begins), np.append(begins[1:], np.inf))
    at = np.column_stack([begins, until]).ravel()
    carried = np.column_stack([begun, done - np.maximum(ends - until, 0) * rate_bps / 8e12]).ravel()
    if not len(at):
        return np.zeros(1), np.zeros(1)
    return at, np.maximum.accumulate(carried)
