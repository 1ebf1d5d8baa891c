"""Laws of flow control between neighbours: PFC's threshold and headroom, max-min shares of queues by flow, and who
is not held back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import clearway as cw
from clearway.papers.figures import Held

from . import setting
from .setting import BYTE_NS, PACKET, PAYLOAD, Row

# One host sends at 100 Gbps through a link of 1 Gbps, from a switch with 300 KB.
PAUSED = """
transport = { udp = { patience = "1s" } }
flow_control = "pfc"
measure.interval = "0s"
switch.buffer.shared.bytes = "300KB"
fabric.dumbbell = { hosts_per_side = 1, bottleneck_rate = "1Gbps" }
[[traffic]]
sizes = { constant = "14600KB" }
arrivals = "all_at_once"
senders = "0"
receivers = "1"
flows = 1
"""


def pfc() -> Held:
    """PFC of one paused port (IEEE 802.1Qbb, annex O for headroom; Choudhury and Hahne 1998 for the threshold).

    A pause is sent when the port's count is above alpha times what is free, alpha = 2: so 2/3 of the memory without
    headroom. Headroom is what may still come: a pause frame of 64 B and 200 ns of cable there, 200 ns and 450 ns of the
    switch back, a packet that each end has begun.
    """
    headroom = (200 + 200 + 450) / BYTE_NS + 2 * PACKET + 64
    threshold = 2 / 3 * (300e3 - headroom)
    # The packet that passes the threshold and the one begun at the host are half there on the average; in that time the
    # link out takes 1%.
    beyond = ((200 + 200 + 450) / BYTE_NS + 64) * 0.99 + PACKET
    result = setting.run(PAUSED)
    queue = float(setting.link(result, "left", "right")["queued_bytes_max"])
    rows: list[Row] = [
        ("a port 100 times too fast", "longest queue, KB", queue / 1e3, (threshold + beyond) / 1e3, 0.01)
    ]
    # Nothing is lost, and the host is held back but for the time that its own bytes take: what is in the queue when it
    # is done goes on alone.
    wire = 14.6e6 / PAYLOAD * PACKET
    paused = (wire - threshold) * BYTE_NS * 100 - wire * BYTE_NS
    rows.append(
        (
            "a port 100 times too fast",
            "time paused, ms",
            float(setting.link(result, "host0", "left")["paused_ps"]) / 1e9,
            paused / 1e6,
            0.01,
        )
    )
    rows.append(
        ("a port 100 times too fast", "bytes delivered of sent", float(result.flows["bytes"][0]) / 14.6e6, 1.0, 0.0)
    )
    return setting.held("pfc", "threshold and headroom by arithmetic (IEEE 802.1Qbb)", rows)


# Three racks of four hosts under one spine, all links 100 Gbps. Some flows are held at 33 Gbps, so that others have 50,
# and one has 100. Links are long beside a packet, as a threshold of less than one keeps no queue busy.
NETWORK = """
transport = {{ udp = {{ patience = "1s" }} }}
flow_control = {flow_control}
measure.interval = "0s"
switch.buffer.shared.bytes = "20MB"
fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 1, spine_rate = "100Gbps", propagation = "2us" }}
"""
FLOW = """
[[traffic]]
name = "{name}"
sizes = {{ constant = "{bytes}B" }}
arrivals = "all_at_once"
senders = "{source}"
receivers = "{target}"
flows = 1
"""
FLOWS = ((0, 4), (1, 8), (9, 5), (10, 6), (11, 2), (5, 9), (1, 3), (6, 7))


def max_min(capacity: Mapping[Any, float], paths: Sequence[Sequence[Any]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): all rates grow until a link is
    full, whose flows then stay."""
    rates, left, open_ = np.zeros(len(paths)), dict(capacity), set(range(len(paths)))
    while open_:
        users = {link: [flow for flow in open_ if link in paths[flow]] for link in left}
        step = min(left[link] / len(flows) for link, flows in users.items() if flows)
        for flow in open_:
            rates[flow] += step
        for link, flows in users.items():
            left[link] -= step * len(flows)
        open_ -= {flow for link, flows in users.items() if flows and left[link] < 1e-9 for flow in flows}
    return rates


def fair_rates() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of those flows, in Gbps on the wire."""
    paths = []
    for source, target in FLOWS:
        racks = [] if source // 4 == target // 4 else [("up", source // 4), ("down", target // 4)]
        paths.append([("from", source), *racks, ("to", target)])
    return max_min({link: 100.0 for path in paths for link in path}, paths)


def shares(flow_control: str) -> list[Row]:
    """Each flow's rate beside the max-min fair one: messages as long as 3 ms at that rate end together."""
    fair = fair_rates()
    sizes = [int(rate / 8 * 3e6 / PACKET) * PAYLOAD for rate in fair]
    flows = "".join(
        FLOW.format(name=at, bytes=size, source=source, target=target)
        for at, ((source, target), size) in enumerate(zip(FLOWS, sizes))
    )
    ends = setting.delivered_us(setting.run(NETWORK.format(flow_control=flow_control) + flows))
    rates = np.array(sizes) / PAYLOAD * PACKET * 8 / ends / 1e3
    return [
        (f"host {source} to {target}", "Gbps", float(rate), float(due), 0.03)
        for (source, target), rate, due in zip(FLOWS, rates, fair)
    ]


