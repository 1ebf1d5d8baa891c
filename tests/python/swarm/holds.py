"""Laws that hold for every result, worked out anew from its tables as a user would read them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import clearway as cw
import numpy as np
import pandas as pd

PARTS = ["wait_ps", "queued_up_ps", "queued_down_ps", "queued_last_ps", "serialised_ps", "propagation_ps", "return_ps"]
OPEN = ("unfinished", "delivered")

Broken = Iterator[tuple[str, str]]
"""A law that does not hold, and where."""


def broken(result: cw.Result, scenario: dict[str, Any]) -> Broken:
    """The laws that do not hold for a result, with the numbers."""
    flows = result.flows.to_pandas()
    yield from _audit(flows, result, scenario)
    yield from _times(flows, result)
    yield from _fast(flows, result, scenario)
    yield from _accounted(flows, result)
    yield from _links(flows, result, scenario)
    for name in ("queues", "utilisation", "congestion", "entities", "arrivals", "events", "packets"):
        if name in result.tables and "time_ps" in result.tables[name]:
            times = result._tables[name]["time_ps"].to_numpy()
            if (np.diff(times.astype(np.int64)) < 0).any():
                yield f"times of {name} ascend", f"{times[:20].tolist()}"
    if result.level == "packet":
        yield from _shares(result)


def _audit(flows: pd.DataFrame, result: cw.Result, scenario: dict[str, Any]) -> Broken:
    given_up = flows["status"].isin(["failed", "rejected"]).any()
    for_good = any("until" not in failure for failure in scenario.get("failure", []))
    excused = given_up or (result.info["ended"] == "stuck" and for_good)
    for finding in result.info["audit"]:
        of_the_scenario = finding["name"] in OF_THE_SCENARIO and (excused or finding["name"] != "every flow ended")
        if not finding["ok"] and not of_the_scenario:
            yield f"audit: {finding['name']}", finding["detail"]


OF_THE_SCENARIO = {
    "in time": "the machine was busy while a live run lasted",
    "every flow ended": "a job waits for a message that was given up, or for a link that failed for good",
}
"""Findings that may fail although nothing is wrong with the program."""


def _wrong(flows: pd.DataFrame, which: pd.Series[bool], columns: list[str]) -> str:
    return flows.loc[which, ["flow", *columns]].head(3).to_string()


def _times(flows: pd.DataFrame, result: cw.Result) -> Broken:
    """In order, each within the run, and the sum of its parts."""
    columns = ["start_ps", "delivered_ps", "completed_ps", "fct_ps"]
    columns = [name for name in columns if name in flows]
    late = pd.Series(False, index=flows.index)
    # A transport may answer before a thread has received the message.
    ordered = columns[:2] if "[host.cpu]" in result.scenario_toml else columns[:3]
    for before, after in itertools.pairwise(ordered):
        late |= flows[after].notna() & (flows[before].isna() | (flows[after] < flows[before])).fillna(True)
    if late.any():
        yield "started, delivered, completed in this order", _wrong(flows, late, columns)
    if "delivered_ps" in flows:
        ends = flows["delivered_ps"]
        if _acknowledged(result):
            ends = flows[["completed_ps", "delivered_ps"]].max(axis=1, skipna=False)
        known = flows["fct_ps"].notna()
        off = known & ((ends - flows["start_ps"]) != flows["fct_ps"]).fillna(True)
        if off.any() and result.level == "packet":
            yield "fct_ps is from start to end", _wrong(flows, off, columns)
        past = (ends > result.info["end_ps"]).fillna(False)
        if past.any():
            yield "no flow ends after the run", _wrong(flows, past, columns)
    if set(PARTS) <= set(flows):
        off = flows["fct_ps"].notna() & (flows[PARTS].sum(axis=1) != flows["fct_ps"]).fillna(True)
        if off.any():
            yield "fct_ps is the sum of its parts", _wrong(flows, off, ["fct_ps", *PARTS])


# In a grid, ways around a failure may be wider together than the shortest ones were; R2C2 takes others by itself.
DETOURS = ("[[failure]]", '"vlb"', '"wlb"')


def _fast(flows: pd.DataFrame, result: cw.Result, scenario: dict[str, Any]) -> Broken:
    """No flow is faster than alone in the network."""
    if any(cause in result.scenario_toml for cause in DETOURS):
        return
    # Clocks that are fast transmit faster than a link's rate. Whole steps then round each transmission down by one.
    tolerance = _clock_tolerance(scenario)
    if tolerance and "transmission_step" in scenario:
        return
    least = 1 - 1e-12 - tolerance
    fast = (flows["fct_ps"] < flows["ideal_ps"] * least).fillna(False) | (flows["slowdown"] < least).fillna(False)
    if fast.any():
        yield "slowdown is at least 1", _wrong(flows, fast, ["fct_ps", "ideal_ps", "slowdown"])


def _clock_tolerance(scenario: dict[str, Any]) -> float:
    """As a share, and twice as much: one clock may be fast, and another slow."""
    set_to = scenario.get("link", {}).get("clock_tolerance", "0ppm" if scenario.get("timing") == "ideal" else "100ppm")
    number, unit = re.fullmatch(r"([0-9.]+) *(ppm|ppb)", set_to).groups()  # type: ignore[union-attr]
    return 2 * float(number) * {"ppm": 1e-6, "ppb": 1e-9}[unit]


def _acknowledged(result: cw.Result) -> bool:
    return 'completion = "acknowledged"' in result.scenario_toml


def _accounted(flows: pd.DataFrame, result: cw.Result) -> Broken:
    """Every flow is there, once, with a status that fits its times."""
    info = result.info
    # Of the messages of jobs not more have a row than `measure.rows_max`.
    listed = (
        min(info["flows"], len(flows))
        if any("rows_max" in said for said in info.get("warnings", []))
        else info["flows"]
    )
    if len(flows) != listed or flows["flow"].tolist() != list(range(len(flows))):
        yield "every flow is listed once", f"{len(flows)} of {info['flows']}"
    status = flows["status"].astype(str)
    completed = int((status == "completed").sum())
    if completed != info["flows_completed"] and listed == info["flows"]:
        yield "flows_completed counts flows", f"{completed} of {info['flows_completed']}"
    unknown = (status == "completed") & flows["fct_ps"].isna()
    if unknown.any():
        yield "a completed flow has its time", _wrong(flows, unknown, ["status"])
    if "delivered_ps" in flows:
        undelivered = status.isin(["completed", "delivered"]) & flows["delivered_ps"].isna()
        if undelivered.any():
            yield "a delivered flow has its time", _wrong(flows, undelivered, ["status", "delivered_ps"])
    still = status.isin(OPEN)
    if info["ended"] == "goal" and still.any():
        yield "no flow is open at the goal", _wrong(flows, still, ["status"])
    said = flows["reason"].astype(str).replace({"nan": "", "None": ""}) if "reason" in flows else None
    if said is not None and result.level == "packet":
        silent = ~status.isin(["completed", "rejected"]) & (said == "")
        if silent.any():
            yield "who did not complete says why", _wrong(flows, silent, ["status", "reason"])
        lost = result.links.to_pandas().filter(regex="^(overflow|dead|unroutable|expired|lossy|corrupted)_packets$")
        blamed = said.str.contains("packets were lost")
        if blamed.any() and not lost.to_numpy().sum() and not _trimmed(result):
            yield "packets that are said to be lost were lost", _wrong(flows, blamed, ["status", "reason"])
    if "resent_packets" in flows:
        more = (flows["resent_packets"] > flows["sent_packets"]).fillna(False)
        if more.any():
            yield "no more is resent than sent", _wrong(flows, more, ["sent_packets", "resent_packets"])


def _trimmed(result: cw.Result) -> bool:
    """Whether packets were lost that the table of links doesn't count: at limiters, NICs and by AQs."""
    counters = result.counters.to_pandas()
    dropped = counters.loc[counters["counter"].astype(str).str.contains("drop|lost|intake"), "value"].sum()
    aqs = result.aqs["dropped_packets"].sum() if "aqs" in result.tables else 0
    return bool(dropped + aqs + result.links["trimmed_packets"].sum())


