"""A driver's loop: it claims keys while its executor has room, stores results, and waits for keys of other drivers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from clearway.running.machines import tell
from clearway.sweeps.points import Task
from clearway.sweeps.store import Driver, Failure

# Attempts of a run whose worker died: another run on that machine may have been the cause.
TRIES = 2
# How often the driver checks whether other drivers have finished their runs.
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Begun:
    """A worker has begun a run."""

    key: str
    where: str


@dataclass(frozen=True)
class At:
    """The progress of a run."""

    key: str
    share: float
    words: str


@dataclass(frozen=True)
class Done:
    """A run has ended, and its result is written."""

    key: str
    written: Path


@dataclass(frozen=True)
class Failed:
    """A run has ended with an error."""

    key: str
    error: str


@dataclass(frozen=True)
class Died:
    """The worker of a run has ended."""

    key: str
    how: str


Event = Begun | At | Done | Failed | Died


class Executor(Protocol):
    """An executor: it runs tasks."""

    @property
    def room(self) -> int:
        """How many more tasks it can take now."""

    def submit(self, key: str, task: Task, scratch: Path) -> None:
        """Starts a task, whose result is written as `scratch`."""

    def events(self, seconds: float) -> Iterator[Event]:
        """The events since the last call; waits this long for one if there are none."""

    def close(self) -> None:
        """Ends all running tasks."""


@dataclass
class Running:
    """A run that this driver has claimed."""

    attempt: int
    tries: int = 1
    where: str = ""
    began: float | None = None
    share: float = 0.0
    words: str = ""


@dataclass
class Board:
    """The state of a sweep, for those who watch it."""

    names: Mapping[str, str]
    """The name of each key."""
    lanes: int = 1
    """How many tasks run at a time."""
    running: dict[str, Running] = field(default_factory=dict)
    waiting: int = 0
    elsewhere: int = 0
    """The runs of other drivers."""
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    """How long each run took that has ended here."""
    kept: int = 0
    """How many runs were done before."""

    def seconds_left(self) -> float | None:
        """The time left, by the mean of ended runs and the progress of running ones; none if unknown."""
        now = time.monotonic()
        spent = {key: now - run.began for key, run in self.running.items() if run.began is not None}
        guesses = {
            key: spent[key] / share for key, run in self.running.items() if key in spent and (share := run.share) > 0.02
        }
        known = self.took or list(guesses.values())
        if not known:
            return None
        mean = sum(known) / len(known)
        left = [max(guesses.get(key, mean) - spent.get(key, 0.0), 0.0) for key in self.running]
        to_come = (self.waiting + self.elsewhere) * mean
        return max((sum(left) + to_come) / max(self.lanes, 1), max(left, default=0.0))


def drive(
    tasks: Mapping[str, Task],
    board: Board,
    driver: Driver,
    executor: Executor,
    retry: bool,
    watch: Callable[[str], object],
) -> None:
    """Runs tasks until each has a result or has failed.

    `watch` is called as the board changes, with news if there are any.
    """
    _Drive(tasks, board, driver, executor, retry, watch).run()


class _Drive:
    def __init__(
        self,
        tasks: Mapping[str, Task],
        board: Board,
        driver: Driver,
        executor: Executor,
        retry: bool,
        watch: Callable[[str], object],
    ) -> None:
        self.tasks, self.board, self.driver, self.executor, self.watch = tasks, board, driver, executor, watch
        # Runs that have failed by now are tried again, once, however many drivers do so.
        failures = {key: driver.failure(key) for key in tasks} if retry else {}
        self.retried = {key: failure.attempt for key, failure in failures.items() if failure is not None}
        self.queue = deque(tasks)
        self.others: deque[str] = deque()
        self.damaged: set[str] = set()

    def run(self) -> None:
        board = self.board
        self.queue = deque(key for key in self.tasks if not self.settled(key))
        board.kept = len(board.done)
        looked = time.monotonic()
        while self.queue or self.others or board.running:
            while self.queue and self.executor.room > 0:
                self.start(self.queue.popleft())
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                for _ in range(len(self.others)):
                    self.start(self.others.popleft())
            board.waiting, board.elsewhere = len(self.queue), len(self.others)
            board.lanes = max(board.lanes, len(board.running))
            self.watch("")
            for event in self.executor.events(0.25):
                self.watch(self.handle(event))
        board.waiting = board.elsewhere = 0
        self.watch("")

    def settled(self, key: str) -> bool:
        """Whether a key has a result, or has failed and is not tried again."""
        if self.driver.has(key):
            damage = self.driver.damage(key, self.tasks[key].check_whole)
            if not damage:
                self.board.done.add(key)
                return True
            if key not in self.damaged:
                self.damaged.add(key)
                tell(f"warning: {self.board.names[key]}: {damage}; it is computed again")
            return False
        failure = self.driver.failure(key)
        if failure is None or failure.attempt <= self.retried.get(key, 0):
            return False
        self.board.failed[key] = failure.error
        return True

    def start(self, key: str) -> None:
        if self.settled(key):
            return
        attempt = self.driver.claim(key) if self.executor.room > 0 else None
        if attempt is None:
            self.others.append(key)
        elif not self.settled(key):  # no driver has ended it between the look and the claim
            self.board.running[key] = Running(attempt)
            self.driver.log("claimed", key, attempt=attempt)
            self.executor.submit(key, self.tasks[key], self.driver.scratch(key))

    def handle(self, event: Event) -> str:
        """Records an event; returns the message about it, if there is one."""
        board, driver, key = self.board, self.driver, event.key
        run = board.running[key]
        if isinstance(event, At):
            run.share, run.words = event.share, event.words
            return ""
        if isinstance(event, Begun):
            run.began, run.where, run.share, run.words = time.monotonic(), event.where, 0.0, ""
            driver.log("begun", key, attempt=run.attempt, where=event.where)
            return ""
        took = time.monotonic() - run.began if run.began is not None else 0.0
        name = board.names[key]
        if isinstance(event, Died):
            driver.log("died", key, attempt=run.attempt, where=run.where, how=event.how)
            if run.tries < TRIES:
                board.running[key] = Running(run.attempt, run.tries + 1)
                self.executor.submit(key, self.tasks[key], driver.scratch(key))
                return f"again: {name}: its worker died ({event.how})"
            event = Failed(key, f"its worker died, and so did the next: {event.how}")
        del board.running[key]
        if isinstance(event, Failed):
            driver.fail(key, Failure(run.attempt, event.error, run.where))
            driver.log("failed", key, attempt=run.attempt, where=run.where)
            board.failed[key] = event.error
            return f"failed: {name}: {event.error.strip().splitlines()[-1]}"
        first = driver.keep(key, event.written, self.tasks[key].check_whole)
        driver.log("kept" if first else "was there", key, attempt=run.attempt, where=run.where, seconds=round(took, 3))
        board.done.add(key)
        board.took.append(took)
        return f"done in {took:,.1f} s: {name}"
