"""The verdicts of a result follow from its events: losses in hosts, a class that stands still, timers too short."""

from __future__ import annotations

from pathlib import Path

import clearway as cw
import pytest

FLOW = """
timing = "ideal"
transport = "udp"
fabric.star = { hosts = 3, rate = "10Gbps" }

[[traffic]]
name = "probe"
sizes = { constant = "300KB" }
senders = "0"
receivers = "1"
arrivals = "all_at_once"
"""

LIMITED = """
[[entity]]
name = "probe"
traffic = ["probe"]
request = [{ position = "ingress", link = ["host0", "switch0"], share = { absolute = "1Gbps" } }]
"""


def test_what_hosts_lose_themselves_is_dropped(tmp_path: Path) -> None:
    slow = cw.run(cw.Scenario.from_toml(FLOW).with_({"host": {"intake_rate": "1Gbps", "intake_buffer": "30KB"}}))
    # 206 packets come at 10 Gbps and are taken in at 1 Gbps, and some 20 may wait.
    assert slow.dropped == slow.lost_in_hosts()["intake_lost_packets"] == pytest.approx(206 * 0.9 - 20, abs=3)
    assert list(slow.flows["reason"]) == ["no answer: packets were lost"]
    limited = cw.Scenario.from_toml(FLOW + LIMITED).with_({"sharing": {"rate_limiter": {"queue_packets": 10}}})
    result = cw.run(limited)
    assert result.dropped == result.lost_in_hosts()["limiter_dropped_packets"] > 100
    assert "rate limiter full" in result.report(tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_class_that_starves_is_named_in_the_report(tmp_path: Path) -> None:
    prior = FLOW.replace("300KB", "30MB").replace('senders = "0"', 'senders = "2"').replace('"probe"', '"prior"')
    low = FLOW.split("[[traffic]]")[1].replace('name = "probe"', 'name = "probe"\ntransport = { udp = { class = 6 } }')
    scenario = cw.Scenario.from_toml(f"{prior}\n[[traffic]]{low}\nstart = '20us'\n").with_({"measure.end": "5ms"})
    result = cw.run(scenario)
    assert not result.ok
    report = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "starvation: nothing new has come over udp (class probe)" in report


def test_an_estimate_warns_of_timers_that_are_too_short() -> None:
    scenario = cw.Scenario.from_toml(FLOW + LIMITED).with_({"sharing": "rate_limiter"})
    assert not scenario.forecast(probe_seconds=0).warnings
    patient = scenario.with_(transport={"udp": {"patience": "1ms"}})
    (warning,) = patient.forecast(probe_seconds=0).warnings
    assert warning.startswith("transport.udp.patience: 1ms is shorter than a message takes through its host's rate")
    assert warning in cw.run(patient).info["warnings"]
