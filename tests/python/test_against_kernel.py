"""`clearway against kernel`: what a host and the fabric are told, what is refused, and how the kernel's words are read.
Kernels themselves are asked where this is root: slow, and in `make against-kernel`."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import clearway as cw
import numpy as np
import pytest
from called import call
from clearway.peers import kernel

SCENE = """
transport = "{transport}"
host = {{ header = "52B", jitter = "20us" }}
fabric.star = {{ hosts = 3, rate = "20Mbps", propagation = "5ms", switch_delay = "1us" }}
switch = {{ buffer.per_port.bytes = "200KB"{marking} }}
measure = {{ interval = "0s", drain = "30s" }}
[[traffic]]
sizes.constant = "{size}"
arrivals = "all_at_once"
pattern.incast.degree = 2
senders = "0-1"
receivers = "2"
flows = 2
"""
# Of a connection on Linux 6.18: 3 of 40 packets were sent again.
INFO = bytearray(248)
for _at, _value in ((68, 21_000), (80, 17), (100, 3), (148, 20_400), (156, 40), (192, 37), (196, 5)):
    struct.pack_into("=I", INFO, _at, _value)
struct.pack_into("=H", INFO, 240, 2)


def scene(transport: str = "linux", marking: str = "", size: str = "300KB") -> cw.Scenario:
    return cw.Scenario.from_toml(SCENE.format(transport=transport, marking=marking, size=size))


def script(name: str) -> ModuleType:
    """A script of `tests`."""
    place = Path(__file__).parents[1] / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def refused(scenario: cw.Scenario) -> list[str]:
    return list(kernel.refusals(scenario.to_dict()))


def test_tcp_info_is_read_by_its_offsets() -> None:
    info = kernel.TcpInfo.parse(bytes(INFO))
    assert (info.retransmissions, info.sent_packets, info.delivered_packets) == (3, 40, 37)
    assert (info.marked_packets, info.timeouts, info.window_packets) == (5, 2, 17)
    assert (info.rtt_us, info.min_rtt_us) == (21_000, 20_400)


def test_tcp_info_of_an_old_kernel_is_shorter() -> None:
    # Linux 3.10 ends before the packets that were sent.
    info = kernel.TcpInfo.parse(bytes(INFO[:104]))
    assert (info.retransmissions, info.sent_packets, info.timeouts) == (3, 0, 0)


def test_counters_have_the_names_of_nstat() -> None:
    text = "TcpExt: SyncookiesSent TCPLossProbes\nTcpExt: 0 4\nTcp: RtoMin RetransSegs\nTcp: 200 7\n"
    assert kernel.counters(text) == {
        "TcpExtSyncookiesSent": 0, "TcpExtTCPLossProbes": 4, "TcpRtoMin": 200, "TcpRetransSegs": 7
    }  # fmt: skip
    with pytest.raises(ValueError, match="TcpExt: has 2 names and TcpExt: 1 numbers"):
        kernel.counters("TcpExt: A B\nTcpExt: 1\n")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("transport", "dcpim", "transport: the kernel has no dcpim; it has newreno"),
        ("traffic[0].transport", "newreno", "one transport can be compared at a time"),
        ("host.header", "64B", "host.header: 64 B; Linux's packets have 40 B of headers, or 52 B"),
        ("live.dilation", 10, "live.dilation: the kernel's clock can't be slowed down"),
        ("transport.linux.class", 2, "transport.linux.class: packets of attached hosts have class 1"),
        ("transport.linux.control.beta", 0.5, "transport.linux.control.beta: the kernel has 0.7"),
        ("transport.linux.delayed_ack", {"packets": 44, "timeout": "20us"}, "every second packet, or each"),
        ("failure", [{"link": ["host0", "switch0"], "at": "1ms"}], "failure: is not told to the kernel"),
    ],
)
def test_what_the_kernel_cannot_do_is_refused_by_key(key: str, value: object, said: str) -> None:
    with pytest.raises(ValueError, match="the kernel cannot run this scenario") as why:
        cw.against(scene().with_({key: value}), "kernel")
    assert said in str(why.value)


def test_hystart_is_the_machine_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "PARAMETERS", tmp_path)
    (tmp_path / "hystart").write_text("0\n")
    assert any("control.slow_start: this kernel's HyStart is off" in one for one in refused(scene("cubic")))
    assert not refused(scene("cubic").with_({"transport.cubic.control.slow_start": "standard"}))
    (tmp_path / "hystart").write_text("1\n")
    assert not refused(scene("cubic"))


def test_versions_of_bbr_and_gains_of_dctcp_are_the_kernel_s() -> None:
    third = scene("bbr").with_({"transport.bbr.control.version": "v3"})
    assert any("the kernel has BBR's version 1" in one for one in refused(third))
    other = scene("dctcp").with_({"transport.dctcp.control.g": 0.25})
    assert any("control.g: the kernel has 1/16" in one for one in refused(other))
    assert not refused(scene("bbr")) and not refused(scene("newreno"))


def test_differences_name_the_key() -> None:
    keys = {one.partition(":")[0] for one in kernel.differences(scene("newreno").to_dict())}
    assert {"transport.newreno.rack", "transport.newreno.tail_loss_probe", "transport.newreno.prr"} <= keys
    plain = {one.partition(":")[0] for one in kernel.differences(scene().to_dict())}
    assert not any(key.startswith("transport.") for key in plain), plain
    bbr = {one.partition(":")[0] for one in kernel.differences(scene("bbr").to_dict())}
    assert "transport.bbr.handshake" in bbr


def test_a_kernel_that_can_t_be_asked_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "AVAILABLE", tmp_path / "available")
    (tmp_path / "available").write_text("reno cubic\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ValueError, match=r"the kernel can't be asked here: this is not root.*sudo"):
        cw.against(scene(), "kernel")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "network namespaces are Linux's" in str(kernel.missing())


def test_an_absent_control_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    available = tmp_path / "available"
    available.write_text("reno cubic\n")
    monkeypatch.setattr(kernel, "AVAILABLE", available)
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "modprobe" else f"/bin/{tool}")
    assert kernel.control_of(["cubic"]) == "cubic" and kernel.control_of(["bbr", "reno"]) == "reno"
    assert kernel.control_of(["dctcp"]) is None


def request(scenario: cw.Scenario, place: Path) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """The stage's request, and the plan of each host."""
    result = cw.run(scenario)
    asked = kernel._request(scenario, scenario.to_dict(), result, "cubic", 10**12, place, {"switch0": "out.pcapng"})
    return asked, {host["name"]: json.loads(Path(host["plan"]).read_text()) for host in asked["hosts"]}


