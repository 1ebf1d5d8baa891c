"""A store: results by key, and which driver works on which key.

    runs/KEY/          a result: it appears complete, by renaming, and never changes; a damaged one is replaced
    failed/KEY.json    how the last attempt failed
    claims/KEY.N       the Nth attempt; the file names its driver
    drivers/DRIVER/    a live driver: its lock, whose time is its heartbeat, and results being written
    log/DRIVER.jsonl   what the driver did, for people to read

A claim is a file that only one driver can create, on a shared file system too. Claims are never deleted, so a driver
with an outdated view of the folder can't claim an attempt a second time. A claim is valid as long as its driver lives.
A driver that ends removes its folder. A driver that was killed leaves it behind. Other drivers on the same machine
find that its lock is free; drivers on other machines find that its heartbeat has not changed for a minute, which
compares no clocks. Its keys can then be claimed again, under the next number.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearway.files.whole import move

HEARTBEAT_SECONDS = 5.0
DEAD_SECONDS = 60.0


FAILURE_BYTES_MAX = 10_000_000
"""Most bytes of a file that says how an attempt failed."""

_checked: dict[Path, tuple[frozenset[Any], str]] = {}
"""The findings of checks of results, by the state of their files. Sweeps look at each result several times."""


class Lost(OSError):
    """Other drivers considered this one dead and claimed its work."""


@dataclass(frozen=True)
class Failure:
    """An attempt that failed, and why."""

    attempt: int
    error: str
    where: str


class _Kept(Exception):
    """There is a result already."""


def _any(folder: Path) -> None:
    """A check that every result passes."""


class Store:
    """A folder of results. Anyone can read it; to claim keys and write results, `open` it as a driver."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def place(self, key: str) -> Path:
        """The folder of a key's result, whether or not it exists."""
        return self.folder / "runs" / key

    def has(self, key: str) -> bool:
        """Whether the key has a result."""
        return self.place(key).is_dir()

    def damage(self, key: str, check: Callable[[Path], object]) -> str:
        """The fault of a key's result, by the `ValueError` of a check; empty if there is none."""
        place = self.place(key)
        try:
            now = frozenset((entry.name, *_state(entry.stat())) for entry in os.scandir(place))
        except OSError as error:
            return f"{place} is damaged: {error.strerror}"
        known = _checked.get(place)
        if known is None or known[0] != now:
            try:
                check(place)
                known = (now, "")
            except (OSError, ValueError) as error:
                known = (now, str(error))
            _checked[place] = known
        return known[1]

    def failure(self, key: str) -> Failure | None:
        """The failure of the last attempt; none if it did not fail."""
        try:
            with (self.folder / "failed" / f"{key}.json").open("rb") as file:
                said = json.loads(file.read(FAILURE_BYTES_MAX))
            return Failure(int(said["attempt"]), str(said["error"]), str(said["where"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def open(self) -> Driver:
        """Opens the store as a driver."""
        return Driver(self.folder)


class Driver(Store):
    """A store opened by a driver. `close` releases the keys that it has claimed and not finished."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for part in ("runs", "failed", "claims", "drivers", "log"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self.token = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.home = folder / "drivers" / self.token
        # No other driver ever sees the file unlocked.
        new = folder / "drivers" / f".{self.token}"
        new.mkdir()
        lock = new / "lock"
        lock.write_text(json.dumps({"machine": _machine()}), encoding="utf-8")
        self._lock = lock.open("r+")
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(self.home)
        self._log = os.open(folder / "log" / f"{self.token}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._seen: dict[str, tuple[int, float]] = {}
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heart.start()
        self._bury()

    def claim(self, key: str) -> int | None:
        """Claims a key for this driver: the number of the attempt, or none if a live driver works on the key."""
        attempt = 0
        for number, owner in self._claims(key):
            attempt = number
            failure = self.failure(key)
            if (failure is None or failure.attempt < number) and not self._dead(owner, f"{key}.{number}"):
                return None
        attempt += 1
        try:
            handle = os.open(self.folder / "claims" / f"{key}.{attempt}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return None
        with os.fdopen(handle, "w") as file:
            file.write(self.token)
        return attempt

    def scratch(self, key: str) -> Path:
        """A path that does not exist yet, to write a result to before it is stored."""
        place = self.home / key
        shutil.rmtree(place, ignore_errors=True)
        return place

    def keep(self, key: str, written: Path, check: Callable[[Path], object] = _any) -> bool:
        """Moves a written result to its place; false if the key already has a result. One that does not pass the check
        is replaced.
        """
        self._assert_mine()

        def may_go(there: Path) -> None:
            if there == self.place(key) and not self.damage(key, check):
                raise _Kept

        try:
            move(written, self.place(key), may_go)
        except _Kept:
            shutil.rmtree(written, ignore_errors=True)
            return False
        # Of what it has replaced.
        shutil.rmtree(written, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            (self.folder / "failed" / f"{key}.json").unlink()
        return True

    def fail(self, key: str, failure: Failure) -> None:
        """Records how an attempt failed."""
        self._assert_mine()
        part = self.home / f"{key}.json"
        said = {"attempt": failure.attempt, "error": failure.error, "where": failure.where}
        part.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        part.replace(self.folder / "failed" / f"{key}.json")

    def log(self, event: str, key: str = "", **facts: Any) -> None:
        """Writes a line into this driver's log."""
        line = {"time": round(time.time(), 3), "event": event, **({"run": key} if key else {}), **facts}
        os.write(self._log, (json.dumps(line) + "\n").encode())

    def close(self) -> None:
        """Releases the keys that this driver has claimed and not finished."""
        self._ended.set()
        self._heart.join()
        shutil.rmtree(self.home, ignore_errors=True)
        self._lock.close()
        os.close(self._log)

    def _claims(self, key: str) -> Iterable[tuple[int, str]]:
        """The last attempt: its number and its driver."""
        number = 1
        last = None
        while (path := self.folder / "claims" / f"{key}.{number}").exists():
            last = path
            number += 1
        if last is None:
            return []
        with last.open("rb") as file:
            owner = file.read(300).decode(errors="replace")
        # Whatever else is in there is no driver's name, and above all no path.
        return [(number - 1, owner if re.fullmatch(r"[\w.-]{3,250}", owner) else "")]

    def _dead(self, owner: str, claim: str) -> bool:
        if owner == self.token:
            return False
        # The driver was killed between creating its claim and signing it.
        home = self.folder / "drivers" / owner if owner else self.folder / "claims" / claim
        lock = home / "lock" if owner else home
        try:
            if owner:
                with lock.open("r+") as file:
                    if json.loads(file.read(1000))["machine"] == _machine() and _free(file):
                        return True
            beat = lock.stat().st_mtime_ns
        except (OSError, ValueError, KeyError, TypeError):
            return not home.exists() if owner else False
        before, since = self._seen.get(owner or claim, (None, 0.0))
        if before != beat:
            self._seen[owner or claim] = (beat, time.monotonic())
            return False
        return time.monotonic() - since > DEAD_SECONDS

    def _bury(self) -> None:
        """Removes files that killed drivers left behind."""
        for home in (self.folder / "drivers").iterdir():
            if not home.name.startswith(".") and self._dead(home.name, ""):
                shutil.rmtree(home, ignore_errors=True)

    def _assert_mine(self) -> None:
        if not self.home.exists():
            raise Lost(
                f"{self.folder}: this driver did not respond for so long that another one took over; runs that this "
                "one had begun are lost"
            )

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(self.home / "lock")


def _free(file: Any) -> bool:
    """Whether no process on this machine holds a lock on the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # No locks on this file system: the heartbeat decides.
        return False
    return True


def _state(of: os.stat_result) -> tuple[int, ...]:
    return of.st_ino, of.st_size, of.st_mtime_ns


def _machine() -> str:
    """An id of this machine: locks of the same machine can be checked."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()
