"""Laws of TCP's congestion controls: windows under random loss, DCTCP's sawtooth, Swift's target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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
