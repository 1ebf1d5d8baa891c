"""The live driver from Python: real packets, checked content, the simulator's columns."""

from __future__ import annotations

import json
import re
import resource
import struct
import subprocess
from pathlib import Path

import clearway as cw
import pytest
from test_cli import PROGRAM, clearway

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


def test_hosts_with_several_links_run_live_and_at_flow_level() -> None:
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
    assert cw.run(homes, level="flow").info["flows_completed"] == result.info["flows"]
    with pytest.raises(cw.ScenarioError, match="host0 has 2 links, and at flow level a host that takes in slowly"):
        cw.run(homes.with_({"host.intake_rate": "20Mbps"}), level="flow")


# Slow by the clock and short, with the same end: a live run's history is the simulator's up to there.
DILATED = SCENARIO.replace('drain = "5s"', 'end = "50ms"') + '[live]\ndilation = 2\nwait = "sleep"\n'


def test_several_processes_have_the_simulators_history() -> None:
    fabric = '[fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 2\npropagation = "400us"\n'
    scenario = cw.Scenario.from_toml(fabric + DILATED[DILATED.index("[measure]") :])
    live = cw.live(scenario, processes=2)
    assert live.info["processes"] == 2
    assert live.info["lost_processes"] == []
    assert live.info["digest"] == cw.run(scenario).info["digest"]


