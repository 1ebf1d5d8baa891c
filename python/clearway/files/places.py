"""Output folders: checked before work begins, and locked while it goes on.

Output is written next to its place and renamed, so the folder around it must be writable. A file that Clearway has not
written is never replaced or deleted: such a place is refused with the file's name.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from clearway.files.whole import notice
from clearway.results.tables import LIVE, TABLES

_PAGES = ("report.html", "view.html")
FILES = frozenset({"run.json", "scenario.toml", *_PAGES, *(f"{name}.parquet" for name in (*TABLES, *LIVE))})
"""The files of a result's folder, beside what its own `run.json` names."""


def slug(name: str) -> str:
    """A name made fit for a file name."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    # File systems limit names to 255 bytes, and temporary names are longer.
    return plain if len(plain) <= 120 else f"{plain[:100]}-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"


def place_of(scenarios: Iterable[Path], kind: str = "") -> Path:
    """Where results of scenario files go by default. A folder of runs has a `kind` behind its name, since a result of
    the same scenario is a folder of files.

    >>> str(place_of([Path("a/first.toml")], "-compare"))
    'out/first-compare'
    """
    return Path("out") / f"{slug('-'.join(path.stem for path in scenarios))}{kind}"


def check_result(folder: Path) -> Path:
    """The folder for a result, with links followed. `FileExistsError` names what is in the way."""
    if folder.is_symlink():
        if not folder.exists():
            raise FileExistsError(f"{folder} is a link to {os.readlink(folder)}, which does not exist; name a folder")
        folder = folder.resolve()
    if not folder.exists():
        check_folder(folder)
        return folder
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and a result needs a folder; choose another place")
    inside = sorted(path.name for path in folder.iterdir())
    if inside and "run.json" not in inside:
        raise FileExistsError(f"{folder} holds {inside[0]!r} and no result of a run; choose another place")
    ours = FILES | _named(folder / "run.json")
    foreign = [name for name in inside if name not in ours or (folder / name).is_dir()]
    if foreign:
        raise FileExistsError(
            f"{folder} holds {foreign[0]!r}, which would be deleted with the old result; move it, or choose another "
            "place"
        )
    return folder


def _named(run: Path) -> set[str]:
    """The tables that a result lists as its own."""
    try:
        return set(json.loads(run.read_text(encoding="utf-8"))["checksums"]) if run.is_file() else set()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


@contextlib.contextmanager
def held(folder: str | Path, *, result: bool = False) -> Iterator[Path]:
    """Checks a place and locks it for this process. `result`: the folder itself becomes a result.

    The lock is on `.NAME.lock` next to it. If the process is killed the lock is released.
    """
    given = Path(folder)
    place = check_result(given) if result else check_folder(given)
    made = _parents(place.parent, given)
    lock = lock_of(place)
    try:
        handle = _locked(lock, given)
        try:
            notice(place.parent, place)
            yield place
        finally:
            with contextlib.suppress(OSError):
                os.unlink(lock)
            os.close(handle)
    finally:
        for parent in made:
            # Only if nothing was written.
            with contextlib.suppress(OSError):
                parent.rmdir()


def lock_of(place: Path) -> Path:
    """The file that is locked while a command writes to a place."""
    return place.parent / f".{place.name}.lock"


def check_folder(folder: Path) -> Path:
    """An existing or new folder for results."""
    if folder.is_symlink() and not folder.exists():
        raise FileExistsError(f"{folder} is a link to {os.readlink(folder)}, which does not exist; name a folder")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and results need a folder; choose another place")
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise NotADirectoryError(
            f"{folder}: {there} is a file, so that no folder can be made in it; choose another place"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder}: {there} is not writable; choose another place")
    return folder.resolve()


def _parents(folder: Path, given: Path) -> list[Path]:
    """Creates the folders around a place; returns those that it has created, the innermost first."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            f"{given}: the folder {folder} cannot be made: {error.strerror}; choose another place"
        ) from None
    return missing


def _locked(lock: Path, given: Path) -> int:
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise type(error)(
                f"{given}: {lock.parent} is not writable: {error.strerror}; choose another place"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(handle, 200, 0).decode(errors="replace").strip()
            os.close(handle)
            raise FileExistsError(
                f"{given}: {who or 'another command'} is writing there; wait until it has ended, or choose another "
                "place"
            ) from None
        except OSError:
            pass  # A file system without locks: results are still complete or absent.
        with contextlib.suppress(FileNotFoundError):
            # The previous holder may have deleted it between our opening and our locking it.
            if os.fstat(handle).st_ino == os.stat(lock).st_ino:
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return handle
        os.close(handle)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delays Ctrl-C and requests to terminate until this is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    before = {
        number: signal.signal(number, lambda *said: heard.append(said)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            # `None` is a handler that Python has not set and cannot set.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    for first, frame in heard[:1]:
        then = before[signal.Signals(first)]
        if callable(then):
            then(first, frame)
        elif then == signal.SIG_DFL:
            signal.raise_signal(first)


def check_page(path: Path) -> None:
    """Refuses to overwrite a file that is not a page of a report."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file for the page, such as {path / 'report.html'}")
    if path.exists():
        with path.open("rb") as file:
            head = file.read(64)
        if head and not head.lower().startswith(b"<!doctype html"):
            raise FileExistsError(f"{path} exists and is not a page of a report; choose another place")
