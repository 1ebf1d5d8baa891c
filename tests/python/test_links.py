"""Scenarios one link at a time, as a person meets them."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from test_cli import clearway

sys.path.insert(0, "examples/links")
import error

SMALL = """
timing = "ideal"
transport = "dctcp"
[fabric.leaf_spine]
racks = 3
hosts_per_rack = 4
spines = 2
spine_rate = "200Gbps"
[[traffic]]
sizes = "websearch"
arrivals.poisson.load = 0.5
flows = 400
"""

NOT_YET = "Not yet run on this build"
measured = pytest.mark.skipif(NOT_YET in error.PAGE.read_text(), reason="docs/links-measured.md has no numbers yet")


@pytest.fixture(scope="module")
def small() -> cw.Scenario:
    return cw.Scenario.from_toml(SMALL)


@pytest.fixture(scope="module")
def estimate(small: cw.Scenario) -> cw.Result:
    return cw.run(small, level="links")


def test_an_estimate_is_a_result(estimate: cw.Result, tmp_path: Path) -> None:
    assert estimate.ok and estimate.level == "links" and estimate.estimated
    assert list(estimate.tables) == ["flows", "links"]
    assert (len(estimate.flows), estimate.unfinished, estimate.dropped, estimate.resent) == (400, 0, 0, 0)
    assert (estimate.slowdown(by="size")["mean"] > 1).all()
    again = cw.load(estimate.save(tmp_path / "kept"))
    assert (again.level, again.digest) == ("links", estimate.digest)
    assert json.loads((tmp_path / "kept" / "run.json").read_text())["level"] == "links"
    page = estimate.report(tmp_path / "report.html").read_text()
    assert "is an estimate by single links" in page and "Where time went" not in page


def test_links_say_who_waits_where(estimate: cw.Result) -> None:
    links, info = estimate.links, estimate.info
    simulated = np.array(links["simulated"])
    # Links side by side, over which switches spread packets, are simulated together.
    assert info["links_simulated"] <= (simulated == "itself").sum() <= 2 * info["links_simulated"]
    assert info["links_alike"] <= (simulated == "others").sum() <= 2 * info["links_alike"]
    assert (links["flows"][simulated == ""] * links["mean_wait_ps"][simulated == ""] == 0)[
        links["flows"][simulated == ""] > 0
    ].all()
    assert int(links["flows"][links["tier"] == "to_host"].sum()) == 400


def test_it_is_another_kind_of_digest(small: cw.Scenario, estimate: cw.Result) -> None:
    digests = {estimate.digest} | {cw.run(small, level=level).digest for level in ("packet", "flow")}
    assert len(digests) == 3
    assert cw.run(small, level="links", threads=1).digest == estimate.digest


@pytest.mark.parametrize("way", list(error.WAYS))
def test_it_is_near_the_packet_level(small: cw.Scenario, way: str) -> None:
    """Where one link at a time holds a flow up: at a low load. The page says how far it is off at higher ones."""
    # Of 400 flows four decide the 99th percentile.
    small = small.with_({"traffic.0.arrivals.poisson.load": 0.1, "traffic.0.flows": 2_000})
    packet, links = cw.run(small), cw.run(small.with_(error.WAYS[way]), level="links")
    assert links.flows["start_ps"].tolist() == packet.flows["start_ps"].tolist()
    (one,) = [row for row in error.errors("small", way, packet, links) if row["size"] == "all"]
    assert abs(one["links mean"] / one["packet mean"] - 1) < 0.1
    assert abs(one["links p99"] / one["packet p99"] - 1) < 0.15


def test_some_links_of_a_kind_are_simulated(small: cw.Scenario) -> None:
    some = cw.run(small.with_({"decomposition.sample": 2}), level="links")
    assert some.ok and some.info["links_alike"] > 0
    assert set(some.links["simulated"]) == {"itself", "others"}
    with pytest.raises(cw.ScenarioError, match=r"decomposition\.sample"):
        small.with_({"decomposition.sample": 0})


def test_what_it_cannot_do_is_said(small: cw.Scenario, tmp_path: Path) -> None:
    with pytest.raises(cw.ScenarioError, match="flow_control"):
        cw.run(small.with_({"flow_control": "pfc"}), level="links")
    with pytest.raises(cw.ScenarioError, match="whole network"):
        cw.run(small.with_({"transport": "harmony"}), level="links")
    with pytest.raises(ValueError, match="each link has packets of its own"):
        cw.run(small, level="links", pcap={"leaf0-host0": tmp_path / "x.pcapng"})


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    done = clearway("run", file, "--level", "links", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert cw.load(tmp_path / "r").level == "links"
    done = clearway("run", file, "--level", "links", "--set", "flow_control=bfc", cwd=tmp_path)
    assert done.returncode != 0 and "hold back" in done.stderr and "Traceback" not in done.stderr


def test_interrupt_keeps_what_there_is(small: cw.Scenario) -> None:
    scenario = small.with_({"traffic.0.flows": 20_000})
    under_way = threading.Event()

    def interrupt() -> None:
        under_way.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = cw.run(scenario, level="links", threads=1, progress=lambda at: under_way.set() if at.flows_done else None)
    thread.join()
    assert result.interrupted and result.info["flows_completed"] < 20_000


def test_there_are_twenty_scenarios_and_room_for_them_on_the_page() -> None:
    page = error.PAGE.read_text()
    assert error.BEGIN in page and error.END in page
    titles = [title for title, _ in error.scenarios()]
    assert len(set(titles)) == 20
    assert NOT_YET in page or all(page.count(f"| {title} |") == 3 for title in titles)


def again(title: str, toml: str) -> None:
    base = cw.Scenario.from_toml(toml).with_({"transport": "dctcp"}, name=title)
    rows = error.errors(title, "eight of a kind", cw.run(base), cw.run(base, level="links"))
    for what in ("p99", "mean"):
        assert error.table(pd.DataFrame(rows), what, "scenario")[-1] in error.PAGE.read_text()


@measured
def test_one_of_the_page_gives_the_same_again() -> None:
    title = "2:1 leaf-spine, websearch at 0.2"
    again(title, dict(error.scenarios())[title])


@measured
@pytest.mark.slow
@pytest.mark.parametrize(("title", "toml"), list(error.scenarios()))
def test_all_of_the_page_give_the_same_again(title: str, toml: str) -> None:
    again(title, toml)
