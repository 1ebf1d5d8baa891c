"""One host of `clearway against kernel`: real TCP flows from and to a network namespace.

kernel_host.py PLAN, inside of that namespace; `kernel_stage.py` starts it. It says "ready" when all of its connections
are open, begins each flow at its time after "go T0", tells of each that has come whole, and at "stop" says what it
knows. A flow is a connection of its own, known to both ends by the port that it comes from. It needs nothing of
Clearway, and Python's standard library alone.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PORT, FIRST_PORT = 5201, 10_000
TRAILER_BYTES = 16
CHUNK = 1 << 20
PATIENCE_S = 30.0
QUEUE = "20000"
# The state `TCP_ESTABLISHED`, and the longest `struct tcp_info` that is asked for.
INFO_BYTES = 280
# Before a start the loop looks at the clock all the time: epoll counts milliseconds.
SPIN_NS = 1_500_000


def trailer(flow: int, size: int) -> bytes:
    """The last bytes of a message."""
    return flow.to_bytes(8, "big") + size.to_bytes(8, "big")


class Sending:
    """A flow that this host sends."""

    def __init__(self, of: list[Any]) -> None:
        self.flow, self.to, self.size, self.start_ns, self.control = of
        self.socket: socket.socket | None = None
        self.written, self.began_ns = 0, -1

    def open(self, address: str) -> None:
        """Begins to open the connection."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.control.encode())
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, FIRST_PORT + self.flow))
        self.socket.setblocking(False)
        if self.socket.connect_ex((self.to, PORT)) not in (0, errno.EINPROGRESS):
            raise OSError(f"no connection to {self.to}")

    def write(self) -> bool:
        """Writes what fits, and says whether that was all."""
        assert self.socket is not None
        end = trailer(self.flow, self.size)[-min(TRAILER_BYTES, self.size) :]
        body = self.size - len(end)
        while self.written < self.size:
            if self.written < body:
                part = memoryview(BLANK)[: min(CHUNK, body - self.written)]
                # Without a small packet where two parts meet.
                flags = int(socket.MSG_MORE)
            else:
                part, flags = memoryview(end)[self.written - body :], 0
            try:
                self.written += self.socket.send(part, flags)
            except BlockingIOError:
                return False
        return True

    def info(self) -> bytes:
        """The kernel's `struct tcp_info` of the connection."""
        assert self.socket is not None
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)


BLANK = bytes(CHUNK)


class Receiving:
    """A flow that this host receives."""

    def __init__(self, flow: int, size: int) -> None:
        self.flow, self.size, self.got, self.done_ns, self.wrong = flow, size, 0, -1, False
        self.last = b""

    def read(self, end: socket.socket) -> bool:
        """Reads what is there, and says whether the flow is whole with that."""
        try:
            got = end.recv(CHUNK)
        except BlockingIOError:
            return False
        now = time.monotonic_ns()
        self.got += len(got)
        self.last = (self.last + got[-TRAILER_BYTES:])[-TRAILER_BYTES:]
        if self.got >= self.size and self.done_ns < 0:
            count = min(TRAILER_BYTES, self.size)
            self.wrong = self.got > self.size or self.last[-count:] != trailer(self.flow, self.size)[-count:]
            self.done_ns = now
            return True
        return False