def test_hosts_are_told_their_flows_and_settings(tmp_path: Path) -> None:
    asked, plans = request(scene(), tmp_path)
    assert sorted(plans) == ["host0", "host1", "host2"] and asked["flows"] == 2 and asked["end_ns"] == 10**9
    assert [of[1:3] for of in plans["host0"]["sends"]] == [["10.77.0.3", 300_000]]
    assert sorted(size for _, size in plans["host2"]["receives"]) == [300_000, 300_000]
    assert plans["host1"]["route"] == ["initcwnd", "10"] and plans["host1"]["open_before"]
    told = plans["host0"]["sysctls"]
    assert (told["tcp_timestamps"], told["tcp_ecn"], told["tcp_rto_min_us"]) == ("1", "0", "200000")
    assert "--attach=host2=netns:host2" in asked["live"]
    assert f"--capture=switch0:{Path('out.pcapng').resolve()}" in asked["live"]
    # The fabric has no traffic of its own, and takes no samples.
    fabric = cw.Scenario.load(tmp_path / "scenario.toml").to_dict()
    assert not fabric.get("traffic") and fabric["live"]["wait"] == "sleep" and fabric["measure"]["interval"] == "0ps"


def test_each_packet_is_acknowledged_where_a_scenario_says_so(tmp_path: Path) -> None:
    _, plans = request(scene("cubic").with_({"host.header": "40B", "transport.cubic.handshake": True}), tmp_path)
    assert plans["host0"]["route"] == ["initcwnd", "10", "quickack", "1"] and not plans["host0"]["open_before"]
    assert plans["host0"]["sysctls"]["tcp_timestamps"] == "0"


