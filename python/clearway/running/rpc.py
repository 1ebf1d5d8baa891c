"""Remote procedure calls over a Maze: Harmony's interface (section 4), with answers."""

from __future__ import annotations

import concurrent.futures
import secrets
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from types import TracebackType

from clearway.errors import Error, MazeOver, Rejected, Undelivered
from clearway.running.maze import Address, Completion, JoinedMaze, Maze, address_of

REQUEST, ANSWER, ERROR = range(3)
HEADER = struct.Struct(">QB")
"""The call's number, and what the message is."""

KNOWN = 1 << 16
"""So many calls a server remembers, so that it does none twice that was sent again."""


class RpcError(Error, RuntimeError):
    """The other side has failed to answer a call: the text of its exception."""


class _Flight:
    """A message that may have to be sent again."""

    def __init__(self, to: Address, content: bytes, kinds: list[str | None], answer: Future[bytes] | None) -> None:
        self.to, self.content, self.answer = to, content, answer
        # The class of each try still to come.
        self.kinds = kinds


class Rpc:
    """Calls to other hosts of a Maze, and answers to theirs, at a port of a host.

    A request and its answer are a message each, in class `kind`. A message that its transport rejects or gives up is
    sent again, `tries` times in all, and then once in class `fallback` if one is named: "the message can be
    re-submitted using the Harmony interface, or using the standard best-effort delivery interface". A call that was
    answered was executed once, however often its request arrived.

    >>> import clearway as cw
    >>> with cw.Maze("examples/live/rpc.toml") as maze:
    ...     server = cw.Rpc(maze, "host3", 7, kind="rpc", serve=lambda request: request.upper())
    ...     client = cw.Rpc(maze, "host0", kind="rpc", fallback="bulk")
    ...     client.call("host3:7", b"how are you?", timeout=60)
    b'HOW ARE YOU?'
    """

    def __init__(
        self,
        maze: Maze | JoinedMaze,
        host: str,
        port: int | None = None,
        *,
        kind: str | None = None,
        fallback: str | None = None,
        tries: int = 3,
        serve: Callable[[bytes], bytes] | None = None,
    ) -> None:
        if tries < 1:
            raise ValueError(f"tries={tries}: must be at least 1")
        for name in (kind, fallback):
            if name is not None and name not in maze.kinds:
                raise ValueError(f"there is no class {name!r} in live.sockets; there are {', '.join(maze.kinds)}")
        self._kinds = [kind] * tries + ([fallback] if fallback is not None else [])
        self._serve = serve
        self._lock = threading.Lock()
        # Ports are given again: late answers to the earlier owner of this port must match no call.
        self._number = secrets.randbits(62)
        self._flights: dict[int, _Flight] = {}
        # Messages that ended before their sender had noted them.
        self._early: dict[int, Completion] = {}
        self._answers: dict[int, Future[bytes]] = {}
        self._known: OrderedDict[tuple[Address, int], None] = OrderedDict()
        self._queue = maze.completions()
        self._socket = maze.socket(host, port)
        for work in (self._receive, self._complete):
            thread = threading.Thread(target=work, daemon=True, name=f"rpc {self.address}")
            maze._helpers.append(thread)
            thread.start()

    @property
    def address(self) -> Address:
        """Where it is."""
        return self._socket.address

    def submit(self, to: Address | tuple[str, int] | str, request: bytes) -> Future[bytes]:
        """Begins a call, and returns a future of its answer."""
        answer: Future[bytes] = Future()
        with self._lock:
            self._number += 1
            number = self._number
            self._answers[number] = answer
        answer.add_done_callback(lambda _: self._answers.pop(number, None))
        content = HEADER.pack(number, REQUEST) + request
        try:
            self._send(_Flight(Address(*address_of(to)), content, list(self._kinds), answer))
        except BaseException:
            answer.cancel()
            raise
        return answer

    def call(self, to: Address | tuple[str, int] | str, request: bytes, timeout: float | None = None) -> bytes:
        """Calls, and waits for the answer, for at most `timeout` seconds of real time.

        Raises `cw.Rejected` or `cw.Undelivered` where the request could not be delivered, `cw.RpcError` where the other
        side failed, and `TimeoutError` where it takes longer.
        """
        answer = self.submit(to, request)
        try:
            return answer.result(timeout)
        except concurrent.futures.TimeoutError:  # before Python 3.11 it is not the builtin one
            where = Address(*address_of(to))
            raise TimeoutError(
                f"{where} has not answered in {timeout:g} s; wait longer (live.dilation makes the network so many "
                "times slower), or see whether its links are down"
            ) from None
        finally:
            answer.cancel()  # a caller that has gone sends nothing again

    def close(self) -> None:
        """Takes no more calls; those that are open fail."""
        self._socket.close()

    def __enter__(self) -> Rpc:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, flight: _Flight) -> None:
        kind = flight.kinds.pop(0)
        sent = self._socket.send(flight.to, flight.content, kind, queue=self._queue)
        with self._lock:
            early = self._early.pop(sent.flow, None)
            if early is None:
                self._flights[sent.flow] = flight
        if early is not None:
            self._ended(flight, early)

    def _complete(self) -> None:
        """The fates of messages."""
        while True:
            try:
                completion = self._queue.next()
            except MazeOver:
                return
            with self._lock:
                flight = self._flights.pop(completion.sent.flow, None)
                if flight is None:
                    self._early[completion.sent.flow] = completion
            if flight is not None:
                self._ended(flight, completion)

    def _ended(self, flight: _Flight, completion: Completion) -> None:
        if completion.flag == "complete":
            return
        if flight.kinds and (flight.answer is None or not flight.answer.done()):
            try:
                self._send(flight)
                return
            except (MazeOver, MemoryError) as error:
                completion = Completion(completion.sent, "failure", None, str(error))
        if flight.answer is not None:
            _fail(flight.answer, (Rejected if completion.flag == "reject" else Undelivered)(completion.reason))

    def _receive(self) -> None:
        """Requests and answers, as they come."""
        for message in self._socket:
            if len(message.content) < HEADER.size:
                continue
            number, what = HEADER.unpack_from(message.content)
            body = message.content[HEADER.size :]
            if what == REQUEST:
                self._answer(message.source, number, body)
            elif (answer := self._answers.get(number)) is not None:
                if what == ANSWER:
                    _succeed(answer, body)
                else:
                    _fail(answer, RpcError(body.decode(errors="replace")))
        for answer in list(self._answers.values()):
            _fail(answer, MazeOver(f"{self.address} is closed, or the run is over"))

    def _answer(self, to: Address, number: int, request: bytes) -> None:
        if (to, number) in self._known:
            return
        self._known[to, number] = None
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        what, body = ANSWER, b""
        try:
            if self._serve is None:
                raise RpcError(f"{self.address} answers no calls; give it `serve`")
            body = self._serve(request)
        except Exception as error:  # whatever it is, the caller is told
            what, body = ERROR, f"{type(error).__name__}: {error}".encode()
        with suppress(MazeOver, MemoryError):  # the caller waits no longer, or as long as it likes
            self._send(_Flight(to, HEADER.pack(number, what) + body, list(self._kinds), None))

    def __repr__(self) -> str:
        return f"<Rpc {self.address}>"


def _succeed(answer: Future[bytes], body: bytes) -> None:
    with suppress(InvalidStateError):
        answer.set_result(body)


def _fail(answer: Future[bytes], error: Exception) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(error)
