"""The figures of R2C2's paper that need no packets, on racks that take a second or two."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAPER = Path("papers/r2c2").resolve()


@pytest.fixture
def theory(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PAPER))
    for name in ("figures_of_theory", "rack"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("figures_of_theory")


def test_figure_2_has_the_papers_cells_but_three(theory: ModuleType) -> None:
    shown = theory.figure_2()
    assert all(shown.checks.values()), shown.checks
    assert any("21 of 24" in check for check in shown.checks)


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


def test_figure_18_never_has_less_than_any_baseline(theory: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theory.rack, "scale", 0.4)
    shown = theory.figure_18()
    assert all(ok for check, ok in shown.checks.items() if check.startswith("never less"))
    assert shown.table.loc[1.0, "flows"] == 27
