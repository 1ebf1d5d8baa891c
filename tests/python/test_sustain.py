from __future__ import annotations

from pathlib import Path

import clearway as cw
import pytest
from called import call
from clearway.comparisons.all_schemes import SUSTAINED_LOADS
from clearway.comparisons.sustain import Bisection
from clearway.defaults import KEEPS_UP
from test_cli import clearway

# Rounds of two messages of ten packets to one receiver: what its link carries at most is 1460 B of each 1500, a load
# of 0.973. Below that a round's queue is gone before the next; at 0.98 0.7% of each round stays, and 100 KB of buffer
# are full after 500 rounds.
PAIRS = """
timing = "ideal"
transport = { udp = { patience = "1ms" } }

[fabric.star]
hosts = 3

[switch]
buffer = { per_port = { bytes = "100KB" } }

[[traffic]]
name = "pairs"
sizes = { constant = "14600B" }
arrivals = { periodic = { load = 0.5 } }
pattern = { incast = { degree = 2 } }
receivers = "0"
senders = "1-2"
flows = 3000

[[traffic]]
name = "once"
sizes = { constant = "1KB" }
arrivals = "all_at_once"
senders = "0"
flows = 1
"""

# One packet after the other, without a buffer that could overflow.
LINE = """
timing = "ideal"
transport = "udp"

[fabric.star]
hosts = 2

[[traffic]]
name = "line"
sizes = { constant = "1460B" }
arrivals = { periodic = { load = 0.5 } }
senders = "0"
receivers = "1"
flows = 4000
"""


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.toml"
    path.write_text(PAIRS)
    return path


def test_the_link_sustains_its_share_of_payload() -> None:
    rows = []
    found = cw.sustain(cw.Scenario.from_toml(PAIRS), keeps_up=None, tell=rows.append)
    assert (found.load, found.fails) == (0.97, 0.98)
    assert str(found) == "sustains 0.97; 0.98 does not hold"
    assert len(rows) == len(found.runs) <= 7, "bisection over 96 loads"
    assert (found.runs["holds"] == (found.runs["load"] <= 0.97)).all()
    lost = found.runs["rejected"] + found.runs["failed"] + found.runs["unfinished"]
    assert ((lost == 0) == found.runs["holds"]).all()
    assert (found.runs["flows"] == 3000).all(), "the other class is not judged"


def test_a_target_of_delay_may_fail_first() -> None:
    line = cw.Scenario.from_toml(LINE)
    found = cw.sustain(line, keeps_up=None, slowdown=1.01, low=0.9)
    assert (found.load, found.fails) == (0.97, 0.98)
    # Two links take 0.24 us to transmit a packet.
    assert cw.sustain(line, keeps_up=None, delay_us=0.2, low=0.9).load is None


def test_keeping_up_is_a_share_of_what_arrives() -> None:
    # At load x a link that delivers 0.973 keeps up with 0.973/x: 0.811 at 1.2, 0.779 at 1.25.
    found = cw.sustain(cw.Scenario.from_toml(LINE), keeps_up=0.8, low=1.0, high=1.5, resolution=0.05)
    assert (found.load, found.fails) == (1.2, 1.25)
    for load, share in zip(found.runs["load"], found.runs["kept up"], strict=True):
        assert share == pytest.approx(min(1.0, 1460 / 1500 / load), abs=0.004)


def test_unfinished_work_that_is_level_is_none_that_grows() -> None:
    # Poisson arrivals at a link of which they take 0.5: as much is under way at the end as before, whatever that is.
    poisson = cw.Scenario.from_toml(LINE).with_(
        {"traffic.line.arrivals": {"poisson": {"load": 0.5}}, "traffic.line.flows": 40_000}
    )
    found = cw.sustain(poisson, low=0.5, high=1.1, resolution=0.1)
    assert (found.load, found.fails) == (0.9, 1.0), "1,460 of 1,500 bytes are payload"
    assert found.runs.set_index("load")["kept up"][0.9] > 0.99


def test_arrivals_that_are_too_short_for_the_rule_are_lengthened(tmp_path: Path) -> None:
    """Twenty messages of which each is under way for a fifth of the time between two."""
    keys = {
        "traffic.line.sizes": {"constant": "1MB"},
        "traffic.line.arrivals": {"poisson": {"load": 0.2}},
        "traffic.line.flows": 20,
    }
    few = cw.Scenario.from_toml(LINE).with_(keys)
    found = cw.sustain(few, low=0.2, high=0.2)
    assert found.load == 0.2, "a fifth of a link is sustained"
    assert found.runs["flows"].iloc[0] > 20 and found.runs["times as long"].iloc[0] > 1
    with pytest.raises(ValueError, match=r"'line'.*not last long enough.*times as long"):
        cw.sustain(few, low=0.2, high=0.2, lengthen=False)
    path = tmp_path / "few.toml"
    path.write_text(few.to_toml())
    done = call("sustain", path, "--low", 0.2, "--high", 0.2)
    assert done.code == 0 and "times as long" in done.out, done.out + done.err


