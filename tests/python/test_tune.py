"""`clearway tune`: a switch's headroom, marks and alphas by search over runs."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import clearway as cw
import pyarrow.parquet as pq
import pytest
from called import call
from clearway.tuning import keys
from clearway.tuning.knobs import TuneError, based
from clearway.tuning.search import _Search, plan
from clearway.tuning.trials import Score, Trials

EXAMPLE = Path("examples/switch/incast.toml")


OFFSET = 30_000


def _one_link(gbps: float, delay_ns: int, mtu: int, end_us: float) -> cw.Scenario:
    """One sender at its link's rate, into a port that passes a hundredth of it; and packets the other way, behind which
    pauses wait.
    """
    return cw.Scenario.from_toml(
        f"""
        measure = {{ interval = "0s", end = "{end_us:.0f}us" }}
        fabric.star = {{ hosts = 2, rate = "{gbps}Gbps", propagation = "{delay_ns}ns", switch_delay = "0ns" }}
        host.mtu = "{mtu}B"
        switch.buffer.shared.bytes = "16MB"
        [flow_control.mmu]
        lossless = [3]
        pool = [
            {{ name = "in", side = "ingress", bytes = "2MB" }},
            {{ name = "out", side = "egress", bytes = "16MB" }},
        ]
        group = [
            {{ groups = [3], pool = "in", threshold = "100KB", xon_offset = "{OFFSET}B" }},
            {{ groups = [0, 1, 2, 4, 5, 6, 7], pool = "in" }},
        ]
        queue = [{{ queues = [3], max_rate = "{gbps * 10}Mbps", burst = "{mtu}B" }}]
        [[traffic]]
        name = "there"
        transport.udp.class = 3
        sizes.constant = "1GB"
        arrivals = "all_at_once"
        senders = "1"
        receivers = "0"
        flows = 1
        [[traffic]]
        name = "back"
        transport.udp = {{ class = 4, rate = "{gbps * 0.7}Gbps" }}
        sizes.constant = "1GB"
        arrivals = "all_at_once"
        senders = "0"
        receivers = "1"
        flows = 1
        """
    )


@pytest.mark.parametrize(("gbps", "delay_ns", "mtu"), [(100, 2_000, 1_500), (400, 500, 4_096), (25, 6_000, 9_000)])
def test_the_least_headroom_is_that_of_the_closed_form(tmp_path: Path, gbps: int, delay_ns: int, mtu: int) -> None:
    """After a pause come both ways of the cable, the packet that asked for it, and up to one packet that has begun at
    each end, which depends on the instant. So the closed form is right from above. It is too large by less than two
    packets, a step of the ladder's 64, and the hundredth that leaves meanwhile.
    """
    closed = 2 * delay_ns * gbps / 8 + 3 * mtu + 64
    # Six pauses.
    end_us = 6 * (closed + OFFSET) * 8 / (gbps * 10)
    found = cw.tune(_one_link(gbps, delay_ns, mtu, end_us), tmp_path, keys=["headroom"], seeds=2, progress=False)
    [needed], [least] = found.needed.values(), found.least.values()
    assert abs(needed - closed) <= 1
    step = math.ceil(needed / 64)
    assert found.lossless and closed - 2 * mtu - step - closed / 100 <= least <= closed, (least, closed)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tune")
    chosen = {"keys": ["headroom", "alpha"], "seeds": 2, "rounds": 1}
    return cw.tune(EXAMPLE, folder, progress=False, **chosen), folder, chosen  # type: ignore[arg-type]


def test_the_search_finds_less_pausing_and_the_headroom_that_it_needs(example: Any) -> None:
    found, folder, chosen = example
    assert found.asked.losses > 0, "as it is, headroom is too small"
    assert found.lossless and found.best.paused_ms < 0.1 * found.start.paused_ms
    assert found.best.p99 <= 1.1 * found.start.p99
    assert 0 < found.least["group.0.headroom"] <= found.needed["group.0.headroom"]
    assert found.setting["group.0.alpha"] > 0.125
    # It is what the runs say, and no more runs than were announced.
    table = pq.read_table(folder / "trials.parquet")
    assert table.equals(found.trials)
    assert len(table) <= plan(EXAMPLE, forecast=False, **chosen).runs
    rows = [row for row in table.to_pylist() if all(row[key] == value for key, value in found.setting.items())]
    assert {row["seed"] for row in rows} == {1, 2} and all(row["lossless_losses"] == 0 for row in rows)
    # The scenario that it says loses nothing either.
    result = cw.run(found.scenario, progress=False)
    counted = dict(zip(result.counters["counter"], result.counters["value"], strict=True))
    assert counted["lossless_losses"] == 0
    # The snippet is that scenario's.
    text = EXAMPLE.read_text()
    begin, end = text.index("pool = ["), text.index("\nqueue = [")
    again = text[:begin] + found.snippet().partition("\n")[2] + text[end:]
    assert cw.Scenario.from_toml(again).to_dict()["flow_control"] == found.scenario.to_dict()["flow_control"]


def test_the_curve_shows_pauses_losses_and_slowdown_by_key(example: Any, tmp_path: Path) -> None:
    found, _, _ = example
    picture = found.curve()
    labels = [axes.get_ylabel() for axes in picture.axes]
    assert [label for label in labels if label] == ["paused, ms", "lossless packets lost", "p99 slowdown"]
    assert [axes.get_title(loc="left") for axes in picture.axes][:2] == ["group.0.headroom", "group.0.alpha"]
    losses = [score.losses for score in found.curves["group.0.headroom"]]
    assert losses[0] > 0 and losses[-1] == 0 and losses == sorted(losses, reverse=True)
    page = found.report(tmp_path / "tune.html").read_text()
    assert "group.0.headroom" in page and "<svg" in page and found.said()[0].split(":")[0] in page


def test_the_same_call_makes_no_run_twice(example: Any) -> None:
    found, folder, chosen = example
    before = {place: place.stat().st_mtime_ns for place in (folder / "store" / "runs").iterdir()}
    again = cw.tune(EXAMPLE, folder, progress=False, **chosen)
    assert {place: place.stat().st_mtime_ns for place in (folder / "store" / "runs").iterdir()} == before
    assert again.setting == found.setting and again.trials.equals(found.trials)


def test_an_interrupted_search_says_what_it_has_and_goes_on(example: Any, tmp_path: Path) -> None:
    found, _, chosen = example
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        if len(said) == 3:
            raise KeyboardInterrupt

    part = cw.tune(EXAMPLE, tmp_path, progress=False, tell=stop, **chosen)
    assert part.interrupted and "interrupted" in part.said()[0] and 0 < len(part.trials) < len(found.trials)
    whole = cw.tune(EXAMPLE, tmp_path, progress=False, **chosen)
    assert whole.setting == found.setting and whole.best == found.best


def _search(worse: float | None = 0.1) -> _Search:
    base = based(cw.Scenario.load(EXAMPLE))
    search = _Search(Trials([base], [1], Path(os.devnull)), worse, 1)
    search.start = _score(paused=10.0)
    return search


def _score(
    losses: int = 0, paused: float = 1.0, p99: float = 2.0, reserved: float = 0.0, goodput: float = 1.0
) -> Score:
    return Score({}, losses, paused, p99, goodput, 0.0, reserved, runs=1)


def test_losses_count_before_pauses_and_pauses_before_memory() -> None:
    search, now = _search(), _score()
    for better in (
        _score(paused=0.5, reserved=9.0),
        _score(reserved=-1.0, p99=2.1),
        # As good within a hundredth of the pauses at the start, and faster.
        _score(paused=1.05, p99=1.5),
    ):
        assert search.choose([now, better]) is better
        assert search.choose([better, now]) is better
    for worse in (
        _score(losses=1, paused=0.0),
        _score(paused=0.0, p99=2.3),
        _score(paused=0.0, goodput=0.8),
        _score(paused=0.95),
        Score({}, 0, 0.0, 1.0, 1.0, 0.0, 0.0, refused="no room"),
    ):
        assert search.choose([now, worse]) is now
    slow = _score(paused=0.0, p99=9.0)
    assert _search(None).choose([now, slow]) is slow


def test_several_scenarios_are_tuned_for_all_of_them(tmp_path: Path) -> None:
    mild = cw.Scenario.load(EXAMPLE).with_({"traffic.incast.pattern.incast.degree": 4, "name": "mild"})
    hard = cw.Scenario.load(EXAMPLE).with_(name="hard")
    found = cw.tune([mild, hard], tmp_path, keys=["alpha"], seeds=1, rounds=1, progress=False)
    assert set(found.trials["scenario"].to_pylist()) == {"mild", "hard"}
    other = hard.with_({"flow_control": {"mmu": {"lossless": [3, 4]}}, "name": "other"})
    with pytest.raises(TuneError, match=r"other: has other tables"):
        plan([mild, other])


def test_without_memory_for_headroom_it_says_so(tmp_path: Path) -> None:
    scenario = cw.Scenario.load(EXAMPLE).with_({"switch.buffer.shared.bytes": "790KB"})
    found = cw.tune(scenario, tmp_path, keys=["headroom"], seeds=1, progress=False)
    assert not found.lossless and not found.least
    said = " ".join(found.said())
    assert "nothing that was tried is lossless" in said and "more headroom than the memory has" in said


def test_a_limit_on_the_egress_side_is_named(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace(
        '{ queues = [3], pool = "out", ecn', '{ queues = [3], pool = "out", alpha = 0.02, ecn'
    )
    file = tmp_path / "egress.toml"
    file.write_text(text)
    said = call("tune", file, "--key", "headroom", "--seeds", 1, "--out", tmp_path / "out")
    assert said.code == 1, said.err
    assert "alpha 0.02 of queues [3] of switch0 holds lossless packets on the egress side" in said.out + said.err


def test_a_switch_without_tables_gets_those_that_it_has_without() -> None:
    plain = cw.Scenario.load("examples/tiny.toml").with_({"transport": "dcqcn", "flow_control": "mmu"})
    base = based(plain)
    assert {knob.kind for knob in base.knobs} == {"headroom", "alpha", "ecn.min", "ecn.max", "ecn.probability_max"}
    assert any("as the transports ask for" in note for note in base.notes)
    base.with_({knob.key: knob.now for knob in base.knobs}).check()


def test_roles_are_tuned_each_by_its_own_keys() -> None:
    roles = [{"switches": ["spine*"], "buffer": "2MB", "pool": [{"name": "in", "side": "ingress", "bytes": "300KB"}]}]
    fabric = {"leaf_spine": {"racks": 2, "hosts_per_rack": 2, "spines": 1}}
    keys_ = {"fabric": fabric, "transport": "dcqcn", "flow_control": {"mmu": {"lossless": [3], "role": roles}}}
    base = based(cw.Scenario.load("examples/tiny.toml").with_(keys_), ["alpha"])
    names = [knob.key for knob in base.knobs]
    assert any(name.startswith("group.") for name in names) and any(name.startswith("role.0.group.") for name in names)
    setting = {knob.key: 0.5 if knob.key.startswith("role.") else 4.0 for knob in base.knobs}
    given = {port["switch"]: port["alpha"] for port in base.ports(setting) if port["group"] == 3}
    assert given == {"leaf0": 4.0, "leaf1": 4.0, "spine0": 0.5}


def test_sonic_keys_follow_from_an_imported_scenario(tmp_path: Path) -> None:
    out = tmp_path / "switch.toml"
    call(
        "import",
        "sonic",
        "examples/switch/config_db.json",
        "--lookup",
        "examples/switch/pg_profile_lookup.ini",
        "-o",
        out,
    )
    base = based(cw.Scenario.load(out), ["headroom", "alpha", "ecn.min", "ecn.probability_max"])
    values = {"headroom": 90_000.0, "alpha": 0.25, "ecn.min": 500_000.0, "ecn.probability_max": 0.2}
    said = keys.sonic(base, {knob.key: values[knob.kind] for knob in base.knobs})
    for line in (
        "pg_profile_lookup.ini|100000 5m|xoff: 90000",
        "pg_profile_lookup.ini|100000 5m|threshold: -2",
        "BUFFER_POOL|ingress_lossless_pool|xoff: 90000",
        "WRED_PROFILE|RDMA|green_min_threshold: 500000",
        "WRED_PROFILE|RDMA|green_max_threshold: 2000000",
        "WRED_PROFILE|RDMA|green_drop_probability: 20",
    ):
        assert line in said, said
    assert keys.sonic(based(cw.Scenario.load(EXAMPLE)), {knob.key: 0.0 for knob in base.knobs}) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["examples/tiny.toml"], "flow_control: is not mmu"),
        ([EXAMPLE, "--key", "buffer"], "--key buffer: is nothing that can be tuned here; that is headroom, alpha"),
        ([EXAMPLE, "--key", "alpha=4..1"], "--key alpha=4..1: write a range"),
        ([EXAMPLE, "--key", "alpha=x..1"], "--key alpha=x..1: write a range"),
        ([EXAMPLE, "--key", "alpha=0..1"], "0 is no alpha"),
        ([EXAMPLE, "--key", "ecn.max=1..4"], "ecn.max must be above ecn.min"),
        ([EXAMPLE, "--key", "ecn.probability_max=0.5..2"], "a probability is at most 1"),
        ([EXAMPLE, "--picture", "x.txt"], "--picture x.txt: name a file that ends in .png"),
        ([EXAMPLE, "--worse", "-3%"], "--worse -3%: write a share"),
        ([EXAMPLE, "--set", "flow_control.mmu.lossless=[]"], "no class of packets is lossless"),
        (["none.toml"], "none.toml"),
    ],
)
def test_what_can_not_be_tuned_is_refused(arguments: list[object], words: str) -> None:
    said = call("tune", *arguments, "--dry-run")
    assert said.code == 2 and words in said.err, said.err


def test_a_dry_run_counts_and_runs_nothing(tmp_path: Path) -> None:
    said = call(
        "tune", EXAMPLE.absolute(), "--dry-run", "--seeds", 2, "--key", "alpha", "--key", "headroom", cwd=tmp_path
    )
    assert said.code == 0, said.err
    assert "at most" in said.out + said.err and "2 seeds" in said.out + said.err and "group.0.alpha" in said.out
    assert not list(tmp_path.iterdir())
    ranged = plan(EXAMPLE, keys=["ecn.min=20KB..80KB"], forecast=False)
    [knob] = ranged.bases[0].knobs
    assert (knob.values[0], knob.values[-1]) == (20_000, 80_000) and len(knob.values) == 6
