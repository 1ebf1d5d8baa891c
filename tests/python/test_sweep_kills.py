"""Drivers and workers that are killed at some moment: no run is lost, and none has two results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import clearway as cw
import pytest
from test_cli import PROGRAM

# Eight hosts send 200 MB each to the next: some tenths of a second per run.
RING = """
scenario = "{tiny}"

[set]
traffic.ring.sizes = {{ constant = "200MB" }}

[vary]
seed = {{ from = 1, to = {runs} }}
"""
TINY = Path("examples/tiny.toml").resolve()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sweep.toml").write_text(RING.format(tiny=TINY, runs=8))
    return tmp_path


def begin(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [*PROGRAM, "sweep", "sweep.toml", "--out", "out", *more]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def clearway(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as another process: Dask leaves sockets and warnings behind."""
    return subprocess.run([*PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def finish(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return clearway("sweep", "sweep.toml", "--out", "out", *more, cwd=folder)


def log(store: Path) -> list[dict[str, object]]:
    """The lines of all drivers, in order of time."""
    lines = [line for path in store.glob("log/*.jsonl") for line in path.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda line: line["time"])


def counted(store: Path, event: str) -> Counter[object]:
    return Counter(line["run"] for line in log(store) if line["event"] == event)


def until(what: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(store: Path) -> set[int]:
    """Of the processes that have begun runs."""
    return {int(str(line["where"]).split()[-1]) for line in log(store) if line["event"] == "begun"}


def test_a_driver_that_is_killed_loses_nothing_and_repeats_nothing_that_was_done(folder: Path) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--workers", "2") as driver:
        until(lambda: len(counted(store, "kept")) >= 2 and len(counted(store, "begun")) > len(counted(store, "kept")))
        driver.kill()
    before = set(counted(store, "kept"))
    until(lambda: not any(map(alive, pids(store))), 10)
    assert {path.name for path in (store / "runs").iterdir()} >= before
    done = finish(folder, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert len(list((store / "runs").iterdir())) == 8
    assert counted(store, "kept") == dict.fromkeys(counted(store, "kept"), 1)
    begun = counted(store, "begun")
    assert all(begun[key] == 1 for key in before), "what was done is not begun again"
    assert sum(begun.values()) <= 8 + 2, "at most what two workers were at is begun twice"
    assert not list((store / "drivers").iterdir()), "what the dead have left is taken away"
    # A result is that of a run without a sweep.
    swept = cw.Sweep.load(folder / "sweep.toml", folder / "out").result()
    alone = cw.run(cw.Scenario.load(TINY).with_({"traffic.ring.sizes": {"constant": "200MB"}}, seed=3))
    assert swept.ok and swept["seed 3"].digest == alone.digest


def test_a_worker_that_is_killed_has_its_run_done_again(folder: Path) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--workers", "2") as driver:
        until(lambda: len(counted(store, "begun")) >= 3)
        last = [line for line in log(store) if line["event"] == "begun"][-1]
        os.kill(int(str(last["where"]).split()[-1]), signal.SIGKILL)
        _, stderr = driver.communicate(timeout=120)
    assert driver.returncode == 0, stderr
    assert "its worker died (signal 9" in stderr
    assert sum(counted(store, "died").values()) == 1
    assert sum(counted(store, "begun").values()) == 9
    assert len(counted(store, "kept")) == 8 and set(counted(store, "kept").values()) == {1}


def test_two_drivers_share_the_runs(folder: Path) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--workers", "1") as one, begin(folder, "--workers", "1") as other:
        for driver in (one, other):
            _, stderr = driver.communicate(timeout=120)
            assert driver.returncode == 0, stderr
    assert len(counted(store, "begun")) == 8 and set(counted(store, "begun").values()) == {1}
    assert {line["event"] for line in log(store)} == {"claimed", "begun", "kept"}


def test_a_driver_takes_over_from_one_that_is_killed_beside_it(folder: Path) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--workers", "1") as one, begin(folder, "--workers", "1") as other:
        until(lambda: len(list(store.glob("log/*"))) == 2 and len(counted(store, "begun")) >= 3)
        one.kill()
        _, stderr = other.communicate(timeout=120)
        assert other.returncode == 0, stderr
    assert len(list((store / "runs").iterdir())) == 8
    assert set(counted(store, "kept").values()) == {1}


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(folder: Path) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--workers", "2") as driver:
        until(lambda: len(counted(store, "kept")) >= 2)
        driver.send_signal(signal.SIGINT)
        _, stderr = driver.communicate(timeout=60)
    assert driver.returncode == 130 and "Traceback" not in stderr, stderr
    assert "run the same command again to continue" in stderr
    assert (folder / "out" / "report.html").exists()
    assert not any(map(alive, pids(store))) and not list((store / "drivers").iterdir())
    kept = len(counted(store, "kept"))
    done = finish(folder)
    assert done.returncode == 0, done.stderr
    assert f"[{kept + 1}/8]" in done.stderr, "it goes on where it was"
    assert set(counted(store, "kept").values()) == {1}
