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
import fork_docs
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


FAILURE = {"failure": [{"link": ["leaf0", "spine0"], "at": "230us"}], "measure.end": "20ms"}


def test_a_fork_is_the_whole_run_of_its_scenario(file: Path, tmp_path: Path) -> None:
    kept, scenario = tmp_path / "warm.checkpoint", cw.Scenario.load(file)
    whole = cw.run(scenario, threads=2, progress=False, checkpoint="200us", checkpoint_file=kept)
    same, failed = cw.fork(kept, {}, FAILURE, progress=False, names=["as it was", "failed"])
    assert same.digest == whole.digest and tables(same) == tables(whole) and same.name == "as it was"
    other = cw.run(scenario.with_(FAILURE), threads=2, progress=False)
    assert failed.digest == other.digest != whole.digest and tables(failed) == tables(other)


def test_forks_are_refused_before_any_runs(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "warm.checkpoint"
    cw.run(file, threads=1, progress=False, checkpoint="60us", checkpoint_file=kept)
    seen: list[object] = []
    with pytest.raises(cw.ScenarioError, match="can't change in a fork: messages before") as refused:
        cw.fork(kept, {}, {"seed": 3}, progress=seen.append)
    assert refused.value.key == "seed" and not seen
    with pytest.raises(cw.ScenarioError, match="before the checkpoint at 60us"):
        cw.fork(kept, {"failure": [{"switch": "spine0", "at": "59us"}]})
    with pytest.raises(ValueError, match="names"):
        cw.fork(kept, {}, names=["a", "b"])


def test_forks_by_the_command(file: Path, tmp_path: Path) -> None:
    assert call("run", file, "--threads", "1", "--checkpoint", "200us", "--out", tmp_path / "out").code == 0
    kept, key = tmp_path / "out-checkpoints", "switch.buffer.per_port.bytes"
    done = call("fork", kept, "--unchanged", "--vary", f"{key}=12KB", "--vary", f"{key}=500KB", "--json")
    assert done.code == 0, done.err
    places = [tmp_path / "out-forks" / name for name in ("unchanged", f"{key}-12KB", f"{key}-500KB")]
    unchanged, small, large = map(cw.load, places)
    assert unchanged.digest == cw.load(tmp_path / "out").digest == large.digest != small.digest
    assert (tmp_path / "out-forks" / "report.html").is_file()
    assert call("fork", kept).code == 2
    refused = call("fork", kept, "--set", "host.mtu=9000B")
    assert refused.code == 2 and "--set host.mtu=9000B: host.mtu: can't change in a fork" in refused.err


def test_the_page_has_the_keys_of_forks() -> None:
    page = fork_docs.PAGE.read_text()
    assert fork_docs.written(page) == page, "python tests/python/fork_docs.py writes them"


def test_files_are_found_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "sent.csv").write_text("src,dst,size_bytes,start_us\n0,4,90000,1\n3,1,70000,2\n")
    text = TEXT.split("[[traffic]]")[0] + '[[traffic]]\ntrace = { csv = { path = "sent.csv" } }\n'
    (inner / "going.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    cw.run("inner/going.toml", threads=1, progress=False, checkpoint="5us", checkpoint_file="kept.checkpoint")
    assert cw.inspect("kept.checkpoint")["time"] == "5us"
    assert call("inspect", "kept.checkpoint").code == 0
    # From elsewhere only by the word of the user.
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(cw.ScenarioError, match=r"sent\.csv"):
        cw.inspect("../kept.checkpoint")
    assert cw.inspect("../kept.checkpoint", folder="../inner")["time"] == "5us"


def test_where_two_runs_begin_to_differ(file: Path) -> None:
    done = call("bisect", file, "--set", "measure.end=200us", "--threads", "1", "--threads", "2")
    assert done.code == 0 and "the states differ: never, up to 200us" in done.out, done.err
    failure = """failure=[{ link = ["leaf0", "spine0"], at = "161234567ps" }]"""
    done = call("bisect", file, "--set", "measure.end=200us", "--set-other", failure)
    assert done.code == 0 and "first at 161.234567us, at leaf0, in " in done.out, done.out + done.err
    told = json.loads(call("bisect", file, "--set", "measure.end=200us", "--set-other", failure, "--json").out)
    assert told["state"]["at_ps"] == 161_234_567 < told["arrival"]["at_ps"] and told["from_start"] == []