# Two racks under one spine. Hosts 4, 5 and 6 send to host 0 for 1.2 ms; host 7, later, to host 1, over links that are
# not full.
VICTIM = """
transport = {{ udp = {{ patience = "1s" }} }}
flow_control = {flow_control}
measure.interval = "0s"
switch.buffer.shared.bytes = "2MB"
fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 1, spine_rate = "400Gbps" }}
[[traffic]]
name = "incast"
sizes = {{ constant = "10MB" }}
arrivals = "all_at_once"
senders = "4-6"
receivers = "0"
[[traffic]]
name = "victim"
sizes = {{ constant = "2MB" }}
arrivals = "all_at_once"
senders = "7"
receivers = "1"
start = "200us"
flows = 1
"""


def victim(flow_control: str) -> Row:
    """A flow whose links are not full takes what it takes alone where flow control holds back only flows that meet a
    full one."""
    result = setting.run(VICTIM.format(flow_control=flow_control))
    slowdown = float(np.asarray(result.flows["slowdown"])[np.asarray(result.flows["dst"]) == 1][0])
    return ("a flow beside an incast", "FCT over that alone", slowdown, 1.0, 0.03)


def per_flow_queues() -> Held:
    """One queue per flow with back-pressure is max-min fair (Hahne 1991; R2C2, section 5.2, takes it for the ideal)."""
    return setting.held(
        "per_flow_queues",
        "max-min fair shares by progressive filling",
        [*shares('"per_flow_queues"'), victim('"per_flow_queues"')],
    )


# n hosts send to one, over links of 4 us.
INCAST = """
transport = {{ udp = {{ patience = "1s" }} }}
flow_control = "bfc"
measure.interval = "0s"
switch.buffer.shared.bytes = "20MB"
fabric.star = {{ hosts = {hosts}, propagation = "{propagation}" }}
[[traffic]]
sizes = {{ constant = "{bytes}B" }}
arrivals = "all_at_once"
senders = "1-{flows}"
receivers = "0"
"""


def bfc_incast(flows: int, propagation: str) -> cw.Result:
    """20,000 packets through one link."""
    return setting.run(
        INCAST.format(hosts=flows + 1, flows=flows, propagation=propagation, bytes=20_000 // flows * PAYLOAD)
    )


def bfc() -> Held:
    """BFC pauses a queue that is longer than HRTT mu / N_active (Goyal et al., NSDI 2022, section 3.3).

    Of n flows that begin together a queue passes that by half a packet, and then grows at what comes and does not
    leave, 1 - 1/n of the rate, for the round trip of the link and the rest of a packet that has begun.
    """
    rows: list[Row] = []
    round_trip_ns = 2 * 4000 + 450
    for flows in (2, 4, 8):
        queue = float(setting.link(bfc_incast(flows, "4us"), "switch0", "host0")["queued_bytes_max"])
        reaction = round_trip_ns + (64 + PACKET / 2) * BYTE_NS
        each = round_trip_ns / BYTE_NS / flows + PACKET / 2 + reaction / BYTE_NS * (1 - 1 / flows)
        rows.append((f"{flows} flows from the start", "longest queue, KB", queue / 1e3, each * flows / 1e3, 0.03))
    return setting.held(
        "bfc", "its threshold and a round trip of the link (NSDI 2022, section 3.3)", [*rows, victim('"bfc"')]
    )


def bfc_full() -> Held:
    """The same threshold is what a queue sends until its neighbour has heard that it may go on: the link is never idle,
    if all queues stay in step.

    They do not: when one of two is empty first, the other sends at the whole rate, and is empty half a round trip
    before anything comes. So this does not hold, here by a sixth.
    """
    ends = setting.delivered_us(bfc_incast(2, "200ns"))
    return setting.held(
        "bfc",
        "a link that is never idle",
        [("2 flows over one link", "link used", 20_000 * PACKET * BYTE_NS / 1e3 / float(ends.max()), 1.0, 0.05)],
    )


# One host sends 3,000 packets to another across two switches, with credits for the given number of packets.
CREDITS = """
transport = {{ udp = {{ patience = "1s" }} }}
measure.interval = "0s"
flow_control = {{ cbfc = {{ credits = "{credits}B" }} }}
switch.buffer.shared.bytes = "2MB"
fabric.dumbbell.hosts_per_side = 1
[[traffic]]
sizes = {{ constant = "{bytes}B" }}
arrivals = "all_at_once"
senders = "0"
receivers = "1"
flows = 1
"""


def cbfc() -> Held:
    """Credits for N packets let a link carry N packets in the time in which a credit comes back, and its rate at most
    (Kung, Blackwell and Chapman, SIGCOMM 1994, section 2).

    A credit comes back after the packet's transmission, 200 ns of cable and the switch's 450 ns, the 8 bytes that say
    that it has left, and the same way back. The last packet still has two switches and three links before it.
    """
    packets, credit = 3_000, 64
    loop = PACKET * BYTE_NS + 650 + 8 * BYTE_NS + 650
    rows: list[Row] = []
    for window in (1, 2, 4, 8, 11, 12, 20):
        text = CREDITS.format(credits=window * -(-PACKET // credit) * credit, bytes=packets * PAYLOAD)
        took = float(setting.delivered_us(setting.run(text))[0])
        due = packets * max(loop / window, PACKET * BYTE_NS) + 2 * (650 + PACKET * BYTE_NS) + 200
        rows.append((f"credits for {window} packets", "FCT, us", took, due / 1e3, 0.01))
    return setting.held("cbfc", "credits by arithmetic: N packets in a round trip of the link", rows)


def congestion_isolation() -> Held:
    """Congestion Isolation takes flows that meet a long queue out of others' way (IEEE 802.1Qcz, clause 49): the
    others are not held back."""
    return setting.held(
        "congestion_isolation",
        "what isn't congested goes as if alone (IEEE 802.1Qcz)",
        [victim('"congestion_isolation"')],
    )
