"""Comparisons with outside numbers: their checks, its record, and the page that is made of all records."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from clearway.papers import accuracy, figures


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
