from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from called import call
from clearway.results.packets import counted

TWO_TO_ONE = """
timing = "ideal"
name = "two-to-one"
transport = "udp"
measure = { interval = "1us" }
[fabric.star]
hosts = 3
[[traffic]]
name = "both"
sizes = { constant = "100KB" }
pattern = { incast = { degree = 2 } }
arrivals = "all_at_once"
"""


@pytest.fixture(scope="module")
def result() -> cw.Result:
    return cw.run(cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_({"traffic.0.flows": 200, "measure.end": "1ms"}))


def test_parts_are_those_of_the_flow_and_add_up(result: cw.Result) -> None:
    flows = result.flows.to_pandas()
    slow = flows.loc[flows["slowdown"].idxmax()]
    said = result.explain(int(slow["flow"]))
    assert said.parts["this"].sum() == pytest.approx(slow["fct_ps"] / 1e6)
    assert said.usual is not None
    usual = flows.set_index("flow").loc[said.usual]
    assert said.parts["median"].sum() == pytest.approx(usual["fct_ps"] / 1e6)
    alike = flows[result.size_classes() == result.size_classes()[slow.name]]["slowdown"].dropna()
    assert (alike < usual["slowdown"]).sum() == (len(alike) - 1) // 2
    assert f"host{slow['src']} to host{slow['dst']}" in said.sentences[0]
    assert f"{slow['slowdown']:,.2f} times" in said.sentences[1]
    largest = str(said.parts["more"].idxmax())
    assert largest in said.sentences[3], "what cost the most is named"
    assert "more than that" in str(said) and largest in str(said)
    assert said.picture().svg().count(largest) == 1


def test_of_two_that_meet_at_a_receiver_each_is_the_others_reason() -> None:
    result = cw.run(cw.Scenario.from_toml(TWO_TO_ONE))
    text = str(result.explain(0))
    to = result.flows["dst"][0]
    assert f"Meanwhile host{to} also received flow 1, of 100,000 B." in text
    assert "The longest queue of a port of switch0, the receiver's switch, was" in text
    longest = int(result.queues["longest_bytes"].max())
    assert longest > 50_000 and f"{longest:,} B" in text, (
        "half of what came is waiting when the last packet has arrived"
    )


def test_a_flow_that_did_not_complete_says_so(result: cw.Result) -> None:
    flows = result.flows.to_pandas()
    open_ = flows[(flows["status"] != "completed") & flows["start_ps"].notna()].iloc[0]
    said = result.explain(int(open_["flow"]))
    assert "did not complete: " in said.sentences[1] and open_["status"] in said.sentences[1]
    assert not len(said.parts) and said.usual is None


def test_an_estimate_without_packets_has_no_parts() -> None:
    said = cw.run(cw.Scenario.load("examples/tiny.toml"), level="flow").explain(0)
    assert not len(said.parts) and "times the" in said.sentences[1]


def test_an_unknown_flow_is_refused_with_those_there_are(result: cw.Result) -> None:
    with pytest.raises(ValueError, match="no flow 9999: its flows are 0 to 199"):
        result.explain(9999)


def test_the_command_says_it_and_draws_it(result: cw.Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "run")
    flow = str(int(result.flows["flow"][int(result.flows.to_pandas()["slowdown"].idxmax())]))
    done = call("explain", str(tmp_path / "run"), "--flow", flow, "--picture", str(tmp_path / "why.svg"))
    assert done.code == 0 and "its time, in µs" in done.out and (tmp_path / "why.svg").read_text().startswith("<?xml")
    said = json.loads(call("explain", str(tmp_path / "run"), "--flow", flow, "--json").out)
    assert sum(row["this"] for row in said["us"].values()) > 0 and said["flow"] == int(flow), folder
    wrong = call("explain", str(tmp_path / "run"), "--flow", flow, "--picture", str(tmp_path / "why.bmp"))
    assert wrong.code == 2 and ".svg, .pdf, .png" in wrong.err and not (tmp_path / "why.bmp").exists()
    missing = call("explain", str(tmp_path / "none"), "--flow", "1")
    assert missing.code != 0 and "none" in missing.err and "Traceback" not in missing.err


def test_the_way_of_a_flow_and_its_matching_are_said() -> None:
    asked = {"transport": "dcpim", "traffic.0.flows": 60, "measure.end": "1ms", "measure.events": ["matching"]}
    asked |= {"measure.flows": {}, "measure.packets": {"rows_max": 1 << 18}}
    result = cw.run(cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_(asked))
    flows = result.flows.to_pandas()
    done = flows[flows["status"] == "completed"]
    short: Any = done.loc[done["bytes"].idxmin()]
    said = result.explain(int(short["flow"])).sentences
    (way,) = [one for one in said if " went from " in one]
    assert way.startswith(f"Its {counted(int(short['sent_packets']))} went ")
    assert f"went from host{short['src']} by leaf" in way and way.endswith(f" to host{short['dst']}.")
    assert any("links they waited" in one or "For leaf" in one or "For spine" in one for one in said)
    # It sent everything without a token, and was not kept waiting for one.
    assert not any("no tokens" in one for one in said), said
    long: Any = done.loc[done["bytes"].idxmax()]
    said = result.explain(int(long["flow"])).sentences
    (matching,) = [one for one in said if " for channels in " in one]
    events = result.events.to_pandas()
    of_pair = (events["source"] == f"host{long['dst']}") & (events["destination"] == f"host{long['src']}")
    during = events["time_ps"].between(long["start_ps"], long["delivered_ps"])
    accepts = events[of_pair & during & events["says"].astype(str).str.startswith("Accept")]["says"].astype(str)
    phases = [int(one.split("phase ")[1].split(",")[0]) for one in accepts]
    assert len(phases) > 2 and f"{phases[0]}" in matching and f"{phases[-1]}, round " in matching
    assert any("no tokens" in one for one in said), "it waited for its channels"


def test_a_median_and_a_fastest_flow_are_said_as_such(result: cw.Result) -> None:
    flows = result.flows.to_pandas()
    fastest = flows.loc[flows["slowdown"].idxmin()]
    said = result.explain(int(fastest["flow"]))
    assert said.sentences[2].startswith("None of the ") and said.usual is not None
    of_usual = result.explain(said.usual).sentences[2]
    assert of_usual.startswith("It is the median of the "), of_usual
    assert counted(1) == "1 packet" and counted(2000) == "2,000 packets"