def test_ends_are_told_apart() -> None:
    line = cw.Scenario.from_toml(LINE)
    highest = cw.sustain(line, high=0.3, resolution=0.05)
    assert (highest.load, highest.fails, str(highest)) == (0.3, None, "even the highest load, 0.3, holds")
    lowest = cw.sustain(line, keeps_up=None, slowdown=0.5, high=0.3, resolution=0.05)
    assert (lowest.load, lowest.fails, str(lowest)) == (None, 0.05, "even the lowest load, 0.05, does not hold")


def test_all_seeds_must_hold() -> None:
    found = cw.sustain(cw.Scenario.from_toml(LINE), seeds=[1, 2], low=0.5, high=0.5)
    assert found.load == 0.5 and list(found.runs["seed"]) == [1, 2]


def test_what_cannot_be_searched_is_refused() -> None:
    line = cw.Scenario.from_toml(LINE)
    with pytest.raises(ValueError, match="'line'"):
        cw.sustain(line, traffic="lime")
    with pytest.raises(ValueError, match=r"low=0\.5, high=0\.4"):
        cw.sustain(line, low=0.5, high=0.4)
    with pytest.raises(ValueError, match="arrivals by load"):
        cw.sustain(cw.Scenario.load("examples/tiny.toml"))


def test_an_interrupted_search_has_its_bracket(tmp_path: Path) -> None:
    line, seen = cw.Scenario.from_toml(LINE), []

    def stop(row: object) -> None:
        seen.append(row)
        if len(seen) == 2:
            raise KeyboardInterrupt

    found = cw.sustain(line, keeps_up=None, slowdown=1.01, tell=stop, folder=tmp_path / "s")
    assert found.interrupted and len(found.runs) == 2
    assert str(found).startswith("interrupted: 0.52 holds, ")
    again = cw.sustain(line, keeps_up=None, slowdown=1.01, folder=tmp_path / "s", keep=True)
    assert again.load == 0.97


def test_the_command_says_what_it_found(pairs_file: Path) -> None:
    done = clearway(
        "sustain",
        pairs_file,
        "--all-complete",
        "--resolution",
        "0.1",
        "--low",
        "0.8",
        "--set",
        "traffic.pairs.flows=100",
    )
    assert done.returncode == 0, done.stderr
    assert "even the highest load, 1, holds" in done.stderr, "40 KB of backlog fit"
    assert "load 0.9, seed 1: holds" in done.stderr
    done = clearway("sustain", pairs_file, "--traffic", "once")
    assert done.returncode == 2 and "'pairs'" in done.stderr, done.stderr


@pytest.mark.parametrize("capacity", [0.0, 0.3, 0.42, 0.65, 0.94, 0.95, 1.0])
def test_bisection_finds_the_highest_step_below_capacity_in_four_runs(capacity: float) -> None:
    search, runs = Bisection(SUSTAINED_LOADS), 0
    while (load := search.next) is not None:
        # The delivered part of an offered load: no more than capacity.
        search.tell(load, min(1.0, capacity / load) >= KEEPS_UP)
        runs += 1
    held = [load for load in SUSTAINED_LOADS if capacity / load >= KEEPS_UP]
    assert runs <= 4
    assert search.load == (held[-1] if held else None)


@pytest.mark.parametrize("near", SUSTAINED_LOADS)
@pytest.mark.parametrize("holding", range(len(SUSTAINED_LOADS) + 1))
def test_a_search_that_begins_near_finds_the_same_and_is_short_where_that_is_right(near: float, holding: int) -> None:
    search, runs = Bisection(SUSTAINED_LOADS, near), 0
    while (load := search.next) is not None:
        search.tell(load, SUSTAINED_LOADS.index(load) < holding)
        runs += 1
    assert search.load == (SUSTAINED_LOADS[holding - 1] if holding else None)
    off = abs(SUSTAINED_LOADS.index(near) - (holding - 1))
    assert runs <= 2 * (off.bit_length() + 1), f"{runs} runs, {off} steps off"


def test_a_load_near_the_answer_lies_among_those_searched() -> None:
    with pytest.raises(ValueError, match=r"near=1\.5: it must be among the loads that are searched, 0\.5 to 0\.9"):
        cw.sustain(cw.Scenario.from_toml(PAIRS), near=1.5, low=0.5, high=0.9)


def test_where_nothing_holds_there_is_no_load() -> None:
    search = Bisection(SUSTAINED_LOADS)
    while (load := search.next) is not None:
        search.tell(load, False)
    assert search.load is None and search.fails == SUSTAINED_LOADS[0]
