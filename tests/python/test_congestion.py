"""Congestion trees: the table, and the animation in the report."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import clearway as cw
import numpy as np
import pytest
from clearway import _trees
from clearway._fabric_layout import HEIGHT, WIDTH, lay_out

# Three hosts of one rack and two of the other send to one, and a sixth flow only shares the way of three of them.
INCAST = """
name = "incast"
transport = "udp"
measure.interval = "2us"
switch.buffer.shared = { bytes = "600KB" }

[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 1

[[traffic]]
name = "incast"
sizes = { constant = "800KB" }
arrivals = "all_at_once"
senders = "0,1,3,5,6"
receivers = "4"

[[traffic]]
name = "victim"
sizes = { constant = "800KB" }
arrivals = "all_at_once"
senders = "2"
receivers = "7"
"""


@pytest.fixture(scope="module")
def comparison() -> cw.Comparison:
    return cw.compare(cw.Scenario.from_toml(INCAST), flow_controls=["none", "pfc", "pyrrha"])


@pytest.fixture(scope="module")
def page(comparison: cw.Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return comparison.report(tmp_path_factory.mktemp("report") / "report.html").read_text()


def data_of(page: str) -> dict[str, Any]:
    [text] = re.findall(r"<script type=application/json id=trees-data>(.*?)</script>", page, re.DOTALL)
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def test_the_table_tells_who_is_held_and_who_is_innocent(comparison: cw.Comparison, tmp_path: Path) -> None:
    none, pfc, pyrrha = comparison.results
    assert "congestion" not in none.tables
    with pytest.raises(AttributeError, match="congestion"):
        _ = none.congestion
    frame = pfc.congestion.to_pandas()
    assert frame["paused"].dtype == bool and frame["root_link"].isna().all()
    names = dict(zip(pfc.links["link"], zip(pfc.links["from"], pfc.links["to"])))
    assert {names[link] for link in frame[frame["role"] == "root"]["link"]} == {("leaf1", "host4")}
    assert frame["innocent_bytes"].sum() > 0
    frame = pyrrha.congestion.to_pandas()
    assert frame["innocent_bytes"].sum() == 0
    held = frame[frame["paused"]]
    assert {names[link] for link in held["root_link"]} == {("leaf1", "host4")}
    assert set(held["cause"]) == {f"leaf1:{pyrrha_port(pyrrha)}"}
    assert pfc.congestion.to_polars().height == pfc.congestion.to_arrow().num_rows == len(pfc.congestion)
    loaded = cw.load(pfc.save(tmp_path / "pfc"))
    assert loaded.congestion.to_arrow() == pfc.congestion.to_arrow()


def pyrrha_port(result: cw.Result) -> int:
    """Which of leaf 1's ports leads to host 4: ports are in the order of links."""
    of_leaf = [target for source, target in zip(result.links["from"], result.links["to"]) if source == "leaf1"]
    return of_leaf.index("host4")


def test_the_audit_holds_pyrrha_to_its_theorem(comparison: cw.Comparison, page: str) -> None:
    name = "flows are held only by roots on their own onward path"
    said = [[finding for finding in result.info["audit"] if finding["name"] == name] for result in comparison.results]
    assert [len(findings) for findings in said] == [0, 0, 1]
    assert said[2][0]["ok"] and name in page


def test_the_page_moves_without_network(page: str, comparison: cw.Comparison) -> None:
    assert "<h2>Congestion trees</h2>" in page and "never holds an innocent packet" in page
    # What is written in the page; the library of its charts could load maps, and is not asked to.
    assert not re.search(r"""<[a-z][^<>]*\s(src|href)=(?!['"]?#)""", page)
    data = data_of(page)
    assert [run["name"] for run in data["runs"]] == ["pfc", "pyrrha"], "no flow control, nothing to show"
    for run, result in zip(data["runs"], comparison.results[1:]):
        check_against_table(run, result)
        told = result.congestion.to_pandas()
        busy = told[(told["bytes"] > 0) | told["paused"]]["time_ps"].max()
        assert run["times"][-1] * 1e6 >= busy, "all that there is to see"


def check_against_table(run: Mapping[str, Any], result: cw.Result) -> None:
    """What changes add up to is what the table says."""
    frame = result.congestion.to_pandas()
    state: dict[int, tuple[int, int, int]] = {}
    for time_us, changes, held, innocent in zip(run["times"], run["changes"], run["held"], run["innocent"]):
        for link, what, kb, percent in zip(*(changes[start::4] for start in range(4))):
            state[link] = (what, kb, percent)
            if what == 0:
                del state[link]
        now = frame[frame["time_ps"] == round(time_us * 1e6)]
        assert set(state) == set(now["link"])
        assert {link for link, (what, *_) in state.items() if what & 4} == set(now[now["paused"]]["link"])
        assert {link for link, (what, *_) in state.items() if what % 4 == 3} == set(now[now["role"] == "root"]["link"])
        assert held == pytest.approx(now[now["paused"]]["bytes"].sum() / 1e3, abs=0.06)
        assert innocent == pytest.approx(now["innocent_bytes"].sum() / 1e3, abs=0.06)
        for link, size in now.groupby("link")["bytes"].sum().items():
            assert state[link][1] == pytest.approx(size / 1e3, rel=0.1, abs=1)


def test_without_its_script_the_page_shows_the_worst_instant(page: str) -> None:
    still = page.partition("<figure class=trees")[2].partition("</figure>")[0]
    pfc, pyrrha = re.findall(r"<div class=panel>.*?</div>", still, re.DOTALL)
    assert _trees.INNOCENT in pfc.partition("class=bars")[2] and "<circle" in pfc
    assert _trees.INNOCENT not in pyrrha.partition("class=bars")[2]
    assert "<div class=bar hidden>" in still, "no slider that does nothing"


def test_names_in_the_data_end_no_script(comparison: cw.Comparison, tmp_path: Path) -> None:
    pfc = comparison.results[1]
    odd = cw.Result("</script><b>", pfc.tables, pfc.info, pfc.scenario_toml)
    text = odd.report(tmp_path / "odd.html").read_text()
    assert "</script><b>" not in text
    assert data_of(text)["runs"][0]["name"] == "</script><b>"


def test_a_long_run_keeps_to_its_room(comparison: cw.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    full = data_of(_trees.section(comparison.results))
    size = len(json.dumps(full["runs"], separators=(",", ":")))
    monkeypatch.setattr(_trees, "BYTES_MAX", size * 2 // 3)
    thinned = data_of(_trees.section(comparison.results))
    assert len(json.dumps(thinned["runs"], separators=(",", ":"))) <= size * 2 // 3
    assert set(thinned["runs"][0]["times"]) < set(full["runs"][0]["times"])


@pytest.mark.parametrize(
    "fabric",
    [
        "leaf_spine = { racks = 10, hosts_per_rack = 16, spines = 4 }",
        "fat_tree = { k = 4 }",
        "star = { hosts = 6 }",
        "dumbbell = {}",
        "torus = { dims = [4, 3] }",
        "torus = { dims = [3, 3, 4] }",
        "mesh = { dims = [5] }",
    ],
)
def test_every_fabric_has_its_place(fabric: str) -> None:
    text = f"""
        flow_control = "pfc"
        switch.buffer.shared = {{ bytes = "4MB" }}
        fabric.{fabric}
        [[traffic]]
        sizes = {{ constant = "1KB" }}
        arrivals = "all_at_once"
        pattern = {{ stride = {{ by = 1 }} }}
    """
    result = cw.run(cw.Scenario.from_toml(text))
    layout = lay_out(result)
    assert layout.halves.shape == (len(result.links), 4) and np.isfinite(layout.halves).all()
    assert (layout.halves >= 0).all()
    assert (layout.halves[:, ::2] <= WIDTH).all() and (layout.halves[:, 1::2] <= HEIGHT).all()
    boxes = np.array(layout.boxes)
    assert len({(x, y) for x, y, *_ in layout.boxes}) == len(boxes), "no two nodes at one place"
    if "torus" not in fabric:
        np.testing.assert_allclose(layout.halves[::2, 2:], layout.halves[1::2, 2:], err_msg="halves of a cable meet")


def test_compare_multiplies_transports_and_flow_controls(scenario: cw.Scenario) -> None:
    runs = cw.compare(scenario.with_({"traffic.0.flows": 5}), ["udp", "dcpim"], ["none", "pfc"]).results
    assert [run.name for run in runs] == ["udp over none", "udp over pfc", "dcpim over none", "dcpim over pfc"]
    assert cw.Scenario.from_toml(runs[0].scenario_toml).to_dict()["flow_control"] == "none"
