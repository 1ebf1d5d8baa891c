"""The rights of a command after its arguments are read and before any file is: the kernel refuses the rest.

It may read the files that it was given, those that they name, and what Python and its libraries need; write in the
folders that the command line names and in a temporary folder of its own; start no program and open no socket. Some
commands need more, and say so (`cli/sandbox.py`). Linux alone has the means (`crates/python/src/sandbox.rs`); without
them, a command runs all the same, and `run.json` says what held.

The Python API closes no sandbox: it lives in a process of the user's, which would never get out again.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearway import _core
from clearway.files import keeper as _keeper
from clearway.files import reach, whole
from clearway.programs import trust

STATE = "CLEARWAY_SANDBOX"
"""The environment variable that tells the processes of a sweep what holds in them since they were started."""
_state = "none: the Python API has none"


@dataclass(frozen=True)
class Needs:
    """The needs of a command."""

    toml: Sequence[Path] = ()
    """Scenarios, or a sweep's file. They name others."""
    sets: Sequence[tuple[str, str]] = ()
    """Keys that the command line sets over these."""
    reads: Sequence[Path] = ()
    """Files, and folders with all that is in them."""
    result: Path | None = None
    """A folder that a result takes as a whole."""
    folders: Sequence[Path] = ()
    """Folders for results."""
    files: Sequence[Path] = ()
    """Files that are written whole, or not at all."""
    writes: Sequence[Path] = ()
    """Further folders that are written in, if they exist."""
    network: bool = False
    """Sockets."""
    workers: bool = False
    """Processes of Python, which live in the same sandbox."""
    shows: bool = False
    """The file that is written is opened in a browser."""
    none: str = ""
    """Why there is no sandbox."""


def state() -> str:
    """The sandbox of this process: "landlock+seccomp", "landlock" or "seccomp", with ", but sockets" or ", but all
    programs" if these are allowed; or "none: " and why.
    """
    return _state


def _set(state: str) -> None:
    global _state
    _state = state


def inherit() -> None:
    """In a process of a sweep: what its driver has said."""
    _set(os.environ.pop(STATE, _state))


def leave_open(why: str) -> None:
    """Closes no sandbox."""
    _set(f"none: {why}")


def close(needs: Needs) -> None:
    """Closes the sandbox of this process, and of all that it will start."""
    if needs.none or not sys.platform.startswith("linux"):
        leave_open(needs.none or "only Linux has one")
        return
    reads, runs = _inputs(needs)
    reads += _OF_SYSTEM + _of_python()
    results = [needs.result] if needs.result is not None else []
    # Within the sandbox files beside these places are invisible.
    seen = [*results, *needs.folders, *(place for place in needs.reads if place.is_dir())]
    whole.notice(*(place.parent for place in seen), *seen)
    layout = _keeper.prepare(results, needs.folders, needs.files)
    layout.shows = needs.shows
    if layout.temporary is not None:
        tempfile.tempdir = os.environ["TMPDIR"] = str(layout.temporary)
    writes = [*layout.writes, *needs.writes, *_of_matplotlib(), Path("/dev/null")]
    if needs.workers:
        runs.append(Path(sys.executable))
    if runs:
        runs += _loaders()
    whole.keeper = _keeper.Keeper(layout)
    anything = trust.all_allowed()
    held = _core.close_sandbox(None if anything else reads, writes, None if anything else runs, network=needs.network)
    but = [said for said, is_so in (("sockets", needs.network), ("all programs", anything)) if is_so]
    _set(held if held.startswith("none") or not but else f"{held}, but {' and '.join(but)}")


def hint(error: str) -> str:
    """The addition to an error of which the sandbox may be the cause."""
    held = "landlock" in state() or "seccomp" in state()
    if not held or not re.search("[Pp]ermission denied|[Oo]peration not permitted", error):
        return ""
    return " (the sandbox allows what the command line and the scenario's keys name; --no-sandbox leaves it)"


def done() -> None:
    """Removes what the sandbox needed. The sandbox itself stays."""
    if whole.keeper is not None:
        keeper, whole.keeper = whole.keeper, None
        keeper.close()


