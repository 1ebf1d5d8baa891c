"""Traffic of tenants by iperf3: kernel TCP of any congestion control, and UDP."""

from __future__ import annotations

import json
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
    """What a tenant sends."""

    name: str
    port: int
    control: str
    flows: int = 1
    udp_bps: float = 0.0
    netns: int = 0


@dataclass(frozen=True)
class Got:
    """What a tenant got: rates of bytes on the wire, retransmitted segments of those sent, and round trips."""

    name: str
    wire_bps: float
    retransmits: int
    segments: int
    rtt_ms: float


def send(world: World, senders: list[Sender], seconds: float, skip: float = 1.0) -> dict[str, Got]:
    """Lets all send at once, and says what each got after the first `skip` seconds."""
    servers = [world.start(f"iperf3 -s -1 -p {one.port}", world.receiver) for one in senders]
    time.sleep(0.3 + 0.01 * len(senders))
    clients = []
    for one in senders:
        command = f"iperf3 -c {world.address} -p {one.port} -t {seconds} -O {skip:.0f} -J"
        if one.udp_bps:
            command += f" -u -b {one.udp_bps:.0f} -l {UDP_SIZE} --pacing-timer 200 -w 4M"
        else:
            command += f" -C {one.control} -P {one.flows}"
        clients.append(world.start(command, world.senders[one.netns]))
    got = {}
    for one, client in zip(senders, clients, strict=True):
        out, err = client.communicate(timeout=seconds + skip + 60)
        said = json.loads(out) if out.strip() else {"error": err}
        if "error" in said:
            raise RuntimeError(f"{one.name}: iperf3: {said['error']}")
        got[one.name] = _read(one, said["end"])
    for server in servers:
        server.kill()
        server.communicate()
    return got


def _read(one: Sender, end: dict[str, Any]) -> Got:
    received = end["sum_received"]
    if one.udp_bps:
        rate = received["bits_per_second"] / UDP_PAYLOAD
        return Got(one.name, rate, 0, int(end["sum"]["packets"]), 0.0)
    rate = received["bits_per_second"] / TCP_PAYLOAD
    flows = [stream["sender"] for stream in end["streams"]]
    rtt = sum(flow["mean_rtt"] for flow in flows) / len(flows) / 1_000
    segments = int(end["sum_sent"]["bytes"] / 1_448)
    return Got(one.name, rate, int(end["sum_sent"]["retransmits"]), segments, rtt)