def test_marks_that_a_transport_asks_for_are_the_fabric_s_too() -> None:
    asked = scene("dctcp")
    bare = kernel.fabric(asked, {0: "host0", 2: "host2"})
    assert bare._core.ports() == asked._core.ports() and asked._core.ports()[1]


def test_a_machine_that_is_late_is_not_compared() -> None:
    result = cw.run(scene())
    rtt_us = result.info["data_rtt_ps"] / 1e6
    fine = {"late_us_p99": 0.04 * rtt_us, "start_late_us_max": 10.0, "lost_share": 0.009}

    def answer(**facts: float) -> kernel.Answer:
        none = np.zeros(2, dtype=np.int64)
        return kernel.Answer(none, none, none, none, none, 0, "Linux", facts=fine | facts)

    assert kernel.late(result, answer()) is None
    assert "packets (99%) were late by" in str(kernel.late(result, answer(late_us_p99=0.06 * rtt_us)))
    assert "flows were late by" in str(kernel.late(result, answer(start_late_us_max=0.06 * rtt_us)))
    assert "the network stood still for 2.0% of the time" in str(kernel.late(result, answer(lost_share=0.02)))


def test_too_many_flows_and_too_long_runs_are_refused() -> None:
    result = cw.run(scene())
    with pytest.raises(ValueError, match="the flows may take 700 s, in real time; 600 are the most"):
        kernel._check_size(result, 700 * 10**12)
    kernel._check_size(result, 600 * 10**12)


def test_captures_and_interpreters_belong_to_one_program() -> None:
    with pytest.raises(ValueError, match="captures: only the kernel's packets"):
        cw.against(scene(), "ns3", captures={"switch0": "trace"}, interpreter=sys.executable)
    with pytest.raises(ValueError, match="captures: 2 seeds would have the same files"):
        cw.against(scene(), "kernel", captures={"switch0": "trace"}, seeds=2)
    with pytest.raises(ValueError, match="interpreter: names the Python that has ns-3"):
        cw.against(scene(), "kernel", interpreter=sys.executable)


def test_the_page_is_as_its_record_has_it() -> None:
    page = script("kernel_page")
    record = json.loads(page.RECORD.read_text()) if page.RECORD.is_file() else {}
    text = page.PAGE.read_text()
    assert page.filled(text, record) == text, "`python tests/kernel_page.py page` writes it"
    with pytest.raises(ValueError, match="needs one region"):
        page.filled("nothing\n", record)


def test_the_page_says_what_is_outside() -> None:
    page = script("kernel_page")
    size = {"size": "(0.0, 3000000.0]", "count": 3, "there": 1000.0, "there_range": [990.0, 1020.0]}
    rows = [size | {"here": 1090.0, "here_range": [1090.0, 1090.0]}]
    rows.append(size | {"size": "(3000000.0, inf]", "here": 890.0, "here_range": [880.0, 900.0]})
    counts = dict.fromkeys(("sent again", "dropped packets", "marked packets", "longest queue, bytes"), 7.0)
    case = {"rows": rows, "here": counts, "there": counts, "counters": {"TcpExtTCPTimeouts": 2}, "trace": "some.png"}
    said = page.render({"where": "Here.", "cases": {"two/reno": case, "lone/bbr": {"late": "the machine could not"}}})
    assert "**1 of 2 means are within 10% of the kernel's; half are within" in said
    assert "| up to 3 MB | 3 | 1,000 ms (990 to 1,020) | 1,090 ms | +9.0% | holds |" in said
    assert "| over 3 MB | 3 | 1,000 ms (990 to 1,020) | 890 ms (880 to 900) | -11.0% | **outside** |" in said
    assert "The kernel counted: TCPTimeouts 2." in said.replace("\n", " ") and "(some.png)" in said
    assert "`lone/bbr`: not compared, the machine could not." in said
    assert page.render({"cases": {}}).startswith("Not yet measured")


