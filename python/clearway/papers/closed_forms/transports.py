"""Laws that hold for any transport: a packet alone, a message alone, equal messages that share a link, one packet each
from many hosts.

Alone, a packet is stored and forwarded by each switch. A long message goes at line rate, less what its transport keeps
free. Messages over one link are there together where the transport shares it evenly, and one after the other where it
serves the shortest or the oldest first; either way the last is there when the link has carried all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers.figures import Held

from . import setting
from .setting import BYTE_NS, CONTROL, PACKET, PAYLOAD, SLOT_US, Row

LAW = "arithmetic: store and forward, and what the transport asks or keeps free"

# The default leaf-spine: four links of 200 ns, three switches of 450 ns, 100 Gbps to hosts and 400 Gbps to spines. And
# a star.
FLIGHT_US = (4 * 200 + 3 * 450) / 1e3
STAR_FLIGHT_US = (2 * 200 + 450) / 1e3


def way_us(size: int) -> float:
    """A packet from rack to rack: in whole over two links of 100 Gbps and two of 400."""
    return FLIGHT_US + size * BYTE_NS * (2 + 2 / 4) / 1e3


def star_way_us(size: int) -> float:
    """A packet through one switch."""
    return STAR_FLIGHT_US + size * BYTE_NS * 2 / 1e3


# Fastpass (SIGCOMM 2014): its arbiter works by slots, here of a packet and 1% for control; what it gives begins at the
# earliest when the allocation has come, for which it leaves the way and, as docs/schemes/fastpass.md says, eight slots
# and one a switch.
FASTPASS_SLOT_US = SLOT_US * 1.01


def fastpass_us(to_arbiter: float, from_arbiter: float, switches: int) -> float:
    """Request, half a slot until the next decision on the average, and the lead of the allocation."""
    return to_arbiter + FASTPASS_SLOT_US * (0.5 + 8 + switches) + from_arbiter


# dcPIM (SIGCOMM 2022, sections 3.3 and 3.4): a phase is 2 r + 1 stages of beta cRTT / 2, r = 4 and beta = 1.3. Messages
# above a bandwidth-delay product have data in the phase after the one that matches them.
def phase_us(control_round_trip: float) -> float:
    """How long a phase of dcPIM is: its stages, by a control round trip."""
    return (2 * 4 + 1) * 1.3 * control_round_trip / 2


@dataclass(frozen=True)
class Expected:
    """A transport's expected behaviour; times in us."""

    asks: float = 0.0
    """Before a packet alone on the leaf-spine leaves."""
    asks_long: float = 0.0
    """The time before a long message's first packet leaves, or that it loses at first; likewise."""
    slot: float = SLOT_US
    """Of a message of full packets."""
    payload: int = PAYLOAD
    """Of a full packet."""
    tail: int = 0
    """Bytes of the wire that the last bytes of a message of 1,460 B take after its first packet."""
    ramp: float = 1.0
    """How much longer a lone message takes than `slot` for each packet."""
    in_order: bool = False
    """Whether equal messages are served one after the other."""
    even: bool = True
    """Whether messages over one link are known to be served as `in_order` says."""
    full: bool = True
    """Whether the link is known to be full while messages share it."""
    burst: bool = True
    """Whether packets of many hosts go at once and none is lost at the receiver's switch."""
    keys: tuple[tuple[str, Any], ...] = ()
    """The keys that the scenario sets."""


# Harmony (NSDI 2024, section 3.2): a slot has 0.99 B / K, K = 8. Additional slots are for a BDP each, and reservations
# are not pipelined: a slot's first packet comes a control packet's and a data packet's way after its reservation has
# been sent, the others a period apart, and then it is reserved anew. So one slot of eight is always used, and seven but
# for a round trip each BDP.
BDP_US = way_us(PACKET) + way_us(CONTROL)
_PERIOD_US = 8 * SLOT_US / 0.99
_BDP_PACKETS = math.ceil(BDP_US / (BYTE_NS / 1e3) / PAYLOAD)
HARMONY_RAMP = 8 / (1 + 7 * _BDP_PACKETS * _PERIOD_US / (BDP_US + (_BDP_PACKETS - 1) * _PERIOD_US))
_RESERVATION_US = 2 * way_us(CONTROL)
_PATIENT = "delta_admission"

