"""Recorded packets from Python: queues, traces that can be read back, and what the command line says of them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import clearway as cw
import pyarrow as pa
import pytest
from called import call
from clearway.results.packets import pause_of, pauses
from clearway.results.times import time_of
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

SCENE = """
timing = "ideal"
name = "three-to-one"
transport = "rdma"
flow_control = "pyrrha"
measure = { interval = "1us", packets = {} }
switch.buffer = { shared = { bytes = "60KB" } }
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


@pytest.fixture(scope="module")
def result() -> cw.Result:
    return cw.run(cw.Scenario.from_toml(SCENE))


def read(path: Path) -> Any:
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


def test_a_trace_has_each_packet_on_each_link_and_follows_it(result: cw.Result, tmp_path: Path) -> None:
    trace = read(result.trace(tmp_path / "out.pftrace"))
    names, said, open_slices, slices, arrows = {}, {}, defaultdict(list), defaultdict(list), defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            names[track.uuid] = track.name or track.process.process_name
            continue
        event = packet.track_event
        said |= {name.iid: name.name for name in packet.interned_data.event_names}
        assert event.track_uuid in names, "a track is described before anything happens on it"
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((packet.timestamp, said[event.name_iid]))
            for arrow in event.flow_ids:
                arrows[arrow].append((packet.timestamp, names[event.track_uuid]))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begun, name = open_slices[event.track_uuid].pop()
            assert begun <= packet.timestamp
            slices[names[event.track_uuid]].append(name)
    assert not any(open_slices.values())
    rows = result.packets.to_pandas()
    sent = rows[rows["link"].notna()]
    on_links = sum(len(those) for name, those in slices.items() if name.startswith("to "))
    assert on_links == len(sent) > 500
    assert {"leaf0", "spine0", "host1", "host0"} <= set(names.values())
    assert any(name.startswith("held by leaf0: Pause root leaf0-host0") for name in slices), sorted(slices)
    data = sent[sent["payload_bytes"] > 0]
    ways = [tuple(name for _, name in sorted(way)) for way in arrows.values()]
    ways = [way for way in ways if way[-1] == "to host0"]
    # From another rack a packet takes four links, from the same two, in the order of time.
    assert set(ways) == {("to leaf0", "to host0"), ("to leaf1", "to spine0", "to leaf0", "to host0")}
    assert sum(map(len, ways)) == len(data)


