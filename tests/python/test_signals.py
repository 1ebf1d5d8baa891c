"""Ctrl-C and a request to end are answered within a second, at whatever moment of whatever command they come."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import clearway as cw
import pytest
from test_behaves import LONG, SLOW

# CPU time from the signal on, of all threads: a busy machine does not lengthen it, as it does the wall's. A debug build
# is some times slower than a release.
CPU_SECONDS = 2.0
# A run that had begun has said by then that it is interrupted, and keeps what there is: tables and a report.
KEPT_CPU_SECONDS = 10.0
PATIENCE_SECONDS = 120.0
PROGRAM = [sys.executable, "-m", "clearway"]

# Its plan takes seconds.
LARGE = """
name = "large"
transport = "dctcp"
measure.end = "20us"
[fabric.fat_tree]
k = 48
[[traffic]]
sizes = { constant = "10KB" }
arrivals = "all_at_once"
flows = 2000
"""

# Its graph has a million steps.
JOB = """
name = "job"
transport = "udp"
[fabric.star]
hosts = 64
[[job]]
ranks_per_host = 4
iterations = 4
steps = [{ all_reduce = { bytes = "1GB" } }]
"""


@dataclass(frozen=True)
class Case:
    """A command, and by when at the latest the signal comes, in seconds of its CPU time after it has started."""

    words: tuple[str, ...]
    until: float = 3.0


QUICK = [
    Case(("check", "large.toml", "--probe", "0")),
    Case(("run", "large.toml", "--out", "run")),
    Case(("run", "job.toml", "--threads", "1", "--out", "job")),
    Case(("run", "long.toml", "--level", "flow", "--out", "flow")),
    Case(("report", "sound", "--out", "page.html"), 1.5),
]
MORE = [
    *QUICK,
    Case(("check", "job.toml")),
    Case(("run", "long.toml", "--threads", "2", "--out", "run2")),
    Case(("run", "long.toml", "--level", "links", "--out", "links")),
    Case(("compare", "long.toml", "--transport", "udp", "--transport", "dctcp", "--out", "compare")),
    Case(("sustain", "long.toml", "--out", "sustain")),
    Case(("sweep", "sweep.toml", "--workers", "1", "--out", "sweep")),
    Case(("paper", "dcpim", "3a")),
    Case(("explain", "sound"), 1.5),
    Case(("trace", "sound", "--out", "trace.perfetto"), 1.5),
    Case(("live", "slow.toml", "--out", "live")),
]


@pytest.fixture
def place(tmp_path: Path, result: cw.Result) -> Path:
    for name, text in (("long", LONG), ("large", LARGE), ("job", JOB), ("slow", SLOW)):
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "sweep.toml").write_text('scenario = "long.toml"\n[vary]\nseed = [1, 2]\n')
    result.save(tmp_path / "sound")
    return tmp_path


def _catches(process: int) -> bool:
    """Whether it has said what a request to end does: before, it is Python that starts."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _alive(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def answered(case: Case, number: signal.Signals, chance: random.Random, place: Path) -> None:
    """Sends a signal at a random moment, and looks at how the command ends."""
    moment, since = chance.uniform(0, case.until), time.monotonic()
    said = (place / "said").open("wb+")
    process = subprocess.Popen([*PROGRAM, *case.words], cwd=place, stdout=said, stderr=said)
    at = 0.0
    try:
        while _alive(process) and not _catches(process.pid):
            time.sleep(0.005)
        started = _cpu_seconds(process.pid)
        while _alive(process) and (at := _cpu_seconds(process.pid)) - started < moment:
            # One that waits for the clock uses no CPU.
            if time.monotonic() - since > 8 * (1 + moment):
                break
            time.sleep(0.01)
        os.kill(process.pid, number)
        while _alive(process):
            assert time.monotonic() - since < PATIENCE_SECONDS, f"{case.words}: deaf to {number.name} at {moment:.2f} s"
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said.seek(0)
    words = said.read().decode()
    said.close()
    (place / "said").unlink()
    told = f"{case.words}, {number.name} after {moment:.2f} s of CPU: exit {process.returncode}\n{words}"
    assert process.returncode in (130, 0, 1), told
    assert "Traceback" not in words and "panicked" not in words, told
    if process.returncode == 130:
        most = KEPT_CPU_SECONDS if "interrupted; what there is so far" in words else CPU_SECONDS
        assert usage.ru_utime + usage.ru_stime - at < most, told
    for result in place.glob("**/run.json"):
        cw.load(result.parent)
    left = [path.name for path in place.glob("**/.*")]
    assert not left, f"{told}\nleft behind: {left}"


@pytest.mark.parametrize("case", QUICK, ids=lambda case: "-".join(case.words[:2]))
def test_a_signal_is_answered_within_a_second(case: Case, place: Path) -> None:
    chance = random.Random("-".join(case.words))
    answered(case, chance.choice([signal.SIGINT, signal.SIGTERM]), chance, place)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", MORE, ids=lambda case: "-".join(case.words[:4]))
def test_signals_at_many_moments_of_every_command(case: Case, seed: int, place: Path) -> None:
    chance = random.Random(seed)
    for number in (signal.SIGINT, signal.SIGTERM):
        answered(case, number, chance, place)
