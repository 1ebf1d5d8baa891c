"""The state that the two hosts of a flow kept for it over time, as its transport reports it (`measure.flows`): windows,
rates, tokens, bytes in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from clearway.results.result import Result

ADVICE = (
    'follow it: `clearway run RESULT/scenario.toml --set "measure.flows={flows=[N]}" --out OUT`, RESULT being '
    "its folder; "
    "classes, hosts and times choose flows too"
)
# Permissions to send: at 0 the sender waits.
PERMISSIONS = ("tokens", "credit_packets", "granted_bytes", "timeslots", "slots")
_MORE = ("free_tokens", "unscheduled_bytes")


def states(result: Result) -> pd.DataFrame:
    """The table `states`; a value that there is none of is NaN."""
    if "states" not in result.tables:
        raise ValueError(f"{result.name!r} has no table states: {ADVICE}")
    return result.states.to_pandas().astype({"time_ps": "int64", "value": "float64", "state": "object"})


def of_flow(result: Result, flow: int) -> pd.DataFrame:
    """A flow's states, in the order of time: columns `time_us`, `host` and one a state, with what that host has from
    then on; NaN where it has none.
    """
    rows = states(result)
    mine = rows[rows["flow"] == flow]
    if not len(mine):
        known = ", ".join(map(str, sorted(set(rows["flow"]))[:8]))
        some = f"; it has those of {known}{', ...' if rows['flow'].nunique() > 8 else ''}" if known else ""
        raise ValueError(f"{result.name!r} has no states of flow {flow}{some}: {ADVICE}; some transports have none")
    return in_columns(mine)


def in_columns(mine: pd.DataFrame) -> pd.DataFrame:
    """The rows of a flow in `states` as `of_flow` has them."""
    mine = mine.assign(none=mine["value"].isna())
    changes: Any = mine.groupby(["host", "time_ps", "state"], sort=True)[["value", "none"]]
    wide = changes.last().unstack("state")
    # "There is none any more" is a value of its own while values are carried on.
    said = list(dict.fromkeys(mine["state"]))
    values, ended = wide["value"][said], wide["none"][said]
    values = values.mask(ended.eq(True), -1.0).groupby("host").ffill()
    values = values.mask(values < 0).reset_index()
    values.insert(0, "time_us", values.pop("time_ps") / 1e6)
    values.columns.name = None
    ordered: pd.DataFrame = values.sort_values(["time_us", "host"], kind="stable", ignore_index=True)
    return ordered


def at_host(result: Result, flow: int, host: int) -> pd.DataFrame:
    """The states of a flow at one of its hosts, without what that host never has."""
    return of_host(of_flow(result, flow), host)


def of_host(rows: pd.DataFrame, host: int) -> pd.DataFrame:
    """The states of one host, from a flow's states in columns."""
    return rows[rows["host"] == host].drop(columns="host").dropna(axis="columns", how="all").reset_index(drop=True)


def said_of(result: Result, one: Any) -> list[str]:
    """The state of a flow's sender, and the part of its time for which it waited for permission; empty if unknown."""
    if "states" not in result.tables:
        return []
    rows = states(result)
    if not len(rows[(rows["flow"] == one["flow"]) & (rows["host"] == one["src"])]):
        return []
    mine = at_host(result, int(one["flow"]), int(one["src"]))
    end = float(one["completed_ps"]) if not pd.isna(one["completed_ps"]) else float(result.info["end_ps"])
    spans = np.diff(np.append(mine["time_us"].to_numpy(), max(end / 1e6, mine["time_us"].iloc[-1])))
    said = []
    for name in mine.columns[1:]:
        values = mine[name]
        known = values.notna().to_numpy()
        if not known.any() or not spans[known].sum():
            continue
        mean = float((values[known] * spans[known]).sum() / spans[known].sum())
        seen = values[known]
        if seen.nunique() == 1:
            said.append(f"{name} {seen.iloc[0]:,.0f} throughout")
        else:
            span = f"{seen.iloc[0]:,.0f} first, {seen.min():,.0f} to {seen.max():,.0f}, {mean:,.0f} on average"
            said.append(f"{name} {span}")
    return [f"What its sender had of it: {'; '.join(said)}.", *_waits(mine, spans, one)] if said else []


def blocked(mine: pd.DataFrame, one: Any) -> list[tuple[str, pd.Series[bool]]]:
    """The cause of a sender's waits, and the rows of its states in which it waited: a window that is full to a packet,
    or
    permissions of which it has none while something is left to send.
    """
    found: list[tuple[str, pd.Series[bool]]] = []
    if {"window_bytes", "outstanding_bytes"} <= set(mine.columns):
        # No more than a packet leaves at once.
        packet = mine["outstanding_bytes"].diff().max()
        full = mine["outstanding_bytes"] + (0 if pd.isna(packet) else packet) > mine["window_bytes"]
        found.append(("window", full))
    held = [name for name in PERMISSIONS if name in mine.columns]
    if held and _is_permitted(mine, one, held):
        held += [name for name in _MORE if name in mine.columns]
        nothing = (mine[held] == 0).all(axis="columns")
        if "unsent_packets" in mine.columns:
            nothing &= mine["unsent_packets"] > 0
        found.append((" and no ".join(held), nothing))
    return found


def _is_permitted(mine: pd.DataFrame, one: Any, held: list[str]) -> bool:
    """Whether a flow's sender ever needs a permission. A short message is sent without any: dcPIM has no channel for
    it, and what Homa, pHost, NDP and UET let go at once is all of it.
    """
    if "channels" in mine.columns:
        return bool((mine[["channels", *held]] > 0).any(axis=None))
    free = [name for name in (*held, *_MORE) if name in mine.columns]
    first = mine[free].dropna(how="all").iloc[0].fillna(0)
    packets = one.get("sent_packets", 0) - one.get("resent_packets", 0)
    needed = {name: float(one["bytes"]) if name.endswith("_bytes") else float(packets) for name in free}
    return not any(0 < needed[name] <= first[name] for name in free)


def _waits(mine: pd.DataFrame, spans: np.ndarray[Any, Any], one: Any) -> list[str]:
    """For which part of the time known its sender could send no more."""
    known = mine.drop(columns="time_us").notna().any(axis="columns").to_numpy()
    if not spans[known].sum():
        return []

    def share(when: pd.Series[bool]) -> float:
        return float(spans[known & when.to_numpy()].sum() / spans[known].sum())

    said = []
    for what, when in blocked(mine, one):
        words = "its window was full, to a packet" if what == "window" else f"it had no {what}"
        said.append(f"For {share(when):.0%} of that time {words}.")
    return said
