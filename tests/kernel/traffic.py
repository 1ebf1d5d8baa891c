"""Traffic of tenants by iperf3: kernel TCP of any congestion control, and UDP."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from world import World

# Payload of a full packet over its bytes on the wire: Ethernet, IPv4, and TCP with time stamps or UDP.
TCP_PAYLOAD = 1_448 / 1_514
UDP_SIZE = 1_448
UDP_PAYLOAD = UDP_SIZE / (UDP_SIZE + 42)


@dataclass(frozen=True)
class Sender:
    """The traffic of a tenant."""

    name: str
    port: int
    control: str
    flows: int = 1
    udp_bps: float = 0.0
    netns: int = 0
    # The receiver's namespace sends, and the sender's receives.
    back: bool = False


@dataclass(frozen=True)
class Got:
    """The results of a tenant: rates of bytes on the wire, retransmitted segments of those sent, and round trips."""

    name: str
    wire_bps: float
    retransmits: int
    segments: int
    rtt_ms: float


def send(world: World, senders: list[Sender], seconds: float, skip: float = 1.0) -> dict[str, Got]:
    """Lets all send at once for `skip` + `seconds`, and says what arrived of each after the first `skip` seconds."""
    servers = [world.start(f"iperf3 -s -1 -J -p {one.port}", world.receiver) for one in senders]
    time.sleep(0.3 + 0.01 * len(senders))
    clients = []
    for one in senders:
        command = f"iperf3 -c {world.address} -p {one.port} -t {seconds + skip:g} -J"
        if one.udp_bps:
            command += f" -u -b {one.udp_bps:.0f} -l {UDP_SIZE} --pacing-timer 200 -w 4M"
        else:
            control = {"dctcp": "cwaqdctcp"}.get(one.control, one.control)
            command += f" -C {control} -P {one.flows}" + (" -R" if one.back else "")
        clients.append(world.start(command, world.senders[one.netns]))
    got = {}
    for one, client, server in zip(senders, clients, servers, strict=True):
        sent = _said(one, client, seconds + skip + 60)
        received = _said(one, server, 10)
        got[one.name] = _read(one, sent["end"], (sent if one.back else received)["intervals"], skip)
    return got


def _said(one: Sender, process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    out, err = process.communicate(timeout=seconds)
    said = json.loads(out) if out.strip() else {"error": err}
    if "error" in said:
        raise RuntimeError(f"{one.name}: iperf3: {said['error']}")
    return said


def _read(one: Sender, end: dict[str, Any], intervals: list[dict[str, Any]], skip: float) -> Got:
    # The receiver's own intervals; the last is what arrived after the end.
    counted = [each["sum"] for each in intervals[:-1] if each["sum"]["start"] >= skip - 0.1]
    bits = 8 * sum(each["bytes"] for each in counted) / sum(each["seconds"] for each in counted)
    if one.udp_bps:
        return Got(one.name, bits / UDP_PAYLOAD, 0, int(end["sum"]["packets"]), 0.0)
    rate = bits / TCP_PAYLOAD
    flows = [stream["sender"] for stream in end["streams"]]
    rtt = sum(flow["mean_rtt"] for flow in flows) / len(flows) / 1_000
    segments = int(end["sum_sent"]["bytes"] / 1_448)
    return Got(one.name, rate, int(end["sum_sent"]["retransmits"]), segments, rtt)
