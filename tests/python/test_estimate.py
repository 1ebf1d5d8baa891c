"""The estimate of `clearway check`, the refusals of a run, and the time left while it runs."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import clearway as cw
import pytest
from called import call
from clearway.running.run import Pace, Progress
from clearway.scenarios.forecast import free_bytes, memory_bytes_max

RECORDED = Path(__file__).parent / "progress.csv"


def test_check_says_what_a_run_will_take(tiny_file: Path) -> None:
    done = call("check", tiny_file, "--json")
    said = json.loads(done.out)
    estimate = said["estimate"]
    assert done.code == 0 and said["hosts"] == estimate["hosts"] == 8 and estimate["flows"] == 200
    assert estimate["cpu_seconds"] > 0 and estimate["refused"] is None
    assert sum(estimate["memory"].values()) == estimate["memory_bytes"]
    ran = cw.run(cw.Scenario.load(tiny_file), threads=1)
    assert estimate["packet_hops"] == pytest.approx(ran.info["packet_hops"], rel=0.25)


def test_the_speed_of_a_run_is_that_of_its_packets() -> None:
    """Ranks compute and sum within their hosts for longer than a probe lasts. No machine has 100 M packet-hops a
    second.
    """
    computes = cw.Scenario.from_toml("""
        transport = "dctcp"
        fabric.star.hosts = 16
        [[job]]
        ranks_per_host = 8
        [job.model]
        model = "llama3_8b"
        degrees = { tensor = 8, data = 16 }
        micro_batches = 1
        accelerator = { teraflops = 989, efficiency = 0.4 }
    """)
    estimate = computes.forecast(probe_seconds=0.02)
    assert estimate.packet_hops > 1e9
    assert estimate.cpu_seconds is None or estimate.cpu_seconds > estimate.packet_hops / 100e6


def test_check_says_it_in_a_line(tiny_file: Path) -> None:
    line = call("check", tiny_file, "--probe", 0).out.splitlines()[1]
    assert line.startswith("a run: about ") and "packet-hops" in line and "B of memory" in line, line
    assert "of CPU" not in line, "speed not measured"
    assert "s of CPU" in call("check", tiny_file).out.splitlines()[1]


def test_a_run_that_does_not_fit_is_refused_with_what_would() -> None:
    """A minute of simulated time in samples of 10 us on 4 switches."""
    late = cw.Scenario.from_toml("""
        transport = "udp"
        fabric.star.hosts = 2
        measure.interval = "10us"
        [[traffic]]
        sizes = { constant = "1KB" }
        arrivals = "all_at_once"
        start = "60s"
    """)
    with pytest.raises(
        cw.ScenarioError, match=r"measure.rows_max: .*need about .*MB.*there are 100 MB.*fit"
    ) as refused:
        cw.run(late, threads=1, memory_limit=100e6)
    advised = int(str(refused.value).split("rows_max = ")[1].split(" would fit")[0])
    fits = late.with_({"measure.rows_max": advised})
    assert fits.forecast(probe_seconds=0, memory_limit=100e6).refused is None
    assert late.forecast(probe_seconds=0, memory_limit=100e6).refused is not None
    assert cw.run(fits, threads=1, memory_limit=100e6).ok


def test_a_capture_that_does_not_fit_is_refused_with_what_would(tiny_file: Path, tmp_path: Path) -> None:
    tiny = cw.Scenario.load(tiny_file)
    room = tiny.forecast(probe_seconds=0).memory_bytes + 100e3
    assert cw.run(tiny, threads=1, memory_limit=room).ok
    pcap = {"leaf0-host0": tmp_path / "out.pcapng"}
    with pytest.raises(cw.ScenarioError, match=r"pcap: .*need about .*--pcap-packets") as refused:
        cw.run(tiny, threads=1, memory_limit=room, pcap=pcap)
    assert not pcap["leaf0-host0"].exists()
    advised = int(str(refused.value).split(" up to ")[1].split(" would fit")[0])
    assert cw.run(tiny, threads=1, memory_limit=room, pcap=pcap, pcap_packets=advised).ok
    assert pcap["leaf0-host0"].exists()


def test_too_many_flows_are_refused_unless_forced(tiny_file: Path) -> None:
    tiny = cw.Scenario.load(tiny_file).with_({"measure.interval": "0s"})
    with pytest.raises(cw.ScenarioError, match=r"fabric: 8 hosts, 4 switches and 12 cables will need"):
        cw.run(tiny, threads=1, memory_limit=1e3)
    assert cw.run(tiny, threads=1, memory_limit=math.inf).ok


def test_the_command_can_be_forced(tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearway.scenarios.forecast.free_bytes", lambda: 1e3)
    refused = call("run", tiny_file, "--out", tmp_path / "out")
    assert refused.code == 2 and "of memory" in refused.err
    assert call("run", tiny_file, "--out", tmp_path / "out", "--force").code == 0


def test_free_memory_is_the_least_that_anybody_says(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    assert free_bytes(meminfo, group) == math.inf
    meminfo.write_text("MemTotal: 2000 kB\nMemAvailable:    1000 kB\n")
    assert free_bytes(meminfo, group) == 1_024_000
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("700000\n")
    assert free_bytes(meminfo, group) == 1_024_000
    (group / "memory.max").write_text("900000\n")
    (group / "memory.stat").write_text("anon 600000\ninactive_file 50000\n")
    assert free_bytes(meminfo, group) == 250_000
    with pytest.raises(ValueError, match="memory_limit=-1"):
        memory_bytes_max(-1)


def test_progress_is_the_share_of_bytes() -> None:
    """Of ten flows nine are short: when they have ended most of the work is still to do."""
    seen: list[Progress] = []
    cw.run(
        cw.Scenario.from_toml("""
            transport = "dctcp"
            fabric.star.hosts = 4
            [[traffic]]
            name = "short"
            sizes = { constant = "1KB" }
            arrivals = "all_at_once"
            flows = 9
            [[traffic]]
            name = "long"
            sizes = { constant = "2GB" }
            arrivals = "all_at_once"
            flows = 1
        """),
        threads=1,
        progress=seen.append,
    )
    assert len(seen) > 3 and {at.flows_done for at in seen[1:]} == {9}
    fractions = [at.fraction for at in seen]
    assert fractions == sorted(fractions) and fractions[0] < 0.5


def recorded() -> dict[str, list[tuple[float, float]]]:
    runs: dict[str, list[tuple[float, float]]] = {}
    if not RECORDED.is_file():
        return runs
    with RECORDED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault(row["run"], []).append((float(row["cpu_seconds"]), float(row["fraction"])))
    return runs


@pytest.mark.parametrize("run", sorted(recorded()))
def test_the_time_left_is_right_within_a_third_after_a_tenth(run: str) -> None:
    """Of runs of the bench, in CPU time, until six tenths: `python tests/record_progress.py` writes what they told.

    Not held: runs of which most bytes come early and the rest waits for timeouts (an incast over DCTCP: 0.5 s for 0.9),
    and the last part of any run, in which few flows are left.
    """
    pace, told = Pace(), recorded()[run]
    began, ended = told[0][0], told[-1][0]
    judged = 0
    for seconds, fraction in told:
        left = pace.left(seconds, fraction)
        if 0.1 <= (seconds - began) / (ended - began) <= 0.6:
            assert left is not None
            assert left == pytest.approx(ended - seconds, rel=0.3), (run, fraction)
            judged += 1
    assert judged > 5
