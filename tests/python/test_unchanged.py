"""Runs that differ in transport, flow control or fabric, and whose digests do not: the user is told."""

from __future__ import annotations

import json
from pathlib import Path

import clearway as cw
import pytest
from called import call

TINY = "examples/tiny.toml"


def test_a_flow_control_that_never_acts_is_said(tmp_path: Path) -> None:
    """Nothing waits in the example of eight flows, each alone on its way: PFC never pauses."""
    said = call("compare", TINY, "--flow-control", "none", "--flow-control", "pfc", "--out", str(tmp_path / "c"))
    assert said.code == 0, said.err
    words = "pfc: another flow control than none, but the same digest"
    assert words in said.err and "no queue became long enough" in said.err
    assert "same" in said.out and "digest" in said.out
    assert words in (tmp_path / "c" / "report.html").read_text()


def test_what_differs_in_its_packets_is_not_named(tmp_path: Path) -> None:
    said = call("compare", TINY, "--transport", "udp", "--transport", "dcpim", "--out", str(tmp_path / "c"), "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["unchanged"] == []
    assert "same digest as" not in found["table"][0]
    assert "warning" not in said.err


def test_a_transport_and_a_fabric_without_effect_are_named() -> None:
    tiny = cw.Scenario.load(TINY)
    slower = tiny.with_({"transport": {"udp": {"rate": "100Gbps"}}}, name="same rate")
    spines = cw.Scenario.from_toml(
        "fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1 }\n[[traffic]]\nsizes.constant = '1KB'\n"
        "arrivals = 'all_at_once'\nsenders = '0'\nreceivers = '1'\nflows = 1\n"
    )
    faster = spines.with_({"fabric.leaf_spine.spine_rate": "200Gbps"}, name="faster")
    found = cw.compare([tiny, slower]).unchanged
    assert [(one.differs, one.others) for one in found] == [(("transport",), ("same rate",))]
    found = cw.compare([spines, faster]).unchanged
    assert [(one.differs, one.others) for one in found] == [(("fabric",), ("faster",))]
    assert "no packet passes the parts in which the fabrics differ" in str(found[0])
    # The same run twice is no surprise.
    assert not cw.compare([tiny, tiny]).unchanged


def test_at_flow_level_the_reason_is_another() -> None:
    found = cw.compare([TINY], ["dctcp", "cubic"], levels=["flow"]).unchanged
    assert "compare at packet level" in str(found[0])


def test_a_sweep_says_it_in_its_table_its_page_and_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(f'scenario = "{Path(TINY).resolve()}"\n[vary]\nflow_control = ["none", "pfc"]\n')
    said = call("sweep", str(file), "--out", str(tmp_path / "s"), "--workers", "1")
    assert said.code == 0, said.err
    assert "another flow control than" in said.err
    result = cw.Sweep.load(file, tmp_path / "s").result()
    assert sorted(result.table()["same digest as"].astype(bool)) == [False, True]
    assert "another flow control than" in (tmp_path / "s" / "report.html").read_text()


@pytest.mark.parametrize("level", ["packet", "flow"])
def test_a_result_without_flows_is_no_reason_for_a_crash(level: str) -> None:
    scenario = cw.Scenario.load(TINY).with_({"measure.end": "1ps"})
    assert cw.compare([scenario], ["udp", "dctcp"], levels=[level]).unchanged