# HPCC (SIGCOMM 2019, section 3.2): flows reduce to eta = 95% of a link and add W_AI each: R = R eta / U + AI rests at U
# = eta + n AI / C. A data packet carries 42 B of telemetry inside the MTU.
HPCC_PAYLOAD = PAYLOAD - 42
# Section 3.3: W_AI = W_init (1 - eta) / N keeps n <= N flows below the link's rate. Here N = 2 n. The default, for 100
# flows, is too little for 8: which of a neighbour's paced packets a flow's telemetry is behind moves its rate by more,
# and one keeps 16% for 12.5%.
HPCC_STEP_GBPS = 100 * (1 - 0.95) / (2 * 8)


def hpcc_slot(flows: int) -> float:
    """The time of a packet where HPCC's flows leave of the link what they do."""
    step_gbps = 0.05 if flows == 1 else HPCC_STEP_GBPS
    return SLOT_US / (0.95 + flows * step_gbps / 100)


# Swift (SIGCOMM 2020) has no slow start: from 10 packets it adds one a round trip until the window fills the path, and
# what is missing from the path until then is lost.
_PATH = BDP_US / SLOT_US
SWIFT_LOSES_US = (_PATH - 10) ** 2 / 2 * SLOT_US


def _slow_start_us() -> float:
    """The share of the path that slow start from 10 packets leaves: a window of w takes w of each round trip (RFC 5681,
    RFC
    6928)."""
    window, lost = 10.0, 0.0
    while window < _PATH:
        lost, window = lost + _PATH - window, 2 * window
    return lost * SLOT_US


SLOW_START_US = _slow_start_us()
_TCP = Expected(asks_long=SLOW_START_US)
_SRPT = Expected(in_order=True)


def expected(name: str, flows: int = 1, star: bool = False) -> Expected:
    """By the paper or specification of each; `flows` share a link."""
    way = star_way_us if star else way_us
    if name in ("newreno", "cubic", "dctcp", "bbr"):
        return _TCP
    if name == "linux":
        # Some flows lose more than others when slow start ends, and CUBIC takes longer than these messages to even it
        # out.
        return Expected(asks_long=SLOW_START_US, even=False)
    if name == "illinois":
        # Its first losses are all at once, and some flows wait for timers meanwhile.
        return Expected(asks_long=SLOW_START_US, even=False)
    if name == "swift":
        return Expected(asks_long=SWIFT_LOSES_US)
    if name == "hpcc":
        return Expected(
            slot=hpcc_slot(flows), payload=HPCC_PAYLOAD, tail=PACKET - HPCC_PAYLOAD + PAYLOAD - HPCC_PAYLOAD
        )
    if name == "dcqcn":
        # Its shares are even at rest, which is a law of its own (`rdma.py`).
        return Expected(even=False, full=False)
    if name == "timely":
        return Expected(full=False)
    if name in ("pfabric", "homa", "phost"):
        return _SRPT
    if name == "homa_aeolus":
        return Expected(in_order=True, burst=False)
    if name == "ndp":
        return Expected(burst=False)
    if name == "falcon":
        # A window that fills the path from the first packet on; by default it begins with 32 packets, and holding
        # acknowledgements for 8 us adds to each round trip at first (docs/schemes/falcon.md).
        return Expected(keys=(("initial_fcwnd", 256),) if flows == 1 else ())
    if name == "uet":
        # A window shrinks with each packet of its own that is trimmed, and which are is left to chance: in its authors'
        # program, too, an incast of 16 equal messages ends between 1.27 and 2.48 ms (docs/schemes/uet.md).
        return Expected(even=False, burst=False)
    if name == "dcpim":
        # The first round of a phase is by remaining size (section 3.5).
        return Expected(asks_long=phase_us(2 * way(CONTROL)), in_order=True)
    if name == "r2c2":
        # Rates leave 5% of each link (SIGCOMM 2015, section 3.3.2); a packet has 35 B of headers (figure 6).
        return Expected(slot=(PAYLOAD + 35) * BYTE_NS / 1e3 / 0.95)
    if name == "harmony":
        return Expected(
            asks=_RESERVATION_US,
            asks_long=_RESERVATION_US,
            slot=SLOT_US / 0.99,
            ramp=HARMONY_RAMP,
            burst=False,
            keys=((_PATIENT, "1s"),),
        )
    if name == "rsvp":
        return Expected(
            asks=_RESERVATION_US,
            asks_long=_RESERVATION_US,
            slot=SLOT_US / 0.99,
            in_order=True,
            burst=False,
            keys=((_PATIENT, "1s"),),
        )
    if name == "fastpass":
        # Sender and arbiter are in one rack.
        asks = fastpass_us(star_way_us(CONTROL), way_us(CONTROL), 3)
        return Expected(
            asks=asks, asks_long=asks, slot=FASTPASS_SLOT_US, in_order=True, burst=False, keys=((_PATIENT, "1s"),)
        )
    return Expected()


