"""Comparisons with outside numbers: their checks, its record, and the page that is made of all records."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from clearway.papers import accuracy, figures
from clearway.papers.hardware import measurements


def held(ours: float, within: float = 0.1) -> figures.Held:
    row = {"bucket": "up to 1 KB", "statistic": "mean FCT, us", "ours": ours, "theirs": 100.0, "within": within}
    return figures.Held("hpcc over pfc", "a program", "authors' run", pd.DataFrame([row]))


@pytest.mark.parametrize(
    ("ours", "ok"), [(89.0, False), (91.0, True), (109.0, True), (111.0, False), (float("nan"), False)]
)
def test_a_number_may_be_off_either_way_by_what_was_allowed(ours: float, ok: bool) -> None:
    assert list(figures.Shown(pd.DataFrame(), held=[held(ours)]).checks.values()) == [ok]


def test_the_page_names_each_comparison_and_who_has_none(tmp_path: Path) -> None:
    command = "clearway paper pyrrha reference --scale 3"
    accuracy.record("pyrrha", "reference", [held(105.0), held(150.0)], command, tmp_path)
    text = accuracy.page(accuracy.records(tmp_path), ["hpcc", "pfc", "bfc"])
    assert "| up to 1 KB | mean FCT, us | 105 | 100 | +5.0% | 10% |" in text
    assert "| +50.0% **outside** |" in text
    assert f"`{command}`" in text
    assert "**No outside number yet:** `bfc`." in text


def test_a_switch_and_expert_parallelism_are_as_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [measurements.switch(), measurements.experts()]
    assert all(ok for one in held for ok in one.ok)
    # Another number of tokens is another time: the check can fail.
    monkeypatch.setitem(measurements.BYTES, "combine", measurements.BYTES["combine"] // 2)
    assert measurements.experts().ok == [True, False, True, False]


def test_single_measurements_stand_on_the_page_with_what_was_inferred_from_them(tmp_path: Path) -> None:
    rows = pd.concat([held(103.0).rows, held(100.0, 1.0).rows])
    of = figures.Held("a switch", "a pull request", "measurement", rows)
    accuracy.record("hardware", "single", [of], "clearway paper hardware single", tmp_path)
    text = accuracy.page(accuracy.records(tmp_path), [])
    assert "| a switch | a pull request | up to 1 KB | mean FCT, us | 100 | 103 | +3.0% | 10% |" in text
    assert "| +0.0% | inferred from it |" in text
