"""Comparing always works: what has no effect is advice, schemes keep their settings, and no result is lost."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import clearway as cw
import numpy as np
import pytest
from called import call
from clearway.comparisons import comparison
from clearway.results.confidence import of_mean, of_quantile, of_seeds, student

MARKED = """
transport = "dctcp"
[fabric.star]
hosts = 4
[switch]
marking = { step = { threshold = "30KB" } }
[[traffic]]
name = "a"
sizes = { constant = "100KB" }
arrivals = "all_at_once"
"""

TUNED = """
transport = { dcqcn = { recovery = { irn = { reordering_packets = 100000, rto_low = "4ms", rto_high = "4ms" } } } }
flow_control = { pfc = { headroom = { cable_m = 100.0 } } }
[fabric.star]
hosts = 4
[[traffic]]
name = "a"
sizes = { constant = "100KB" }
arrivals = "all_at_once"
"""


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "marked.toml"
    file.write_text(MARKED)
    return file


def test_a_setting_without_effect_is_one_line_of_advice(marked: Path) -> None:
    done = call("compare", marked, "--transport", "dctcp", "--transport", "cubic", "--transport", "newreno", "--json")
    said = json.loads(done.out)
    assert done.code == 0 and [row["run"] for row in said["table"]] == ["dctcp", "cubic", "newreno"]
    assert said["refused"] == {}
    advice = [line for line in done.err.splitlines() if "switch.marking: has no effect" in line]
    assert advice == [
        "cubic; newreno: warning: switch.marking: has no effect: no transport of this scenario reacts to marks (dctcp "
        "does); delete it"
    ]
    info = json.loads(Path("out/marked-compare/cubic/run.json").read_text())
    assert any("switch.marking: has no effect" in warning for warning in info["warnings"])
    page = Path("out/marked-compare/report.html").read_text()
    assert page.count("switch.marking: has no effect") == 1
    # `check` says it, too, and so does a sweep's run or a single one.
    assert "switch.marking: has no effect" in call("check", marked, "--set", "transport=cubic", "--probe", "0").err
    cubic = cw.Scenario.load(marked).with_(transport="cubic")
    assert any("switch.marking" in warning for warning in cw.run(cubic).info["warnings"])
    swept = cw.sweep(cw.Scenario.load(marked), {"transport": ["dctcp", "cubic"]}, "swept", progress=False)
    assert swept.ok and not swept.failed
    assert [names for said, names in swept.warnings.items() if "switch.marking" in said] == [["cubic"]]
    Path("sweep.toml").write_text('scenario = "marked.toml"\n[vary]\ntransport = ["dctcp", "cubic"]\n')
    assert call("sweep", "sweep.toml").err.count("cubic: warning: switch.marking: has no effect") == 1
    assert Path("out/sweep/report.html").read_text().count("cubic: warning: switch.marking") == 1


@pytest.mark.parametrize("level", ["flow", "links"])
def test_what_is_recorded_of_packets_has_no_effect_at_other_levels(level: str) -> None:
    asked = {"measure.packets": {}, "measure.ports": ["switch0:0"], "measure.events": ["drops"], "measure.flows": {}}
    result = cw.run(cw.Scenario.from_toml(MARKED).with_(asked), level=level)
    keys = {warning.partition(":")[0] for warning in result.info["warnings"]}
    assert {"measure.packets", "measure.ports", "measure.events", "measure.flows"} <= keys


def test_a_scheme_that_the_scenario_configures_runs_as_configured(tmp_path: Path) -> None:
    tuned = cw.Scenario.from_toml(TUNED)
    own = cw.run(tuned)
    compared = cw.compare(tuned, ["dcqcn", {"dcqcn": {}}, "dctcp"])
    assert compared.results[0].digest == own.digest
    settings = tuned.to_dict()["transport"]["dcqcn"]
    kept = cw.Scenario.from_toml(compared.results[0].scenario_toml).to_dict()["transport"]["dcqcn"]
    plain = cw.Scenario.from_toml(compared.results[1].scenario_toml).to_dict()["transport"]["dcqcn"]
    assert kept == settings != plain
    said = compared.said()
    assert any("dcqcn: with the scenario's own settings of dcqcn: recovery." in line for line in said), said
    # A sweep, and a key on the command line.
    swept = cw.sweep(tuned, {"transport": ["dcqcn", "dctcp"]}, tmp_path, progress=False)
    assert swept["dcqcn"].digest == own.digest
    (tmp_path / "tuned.toml").write_text(TUNED)
    done = call("run", tmp_path / "tuned.toml", "--transport", "{ dcqcn = {} }", "--out", tmp_path / "plain", "--json")
    assert cw.load(tmp_path / "plain").digest == compared.results[1].digest and json.loads(done.out)["notes"]
    assert tuned.with_text([("transport", "dcqcn")]).to_dict() == tuned.to_dict()
    assert tuned.with_(transport="dctcp").with_(transport="dcqcn").to_dict() == tuned.to_dict()


def test_all_are_checked_first_and_one_that_cannot_run_is_a_row(marked: Path) -> None:
    # NDP brings queues of its own, on which PFC can't work.
    done = call("compare", marked, "--transport", "ndp", "--transport", "dctcp", "--flow-control", "pfc")
    assert done.code == 1
    assert "ndp over pfc did not run: flow_control: ndp replaces the queues of switches" in done.err
    assert "ndp over pfc" in done.out and "dctcp over pfc" in done.out
    compared = cw.compare(cw.Scenario.load(marked), ["ndp", "dctcp"], "pfc")
    table = compared.table()
    assert list(table.index) == ["dctcp over pfc", "ndp over pfc"] and len(compared.results) == 1
    assert (
        table["did not run"]["ndp over pfc"].startswith("flow_control: ndp replaces")
        and not table["did not run"].iloc[0]
    )
    assert "ndp over pfc did not run" in compared.report("page.html").read_text()
    with pytest.raises(cw.ScenarioError, match="ndp replaces"):
        cw.compare(cw.Scenario.load(marked), "ndp", "pfc")


def test_a_mistyped_name_is_said_at_once(marked: Path) -> None:
    done = call("compare", marked, "--transport", "dctcp", "--transport", "cubik")
    assert done.code == 2 and 'did you mean "cubic"' in done.err and not Path("out").exists()


def test_a_mistyped_setting_is_said_at_once(marked: Path) -> None:
    done = call("compare", marked, "--transport", "dctcp", "--transport", "{ dctcp = { initial_windw = 3 } }")
    assert done.code == 2 and 'did you mean "initial_window"' in done.err and not Path("out").exists()


def test_a_transport_that_carries_nothing_is_a_row_that_says_so(marked: Path) -> None:
    own = cw.Scenario.load(marked).with_({"traffic.a.transport": "dctcp"})
    compared = cw.compare(own, ["dctcp", "cubic"])
    assert [result.name for result in compared.results] == ["dctcp"]
    assert "cubic carries nothing" in compared.refused["cubic"]


class Steady(cw.Control):
    """A control that keeps its first window."""


def test_controls_of_ones_own_and_single_names_are_compared(marked: Path) -> None:
    compared = cw.compare(marked, [Steady(), "dctcp"])
    assert list(compared.table().index) == ["Steady", "dctcp"]
    assert [result.name for result in cw.compare(marked, "dctcp").results] == ["dctcp"]
    assert [result.name for result in cw.compare(marked, Steady()).results] == ["Steady"]


def test_a_run_that_fails_loses_no_other(marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(scenario: cw.Scenario, **how: Any) -> cw.Result:
        if how["name"] == "cubic":
            raise MemoryError("no room for it")
        return cw.run(scenario, **how)

    monkeypatch.setattr(comparison, "run", failing)
    compared = cw.compare(marked, ["dctcp", "cubic", "newreno"], folder="kept")
    assert [result.name for result in compared.results] == ["dctcp", "newreno"]
    assert compared.refused == {"cubic": "MemoryError: no room for it"}
    assert sorted(path.name for path in Path("kept").iterdir()) == ["dctcp", "newreno"]


def test_the_three_lines_of_the_readme_work_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = ("--set", "traffic.websearch.flows=20")
    for _ in range(2):
        assert call("init", "first.toml").code == 0
        assert call("run", "first.toml", *few).code == 0
        assert call("compare", "first.toml", "--transport", "dcpim", "--transport", "dctcp", *few).code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["first", "first-compare"]


def test_what_init_would_overwrite_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("seed = 7\n")
    done = call("init", "mine.toml")
    assert done.code == 0 and "stays as it is" in done.out and Path("mine.toml").read_text() == "seed = 7\n"


POISSON = MARKED.replace('"all_at_once"', "{ poisson = { load = 0.5 } }\nflows = 300")


def test_seeds_give_intervals_and_differences_that_are_paired(tmp_path: Path) -> None:
    scenario = cw.Scenario.from_toml(POISSON, name="p")
    compared = cw.compare(scenario, ["dctcp", "cubic"], seeds=4, folder=tmp_path)
    assert [result.info["seed"] for result in compared.results] == [1, 2, 3, 4] * 2
    assert sorted(path.name for path in tmp_path.iterdir())[:2] == ["cubic-seed-1", "cubic-seed-2"]
    means = {name: np.array([one.slowdown()["mean"].item() for one in of]) for name, of in compared.rows().items()}
    table = compared.table()
    assert list(table.index) == ["dctcp", "cubic"] and table["seeds"].tolist() == [4, 4]
    assert table["all mean"]["dctcp"] == pytest.approx(means["dctcp"].mean())
    far = 3.182446 * means["dctcp"].std(ddof=1) / 2
    assert table["all mean high"]["dctcp"] - table["all mean"]["dctcp"] == pytest.approx(far, rel=1e-5)
    differ = means["cubic"] - means["dctcp"]
    row = compared.differences().loc["cubic - dctcp"]
    assert row["all mean"] == pytest.approx(differ.mean())
    assert row["all mean high"] - row["all mean"] == pytest.approx(3.182446 * differ.std(ddof=1) / 2, rel=1e-5)
    assert any("paired over 4 seeds" in line for line in compared.said())
    assert table.attrs["interval"] == "95% t-interval over 4 seeds"


def test_seeds_on_the_command_line(marked: Path) -> None:
    marked.write_text(POISSON)
    done = call("run", marked, "--seed", "3", "--seed", "5", "--json")
    assert done.code == 0 and json.loads(done.out)["table"][0]["seeds"] == 2
    assert sorted(path.name for path in Path("out/marked-seeds").iterdir())[:2] == ["marked-seed-3", "marked-seed-5"]
    done = call("compare", marked, "--transport", "dctcp", "--transport", "cubic", "--seeds", "2")
    assert "95% t-interval over 2 seeds" in done.err and "cubic - dctcp: all mean " in done.err
    assert call("run", marked, "--seed", "4").code == 0
    assert json.loads(Path("out/marked/run.json").read_text())["seed"] == 4
    assert "several" in call("run", marked, "--seeds", "2", "--force").err
    with pytest.raises(ValueError, match="the same seed twice"):
        cw.compare(marked, seeds=[1, 1])


def test_an_interval_of_one_run_says_what_it_is_and_few_flows_have_none(marked: Path) -> None:
    done = call("run", marked)
    assert "95%" not in done.err and "p99 of fewer than 100 flows" in done.err and "4 in all" in done.err
    marked.write_text(POISSON)
    assert "95% of resamplings of one run's flows; what other seeds give it does not say" in call("run", marked).err
    # By the binomial distribution: the largest of 367 is below the 99th percentile in 2.5% of samples.
    assert math.isnan(of_quantile(np.arange(367.0), 0.99)[1]) and of_quantile(np.arange(368.0), 0.99)[1] > 360
    assert math.isnan(of_mean(np.arange(19.0))[0]) and not math.isnan(of_mean(np.arange(20.0))[0])


def test_students_t_is_that_of_tables() -> None:
    published = {1: 12.7062, 2: 4.3027, 3: 3.1824, 5: 2.5706, 10: 2.2281, 30: 2.0423, 120: 1.9799}
    for degrees, value in published.items():
        assert student(degrees) == pytest.approx(value, abs=6e-5)
    assert math.isnan(of_seeds(np.array([1.0]))[0])


def test_jobs_are_compared_by_iteration_time() -> None:
    job = {"name": "sum", "steps": [{"compute": "20us"}, {"all_reduce": {"bytes": "80KB"}}], "iterations": 2}
    scenario = cw.Scenario.load("examples/tiny.toml").with_({"traffic": [], "job": [job]})
    compared = cw.compare(scenario, ["udp", "dctcp"], seeds=2)
    table = compared.table()
    assert table.columns[:2].tolist() == ["seeds", "iteration us"] and "all mean" not in table
    times = compared.results[0].jobs.to_pandas()["time_ps"].astype(float)
    assert table["iteration us"]["udp"] == pytest.approx(times.mean() / 1e6)
    assert any("iteration us" in line for line in compared.said())


def test_advice_that_differs_in_numbers_alone_is_one_line(marked: Path) -> None:
    marked.write_text(POISSON.replace("load = 0.5", "load = 1.5"))
    done = call("compare", marked, "--transport", "dctcp", "--transport", "cubic", "--seeds", "2")
    keys = [line.partition("warning: ")[2].partition(": ")[0] for line in done.err.splitlines() if "warning: " in line]
    assert len(keys) == len(set(keys)) and "traffic[0].arrivals.poisson.load" in keys


@pytest.mark.slow
def test_the_picture_of_the_readme_is_what_its_command_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Path("examples/dcpim-vs-tcp.toml").resolve()
    shown = Path("docs/dcpim-vs-tcp.png").read_bytes()
    monkeypatch.chdir(tmp_path)
    transports = [word for name in ("dcpim", "dctcp", "cubic") for word in ("--transport", name)]
    assert call("compare", scenario, *transports, "--picture", "drawn.png").code == 0
    assert Path("drawn.png").read_bytes() == shown, "make run draws another: copy it to docs/"
