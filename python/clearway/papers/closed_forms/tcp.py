"""Laws of TCP's congestion controls: windows under random loss, DCTCP's sawtooth, Swift's target delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import clearway as cw
from clearway.papers.figures import Held

from . import setting
from .setting import PACKET, PAYLOAD, Row

# One flow through a star whose links damage bits so often that a packet of 1,500 B is lost with the probability named,
# on a path that no window fills. A lost acknowledgement, 40 times as rare, takes nothing: the next says the same.
LOSSY = """
transport = "newreno"
measure = {{ end = "{end}", interval = "0s" }}
fabric.star = {{ hosts = 2, rate = "{rate}", propagation = "{propagation}", switch_delay = "0s" }}
switch.buffer.per_port.bytes = "1GB"
failure = [{{ at = "0s", link = ["host0", "switch0"], bit_error_rate = {bit_error_rate:e} }}]
[[traffic]]
sizes = {{ constant = "1TB" }}
arrivals = "all_at_once"
senders = "0"
receivers = "1"
flows = 1
"""


@dataclass(frozen=True)
class Lossy:
    """A path and its losses."""

    transport: str
    probability: float
    """That a packet is lost."""
    round_trip_s: float
    losses: int
    """To measure over, about."""
    rate: str = "100Gbps"

    def measured(self, expected: float) -> tuple[float, float]:
        """Packets sent a round trip, and the share of them that was lost, in a run long enough for its losses if
        `expected` is right."""
        trips = self.losses / self.probability / expected
        bit_error_rate = -math.expm1(math.log1p(-self.probability) / (8 * PACKET))
        text = LOSSY.format(
            end=f"{round(trips * self.round_trip_s * 1e9)}ns",
            rate=self.rate,
            # There and back over two links; transmission is nothing beside it.
            propagation=f"{round(self.round_trip_s / 4 * 1e12)}ps",
            bit_error_rate=bit_error_rate,
        )
        link = setting.link(setting.run(text, {"transport": self.transport}), "host0", "switch0")
        return float(link["sent_packets"]) / trips, float(link["corrupted_packets"]) / float(link["sent_packets"])


def aimd_window(increase: float, decrease: float, probability: float) -> float:
    """Packets in flight on the average of time, of a window that adds `increase` a round trip and loses the share
    `decrease` at a loss, each packet being lost with a small `probability`.

    Its square Y grows by 2 a packet and falls to (1 - b)² Y, so before a loss Y = 2 a / p times Z, a sum of
    exponentials, each weighted (1 - b)² of the one before. Packets see that Y too, and a packet takes 1/W of a round
    trip: W = 1 / E[Y^-1/2] (Ott, Kemperman, Mathis, "The stationary behavior of ideal TCP congestion avoidance", 1996:
    1.31 / √p for a = 1, b = 1/2. Mathis, Semke, Mahdavi and Ott, 1997, have √(3/2) / √p = 1.22 / √p with a loss at
    every 1/p-th packet).
    """
    weights = (1 - decrease) ** (2 * np.arange(400))
    # E[Z^-1/2] = 1/Γ(1/2) ∫ s^-1/2 E[e^-sZ] ds, with s = u².
    u = np.linspace(0, 200, 200_001)
    transform = np.exp(-np.log1p(np.outer(u**2, weights[weights > 1e-12])).sum(axis=1))
    inverse_root = 2 / math.sqrt(math.pi) * float(((transform[1:] + transform[:-1]) / 2 * np.diff(u)).sum())
    return math.sqrt(2 * increase / probability) / inverse_root


Times = np.ndarray[Any, np.dtype[np.float64]]
Growth = Callable[[float, float, Times], Times]


def window_under_loss(growth: Growth, decrease: float, probability: float, first: float) -> float:
    """The same with what RFC 5681 and RFC 6675 make of a loss: a round trip until its sender knows, in which the window
    still grows and further losses are one with the first; then a round trip of recovery, in which it stands. And in
    whole packets, half a one less on the average.

    `growth(after, before, t)` is the window t round trips after recovery, from the windows after and before
    the cut. Drawn over 20,000 losses, so good to 0.5%.
    """
    random = np.random.default_rng(1)
    step = 0.05
    times = np.arange(0.0, 10 / (probability * first) + 5, step)
    before, after = first, first * (1 - decrease)
    sent = took = 0.0
    for _ in range(20_000):
        window = growth(after, before, np.maximum(times - 1.0, 0.0))
        total = np.cumsum(window) * step
        cut = int(np.searchsorted(total, random.exponential(1 / probability))) + round(1 / step)
        assert cut < len(times), "the window has time to grow until a loss"
        sent, took = sent + float(total[cut]), took + float(times[cut]) + step
        before, after = float(window[cut]), float(window[cut]) * (1 - decrease)
    return sent / took - 0.5


def aimd(increase: float) -> Growth:
    """A window that grows by this many packets in each round trip."""
    return lambda after, before, t: after + increase * t


def cubic(round_trip_s: float) -> Growth:
    """RFC 9438, section 4.2, figure 1, with section 4.3's friendly window and fast convergence (section 4.7): C =
    0.4, beta = 0.7."""

    last = {"top": 0.0}

    def growth(after: float, before: float, t: Times) -> Times:
        # Fast convergence: a loss below the last maximum is a sign of others.
        top = before if before >= last["top"] else before * (1 + 0.7) / 2
        last["top"] = top
        k = ((top - after) / 0.4) ** (1 / 3)
        friendly = after + 3 * (1 - 0.7) / (1 + 0.7) * t
        return np.asarray(np.maximum(0.4 * (t * round_trip_s - k) ** 3 + top, friendly))

    return growth


def response(scheme: str, lossy: Lossy, law: str, growth: Growth, decrease: float, first: float) -> Held:
    """A window under random loss: by the law at the share of packets that the run lost."""
    ours, lost = lossy.measured(first)
    theirs = window_under_loss(growth, decrease, lost, first)
    bucket = f"a flow, {lossy.probability:.2%} lost, {lossy.round_trip_s * 1e3:g} ms"
    return setting.held(scheme, law, [(bucket, "packets a round trip", ours, theirs, 0.05)])


def newreno() -> Held:
    """RFC 5681: a packet a round trip, half at a loss."""
    lossy = Lossy("newreno", 5e-4, 1e-3, 2_000)
    return response(
        "newreno",
        lossy,
        "the window of AIMD under random loss (Ott, Kemperman, Mathis 1996)",
        aimd(1),
        1 / 2,
        aimd_window(1, 1 / 2, 5e-4),
    )


def cubic_lossy() -> Held:
    """RFC 9438, where the cubic decides."""
    lossy = Lossy("cubic", 3e-4, 0.3, 1_500)
    # With a loss at every 1/p-th packet (RFC 9438, section 5.1, without fast convergence).
    first = (0.4 * (3 + 0.7) / (4 * (1 - 0.7))) ** 0.25 * (0.3 / 3e-4) ** 0.75
    return response("cubic", lossy, "RFC 9438's cubic under random loss", cubic(0.3), 1 - 0.7, first)


def cubic_friendly() -> Held:
    """RFC 9438, section 4.3, where its estimate of Reno decides: 0.53 packets a round trip until it is where it was,
    then one."""

    def growth(after: float, before: float, t: Times) -> Times:
        slow = 3 * (1 - 0.7) / (1 + 0.7)
        reached = (before - after) / slow
        return after + slow * np.minimum(t, reached) + np.maximum(t - reached, 0.0)

    lossy = Lossy("cubic", 5e-4, 1e-3, 2_000)
    return response(
        "cubic", lossy, "RFC 9438's friendly region under random loss", growth, 1 - 0.7, aimd_window(1, 1 / 2, 5e-4)
    )


def illinois() -> Held:
    """TCP-Illinois where there is no queue: alpha is alpha_max = 10, beta is beta_min = 1/8 (Liu, Basar, Srikant
    2006, section III)."""
    lossy = Lossy("illinois", 2e-4, 1e-3, 1_000)
    return response(
        "illinois",
        lossy,
        "the window of AIMD under random loss, alpha_max and beta_min",
        aimd(10),
        1 / 8,
        aimd_window(10, 1 / 8, 2e-4),
    )


# The last does not hold: RACK (RFC 8985) is absent, so that a repeat that is lost waits for the timeout, after which
# all is sent again. At 5% that is two repeats of each window of 833 packets.
BBR_LOSSES = (0.001, 0.01, 0.05)


def bbr(losses: Sequence[float] = BBR_LOSSES) -> Held:
    """BBR answers no loss: what is delivered is the link's rate less what is lost (Cardwell et al., ACM Queue 2016,
    figure 8: 100 Mbps, 100 ms)."""
    rows: list[Row] = []
    for lost in losses:
        bit_error_rate = -math.expm1(math.log1p(-lost) / (8 * PACKET))
        text = LOSSY.format(end="60s", rate="100Mbps", propagation="25ms", bit_error_rate=bit_error_rate)
        text = text.replace('interval = "0s"', 'interval = "1s", arrivals = ["host1"]')
        came = setting.run(text, {"transport": "bbr"}).tables["arrivals"].to_arrow().to_pandas()
        came = came[came["time_ps"] >= 6e12]
        mbps = float(came["bytes"].sum()) * 8 / 54 / 1e6
        rows.append(
            (f"a flow, {lost:.1%} lost", "delivered payload, Mbps", mbps, 100 * PAYLOAD / PACKET * (1 - lost), 0.03)
        )
    return setting.held("bbr", "the link's rate less what is lost (ACM Queue 2016, figure 8)", rows)


# n flows through one switch to one host, sampled every 20 us.
QUEUE = """
transport = "dctcp"
measure = {{ end = "{end}", interval = "{interval}" }}
fabric.star = {{ hosts = {hosts}, rate = "{rate}", propagation = "{propagation}", switch_delay = "0s" }}
switch.buffer.per_port.bytes = "20MB"
{settings}
[[traffic]]
sizes = {{ constant = "1GB" }}
arrivals = "all_at_once"
pattern = {{ incast = {{ degree = {flows} }} }}
receivers = "0"
flows = {flows}
"""


def queue_of(
    transport: Any, flows: int, rate: str, propagation: str, end: str, settings: str = "", interval: str = "20us"
) -> cw.Result:
    """Long flows from the start to one host."""
    text = QUEUE.format(
        end=end, interval=interval, hosts=flows + 1, flows=flows, rate=rate, propagation=propagation, settings=settings
    )
    return setting.run(text, {"transport": transport})


def full(result: cw.Result, links: int, from_ms: float) -> float:
    """Share of the receiver's link that carries data, of a star with the given number of links; acknowledgements of 40
    B use the others."""
    shares = setting.sampled(result, "utilisation", "utilisation", from_ms, tier="to_host")
    return float(shares.mean()) * links / (1 + setting.CONTROL / PACKET)


def dctcp() -> Held:
    """DCTCP's sawtooth: Alizadeh et al., SIGCOMM 2010, section 3.3, of two flows in step on 10 Gbps and 100 us (its
    figure 12)."""
    flows, product, threshold = 2, 10e9 * 100e-6 / 8 / PACKET, 40
    # W* fills path and threshold; alpha from (6), the amplitude A = N D from (7) and (8).
    window = (product + threshold) / flows
    alphas = np.linspace(1e-4, 1, 200_000)
    alpha = float(alphas[np.argmin(np.abs(alphas**2 * (1 - alphas / 4) - (2 * window + 1) / (window + 1) ** 2))])
    amplitude = flows * (window + 1) * alpha / 2
    most = threshold + flows
    marking = f'switch.marking = {{ step = {{ threshold = "{threshold * PACKET}B" }} }}'
    queue = (
        setting.sampled(queue_of("dctcp", flows, "10Gbps", "25us", "100ms", marking), "queues", "longest_bytes", 30.0)
        / PACKET
    )
    bucket = "2 flows, K = 40 packets"
    rows: list[Row] = [
        (bucket, "longest queue, packets", float(queue.quantile(0.99)), most, 0.1),
        (bucket, "mean queue, packets", float(queue.mean()), most - amplitude / 2, 0.1),
        (bucket, "amplitude, packets", float(queue.quantile(0.99) - queue.quantile(0.01)), amplitude, 0.2),
    ]
    # Equation (13): the queue never runs empty if K > C RTT / 7.
    least = math.ceil(product / 7)
    marking = f'switch.marking = {{ step = {{ threshold = "{least * PACKET}B" }} }}'
    rows.append(
        (
            f"2 flows, K = C RTT / 7 = {least} packets",
            "link used",
            full(queue_of("dctcp", 2, "10Gbps", "25us", "100ms", marking), 3, 30.0),
            1.0,
            0.01,
        )
    )
    return setting.held("dctcp", "its fluid model (SIGCOMM 2010, section 3.3)", rows)


def swift() -> Held:
    """Swift's queue is what its target leaves beyond the unloaded round trip (Kumar et al., SIGCOMM 2020, sections 3.2
    and 3.5).

    A decrease of beta (delay - target) / delay at most once a round trip, beta = 0.8, brings the delay down to the
    target and not below, and nothing grows above it. With flow scaling the target is higher by alpha / sqrt(cwnd) +
    beta, where cwnd is a flow's share of it.
    """
    rows: list[Row] = []
    # A law of many packets a window: where 16 flows have 3.5 each, every round trip of growth adds a third, and the
    # queue stands 8% higher.
    for flows, rate_gbps, scaling_us in ((4, 10, 0.0), (16, 10, 0.0), (4, 10, 60.0), (16, 100, 60.0)):
        rtt_us = 4 * 2 + (PACKET + setting.CONTROL) * 8 * 2 / rate_gbps / 1e3
        target = 60.0
        if scaling_us:
            # fs_min_cwnd is 0.1, fs_max_cwnd 100.
            alpha = scaling_us / (1 / math.sqrt(0.1) - 1 / math.sqrt(100))
            for _ in range(200):
                window = rate_gbps * 1e3 * target / 8 / PACKET / flows
                target = 60.0 + min(max(alpha / math.sqrt(window) - alpha / math.sqrt(100), 0.0), scaling_us)
        control = {"base_target": "60us", "hop_target": "0s", "fs_range": f"{scaling_us:g}us"}
        result = queue_of(
            {"swift": {"control": control}}, flows, f"{rate_gbps}Gbps", "2us", "60ms" if rate_gbps == 10 else "20ms"
        )
        queue = (
            float(setting.sampled(result, "queues", "longest_bytes", 30.0 if rate_gbps == 10 else 10.0).mean()) / 1e3
        )
        bucket = f"{flows} flows, {rate_gbps} Gbps, target {'scaled by windows' if scaling_us else '60 us'}"
        rows.append((bucket, "mean queue, KB", queue, rate_gbps / 8 * (target - rtt_us), 0.05))
    return setting.held("swift", "its target delay (SIGCOMM 2020, sections 3.2 and 3.5)", rows)