def test_scenarios_of_the_page_are_the_kernel_s_too(tmp_path: Path) -> None:
    page = script("kernel_page")
    for case, of in page.CASES.items():
        for control in of.controls:
            asked = page.scenario(case, control, tmp_path)
            assert not refused(asked), (case, control)


def test_captures_are_read(tmp_path: Path) -> None:
    """A capture of a simulated link has each packet of its flows once, and those that are lost twice."""
    reader = script("kernel_trace")
    lossy = scene("newreno").with_({"switch.buffer": {"per_port": {"bytes": "30KB"}}})
    result = cw.run(lossy, pcap={"switch0-host2": tmp_path / "out.pcapng"})
    read = list(reader.packets(tmp_path / "out.pcapng"))
    [link] = [link for link in result.links if (link["from_node"], link["to_node"]) == ("switch0", "host2")]
    sent = int(result.flows["sent_packets"].sum())
    assert link["overflow_packets"] > 0
    assert len([one for one in read if not one.lost]) == sent - link["overflow_packets"]
    assert {one.link for one in read} == {"switch0-host2"} and len({one.flow for one in read}) == 2
    assert sum(one.bytes for one in read if not one.lost) >= 600_000
    reader.draw(tmp_path / "out.pcapng", tmp_path / "out.pcapng", tmp_path / "out.png")
    assert (tmp_path / "out.png").stat().st_size > 10_000


ABSENT = kernel.missing(["cubic"])
asks_the_kernel = pytest.mark.skipif(ABSENT is not None, reason=f"no kernel to ask: {ABSENT}")


@pytest.mark.slow
@asks_the_kernel
def test_two_flows_take_as_long_over_the_kernel(tmp_path: Path) -> None:
    """The command, with captures; two flows without losses have a closed form in both."""
    (tmp_path / "s.toml").write_text(SCENE.format(transport="linux", marking="", size="300KB"))
    words = ["against", "kernel", str(tmp_path / "s.toml"), "--out", str(tmp_path / "flows.csv"), "--json"]
    done = call(*words, "--capture", f"switch0:{tmp_path / 'trace'}")
    if "could not follow" in done.err:
        pytest.skip(done.err)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["version"].startswith("Linux ") and said["sizes"][0]["count"] == 2
    assert abs(said["sizes"][0]["mean differs"]) < 0.10
    # 300,000 bytes are 208 packets of 1,448.
    assert [row["sent packets"] - row["sent again"] for row in said["senders"]] == [416, 416]
    assert all((tmp_path / f"trace.{which}.pcapng").stat().st_size > 100_000 for which in ("here", "there"))


@pytest.mark.slow
@asks_the_kernel
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_behind(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENE.format(transport="linux", marking="", size="20MB"))
    words = [sys.executable, "-m", "clearway", "against", "kernel", str(tmp_path / "s.toml")]
    there = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=there) as running:
        until = time.monotonic() + 60
        while not (ours := _stages(tmp_path)) and time.monotonic() < until:
            time.sleep(0.1)
        assert ours, "it has begun"
        time.sleep(2)
        running.send_signal(how)
        running.wait(timeout=30)
    until = time.monotonic() + 20
    while _stages(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _stages(tmp_path)


def _stages(folder: Path) -> list[str]:
    """The processes of runs whose files are in a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and ("kernel_" in words or "--attach" in words):
            found.append(words)
    return found
