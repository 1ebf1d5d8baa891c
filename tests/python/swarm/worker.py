"""A process that tries scenarios, with bounds on its CPU time and memory: what ends it is a find, and not the end.

As a program it takes a line of JSON for each thing that is asked, and answers with one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
CPU_SECONDS = 40
"""Of one scenario in all configurations, which takes about a half."""
MEMORY_BYTES = 5 << 30
WALL_SECONDS = 240
"""How long a process may use no CPU time. On a busy machine it gets some now and then."""


class Worker:
    """The process, as others see it. It is started anew after it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        # It lives as long as this.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115

    def ask(self, **question: Any) -> dict[str, Any]:
        """Its answer; `died` says how, if it gave none."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            ready = _answers(process)
            line = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            ready, line = True, ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("panicked"):
                # Locks of the native code may be poisoned.
                self.stop()
            return answer
        if not ready:
            process.kill()
        code = process.wait()
        self._said.seek(0)
        words = self._said.read().decode(errors="replace")[-1_500:]
        self.stop()
        how = "no answer, and no CPU time used" if not ready else _death(code)
        place = re.search(r"panicked at (\S+?):\d+", words)
        return {"died": f"{how} at {place[1]}" if place else how, "words": words}

    def _start(self) -> subprocess.Popen[str]:
        self._said.seek(0)
        self._said.truncate()
        environment = os.environ | {
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "swarm.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def close(self) -> None:
        """Ends the process for good."""
        self.stop()
        self._said.close()

    def stop(self) -> None:
        """Ends the process; the next question starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._process = None


def _answers(process: subprocess.Popen[str]) -> bool:
    """Waits for an answer, as long as the process uses CPU time."""
    before = None
    while not select.select([process.stdout], [], [], WALL_SECONDS)[0]:
        used = _cpu_ticks(process.pid)
        if used == before:
            return False
        before = used
    return True


def _cpu_ticks(pid: int) -> int:
    """CPU time that a process has used, where the system has /proc; else always the same."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _death(code: int) -> str:
    if code == -signal.SIGXCPU:
        return f"more than {CPU_SECONDS} s of CPU time"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"


def _settle(asked: dict[str, Any]) -> dict[str, Any]:
    from swarm.settle import settled, toml

    found = settled(asked["scenario"], ROOT)
    text = toml(found.scenario) if found.scenario is not None else ""
    return {**asdict(found), "toml": text}


def _ground(asked: dict[str, Any]) -> dict[str, Any]:
    import clearway as cw
    from clearway.scenarios.listings import network

    from swarm.settle import toml

    plain = {"fabric": asked["fabric"], "transport": "udp", "measure": {"end": "1ps", "interval": "0s"}}
    text = toml({**plain, "traffic": [{"sizes": {"constant": "1B"}, "arrivals": "all_at_once", "flows": 1}]})
    try:
        read = cw.Scenario.from_toml(text, "fabric", ROOT)
        names = network(read).nodes()
        links = cw.run(read, threads=1, progress=False).links.to_pandas()
    except cw.ScenarioError as error:
        return {"refused": error.key}
    ends = [list(pair) for pair in zip(links["from_node"].astype(str), links["to_node"].astype(str))]
    return {"names": names, "ends": ends, "speeds": [list(map(int, pair)) for pair in zip(links["rate_bps"],
            links["delay_ps"])]}  # fmt: skip


def _trial(asked: dict[str, Any]) -> dict[str, Any]:
    from swarm.trial import Trial

    trial = Trial(asked["toml"], ROOT, asked["cut"], asked["live"])
    panicked = ""
    try:
        trial.go()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        panicked = _where(error)
        trial._find(panicked, "".join(traceback.format_exception(error))[-1_500:])
    return {
        "runs": trial.runs, "ways": trial.ways, "refused": trial.refused, "panicked": panicked,
        "finds": [asdict(find) for find in trial.finds],
    }  # fmt: skip


def _where(error: BaseException) -> str:
    """The kind of an error, and its place: the same for the same fault."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    words = re.sub(r"\d+", "N", str(error))[:80]
    return f"{type(error).__name__} in {Path(at.filename).name}: {words}"


def main() -> None:
    """Answers questions until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr
    does = {"settle": _settle, "ground": _ground, "trial": _trial}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        asked = json.loads(line)
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        try:
            answer = does[asked["do"]](asked)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                return
            answer = {"panicked": _where(error), "words": "".join(traceback.format_exception(error))[-1_500:]}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
