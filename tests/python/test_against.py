"""`clearway against`: what another program is told, what it can't be told, and how its answer is shown. ns-3 itself is
asked where CLEARWAY_NS3 names a Python that has it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import clearway as cw
import pytest
from called import call
from clearway.peers import ns3

STAR = """
transport = "{transport}"
timing = "ideal"
fabric.star = {{ hosts = 3, rate = "10Gbps", propagation = "2us", switch_delay = "1us" }}
switch = {{ buffer.per_port.bytes = "150KB"{marking} }}
[[traffic]]
sizes.constant = "{size}"
arrivals = "all_at_once"
pattern.incast.degree = 2
senders = "0-1"
receivers = "2"
flows = {flows}
"""
# A program that answers as ns-3 would if each flow took twice as long as it takes here at full rate.
FAKE = """#!{python}
import sys
_, _, network, request, settings, answer = sys.argv
lines = open(request).read().splitlines()
nodes, hosts, links, flows = map(int, lines[0].split()[:4])
print("version fake-1")
print("progress 1000000 1", flush=True)
with open(answer, "w") as out:
    print(10**9, file=out)
    for line in lines[-flows:]:
        source, destination, size, start, lead, control = line.split()
        print(int(start) + int(size) * 1600, size, file=out)
    for port in range(2 * links):
        print(port, 0, 1500 * port, file=out)
