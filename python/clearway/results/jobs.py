"""Training jobs in a result: their iterations, and what made them as long as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from clearway.reports.spec import SPEC

if TYPE_CHECKING:
    from clearway.results.result import Result

PARTS: dict[str, str] = SPEC["critical"]
"""The parts of a critical path, in words."""


def iterations(result: Result) -> pd.DataFrame:
    """The iterations of all jobs, times in microseconds: a row for each, by job and number.

    >>> import clearway as cw
    >>> job = {"steps": [{"compute": "20us"}, {"all_reduce": {"bytes": "80KB"}}]}
    >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"traffic": [], "job": [job]}))
    >>> iterations(r)["computing"].tolist()
    [20.0]
    """
    frame = result.jobs.to_pandas()
    times = {name: frame[name].astype(float) / 1e6 for name in frame.columns if name.endswith("_ps")}
    times = {name.removesuffix("_ps"): of for name, of in times.items()}
    found = pd.DataFrame({"ranks": frame["ranks"], **times, "slowdown": frame["slowdown"]})
    found.index = pd.MultiIndex.from_arrays([frame["job"].astype(str), frame["iteration"]], names=["job", "iteration"])
    return found


def summary(result: Result) -> pd.DataFrame:
    """A row for each job: its iterations that ended, their mean time, what of it ranks computed, and what is exposed,
    in microseconds; the bus bandwidth of its collectives, as the mean over their time, in Gbps. With `measure.alone`
    also its slowdown: the time of its iterations over that of the job alone in the same network.
    """
    rows = iterations(result)
    collectives = result.collectives.to_pandas()
    found = []
    for job, of in rows.groupby(level="job", sort=False):
        mine = collectives[(collectives["job"] == job) & collectives["time_ps"].notna()]
        spent = mine["time_ps"].astype(float)
        bus = float((mine["bus_bps"] * spent).sum() / spent.sum() / 1e9) if len(mine) and spent.sum() else np.nan
        done = of[of["time"].notna()]
        means = done[["time", "computing", "exposed"]].mean()
        found.append(
            {"job": job, "ranks": int(of["ranks"].iloc[0]), "iterations": len(of), "ended": len(done)}
            | {f"{name} us": means[name] for name in means.index}
            | {"bus Gbps": bus, "slowdown": done["time"].sum() / (done["alone"].sum() or np.nan)}
        )
    table = pd.DataFrame(found).set_index("job")
    # Only where it was asked for.
    return table if rows["alone"].notna().any() else table.drop(columns="slowdown")


def critical(result: Result, job: str) -> pd.DataFrame:
    """The critical path of a job in order, times in microseconds: what made it as long as it was."""
    frame = result.critical.to_pandas()
    mine = frame[frame["job"] == job].reset_index(drop=True)
    times = {name: mine[f"{name}_ps"].astype(float) / 1e6 for name in ("begin", "end")}
    return mine.drop(columns=["job", "begin_ps", "end_ps"]).assign(**times)


def said_of(result: Result) -> list[str]:
    """The causes of each job's length, in sentences."""
    said = []
    for job in dict.fromkeys(result.jobs.to_pandas()["job"].astype(str)):
        path = critical(result, job)
        spent = (path["end"] - path["begin"]).groupby(path["part"].astype(str)).sum()
        whole = spent.sum()
        if not whole:
            continue
        parts = [f"{spent[part] / whole:.1%} {words}" for part, words in PARTS.items() if spent.get(part, 0) > 0]
        said.append(f"The critical path of {job} takes {whole:,.1f} µs: {', '.join(parts)}.")
        longest = path.assign(time=path["end"] - path["begin"]).nlargest(1, "time").iloc[0]
        what = f"{PARTS[str(longest['part'])]} of {longest['name']}" if longest["name"] else PARTS[longest["part"]]
        to = "" if pd.isna(longest["to_rank"]) else f" to rank {int(longest['to_rank'])}"
        flow = "" if pd.isna(longest["flow"]) else f", flow {int(longest['flow'])}"
        said.append(f"Its longest part is {longest['time']:,.1f} µs: {what}, rank {longest['rank']}{to}{flow}.")
    return said
