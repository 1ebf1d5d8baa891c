"""Captures of simulated links: each packet is the one that the table of packets has, as it stands there and as
Wireshark's dissector shows it.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import clearway as cw
import pandas as pd
import pytest
from called import call

SCENE = """
timing = "ideal"
name = "three-to-one"
transport = "ndp"
measure.packets = { links = ["leaf0-host0", "leaf1-spine0"] }
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
spines = 1
spine_rate = "100Gbps"
[[traffic]]
name = "many"
sizes = { constant = "60KB" }
pattern = { incast = { degree = 3 } }
arrivals = "all_at_once"
receivers = "0"
flows = 3
"""


def read(path: Path) -> list[dict[str, Any]]:
    """The packets of a file, by the format's own rules."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4) == (length,)
        if kind == 6:
            interface, high, low, captured, whole = struct.unpack_from("<5I", data, at + 8)
            frame = data[at + 28 : at + 28 + captured]
            options = data[at + 28 + (captured + 3) // 4 * 4 : at + length - 4]
            comment = ""
            if options:
                code, size = struct.unpack_from("<HH", options)
                assert code == 1
                comment = options[4 : 4 + size].decode()
            found.append(
                {"ns": high << 32 | low, "frame": frame, "whole": whole, "comment": comment, "interface": interface}
            )
        at += length
    return found


def rows_of(result: cw.Result, link: str) -> pd.DataFrame:
    rows = result.packets.to_pandas()
    return rows[(rows["node"].astype(str) + "-" + rows["to_node"].astype(str)) == link].reset_index(drop=True)


def run(tmp_path: Path, link: str, **set_: object) -> tuple[cw.Result, Path]:
    file = tmp_path / "out.pcapng"
    result = cw.run(cw.Scenario.from_toml(SCENE).with_(set_), pcap={link: file})
    return result, file


def test_each_packet_of_a_capture_is_the_one_that_the_table_has(tmp_path: Path) -> None:
    result, file = run(tmp_path, "leaf0-host0")
    packets, rows = read(file), rows_of(result, "leaf0-host0")
    sent = [packet for packet in packets if not packet["comment"].startswith("lost")]
    assert len(sent) == len(rows) > 100
    for packet, (_, row) in zip(sent, rows.iterrows()):
        frame = packet["frame"]
        assert packet["ns"] == row["last_ps"] // 1000
        sources = [f"host{int.from_bytes(frame[at + 2 : at + 6]) - 1}" for at in (0, 6)]
        assert sources == [row["destination"], row["source"]]
        assert frame[14 + 1] >> 5 == row["class"] and 64 - frame[14 + 8] == row["hop"]
        assert (frame[14 + 1] & 3 == 3) == row["marked"]
        payload = 0 if row["trimmed"] else row["payload_bytes"]
        assert packet["whole"] - len(frame) == payload, "content is cut off, and the packet says how long it was"
        assert packet["comment"] == ("" if row["payload_bytes"] else f"{row['transport']}: {row['says']}")


def test_a_capture_says_which_packets_were_lost_at_its_links_end_and_why(tmp_path: Path) -> None:
    small = {"transport": "dctcp", "switch.buffer": {"per_port": {"bytes": "15KB"}}, "measure.packets": {}}
    result, file = run(tmp_path, "spine0-leaf0", **small)
    rows = result.packets.to_pandas()
    lost = [packet for packet in read(file) if packet["comment"].startswith("lost: no room")]
    gone = rows[(rows["lost"] == "no room") & (rows["node"] == "leaf0") & rows["source"].isin(["host2", "host3"])]
    assert [packet["ns"] for packet in lost] == (gone["time_ps"] // 1000).tolist() and lost


def test_a_capture_is_bounded_and_says_so(tmp_path: Path) -> None:
    scenario = tmp_path / "three.toml"
    scenario.write_text(SCENE)
    few, all_ = tmp_path / "few.pcapng", tmp_path / "all.pcapng"
    said = call("run", scenario, "--pcap", f"leaf0-host0:{few}", "--pcap-packets", 20, "--out", tmp_path / "r")
    assert said.code == 0 and f"only the first 20 packets are in {few}" in said.err + said.out, said.err
    assert call("run", scenario, "--pcap", f"leaf0-host0:{all_}", "--out", tmp_path / "r").code == 0
    assert few.read_bytes() == all_.read_bytes()[: few.stat().st_size] and len(read(few)) == 20
    for words, wrong in [
        (("--pcap", "leaf0-host0"), "is not as in spine0-leaf2:out.pcapng"),
        (("--pcap", f"leaf0-host9:{few}"), "did you mean"),
        (("--pcap", f"leaf0-host0:{tmp_path}"), "is a folder; name a file"),
        (("--pcap", f"leaf0-host0:{few}", "--pcap", f"leaf0-host0:{all_}"), "give each once"),
        (("--pcap", f"leaf0-host0:{few}", "--pcap", f"leaf0-host1:{few}"), "name another file"),
        (("--pcap", f"leaf0-host0:{few}", "--level", "flow"), "flow level has no packets to capture"),
        (("--pcap-packets", 20), "it needs --pcap"),
    ]:
        said = call("run", scenario, *words, "--out", tmp_path / "r2")
        assert said.code == 2 and wrong in said.err, said.err
        assert not (tmp_path / "r2").exists()


def tshark(lua: Path, file: Path, *fields: str) -> list[list[str]]:
    if shutil.which("tshark") is None:
        pytest.skip("there is no tshark here")
    words = ["tshark", "-X", f"lua_script:{lua}", "-r", str(file), "-T", "fields"]
    words += [word for field in fields for word in ("-e", field)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "Lua" not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


SCHEMES: dict[str, dict[str, object]] = {
    "ndp": {},
    "uet": {"transport": {"uet": {"congestion_control": "both"}}},
    "falcon": {"transport": "falcon"},
    "r2c2": {"transport": "r2c2"},
    "dcpim": {"transport": {"dcpim": {"short_flow": "1B"}}},
    "homa_aeolus": {"transport": "homa_aeolus"},
    "pyrrha": {"transport": "rdma", "flow_control": "pyrrha", "switch.buffer": {"shared": {"bytes": "60KB"}}},
    "congestion_isolation": {"transport": "rdma", "flow_control": "congestion_isolation"},
    "cbfc": {"transport": "rdma", "flow_control": "cbfc"},
    "mmu": {"transport": "rdma", "flow_control": {"mmu": {"group": [{"groups": [3], "threshold": "5KB"}]}}},
    "elastic_switch": {
        "transport": "dctcp",
        "sharing": "elastic_switch",
        "entity": [
            {
                "name": "a",
                "hosts": "0-3",
                "request": [{"share": {"absolute": "10Gbps"}, "position": "ingress"}],
                "each": "host",
            }
        ],
    },
}


@pytest.mark.parametrize("name", SCHEMES)
def test_wireshark_shows_of_each_packet_what_its_scheme_says(name: str, tmp_path: Path) -> None:
    lua = tmp_path / "clearway.lua"
    said = call("pcap", "--dissector", lua)
    assert said.code == 0 and str(lua) in said.out, said.err
    # Where frames say that host0's link is congested, or what comes from afar.
    link = "leaf0-spine0" if name == "congestion_isolation" else "leaf1-spine0"
    result, file = run(tmp_path, link, **SCHEMES[name], **{"measure.packets": {"links": [link]}})
    sent = read(file)
    shown = tshark(lua, file, "clearway.scheme", "clearway.says")
    rows = rows_of(result, link)
    assert name in set(rows["transport"])
    kept = [line for line, packet in zip(shown, sent) if not packet["comment"].startswith("lost")]
    assert len(kept) == len(rows)
    for line, transport, says in zip(kept, rows["transport"], rows["says"]):
        assert line == [transport, says]


def test_fields_can_be_filtered_by(tmp_path: Path) -> None:
    lua = tmp_path / "clearway.lua"
    assert call("pcap", "--dissector", lua).code == 0
    _, file = run(tmp_path, "leaf0-host0")
    shown = tshark(lua, file, "clearway.ndp.packet", "clearway.ndp.message_bytes", "clearway.ndp.last", "ip.src")
    data = [line for line in shown if line[1]]
    assert {line[1] for line in data} == {"60000"} and {line[2] for line in data} == {"true", "false"}
    assert {int(line[0]) for line in data} == set(range(42)) and {line[3] for line in data} >= {"10.77.0.2"}


def test_a_dissector_is_not_written_over_something_else(tmp_path: Path) -> None:
    mine = tmp_path / "mine.lua"
    mine.write_text("-- mine\n")
    said = call("pcap", "--dissector", mine)
    assert said.code == 2 and "no dissector of ours" in said.err and mine.read_text() == "-- mine\n"
    said = call("pcap", "--dissector", tmp_path)
    assert said.code == 2 and "it is a folder" in said.err
    for _ in range(2):
        assert call("pcap", "--dissector", tmp_path / "a.lua").code == 0
