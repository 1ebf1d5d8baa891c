"""Which numbers of a run are effects of phases: `clearway run --sensitivity`."""

from __future__ import annotations

import json
from pathlib import Path

import clearway as cw
import pytest
from called import call

# Two endless flows into one port; at exact times one of two of NewReno finds the queue full again and again.
TWO = """
name = "two"
transport = "newreno"
timing = "ideal"
measure = { end = "400ms", interval = "0s" }
switch.buffer.per_port.bytes = "300KB"
fabric.star = { hosts = 3, rate = "1Gbps" }
"""
CLASS = """
[[traffic]]
name = "flow{0}"
sizes.constant = "100GiB"
senders = "{0}"
receivers = "2"
arrivals = "all_at_once"
flows = 1
start = "{1}us"
"""


def two(transport: str = "newreno") -> str:
    return TWO.replace("newreno", transport) + CLASS.format(0, 0) + CLASS.format(1, 37)


def test_shares_that_depend_on_phases_are_marked() -> None:
    result = cw.run(cw.Scenario.from_toml(two()), threads=1, progress=False, sensitivity=True)
    found = result.info["sensitivity"]
    assert set(found["digests"]) == {"real timing", "starts up to a packet later", "other paths"}
    # One switch has one path: nothing changes.
    assert found["digests"]["other paths"] == result.digest != found["digests"]["real timing"]
    packets = found["numbers"]["host0 sent MB"]
    assert packets["phase_effect"] and packets["moves"] > 0.05 and packets["with"] != "other paths"


def test_what_no_phase_moves_is_not_marked() -> None:
    # They leave room on the link.
    text = two("udp").replace('"udp"', '{ udp = { rate = "300Mbps" } }').replace("100GiB", "5MB")
    found = cw.run(cw.Scenario.from_toml(text), threads=1, progress=False, sensitivity=True).info["sensitivity"]
    assert found["numbers"] and not any(of["phase_effect"] for of in found["numbers"].values()), found


def test_the_command_says_what_moves_and_run_json_has_it(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(two())
    done = call("run", tmp_path / "two.toml", "--sensitivity", "--out", tmp_path / "out")
    assert "phase effects:" in done.err and "phase effect: host0 sent MB" in done.err, done.err
    info = json.loads((tmp_path / "out" / "run.json").read_text())
    assert info["sensitivity"]["numbers"]["host0 sent MB"]["phase_effect"]
    assert cw.load(tmp_path / "out").ok


def test_comparisons_of_few_flows_offer_it() -> None:
    few = cw.compare(cw.Scenario.from_toml(two().replace("400ms", "2ms")), ["newreno", "cubic"], progress=False)
    assert any("--sensitivity" in line for line in few.said())
    many = cw.Scenario.from_toml(two().replace("400ms", "2ms").replace("flows = 1", "flows = 20"))
    assert not any("--sensitivity" in line for line in cw.compare(many, ["udp", "newreno"], progress=False).said())


def test_it_needs_packets() -> None:
    with pytest.raises(ValueError, match="sensitivity: needs level"):
        cw.run(cw.Scenario.from_toml(two()), level="flow", sensitivity=True)
