"""Whose programs may run.

A scenario can name the folder of a crate, and the program that this folder holds then reads and runs the scenario, with
all rights of the user. A scenario may come from another person. So its program runs only once a person has trusted it:
`clearway trust FOLDER` remembers the folder with a digest of the program and of all that it was built from. When one of
these changes, trust ends. The environment variable CLEARWAY_ALLOW_PROGRAMS=1 and the option --allow-programs let every
program run for one command.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

ALLOW = "CLEARWAY_ALLOW_PROGRAMS"
"""An environment variable: "1" lets the program of every crate run. Processes of a sweep have it from its command."""


@dataclass(frozen=True)
class Trusted:
    """The record of a folder."""

    folder: str
    """Links followed, as all paths here."""
    program: str
    digest: str
    sources: tuple[str, ...] = ()
    """The files outside of the folder that the program was built from, but for Clearway's own."""


def allow_all() -> None:
    """Lets every crate's program run, from here on and in all processes that this one starts."""
    os.environ[ALLOW] = "1"


def all_allowed() -> bool:
    """Whether every crate's program may run."""
    return os.environ.get(ALLOW) == "1"


def place() -> Path:
    """The file that remembers."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    folder = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~")) / ".config"
    return folder / "clearway" / "trusted.json"


def known() -> list[Trusted]:
    """All that is trusted."""
    try:
        read = json.loads(place().read_text(encoding="utf-8"))
        return [Trusted(**{**one, "sources": tuple(one["sources"])}) for one in read["trusted"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{place()} can't be read ({type(error).__name__}: {error}); mend it, or delete it and trust again"
        ) from None


def remember(new: Trusted) -> None:
    """Trusts a folder from here on, as it is now."""
    _write([*(one for one in known() if one.folder != new.folder), new])


def forget(folder: Path) -> bool:
    """Ends the trust in a folder; false if there was none."""
    before = known()
    after = [one for one in before if one.folder != str(folder.resolve())]
    if len(after) < len(before):
        _write(after)
    return len(after) < len(before)


def _write(trusted: Sequence[Trusted]) -> None:
    from clearway.files.whole import replace

    file = place()
    said = {"trusted": [asdict(one) for one in sorted(trusted, key=lambda one: one.folder)]}
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace(file, lambda part: part.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8"))
    except OSError as error:
        raise type(error)(f"{file} can't be written: {error.strerror}; XDG_CONFIG_HOME names another folder") from None


def require(folder: Path, program: Path, made: Callable[[], Trusted], refuse: Callable[[str], NoReturn]) -> None:
    """Refuses a program that is not trusted in its present state. `made` works out what it is."""
    if all_allowed():
        return
    before = next((one for one in known() if one.folder == str(folder.resolve())), None)
    how = (
        f"If you know whose it is, trust it as it is by `clearway trust {folder}`, or let it run this once by "
        "--allow-programs"
    )
    # Of a folder that is not trusted, only the manifest is read.
    if before is None:
        refuse(
            f"the program {program} would read and run this scenario, and you have not trusted it, so it was not "
            f"started; what the transport's settings mean, and whether the scenario can run, only it can say. {how}"
        )
    if made() != before:
        refuse(
            f"the program {program} or what it was built from has changed since you trusted it, so it was not started. "
            f"{how}"
        )


def digest(program: Path, sources: str) -> str:
    """Of a program and its sources, whose digest is given."""
    stat = program.stat()
    content = _of_file(str(program), stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return hashlib.blake2b(f"{content}\0{sources}".encode(), digest_size=32).hexdigest()


@lru_cache(maxsize=32)
def _of_file(path: str, *changed: int) -> str:
    found = hashlib.blake2b(digest_size=32)
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()
