"""The gain of skipping, and its cost in accuracy: writes the tables and the picture of `docs/acceleration-measured.md`,
and the table of `docs/acceleration.md`.

    python examples/acceleration/error.py
    python examples/acceleration/error.py hops         # only these parts: error, models, apart, web, hops

Each scenario is run whole and with `fast_forward`, on one thread. Results in `out/acceleration` are not run again.
"""

from __future__ import annotations

import platform
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import clearway as cw
import matplotlib.pyplot as plt
import pandas as pd
from clearway.files.places import slug
from clearway.reports import marked
from clearway.reports.spec import SPEC

BLUE, ORANGE, GREY = (SPEC["looks"]["colours"][name] for name in ("blue", "orange", "grey"))
PAGE, PICTURE = Path("docs/acceleration-measured.md"), Path("docs/acceleration.png")
SHORT_PAGE = Path("docs/acceleration.md")
PFC = {"flow_control": "pfc"}
# Every scheme, each with what it needs.
WHO: dict[str, dict[str, Any]] = {
    "rdma": PFC, "timely": PFC, "dcqcn": PFC, "hpcc": PFC, "dctcp": {}, "newreno": {}, "cubic": {}, "illinois": {},
    "swift": {}, "bbr": {}, "udp": {}, "dcpim": {}, "harmony": {}, "r2c2": {}, "ndp": {}, "homa": {}, "homa_aeolus": {},
    "phost": {}, "pfabric": {}, "fastpass": {}, "uet": {}, "falcon": {},
}  # fmt: skip
CONTROLS = ("pyrrha", "bfc", "per_flow_queues", "congestion_isolation", "cbfc")
ABLE = ("rdma", "timely", "dcqcn", "dctcp", "newreno", "cubic", "swift", "illinois")
BASE = """
timing = "ideal"
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
PAIRS = 9


def job(steps: str, iterations: int = 1, algorithm: str = "ring") -> str:
    """A job of these steps."""
    return ONE_JOB.format(iterations=iterations, steps=steps, algorithm=algorithm)


SUM = '{ all_reduce = { bytes = "32MB" } }'
LONG_SUM = '{ all_reduce = { bytes = "512MB" } }'
LONGEST_SUM = '{ all_reduce = { bytes = "2GB" } }'
LONG_ITERATION = '{ compute = "1ms" }, { all_reduce = { bytes = "64MB" } }'
ITERATION = '{ compute = "100us" }, { all_reduce = { bytes = "1MB" } }'
JOBS = {
    "ring, 32 MB, racks": (RACKS + job(SUM), ("rdma", "dctcp")),
    "ring, 512 MB, racks": (RACKS + job(LONG_SUM), ("rdma",)),
    "ring, 32 MB, one switch": (SWITCH + job(SUM), ABLE),
    "ring, 512 MB, one switch": (SWITCH + job(LONG_SUM), ("rdma", "timely", "dctcp", "newreno", "swift")),
    "ring, 2 GB, one switch": (SWITCH + job(LONGEST_SUM), ("rdma", "dctcp")),
    "ring, 100 x 64 MB, 32 ranks, one switch": (
        "fabric.star = { hosts = 32 }\n" + job(LONG_ITERATION, 100),
        ("rdma", "dctcp", "timely"),
    ),
    "halving and doubling, 40 x 1 MB, one switch": (
        SWITCH + job(ITERATION, 40, "halving_doubling"),
        ("rdma", "dctcp", "newreno"),
    ),
}


def rack_job(rack: int, racks: int = 1, start: str = "0s") -> str:
    """A job within racks; the higher the first rack's number, the more it has to send."""
    placed = f'start = "{start}"\nhosts = "{16 * rack}-{16 * (rack + racks) - 1}"\nsteps'
    name = f'"{racks} from rack {rack}, {start}"'
    named = job(f'{{ all_reduce = {{ bytes = "{320 + 50 * rack}MB" }} }}').replace('"train"', name)
    return named.replace("steps", placed)


def incast(senders: int, size: str) -> str:
    """Long flows that share a link."""
    return f"""
fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4 }}
[[traffic]]
senders = "1-{senders}"
receivers = "0"
pattern = "dense"
sizes.constant = "{size}"
arrivals = "all_at_once"
flows = {senders}
"""


