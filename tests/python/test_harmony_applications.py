"""Section 6's applications of Harmony, where arithmetic says what must come out."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from clearway.papers.harmony.applications import detector, network, reframer, storage


@pytest.fixture
def of() -> dict[str, ModuleType]:
    return {"network": network, "storage": storage, "reframer": reframer, "detector": detector}


class Steady:
    """Reads that all take as long."""

    def __init__(self, us: float) -> None:
        self.us = us

    def of(self, *_: Any) -> Iterator[float]:
        while True:
            yield self.us


def client(storage: ModuleType, **costs: float) -> Any:
    free = dict.fromkeys(storage.Client.__dataclass_fields__, 0.0)
    return storage.Client(**{**free, "submit": 1.0, "complete": 2.0, "touch": 7.0, **costs})


def load(storage: ModuleType, costs: dict[str, float], design: str, apps: int, sleep: float = 0.0) -> Any:
    core = client(storage, time_slice=1e4, **costs)
    return storage.simulate(core, storage.Design(design, sleep), Steady(100.0), apps, count=2_000)


@pytest.mark.parametrize("how", ["poll", "yield", "interrupt", "coalesce", "hybrid", "timer"])
def test_one_reader_on_a_core_that_costs_nothing_else(of: dict[str, ModuleType], how: str) -> None:
    """A read of 100 us, submitted for 1 and completed for 2; then 7 until the next."""
    found = load(of["storage"], {}, how, 1, sleep=101.0 if how == "timer" else 50.0)
    assert found.latency == pytest.approx(103.0)
    assert found.span == pytest.approx(2_000 * 110.0, rel=1e-4)
    assert found.late == 0
    # Its own 10 us; who polls, all 110; who sleeps the first 50, 51 of looking besides.
    assert found.cpu == pytest.approx({"poll": 110, "yield": 110, "hybrid": 61}.get(how, 10), rel=0.01)


@pytest.mark.parametrize(("how", "each"), [("interrupt", 10 + 3 + 2), ("timer", 10 + 2), ("hybrid", 10 + 3 + 2)])
def test_a_full_core_does_as_many_reads_as_fit(of: dict[str, ModuleType], how: str, each: float) -> None:
    """With enough readers a read takes its work, a switch, and the interrupt that a timer's wheel spares."""
    costs = {"switch": 2.0, "interrupt": 3.0, "timer": 3.0, "idle_exit": 2.0}
    found = load(of["storage"], costs, how, 64, sleep=101.0)
    assert found.span / 2_000 == pytest.approx(each, rel=0.02)
    # As many are in the system as there are readers (Little); a read's last 7 us are its reader's, not its latency.
    assert np.median(found.latency) == pytest.approx(64 * each - 7, rel=0.02)


def test_who_polls_through_its_slice_leaves_the_others_waiting(of: dict[str, ModuleType]) -> None:
    found = load(of["storage"], {"switch": 2.0}, "poll", 4)
    assert found.span / 2_000 == pytest.approx(110, rel=0.01)
    # Three slices of 10 ms pass before it looks again.
    assert found.latency.max() == pytest.approx(3e4, rel=0.02)


def test_coalesced_completions_share_an_interrupt(of: dict[str, ModuleType]) -> None:
    found = load(of["storage"], {"interrupt": 3.0, "coalesce": 50.0}, "coalesce", 64)
    # Five reads' work of 10 us fit in 50.
    assert 10 + 3 / 5.5 < found.span / 2_000 < 10 + 3 / 4


def test_a_read_that_is_not_there_at_the_bound_is_late(of: dict[str, ModuleType]) -> None:
    found = load(of["storage"], {}, "timer", 1, sleep=60.0)
    assert found.late == pytest.approx(2_000, abs=1)
    assert found.latency == pytest.approx(122.0)


def packets(reframer: ModuleType, times: list[float], connection: list[int], last: list[int] | None = None) -> Any:
    ends = np.zeros(len(times), bool)
    ends[last or []] = True
    return reframer.Packets(np.array(times), np.array(connection), ends)


def test_two_connections_in_turn_are_batched_apart(of: dict[str, ModuleType]) -> None:
    reframer = of["reframer"]
    core = reframer.Core(batch=4, cores=1)
    given = packets(reframer, [0.5 * i for i in range(16)], [0, 1] * 8)
    unheld, held = reframer.batch(given, core, 0.0), reframer.batch(given, core, 10.0)
    assert (unheld.batches, held.batches, held.cut) == (16, 4, 0)
    assert unheld.cpu_us == pytest.approx(16 * (core.packet_us + core.cold_us))
    assert held.cpu_us == pytest.approx(16 * core.packet_us + 4 * core.cold_us)
    # The first of a batch waits for the fourth, 1 us apart each.
    assert held.latency.max() >= 3 + 4 * core.packet_us + core.cold_us


