"""Intervals of confidence, against closed forms and against what they promise: to hold the truth 19 times of 20."""

from __future__ import annotations

import json
import re

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from called import call
from clearway.cli.layout import terminal
from clearway.results.confidence import EACH, of_mean, of_quantile
from clearway.sweeps.page import _mean


@pytest.mark.parametrize("count", [40, EACH + 100])
def test_intervals_hold_the_truth_nineteen_times_of_twenty(count: int) -> None:
    random = np.random.default_rng(7)
    means = medians = tails = 0
    for _ in range(400):
        drawn = np.sort(random.exponential(1.0, count))
        low, high = of_mean(drawn)
        means += low <= 1.0 <= high
        low, high = of_quantile(drawn, 0.5)
        medians += low <= np.log(2) <= high
        low, high = of_quantile(drawn, 0.9)
        tails += low <= np.log(10) <= high
    # 380 of 400, with a standard deviation of 4.4; percentile intervals of few skewed values are known to be a little
    # narrow.
    least = 340 if count == 40 else 362
    assert least <= means <= 395 and least <= medians <= 398 and least <= tails <= 398, (means, medians, tails)


def test_the_interval_of_a_mean_is_a_normal_one_where_values_are_many() -> None:
    values = np.random.default_rng(3).normal(10, 2, EACH)
    low, high = of_mean(values)
    far = 1.96 * values.std() / len(values) ** 0.5
    assert (low, high) == pytest.approx((values.mean() - far, values.mean() + far), abs=far / 5)
    more = np.tile(values, 4)
    assert np.diff(of_mean(more))[0] == pytest.approx(far, rel=1e-3), "four times the values, half as wide: 2 * far / 2"


def test_intervals_are_the_same_each_time_and_hold_what_they_are_of(result: cw.Result) -> None:
    once, again = result.slowdown(by="size"), result.slowdown(by="size")
    pd.testing.assert_frame_equal(once, again)
    assert list(once.columns[:5]) == ["flows", "mean", "p50", "p99", "p99.9"]
    many = once[once["flows"] >= 20]
    assert len(many)
    for name in ("mean", "p50"):
        assert ((many[f"{name} low"] <= many[name]) & (many[name] <= many[f"{name} high"])).all()
    assert (many["mean low"] < many["mean high"]).all()
    # Of so few flows, all may well be below the 99th percentile.
    assert once["p99 high"].isna().all()
    assert np.isnan(of_mean(np.array([1.0]))[0]) and np.isnan(of_quantile(np.array([]), 0.5)[0])


def test_tables_have_them_as_columns_and_show_them_beside_the_number(
    result: cw.Result, tiny_file: object, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    [row] = json.loads(call("run", tiny_file, "--json").out)["table"]
    assert row["all mean low"] < row["all mean"] < row["all mean high"]
    shown = terminal(cw.Comparison([result]).table(), 400)
    assert re.search(r"\(\d[\d.]*\.\.\d[\d.]*\)", shown) and "95%" in call("run", tiny_file).err
    assert "all mean low" not in repr(cw.Comparison([result]))


def test_over_seeds_runs_are_drawn_and_of_one_run_its_flows() -> None:
    runs = pd.DataFrame(
        {"short mean": [1.0, 2.0, 3.0], "short mean low": [0.9, 1.9, 2.9], "short mean high": [1.1, 2.1, 3.1]}
    )
    assert _mean(runs, "short mean") == "2.00 (-0.48–4.48)"
    assert _mean(runs.iloc[:1], "short mean") == "1.00 (0.90–1.10)"