_OF_SYSTEM = [
    Path(path)
    for path in (
        *("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store"),
        *(f"/etc/{name}" for name in ("ld.so.cache", "ld.so.preload", "localtime", "timezone", "os-release")),
        *(f"/etc/{name}" for name in ("passwd", "group", "nsswitch.conf", "mime.types", "alternatives", "fonts")),
        *("/proc", "/sys", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
    )
]


def _home() -> Path:
    # Not of Path: whose user has no home, as in some containers, gets an error.
    return Path(os.path.expanduser("~"))


def _of_python() -> list[Path]:
    """Where modules and libraries are."""
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    home = _home()
    fonts = [home / ".fonts", home / ".local/share/fonts", Path("matplotlibrc")]
    places = {sys.prefix, sys.exec_prefix, sys.base_prefix, *(entry or os.getcwd() for entry in sys.path), *libraries}
    return [*map(Path, sorted(places)), Path(__file__).parents[1], *fonts]


def _of_matplotlib() -> list[Path]:
    """Its settings and its list of fonts, which it would make anew each time."""
    own = os.environ.get("MPLCONFIGDIR")
    home = _home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "matplotlib"
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "matplotlib"
    places = [Path(own)] if own else [cache, settings]
    for place in filter(Path.is_absolute, places):
        # As it would itself, when it is used for the first time.
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
    return [place for place in places if place.is_dir()]


def _loaders() -> list[Path]:
    """The loader of a program: the kernel starts it in its place."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        files = {line.split(maxsplit=5)[-1].strip() for line in maps}
    return [Path(file) for file in sorted(files) if Path(file).name.startswith("ld-")]


MOST_BYTES = 4_000_000
"""Of a longer file, which was not written by hand, the whole folder may be read: to look through it takes long."""


def _inputs(needs: Needs) -> tuple[list[Path], list[Path]]:
    """The files that may be read, and the programs that run: those of trusted crates that a file names."""
    reads, crates = [trust.place(), *needs.reads], list[Path]()
    for file in needs.toml:
        reads.append(file)
        for text in _texts(file):
            if text is None:
                reads.append(file.resolve().parent)
                continue
            files, folders = reach.named(text[0], needs.sets, text[1])
            reads += [*files, *(one for one in text[2:] if isinstance(one, Path))]
            crates += folders
    runs = []
    trusted = {one.folder: one for one in _trust_known()} if crates else {}
    for crate in crates:
        reads += _of_cargo(crate)
        one = trusted.get(str(crate.resolve()))
        if one is not None:
            reads += [crate, *map(Path, one.sources), Path(one.program).parent]
            runs.append(Path(one.program))
    return reads, runs


def _trust_known() -> list[trust.Trusted]:
    try:
        return trust.known()
    except ValueError:
        return []  # Its reader reports the error.


def _of_cargo(crate: Path) -> list[Path]:
    """The files that say where a crate's program is."""
    home = Path(os.environ.get("CARGO_HOME") or _home() / ".cargo")
    above = [crate.resolve(), *crate.resolve().parents]
    places = [*(folder / ".cargo" for folder in above), home]
    configs = [place / name for place in places for name in ("config.toml", "config")]
    return [*(folder / "Cargo.toml" for folder in above), *configs]


def _texts(file: Path) -> Iterator[tuple[str, Path] | tuple[str, Path, Path] | None]:
    """A file's text with its folder, and those of the scenarios that it names; none for one that is too long."""
    text = _text(file)
    if text is None:
        yield None
        return
    yield text, file.parent
    for scenario in reach.scenarios(text, file.parent):
        inner = _text(scenario)
        if inner is None:
            yield None
        else:
            yield inner, scenario.parent, scenario
            # Paths that a sweep sets in it start from its folder.
            yield text, scenario.parent


def _text(file: Path) -> str | None:
    """Its text; empty where it can't be read, of which the command speaks."""
    try:
        # A pipe can be read only once.
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        return None if len(content) > MOST_BYTES else content.decode("utf-8")
    except (OSError, ValueError):
        return ""
