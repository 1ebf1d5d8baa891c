"""Scenarios at flow level, as a person meets them."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import clearway as cw
import numpy as np
import pytest
from test_cli import clearway

LARGE = Path("examples/flow-level/large.toml").resolve()


@pytest.fixture(scope="module")
def estimate() -> cw.Result:
    return cw.run(cw.Scenario.load("examples/dcpim-vs-tcp.toml"), level="flow")


def test_an_estimate_is_a_result(estimate: cw.Result, tmp_path: Path) -> None:
    assert estimate.ok and estimate.level == "flow"
    assert list(estimate.tables) == ["flows", "utilisation", "links"]
    assert (len(estimate.flows), estimate.unfinished, estimate.dropped, estimate.resent) == (3000, 0, 0, 0)
    assert estimate.flows["slowdown"].min() == 1.0
    by_size = estimate.slowdown(by="size")
    assert (by_size["mean"] > 1).all() and (by_size["mean"] < 4).all()
    again = cw.load(estimate.save(tmp_path / "kept"))
    assert (again.level, again.digest) == ("flow", estimate.digest)
    assert json.loads((tmp_path / "kept" / "run.json").read_text())["level"] == "flow"


def test_the_columns_are_those_of_packet_level(estimate: cw.Result, result: cw.Result) -> None:
    assert result.level == "packet"
    for name, table in estimate._tables.items():
        known = {field.name: (field.type, field.metadata) for field in result._tables[name].schema}
        assert all(known[field.name] == (field.type, field.metadata) for field in table.schema)


def test_links_carry_what_flows_bring(estimate: cw.Result) -> None:
    links, flows = estimate.links, estimate.flows
    wire = flows["bytes"] + np.ceil(flows["bytes"] / 1460).astype(np.uint64) * 40
    for tier in ("from_host", "to_host"):
        sent = links["sent_bytes"][links["tier"] == tier].sum()
        assert abs(int(sent) - int(wire.sum())) < 144
    assert links["utilisation"].max() <= 1.0 + 1e-9


def test_the_same_flows_at_both_levels(tmp_path: Path) -> None:
    scenario = cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_({"traffic.0.flows": 300})
    both = cw.compare(scenario, ["dcpim", "udp"], levels=["packet", "flow"], folder=tmp_path)
    assert [result.name for result in both.results] == [
        "dcpim, packet level",
        "dcpim, flow level",
        "udp, packet level",
        "udp, flow level",
    ]
    packet, flow = both.results[:2]
    for column in ("src", "dst", "bytes", "start_ps", "ideal_ps"):
        assert (packet.flows[column] == flow.flows[column]).all()
    assert packet.info["bdp_bytes"] == flow.info["bdp_bytes"]
    table = both.table()
    assert table["dropped"].isna().tolist() == [False, True, False, True]
    page = both.report(tmp_path / "report.html").read_text()
    assert "is an estimate at flow level" in page and "Where time went" in page
    kept = cw.compare(scenario, ["dcpim", "udp"], levels=["packet", "flow"], folder=tmp_path, keep=True)
    assert [result.info["wall_seconds"] for result in kept.results] == [
        result.info["wall_seconds"] for result in both.results
    ]


def test_a_report_on_estimates_alone(estimate: cw.Result, tmp_path: Path) -> None:
    page = estimate.report(tmp_path / "report.html").read_text()
    assert "Where time went" not in page and "Lost and marked" not in page
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert {"Slowdown by flow size", "Completion times", "Flow by flow", "Network over time"} <= set(titles)
    assert estimate.digest is not None and estimate.digest in page


def test_what_cannot_be_right_is_said() -> None:
    scenario = cw.Scenario.load("examples/dcpim-vs-tcp.toml")
    with pytest.raises(ValueError, match="level='flows': must be one of packet, flow"):
        cw.run(scenario, level="flows")
    failing = scenario.with_({"failure": [{"at": "1us", "link": ["leaf0", "spine0"]}]})
    with pytest.raises(cw.ScenarioError, match="do not fail at flow level"):
        cw.run(failing, level="flow")


def test_on_the_command_line(tiny_file: Path, tmp_path: Path) -> None:
    done = clearway("run", tiny_file, "--level", "flow", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert cw.load(tmp_path / "r").level == "flow" and (tmp_path / "r" / "report.html").exists()
    done = clearway("compare", tiny_file, "--level", "packet", "--level", "flow", "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tiny, packet level" in done.stdout and "tiny, flow level" in done.stdout
    done = clearway("run", tiny_file, "--level", "fluid", cwd=tmp_path)
    assert done.returncode == 2 and "level='fluid': must be one of packet, flow" in done.stderr


def test_interrupt_keeps_what_there_is() -> None:
    scenario = cw.Scenario.load(LARGE).with_({"fabric.leaf_spine.racks": 100, "traffic.0.duration": "30ms"})
    under_way = threading.Event()

    def interrupt() -> None:
        under_way.wait()
        time.sleep(0.05)  # until progress is no longer reported
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = cw.run(scenario, level="flow", progress=lambda at: under_way.set() if at.flows_done else None)
    thread.join()
    assert result.interrupted and all(finding["ok"] for finding in result.info["audit"])
    assert 0 < result.info["flows_completed"] < result.info["flows"]


@pytest.mark.slow
def test_a_hundred_thousand_hosts() -> None:
    result = cw.run(cw.Scenario.load(LARGE), level="flow")
    assert result.ok and result.info["hosts"] == 102_400 and result.unfinished == 0
    assert result.info["cpu_seconds"] < 30
    assert result.info["peak_memory_bytes"] < 4e9
