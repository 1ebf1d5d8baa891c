"""dcPIM's figures: what they reckon with, and a figure at a small scale."""

from __future__ import annotations

from pathlib import Path

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from clearway.papers.dcpim import default_setup, evaluation, published, setting


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting, "OUT", tmp_path)
    monkeypatch.setattr(setting, "scale", 0.01)


@pytest.mark.parametrize("path", sorted(setting.HERE.glob("figure-[345]*.toml")), ids=lambda path: path.stem)
def test_every_scheme_runs_in_every_scenario(small: None, path: Path) -> None:
    base = cw.Scenario.load(path)
    for keys in setting.BOTH.values():
        base.with_(keys).check()


def test_a_level_is_reached_when_it_is_never_left_again(small: None) -> None:
    # Averages of five are below 0.5 until the fifth value after the last dip is in.
    use = pd.Series(
        [0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], index=np.arange(20.0, 280.0, 20.0)
    )
    assert evaluation._settles(use, 0.5) == 200.0
    assert evaluation._settles(use * 0 + 1, 0.5) == 0.0


def test_ranges_are_the_papers_give_or_take_a_tenth(small: None) -> None:
    assert setting.within(pd.Series([2.3, 2.9]), 2.5, 2.7)
    assert not setting.within(pd.Series([2.2, 2.6]), 2.5, 2.7)
    # A slowdown is at least 1: what counts is what is above that.
    assert setting.within(pd.Series([1.03, 1.043]), 1.03, 1.04, least=1.0)
    assert not setting.within(pd.Series([1.14]), 1.03, 1.04, least=1.0)
    assert not setting.within(pd.Series([1.02]), 1.03, 1.04, least=1.0)


def test_published_numbers_are_there_for_every_class_and_load(small: None) -> None:
    table = published.published()
    for workload in setting.WORKLOADS:
        for load in (0.5, 0.6, 0.7, 0.8):
            assert (table.loc[(workload, load, "all", "dcpim"), ["mean", "p99"]] > 1).all()
        for name in published.CLASSES:
            assert set(table.loc[(workload, 0.6, name)].index) == set(setting.KEYS.values())
    # Reference numbers of section 4.1's text: short flows' means are 1.03 to 1.04, their tails 1.09 to 1.16.
    short = table.xs("up to 1 BDP", level="flows").xs("dcpim", level="scheme")
    assert short["mean"].between(1.03, 1.045).all() and short["p99"].between(1.085, 1.16).all()


def test_plotted_slowdowns_are_by_the_authors_ideal(small: None) -> None:
    # Two packets to another rack and to the own one, alone: 5.2 us, 2,920 B, 1.5 packets and 2.5 headers at 100 Gbps;
    # 2.6 us, 2,920 B, a packet and two headers.
    head = (setting.HERE / "figure-3-imc10.toml").read_text().split("[[traffic]]")[0]
    classes = [
        f"""
[[traffic]]
name = "to {receiver}"
sizes = {{ constant = "2920B" }}
arrivals = "all_at_once"
senders = "0"
receivers = "{receiver}"
start = "{start}"
flows = 1
"""
        for receiver, start in (("20", "0us"), ("3", "100us"))
    ]
    result = cw.run(cw.Scenario.from_toml(head + "".join(classes)), threads=1)
    fct_us = np.asarray(result.flows["fct_ps"]) / 1e6
    ideal_us = np.array([5.2 + (2_920 + 2_250 + 100) * 8 / 100e3, 2.6 + (2_920 + 1_500 + 80) * 8 / 100e3])
    assert published.plotted(result)["slowdown"].to_numpy() == pytest.approx(fct_us / ideal_us)
    assert (published.plotted(result)["slowdown"] >= 1).all()


def test_classes_are_the_authors(small: None) -> None:
    flows = pd.DataFrame({"bytes": [1.0, 72_500, 72_501, 145_000, 1e7], "slowdown": [1.0, 3.0, 5.0, 7.0, 9.0]})
    table = published.by_class(flows)
    assert table["flows"].to_dict() == {"up to 1 BDP": 2, "1 to 2 BDP": 2, "over 16 BDP": 1, "all": 5}
    assert table.loc["up to 1 BDP", "mean"] == 2.0


def test_confidence_is_students(small: None) -> None:
    mean, half = default_setup._confidence([0.80, 0.82, 0.84])
    assert mean == pytest.approx(0.82) and half == pytest.approx(4.303 * 0.02 / 3**0.5)


@pytest.mark.slow
def test_dcpim_is_where_its_authors_have_it(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's protocol and its authors' program's, class by class, on that program's flows."""
    monkeypatch.setattr(setting, "scale", 1.0)
    shown = default_setup.reference()
    assert all(shown.checks.values()), [check for check, ok in shown.checks.items() if not ok]


# Messages of up to 1 BDP among 4,000 of IMC10: mean and 99th percentile. As run, by one-way times; dcPIM's authors list
# 2.44 and 3.38 over a million flows, so the tail is there and the mean is not (docs/schemes/homa.md). By default, by
# round trips.
FOUND = {"Homa Aeolus (as run)": (1.629, 3.144), "Homa Aeolus": (1.298, 2.190)}


@pytest.mark.parametrize("scheme", FOUND)
def test_homa_aeolus_stays_where_it_was_found_beside_dcpims_numbers(
    small: None, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(setting, "scale", 0.1)
    flows = setting.as_plotted(scheme, setting.as_run("figure-3-imc10", scheme, setting.BOTH[scheme]))
    short = published.by_class(flows).loc["up to 1 BDP"]
    mean, p99 = FOUND[scheme]
    # Another seed is 5% off in the mean and 1% at the tail.
    assert short["mean"] == pytest.approx(mean, rel=0.03)
    assert short["p99"] == pytest.approx(p99, rel=0.03)
    said = published.published().loc[("imc10", 0.6, "up to 1 BDP", "homa_aeolus")]
    tail = short["p99"] / said["p99"]
    assert (0.9 < tail < 1.1) == (scheme == "Homa Aeolus (as run)"), tail


def test_use_is_of_the_links_to_hosts_and_of_data_alone(small: None) -> None:
    # One host of four sends 1 MB to another at line rate: a quarter of the links to hosts is used while it lasts, 80 us
    # and headers.
    lone = cw.Scenario.from_toml("""
timing = "ideal"
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
    use = evaluation._use(cw.run(lone, threads=1), every_us=20)
    assert list(use.index) == [20.0, 40.0, 60.0]
    assert use[40.0] == pytest.approx(0.25, abs=0.002)


def test_a_figure_at_a_small_scale(small: None) -> None:
    shown = evaluation.figure_4b()
    assert list(shown.table.index) == list(setting.BOTH)
    assert (shown.table["all mean"] >= 1).all() and (shown.table["unfinished"] == 0).all()
    # Each flow waits some 25 us for a match and then has one channel of four, 24 us, where alone it needs 11.6 us.
    # Nothing is said of the others without a load to speak of: the paper has two of them behind dcPIM at 0.6.
    assert 3 < shown.table.loc["dcPIM", "all mean"] < 8
    assert shown.picture is not None
