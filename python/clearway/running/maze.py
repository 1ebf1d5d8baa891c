"""Programs that send messages over a live network."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple

from clearway import _core
from clearway.errors import MazeOver, Rejected, Undelivered
from clearway.results.result import Result
from clearway.running.run import live_core, result_of
from clearway.scenarios.scenario import Scenario, scenario_of

CLOSE_SECONDS = 10.0
"""How long closing waits for messages that are under way, unless it is told."""

HELPER_SECONDS = 1.0
"""How long closing waits for a thread that answers calls: it may be in the program's own code."""

_OPEN: weakref.WeakSet[Maze | JoinedMaze] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A program that ends without closing leaves no thread that waits, which could not end with the interpreter."""
    for maze in list(_OPEN):
        if isinstance(maze, JoinedMaze) or maze._result is None:
            maze.close(0)


class Address(NamedTuple):
    """A port of a host."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Message:
    """A message that has arrived."""

    content: bytes
    source: Address
    """Who has sent it: where an answer goes."""
    kind: str
    """Its class: one of `live.sockets`."""
    flow: int
    """The number of its flow, in table `flows` of the result."""
    delivered_ps: int
    """When all of it was there, by the network's time."""


@dataclass(frozen=True)
class Delivery:
    """When a message was sent, delivered and completed, in picoseconds of network time."""

    started_ps: int
    """Its transport got it."""
    delivered_ps: int
    """All of it was there."""
    completed_ps: int | None
    """Its sender knew that; None if it did not know by then."""


class Sent:
    """A message that was sent."""

    def __init__(self, core: _core.Sent) -> None:
        self._core = core

    @property
    def flow(self) -> int:
        """The number of its flow, in table `flows` of the result."""
        return self._core.flow

    def wait(self, timeout: float | None = None) -> Delivery:
        """Waits until the message is delivered, for at most `timeout` seconds of real time, and returns when that was.

        Raises `cw.Undelivered` if the transport has given it up or no socket listens, `TimeoutError` if it takes
        longer, and `cw.MazeOver` if the run ends before.
        """
        return Delivery(*self._core.wait(timeout))

    def __repr__(self) -> str:
        return f"<Sent, flow {self.flow}>"


@dataclass(frozen=True)
class Completion:
    """How a message ended, as its sender knows it."""

    sent: Sent
    flag: Literal["complete", "reject", "failure"]
    """It was delivered; a transport with admission control had no room for it; it was not delivered."""
    delivery: Delivery | None
    """When, if it was delivered."""
    reason: str
    """Why not, if it was not."""


class Completions:
    """A completion queue: it returns the messages that were sent with it when they have ended. `Maze.completions` makes
    it.

    That is the interface of Harmony's section 4: a message that was not delivered can be sent again, over the same
    transport or over another.
    """

    def __init__(self, core: _core.Completions) -> None:
        self._core = core

    def next(self, timeout: float | None = None) -> Completion:
        """The next message that has ended; waits for it, for at most `timeout` seconds of real time."""
        sent = Sent(self._core.next(timeout))
        try:
            return Completion(sent, "complete", sent.wait(0), "")
        except Rejected as error:
            return Completion(sent, "reject", None, str(error))
        except (Undelivered, MazeOver) as error:
            return Completion(sent, "failure", None, str(error))


