"""What skipping gives, and what it costs in accuracy: writes the tables and the picture of `docs/acceleration.md`.

    python examples/acceleration/error.py

Each scenario is run whole and with `fast_forward`, on one thread. What is in `out/acceleration` is not run again.
"""

from __future__ import annotations

import platform
from pathlib import Path
from statistics import median
from typing import Any

import clearway as cw
import matplotlib.pyplot as plt
import pandas as pd
from clearway import _core, _marked
from clearway._run import slug
from clearway._spec import SPEC

BLUE, ORANGE, GREY = (SPEC["looks"]["colours"][name] for name in ("blue", "orange", "grey"))
PAGE, PICTURE = Path("docs/acceleration.md"), Path("docs/acceleration.png")
PFC = {"flow_control": "pfc"}
# Transports that say how their states move, each with what it needs; then some that do not.
WHO: dict[str, dict[str, Any]] = {
    "rdma": PFC, "timely": PFC, "dcqcn": PFC, "dctcp": {}, "newreno": {}, "cubic": {},
    "swift": {}, "illinois": {}, "bbr": {}, "ndp": {}, "homa": {}, "dcpim": {}, "r2c2": {}, "uet": {}, "falcon": {},
    "hpcc": PFC,
}  # fmt: skip
ABLE = ("rdma", "timely", "dcqcn", "dctcp", "newreno", "cubic", "swift", "illinois")
BASE = """
switch.buffer.shared = { bytes = "16MB" }
measure.interval = "0s"
"""
# 128 hosts in eight racks, whose switches have one way to each other; and as many at one switch.
RACKS = "fabric.leaf_spine = { racks = 8, hosts_per_rack = 16, spines = 1 }\n"
SWITCH = "fabric.star = { hosts = 128 }\n"
SMALL = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1 }\n"
ONE_JOB = """[[job]]
name = "train"
library = {{ all_reduce = "{algorithm}" }}
iterations = {iterations}
steps = [{steps}]
"""
PAIRS = 3


def job(steps: str, iterations: int = 1, algorithm: str = "ring") -> str:
    """A job of these steps."""
    return ONE_JOB.format(iterations=iterations, steps=steps, algorithm=algorithm)


SUM = '{ all_reduce = { bytes = "32MB" } }'
ITERATION = '{ compute = "100us" }, { all_reduce = { bytes = "1MB" } }'
JOBS = {
    "ring, 32 MB, racks": (RACKS + job(SUM), ("rdma", "dctcp")),
    "ring, 32 MB, one switch": (SWITCH + job(SUM), ABLE),
    "halving and doubling, 40 x 1 MB, one switch": (
        SWITCH + job(ITERATION, 40, "halving_doubling"),
        ("rdma", "dctcp", "newreno"),
    ),
}


def incast(senders: int) -> str:
    """Long flows that share a link."""
    return f"""
fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4 }}
[[traffic]]
senders = "1-{senders}"
receivers = "0"
pattern = "dense"
sizes.constant = "200MB"
arrivals = "all_at_once"
flows = {senders}
"""


PERMUTATION = """
fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2 }
[[traffic]]
pattern = "permutation"
sizes.constant = "100MB"
arrivals = "all_at_once"
flows = 16
"""
STEADY = {"two into one link": incast(2), "five into one link": incast(5), "permutation, 2:1": PERMUTATION}
STEADY_OVER = ("dctcp", "dcqcn", "timely", "cubic", "newreno")
WEB = (
    RACKS.replace("spines = 1", "spines = 4")
    + """
[[traffic]]
sizes = "websearch"
arrivals.poisson.load = 0.5
flows = 2000
"""
)


def of(toml: str, name: str, **keys: Any) -> cw.Result:
    """A run, kept in `out/acceleration`."""
    scenario = cw.Scenario.from_toml(BASE + toml).with_(keys, name=name)
    folder = Path("out/acceleration") / slug(name)
    return cw.compare(scenario, folder=folder, keep=True, threads=1, progress=False).results[0]


def both(toml: str, name: str, way: str, **keys: Any) -> tuple[cw.Result, cw.Result]:
    """Whole, and with what repeats skipped."""
    return of(toml, name, **keys), of(toml, f"{name}, {way[:5]}", fast_forward=way, **keys)


def seconds(result: cw.Result) -> float:
    """CPU time."""
    return float(result.info["cpu_seconds"])


