"""Laws of RDMA's rate controls: where DCQCN's fluid model rests, how TIMELY recovers, what HPCC leaves of a link."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers.figures import Held

from . import setting
from .setting import PACKET, Row
from .tcp import full, queue_of

DCQCN = {
    "window": "unlimited",
    "control": {
        "cnp": {"packet": {"interval": "50us"}},
        "alpha_interval": "55us",
        "decrease_interval": "50us",
        "increase_timer": "55us",
        "fast_recovery": 5,
        "additive_increase": "40Mbps",
        "hyper_increase": "40Mbps",
        "clamp_target": True,
        "rate_min": "40Mbps",
    },
}


def dcqcn_rests_at(
    flows: int, gbps: float, cnp_s: float = 50e-6, alpha_s: float = 55e-6, timer_s: float = 55e-6
) -> float:
    """The share of marked packets at which DCQCN rests (Zhu et al., "ECN or Delay", CoNEXT 2016, equation 10): F =
    5, no byte counter."""
    packet = PACKET * 8.0
    rate, additive = gbps * 1e9 / flows / packet, 40e6 / packet

    def excess(p: float) -> float:
        cuts = 1 - (1 - p) ** (cnp_s * rate)
        recoveries = p / ((1 - p) ** (-timer_s * rate) - 1)
        growths = (1 - p) ** (5 * timer_s * rate) * recoveries
        alpha = 1 - (1 - p) ** (alpha_s * rate)
        return float(cuts * cuts * alpha / (recoveries * growths) - cnp_s * cnp_s * additive * rate)

    low, high = 1e-9, 0.5
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return low


def jain(result: cw.Result, flows: int) -> float:
    """Jain's index of the bytes that hosts 1 to n have sent: 1 if all are equal."""
    sent = np.array(
        [float(setting.link(result, f"host{host}", "switch0")["sent_bytes"]) for host in range(1, flows + 1)]
    )
    return float(sent.sum() ** 2 / flows / (sent**2).sum())


def dcqcn() -> Held:
    """The SIGCOMM 2015 settings at 40 Gbps, with a ramp to 10%: 16 flows rest at 1.6%, above the paper's 1% at the
    most."""
    rows: list[Row] = []
    marking = 'switch.marking.ramp = { min = "20KB", max = "200KB", probability_max = 0.1 }'
    for flows in (8, 16):
        result = queue_of({"dcqcn": DCQCN}, flows, "40Gbps", "200ns", "60ms", marking)
        p = dcqcn_rests_at(flows, 40.0)
        queue = setting.sampled(result, "queues", "longest_bytes", 20.0)
        rows.append((f"{flows} flows", "mean queue, KB", float(queue.mean()) / 1e3, 20 + p / 0.1 * 180, 0.15))
        rows.append((f"{flows} flows", "link used", full(result, flows + 1, 20.0), 1.0, 0.01))
        rows.append((f"{flows} flows", "Jain's index of their rates", jain(result, flows), 1.0, 0.02))
    return setting.held("dcqcn", "where its fluid model rests (Zhu et al., CoNEXT 2016, equation 10)", rows)


BURST = """
transport = { timely = { window = "unlimited" } }
measure = { end = "12ms", interval = "100us" }
fabric.star = { hosts = 3, rate = "10Gbps" }
switch.buffer.per_port.bytes = "20MB"
[[traffic]]
name = "long"
sizes = { constant = "1GB" }
arrivals = "all_at_once"
senders = "1"
receivers = "0"
flows = 1
[[traffic]]
name = "burst"
transport = { rdma = { window = "unlimited" } }
sizes = { constant = "1MB" }
arrivals = "all_at_once"
start = "2ms"
senders = "2"
receivers = "0"
flows = 1
"""


def timely() -> Held:
    """TIMELY's Algorithm 1 after a burst that has brought a flow to its least rate: a step of 10 Mbps each round trip
    below T_low.

    Mittal et al., SIGCOMM 2015. A step comes with the answer to the first packet that was sent after the last step:
    (RTT / gap, rounded down, + 1) gaps later, where a gap is a packet's time at the rate of now.
    """
    result = setting.run(BURST)
    rates = setting.sampled(result, "utilisation", "utilisation", tier="to_host") * 30 / (1 + setting.CONTROL / PACKET)
    rates.index = pd.Index(rates.index / 1e6)
    rtt_us = float(result.info["data_rtt_ps"]) / 1e6
    gbps, took = 1.2, 0.0
    while gbps < 9.0:
        gap = PACKET * 8 / gbps / 1e3
        took += (math.floor(rtt_us / gap) + 1) * gap
        gbps += 0.01
    # The burst takes 0.8 ms beside the flow; samples are of 100 us, so both ends are known to that and a straight line
    # between.
    after = rates[rates.index > 3_000]

    def reaches(level: float) -> float:
        at = int(np.argmax(after.to_numpy() >= level))
        (t0, r0), (t1, r1) = ((float(after.index[i]), float(after.iloc[i])) for i in (at - 1, at))
        return t0 + (t1 - t0) * (level - r0) / (r1 - r0)

    rows: list[Row] = [("a flow after a burst", "from 1.2 to 9 Gbps, us", reaches(9.0) - reaches(1.2), took, 0.05)]
    return setting.held("timely", "its Algorithm 1 by hand (SIGCOMM 2015)", rows)


def hpcc() -> Held:
    """HPCC rests at eta and its additive steps (Li et al., SIGCOMM 2019, section 3.2): R = R eta / U + AI gives U =
    eta + n AI / C."""
    rows: list[Row] = []
    for flows in (2, 16):
        result = queue_of("hpcc", flows, "100Gbps", "4us", "30ms", interval="5us")
        # Its acknowledgements carry 42 B of telemetry.
        share = full(result, flows + 1, 15.0) * (1 + setting.CONTROL / PACKET) / (1 + (setting.CONTROL + 42) / PACKET)
        rows.append((f"{flows} flows", "link used", share, 0.95 + flows * 0.05 / 100, 0.01))
        queue = float(setting.sampled(result, "queues", "longest_bytes", 15.0).mean())
        # Near zero: what waits is less than two packets of a product of some 140.
        product = 100 / 8 * float(result.info["data_rtt_ps"]) / 1e3
        rows.append((f"{flows} flows", "path and queue over the path", 1 + queue / product, 1.0, 0.02))
        if flows == 2:
            rows.append((f"{flows} flows", "Jain's index of their rates", jain(result, flows), 1.0, 0.001))
    return setting.held("hpcc", "its target utilisation and no queue (SIGCOMM 2019, section 3.2)", rows)
