from __future__ import annotations

import pytest
from clearway import harmony


def test_the_drawn_share_is_the_theorems_and_trying_again_fills_more() -> None:
    thrown = harmony.allocation(8, cores=32, trials=1000)
    [[filled, error]] = thrown.to_numpy()
    assert abs(filled - harmony.slot_efficiency(8, 32)) < 4 * error < 0.01
    tries = harmony.allocation(8, cores=32, leaves=64, tries=4, trials=4)["filled"]
    assert tries.is_monotonic_increasing and tries.iloc[-1] < 1


def test_best_effort_beside_adds_a_packet_at_each_transmitter_both_ways() -> None:
    def bound(at_each_hop_us: float) -> float:
        return harmony.message_delay_max_us(
            131_500, k=8, switches=3, rate_gbps=100, unloaded_rtt_us=4.6, at_each_hop_us=at_each_hop_us
        )

    assert bound(0.12) - bound(0.0) == pytest.approx(8 * 0.12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"k": 0}, "0 slots"), ({"k": 8, "leaves": 1}, "at least 2"), ({"k": 4_000_000, "leaves": 64}, "take from 1 to")],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        harmony.allocation(**arguments)


def test_two_virtual_links_keep_to_the_theorem_and_eight_do_not() -> None:
    assert harmony.adversary(2, 5)["found"].tolist() == [1, 2, 3, 4, 5]
    eight = harmony.adversary(8, 5)
    assert (eight["found"] <= eight["proven"]).all()
    assert (eight["found"] > eight["theorem 3.1"]).tolist() == [False, False, True, True, True]


def test_the_adversary_takes_no_more_than_it_can_arrange() -> None:
    for k, switches in ((0, 3), (65, 3), (8, 0), (8, 8)):
        with pytest.raises(ValueError, match=f"k={k}, switches={switches}: take"):
            harmony.adversary(k, switches)


def test_a_message_needs_a_slot() -> None:
    with pytest.raises(ValueError, match="slots"):
        harmony.message_delay_max_us(1500, k=8, switches=3, rate_gbps=100, unloaded_rtt_us=4.6, slots=0)