def test_a_job_has_tracks_of_its_ranks_and_its_critical_path(tmp_path: Path) -> None:
    steps = [
        {"compute": "20us"},
        {"all_reduce": {"name": "beside", "bytes": "584000B", "beside": True}},
        {"compute": "20us"},
        {"all_reduce": {"name": "sum", "bytes": "58400B"}},
    ]
    job = {"name": "train", "ranks": 4, "steps": steps}
    keys = {"traffic": [], "job": [job], "measure.packets": {"flows": [0]}}
    result = cw.run(cw.Scenario.load("examples/tiny.toml").with_(keys))
    slices, arrows = slices_of(read(result.trace(tmp_path / "out.pftrace")))
    ranks, path = result.ranks.to_pandas(), result.critical.to_pandas()
    for rank in range(4):
        mine = ranks[ranks["rank"] == rank]
        named = {name.removeprefix(f"rank {rank} on host{rank}: "): of for name, of in slices.items()}
        assert [what for what, *_ in named["computes"]] == ["compute", "compute"]
        together = named["communicates"] + named.get("communicates 2", [])
        expected = mine[mine["what"] == "collective"]
        assert sorted(together) == sorted(
            (str(name), begin // 1000, end // 1000)
            for name, begin, end in zip(expected["name"], expected["begin_ps"], expected["end_ps"])
        )
        # It communicates for as long as it does anything but the two computations.
        alone = sum(end - begin for _, begin, end in named["exposed"])
        whole = (mine["end_ps"].max() - 40e6) / 1000
        assert alone == pytest.approx(whole, abs=2 + whole * 0.1), "no more than it waits for others"
    marked = [one for name, of in slices.items() if name.endswith(": critical path") for one in of]
    assert sorted((begin, end) for _, begin, end in marked) == [
        (begin // 1000, end // 1000) for begin, end in zip(path["begin_ps"], path["end_ps"])
    ]
    # One arrow goes through all of them, in the order of time.
    way = max(arrows.values(), key=len)
    assert len(way) == len(path) and all(name.endswith(": critical path") for _, name in way)


def test_a_flow_waits_for_what_it_has_none_of_and_mends_what_it_lost(tmp_path: Path) -> None:
    small = {"flow_control": "none", "switch.buffer": {"per_port": {"bytes": "15KB"}}, "measure.flows": {}}
    scene = cw.Scenario.from_toml(SCENE).with_(small)
    spans = {}
    for transport in ("dctcp", "homa", "udp"):
        result = cw.run(scene.with_({"transport": transport}))
        slices, _ = slices_of(read(result.trace(tmp_path / "out.pftrace")))
        spans[transport] = [one for one in slices["flow 0 to host0"] if not one[0].startswith("flow ")]
        flow = result.flows.to_pandas().iloc[0]
        end = flow["completed_ps"] if flow["status"] == "completed" else result.info["end_ps"]
        ends = [(begin, until) for _, begin, until in sorted(spans[transport], key=lambda one: one[1])]
        # They follow each other without a gap, from its start to its end.
        assert [until for _, until in ends[:-1]] == [begin for begin, _ in ends[1:]]
        assert (ends[0][0], ends[-1][1]) == (flow["start_ps"] // 1000, end // 1000)
        # While a packet of its own leaves, it does not wait.
        rows = result.packets.to_pandas()
        mine = rows[(rows["flow"] == 0) & (rows["node"] == rows["source"]) & (rows["payload_bytes"] > 0)]
        for what, begin, until in spans[transport]:
            if what.startswith("waits"):
                leaving = (mine["time_ps"] < until * 1000) & (mine["last_ps"] > (begin + 1) * 1000)
                assert not leaving.any(), (transport, what)
    words = {transport: {what for what, *_ in of} for transport, of in spans.items()}
    assert {"waits: its window is full", "sends"} <= words["dctcp"]
    assert {"recovers", "sends"} <= words["homa"]
    assert not any(what.startswith("waits") for what in words["udp"])


def test_what_is_agreed_on_is_at_the_host_that_says_it(tmp_path: Path) -> None:
    text = SCENE.replace("60KB", "2MB").replace('flow_control = "pyrrha"', "")
    scene = cw.Scenario.from_toml(text).with_({"transport": "dcpim", "measure.packets": {"flows": [0]}})
    result = cw.run(scene.with_({"measure.events": ["matching"]}))
    flow = result.flows.to_pandas().iloc[0]
    said = instants_of(read(result.trace(tmp_path / "out.pftrace")))["matching"]
    assert {what.split(" ")[0] for what in said} == {"Request", "Grant", "Accept"}
    ends = {f"host{flow['src']}", f"host{flow['dst']}"}
    assert {what.rpartition(" to ")[2] for what in said} == ends, "what others agreed on is not of this flow"


def test_a_merge_ends_a_pause_and_has_its_word(tmp_path: Path) -> None:
    result = cw.run(cw.Scenario.from_toml(SCENE))
    rows = result.packets.to_pandas()
    frame = rows[rows["says"].astype(str).str.startswith("Pause root")].iloc[0]
    root = str(frame["says"]).removeprefix("Pause ").partition(", distance")[0]
    later = rows["time_ps"] > frame["time_ps"]
    resumes = rows.index[later & (rows["node"] == frame["node"]) & (rows["to_node"] == frame["to_node"])]
    answers = [at for at in resumes if str(rows["says"][at]).startswith("Resume root")]
    merged = rows.astype({"says": object})
    merged.loc[answers[0], "says"] = f"Merge old {root.removeprefix('root ')}, new node 2, port 1"
    tables = result.tables | {"packets": pa.Table.from_pandas(merged, preserve_index=False)}
    other = cw.Result("merged", tables, result.info, result.scenario_toml)
    held, was = pauses(other), pauses(result)
    assert held["to_ps"].tolist() == was["to_ps"].tolist()
    said = instants_of(read(other.trace(tmp_path / "out.pftrace")))
    words = said[f"merged by {frame['node']}"]
    assert any(word.startswith("MERGE old leaf") and word.endswith(", new spine0-leaf1") for word in words), words


def instants_of(trace: Any) -> dict[str, list[str]]:
    """By track: the words of its instants."""
    names, said, instants = {}, {}, defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
            continue
        event = packet.track_event
        said |= {name.iid: name.name for name in packet.interned_data.event_names}
        if event.type == TrackEvent.TYPE_INSTANT:
            instants[names[event.track_uuid]].append(said[event.name_iid])
    return dict(instants)


def slices_of(trace: Any) -> tuple[dict[str, list[tuple[str, int, int]]], dict[int, list[tuple[int, str]]]]:
    """By track: what is on it, from when to when. By arrow: when it begins where."""
    names, said, begun = {}, {}, defaultdict(list)
    slices, arrows = defaultdict(list), defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
            continue
        event = packet.track_event
        said |= {name.iid: name.name for name in packet.interned_data.event_names}
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun[event.track_uuid].append((said[event.name_iid], packet.timestamp))
            for arrow in event.flow_ids:
                arrows[arrow].append((packet.timestamp, names[event.track_uuid]))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            what, at = begun[event.track_uuid].pop()
            slices[names[event.track_uuid]].append((what, at, packet.timestamp))
    return dict(slices), dict(arrows)


def test_a_queue_is_what_the_switch_said_it_was(result: cw.Result) -> None:
    queue = result.queue("leaf0-host0")
    rows = result.packets.to_pandas()
    here = rows[(rows["node"] == "leaf0") & (rows["to_node"] == "host0")]
    assert queue["bytes"].iloc[-1] == queue["packets"].iloc[-1] == 0 and (queue["bytes"] >= 0).all()
    longest = result.links.to_pandas().set_index(["from_node", "to_node"]).loc[("leaf0", "host0"), "queued_bytes_max"]
    assert here["waiting_bytes"].max() <= queue["bytes"].max() <= longest
    at = f"{queue.loc[queue['bytes'].idxmax(), 'time_us']}us"
    assert result.waiting(at, "leaf0-host0")["bytes"].sum() == queue["bytes"].max()
    with pytest.raises(ValueError, match=r"no link 'leaf0-host3'.*leaf0-host0"):
        result.queue("leaf0-host3")


def test_a_watched_port_has_the_queue_and_the_use_that_its_packets_make(result: cw.Result) -> None:
    watched = cw.run(cw.Scenario.from_toml(SCENE).with_({"measure.ports": ["leaf0:0"], "measure.interval": "1us"}))
    # By its port alone, and by its packets alone.
    alone = {name: table for name, table in watched.tables.items() if name != "packets"}
    watched = cw.Result("watched", alone, watched.info, watched.scenario_toml)
    assert watched.digest == result.digest
    queue, expected = watched.queue("leaf0:0"), result.queue("leaf0-host0")
    assert queue["bytes"].max() == queue["most_bytes"].max() == expected["bytes"].max() > 20_000
    use, of_packets = watched.use("leaf0-host0", every="700ns"), result.use("leaf0:0", every="700ns")
    assert use["bytes"].to_numpy() == pytest.approx(of_packets["bytes"].to_numpy(), abs=1)
    link = result.links.to_pandas().query("from_node == 'leaf0' and to_node == 'host0'").iloc[0]
    frames = result.packets.to_pandas().query("node == 'leaf0' and to_node == 'host0' and flow != flow")["bytes"].sum()
    assert use["bytes"].sum() == pytest.approx(link["sent_bytes"] + frames, abs=1)
    assert 0.99 < use["use"].max() <= 1 + 1e-9
    with pytest.raises(ValueError, match=r"did not watch spine0:0: watch it: `clearway run RESULT/scenario.toml --set"):
        watched.use("spine0:0")
    with pytest.raises(ValueError, match="no port 'leaf0:7': its ports are 0 to 2"):
        watched.queue("leaf0:7")


def test_a_flow_that_loses_packets_sends_more_than_arrives() -> None:
    lossy = {"transport": "dctcp", "flow_control": "none", "switch.buffer": {"shared": {"bytes": "20KB"}}}
    result = cw.run(cw.Scenario.from_toml(SCENE).with_(lossy))
    assert result.dropped > 0
    for flow in range(3):
        over_time = result.progress(flow)
        assert (over_time["between_bytes"] >= 0).all() and over_time["between_bytes"].iloc[-1] == 0
        last = over_time.iloc[-1]
        lost = result.packets.to_pandas().query(f"flow == {flow} and lost != ''")["payload_bytes"].sum()
        assert last["sent_bytes"] - last["arrived_bytes"] == lost
        assert last["arrived_bytes"] >= 60_000
    with pytest.raises(ValueError, match="no recorded packets of flow 9"):
        result.progress(9)


def test_what_waited_is_said_with_whose_it_was_and_what_was_paused(result: cw.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "r")
    queue = result.queue("leaf0-host0")
    at = f"{queue.loc[queue['bytes'].idxmax(), 'time_us']:.3f}us"
    said = call("explain", tmp_path / "r", "--at", at)
    assert said.code == 0, said.err
    assert "the longest queue that was recorded was this" in said.out
    assert "Of flow " in said.out and "class many" in said.out
    assert "leaf0 told spine0 to hold back packets" in said.out and "Pause root leaf0-host0, class 3" in said.out
    said = call("explain", tmp_path / "r", "--flow", 0)
    assert "its packets waited" in said.out and "behind flow" in said.out
    for words, wrong in [
        (("--at", "soon"), "is no time"),
        (("--at", "1us", "--flow", 1), "either --flow"),
        (("--flow", 1, "--link", "a-b"), "goes with --at"),
        (("--at", "1us", "--link", "leaf0-x"), "no link"),
    ]:
        said = call("explain", tmp_path / "r", *words)
        assert said.code == 2 and wrong in said.err, said.err


def test_a_run_writes_a_trace_of_what_is_asked_for(tmp_path: Path) -> None:
    scenario = tmp_path / "three.toml"
    scenario.write_text(SCENE.replace(", packets = {}", ""))
    only = ("--trace-flow", 1, "--trace-link", "leaf0-host0", "--trace-until", "1ms")
    said = call("run", scenario, "--trace", tmp_path / "out.pftrace", *only, "--out", tmp_path / "r")
    assert said.code == 0, said.err
    rows = cw.load(tmp_path / "r").packets.to_pandas()
    assert set(rows["to_node"]) == {"host0"} and set(rows["flow"].dropna()) == {1}
    assert len(read(tmp_path / "out.pftrace").packet) > len(rows)
    assert str(tmp_path / "out.pftrace") in said.err
    for words, wrong in [
        (("--trace-flow", 1), "goes with --trace"),
        (("--trace", tmp_path / "x", "--trace-flow", 3), "there is no flow 3; there are 3, from 0 on"),
        (("--trace", tmp_path / "x", "--trace-link", "leaf0-host9"), "did you mean"),
        (("--trace", tmp_path / "x", "--trace-from", "2ms", "--trace-until", "1ms"), "later than from"),
        (("--trace", tmp_path), "it is a folder"),
    ]:
        said = call("run", scenario, *words, "--out", tmp_path / "r2")
        assert said.code == 2 and wrong in said.err, said.err
        assert not (tmp_path / "x").exists() and not (tmp_path / "r2").exists()


def test_a_result_without_packets_says_how_to_record_them(tmp_path: Path) -> None:
    plain = cw.run(cw.Scenario.load("examples/tiny.toml"))
    with pytest.raises(ValueError, match=r"no table packets: record them: `clearway run RESULT/scenario.toml"):
        plain.trace(tmp_path / "out.pftrace")
    assert not list(tmp_path.iterdir())


def test_times_and_pauses_are_read_from_words() -> None:
    assert [time_of(text) for text in ("1.2ms", "3 us", "4ns")] == pytest.approx([1.2e9, 3e6, 4e3])
    assert pause_of("Pause root node 3, port 2, distance 1") == ("root node 3, port 2", True)
    assert pause_of("Resume root node 3, port 2") == ("root node 3, port 2", False)
    assert pause_of("Frame classes 3, pause 0") == ("classes 3", False)
    assert pause_of("Frame queue 9, pause true") == ("queue 9", True)
    assert pause_of("Isolate 7") == ("7", True)
    assert pause_of("Unassigned root node 3, port 2") is None