NARROW = "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2 }\n"
"""16 hosts in four racks with half as much room between racks."""


def permutation(size: str) -> str:
    """Long flows, some of which share a link between racks."""
    return f"""{NARROW}
[[traffic]]
pattern = "permutation"
sizes.constant = "{size}"
arrivals = "all_at_once"
flows = 16
"""


STEADY = {
    "two into one link, 200 MB": incast(2, "200MB"),
    "two into one link, 2 GB": incast(2, "2GB"),
    "five into one link, 200 MB": incast(5, "200MB"),
    "five into one link, 2 GB": incast(5, "2GB"),
    "permutation, 2:1, 100 MB": permutation("100MB"),
    "permutation, 2:1, 1 GB": permutation("1GB"),
}
END = 'measure.end = "20s"\n'
LONGER = {
    "two into one link, 20 GB": (END + incast(2, "20GB"), ("dctcp", "dcqcn", "timely")),
    "five into one link, 20 GB": (END + incast(5, "20GB"), ("dctcp", "dcqcn", "timely")),
    "permutation, 2:1, 3 GB": (permutation("3GB"), ("dctcp", "dcqcn", "cubic")),
}
"""So long that a whole run takes minutes: over the transports that are named, and not repeated."""
LATER = ("50ns", "100ns", "150ns")
"""Whole runs are repeated with flows that begin later by a random time up to this: how far apart are their means?"""
STEADY_OVER = ("dctcp", "dcqcn", "timely", "cubic", "newreno")
LONG_JOBS_OVER = ("dctcp", "dcqcn", "timely", "swift")
HUGE_SUM = '{ all_reduce = { bytes = "500MB" } }'
LONG_JOBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ring, 500 MB": (NARROW + job(HUGE_SUM), LONG_JOBS_OVER),
    "halving and doubling, 500 MB": (NARROW + job(HUGE_SUM, 1, "halving_doubling"), LONG_JOBS_OVER),
    "all-to-all, 500 MB": (NARROW + job('{ all_to_all = { bytes = "500MB" } }'), LONG_JOBS_OVER),
}
SHORT_ITERATION = '{ compute = "20us" }, { all_reduce = { bytes = "120KB" } }'
# Four ranks; four flows that share nothing; three that share a link.
SCENES = {
    "150 iterations": SMALL + job(SHORT_ITERATION, 150),
    "a ring of long messages": """
fabric.star = { hosts = 4 }
[[traffic]]
pattern.stride.by = 1
sizes.constant = "20MB"
arrivals = "all_at_once"
""",
    "three into one link": """
fabric.star = { hosts = 4 }
[[traffic]]
senders = "1-3"
receivers = "0"
pattern = "dense"
sizes.constant = "20MB"
arrivals = "all_at_once"
flows = 3
""",
}
LITTLE = 0.1
"""If a smaller share is skipped, the table says why."""
WEB = (
    RACKS.replace("spines = 1", "spines = 4")
    + """
[[traffic]]
sizes = "websearch"
arrivals.poisson.load = 0.5
flows = 2000
"""
)


