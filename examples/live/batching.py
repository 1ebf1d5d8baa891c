"""The third application that Harmony's paper names (section 6), for real on a rack that lives: a host that processes
what comes in batches, as Reframer does.

Seven hosts send bursts of messages to one, and large files to it meanwhile. For each connection that has a state of
4 MB, which it has to fetch when it turns to another connection: so it gathers the messages of a connection until there
is a batch, or a time has passed. Over best effort the arrival time of a batch is unknown. Over Harmony a message's
delay has a bound, so that a batch that was sent at once is there when the bound has passed. Run it from the
repository's root:

    python examples/live/batching.py

The batches and what they wait are the network's doing, in network time. The CPU's time is this machine's: NumPy has a
cost per call, too, which batches save as well as misses of caches, and one can't be told from the other.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import clearway as cw
import numpy as np
import numpy.typing as npt
from clearway.papers.harmony.applications.network import Bound

SCENARIO = Path(__file__).with_name("rpc.toml")
RECEIVER, PORT = "host7", 7000
LIMIT = 120.0
"""Seconds of the machine that anything may take: more than any does, unless the network stands still."""
SLOTS, DELTA_US = 8, 200.0
# Fast links, in slow motion: a microsecond of the network is 10 ms. An application hears of a message 10 ms late at
# most, or the network stands still: that is the microsecond by which section 6 extends the bound, "for hosts".
# Others send the same host large files meanwhile, over best effort.
FILES = {"name": "files", "sizes": {"constant": "20MB"}, "arrivals": "all_at_once", "senders": "0-6", "receivers": "7"}
RACK = {
    "fabric.leaf_spine.host_rate": "100Gbps",
    "live.dilation": 10_000,
    "live.sockets.rpc.transport": {"harmony": {"slots": SLOTS, "delta_admission": f"{DELTA_US:g}us"}},
    "traffic": [FILES],
}
STATE_WORDS, MESSAGE_UPDATES = 1 << 19, 175
"""Words of a connection's state, 4 MB in all; updates of a message, 8 bytes each: a packet is full."""
UPDATE = np.dtype([("place", ">u4"), ("more", ">u4")])


def updates(connection: int, burst: int, message: int) -> npt.NDArray[np.void]:
    """The content of a message: how much more is to be where."""
    random = np.random.default_rng([connection, burst, message])
    of = np.empty(MESSAGE_UPDATES, UPDATE)
    of["place"] = random.integers(STATE_WORDS, size=MESSAGE_UPDATES)
    of["more"] = random.integers(1, 1_000, size=MESSAGE_UPDATES)
    return of


@dataclass
class Sender:
    """A connection: the next burst is sent when all of the last one was delivered."""

    socket: cw.Socket
    kind: str
    number: int
    delays_us: list[float] = field(default_factory=list)
    """From when a message's transport got it until it was delivered."""
    rejected: int = 0

    def send(self, bursts: int, batch: int) -> None:
        """Sends bursts of a batch each. A message for which the network has no room is sent again."""
        for burst in range(bursts):
            contents = [updates(self.number, burst, message).tobytes() for message in range(batch)]
            while contents:
                sent = [self.socket.send((RECEIVER, PORT), content, self.kind) for content in contents]
                contents = [content for content, of in zip(contents, sent) if not self._delivered(of)]

    def _delivered(self, sent: cw.Sent) -> bool:
        try:
            times = sent.wait(LIMIT)
        except cw.Undelivered:
            self.rejected += 1
            return False
        self.delays_us.append((times.delivered_ps - times.started_ps) / 1e6)
        return True


