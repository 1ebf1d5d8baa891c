"""The findings of the comparison under training: ten sentences, each with its numbers."""

from __future__ import annotations

import pandas as pd

ALONE = ("all-reduce", "all-to-all", "experts", "pipeline")


def sentences(runs: pd.DataFrame) -> list[str]:
    """Of the runs of the most ranks: who is the fastest at each job, what is exposed, how two jobs share, what calls
    beside a job wait, what a torus changes, what it costs, and who does not end. Of what was not run nothing is said.
    """
    ranks = int(runs["ranks"].max())
    mine = runs[runs["ranks"] == ranks]
    said = [_fastest(mine, work, ranks) for work in ALONE]
    said += [_exposed(mine, ranks), _fair(mine), _calls(mine), _torus(mine, ranks), _cost(mine), _ends(mine)]
    return [one for one in said if one]


def _of(runs: pd.DataFrame, work: str, column: str) -> pd.Series[float]:
    """By scheme, in ascending order, without those that have none."""
    return runs[runs["work"] == work].set_index("scheme")[column].astype(float).dropna().sort_values()


def _fastest(runs: pd.DataFrame, work: str, ranks: int) -> str:
    times = _of(runs, work, "time ms")
    if not len(times):
        return ""
    first = times.iloc[0]
    median, last = times.median() / first, times.iloc[-1] / first
    return (
        f"{work}, {ranks:,} ranks: {times.index[0]} is the fastest with {first:.3g} ms; the median of {len(times)} "
        f"schemes takes {median:.2f} times as long, {times.index[-1]} {last:.2f} times."
    )


def _exposed(runs: pd.DataFrame, ranks: int) -> str:
    rows = runs[runs["work"].isin(["experts", "pipeline"])]
    shares = (rows["exposed ms"] / rows["time ms"]).groupby(rows["scheme"], sort=False).mean().dropna().sort_values()
    if not len(shares):
        return ""
    names = " and ".join(dict.fromkeys(rows["work"]))
    return (
        f"Of the iterations of {names}, {ranks:,} ranks, {shares.iloc[0]:.1%} of the time are exposed "
        f"communication and waiting over {shares.index[0]}, and {shares.iloc[-1]:.1%} over {shares.index[-1]}."
    )


def _fair(runs: pd.DataFrame) -> str:
    two = _of(runs, "two jobs", "fairness")
    if not len(two):
        return ""
    under = f"; with Augmented Queue it is {two['dctcp under aq']:.3f}" if "dctcp under aq" in two else ""
    return (
        f"Two jobs, one with four times as many channels: {two.index[-1]} shares most fairly (Jain's index "
        f"{two.iloc[-1]:.3f}), {two.index[0]} least ({two.iloc[0]:.3f}){under}."
    )


def _calls(runs: pd.DataFrame) -> str:
    calls, slowed = _of(runs, "beside rpcs", "rpc p99 us"), _of(runs, "beside rpcs", "slowdown")
    if not len(calls):
        return ""
    beside = "dctcp beside harmony"
    theirs = ""
    if beside in calls:
        cost = f", which slows the job down by a factor of {slowed[beside]:.3f}" if beside in slowed else ""
        theirs = f"; Harmony's beside a job over DCTCP are within {calls[beside]:,.1f} µs{cost}"
    return (
        f"Calls of 10 KB beside an all-reduce: 99% are done within {calls.iloc[0]:,.1f} µs over {calls.index[0]} and "
        f"within {calls.iloc[-1]:,.1f} µs over {calls.index[-1]}{theirs}."
    )


def _torus(runs: pd.DataFrame, ranks: int) -> str:
    said = []
    for work in ("all-reduce", "all-to-all"):
        times = _of(runs, f"torus {work}", "time ms")
        if not len(times):
            continue
        own = f", R2C2 takes {times['r2c2']:.3g}" if "r2c2" in times and times.index[0] != "r2c2" else ""
        said.append(f"an {work} takes {times.iloc[0]:.3g} ms over {times.index[0]}{own}")
    return f"On a torus of three dimensions with {ranks:,} nodes {' and '.join(said)}." if said else ""


def _cost(runs: pd.DataFrame) -> str:
    rows = runs[runs["work"].isin(ALONE)]
    if not len(rows):
        return ""
    queues = rows.groupby("scheme", sort=False)["longest queue KB"].max().sort_values()
    again = rows.groupby("scheme", sort=False)["sent again"].max().sort_values()
    return (
        f"The longest queue is {queues.iloc[0]:,.0f} KB over {queues.index[0]} and {queues.iloc[-1]:,.0f} KB over "
        f"{queues.index[-1]}; {again.index[-1]} sends {again.iloc[-1]:.2%} of its packets again, the most of all."
    )


def _ends(runs: pd.DataFrame) -> str:
    rows = runs[runs["work"].isin(ALONE)]
    stopped = rows[rows["time ms"].isna()]
    if not len(rows):
        return ""
    if not len(stopped):
        return f"All {len(rows)} runs of these jobs end."
    names = ", ".join(dict.fromkeys(stopped["scheme"]))
    ends = "one never ends: that" if len(stopped) == 1 else f"{len(stopped)} never end: those"
    return f"Of {len(rows)} runs of these jobs {ends} over {names}."
