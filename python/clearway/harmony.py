"""Results of Harmony's paper (NSDI 2024, section 3.3): bounds of queues and delays, and how many slots it fills.

`switches` is #H, the switches on the longest path; `k` is K, the virtual links of each link.

    >>> from clearway import harmony
    >>> harmony.queueing_delay_max_us(k=8, switches=5, rate_gbps=100)  # the paper's fat-tree
    12.6
"""

from __future__ import annotations

from typing import Literal

import pandas as pd

from clearway import _core

__all__ = [
    "adversary",
    "allocation",
    "k_star",
    "message_delay_max_us",
    "queue_max_bytes",
    "queueing_delay_max_us",
    "slot_efficiency",
]


def queue_max_bytes(k: int, switches: int, packet_bytes: int = 1500) -> int:
    """Theorem 3.1: the most bytes that any packet finds queued before it at any switch.

    >>> queue_max_bytes(k=8, switches=3)
    31500
    """
    return _core.harmony_queue_max(switches, k, packet_bytes)


def queueing_delay_max_us(k: int, switches: int, rate_gbps: float, packet_bytes: int = 1500) -> float:
    """Equation 1: the longest total wait of a packet in all queues, if the slowest link has `rate_gbps`.

    >>> queueing_delay_max_us(k=8, switches=5, rate_gbps=400)
    3.15
    """
    return _core.harmony_queueing_delay_max(switches, k, packet_bytes, _bps(rate_gbps)) / 1e6


def k_star(buffer_bytes: int, ports: int, switches: int = 5, packet_bytes: int = 1500) -> int:
    """Most virtual links with which a switch with this buffer never loses a packet to congestion.

    >>> k_star(22_000_000, ports=32), k_star(113_000_000, ports=64)  # Tomahawk, Tomahawk-4
    (91, 235)
    """
    return _core.harmony_k_star(buffer_bytes, ports, switches, packet_bytes)


def slot_efficiency(k: int, cores: int) -> float:
    """Theorem 3.2's f(K, C): expected slots that Harmony fills, as a share of those that an ideal arbiter fills (Figure
    4).

    >>> [round(slot_efficiency(k, cores=32), 3) for k in (1, 8, 64)]
    [0.638, 0.863, 0.951]
    """
    return _core.harmony_slot_efficiency(k, cores)


def message_delay_max_us(
    wire_bytes: int,
    *,
    k: int,
    switches: int,
    rate_gbps: float,
    unloaded_rtt_us: float,
    slots: int = 1,
    packet_bytes: int = 1500,
    control_share: float = 0.01,
    at_each_hop_us: float = 0.0,
    service: Literal["fifo", "round_robin"] | None = None,
) -> float:
    """The longest time between a sender's first use of a rsvp and its receipt of the receiver's `complete`.

    `wire_bytes` includes headers. `slots` is the number of slots that the message has from its first packet to its
    last, each a K-th of the link less `control_share`. `at_each_hop_us` is the further delay that a packet may meet at
    a transmitter, such as one best-effort packet. The bound is the time to send the message in these slots, the
    unloaded round trip, and in both directions the bound on queueing and the delay at each hop. The bound on queueing
    is equation 1. With `service` it is what is proven: (2^#H - 1) (K - 1) packets for links that serve packets in the
    order of arrival, #H (K - 1) for links that serve virtual links in turn.

    >>> message_delay_max_us(132_000, k=8, slots=8, switches=3, rate_gbps=100, unloaded_rtt_us=4.6, control_share=0)
    25.24
    >>> message_delay_max_us(
    ...     132_000, k=8, slots=8, switches=3, rate_gbps=100, unloaded_rtt_us=4.6, control_share=0,
    ...     service="round_robin",
    ... )
    20.2
    """
    if k < 1:
        raise ValueError(f"k={k}: must be at least 1, since a link has at least one virtual link")
    slot_bps = round((1 - control_share) * rate_gbps * 1e9 / k)
    queueing = _core.harmony_queueing_delay_max(switches, k, packet_bytes, _bps(rate_gbps))
    if service is not None:
        packets = (switches if service == "round_robin" else 2**switches - 1) * (k - 1)
        queueing = round(packets * packet_bytes * 8_000 / rate_gbps)
    rtt, hop = _ps(unloaded_rtt_us), _ps(at_each_hop_us)
    bound = _core.harmony_message_delay_max(wire_bytes, packet_bytes, slots, slot_bps, switches, rtt, queueing, hop)
    return bound / 1e6


def allocation(
    k: int, cores: int = 32, *, leaves: int | None = None, tries: int = 1, trials: int = 100, seed: int = 1
) -> pd.DataFrame:
    """The share of filled slots when all are asked for, by simulation: mean and standard error after each try.

    Without `leaves` this is Theorem 3.2's model, with one try: each rsvp draws a core, and rsvps beyond K at a core are
    refused. With `leaves` it is the protocol's rule on a leaf-spine with as many hosts at a leaf as cores: a leaf draws
    among its free virtual links, and a refused rsvp tries again, up to `tries` times in all.

    >>> allocation(k=8, leaves=64, tries=3, trials=10).round(2)
         filled  standard error
    try
    1      0.86             0.0
    2      0.91             0.0
    3      0.94             0.0
    """
    filled = _core.harmony_allocation(k, cores, leaves, tries, trials, seed)
    index = pd.RangeIndex(1, len(filled) + 1, name="try")
    return pd.DataFrame(filled, columns=["filled", "standard error"], index=index)


def adversary(k: int, switches: int) -> pd.DataFrame:
    """The longest queue, in packets, that an adversary achieves at each switch of a path, with Theorem 3.1 and the
    proven bound.

    The theorem is tight at the first two switches. From the third on, packets can meet so that more wait than it says.

    >>> adversary(k=8, switches=3)
            found  theorem 3.1  proven
    switch
    1           7            7       7
    2          14           14      14
    3          27           21      28
    """
    found = _core.harmony_adversary(k, switches)
    index = pd.RangeIndex(1, len(found) + 1, name="switch")
    table = pd.DataFrame(found, columns=["found", "proven"], index=index)
    table.insert(1, "theorem 3.1", [queue_max_bytes(k, switch, packet_bytes=1) for switch in index])
    return table


def _bps(gbps: float) -> int:
    return round(gbps * 1e9)


def _ps(us: float) -> int:
    return round(us * 1e6)