LONE = """
transport = "udp"
measure.interval = "0s"
[[traffic]]
sizes = { constant = "1460B" }
arrivals = "all_at_once"
senders = "5"
receivers = "143"
flows = 1
"""

# Host 0 has Fastpass's arbiter.
STAR = """
transport = "udp"
measure.interval = "0s"
fabric.star = { hosts = 18 }
switch.buffer.per_port.bytes = "200KB"
"""


def _transport(name: str, of: Expected) -> Any:
    return {name: dict(of.keys)} if of.keys else name


def lone_packet(name: str) -> Row:
    """A packet alone from rack to rack."""
    of = expected(name)
    result = setting.run(LONE, {"transport": _transport(name, of)})
    theirs = of.asks + way_us(PACKET) + of.tail * BYTE_NS / 1e3
    return ("a packet alone", "delivery, us", float(setting.delivered_us(result)[0]), theirs, 0.01)


# 2.4 ms at line rate.
LONG_PACKETS = 20_000


def lone_message(name: str) -> Row:
    """A long message alone from rack to rack."""
    of = expected(name)
    size = LONG_PACKETS * of.payload
    result = setting.run(LONE, {"transport": _transport(name, of), "traffic.0.sizes": {"constant": f"{size}B"}})
    took = of.asks_long + way_us(PACKET) + (LONG_PACKETS - 1) * of.slot * of.ramp
    ours = size * 8 / float(setting.delivered_us(result)[0]) / 1e3
    return ("a message of 20,000 packets alone", "goodput, Gbps", ours, size * 8 / took / 1e3, 0.02)


# As many as Harmony has slots, so that each has one. Where the shortest goes first, each is 1% longer than the one
# before: no two tie.
SHARING = 8
MESSAGE = """
[[traffic]]
name = "{name}"
sizes = {{ constant = "{bytes}B" }}
arrivals = "all_at_once"
senders = "{sender}"
receivers = "1"
flows = 1
"""
SHARED_PACKETS = 5_000
# Time for flows to become even, where that is what a control does slowly; deep buffers for those that lose nothing or
# turn at full ones.
PACKETS = {"bbr": 20_000, "hpcc": 20_000, "illinois": 20_000}
BUFFERS = {"rdma": "20MB", "timely": "20MB", "hpcc": "20MB", "r2c2": "20MB", "illinois": "1MB", "falcon": "1MB"}
SETTINGS: dict[str, Any] = {
    # RFC 3168 in place of losses, whose timeouts take a millisecond each of a run of five.
    "newreno": {"control": {"ecn": True}},
    "cubic": {"control": {"ecn": True}},
    "hpcc": {"control": {"additive_increase": f"{HPCC_STEP_GBPS * 1e3:g}Mbps"}},
    # PROBE_RTT makes flows agree on the round trip; its times are the wide area's.
    "bbr": {"control": {"rtprop_filter_len": "1ms", "probe_rtt_duration": "20us"}},
    # As in its authors' program: free tokens of eight long messages are a queue that never drains.
    "phost": {"free_tokens_for": "short_flows"},
    # Until its nodes compute for the first time each sends as if it were alone.
    "r2c2": {"recompute": "10us"},
    # It answers nothing: each sends an eighth.
    "udp": {"rate": f"{100_000 // SHARING}Mbps"},
}
# HPCC leaves more free where a flow's share of the path is less than some packets (docs/schemes/rdma.md): a path of 17
# us.
FLIGHTS = {"hpcc": "4us"}


