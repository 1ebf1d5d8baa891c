"""The live driver from Python: real packets, checked content, the simulator's columns."""

from __future__ import annotations

from pathlib import Path

import clearway as cw
import pytest

SCENARIO = """
[fabric.star]
hosts = 3
rate = "50Mbps"
propagation = "400us"
switch_delay = "900us"

[measure]
drain = "5s"

[[traffic]]
name = "few"
sizes = { constant = "30KB" }
pattern = { stride = { by = 1 } }
arrivals = "all_at_once"
"""


@pytest.mark.parametrize("transport", ["dcpim", "dctcp"])
def test_live_stands_beside_the_simulator(transport: str, tmp_path: Path) -> None:
    settings = {"dctcp": {"rto_min": "2s"}, "dcpim": {}}[transport]
    scenario = cw.Scenario.from_toml(SCENARIO).with_(transport={transport: settings})
    simulated, live = cw.run(scenario), cw.live(scenario)
    content = next(finding for finding in live.info["audit"] if finding["name"] == "content right")
    assert content["ok"], content
    assert live.info["flows_completed"] == simulated.info["flows_completed"] == 3
    # Nothing on a real clock is earlier than in the simulator; how much later is the machine's affair.
    assert (live.flows["fct_ps"] >= simulated.flows["fct_ps"]).all()
    assert set(simulated.flows.to_arrow().column_names) <= set(live.flows.to_arrow().column_names)
    live.save(tmp_path / "live")
    assert cw.load(tmp_path / "live").info["refused_datagrams"] == 0


def test_a_link_fails_live_as_in_the_simulator() -> None:
    text = SCENARIO.replace('drain = "5s"', 'end = "50ms"')
    failure = '[[failure]]\nlink = ["host0", "switch0"]\nat = "1ms"\n[live]\ndilation = 2\nwait = "sleep"\n'
    scenario = cw.Scenario.from_toml(text + failure)
    simulated, live = cw.run(scenario), cw.live(scenario)
    assert live.info["digest"] == simulated.info["digest"]
    assert live.links["dead_packets"].sum() > 0


def test_a_setting_of_live_that_cannot_be_is_said_by_its_line() -> None:
    with pytest.raises(cw.ScenarioError, match="one thread reads all sockets"):
        cw.Scenario.from_toml(SCENARIO + '\n[live]\nworkers = 2\nlinks = "datagrams"\n')


def test_hosts_with_several_links_run_live_and_are_refused_at_flow_level() -> None:
    fabric = """
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
homes = 2
host_rate = "50Mbps"
spine_rate = "200Mbps"
propagation = "400us"
switch_delay = "900us"
[measure]
drain = "5s"
"""
    homes = cw.Scenario.from_toml(fabric + SCENARIO[SCENARIO.index("[[traffic]]") :])
    result = cw.live(homes)
    assert result.info["flows_completed"] == result.info["flows"] > 0
    with pytest.raises(cw.ScenarioError, match="host0 has 2 links, and at flow level a host has one"):
        cw.run(homes, level="flow")
