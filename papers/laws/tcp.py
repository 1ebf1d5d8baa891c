"""Laws of TCP's congestion controls: windows under random loss, DCTCP's sawtooth, Swift's target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from figures import Held

from . import setting
from .setting import PACKET, PAYLOAD, Row

# One flow through a star whose links damage so many bits that a packet of 1,500 B is lost with the probability named, on a path that no window
# fills. A lost acknowledgement, 40 times as rare, takes nothing: the next says the same.
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

    def packets_a_round_trip(self, expected: float) -> float:
        """Payload delivered in packets, a round trip, in a run as long as `expected` needs for its losses."""
        end_s = self.losses / self.probability / expected * self.round_trip_s
        # The first tenth is slow start and what follows from it.
        bit_error_rate = -math.expm1(math.log1p(-self.probability) / (8 * PACKET))
        # Twice two links; transmission is some ns.
        propagation_ps = round(self.round_trip_s / 4 * 1e12)

        def sent(share: float) -> float:
            text = LOSSY.format(
                end=f"{round(end_s * share * 1e9)}ns", rate=self.rate, propagation=f"{propagation_ps}ps", bit_error_rate=bit_error_rate
            )
            return float(setting.link(setting.run(text, {"transport": self.transport}), "host0", "switch0")["sent_packets"])

        return (sent(1.0) - sent(0.1)) / (0.9 * end_s / self.round_trip_s)


def aimd_window(increase: float, decrease: float, probability: float) -> float:
    """Packets in flight on the average of time, of a window that adds `increase` a round trip and loses the share `decrease` at a loss, each
    packet being lost with a small `probability`.

    Its square Y grows by 2 a packet and falls to (1 - b)² Y, so before a loss Y = 2 a / p times Z, a sum of exponentials, each weighted
    (1 - b)² of the one before. Packets see that Y too, and a packet takes 1/W of a round trip: W = 1 / E[Y^-1/2] (Ott, Kemperman,
    Mathis, "The stationary behavior of ideal TCP congestion avoidance", 1996: 1.31 / √p for a = 1, b = 1/2. Mathis, Semke, Mahdavi
    and Ott, 1997, have √(3/2) / √p = 1.22 / √p with a loss at every 1/p-th packet).
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
    """The same with what RFC 5681 and RFC 6675 make of a loss: a round trip until its sender knows, in which the window still grows and further
    losses are one with the first; then a round trip of recovery, in which it stands. And in whole packets, half a one less on the average.

    `growth(after, before, t)` is the window at so many round trips after recovery, from the windows after and before the cut. Drawn
    over 20,000 losses, so good to 0.5%.
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
    """So many packets a round trip."""
    return lambda after, before, t: after + increase * t


def cubic(round_trip_s: float) -> Growth:
    """RFC 9438, section 4.2, figure 1, with section 4.3's friendly window and fast convergence (section 4.7): C = 0.4, beta = 0.7."""

    last = {"top": 0.0}

    def growth(after: float, before: float, t: Times) -> Times:
        # Fast convergence: a loss below the last maximum is a sign of others.
        top = before if before >= last["top"] else before * (1 + 0.7) / 2
        last["top"] = top
        k = ((top - after) / 0.4) ** (1 / 3)
        friendly = after + 3 * (1 - 0.7) / (1 + 0.7) * t
        return np.maximum(0.4 * (t * round_trip_s - k) ** 3 + top, friendly)

    return growth
