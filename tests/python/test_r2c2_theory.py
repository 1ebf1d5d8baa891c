"""The figures of R2C2's paper that need no packets, on racks that take a second or two."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from clearway.papers.r2c2 import figures_of_theory


@pytest.fixture
def theory() -> ModuleType:
    return figures_of_theory


def test_figure_2_has_the_papers_cells_but_three(theory: ModuleType) -> None:
    """Each cell is a check. Its page says why three are not the paper's."""
    shown = theory.figure_2()
    wrong = [check for check, holds in shown.checks.items() if not holds]
    assert len(shown.held[0].rows) == 24
    assert [check.partition(":")[0] for check in wrong] == [
        "r2c2, transpose, Random Packet Spraying, of capacity",
        "r2c2, nearest_neighbor, WLB, of capacity",
        "r2c2, transpose, WLB, of capacity",
    ]


def test_figure_4_is_the_papers(theory: ModuleType) -> None:
    shown = theory.figure_4()
    assert all(shown.checks.values()), shown.checks
    assert shown.picture is not None


def test_figure_8_has_a_recomputation_every_interval(theory: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theory.rack, "scale", 0.1)
    table = theory.figure_8().table
    # 10,000 flows arrive within some 10 ms.
    assert table.loc[500, "recomputations"] == pytest.approx(20, abs=2)
    assert table["flows"].is_monotonic_decreasing
    # A flow a microsecond in a rack of 512: each node starts one in 512 us, and computes once more for it.
    assert table.loc[500, "computations of a node"] == pytest.approx(1 + 500 / 512, rel=0.05)
    assert (table["with starts p99 %"] >= table["overhead p99 %"]).all()


def test_figure_18_never_has_less_than_any_baseline(theory: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theory.rack, "scale", 0.4)
    shown = theory.figure_18()
    assert all(ok for check, ok in shown.checks.items() if check.startswith("never less"))
    assert shown.table.loc[1.0, "flows"] == 27


def test_rates_are_those_of_linear_programs(theory: ModuleType) -> None:
    shown = theory.rates_by_linear_programs()
    assert len(shown.checks) == 8 and all(shown.checks.values()), shown.checks
    [held] = shown.held
    assert held.kind == "linear program" and (held.error.abs() < 1e-6).all()


def test_the_programs_know_what_is_fair(theory: ModuleType) -> None:
    def fair(
        capacity: list[float], loads: list[list[float]], weights: list[float], demands: list[float]
    ) -> list[float]:
        arrays = (np.array(each, dtype=float) for each in (capacity, loads, weights, demands))
        return [float(rate) for rate in theory.linear_programs.max_min(*arrays)]

    free = np.inf
    # Figure 4, its two flows; then one link by weight, with a demand, and one flow that has a second link to itself.
    assert fair([1, 2, 1], [[0.5, 0], [0.5, 0], [0.5, 1]], [1, 1], [free, free]) == pytest.approx([2 / 3, 2 / 3])
    assert fair([9], [[1, 1]], [1, 2], [free, free]) == pytest.approx([3, 6])
    assert fair([9], [[1, 1]], [1, 2], [free, 1]) == pytest.approx([8, 1])
    assert fair([9, 1], [[1, 1], [0, 1]], [1, 1], [free, free]) == pytest.approx([8, 1])
    # A program whose corners coincide, where other rules than Bland's go in circles (Beale, 1955).
    aim = np.array([0.75, -150, 0.02, -6])
    rows = np.array([[0.25, -60, -0.04, 9], [0.5, -90, -0.02, 3], [0, 0, 1, 0]])
    assert theory.linear_programs.maximise(aim, rows, np.array([0.0, 0, 1])) == pytest.approx(0.05)


def test_a_node_is_busy_for_its_interval_s_computation_and_its_own_flows_starts(theory: ModuleType) -> None:
    at_intervals = pd.DataFrame({"at_us": [100.0, 200.0], "took_us": [10.0, 20.0]})
    starts = pd.DataFrame({"host": [3, 3, 4, 5], "at_us": [50.0, 60.0, 150.0, 250.0], "took_us": [1.0, 2.0, 4.0, 8.0]})
    of = theory.overhead_with_starts(at_intervals, starts, 100.0).reshape(theory.NODES, 2)
    assert of[3].tolist() == pytest.approx([0.13, 0.2]) and of[4].tolist() == pytest.approx([0.1, 0.24])
    # The last begins after the last interval.
    assert of[5].tolist() == of[0].tolist() == pytest.approx([0.1, 0.2])
