"""Two of the applications that Harmony's paper names (section 6), for real on a rack that lives: remote storage, and a
failure detector.

A client writes blocks to two servers and reads them again. Meanwhile one of the servers is cut off the network; the
detector finds that by its probes, and the client goes on with the other. Run it from the repository's root:

    python examples/live/harmony.py
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import clearway as cw

SCENARIO = Path(__file__).with_name("rpc.toml")
PORT = 7000
BLOCK_BYTES = 8192
LIMIT = 120.0
"""Seconds of the machine that a probe may take: more than any does, unless the network stands still."""
# A call without an answer after this many seconds may never have one: its request may be under way to a server that is
# cut off, over a transport that does not give up. The detector says whether to wait for it.
PATIENCE = 5.0

WRITE, READ = range(2)
HEAD = struct.Struct(">BQ")
"""The operation, and its block."""


@dataclass
class Store:
    """A server's blocks."""

    blocks: dict[int, bytes] = field(default_factory=dict)

    def serve(self, request: bytes) -> bytes:
        """Writes or reads one."""
        what, number = HEAD.unpack_from(request)
        if what == READ:
            return self.blocks[number]
        self.blocks[number] = request[HEAD.size :]
        return b""


class Detector:
    """Tells which hosts have failed.

    A probe is a request of Harmony's; as its delays are bounded, the sender knows when the receiver's `rsvp` has to be
    there. The absence of one is the flag `failure`. A probe that was rejected says nothing: it is sent again.
    """

    def __init__(self, maze: cw.Maze, host: str, kind: str) -> None:
        self.socket, self.queue, self.kind = maze.socket(host), maze.completions(), kind

    def failed(self, hosts: Iterable[str]) -> dict[str, str]:
        """Those that have failed, with what the network says of them."""
        open_ = {self._probe(host): host for host in hosts}
        found = {}
        while open_:
            ended = self.queue.next(LIMIT)
            host = open_.pop(ended.sent.flow)
            if ended.flag == "reject":
                open_[self._probe(host)] = host
            elif ended.flag == "failure":
                found[host] = ended.reason
        return found

    def _probe(self, host: str) -> int:
        return self.socket.send((host, PORT), b"", self.kind, queue=self.queue).flow


@dataclass
class Client:
    """Blocks that are on all of the servers that live."""

    rpc: cw.Rpc
    detector: Detector
    servers: list[str]

    def write(self, number: int, block: bytes) -> None:
        """On all servers at once."""
        request = HEAD.pack(WRITE, number) + block
        lack = list(self.servers)
        while lack:
            for server, answer in [(server, self.rpc.submit((server, PORT), request)) for server in lack]:
                try:
                    answer.result(PATIENCE)
                    lack.remove(server)
                except (cw.Undelivered, TimeoutError):
                    self._look(server)
            lack = [server for server in lack if server in self.servers]

    def read(self, number: int) -> bytes:
        """From the first that has it."""
        while self.servers:
            try:
                return self.rpc.call((self.servers[0], PORT), HEAD.pack(READ, number), PATIENCE)
            except (cw.Undelivered, TimeoutError):
                self._look(self.servers[0])
        raise ConnectionError(f"no server has block {number}: all have failed")

    def _look(self, server: str) -> None:
        """A call has failed: is it the server?"""
        for failed in self.detector.failed([server]):
            print(f"{failed} has failed: the detector has no answer to its probe")
            self.servers.remove(failed)


def _block(number: int) -> bytes:
    return number.to_bytes(8, "big") * (BLOCK_BYTES // 8)


def main() -> None:
    """Writes, reads, and tells what became of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--blocks", type=int, default=20, help="to write and to read")
    parser.add_argument("--cut-ms", type=float, default=2.0, help="when the first server is cut off, in network time")
    parser.add_argument("--out", type=Path, help="folder for the result of the run")
    options = parser.parse_args()
    servers = ["host4", "host7"]
    cut = {"at": f"{options.cut_ms}ms", "link": [servers[0], "leaf1"]}
    with cw.Maze(cw.Scenario.load(SCENARIO).with_({"failure": [cut]})) as maze:
        stores = {host: Store() for host in servers}
        for host, store in stores.items():
            cw.Rpc(maze, host, PORT, kind="rpc", fallback="bulk", serve=store.serve)
        client = Client(cw.Rpc(maze, "host0", kind="rpc"), Detector(maze, "host0", "rpc"), list(servers))
        for number in range(options.blocks):
            client.write(number, _block(number))
        right = sum(client.read(number) == _block(number) for number in range(options.blocks))
        # Until the cut is felt, so that the example always shows it.
        while len(client.servers) == len(servers):
            client.write(0, _block(0))
    print(f"{right} of {options.blocks} blocks came back as they were written; {', '.join(client.servers)} lives")
    flows = maze.result.flows.to_pandas().query("`class` == 'rpc' and status == 'completed'")
    print(f"{len(flows)} messages over Harmony, each in {flows.fct_ps.max() / 1e6:.1f} us of the network at most")
    if options.out:
        maze.result.save(options.out)


if __name__ == "__main__":
    main()