class Host:
    """The loop over all sockets of a host."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.sends = {of[0]: Sending(of) for of in plan["sends"]}
        self.receives = {flow: Receiving(flow, size) for flow, size in plan["receives"]}
        self.poll = select.epoll()
        self.of_file: dict[int, Sending | tuple[Receiving, socket.socket]] = {}
        self.waiting = sorted(self.sends.values(), key=lambda sending: -sending.start_ns)
        self.opening: set[int] = set()
        self.t0_ns, self.over, self.said = -1, False, b""

    def run(self) -> None:
        """From the first setting to the last word."""
        self.set_up()
        self.listener = socket.create_server((self.plan["address"], PORT), backlog=4096)
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.plan["control"].encode())
        self.listener.setblocking(False)
        self.poll.register(self.listener.fileno(), select.EPOLLIN)
        os.set_blocking(0, False)
        self.poll.register(0, select.EPOLLIN)
        tell("listening")
        while not self.over:
            self.turn()
        self.report()

    def set_up(self) -> None:
        """Sets what the plan says, when the device has come."""
        for name, value in self.plan["sysctls"].items():
            place = Path("/proc/sys/net/ipv4") / name
            if place.exists():
                place.write_text(value)
        route = [self.plan["network"], "dev", self.plan["device"], "src", self.plan["address"]]
        words = ["ip", "route", "replace", *route, "proto", "kernel", "scope", "link", *self.plan["route"]]
        until = time.monotonic() + PATIENCE_S
        # The device gets its address, and is up at last.
        while (done := subprocess.run(words, capture_output=True, text=True, check=False)).returncode:
            if time.monotonic() > until:
                raise OSError(f"{self.plan['device']} has not come: {done.stderr.strip()}")
            time.sleep(0.05)
        # No packet is lost in its own host, as none is in the simulator.
        subprocess.run(["ip", "link", "set", "dev", self.plan["device"], "txqueuelen", QUEUE], check=True)

    def turn(self) -> None:
        """Waits for what happens next, or begins a flow."""
        now = time.monotonic_ns()
        # Until a start, less one or two milliseconds.
        left_s = -1.0
        if self.waiting and self.t0_ns >= 0:
            left_ns = self.t0_ns + self.waiting[-1].start_ns - now
            if left_ns <= 0:
                self.begin(self.waiting.pop())
                return
            left_s = 0 if left_ns < SPIN_NS else (left_ns - SPIN_NS) // 1_000_000 * 1e-3
        for file, event in self.poll.poll(left_s):
            self.happened(file, event)

    def happened(self, file: int, event: int) -> None:
        """A socket or the stage has something."""
        if file == 0:
            self.hear()
        elif file == self.listener.fileno():
            self.accept()
        else:
            of = self.of_file[file]
            if isinstance(of, Sending):
                self.writable(of, event)
            else:
                receiving, end = of
                if receiving.read(end):
                    tell(f"done {receiving.flow} {receiving.done_ns}")
                if event & (select.EPOLLHUP | select.EPOLLERR):
                    self.poll.unregister(file)

    def hear(self) -> None:
        """Does what the stage says."""
        heard = os.read(0, 1 << 16)
        self.over |= not heard
        *lines, self.said = (self.said + heard).split(b"\n")
        for line in lines:
            match line.split():
                case [b"open"]:
                    for sending in self.sends.values():
                        if self.plan["open_before"]:
                            self.connect(sending)
                    self.ready()
                case [b"go", at]:
                    self.t0_ns = int(at)
                case [b"stop"]:
                    self.over = True

    def ready(self) -> None:
        """Says so, once all connections are open."""
        if not self.opening and self.t0_ns < 0:
            tell("ready")

    def connect(self, sending: Sending) -> None:
        """Opens a flow's connection."""
        sending.open(self.plan["address"])
        assert sending.socket is not None
        self.opening.add(sending.flow)
        self.of_file[sending.socket.fileno()] = sending
        self.poll.register(sending.socket.fileno(), select.EPOLLOUT)

    def accept(self) -> None:
        """Takes a connection."""
        try:
            end, (_, port) = self.listener.accept()
        except BlockingIOError:
            return
        end.setblocking(False)
        receiving = self.receives[port - FIRST_PORT]
        self.of_file[end.fileno()] = (receiving, end)
        self.poll.register(end.fileno(), select.EPOLLIN)

    def begin(self, sending: Sending) -> None:
        """Begins a flow at its time."""
        sending.began_ns = time.monotonic_ns()
        if sending.socket is None:
            self.connect(sending)
        elif not sending.write():
            self.poll.modify(sending.socket.fileno(), select.EPOLLOUT)

    def writable(self, sending: Sending, event: int) -> None:
        """A connection is open, or has room again."""
        assert sending.socket is not None
        file = sending.socket.fileno()
        if sending.flow in self.opening:
            if problem := sending.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(problem, f"flow {sending.flow} to {sending.to}: {os.strerror(problem)}")
            self.opening.discard(sending.flow)
            if sending.began_ns < 0:
                self.poll.modify(file, 0)
                self.ready()
                return
        if sending.began_ns < 0 or sending.write():
            self.poll.modify(file, 0)

    def report(self) -> None:
        """All that is known, as one line."""
        until = time.monotonic() + 2
        for sending in self.sends.values():
            # A flow that has come whole may not be acknowledged yet.
            while sending.written == sending.size and time.monotonic() < until and self.unacknowledged(sending):
                time.sleep(0.01)
        sent = {one.flow: [one.began_ns, one.info().hex() if one.socket else ""] for one in self.sends.values()}
        received = {one.flow: [one.got, one.done_ns, one.wrong] for one in self.receives.values()}
        counters = [Path(f"/proc/net/{name}").read_text() for name in ("snmp", "netstat")]
        tell("report " + json.dumps({"sent": sent, "received": received, "counters": "".join(counters)}))

    @staticmethod
    def unacknowledged(sending: Sending) -> bool:
        """Whether `tcpi_unacked` says so: the fifth number after eight bytes."""
        return any(sending.info()[24:28])


def tell(line: str) -> None:
    """Says a line to the stage."""
    print(line, flush=True)


def main(plan: str) -> None:
    """Runs a host's plan."""
    Host(json.loads(Path(plan).read_text())).run()


if __name__ == "__main__":
    main(sys.argv[1])
