"""Every scheme on one ground: who takes part, what is measured, and the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import clearway as cw
import numpy as np
import pytest
from clearway.comparisons import all_schemes as all_
from test_cli import clearway

LONE = """
timing = "ideal"
transport = "udp"
[fabric.star]
hosts = 2
[[traffic]]
sizes = { constant = "146000B" }
arrivals = "all_at_once"
senders = "0"
receivers = "1"
flows = 1
"""


def test_each_transport_and_flow_control_takes_part_on_a_ground_where_it_can_run() -> None:
    contenders = all_.contenders()
    kinds = cw.schemes()["kind"]
    # The memory of `mmu` is an operator's: without settings it does what PFC does.
    wanted = set(kinds.index[kinds.isin(["transport", "flow control"])]) - {"none", "mmu"}
    assert {name for one in contenders for name in one.uses} == wanted
    assert [one.family for one in contenders] == sorted((one.family for one in contenders), key=all_.FAMILIES.index)
    for fabric in (*all_.FABRICS, "fairness"):
        base = cw.Scenario.load(all_.FOLDER / f"{fabric}.toml")
        for one in contenders:
            base.with_(one.keys).check()


def test_a_lone_flow_is_fair_and_costs_its_headers() -> None:
    row = all_.measure(cw.run(cw.Scenario.from_toml(LONE), threads=1))
    # 100 packets of 1,460 B and 40 B of headers; and the answer, 40 B.
    assert row["overhead"] == pytest.approx((100 * 40 + 40) / 146_000)
    assert row["jain"] == 1.0
    assert row["undelivered"] == row["dropped"] == row["refused"] == 0.0


def test_jain_is_of_the_rates_of_flows() -> None:
    # Of two flows that begin at once on one link with fair queues both end together; one that waits for the other has
    # half of its rate.
    two = (
        LONE.replace("hosts = 2", "hosts = 3")
        .replace('senders = "0"', 'senders = "0-1"')
        .replace('receivers = "1"', 'receivers = "2"')
    )
    two = two.replace("flows = 1", "pattern = { incast = { degree = 2 } }")
    fair = all_.measure(cw.run(cw.Scenario.from_toml(two), threads=1))
    assert fair["jain"] == pytest.approx(1.0, abs=0.01)


def test_what_refuses_messages_sustains_nothing() -> None:
    assert all_.sustains(1.0, 0.0) and not all_.sustains(1.0, 0.01)
    assert all_.sustains(0.98, 0.0) and not all_.sustains(0.979, 0.0)


def test_a_comparison_goes_on_where_it_was_and_draws_its_page(tmp_path: Path) -> None:
    def compare() -> cw.SchemeComparison:
        return cw.compare_all(
            tmp_path, only=["dcpim", "udp", "pfc"], fabrics=["leaf-spine"], workloads=["imc10"], loads=[0.5],
            duration="100us", sustained="", progress=False,
        )  # fmt: skip

    found = compare()
    names = [one.name for one in found.contenders]
    assert names[:2] == ["dcpim", "udp"] and all(name.endswith("pfc") for name in names[2:])
    assert found.ok and not found.absent and list(found.table().index) == names
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store" / "runs").glob("*/run.json")}
    assert len(before) == 2 * len(names), "one run of the grid and one of fairness each"
    compare()
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "store" / "runs").glob("*/run.json")}
    text = found.report(tmp_path / "page.html").read_text()
    for one in found.contenders:
        for name in one.uses:
            assert cw.schemes().loc[name, "summary"].replace("'", "&#x27;") in text
    assert "did not deliver" not in text.split("* did")[0]
    # Each mean stands above its interval; so do percentiles of enough flows.
    low, high = found.runs["short mean low"], found.runs["short mean high"]
    assert ((low <= found.runs["short mean"]) & (found.runs["short mean"] <= high)).any() and re.search(
        r"<br><small>[\d.]+–[\d.]+</small>", text
    )


def test_with_several_seeds_numbers_are_means_and_intervals_are_over_seeds(tmp_path: Path) -> None:
    def compare(**which: Any) -> cw.SchemeComparison:
        return cw.compare_all(
            tmp_path, only=["udp", "dctcp"], fabrics=["leaf-spine"], workloads=["imc10"], loads=[0.5],
            duration="100us", sustained="", progress=False, **which,
        )  # fmt: skip

    each = [compare(seed=seed).runs.set_index("scheme") for seed in (3, 4, 5)]
    found = compare(seeds=[3, 4, 5])
    rows = found.runs.set_index("scheme")
    assert rows["seeds"].tolist() == [3, 3] and "over seeds 3 to 5" in found.setting
    for column in ("short mean", "longest queue KB", "kept up"):
        values = [run.loc["udp", column] for run in each]
        assert len(set(values)) > 1 and rows.loc["udp", column] == pytest.approx(sum(values) / 3)
    half = rows.loc["udp", "short mean high"] - rows.loc["udp", "short mean"]
    spread = np.std([run.loc["udp", "short mean"] for run in each], ddof=1)
    assert half == pytest.approx(4.303 * spread / 3**0.5, rel=1e-3), "Student's t with two degrees of freedom"
    assert "t-interval over 3 seeds" in found.report(tmp_path / "page.html").read_text()


def test_who_cannot_run_is_named_with_the_reason(tmp_path: Path) -> None:
    found = cw.compare_all(
        tmp_path, only=["udp", "harmony"], fabrics=["leaf-spine"], workloads=["imc10"], loads=[0.5], duration="50us",
        sustained="", sets=[("switch.overflow", "trim")], progress=False,
    )  # fmt: skip
    assert [one.name for one in found.contenders] == ["udp"]
    assert "class 0" in found.absent["harmony"]


def test_what_is_no_scheme_or_fabric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'dcpin' is not a contender; those are dcpim"):
        cw.compare_all(tmp_path, only=["dcpin"])
    with pytest.raises(ValueError, match="'torus' is not a fabric of this comparison"):
        cw.compare_all(tmp_path, fabrics=["torus"])


def test_the_command_compares_all(tmp_path: Path) -> None:
    few = [
        "--transport",
        "udp",
        "--fabric",
        "fat-tree",
        "--workload",
        "imc10",
        "--load",
        "0.4",
        "--duration",
        "50us",
        "--sustained",
        "none",
    ]
    done = clearway("compare", "--all", *few, "--out", tmp_path / "all")
    assert done.returncode == 0, done.stderr
    assert "udp" in done.stdout and (tmp_path / "all" / "report.html").exists()
    for wrong, why in (
        (["--all", "examples/tiny.toml"], "--all uses scenarios"),
        (["--duration", "1ms", "examples/tiny.toml"], "--duration needs --all"),
        ([], "or use --all"),
    ):
        done = clearway("compare", *wrong)
        assert done.returncode == 2 and why in done.stderr, done.stderr