def shared(name: str) -> list[Row]:
    """Eight messages over one link: when 99% of each were there, and when the last was."""
    of = expected(name, SHARING, star=True)
    packets = [PACKETS.get(name, SHARED_PACKETS) + (50 * at if of.in_order else 0) for at in range(SHARING)]
    messages = [MESSAGE.format(name=at, bytes=of.payload * count, sender=2 + at) for at, count in enumerate(packets)]
    keys: dict[str, Any] = {
        "transport": {name: SETTINGS[name]} if name in SETTINGS else _transport(name, of),
        "measure.arrivals": ["host1"],
        "switch.buffer.per_port.bytes": BUFFERS.get(name, "200KB"),
    }
    if name in FLIGHTS:
        keys["fabric.star.propagation"] = FLIGHTS[name]
    result = setting.run(STAR + "".join(messages), keys)
    ends, last = _nearly_there_us(result), float(setting.delivered_us(result).max())
    before = np.cumsum([0, *packets[:-1]])
    there = before + 0.99 * np.array(packets) if of.in_order else 0.99 * sum(packets)
    bucket = "eight messages over one link"
    rows: list[Row] = []
    if of.even:
        rows.append(
            (
                bucket,
                "99% of a message there, over the last end",
                float(ends.mean() / last),
                float(np.mean(there) / sum(packets)),
                0.03,
            )
        )
    if of.full:
        rows.append(
            (bucket, "last end, us", last, of.asks_long + star_way_us(PACKET) + (sum(packets) - 1) * of.slot, 0.03)
        )
    return rows


def _nearly_there_us(result: cw.Result) -> np.ndarray[Any, np.dtype[np.float64]]:
    """When 99% of each message's bytes had arrived for the first time: a last packet may wait for a timer."""
    came = result.tables["arrivals"].to_arrow().to_pandas().sort_values("time_ps")
    sizes = pd.Series(result.flows["bytes"])
    came["got"] = came.groupby("flow")["bytes"].cumsum() / came["flow"].map(sizes)
    return np.asarray(came[came["got"] >= 0.99].groupby("flow")["time_ps"].min() / 1e6)


BURST = 16


def burst(name: str) -> list[Row]:
    """A packet each from 16 hosts to one."""
    of = expected(name)
    if not of.burst:
        return []
    messages = [MESSAGE.format(name=at, bytes=of.payload, sender=2 + at) for at in range(BURST)]
    ends = setting.delivered_us(setting.run(STAR + "".join(messages), {"transport": name}))
    packet = PACKET if name != "r2c2" else PAYLOAD + 35
    # Of dcPIM each host sends a notification first, and its finish overtakes the data at the switch.
    control = (1 + BURST) * CONTROL * BYTE_NS / 1e3 if name == "dcpim" else 0.0
    theirs = star_way_us(packet) + control + (BURST - 1) * packet * BYTE_NS / 1e3
    return [("a packet each from 16 hosts to one", "last end, us", float(ends.max()), theirs, 0.01)]


def transport(name: str) -> Held:
    """All of these for one transport."""
    return setting.held(name, LAW, [lone_packet(name), lone_message(name), *shared(name), *burst(name)])