def exact() -> tuple[list[str], list[dict[str, Any]]]:
    """Jobs of 128 ranks: speed, share of packets that were skipped, and whether digests are equal."""
    lines = ["| job | transport | whole, s | skipping, s | times as fast | of all packets skipped | digests |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    points = []
    for what, (toml, over) in JOBS.items():
        for who in over:
            whole, ahead = both(toml, f"{what}, {who}", "exact", transport=who, **WHO[who])
            share = ahead.info["skipped"]["packet_hops"] / whole.info["packet_hops"]
            times = seconds(whole) / seconds(ahead)
            same = "equal" if whole.digest == ahead.digest else "**differ**"
            lines.append(
                f"| {what} | {who} | {seconds(whole):.1f} | {seconds(ahead):.1f} | {times:.1f} | {share:.1%} | {same} |"
            )
            points.append({"way": "exact", "times": times, "error": 0.0})
    return lines, points


def who_can() -> list[str]:
    """A small job over each transport: what of it is skipped, or why nothing is."""
    lines = ["| transport | of all packets skipped | otherwise: why not |", "| --- | ---: | --- |"]
    toml = SMALL + job('{ compute = "20us" }, { all_reduce = { bytes = "120KB" } }', 150)
    for who, keys in WHO.items():
        whole, ahead = both(toml, f"small job, {who}", "exact", transport=who, **keys)
        assert whole.digest == ahead.digest, who
        skipped = ahead.info["skipped"]
        share = skipped["packet_hops"] / whole.info["packet_hops"]
        lines.append(f"| {who} | {share:.0%} | {'' if share > 0.1 else skipped['reason'] or ''} |")
    return lines


def approximate() -> tuple[list[str], list[dict[str, Any]]]:
    """Long flows that share links: speed, and errors of completion times."""
    lines = ["| scenario | transport | times as fast | of all packets skipped | mean | 99th percentile | longest |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    points = []
    for what, toml in STEADY.items():
        for who in STEADY_OVER:
            whole, ahead = both(toml, f"{what}, {who}", "approximate", transport=who, **WHO[who])
            share = ahead.info["skipped"]["packet_hops"] / ahead.info["packet_hops"]
            times = seconds(whole) / seconds(ahead)
            one, other = (run.flows.to_pandas()["fct_ps"].astype(float) for run in (whole, ahead))
            off = {
                "mean": other.mean() / one.mean() - 1,
                "p99": other.quantile(0.99) / one.quantile(0.99) - 1,
                "most": other.max() / one.max() - 1,
            }
            lines.append(
                f"| {what} | {who} | {times:.1f} | {share:.1%} | {off['mean']:+.2%} | {off['p99']:+.2%} | "
                f"{off['most']:+.2%} |"
            )
            points.append({"way": "approximate", "times": times, "error": 100 * abs(off["mean"])})
    return lines, points


def never() -> list[str]:
    """Traffic that never repeats: what listening costs, in pairs."""
    ratios = []
    for pair in range(PAIRS):
        whole, ahead = both(WEB, f"web search, pair {pair}", "exact", transport="dctcp")
        assert whole.digest == ahead.digest
        ratios.append(seconds(ahead) / seconds(whole))
    ranged = f"{min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}"
    return [
        f"Web search at load 0.5 over DCTCP, 128 hosts: {median(ratios) - 1:+.1%} CPU time ({ranged}, {PAIRS} pairs)."
    ]


def picture(points: pd.DataFrame) -> None:
    """Speed and error."""
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for way, colour, marker in (("exact", BLUE, "o"), ("approximate", ORANGE, "s")):
        rows = points[points["way"] == way]
        axes.plot(rows["times"], rows["error"], marker, color=colour, label=way)
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle="--", label="1%")
    axes.axvline(1, color=GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(-0.02, 100)
    axes.set_xlabel("times as fast as the whole run, CPU time")
    axes.set_ylabel("error of the mean completion time, %")
    axes.grid(color="0.9")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Runs what has not been run, and writes the tables into the page."""
    (exactly, some), (approximately, more) = exact(), approximate()
    lines = [
        "![Speed and error of runs that skip](acceleration.png)",
        "",
        "Exact, jobs of 128 ranks:",
        "",
        *exactly,
        "",
    ]
    lines += ["Exact, four ranks, 150 iterations, over each transport:", "", *who_can(), "", *never(), ""]
    lines += ["Approximate, errors of completion times:", "", *approximately, ""]
    commit = f"commit {_core.COMMIT}, seed 1, one thread, {platform.machine()}"
    lines += [f"`python examples/acceleration/error.py` at {commit}.", ""]
    _marked.put(PAGE, "error", "\n".join(lines))
    picture(pd.DataFrame([*some, *more]))


if __name__ == "__main__":
    main()