@dataclass
class Host:
    """The receiving host: a state for each connection, and messages that wait for a batch."""

    maze: cw.Maze
    socket: cw.Socket
    batch: int
    timeout_ps: int
    """After the first message of a batch; 0: each message is processed as it comes."""
    states: dict[cw.Address, npt.NDArray[np.int64]] = field(default_factory=dict)
    held: OrderedDict[cw.Address, list[cw.Message]] = field(default_factory=OrderedDict)
    """In order of first messages, and so of the ends of their timeouts."""
    arrivals: list[tuple[int, cw.Address]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    cut: int = 0
    """Batches that the timeout ended."""
    turns: int = 0
    """Times that the state of another connection was needed."""
    held_us: list[float] = field(default_factory=list)
    """From a message's arrival until it is processed."""
    cpu_s: float = 0.0
    last: cw.Address | None = None

    def serve(self, messages: int) -> None:
        """Until this many messages have come and are processed."""
        while messages or self.held:
            message = self._next()
            if message is None:
                self.cut += 1
                self._process(*self.held.popitem(last=False))
                continue
            messages -= 1
            self.arrivals.append((message.delivered_ps, message.source))
            waiting = self.held.setdefault(message.source, [])
            waiting.append(message)
            if len(waiting) == self.batch or self.timeout_ps == 0:
                self._process(message.source, self.held.pop(message.source))

    def _next(self) -> cw.Message | None:
        """The next message; None if a timeout ends before one comes."""
        if not self.held:
            return self.socket.receive(LIMIT)
        first = next(iter(self.held.values()))[0]
        return self.socket.receive_until(first.delivered_ps + self.timeout_ps, LIMIT)

    def _process(self, source: cw.Address, messages: list[cw.Message]) -> None:
        now_ps = self.maze.now_ps
        self.held_us += [(now_ps - message.delivered_ps) / 1e6 for message in messages]
        self.batches.append(len(messages))
        self.turns += source != self.last
        self.last = source
        began = time.thread_time()
        state = self.states.setdefault(source, np.zeros(STATE_WORDS, np.int64))
        of = np.frombuffer(b"".join(message.content for message in messages), UPDATE)
        np.add.at(state, of["place"].astype(np.int64), of["more"].astype(np.int64))
        self.cpu_s += time.thread_time() - began


def run(kind: str, batch: int, timeout_us: float, bursts: int) -> tuple[Host, list[Sender], cw.Result]:
    """Lets the rack live until all bursts are processed."""
    with cw.Maze(cw.Scenario.load(SCENARIO).with_(RACK)) as maze:
        host = Host(maze, maze.socket(RECEIVER, PORT), batch, round(timeout_us * 1e6))
        places = [name for name in maze.hosts if name != RECEIVER]
        senders = [Sender(maze.socket(place), kind, number) for number, place in enumerate(places)]
        threads = [threading.Thread(target=sender.send, args=(bursts, batch), daemon=True) for sender in senders]
        for thread in threads:
            thread.start()
        host.serve(len(senders) * bursts * batch)
        for thread in threads:
            thread.join(LIMIT)
    return host, senders, maze.result


def right(host: Host, senders: list[Sender], bursts: int) -> int:
    """Connections whose state is what the updates make of it, whatever their order."""
    found = 0
    for sender in senders:
        all_of = [updates(sender.number, burst, of) for burst in range(bursts) for of in range(host.batch)]
        together = np.concatenate(all_of)
        sums = np.bincount(together["place"].astype(np.int64), together["more"], STATE_WORDS).astype(np.int64)
        found += bool(np.array_equal(host.states[sender.socket.address], sums))
    return found


def bound_us() -> float:
    """Within this a message has come, or its sender knows that it was rejected: Equation 1, admission, and 1 us."""
    network = cw.run(cw.Scenario.load(SCENARIO).with_({**RACK, "measure.end": "20us"}), progress=False)
    return Bound(network, SLOTS, DELTA_US).message(MESSAGE_UPDATES * UPDATE.itemsize)


def main() -> None:
    """Gathers in four ways, and tells what became of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--bursts", type=int, default=8, help="of each connection")
    parser.add_argument("--batch", type=int, default=16, help="messages of a burst, and of a full batch")
    parser.add_argument("--guess-us", type=float, default=10.0, help="timeout where no bound is known")
    parser.add_argument("--best-effort", default="bulk", help="class of live.sockets without a bound: bulk is DCTCP")
    options = parser.parse_args()
    bound, best = bound_us(), options.best_effort
    print(f"over Harmony a message comes within {bound:.1f} us")
    ways = {
        "Harmony, each as it comes": ("rpc", 0.0),
        "Harmony, timeout from the bound": ("rpc", bound),
        f"{best}, a guess of {options.guess_us:g} us": (best, options.guess_us),
        f"{best}, the same timeout": (best, bound),
    }
    for name, (kind, timeout) in ways.items():
        host, senders, _ = run(kind, options.batch, timeout, options.bursts)
        delays = np.array([delay for sender in senders for delay in sender.delays_us])
        sizes, held = Counter(host.batches), np.array(host.held_us)
        print(
            f"{name}: {len(held) / len(host.batches):.2f} messages a batch, {sizes[options.batch]} of"
            f" {len(host.batches)} batches full, {host.cut} cut; {host.turns} turns to another connection; held for"
            f" {held.mean():.1f} us, {held.max():.1f} at most; delays of {delays.max():.1f} us at most,"
            f" {int((delays > bound).sum())} late, {sum(sender.rejected for sender in senders)} rejected;"
            f" {1e6 * host.cpu_s / len(held):.1f} us of CPU a message;"
            f" {right(host, senders, options.bursts)} of {len(senders)} states right"
        )


if __name__ == "__main__":
    main()
