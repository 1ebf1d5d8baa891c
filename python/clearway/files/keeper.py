"""A process outside of the sandbox, which puts results in their places.

The files of a command take their places whole, by renaming, and a rename changes the folder around a file. The
sandbox can allow that only for all of that folder, such as the one that the user happens to be in. So a small process
is forked before the sandbox closes. It knows the places that the command line names, and can do nothing but move what
was written for one of these to it, and open the page that was written. Beside each place there is a folder for what is
to take it; the process removes that at the end, also if the command was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from clearway.files import places, whole


@dataclass
class Staged:
    """A place, and what is to take it."""

    place: Path
    is_result: bool
    """A folder that is replaced as a whole; a file otherwise."""
    folder: Path
    """Beside the place; for what is written before it takes the place."""

    @property
    def inner(self) -> Path:
        """Where a result is written."""
        return self.folder / self.place.name


@dataclass
class Layout:
    """Folders that are made before the sandbox closes, and removed at the end if they are empty."""

    temporary: Path | None = None
    """For temporary files, of this command alone."""
    staged: list[Staged] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    """For results: each may be written in as a whole."""
    locks: list[Path] = field(default_factory=list)
    made: list[Path] = field(default_factory=list)
    """Folders that were not there."""
    handles: list[int] = field(default_factory=list)
    """Of the folders beside places: while they are open, these count as being written."""
    shows: bool = False
    """Whether a page may be opened in a browser."""

    @property
    def writes(self) -> list[Path]:
        """All that the command may write in, or that it may write."""
        inner = [one.inner for one in self.staged if one.is_result]
        outer = [one.place for one in self.staged if one.is_result and one.place.is_dir()]
        own = [self.temporary] if self.temporary is not None else []
        return [*own, *(one.folder for one in self.staged), *inner, *outer, *self.folders, *self.locks]


def prepare(results: Sequence[Path], folders: Sequence[Path], files: Sequence[Path]) -> Layout:
    """Makes what has to be there before the sandbox closes: for a place that can't be written to, nothing. The command
    then says what is wrong with it.
    """
    layout = Layout()
    with contextlib.suppress(OSError):
        layout.temporary = Path(tempfile.mkdtemp(prefix=f"clearway-{os.getpid()}-"))
    for place in map(_real, (*results, *folders)):
        with contextlib.suppress(OSError):
            _parents(layout, place.parent)
            lock = places.lock_of(place)
            os.close(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
            layout.locks.append(lock)
    for place in map(_real, folders):
        with contextlib.suppress(OSError):
            _parents(layout, place)
            layout.folders.append(place)
    # Files in one of the other places need no help: these may be written in.
    inner = [_real(place) for place in (*results, *folders)]
    alone = [file for file in map(_real, files) if not any(file.is_relative_to(place) for place in inner)]
    for given, is_result in (([_real(place) for place in results], True), (alone, False)):
        for place in given:
            with contextlib.suppress(OSError):
                _parents(layout, place.parent)
                beside, handle = whole.begin(place, folder=True)
                layout.handles.append(handle)
                layout.staged.append(Staged(place, is_result, beside))
                if is_result:
                    layout.staged[-1].inner.mkdir()
    return layout


def _real(place: Path) -> Path:
    return Path(os.path.realpath(place))


def _parents(layout: Layout, folder: Path) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    layout.made += missing
    folder.mkdir(parents=True, exist_ok=True)


class Keeper:
    """This side of that process."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._socket, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(theirs, layout)
        theirs.close()
        self._answers = self._socket.makefile("r", encoding="utf-8")

    def staged(self, place: Path) -> Staged | None:
        """How a place is taken; none if it is not one of those that the command line named."""
        real = _real(place)
        return next((one for one in self._layout.staged if one.place == real), None)

    def put(self, staged: Staged, part: Path) -> None:
        """Lets what was written take its place."""
        self._ask({"put": self._layout.staged.index(staged), "part": part.name})

    def add(self, staged: Staged, part: Path) -> None:
        """Lets a file take the place that its name says, which begins as that of the place; none is overwritten."""
        self._ask({"add": self._layout.staged.index(staged), "part": part.name})

    def show(self, page: Path) -> bool:
        """Opens a page that has taken its place, in a browser; false if there is none."""
        staged = self.staged(page)
        return staged is not None and self._ask({"show": self._layout.staged.index(staged)}) is True

    def _ask(self, asked: dict[str, object]) -> object:
        self._socket.sendall(json.dumps(asked).encode() + b"\n")
        answer = self._answers.readline()
        if not answer:
            raise OSError("the process that puts results in their places has ended; run the command again")
        said = json.loads(answer)
        if "error" in said:
            kind = {"FileExistsError": FileExistsError}.get(said["error"], OSError)
            raise kind(*said["said"])
        return said["done"]

    def close(self) -> None:
        """Waits until what is not needed any more is removed."""
        self._answers.close()
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _serve(theirs: socket.socket, layout: Layout) -> NoReturn:
    """The process. It ends when the other side does, however that ends."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        # Where standard input was closed, its number may have been free.
        theirs = socket.socket(fileno=fcntl.fcntl(theirs.detach(), fcntl.F_DUPFD_CLOEXEC, 3))
        nowhere = os.open(os.devnull, os.O_RDWR)
        # A reader that waits for the end of the command's output does not wait for this process.
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        kept = theirs.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX") if kept < 1024 else kept + 1024)
        with theirs.makefile("r", encoding="utf-8") as asks:
            for line in asks:
                theirs.sendall(json.dumps(_answer(json.loads(line), layout)).encode() + b"\n")
    except BaseException:
        pass  # No process would hear of it.
    finally:
        _clear(layout)
        os._exit(0)


def _answer(asked: dict[str, object], layout: Layout) -> dict[str, object]:
    try:
        [how] = {"put", "add", "show"} & set(asked)
        staged = layout.staged[int(str(asked[how]))]
        if how == "show":
            return {"done": layout.shows and _show(staged.place)}
        part = staged.folder / os.path.basename(str(asked["part"]))
        if part.is_symlink() or part.is_dir() != staged.is_result or part.parent != staged.folder:
            raise OSError(f"{part} can't become {staged.place}")
        if how == "add":
            _add(part, staged)
        elif staged.is_result:
            whole.move(part, staged.place, places.check_result)
            # The file that was in its place before.
            shutil.rmtree(part, ignore_errors=True)
        else:
            whole.move_file(part, staged.place)
        return {"done": True}
    except OSError as error:
        said = [error.errno, error.strerror, error.filename] if error.errno else [str(error)]
        return {"error": type(error).__name__, "said": said}


def _add(part: Path, staged: Staged) -> None:
    place = staged.place.with_name(part.name)
    if place != staged.place and not re.fullmatch(r"\.\d+\.et", part.name.removeprefix(staged.place.name)):
        raise OSError(f"{part} can't become {place}")
    try:
        os.link(part, place, follow_symlinks=False)
    except FileExistsError:
        raise FileExistsError(f"{place} exists already; name another file") from None
    part.unlink()


def _show(page: Path) -> bool:
    import webbrowser

    return webbrowser.open(page.as_uri())


def _clear(layout: Layout) -> None:
    for folder in (layout.temporary, *(one.folder for one in layout.staged)):
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    for lock in layout.locks:
        with contextlib.suppress(OSError):
            _unlocked(lock)
    for folder in sorted(layout.made, key=lambda folder: -len(folder.parts)):
        # Only if nothing was written.
        with contextlib.suppress(OSError):
            folder.rmdir()


def _unlocked(lock: Path) -> None:
    """Removes the file of a lock that no process holds."""
    handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == os.stat(lock).st_ino:
            os.unlink(lock)
    finally:
        os.close(handle)
