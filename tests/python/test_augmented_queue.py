"""The runner of the Augmented Queue paper's figures, on a short row of its Table 2."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import clearway as cw

PAPER = Path("papers/augmented-queue").resolve()


@pytest.fixture
def reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduce", PAPER / "reproduce.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "reproduce", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "OUT", tmp_path)
    return module


def test_a_row_of_table_2(reproduce: ModuleType) -> None:
    pair = (5, "cubic"), (5, "dctcp")
    share = 10 * reproduce.PAYLOAD / 2
    assert reproduce.two_by_two(*pair, reproduce.AQ) == pytest.approx([share, share], rel=0.04)
    cubic, dctcp = reproduce.two_by_two(*pair, reproduce.PQ)
    assert dctcp >= 5 * cubic


def test_what_has_run_is_not_run_again(reproduce: ModuleType, tmp_path: Path) -> None:
    keys = {**reproduce.AQ, "measure.end": "20ms", "measure.interval": "5ms"}
    first = reproduce.run("figure-8", "short", keys)
    [run] = tmp_path.glob("runs/*/run.json")
    written = run.stat().st_mtime_ns
    assert reproduce.run("figure-8", "short", keys).digest == first.digest
    assert run.stat().st_mtime_ns == written


def test_every_scenario_of_the_paper_is_sound() -> None:
    for path in sorted(PAPER.glob("*.toml")):
        assert cw.Scenario.load(path).check()[1] > 0, path