def _links(flows: pd.DataFrame, result: cw.Result, scenario: dict[str, Any]) -> Broken:
    """No link carries more than it can, and links of hosts what their flows had to send."""
    links = result.links.to_pandas()
    if "utilisation" in links:
        over = links["utilisation"] > 1 + 1e-9
        if over.any():
            yield "no link carries more than it can", links.loc[over].head(3).to_string()
    if result.level != "packet":
        return
    empty = (links["sent_packets"] == 0) != (links["sent_bytes"] == 0)
    if empty.any():
        yield "bytes come in packets", links.loc[empty].head(3).to_string()
    more = links["unnoticed_packets"] > links["sent_packets"]
    if more.any():
        yield "unnoticed packets were sent", links.loc[more].head(3).to_string()
    hops = int(links[["sent_packets", "sent_frames"]].sum().sum())
    # A packet that is on its way at the end has not passed its link; with link-level retry links repeat packets.
    if hops < result.info["packet_hops"] and "llr" not in scenario.get("link", {}):
        yield "packet_hops counts packets over links", f"{hops} of {result.info['packet_hops']}"
    names = {f"host{number}": number for number in range(result.info["hosts"])}
    done = flows[flows["delivered_ps"].notna()]
    for column, end, side in (("from_node", "src", "sent"), ("to_node", "dst", "received")):
        carried = links[links[column].astype(str).isin(names)].groupby(links[column].astype(str))["sent_bytes"].sum()
        owed = done[done["src"] != done["dst"]].groupby(end)["bytes"].sum()
        for name, number in names.items() if set(names) <= set(links["from_node"].astype(str)) else ():
            if owed.get(number, 0) > carried.get(name, 0):
                yield f"hosts have {side} what was delivered", f"{name}: {owed[number]} of {carried.get(name, 0)} bytes"


def _shares(result: cw.Result) -> Broken:
    """Shares are from 0 to 1, and parts of a buffer no more than the whole."""
    if "utilisation" in result.tables:
        table = result.tables["utilisation"].to_arrow().to_pandas()
        for column in ("utilisation", "data_share"):
            out = (table[column] > 1 + 1e-9) | (table[column] < 0)
            if out.any():
                yield f"{column} is a share", table.loc[out].head(3).to_string()
    if "queues" in result.tables:
        table = result.tables["queues"].to_arrow().to_pandas()
        more = table["longest_bytes"] > table[["up_bytes", "down_bytes"]].sum(axis=1)
        if more.any():
            yield "a queue is part of what waits", table.loc[more].head(3).to_string()
