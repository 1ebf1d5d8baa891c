"""The runner of dcPIM's figures: what it reckons with, and a figure at a small scale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import clearway as cw

PAPER = Path("papers/dcpim").resolve()


@pytest.fixture
def reproduce(load_runner: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_runner("dcpim")
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(module, "scale", 0.01)
    return module


@pytest.mark.parametrize("path", sorted(PAPER.glob("figure-[345]*.toml")), ids=lambda path: path.stem)
def test_every_scheme_runs_in_every_scenario(reproduce: ModuleType, path: Path) -> None:
    base = cw.Scenario.load(path)
    for keys in reproduce.ALL.values():
        base.with_(keys).check()


def test_a_level_is_reached_when_it_is_never_left_again(reproduce: ModuleType) -> None:
    # Averages of five are below 0.5 until the fifth value after the last dip is in.
    use = pd.Series([0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], index=np.arange(20.0, 280.0, 20.0))
    assert reproduce._settles(use, 0.5) == 200.0
    assert reproduce._settles(use * 0 + 1, 0.5) == 0.0


def test_ranges_are_the_papers_give_or_take_a_tenth(reproduce: ModuleType) -> None:
    assert reproduce.within(pd.Series([2.3, 2.9]), 2.5, 2.7)
    assert not reproduce.within(pd.Series([2.2, 2.6]), 2.5, 2.7)


def test_utilisation_is_that_of_the_links_to_hosts(reproduce: ModuleType) -> None:
    # One host of four sends 1 MB to another at line rate: a quarter of the links to hosts is used while it lasts, 80 us and headers.
    lone = cw.Scenario.from_toml("""
transport = "udp"
measure = { end = "60us", interval = "10us" }
[fabric.star]
hosts = 4
[[traffic]]
sizes = { constant = "1MB" }
arrivals = "all_at_once"
senders = "0"
receivers = "1"
flows = 1
""")
    use = reproduce._use(cw.run(lone, threads=1), every_us=20)
    assert list(use.index) == [20.0, 40.0, 60.0]
    assert use[40.0] == pytest.approx(0.25, abs=0.002)


def test_a_figure_at_a_small_scale(reproduce: ModuleType) -> None:
    shown = reproduce.figure_4b()
    assert list(shown.table.loc["BDP + 1"].index) == list(reproduce.ALL)
    assert (shown.table["all mean"] >= 1).all() and (shown.table["unfinished"] == 0).all()
    # The paper's point: each of dcPIM's flows waits for a match, so that all others' are faster even without a load to speak of.
    assert shown.table["all mean"].idxmax() == ("BDP + 1", "dcPIM")
    assert shown.picture is not None
