"""Runs that go on from a checkpoint, and what a checkpoint shows: `docs/checkpoints.md`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import clearway as cw
import pytest
from called import call

TEXT = """
name = "going on"
transport = "dcpim"
fabric.leaf_spine = { racks = 2, hosts_per_rack = 3, spines = 2 }
measure.interval = "2us"

[[traffic]]
name = "web"
sizes = "websearch"
arrivals = { poisson = { load = 0.7 } }
flows = 40
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "going.toml").write_text(TEXT)
    return tmp_path / "going.toml"


def tables(result: cw.Result) -> dict[str, str]:
    """In words, in which NaN is NaN."""
    return {name: str(table.to_pylist()) for name, table in result._tables.items()}


def test_a_killed_run_goes_on(file: Path, tmp_path: Path) -> None:
    whole = cw.run(file, threads=2, progress=False)
    assert call("run", file, "--threads", "2", "--checkpoint", "every 50us", "--out", tmp_path / "out").code == 0
    kept = tmp_path / "out-checkpoints" / "last.checkpoint"
    before = kept.stat().st_mtime_ns
    # Another is killed as soon as it has written one.
    program = [sys.executable, "-m", "clearway", "run", file, "--checkpoint", "every 20us", "--out", tmp_path / "out"]
    with subprocess.Popen([*map(str, program), "--threads", "2"], stdout=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 60
        while run.poll() is None and kept.stat().st_mtime_ns == before and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(run.pid, signal.SIGKILL)
    done = call("run", file, "--threads", "2", "--resume", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    resumed = cw.load(tmp_path / "out")
    assert resumed.digest == whole.digest and tables(resumed) == tables(whole)


def test_it_shows_nodes_ports_and_flows(file: Path, tmp_path: Path) -> None:
    assert call("run", file, "--threads", "1", "--checkpoint", "60us", "--out", tmp_path / "out").code == 0
    kept = tmp_path / "out-checkpoints"
    said = json.loads(call("inspect", kept, "host2", "--json").out)
    assert said["time"] == "60us" and {"transports", "received_packets"} <= said["host2"]["host"].keys()
    assert "time: 60us" in call("inspect", kept, "spine0:1").out
    assert json.loads(call("inspect", kept, "--flow", "3", "--json").out)["time"] == "60us"
    assert "packets_in_the_network" in call("inspect", kept).out
    refused = call("inspect", kept, "host77")
    assert refused.code == 2 and "host77" in refused.err


def test_files_that_do_not_fit_are_refused(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "a.checkpoint"
    cw.run(file, threads=1, progress=False, checkpoint="60us", checkpoint_file=kept)
    scenario = cw.Scenario.load(file)
    with pytest.raises(cw.ScenarioError, match="seed = 2"):
        cw.run(scenario.with_(seed=2), resume=kept, progress=False)
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 4
    kept.write_bytes(content)
    with pytest.raises(cw.ScenarioError, match="damaged"):
        cw.run(scenario, resume=kept, progress=False)
    kept.write_bytes(content[:100])
    with pytest.raises(ValueError, match="damaged"):
        cw.inspect(kept)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"fast_forward": "exact", "timing": "ideal"}, "skips"),
        ({"transport": {"r2c2": {"adapt": {}}}}, "adapt"),
    ],
)
def test_what_has_no_checkpoints_says_so_before_it_runs(
    file: Path, tmp_path: Path, settings: dict[str, object], why: str
) -> None:
    scenario = cw.Scenario.load(file).with_(settings)
    with pytest.raises(cw.ScenarioError, match=why):
        cw.run(scenario, progress=False, checkpoint="60us", checkpoint_file=tmp_path / "b.checkpoint")


def test_a_time_that_is_none_is_refused(file: Path) -> None:
    with pytest.raises(cw.ScenarioError, match="every 10ms"):
        cw.run(file, progress=False, checkpoint="often")
    with pytest.raises(ValueError, match="level"):
        cw.run(file, progress=False, checkpoint="2us", level="flow")
    assert call("run", file, "--resume").code == 2
