"""Live runs beside the simulator, as `clearway paper maze` makes them: what is compared, with few flows."""

from __future__ import annotations

import numpy as np
import pytest
from clearway import papers
from clearway.papers._paper import Options
from clearway.papers.maze import live


def test_a_distance_is_the_greatest_difference_of_distribution_functions() -> None:
    one, other = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 3.0, 4.0, 5.0])
    assert live.distance(one, other) == live.distance(other, one) == 0.25
    assert live.distance(one, one) == 0
    assert live.distance(one, one + 10) == 1


@pytest.mark.parametrize("figure", ["figure-7", "cross-validation", "testbeds"])
def test_live_is_the_simulator_packet_for_packet(figure: str) -> None:
    shown = papers.run("maze", figure, Options(scale=0.01))
    assert len(shown.table) >= 2 and shown.table["same history"].all(), shown.table.T
    # Whether a machine kept pace is its own affair here.
    told = {text: ok for text, ok in shown.checks.items() if "pace" not in text and "distance of slow" not in text}
    assert all(told.values()), told