ISLANDS = f"""{RACKS}{"".join(rack_job(rack) for rack in range(7))}
[[traffic]]
sizes = "websearch"
senders = "112-127"
receivers = "112-127"
arrivals.poisson.load = 0.5
duration = "5ms"
"""
COME_AND_GO = RACKS + "".join(rack_job(rack) for rack in range(8)) + rack_job(2, 2, "150ms") + rack_job(5, 3, "200ms")
SHARED_SPINES = RACKS.replace("spines = 1", "spines = 4") + "".join(rack_job(rack, 2) for rack in range(0, 8, 2))
DIVIDED = {"switch.buffer": {"per_port": {"bytes": "2MB"}}}
APART: dict[str, tuple[str, dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "a job in each of seven racks, web search in the last": (
        ISLANDS,
        {},
        ("exact", "approximate"),
        ("rdma", "dctcp", "newreno", "swift"),
    ),
    "a job in each of eight racks, later two jobs over several": (
        COME_AND_GO,
        {},
        ("exact", "approximate"),
        ("rdma", "dctcp"),
    ),
    "four jobs over two racks each, through the same spines": (
        SHARED_SPINES,
        DIVIDED,
        ("approximate",),
        ("dctcp", "swift"),
    ),
}
"""Jobs that share no flow, none like another."""


def gpt(layers: int, hidden: int, iterations: int) -> str:
    """A job that trains a GPT: a pipeline of eight stages with eight micro-batches, 16 replicas, one rank per host."""
    model = f"gpt = {{ layers = {layers}, hidden = {hidden}, sequence = 2048, vocabulary = 51200 }}"
    return f"""
host = {{ mtu = "4160B", header = "64B" }}
fabric.star = {{ hosts = 128, rate = "400Gbps" }}
[[job]]
iterations = {iterations}
[job.model]
model = {{ {model} }}
degrees = {{ tensor = 1, pipeline = 8, data = 16 }}
micro_batches = 8
accelerator = {{ teraflops = 312, efficiency = 0.45 }}
"""


MODELS = {
    # As large as the one whose trace Wormhole was measured on.
    "18 billion parameters, one iteration": (gpt(40, 6144, 1), ("rdma", "dctcp", "swift")),
    "4 billion parameters, one iteration": (gpt(8, 6144, 1), ("rdma", "dctcp", "swift")),
    "0.5 billion parameters, 20 iterations": (gpt(8, 2048, 20), ("rdma", "dctcp")),
    "0.1 billion parameters, 100 iterations": (gpt(8, 768, 100), ("rdma", "dctcp")),
}

GAINS: dict[str, tuple[str, dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "ring, 128 MB, 128 ranks at one switch": (
        SWITCH + job('{ all_reduce = { bytes = "128MB" } }'),
        {},
        ("exact",),
        ("rdma", "dctcp", "cubic"),
    ),
    "ring, 2 GB, 128 ranks at one switch": (SWITCH + job(LONGEST_SUM), {}, ("exact",), ("rdma", "dctcp", "cubic")),
    "ring, 32 MB, 128 ranks in eight racks": (RACKS + job(SUM), {}, ("exact",), ("rdma", "dctcp")),
    "halving and doubling, 40 x 1 MB, one switch": (
        SWITCH + job(ITERATION, 40, "halving_doubling"),
        {},
        ("exact", "approximate"),
        ("rdma", "dctcp"),
    ),
    **{
        what: (toml, {}, ("exact", "approximate"), ("rdma", "dctcp"))
        for what, (toml, _, _, _) in list(APART.items())[:2]
    },
    **{what: (toml, keys, ("approximate",), ("dctcp",)) for what, (toml, keys, _, _) in list(APART.items())[2:]},
    **{
        f"GPT of {what}": (toml, {}, ("approximate",), ("rdma", "dctcp"))
        for what, (toml, _) in list(MODELS.items())[:3]
    },
    "five into one link, 200 MB": (STEADY["five into one link, 200 MB"], {}, ("approximate",), ("dctcp", "dcqcn")),
    "permutation, 2:1, 100 MB": (STEADY["permutation, 2:1, 100 MB"], {}, ("approximate",), ("dctcp", "dcqcn")),
}
"""The scenarios of the table in packet-hops. None is run whole."""

COMMITS: Counter[str] = Counter()
"""Of how many runs each commit is."""


def of(toml: str, name: str, **keys: Any) -> cw.Result:
    """A run, kept in `out/acceleration`."""
    scenario = cw.Scenario.from_toml(BASE + toml).with_(keys, name=name)
    folder = Path("out/acceleration") / slug(name)
    result = cw.compare(scenario, folder=folder, keep=True, threads=1, progress=False).results[0]
    COMMITS[result.info["commit"]] += 1
    return result


def both(toml: str, name: str, way: str, **keys: Any) -> tuple[cw.Result, cw.Result]:
    """Whole, and with what repeats skipped."""
    return of(toml, name, **keys), of(toml, f"{name}, {way[:5]}", fast_forward=way, **keys)


def seconds(result: cw.Result) -> float:
    """CPU time."""
    return float(result.info["cpu_seconds"])


def spent(whole: cw.Result, ahead: cw.Result) -> str:
    """Columns: CPU seconds whole and skipping, and how many times as fast that is."""
    return f"{seconds(whole):.1f} | {seconds(ahead):.1f} | {gain(whole, ahead)[0]:.1f}"


def exact() -> tuple[list[str], list[dict[str, Any]]]:
    """Jobs of 128 ranks: speed, share of packets that were skipped, and whether digests are equal."""
    lines = ["| job | transport | whole, s | skipping, s | times as fast | of all packets skipped | digests |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    points = []
    for what, (toml, over) in JOBS.items():
        for who in over:
            whole, ahead = both(toml, f"{what}, {who}", "exact", **keys_of(who))
            times, share = gain(whole, ahead)
            same = "equal" if whole.digest == ahead.digest else "**differ**"
            lines.append(f"| {what} | {who} | {spent(whole, ahead)} | {share:.1%} | {same} |")
            points.append({"way": "exact", "times": times, "error": 0.0})
    return lines, points


def apart() -> list[str]:
    """Jobs that share no flow: speed, and what differs."""
    head = "| jobs of 16 ranks a rack | transport | way | whole, s | skipping, s | times as fast"
    lines = [f"{head} | of all packets skipped | apart | differs |"]
    lines += ["| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for what, (toml, keys, ways, over) in APART.items():
        for who, way in ((who, way) for who in over for way in ways):
            whole, ahead = both(toml, f"{what}, {who}", way, **keys_of(who), **keys)
            skipped = ahead.info["skipped"]
            share = skipped["packet_hops"] / whole.info["packet_hops"]
            mean = mean_off(completion(whole), completion(ahead))
            differs = "nothing" if whole.digest == ahead.digest else f"mean {mean:+.3%}"
            cost = f"{spent(whole, ahead)} | {share:.1%}"
            lines.append(f"| {what} | {who} | {way} | {cost} | {skipped['islands']} | {differs} |")
    return ["Jobs that share no flow:", "", *lines]


def models() -> list[str]:
    """Jobs of models: speed, and errors of the job's time and of messages'."""
    lines = ["| GPT | transport | way | whole, s | skipping, s | times as fast | of all packets skipped | digest |"]
    lines[0] += " job's time | mean message | 99th percentile |"
    lines += [f"| --- | --- | --- |{' ---: |' * 4} --- |{' ---: |' * 3}"]
    for what, (toml, over) in MODELS.items():
        for who, way in ((who, way) for who in over for way in ("exact", "approximate")):
            whole, ahead = both(toml, f"GPT, {what}, {who}", way, **keys_of(who))
            cost = f"{spent(whole, ahead)} | {gain(whole, ahead)[1]:.1%}"
            same = "equal" if whole.digest == ahead.digest else "differs"
            one, other = completion(whole), completion(ahead)
            off = f"{job_off(whole, ahead):+.3%} | {mean_off(one, other):+.3%} | {p99(one, other)}"
            lines.append(f"| {what} | {who} | {way} | {cost} | {same} | {off} |")
    what = "a pipeline of eight stages with eight micro-batches, 16 replicas, one rank per host, all at one switch"
    return [f"Jobs that train a GPT on 128 ranks ({what}):", "", *lines]


def hops() -> list[str]:
    """Packet-hops of the whole run, and those that are simulated when what repeats is skipped."""
    lines = ["| scenario | transport | way | packet-hops | simulated | times fewer |"]
    lines += ["| --- | --- | --- | ---: | ---: | ---: |"]
    every = [
        (what, toml, who, way, {**keys_of(who), **keys})
        for what, (toml, keys, ways, over) in GAINS.items()
        for who in over
        for way in ways
    ]
    for what, toml, who, way, keys in every:
        result = of(toml, f"{what}, {who}, {way[:5]}", fast_forward=way, **keys)
        lines.append(line_of_hops(what, who, way, result.info["packet_hops"], result.info["skipped"]["packet_hops"]))
    return lines


def line_of_hops(what: str, who: str, way: str, hops: int, skipped: int) -> str:
    """A line of that table."""
    return f"| {what} | {who} | {way} | {hops:,} | {hops - skipped:,} | {hops / (hops - skipped):,.1f} |"


def who_can() -> list[str]:
    """Every scheme, in three scenes: what of them is skipped, or why not."""
    lines = [f"| scheme | {' | '.join(SCENES)} | what does not repeat |", f"| --- |{' ---: |' * len(SCENES)} --- |"]
    every = {who: keys_of(who) for who in WHO}
    every |= {f"rdma, {control}": {"transport": "rdma", "flow_control": control} for control in CONTROLS}
    for who, keys in every.items():
        shares, reasons = [], []
        for what, toml in SCENES.items():
            whole, ahead = both(toml, f"{what}, {who}", "exact", **keys)
            assert whole.digest == ahead.digest, who
            skipped = ahead.info["skipped"]
            shares.append(skipped["packet_hops"] / whole.info["packet_hops"])
            reasons += [skipped["reason"]] if skipped["reason"] and shares[-1] < LITTLE else []
        # Which node it was found at first says little.
        why = "; ".join(dict.fromkeys(re.sub(r"^\w+ \d+: ", "", reason) for reason in reasons))
        lines.append(f"| {who} | {' | '.join(f'{share:.0%}' for share in shares)} | {why} |")
    return lines


def approximate() -> tuple[list[str], list[dict[str, Any]]]:
    """Long flows that share links: speed, and errors of completion times."""
    head = "| scenario | transport | times as fast | of all packets skipped | mean | 99th percentile | longest |"
    lines = [f"{head} means of whole runs |", "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    points = []
    every = [(what, toml, who) for what, toml in STEADY.items() for who in STEADY_OVER]
    every += [(what, toml, who) for what, (toml, over) in LONGER.items() for who in over]
    for what, toml, who in every:
        whole, ahead = both(toml, f"{what}, {who}", "approximate", **keys_of(who))
        (times, share), (one, other) = gain(whole, ahead), (completion(run) for run in (whole, ahead))
        off = [
            mean_off(one, other),
            other.quantile(0.99) / one.quantile(0.99) - 1,
            other.max() / one.max() - 1,
        ]
        errors = " | ".join(f"{error:+.2%}" for error in off)
        apart = f"{spread(what, toml, who, one.mean()):.2%} apart" if what in STEADY else "\N{EN DASH}"
        lines.append(f"| {what} | {who} | {times:.1f} | {share:.1%} | {errors} | {apart} |")
        points.append({"way": "approximate", "times": times, "error": 100 * abs(off[0])})
    return lines, points


def spread(what: str, toml: str, who: str, mean: float) -> float:
    """How far apart the means of whole runs are whose flows begin at slightly other times, as a share of `mean`."""
    means = [mean]
    for later in LATER:
        begins = f'arrivals.periodic = {{ every = "1000s", jitter = "{later}" }}'
        changed = toml.replace('arrivals = "all_at_once"', begins)
        means.append(completion(of(changed, f"{what}, {who}, {later} later", **keys_of(who))).mean())
    return (max(means) - min(means)) / mean


def approximate_jobs(
    jobs: dict[str, tuple[str, tuple[str, ...]]], head: str, last: Callable[[pd.Series, pd.Series], str]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Jobs: speed, and errors of the job's time and of messages'. `head` names the last columns, `last` fills one."""
    lines = [f"| job | transport | times as fast | of all packets skipped | job's time | {head} |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    points = []
    for what, (toml, over) in jobs.items():
        for who in over:
            whole, ahead = both(toml, f"{what}, {who}", "approximate", **keys_of(who))
            (times, share), (one, other) = gain(whole, ahead), (completion(run) for run in (whole, ahead))
            of_job = job_off(whole, ahead)
            errors = f"{of_job:+.2%} | {mean_off(one, other):+.2%} | {last(one, other)}"
            lines.append(f"| {what} | {who} | {times:.1f} | {share:.1%} | {errors} |")
            points.append({"way": "approximate", "times": times, "error": 100 * abs(of_job)})
    return lines, points


def furthest(one: pd.Series, other: pd.Series) -> str:
    """How far the message is off that is furthest off."""
    return f"{(other / one - 1).abs().max():.2%}"


def mean_off(one: pd.Series, other: pd.Series) -> float:
    """By what share the mean is off."""
    return float(other.mean() / one.mean() - 1)


def p99(one: pd.Series, other: pd.Series) -> str:
    """By how much the 99th percentile is off."""
    return f"{other.quantile(0.99) / one.quantile(0.99) - 1:+.2%}"


def keys_of(who: str) -> dict[str, Any]:
    """The keys of a transport."""
    return {"transport": who, **WHO[who]}


def gain(whole: cw.Result, ahead: cw.Result) -> tuple[float, float]:
    """How many times as fast it is to skip approximately, and what share of packets is skipped."""
    return seconds(whole) / seconds(ahead), ahead.info["skipped"]["packet_hops"] / ahead.info["packet_hops"]


def completion(result: cw.Result) -> pd.Series:
    """Completion times of its flows."""
    return result.flows.to_pandas()["fct_ps"].astype(float)


def job_seconds(result: cw.Result) -> float:
    """The time of its job."""
    return float(result.jobs.to_pandas()["time_ps"].sum())


def job_off(whole: cw.Result, ahead: cw.Result) -> float:
    """By what share the job's time is off."""
    return job_seconds(ahead) / job_seconds(whole) - 1


def never() -> list[str]:
    """Traffic that never repeats: what looking costs, in pairs."""
    costs = []
    for way in ("exact", "approximate"):
        ratios = []
        for pair in range(PAIRS):
            # Whole anew each time: a machine is not always as fast.
            whole, ahead = both(WEB, f"web search {way} {pair}", way, transport="dctcp")
            assert way == "approximate" or whole.digest == ahead.digest
            ratios.append(seconds(ahead) / seconds(whole) - 1)
        off = f"mean {mean_off(completion(whole), completion(ahead)):+.3%}"
        spread = f"{min(ratios):+.1%} to {max(ratios):+.1%}, {PAIRS} pairs"
        costs.append(f"{way} {median(ratios):+.1%} CPU time ({spread}, {off})")
    return [f"Web search at load 0.5 over DCTCP, 128 hosts: {', '.join(costs)}."]


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


def error() -> list[str]:
    """The skipped share in each way, and the errors of estimates."""
    (exactly, some), (approximately, more) = exact(), approximate()
    of_jobs, most = approximate_jobs(LONG_JOBS, "mean message | furthest off", furthest)
    picture(pd.DataFrame([*some, *more, *most]))
    lines = ["![Speed and error of runs that skip](acceleration.png)", ""]
    lines += ["Exact, jobs of 128 ranks if not said otherwise:", "", *exactly, ""]
    lines += ["Exact, four hosts, what of all packets is skipped over each scheme:", "", *who_can(), ""]
    lines += ["Approximate, errors of completion times:", "", *approximately, ""]
    return [*lines, "Approximate, jobs of 16 ranks in four racks with half as much room between racks:", "", *of_jobs]


def main(names: list[str]) -> None:
    """Runs what has not been run, and writes the tables into the page."""
    parts = {"error": error, "models": models, "apart": apart, "web": never, "hops": hops}
    for name in names:
        if name not in parts:
            sys.exit(f"{name}: no part of the page; write one of {', '.join(parts)}")
    # A process waits for memory in its first run.
    first = cw.Scenario.from_toml(BASE + STEADY["two into one link, 200 MB"])
    cw.run(first.with_(transport="cubic", fast_forward="approximate"), progress=False)
    for name in names or parts:
        COMMITS.clear()
        lines = parts[name]()
        commits = ", ".join(f"{commit} ({runs} runs)" for commit, runs in COMMITS.most_common())
        source = f"`python examples/acceleration/error.py {name}` at commit {commits}, seed 1, one thread"
        marked.put(
            SHORT_PAGE if name == "hops" else PAGE,
            name,
            "\n".join([*lines, "", f"{source}, {platform.machine()}.", ""]),
        )


if __name__ == "__main__":
    main(sys.argv[1:])