def test_warm_state_costs_nothing(of: dict[str, ModuleType]) -> None:
    reframer = of["reframer"]
    core = reframer.Core(cores=1, warm=2)
    given = packets(reframer, [10.0 * i for i in range(16)], [0, 1] * 8)
    assert reframer.batch(given, core, 0.0).cpu_us == pytest.approx(16 * core.packet_us + 2 * core.cold_us)


def test_a_timeout_cuts_a_batch_and_a_message_ends_one(of: dict[str, ModuleType]) -> None:
    reframer = of["reframer"]
    core = reframer.Core(cores=1, batch=32)
    found = reframer.batch(packets(reframer, [0, 1, 2, 20, 21], [0] * 5, [4]), core, 5.0)
    assert (found.batches, found.cut, found.packets) == (2, 1, 5)
    # Held until 5, and then processed.
    assert found.latency[0] == pytest.approx(5 + 3 * core.packet_us + core.cold_us)


def test_accusations_need_every_try_to_meet_a_dead_link(of: dict[str, ModuleType]) -> None:
    one, both = of["detector"].false_positives, of["detector"].false_positives_both
    # One spine: all tries meet the same two links.
    assert [one(1, 0.1, tries) for tries in (1, 4)] == pytest.approx([1 - 0.81] * 2)
    assert both(1, 0.1, 3) == pytest.approx(1 - 0.81)
    # One try: any spine's path, however many there are.
    assert [one(spines, 0.1, 1) for spines in (2, 16)] == pytest.approx([1 - 0.81] * 2)
    # Two spines, two tries: none of the two works; or one does, and both tries take the other.
    assert one(2, 0.1, 2) == pytest.approx(0.19**2 + 2 * 0.81 * 0.19 / 4)
    # With many spines tries are independent.
    assert one(400, 0.1, 3) == pytest.approx(0.19**3, rel=0.05)
    assert one(8, 0.1, 2) < both(8, 0.1, 2) < 1 - (1 - 0.1) ** 4


def test_what_is_expected_of_probes_is_by_the_links_dead_at_each_try(of: dict[str, ModuleType]) -> None:
    """Two spines, of which one does not reach the second rack for 100 us; answers are waited for 60."""
    outages = [{"at": "0us", "until": "100us", "link": ["leaf1", "spine0"]}]
    probes = pd.DataFrame({"from": [0, 0, 2], "to": [1, 1, 3], "us": [10.0, 70.0, 10.0]})
    alone, both = of["detector"].expected(probes, outages, 2, 2, 60.0)
    # The first probe's two tries both take the dead one half of the time; the second's other try, and the third probe,
    # meet nothing.
    assert alone == pytest.approx((0.25 + 0.0 + 0.0) / 3)
    # Leaf 1 sends its rsvp by the other spine, since it knows its own link.
    assert both == pytest.approx(alone)


def test_links_are_dead_for_the_share_of_time_that_is_said(of: dict[str, ModuleType]) -> None:
    detector = of["detector"]
    found = detector.failures(16, seed=3)
    us = [float(str(one["until"])[:-2]) - float(str(one["at"])[:-2]) for one in found]
    assert sum(us) / (16 * detector.RACKS * detector.SPAN_US) == pytest.approx(detector.DEAD, rel=0.05)


def test_the_bound_of_a_read_on_the_paper_s_network(of: dict[str, ModuleType]) -> None:
    """K = 8 at 100 Gbps: 90 packets a period of 12 kb / (12.5 Gbps less 1%) apart, and what else there is."""

    class Run:
        info: ClassVar[dict[str, int]] = {"data_rtt_ps": 4_600_000}

        class links:
            @staticmethod
            def to_pandas() -> Any:
                return pd.DataFrame({"rate_bps": [100_000_000_000] * 2, "tier": ["from_host", "to_host"]})

    bound = of["network"].Bound(Run, 8, 63.0)
    assert bound.period == pytest.approx(0.96 / 0.99)
    # Equation 1 for three switches, 6 · 7 packets of 0.12 us, and each time the eighth, one of best effort, and 24
    # control packets of 40 B.
    assert bound.wait == pytest.approx(5.04 + 6 * (2 * 0.12 + 0.0768))
    assert bound.admission == pytest.approx(63 + 4.6 + 4 * bound.wait)
    assert bound.answer == pytest.approx(bound.admission + 4.6)
    assert bound.transfer(131_400) == pytest.approx(90 * bound.period + 9 * 0.12 / 0.99 + 4.6 + 2 * bound.wait)


def test_every_scenario_of_the_applications_is_sound() -> None:
    found = sorted(network.HERE.glob("*.toml"))
    assert found
    for path in found:
        assert cw.Scenario.load(path).check()[1] > 0, path