"""


def star(transport: str = "cubic", marking: str = "", size: str = "1MB", flows: int = 2) -> cw.Scenario:
    return cw.Scenario.from_toml(STAR.format(transport=transport, marking=marking, size=size, flows=flows))


def fake(folder: Path, text: str = FAKE) -> Path:
    program = folder / "python-with-ns3"
    program.write_text(text.format(python=sys.executable))
    program.chmod(0o755)
    return program


def request(scenario: cw.Scenario) -> list[list[str]]:
    result = cw.run(scenario)
    told = ns3._request(scenario.to_dict(), result, ns3._pairs(result), *scenario._core.ports())
    return [line.split() for line in told.splitlines()]


def test_links_are_told_as_they_are() -> None:
    head, *rows = request(star("dctcp", ', marking.step.threshold = "30KB"'))
    # Four nodes, three hosts and links, two flows, and connections that are open before a flow begins.
    assert head[:5] == ["4", "3", "3", "2", "1"] and int(head[5]) > 0
    # Half of the switch's delay in each direction: 2 us and half of 1 us.
    assert rows[0][2] == "2500000"
    # A full packet takes 1.2 us as here, though it has two bytes more there.
    assert abs(1502 * 8 / int(rows[1][0]) * 1e6 - 1.2) < 1e-6
    # Host: no bound. Switch: 150 KB, and marks from two packets below 30 KB on, which RED doesn't count.
    assert rows[1][1:] == ["0", "0", "0", "1", "0"]
    assert list(map(float, rows[2][1:])) == [150_000, 27_000, 27_000, 1, 0]


def test_a_shallow_threshold_stays_a_packet() -> None:
    [_, _, _, at_switch, *_] = request(star("dctcp", ', marking.step.threshold = "1500B"'))
    assert float(at_switch[2]) == 1500


def test_all_shortest_paths_are_told() -> None:
    scenario = cw.Scenario.from_toml(
        'transport = "newreno"\nfabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 3 }\n'
        '[[traffic]]\nsizes.constant = "1KB"\narrivals = "all_at_once"\npattern = "all_to_all"\n'
    )
    head, *rows = request(scenario)
    nodes, hosts, links = map(int, head[:3])
    ways = rows[3 * links : 3 * links + nodes]
    names = ["host0", "host1", "host2", "host3", "leaf0", "leaf1", "spine0", "spine1", "spine2"]
    of = dict(zip(names, ways, strict=True))
    assert hosts == 4
    # A host has one link, and none to itself; a leaf has three ways to the other rack; a spine has one everywhere.
    assert of["host0"] == ["0", "1", "1", "1", "1", "1", "1"]
    assert of["leaf0"] == ["1", "1", "1", "2", "3", "3", "4", "5", "3", "3", "4", "5"]
    assert of["spine1"] == ["1", "1", "1", "1", "1", "2", "1", "2"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("transport", "dcpim", "ns-3 has no dcpim; it has newreno"),
        ("flow_control", "pfc", "flow_control: ns-3 has 'none' alone"),
        ("switch.balancing", "round_robin", "switch.balancing: ns-3 has"),
        ("traffic[0].transport", "newreno", "one transport can be compared at a time"),
    ],
)
def test_what_ns3_cannot_do_is_refused_by_key(key: str, value: str, said: str, tmp_path: Path) -> None:
    scenario = star().with_({key: value})
    with pytest.raises(ValueError, match="ns-3 cannot run this scenario") as refused:
        cw.against(scenario, "ns3", interpreter=fake(tmp_path))
    assert said in str(refused.value)


def test_failures_are_refused() -> None:
    failing = star().with_({"failure": [{"link": ["host0", "switch0"], "at": "1ms"}]})
    assert any(one.startswith("failure: ") for one in ns3.refusals(failing.to_dict()))


def test_differences_name_the_key() -> None:
    scenario = star("linux").with_({"switch.buffer": {"shared": {"bytes": "1MB", "alpha": 1.0}}})
    keys = [one.partition(":")[0] for one in ns3.differences(scenario.to_dict())]
    assert {"transport.linux.rack", "transport.linux.tail_loss_probe", "switch.buffer"} <= set(keys)
    assert not any(key.startswith("transport") for key in (d.partition(":")[0] for d in plain_differences()))


def plain_differences() -> list[str]:
    return list(ns3.differences(star().to_dict()))


def test_both_results_stand_side_by_side(tmp_path: Path) -> None:
    found = cw.against(star(), "ns3", interpreter=fake(tmp_path), seeds=2)
    assert found.version == "fake-1" and len(found.pairs) == 2
    flows = found.flows()
    assert len(flows) == 4 and (flows["theirs_ps"] == 1_000_000 * 1600).all()
    [row] = found.sizes().to_dict("records")
    ours = flows["ours_ps"].mean()
    assert row["count"] == 4
    assert row["mean differs"] == pytest.approx(1_000_000 * 1600 / ours - 1, rel=1e-6)
    # Ports of the request are in pairs of directions; those of hosts are no switches'.
    assert found.ports().loc["ns3", "longest queue, bytes"] == 7500
    assert found.unfinished() == (0, 0) and found.shares().empty


def test_endless_flows_are_compared_by_share(tmp_path: Path) -> None:
    endless = star(size="100GiB").with_({"measure.end": "2ms"})
    text = FAKE.replace("int(start) + int(size) * 1600, size", "-1, 1000 if source == '0' else 3000")
    shares = cw.against(endless, "ns3", interpreter=fake(tmp_path, text)).shares().set_index("program")
    assert shares.loc["ns3", "least share"] == 0.25
    # 4,000 B in the millisecond that the fake says it ran.
    assert shares.loc["ns3", "Gbit/s"] == pytest.approx(4000 * 8 / 1e-3 / 1e9)
    assert 0.3 < shares.loc["clearway", "least share"] <= 0.5 and 9 < shares.loc["clearway", "Gbit/s"] < 10


def test_the_command_shows_both_and_writes_flows(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(STAR.format(transport="cubic", marking="", size="1MB", flows=2))
    words = ["against", "ns3", str(tmp_path / "s.toml"), "--interpreter", str(fake(tmp_path))]
    done = call(*words, "--out", str(tmp_path / "flows.csv"), "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["version"] == "fake-1" and said["sizes"][0]["count"] == 2 and len(said["ports"]) == 2
    assert (tmp_path / "flows.csv").read_text().startswith("seed,flow,source,destination,bytes")


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    program = fake(tmp_path, "#!{python}\nimport sys\nprint('no module named ns'); sys.exit(1)\n")
    with pytest.raises(ValueError, match="ns-3 did not run: no module named ns"):
        cw.against(star(), "ns3", interpreter=program)


def test_an_absent_program_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ns3.VARIABLE, "/nowhere/python")
    with pytest.raises(ValueError, match=r"pip install ns3==3\.44"):
        cw.against(star(), "ns3")


def test_only_known_programs_are_asked() -> None:
    with pytest.raises(ValueError, match="can be 'ns3' or 'kernel'"):
        cw.against(star(), "omnet")  # type: ignore[arg-type]


@pytest.mark.skipif(ns3.VARIABLE not in os.environ, reason=f"{ns3.VARIABLE} names no Python with ns-3")
@pytest.mark.parametrize("transport", ["newreno", "cubic", "dctcp", "illinois"])
def test_a_lone_flow_takes_as_long_in_ns3(transport: str) -> None:
    """A flow alone is the closed form of both: a difference is one of links, sizes or windows. BBR is not among them:
    ns-3's takes a first round trip of 1 ms for granted and paces by that."""
    for size in ("10KB", "1MB"):
        [row] = cw.against(star(transport, size=size, flows=1), "ns3").sizes().to_dict("records")
        assert abs(row["mean differs"]) < 0.03, (transport, size, row)
