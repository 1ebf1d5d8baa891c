"""States of flows from Python: over time, in an explanation, in a trace, and what is said where there are none."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from called import call
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

SCENE = """
timing = "ideal"
name = "three-to-one"
transport = "dctcp"
measure = { interval = "1us", packets = {}, flows = { flows = [0, 1] } }
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
spines = 1
spine_rate = "100Gbps"
[[traffic]]
name = "many"
sizes = { constant = "600KB" }
pattern = { incast = { degree = 3 } }
arrivals = "all_at_once"
receivers = "0"
flows = 3
"""


@pytest.fixture(scope="module")
def result() -> cw.Result:
    return cw.run(cw.Scenario.from_toml(SCENE))


def test_a_flow_has_at_each_time_what_it_was_last_said_to_have(result: cw.Result) -> None:
    rows = result.states.to_pandas()
    state = result.state(1)
    assert {"window_bytes", "outstanding_bytes", "alpha_ppm"} <= set(state.columns)
    src = int(result.flows["src"][1])
    assert set(state["host"]) == {src}, "a receiver of TCP's has nothing to say"
    first, last = state.iloc[0], state.iloc[-1]
    assert (first["window_bytes"], first["time_us"]) == (14_600, 0)
    assert last[["window_bytes", "outstanding_bytes"]].isna().all(), "it is over"
    said = rows[(rows["flow"] == 1) & (rows["state"] == "window_bytes") & rows["value"].notna()]
    # Each change stands until the next.
    changed = state["window_bytes"].dropna()
    assert list(changed[changed.diff() != 0]) == list(said["value"].astype(float))
    full = state["outstanding_bytes"] <= state["window_bytes"].cummax()
    assert full[state["window_bytes"].notna()].all()


def test_an_explanation_says_and_draws_what_the_transport_had(result: cw.Result, tmp_path: Path) -> None:
    said = result.explain(1)
    text = str(said)
    assert "What its sender had of it: window_bytes 14,600 first" in text
    assert "of that time its window was full" in text
    picture = said.picture()
    labels = [axes.get_ylabel() for axes in picture.axes]
    assert labels == ["", "B", "ppm"], labels
    lines = {line.get_label() for axes in picture.axes for line in axes.get_lines()}
    assert {"window", "outstanding", "alpha"} <= lines
    other = result.explain(2)
    assert "What its sender had" not in str(other) and len(other.picture().axes) == 1
    result.save(tmp_path / "r")
    called = call("explain", tmp_path / "r", "--flow", 1, "--picture", tmp_path / "flow.svg")
    assert called.code == 0 and "its window was full" in called.out, called.err
    assert (tmp_path / "flow.svg").stat().st_size > 5_000


def test_tokens_and_credit_say_for_how_long_a_sender_had_to_wait() -> None:
    asked = {"transport": "ndp", "measure.flows": {"classes": ["many"]}}
    result = cw.run(cw.Scenario.from_toml(SCENE).with_(asked))
    assert "it had no credit_packets" in str(result.explain(0))
    pulls = result.state(0)
    at_receiver = pulls[pulls["host"] == 0]
    assert at_receiver["queued_pulls"].max() > 0 and at_receiver["credit_packets"].isna().all()


def test_a_trace_has_what_hosts_had_as_counters(result: cw.Result, tmp_path: Path) -> None:
    trace: Any = Trace()
    trace.ParseFromString(result.trace(tmp_path / "out.pftrace").read_bytes())
    names, numbers = {}, defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        elif packet.track_event.type == TrackEvent.TYPE_COUNTER:
            numbers[names[packet.track_event.track_uuid]].append(packet.track_event.counter_value)
    for flow in (0, 1):
        states = result.states.to_pandas().query(f"flow == {flow} and state == 'window_bytes'")
        assert numbers[f"flow {flow}: window_bytes"] == states["value"].fillna(0).astype(int).tolist()
    assert not any(name.startswith("flow 2") for name in numbers)


def test_a_run_with_a_trace_follows_the_flows_that_it_traces(tmp_path: Path) -> None:
    scenario = tmp_path / "three.toml"
    scenario.write_text(SCENE.replace(", packets = {}, flows = { flows = [0, 1] }", ""))
    only = ("--trace-flow", 2, "--trace-until", "20us")
    said = call("run", scenario, "--trace", tmp_path / "out.pftrace", *only, "--out", tmp_path / "r")
    assert said.code == 0, said.err
    rows = cw.load(tmp_path / "r").states.to_pandas()
    assert set(rows["flow"]) == {2} and rows["time_ps"].max() < 20e6


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"flows": [3]}, r"measure\.flows\.flows\[0\].*there is no flow 3; there are 3, from 0 on"),
        ({"classes": ["few"]}, r"measure\.flows\.classes\[0\].*there is no class \"few\"; there are \"many\""),
        ({"hosts": ["leaf0"]}, r"measure\.flows\.hosts\[0\].*is a switch.*name a host"),
        ({"from": "2ms", "until": "1ms"}, r"measure\.flows\.until.*later than from, which is 2ms"),
        ({"rows_max": 0}, r"measure\.flows\.rows_max.*at least 1"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_what_would_be_right(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(cw.ScenarioError, match=words):
        cw.run(cw.Scenario.from_toml(SCENE).with_({"measure.flows": asked}))


def test_a_result_without_states_says_how_to_follow_flows(result: cw.Result) -> None:
    with pytest.raises(ValueError, match=r"no table states: follow it: `clearway run RESULT/scenario.toml"):
        cw.run(cw.Scenario.load("examples/tiny.toml")).state(3)
    with pytest.raises(ValueError, match=r"no states of flow 2; it has those of 0, 1: follow it"):
        result.state(2)