RACK_512 = """
transport = "r2c2"
fabric.torus = {}
live = { dilation = 2_000, wait = "sleep" }
measure = { interval = "0s", end = "100us" }

[[traffic]]
sizes = { constant = "10KB" }
arrivals = { poisson = { every = "2us" } }
flows = 20
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_rack_of_512_nodes_lives_with_1024_file_descriptors(processes: int, tmp_path: Path) -> None:
    (tmp_path / "rack.toml").write_text(RACK_512)
    command = [*PROGRAM, "live", "rack.toml", "--processes", str(processes), "--out", "out"]
    few = (1_024, 1_024)
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few),
    )  # fmt: skip
    # Whether the machine kept pace is its own affair.
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    info = json.loads((tmp_path / "out/live/run.json").read_text())
    assert all(finding["ok"] for finding in info["audit"] if finding["name"] != "in time"), info["audit"]
    assert info["hosts"] == 512 and info["processes"] == processes and info["flows_completed"] > 0
    assert info["digest"] == cw.run(tmp_path / "rack.toml").info["digest"]


TOKEN = "a token of these tests"


def test_two_machines_have_the_simulators_history(tmp_path: Path) -> None:
    fabric = '[fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 2\npropagation = "400us"\n'
    scenario, token = tmp_path / "few.toml", tmp_path / "token"
    scenario.write_text(fabric + DILATED[DILATED.index("[measure]") :])
    token.write_text(TOKEN + "\n")
    others, said = [], []

    def tell(news: str) -> None:
        said.append(news)
        if at := re.match(r"listening at (\S+) for 1 more", news):
            command = [*PROGRAM, "live", scenario, "--join", at[1], "--token-file", token, "--json"]
            others.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    read = cw.Scenario.load(scenario)
    live = cw.live(read, machines=2, listen="127.0.0.1:0", token=TOKEN, tell=tell)
    out, err = others[0].communicate(timeout=60)
    assert others[0].returncode == 0, err
    assert live.info["digest"] == cw.run(read).info["digest"]
    assert (live.info["machines"], live.info["lost_processes"]) == (2, [])
    part = json.loads(out)
    assert (part["machine"], part["machines"], part["end_ps"]) == (1, 2, live.info["end_ps"])
    table = live.machines.to_pandas()
    assert table["nodes"].tolist()[1] == part["nodes"]
    assert table["lived"].all()
    assert any("has joined: all are there" in news for news in said), said
    live.save(tmp_path / "live")
    assert cw.load(tmp_path / "live").machines.to_pandas().equals(table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--machines", "2"], "machines and listen go together"),
        (["--listen", "127.0.0.1:0"], "machines and listen go together"),
        (["--machines", "2", "--listen", "127.0.0.1:0", "--processes", "2"], "each is one process"),
        (["--machines", "9", "--listen", "127.0.0.1:0"], "9 machines can't share the nodes of this fabric"),
        (["--machines", "2", "--listen", "nowhere"], "can't listen at nowhere"),
        (["--join", "127.0.0.1:1", "--out", "here"], "said where it listens"),
        (["--join", "nowhere"], "written as HOST:PORT"),
    ],
)
def test_machines_that_cannot_be_are_an_error(options: list[str], words: str, tmp_path: Path) -> None:
    fabric = '[fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 2\npropagation = "400us"\n'
    scenario, token = tmp_path / "few.toml", tmp_path / "token"
    scenario.write_text(fabric + DILATED[DILATED.index("[measure]") :])
    token.write_text(TOKEN)
    ended = clearway("live", scenario, *options, "--token-file", token, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in " ".join(ended.stderr.replace("│", " ").split())


def test_a_token_is_needed_and_must_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEARWAY_TOKEN", raising=False)
    with pytest.raises(ValueError, match="set CLEARWAY_TOKEN; `openssl rand -hex 32` makes one"):
        cw.join("127.0.0.1:1")
    monkeypatch.setenv("CLEARWAY_TOKEN", "short")
    with pytest.raises(cw.ScenarioError, match="token: it has 5 characters, and needs 16"):
        cw.join("127.0.0.1:1")


def test_two_processes_write_one_capture(tmp_path: Path) -> None:
    fabric = '[fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 2\nspines = 1\npropagation = "400us"\n'
    text = fabric + DILATED[DILATED.index("[measure]") :]
    file = tmp_path / "out.pcapng"
    scenario = cw.Scenario.from_toml(text).with_({"live.capture.spine0": str(file)})
    links = cw.live(scenario, processes=2).links.to_pandas()
    of_spine = (links["from_node"] == "spine0") | (links["to_node"] == "spine0")
    assert len(read_pcapng(file)) == links.loc[of_spine, "sent_packets"].sum() > 0
    nowhere = cw.Scenario.from_toml(text).with_({"live.attach.host3": "netns:no_such_namespace"})
    with pytest.raises(cw.ScenarioError, match=r"live\.attach\.host3: there is no network namespace"):
        cw.live(nowhere, processes=2)


def test_a_captured_link_is_a_file_that_readers_of_packets_know(tmp_path: Path) -> None:
    scenario, file = tmp_path / "few.toml", tmp_path / "out.pcapng"
    scenario.write_text(DILATED)
    ended = clearway("live", scenario, "--capture", f"switch0-host1:{file}", "--out", tmp_path / "out")
    # Whether a busy machine kept pace changes nothing of what was captured.
    faults = [line for line in ended.stderr.splitlines() if "AUDIT" in line and "in time" not in line]
    assert ended.returncode in (0, 1) and not faults, ended.stderr
    packets = read_pcapng(file)
    links = cw.load(tmp_path / "out/live").links.to_pandas().set_index(["from_node", "to_node"])
    assert len(packets) == links.loc[("switch0", "host1"), "sent_packets"] > 0
    # Content is whole: what a packet had on the wire is there, from the Ethernet header on.
    assert all(captured == length for captured, length in packets)


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--attach", "host1", "is not as in host3=tap0 or host3=netns:red"),
        ("--attach", "host9=tap0", "host9"),
        ("--attach", "host1=netns:no_such_namespace", "no_such_namespace"),
        ("--capture", "switch0-host9:out.pcapng", "host9"),
        ("--capture", "switch0-host1:no/such/folder/out.pcapng", "no/such/folder"),
    ],
)
def test_a_host_or_link_that_is_not_there_is_an_error(option: str, text: str, words: str, tmp_path: Path) -> None:
    scenario = tmp_path / "few.toml"
    scenario.write_text(DILATED)
    ended = clearway("live", scenario, option, text, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def read_pcapng(file: Path) -> list[tuple[int, int]]:
    """Bytes in the file and on the wire of each packet, by its enhanced packet blocks."""
    data, packets = file.read_bytes(), []
    while data:
        kind, length = struct.unpack_from("<II", data)
        assert length == struct.unpack_from("<I", data, length - 4)[0]
        if kind == 6:
            packets.append(struct.unpack_from("<II", data, 20))
        data = data[length:]
    return packets
