"""Endless transfers of many tenants by two processes, one at each end: `bulk.send(...)`.

iperf3 has a process for each tenant and a thread for each flow. With a hundred tenants of eight flows these are 1,800
threads, which keep two processors busy by themselves; a tenant whose threads don't run loses its share for want of a
processor and not of bandwidth.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from traffic import TCP_PAYLOAD, Got, Sender

if TYPE_CHECKING:
    from world import World

CHUNK = bytes(1 << 16)
START_S = 2.0
# `struct tcp_info` of linux/tcp.h.
RTT_AT, RETRANSMITS_AT, SEGMENTS_AT = 68, 100, 136


def send(world: World, senders: list[Sender], seconds: float, skip: float = 3.0) -> dict[str, Got]:
    """Lets all send at once for `skip` + `seconds`, and says what arrived of each after the first `skip` seconds."""
    begin = time.monotonic() + START_S
    asked = {"begin": begin, "from": begin + skip, "to": begin + skip + seconds}
    ports = {one.name: one.port for one in senders}
    receiver = _start(world, "receive", world.receiver, {**asked, "ports": list(ports.values())})
    time.sleep(0.5)
    flows = [[one.port, one.control] for one in senders for _ in range(one.flows)]
    sender = _start(world, "send", world.senders[0], {**asked, "address": world.address, "flows": flows})
    arrived, sent = (_end(process, seconds + skip + START_S + 60) for process in (receiver, sender))
    got = {}
    for one in senders:
        mine = [flow for flow in sent["flows"] if flow[0] == one.port]
        bps = 8 * arrived[str(one.port)] / arrived["seconds"] / TCP_PAYLOAD
        rtt = sum(flow[3] for flow in mine) / len(mine) / 1_000
        got[one.name] = Got(one.name, bps, sum(f[1] for f in mine), sum(f[2] for f in mine), rtt)
    return got


def _start(world: World, end: str, netns: str, asked: dict[str, Any]) -> Any:
    process = world.start(f"{sys.executable} {__file__} {end}", netns, talks=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    return process


def _end(process: Any, seconds: float) -> dict[str, Any]:
    out, err = process.communicate(timeout=seconds)
    if process.returncode:
        raise RuntimeError(err)
    answer: dict[str, Any] = json.loads(out)
    return answer


def receive(asked: dict[str, Any]) -> dict[str, float]:
    """Takes what comes. By port: the bytes that arrived from the one time to the other."""
    events = selectors.DefaultSelector()
    counts = dict.fromkeys(asked["ports"], 0)
    for port in asked["ports"]:
        server = socket.create_server(("", port), backlog=256)
        server.setblocking(False)
        events.register(server, selectors.EVENT_READ, (True, port))
    buffer = bytearray(1 << 20)
    # When, and what had arrived by then: at the one time and at the other.
    looks: list[tuple[float, dict[int, int]]] = []
    while True:
        now = time.monotonic()
        if len(looks) < 2 and now >= asked["to" if looks else "from"]:
            looks.append((now, dict(counts)))
        # The senders end before.
        if now >= asked["to"] + 1:
            (began, before), (ended, after) = looks
            arrived: dict[str, float] = {str(port): after[port] - before[port] for port in counts}
            return {**arrived, "seconds": ended - began}
        for key, _ in events.select(0.01):
            listens, port = key.data
            ready: Any = key.fileobj
            if listens:
                taken, _ = ready.accept()
                taken.setblocking(False)
                events.register(taken, selectors.EVENT_READ, (False, port))
                continue
            # Thrown away in the kernel: nothing is copied.
            size = ready.recv_into(buffer, 0, socket.MSG_TRUNC)
            counts[port] += size
            if not size:
                events.unregister(ready)
                ready.close()


def transmit(asked: dict[str, Any]) -> dict[str, list[list[int]]]:
    """Sends on all flows from the one time to the other. Of each: its port, segments sent again, segments, and RTT."""
    events = selectors.DefaultSelector()
    flows = []
    for port, control in asked["flows"]:
        flow = socket.socket()
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        flow.connect((asked["address"], port))
        flow.setblocking(False)
        events.register(flow, selectors.EVENT_WRITE)
        flows.append((port, flow))
    time.sleep(max(0.0, asked["begin"] - time.monotonic()))
    while time.monotonic() < asked["to"] + 0.5:
        for key, _ in events.select(0.01):
            ready: Any = key.fileobj
            with suppress(BlockingIOError):
                ready.send(CHUNK)
    told = []
    for port, flow in flows:
        info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        again, segments, rtt = (struct.unpack_from("I", info, at)[0] for at in (RETRANSMITS_AT, SEGMENTS_AT, RTT_AT))
        told.append([port, again, segments, rtt])
    return {"flows": told}


if __name__ == "__main__":
    wanted = json.loads(sys.stdin.readline())
    print(json.dumps(receive(wanted) if sys.argv[1] == "receive" else transmit(wanted)))
