"""The program that a crate outside of Clearway's tree builds: where it is, and how it is asked.

The program is the simulator with the crate's transports (`crates/clearway/src/engine.rs` is its other end). It is asked
one thing at a time: to read a scenario, to check it, to run it. It has a socket as its standard input; what it prints
goes to standard error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from clearway import _core
from clearway.errors import ScenarioError
from clearway.programs.trust import Trusted, digest, remember, require

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Sets = list[tuple[str, str]]
HANDSHAKE_SECONDS = 30.0
"""How long a program may take to say what it is."""
LINE_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Source:
    """The sources of a scenario."""

    text: str
    name: str
    folder: str
    sets: Sets

    def refuse(self, key: str, message: str) -> NoReturn:
        """Raises an error that says where in the text the key is."""
        raise _core.located(self.text, self.name, self.sets, key, message)


@dataclass(frozen=True)
class Crate:
    """A crate with transports."""

    folder: Path
    names: tuple[str, ...]
    """Those of its transports that the scenario uses."""
    program: Path
    digest: str

    @property
    def build(self) -> str:
        """The command that builds it."""
        return f"cargo build --release --manifest-path {self.folder / 'Cargo.toml'}"

    @staticmethod
    def find(source: Source, found: dict[str, str]) -> Crate:
        """The crate that a scenario names, trusted, and built as its files are now."""
        name, given = next(iter(found.items()))
        key, folder = f"transports.{name}", Path(source.folder) / given
        if not (folder / "Cargo.toml").is_file():
            source.refuse(
                key,
                f'"{given}" is not the folder of a crate: there is no {folder / "Cargo.toml"}; write it relative to '
                f"the scenario's folder, or make it by `clearway new transport {name}`",
            )
        crate = Crate.built(folder, tuple(found), partial(source.refuse, key), must_be_trusted=True)
        files = _made_of(crate.program)
        return Crate(folder, crate.names, crate.program, digest_of(folder, files))

    @staticmethod
    def built(
        folder: Path, names: tuple[str, ...], refuse: Callable[[str], NoReturn], *, must_be_trusted: bool
    ) -> Crate:
        """The crate in a folder, without a digest. `refuse` raises an error."""
        manifest = folder / "Cargo.toml"
        program = _program(folder, manifest, refuse)
        crate = Crate(folder, names, program, "")
        if not program.is_file():
            refuse(f"its crate is not built: there is no {program}; build it by `{crate.build}`")
        # cargo puts no links there. A link that another user has put there could lead to any program of this machine.
        if not program.resolve().is_relative_to(program.parents[1].resolve()):
            refuse(f"{program} is a link to {program.resolve()}, which cargo has not built; `{crate.build}`")
        if must_be_trusted:
            require(folder, program, partial(trusted, crate), refuse)
        files = _made_of(program)
        if files and not any(file.resolve().is_relative_to(folder.resolve()) for file in files):
            # Crates of one name may share cargo's folder.
            refuse(f"{program} was built from {files[0]}, which is of another crate; `{crate.build}`")
        changed = [file for file in files if _mtime_ns(file) > program.stat().st_mtime_ns]
        if changed:
            refuse(f"its crate was built before {changed[0]} changed; build it again by `{crate.build}`")
        return crate


def trusted(crate: Crate) -> Trusted:
    """The record of a crate that is trusted in its present state."""
    folder, files = crate.folder.resolve(), _made_of(crate.program)
    outside = {str(file.resolve()) for file in _sources(folder, files) if not file.resolve().is_relative_to(folder)}
    all_of_it = digest(crate.program, digest_of(folder, files))
    return Trusted(str(folder), str(crate.program.resolve()), all_of_it, tuple(sorted(outside)))


def trust(folder: str | Path) -> Path:
    """Lets the program of a crate with transports run, as it is now, and returns the program: `clearway trust`.

    A scenario may name any folder (`transports = { mine = "../mine" }`), and the program in it may do all that you may.
    """
    crate = to_trust(Path(folder))
    remember(trusted(crate))
    return crate.program


def to_trust(folder: Path) -> Crate:
    """The crate in a folder, if it can be trusted; ValueError otherwise."""

    def refuse(message: str) -> NoReturn:
        raise ValueError(f"{folder}: {message}")

    if not (folder / "Cargo.toml").is_file():
        refuse(f"it is not the folder of a crate: there is no {folder / 'Cargo.toml'}")
    return Crate.built(folder, (), refuse, must_be_trusted=False)


MANIFEST_BYTES_MAX = 1_000_000
NAME = re.compile(r"[\w-]{1,64}")
"""The names that cargo allows for a package or a program. Anything else could be a path."""


def _program(folder: Path, manifest: Path, refuse: Callable[[str], NoReturn]) -> Path:
    """Where cargo puts the crate's program. cargo is not asked: in another person's folder cargo is a program of
    theirs,
    if its configuration says so.
    """
    try:
        read = _toml(manifest)
        name = str(read["package"]["name"])
        programs = [str(program["name"]) for program in read.get("bin", [])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        refuse(f"{manifest} can't be read as that of a crate: {type(error).__name__}: {error}")
    for one in (name, *programs):
        if not NAME.fullmatch(one):
            refuse(
                f"{manifest}: {one!r} can't be the name of a crate or of its program: it has letters, digits, - and _, "
                "at most 64"
            )
    name = name if name in programs or not programs else programs[0]
    target = os.environ.get("CARGO_TARGET_DIR") or os.environ.get("CARGO_BUILD_TARGET_DIR")
    if target:
        return Path(target) / "release" / name
    program = folder / "target" / "release" / name
    return program if program.is_file() else (_target(folder.resolve()) or folder / "target") / "release" / name


def _target(folder: Path) -> Path | None:
    """Where cargo builds instead, by its configuration (https://doc.rust-lang.org/cargo/reference/config.html), or for
    the workspace that the crate belongs to.
    """
    home = Path(os.environ.get("CARGO_HOME") or Path(os.path.expanduser("~")) / ".cargo")
    for place in (*(above / ".cargo" for above in (folder, *folder.parents)), home):
        for file in (place / "config.toml", place / "config"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                return place.parent / str(_toml(file)["build"]["target-dir"])
    for above in folder.parents:
        with contextlib.suppress(OSError, ValueError):
            if "workspace" in _toml(above / "Cargo.toml"):
                return above / "target"
    return None


def _toml(file: Path) -> dict[str, Any]:
    # A pipe or a device might never end.
    if file.exists() and not file.is_file():
        raise ValueError("it is no file")
    with file.open("rb") as opened:
        content = opened.read(MANIFEST_BYTES_MAX + 1)
    if len(content) > MANIFEST_BYTES_MAX:
        raise ValueError(f"it has more than {MANIFEST_BYTES_MAX:,} bytes")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("tables or lists are nested too deeply") from None


def _made_of(program: Path) -> list[Path]:
    """The files that cargo has built a program from, as it lists them in a file beside the program."""
    try:
        noted = program.with_name(f"{program.name}.d").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    _, _, files = noted.partition(": ")
    words = files.replace("\\ ", "\0").split()
    return [Path(word.replace("\0", " ")) for word in words]


def _mtime_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


ENTRY = Path("crates/clearway/src/lib.rs")


def _sources(folder: Path, files: Sequence[Path]) -> set[Path]:
    """The crate's code and that of others in reach that it is built from, but for Clearway's own, whose digest a
    program states itself.
    """
    trees = [file.parents[3] for file in files if file.parts[-4:] == ENTRY.parts]
    own = {file.resolve() for file in files if not any(file.is_relative_to(tree) for tree in trees)}
    own |= {folder / name for name in ("Cargo.toml", "Cargo.lock")}
    own |= {file for file in (folder / "src").rglob("*.rs") if file.is_file()} if not files else set()
    # A pipe or a device might never end.
    return {file for file in own if file.is_file()}


def digest_of(folder: Path, files: Sequence[Path]) -> str:
    """Of the files that a crate is built from."""
    folder = folder.resolve()
    found = hashlib.blake2b(digest_size=16)
    for name, file in sorted((os.path.relpath(file, folder), file) for file in _sources(folder, files)):
        with contextlib.suppress(OSError):
            content = file.read_bytes()
            found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


class Program:
    """A program that is asked one thing."""

    def __init__(self, source: Source, crate: Crate) -> None:
        self._source, self._crate = source, crate
        self._key = f"transports.{crate.names[0]}"
        self._rest = bytearray()
        self._stopped = 0
        self.used: dict[str, Any] = {}

    def __enter__(self) -> Program:
        self._socket, theirs = socket.socketpair()
        try:
            # In a session of its own: Ctrl-C in the terminal is for the command, which says so.
            self._process = subprocess.Popen(
                [self._crate.program], stdin=theirs.fileno(), stdout=2, start_new_session=True, close_fds=True
            )
        except OSError as error:
            self._socket.close()
            self._refuse(
                f"{self._crate.program} can't be started: {error.strerror}; build it for this machine by "
                f"`{self._crate.build}`"
            )
        finally:
            theirs.close()
        try:
            self._shake_hands()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()
        if exception and exception[0] is not None:
            self._process.kill()
        self._reap()

    def _reap(self) -> int:
        """Waits until the program has ended; returns its exit status."""
        if self._process.returncode is None:
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self.used = {
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "peak_memory_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            }
        return int(self._process.returncode)

    def send(self, request: Any) -> None:
        """Sends a request to the program."""
        # If it is gone, reading says so.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(json.dumps(request).encode() + b"\n")

    def answer(self, progress: Callable[..., object] | None) -> dict[str, Any]:
        """The program's answer. Ctrl-C ends its run; a second Ctrl-C ends the program."""
        with self._heeded():
            while True:
                said = self._line()
                if "at" in said:
                    self._tell(progress, said["at"])
                elif "error" in said:
                    error = said["error"]
                    raise ScenarioError(
                        error["file"] or self._source.name, error["line"], error["key"], error["message"]
                    )
                elif "panic" in said:
                    self._refuse(f"its code has panicked at {said['panic']}")
                elif "result" in said:
                    return {"result": self._result(said["result"])}
                else:
                    return said

    def _tell(self, progress: Callable[..., object] | None, at: list[Any]) -> None:
        if progress is None or self._stopped:
            return
        try:
            progress(*at)
        except KeyboardInterrupt:
            self._stop()

    @contextlib.contextmanager
    def _heeded(self) -> Iterator[None]:
        """Ctrl-C and requests to terminate stop the run; the program then sends the results so far."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [of for of in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(of))]
        before = {number: signal.signal(number, lambda *_: self._stop()) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self) -> None:
        self._stopped += 1
        if self._stopped > 1:
            self._process.kill()
        else:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def _result(self, said: dict[str, Any]) -> tuple[Any, list[tuple[bytes, bool]]]:
        """A result as the core gives it: its columns' values follow the line."""
        tables = [
            (
                name,
                [
                    (head["name"], head["unit"], head["doc"], head["kind"], self._bytes(head["bytes"]), head["names"])
                    for head in columns
                ],
            )
            for name, columns in said["tables"]
        ]
        captured = [(self._bytes(count), more) for count, more in said["captured"]]
        return (json.dumps(said["info"]), said["toml"], tables), captured

    def _shake_hands(self) -> None:
        """Makes sure that it is the program of a crate that was built against this Clearway."""
        program, crate = self._crate.program, self._crate
        self._socket.settimeout(HANDSHAKE_SECONDS)
        try:
            said = self._line().get("engine", {})
        except TimeoutError:
            said = {}
        self._socket.settimeout(None)
        if not said or "protocol" not in said:
            self._refuse(
                f"{program} is not a program that runs scenarios: its main function is to be "
                "clearway::Engine::new().transport::<...>(...).main()"
            )
        here = (_core.PROTOCOL, _core.__version__, _core.SOURCE)
        there = (said["protocol"], said["version"], said["source"])
        if here != there:
            self._refuse(
                f"its crate was built against another Clearway ({said['version']}, code {said['source']}) than this "
                f"one ({_core.__version__}, code {_core.SOURCE}): build it against this one's source, whose folder its "
                f"Cargo.toml names, by `{crate.build}`, or install the Clearway that it names"
            )
        missing = [name for name in crate.names if name not in said["transports"]]
        if missing:
            self._refuse(
                f"its crate has no transport {missing[0]}, but {', '.join(said['transports']) or 'none'}: add it in "
                f'{crate.folder / "src/main.rs"} by .transport::<...>("{missing[0]}")'
            )

    def _line(self) -> dict[str, Any]:
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) > LINE_BYTES_MAX:
                self._refuse("its program says more than a command can take")
            self._receive(1 << 16)
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        try:
            said = json.loads(line)
            if not isinstance(said, dict):
                raise ValueError("it is no object")
        except ValueError as error:
            self._refuse(f"its program says what no command understands ({error}): {line[:60]!r}")
        return said

    def _bytes(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._receive(min(count - len(self._rest), 1 << 20))
        taken = bytes(self._rest[:count])
        del self._rest[:count]
        return taken

    def _receive(self, count: int) -> None:
        try:
            more = self._socket.recv(count)
        except ConnectionResetError:
            more = b""
        if not more:
            self._gone()
        self._rest += more

    def _gone(self) -> NoReturn:
        if self._stopped > 1:
            raise KeyboardInterrupt
        status = self._reap()
        if status < 0:
            try:
                name = signal.Signals(-status).name
            except ValueError:
                name = f"signal {-status}"
            why = f"was killed by {name}" + (", maybe for lack of memory" if name == "SIGKILL" else "")
        else:
            why = f"ended with status {status}"
        self._refuse(f"its program {self._crate.program} {why} without an answer")

    def _refuse(self, message: str) -> NoReturn:
        self._source.refuse(self._key, message)
