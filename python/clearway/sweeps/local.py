"""An executor of processes of this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from clearway.files import sandbox
from clearway.running.run import _cores
from clearway.sweeps.driver import At, Begun, Died, Done, Event, Failed
from clearway.sweeps.points import Task


@dataclass
class _Process:
    popen: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    errors: IO[bytes]
    key: str | None = None
    scratch: Path = Path()


class Local:
    """This many processes, each with one run at a time. A process that has died is replaced when it is needed."""

    def __init__(self, workers: int | None, runs: int) -> None:
        cores = _cores()
        self._most = max(1, min(workers or cores, runs))
        self._threads = max(1, cores // self._most)
        self._processes: list[_Process] = []
        self._largest = 0

    @property
    def room(self) -> int:
        """One task for each idle process; none while free memory may not suffice for another run."""
        busy = sum(process.key is not None for process in self._processes)
        if busy and _memory_free() < self._largest:
            return 0
        return self._most - busy

    def submit(self, key: str, task: Task, scratch: Path) -> None:
        """Gives a task to a process that has none."""
        process = next((process for process in self._processes if process.key is None), None) or self._start()
        process.key, process.scratch = key, scratch
        # If the process died while it was idle, `events` reports that of this run.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.pipe.send((key, task, str(scratch), self._threads))

    def events(self, seconds: float) -> Iterator[Event]:
        """The events that the processes report."""
        pipes = {process.pipe: process for process in self._processes}
        for pipe in wait(list(pipes), seconds) if pipes else ():
            process = pipes[pipe]  # type: ignore[index]
            try:
                said = process.pipe.recv()
            except (EOFError, ConnectionResetError):
                yield from self._ended(process)
                continue
            yield self._event(process, *said)

    def close(self) -> None:
        """Kills the processes. Nothing that they have written is read any more."""
        for process in self._processes:
            process.popen.kill()
        for process in self._processes:
            self._reap(process)
        self._processes.clear()

    def _event(self, process: _Process, what: str, key: str, *more: Any) -> Event:
        if what == "begun":
            return Begun(key, f"process {process.popen.pid}")
        if what == "at":
            return At(key, *more)
        process.key = None
        if what == "failed":
            return Failed(key, *more)
        self._largest = max(self._largest, _memory_most(process.popen.pid))
        return Done(key, process.scratch)

    def _ended(self, process: _Process) -> Iterator[Event]:
        self._processes.remove(process)
        how = self._reap(process)
        if process.key is not None:
            yield Died(process.key, how)

    def _start(self) -> _Process:
        ours, theirs = Pipe()
        errors = TemporaryFile()  # noqa: SIM115, it is closed with its process
        # Modules that can be imported here can be imported there, such as that of a task's class.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        environment = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", sandbox.STATE: sandbox.state()}
        with theirs:
            command = [sys.executable, "-m", "clearway.sweeps.worker", str(theirs.fileno())]
            # In a session of its own, so that only the driver receives Ctrl-C.
            popen = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )
        process = _Process(popen, ours, errors)
        self._processes.append(process)
        return process

    def _reap(self, process: _Process) -> str:
        """How a process has ended, with its last output."""
        status = process.popen.wait()
        process.pipe.close()
        process.errors.seek(0)
        said = process.errors.read()[-4000:].decode(errors="replace").strip()
        process.errors.close()
        how = (
            f"signal {-status}, perhaps for lack of memory"
            if status == -9
            else f"signal {-status}"
            if status < 0
            else f"exit status {status}"
        )
        return f"{how}\n{said}" if said else how


def _memory_free() -> float:
    """Bytes that new processes may use; infinite where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return float("inf")


def _memory_most(pid: int) -> int:
    """The peak memory of a process."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return 0
