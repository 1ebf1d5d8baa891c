"""Files and folders that are there whole or not at all, whatever ends their writer.

A file that is being written stands beside its place, as `.NAME.XXXXXXXX.clearway`, until it is complete and on the
disk. Then one
call puts it there: it is renamed, or exchanged with the folder that is there, so that at no instant there is neither.
Its writer holds a lock on it. A writer that is killed leaves it behind without a lock: `leftovers` finds such files and
folders, and `clean` removes them.

Where a file system can't exchange folders, the earlier one is first renamed to `.NAME.XXXXXXXX.clearway-old`. If the
writer is killed at that instant `clean` puts it back.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clearway import _core

if TYPE_CHECKING:
    from clearway.files.keeper import Keeper, Staged

keeper: Keeper | None = None
"""The process that puts results in their places while a sandbox is closed: beside a place nothing can be written
then."""

_PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.clearway(?P<old>-old)?", re.DOTALL)
_LOCK = re.compile(r"\..+\.lock", re.DOTALL)
_HOLDER = re.compile(rb"process \d+ on [^\n]*\n?")
# Errors of a file system that can't exchange folders.
_NO_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
_TRIES = 100
DAY_SECONDS = 86_400.0
_told_of = set[Path]()


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file: the whole file or nothing. `write` is given the file that takes its place."""
    with _told(path):
        staged = _staged(path)
        if staged is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        part, lock = begin(path if staged is None else staged.folder / path.name, folder=False)
        try:
            write(part)
            os.chmod(part, 0o644)
            if keeper is not None and staged is not None:
                keeper.put(staged, part)
            else:
                move_file(part, path)
        except BaseException:
            # Arrow deletes a file that it could not finish. Its error is the one to report.
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        finally:
            os.close(lock)


def replace_folder(folder: Path, write: Callable[[Path], object], may_go: Callable[[Path], object]) -> None:
    """Writes a folder: all of it or nothing. `write` is given the empty folder that takes its place.

    `may_go` is given the folder that is there, first in its place and then out of it. If it raises, that one stays.
    """
    with _told(folder):
        staged = _staged(folder)
        if keeper is not None and staged is not None and staged.inner.is_dir():
            write(staged.inner)
            os.chmod(staged.inner, 0o755)
            keeper.put(staged, staged.inner)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        part, lock = begin(folder, folder=True)
        try:
            write(part)
            os.chmod(part, 0o755)
            move(part, folder, may_go)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            os.close(lock)


def move(written: Path, place: Path, may_go: Callable[[Path], object]) -> None:
    """Puts a folder that is written in its place, as `replace_folder` does."""
    _sync_all(written)
    _put(written, place, may_go)
    _sync(place.parent)


def move_file(written: Path, place: Path) -> None:
    """Puts a file that is written in its place."""
    _sync(written)
    os.replace(written, place)
    _sync(place.parent)


def exchange(one: Path, other: Path) -> None:
    """Exchanges two folders in one step; `OSError` where that can't be done."""
    sys.audit("clearway.exchange", str(one), str(other))
    number = _core.exchange(one, other)
    if number:
        raise OSError(number, os.strerror(number), str(other))


def leftovers(folder: Path) -> list[Path]:
    """Files that killed writers have left in a folder; none that a process still writes."""
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as inside:
        found = [Path(entry.path) for entry in inside if _PART.fullmatch(entry.name)]
    return [path for path in sorted(found) if _is_left(path)]


def notice(*folders: Path) -> None:
    """Says on standard error what killed writers have left in these folders, and how to remove it."""
    for folder in dict.fromkeys(folders):
        for path in leftovers(folder):
            if path in _told_of:
                continue
            _told_of.add(path)
            place = _old_of(path)
            what = "holds what was there before" if place is not None else "is not complete"
            then = f"puts it back as {place}" if place is not None else "removes it"
            said = f"note: {path} {what}: its writer was killed; `clearway clean {folder}` {then}"
            print(said, file=sys.stderr, flush=True)


def clean(folder: Path) -> Iterator[str]:
    """Removes what killed writers have left in a folder and in those inside it; says of each what became of it."""
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name one in which results are")
    for place, inside, files in os.walk(folder):
        for name in sorted([*inside, *files]):
            path = Path(place) / name
            if _PART.fullmatch(name):
                inside[:] = [one for one in inside if one != name]
                with _taken(path) as is_left:
                    said = _cleaned(path) if is_left else "left alone: a process writes it"
                yield f"{path}: {said}"
            elif _LOCK.fullmatch(name) and _is_lock(path):
                with _taken(path) as is_left:
                    if is_left:
                        os.unlink(path)
                        yield f"{path}: removed"


