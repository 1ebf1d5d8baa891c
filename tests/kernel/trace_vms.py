"""Entities that send a trace of transfers by kernel TCP, a connection each.

`python trace_vms.py receive PORT...` takes what comes until it is killed; `python trace_vms.py send` is a VM: it reads
from its standard input what to send and says when each transfer had arrived.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from world import World

CHUNK = memoryview(bytes(1 << 18))
# From the start of the processes to that of the transfers.
START_S = 1.0


@dataclass(frozen=True)
class Vm:
    """A VM of an entity: where it is, and its traffic, with a number of transfers at a time."""

    entity: str
    netns: int
    port: int
    control: str
    sizes: list[int]
    outstanding: int = 1


@dataclass(frozen=True)
class Done:
    """How long an entity took for all its bytes."""

    seconds: float
    sent_bytes: int


def run(world: World, vms: list[Vm], seconds: float) -> dict[str, Done]:
    """Lets all VMs send their traces at once, `seconds` at most, and says when each entity was done."""
    ports = sorted({vm.port for vm in vms})
    receiver = f"{sys.executable} {__file__} receive {' '.join(map(str, ports))}"
    world.start(receiver, world.receiver)
    time.sleep(0.3)
    begin = time.monotonic() + START_S
    running = []
    for vm in vms:
        process = world.start(f"{sys.executable} {__file__} send", world.senders[vm.netns], talks=True)
        asked = {"to": [world.address, vm.port], "control": vm.control, "at_once": vm.outstanding}
        assert process.stdin is not None
        process.stdin.write(json.dumps({**asked, "sizes": vm.sizes, "begin": begin}) + "\n")
        process.stdin.flush()
        running.append(process)
    ends: dict[str, list[float]] = {}
    for vm, process in zip(vms, running, strict=True):
        out, err = process.communicate(timeout=seconds)
        if process.returncode:
            raise RuntimeError(f"{vm.entity}: {err}")
        ends.setdefault(vm.entity, []).extend(json.loads(out))
    size = {name: sum(sum(vm.sizes) for vm in vms if vm.entity == name) for name in ends}
    return {name: Done(max(times) - begin, size[name]) for name, times in ends.items()}


def receive(ports: list[int]) -> None:
    """Takes connections at all ports and throws away what comes."""

    def take(taken: socket.socket) -> None:
        buffer = bytearray(1 << 20)
        with taken:
            # Thrown away in the kernel: nothing is copied.
            while taken.recv_into(buffer, 0, socket.MSG_TRUNC):
                pass

    def listen(port: int) -> None:
        with socket.create_server(("", port), backlog=256) as server:
            while True:
                Thread(target=take, args=(server.accept()[0],), daemon=True).start()

    for port in ports[1:]:
        Thread(target=listen, args=(port,), daemon=True).start()
    listen(ports[0])


def send() -> None:
    """Sends what the standard input asks for, and prints when each transfer had arrived."""
    asked = json.loads(sys.stdin.readline())

    def one(size: int) -> float:
        with socket.socket() as to:
            to.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, asked["control"].encode())
            to.connect(tuple(asked["to"]))
            left = size
            while left:
                left -= to.send(CHUNK[: min(left, len(CHUNK))])
            to.shutdown(socket.SHUT_WR)
            # The receiver closes once it has all.
            to.recv(1)
        return time.monotonic()

    time.sleep(max(0.0, asked["begin"] - time.monotonic()))
    with ThreadPoolExecutor(asked["at_once"]) as pool:
        print(json.dumps(list(pool.map(one, asked["sizes"]))))


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive([int(port) for port in sys.argv[2:]])
    else:
        send()