class Socket:
    """A port of a host: sends messages to other hosts, and receives those that arrive at it. `Maze.socket` opens it.

    It can be used by several threads, as a context manager, and as an iterator over arriving messages.
    """

    def __init__(self, core: _core.Socket) -> None:
        self._core = core

    @property
    def address(self) -> Address:
        """Where it is."""
        return Address(*self._core.address)

    def send(
        self,
        to: Address | tuple[str, int] | str,
        content: bytes,
        kind: str | None = None,
        *,
        queue: Completions | None = None,
    ) -> Sent:
        """Sends a message to a port of another host, such as `"host3:7"` or the `source` of a message.

        It does not wait: `Sent.wait` does. `kind`: a class of `live.sockets`, which determines the transport; None if
        there is only one. `queue`: the completion queue that returns it when it has ended. Raises `MemoryError` if 1
        GiB of messages is under way, or has arrived and was not received.
        """
        host, port = address_of(to)
        return Sent(self._core.send(host, port, content, kind, None if queue is None else queue._core))

    def receive(self, timeout: float | None = None) -> Message:
        """The next message that has arrived; waits for it, for at most `timeout` seconds of real time.

        Raises `TimeoutError` if none arrives in time, and `cw.MazeOver` if the socket is closed or the run is over.
        """
        return _message(self._core.receive(timeout))

    def receive_until(self, until_ps: int, timeout: float | None = None) -> Message | None:
        """The next message that was delivered before `until_ps`, in picoseconds of network time; None when the network
        has come to that time and no such message is left.

        So a program gathers what comes within a span of the network's time, however late the machine or the program is:
        None is returned when no message that was delivered before can come any more. It waits for at most `timeout`
        seconds of real time, and raises as `receive` does.

        >>> import clearway as cw
        >>> with cw.Maze("examples/live/rpc.toml") as maze:
        ...     with maze.socket("host0") as client, maze.socket("host3", port=7) as server:
        ...         for word in (b"one", b"two", b"three"):
        ...             _ = client.send("host3:7", word, kind="rpc")
        ...         first = server.receive(timeout=60)
        ...         batch = [first.content]
        ...         until_ps = first.delivered_ps + 1_000_000_000  # a millisecond of the network
        ...         while (message := server.receive_until(until_ps, timeout=60)) is not None:
        ...             batch.append(message.content)
        ...         maze.now_ps >= until_ps
        True
        >>> sorted(batch)
        [b'one', b'three', b'two']
        """
        if not 0 <= until_ps < 1 << 64:
            raise ValueError(f"until_ps={until_ps}: must be from 0 to 2^64 - 1, in picoseconds of the network's time")
        received = self._core.receive_until(until_ps, timeout)
        return None if received is None else _message(received)

    def __iter__(self) -> Iterator[Message]:
        """Messages as they come, until the socket is closed or the run over."""
        while True:
            try:
                yield self.receive()
            except MazeOver:
                return

    def close(self) -> None:
        """Closes the socket; threads that wait at it get an error."""
        self._core.close()

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Socket {self.address}>"


class _Network:
    """The common part of a Maze of this program and one of another program."""

    _core: _core.Maze | _core.JoinedMaze

    def __init__(self) -> None:
        # Threads that end when it is closed.
        self._helpers: list[threading.Thread] = []

    @property
    def hosts(self) -> list[str]:
        """Names of its hosts."""
        return self._core.hosts

    @property
    def kinds(self) -> dict[str, str]:
        """The classes in which messages can be sent, with the transport of each."""
        return dict(self._core.classes)

    @property
    def now_ps(self) -> int:
        """The network's time, in picoseconds: `live.dilation` times as slow as the machine's, from when the run began.

        It goes back when the machine was so late that the network counts as having stood still. Raises `cw.MazeOver`
        when the run is over.
        """
        return self._core.now

    @property
    def over(self) -> str | None:
        """Why nothing can be sent any more; None while it can."""
        return self._core.over

    def socket(self, host: str, port: int | None = None) -> Socket:
        """Opens a socket at a host: at a port from 1 to 65535, or at any that is free."""
        if port is not None and not 1 <= port <= 65535:
            raise ValueError(f"port={port}: ports are 1 to 65535; leave it out for one that is free")
        return Socket(self._core.socket(host, port))

    def completions(self) -> Completions:
        """Makes a completion queue."""
        return Completions(self._core.completions())

    def _join_helpers(self) -> None:
        for helper in self._helpers:
            if helper is not threading.current_thread():
                helper.join(HELPER_SECONDS)