def begin(path: Path, *, folder: bool) -> tuple[Path, int]:
    """A new file or folder beside a place, and the handle that holds the lock on it."""
    for _ in range(_TRIES):
        part = _beside(path)
        try:
            if folder:
                os.mkdir(part, 0o700)
                handle = _opened(part)
            else:
                handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        except FileNotFoundError:
            if folder and path.parent.is_dir():
                continue  # taken for a leftover before it was locked
            raise
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        except OSError:
            pass  # no locks on this file system: its age then tells whether a process writes it
        with contextlib.suppress(OSError):
            if os.fstat(handle).st_ino == os.stat(part, follow_symlinks=False).st_ino:
                return part, handle
        os.close(handle)
    raise FileExistsError(errno.EEXIST, "no name is free beside it", str(path))


def _staged(place: Path) -> Staged | None:
    return keeper.staged(place) if keeper is not None else None


def _opened(part: Path) -> int:
    try:
        return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except BaseException:
        with contextlib.suppress(OSError):
            os.rmdir(part)
        raise


def _beside(path: Path, end: str = "") -> Path:
    # A name may have 255 bytes.
    name = path.name.encode(errors="surrogateescape")[:200].decode(errors="ignore")
    return path.parent / f".{name}.{secrets.token_hex(4)}.clearway{end}"


def _put(part: Path, folder: Path, may_go: Callable[[Path], object]) -> None:
    for _ in range(_TRIES):
        if not os.path.lexists(folder):
            try:
                os.rename(part, folder)
            except OSError as error:
                # Another process has put one there meanwhile.
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    continue
                raise
            return
        may_go(folder)
        try:
            exchange(part, folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
            if not _put_in_two(part, folder):
                continue
            return
        try:
            # Another process may have put something into it since.
            may_go(part)
        except BaseException:
            exchange(part, folder)
            raise
        return
    raise FileExistsError(errno.EEXIST, "other processes keep writing there", str(folder))


def _put_in_two(part: Path, folder: Path) -> bool:
    """Puts a folder in the place of another without exchanging them; false if another process was faster."""
    old = _beside(folder, "-old")
    try:
        os.rename(folder, old)
    except FileNotFoundError:
        return False
    try:
        os.rename(part, folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            shutil.rmtree(old, ignore_errors=True)
            return False
        os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return True


def _sync_all(folder: Path) -> None:
    """Waits until a folder is on the disk, after everything in it is written: the first file then waits for all."""
    for path in sorted(folder.rglob("*")):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    """Waits until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems can't do it with folders.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def _told(place: Path) -> Iterator[None]:
    """An error of the system while a place is written names the place, and not what stands beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(place)) from error


@contextlib.contextmanager
def _taken(path: Path) -> Iterator[bool]:
    """Locks a file or folder that a killed writer has left; false if a process holds it, or if that can't be known."""
    try:
        kind = os.lstat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            yield False
            return
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    except OSError:
        # No locks on this file system. An active writer has written within the last day.
        yield time.time() - max(map(_written, [path, *(path.iterdir() if path.is_dir() else ())])) > DAY_SECONDS
    else:
        yield True
    finally:
        os.close(handle)


def _written(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return time.time()


def _is_left(path: Path) -> bool:
    with _taken(path) as is_left:
        return is_left


def _is_lock(path: Path) -> bool:
    """Whether a file is the lock of a command's output."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with path.open("rb") as file:
            said = file.read(300)
    except OSError:
        return False
    return _HOLDER.fullmatch(said) is not None


def _old_of(path: Path) -> Path | None:
    """Where the earlier folder belongs that a killed writer has left, if nothing is there."""
    said = _PART.fullmatch(path.name)
    place = path.parent / said["name"] if said is not None and said["old"] else None
    return place if place is not None and not os.path.lexists(place) else None


def _cleaned(path: Path) -> str:
    """The fate of a file that a killed writer has left."""
    place = _old_of(path)
    if place is not None:
        os.rename(path, place)
        return f"put back as {place}"
    if not path.is_dir():
        os.unlink(path)
        return "removed"
    # Results are folders of files, and crates that are made from the template have one folder. Where a sandbox was
    # closed, what was written is one folder further in.
    said = _PART.fullmatch(path.name)
    ours = {"src", said["name"] if said is not None else ""}
    deep = next((inner for inner in path.iterdir() if inner.is_dir() and inner.name not in ours), None)
    if deep is not None:
        return f"left alone: it holds a folder, {deep.name}, that Clearway has not made"
    shutil.rmtree(path)
    return "removed"
