"""Single measurements of hardware: a switch whose classes compete for a port, and expert parallelism.

Each has one or two constants that its owner does not say. They are inferred from some of its numbers, and the others
are compared.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent
SWITCH, EXPERTS = "sonic-mgmt pull request 25347 (2026)", "DeepEP legacy notes"
WITHIN_SWITCH, WITHIN_EXPERTS = 0.05, 0.10
"""Chosen before the run."""

# The bytes say the weights 2:1:1:1. Each lossy flow sent half of the port's bytes, so it has half of its rate. The
# first latency says that a queue is held at 12.57 MB, a third of a pool that two of them share with alpha 1.
OF_THE_SWITCH = """
name = "the measured switch"
flow_control.mmu = {{ lossless = [3, 4], pool = [
    {{ name = "in", side = "ingress", bytes = "{pool}B" }},
    {{ name = "out", side = "egress", bytes = "{pool}B" }},
    {{ name = "rest_in", side = "ingress", bytes = "100MB" }},
    {{ name = "rest_out", side = "egress", bytes = "100MB" }},
], group = [
    {{ groups = [3, 4], pool = "in", alpha = 1.0, xon_offset = "20KB" }},
    {{ groups = [0, 1, 2, 5, 6, 7], pool = "rest_in" }},
], queue = [
    {{ queues = [1, 2], pool = "out", alpha = 1.0 }},
    {{ queues = [0, 3, 4, 5, 6, 7], pool = "rest_out" }},
], schedule = [{{ queues = [3, 4, 1, 2, 0, 5, 6, 7], weights = [2, 1, 1, 1, 1, 1, 1, 1] }}] }}
fabric.star = {{ hosts = 4, rate = "400Gbps" }}
host.mtu = "4096B"
switch.buffer = {{ shared = {{ bytes = "200MB" }} }}
measure = {{ interval = "0s", end = "8ms", packets = {{ links = ["switch0-host0"] }} }}
"""
# Class of packets, sender, rate.
STREAMS = {"Q3": (3, 1, ""), "Q4": (4, 2, ""), "lossy 1": (1, 3, "200Gbps"), "lossy 2": (2, 3, "200Gbps")}
STREAM = """
[[traffic]]
name = "{name}"
transport = {{ udp = {{ class = {of}{rate} }} }}
sizes.constant = "1GB"
arrivals = "all_at_once"
senders = "{sender}"
receivers = "0"
flows = 1
"""
STEADY_FROM_PS = 4_000_000_000
PORT = 400e9

# Ranks of a host reach each other over NVLink, at 200 GB/s a direction in an H800. InfiniBand's packets have 4 KB and
# 48 bytes of headers. The eight links of a host are one here: the cluster routed adaptively, so flows don't collide.
EXPERT = """
name = "{what}, EP{ranks}"
transport = "rdma"
flow_control = "pfc"
host = {{ mtu = "4144B", header = "48B" }}
measure.interval = "0s"
fabric.star = {{ hosts = {hosts}, rate = "3.2Tbps", propagation = "0s", switch_delay = "0s" }}
[[job]]
ranks = {ranks}
ranks_per_host = 8
local = {{ rate = "1.6Tbps", delay = "0s" }}
library = {{ like = "nccl", launch = "{launch}ns" }}
steps = [{{ all_to_all = {{ bytes = "{bytes}B" }} }}]
"""
TOKENS, HIDDEN, EXPERTS_OF_A_TOKEN = 128, 7168, 8
COPIES = TOKENS * EXPERTS_OF_A_TOKEN
BYTES = {"dispatch": COPIES * (HIDDEN + HIDDEN // 128 * 4 + 16), "combine": COPIES * HIDDEN * 2}
"""Bytes of a rank: to dispatch, FP8 with a scale of 4 bytes for each 128 values and 16 bytes that say where the token
came from; to combine, BF16."""


def measured(source: str) -> dict[str, float]:
    """The numbers of a source, by quantity."""
    table = pd.read_csv(HERE / "single.csv")
    of = table[table["source"] == source]
    return {str(name): float(value) for name, value in zip(of["quantity"], of["value"])}


def switch() -> Held:
    """The switch: shares of bytes, latencies, and the share of each lossy flow that arrives."""
    theirs = measured(SWITCH)
    bytes_of = {name: theirs[f"received bytes {name}"] for name in STREAMS}
    held = bytes_of["Q3"] / sum(bytes_of.values()) * PORT / 8 * theirs["mean latency Q3"] / 1e9
    text = OF_THE_SWITCH.format(pool=int(3 * held)) + "".join(
        STREAM.format(name=name, of=of, sender=sender, rate=f', rate = "{rate}"' if rate else "")
        for name, (of, sender, rate) in STREAMS.items()
    )
    result = figures.simulated(cw.Scenario.from_toml(text))
    packets = result.packets.to_pandas()
    left = packets[(packets["last_ps"] >= STEADY_FROM_PS) & (packets["lost"].fillna("") == "")]
    by = {name: left[left["class"] == of] for name, (of, _, _) in STREAMS.items()}
    ours = {name: float(rows["bytes"].sum()) for name, rows in by.items()}
    rows = []
    for name, of in by.items():
        share = bytes_of[name] / sum(bytes_of.values())
        rows.append((name, "share of the port's bytes", ours[name] / sum(ours.values()), share))
        latency = float((of["last_ps"] - of["came_ps"]).mean()) / 1e3
        rows.append((name, "mean latency, ns", latency, theirs[f"mean latency {name}"]))
        if (sent := theirs.get(f"sent bytes {name}")) is not None:
            seconds = float(result.info["end_ps"] - STEADY_FROM_PS) / 1e12
            arrived = ours[name] / (PORT / 2 / 8 * seconds)
            rows.append((name, "share of its bytes that arrives", arrived, bytes_of[name] / sent))
    inferred = ("Q3", "mean latency, ns")
    allowed = [(*row, 1.0 if row[:2] == inferred else WITHIN_SWITCH) for row in rows]
    table = pd.DataFrame(allowed, columns=list(Held.COLUMNS))
    return Held("a switch with two lossless and two lossy queues", SWITCH, "measurement", table)


def _exchange(what: str, ranks: int, launch_ns: int) -> float:
    """Microseconds of a dispatch or a combine."""
    text = EXPERT.format(what=what, ranks=ranks, hosts=max(ranks // 8, 2), bytes=BYTES[what], launch=launch_ns)
    result = cw.run(cw.Scenario.from_toml(text), level="flow", progress=False)
    return float(result.collectives["time_ps"][0]) / 1e6


def experts() -> Held:
    """Expert parallelism: dispatch and combine. One constant, the time until kernels run at all ranks, is inferred from
    the dispatch within one host."""
    theirs = measured(EXPERTS)
    launch = round((theirs["dispatch EP8"] - _exchange("dispatch", 8, 0)) * 1e3)
    rows = []
    for name, time in theirs.items():
        what, ranks = name.split(" EP")
        within = 1.0 if name == "dispatch EP8" else WITHIN_EXPERTS
        rows.append((name, "time, us", _exchange(what, int(ranks), launch), time, within))
    table = pd.DataFrame(rows, columns=list(Held.COLUMNS))
    return Held(f"expert parallelism, launched in {launch / 1e3:.3g} us", EXPERTS, "measurement", table)


def single() -> Shown:
    """Single measurements of hardware: a switch whose lossless and lossy queues compete for a port, and dispatch and
    combine of expert parallelism."""
    held = [switch(), experts()]
    table = pd.concat([one.rows.assign(measurement=one.scheme) for one in held])
    table = table[["measurement", "bucket", "statistic", "theirs", "ours"]].set_index(["measurement", "bucket"])
    return Shown(table, held=held)