class JoinedMaze(_Network):
    """A Maze that runs in another program, joined by its socket. `Maze.connect` makes it.

    Sockets, completion queues and `cw.Rpc` work as over a Maze of this program. A message has up to 64 MiB, and
    messages of this program that are under way, or that no socket has received, take 64 MiB together.

    A message is a flow of the other program's result, whose table `clients` has a row for this program.
    """

    _core: _core.JoinedMaze

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._path = Path(path)
        self._core = _core.JoinedMaze(self._path)
        _OPEN.add(self)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Leaves the Maze, which goes on. Before, it waits for at most `timeout` seconds until all messages of this
        program have ended.
        """
        _OPEN.discard(self)
        try:
            self._core.close(timeout)
        finally:
            self._join_helpers()

    def __enter__(self) -> JoinedMaze:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(CLOSE_SECONDS if error is None else 0.0)

    def __repr__(self) -> str:
        return f"<JoinedMaze {self._path}: {self.over or 'lives'}>"


class Maze(_Network):
    """A scenario that runs in real time while a program sends messages over it.

    A message goes through the host, links and switches as all packets do, over the transport of its class, beside the
    scenario's own traffic: `live.sockets` in the scenario names classes, and without it there is one, `socket`, over
    the scenario's `transport`. It arrives whole and unchanged, or not at all. It is a flow of the result. The run lasts
    until `close`, which gives the result, or until `measure.end`.

    >>> import clearway as cw
    >>> rack = cw.Scenario.load("examples/live/rpc.toml")
    >>> with cw.Maze(rack) as maze, maze.socket("host0") as client, maze.socket("host3", port=7) as server:
    ...     sent = client.send("host3:7", b"how are you?", kind="rpc")
    ...     question = server.receive(timeout=60)
    ...     _ = server.send(question.source, b"fine", kind="rpc")
    ...     answer = client.receive(timeout=60).content
    >>> question.content, answer
    (b'how are you?', b'fine')
    >>> flows = maze.result.flows.to_pandas()
    >>> flows[flows["class"] == "rpc"].bytes.tolist()  # 8 of them are the ports and a checksum
    [20, 12]
    """

    _core: _core.Maze

    def __init__(self, scenario: Scenario | str | Path, *, name: str | None = None) -> None:
        super().__init__()
        self._scenario = scenario_of(scenario)
        self._name = name if name is not None else f"{self._scenario.name}, live"
        self._began = (time.perf_counter(), time.process_time())
        self._runs = live_core(self._scenario, ".")
        self._core = _core.Maze(self._runs)
        self._result: Result | None = None
        _OPEN.add(self)

    @staticmethod
    def connect(path: str | Path) -> JoinedMaze:
        """Joins a Maze that runs in another program, `clearway live SCENARIO.toml --sockets PATH`, by its socket.

        >>> import clearway as cw
        >>> with cw.Maze.connect("/tmp/rack.socket") as maze:  # doctest: +SKIP
        ...     with maze.socket("host0") as client:
        ...         _ = client.send("host3:7", b"how are you?").wait(timeout=60)
        """
        return JoinedMaze(path)

    def close(self, timeout: float = CLOSE_SECONDS) -> Result:
        """Ends the run and returns its result. Before, it waits for at most `timeout` seconds until all messages have
        ended.
        """
        try:
            ran = self._core.close(self._runs, timeout)
        finally:
            self._join_helpers()
        if ran is not None:
            self._result = result_of(self._name, ran, *self._began)
        return self.result

    @property
    def result(self) -> Result:
        """The result, once it is closed."""
        if self._result is None:
            raise AttributeError("a Maze has a result when it is closed")
        return self._result

    def __enter__(self) -> Maze:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(CLOSE_SECONDS if error is None else 0.0)

    def __repr__(self) -> str:
        return f"<Maze {self._scenario.name}: {'closed' if self._result is not None else self.over or 'lives'}>"


def _message(received: tuple[int, str, int, str, bytes, int]) -> Message:
    flow, host, port, kind, content, delivered_ps = received
    return Message(content, Address(host, port), kind, flow, delivered_ps)


def address_of(to: Address | tuple[str, int] | str) -> tuple[str, int]:
    """Host and port of what names them."""
    host, port = to.rpartition(":")[::2] if isinstance(to, str) else to
    digits = str(port)
    if not (host and digits.isascii() and digits.isdigit() and 1 <= int(digits) <= 65535):
        raise ValueError(f"{to!r} is not an address, such as 'host3:7', with a port from 1 to 65535")
    return host, int(digits)
