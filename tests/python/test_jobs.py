"""Training jobs from Python: results, reports, other tools' files, and the comparison of schemes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from called import call

RING = {"name": "train", "steps": [{"compute": "20us"}, {"all_reduce": {"name": "sum", "bytes": "584000B"}}]}


@pytest.fixture(scope="module")
def result() -> cw.Result:
    tiny = cw.Scenario.load("examples/tiny.toml")
    return cw.run(tiny.with_({"traffic": [], "job": [{**RING, "ranks": 4, "iterations": 2}]}))


def test_an_iteration_is_its_computation_and_what_is_exposed(result: cw.Result) -> None:
    jobs = result.jobs.to_pandas()
    assert jobs["iteration"].tolist() == [0, 1]
    assert (jobs["time_ps"] == jobs["computing_ps"] + jobs["exposed_ps"]).all()
    parts = [name for name in jobs.columns if name.startswith("critical_")]
    assert (jobs[parts].sum(axis="columns") == jobs["time_ps"]).all()
    # Six steps of 146 kB at 100 Gbps; wires and the switch add a microsecond each.
    assert jobs["time_ps"].iloc[0] / 1e6 == pytest.approx(20 + 6 * (146_000 + 100 * 40) * 8e-5, rel=0.1)


def test_the_critical_path_leads_from_the_begin_to_the_end_without_a_gap(result: cw.Result) -> None:
    path = result.critical.to_pandas()
    assert path["begin_ps"].iloc[0] == 0
    assert path["end_ps"].iloc[-1] == result.jobs.to_pandas()["end_ps"].max()
    assert (path["begin_ps"].to_numpy()[1:] == path["end_ps"].to_numpy()[:-1]).all()
    # A message on it is a flow, from the host of its rank.
    flows, messages = result.flows.to_pandas().set_index("flow"), path[path["part"] == "message"]
    assert (flows.loc[messages["flow"], "src"].to_numpy() == messages["rank"].to_numpy()).all()
    assert (flows.loc[messages["flow"], "delivered_ps"].to_numpy() == messages["end_ps"].to_numpy()).all()


def test_a_report_draws_each_rank_and_says_what_took_the_time(result: cw.Result, tmp_path: Path) -> None:
    page = result.report(tmp_path / "report.html").read_text()
    assert 'id="training-jobs"' in page
    assert "The critical path of train takes" in page


def test_a_run_prints_its_jobs(tmp_path: Path) -> None:
    job = 'job = [{ name = "train", steps = [{ all_reduce = { bytes = "80KB" } }] }]'
    said = call("run", "examples/tiny.toml", "--set", "traffic=[]", "--set", job, "--out", str(tmp_path / "r"))
    assert said.code == 0, said.err
    assert "The critical path of train takes" in said.out
    wrong = call("run", "examples/tiny.toml", "--set", job.replace("all_reduce", "all_redduce"))
    assert wrong.code != 0
    assert 'did you mean "all_reduce"' in wrong.err


def test_the_same_job_at_flow_level_is_close_where_nothing_is_congested(result: cw.Result) -> None:
    scenario = cw.Scenario.load("examples/tiny.toml").with_({"traffic": [], "job": [{**RING, "ranks": 4}]})
    packet, flow = cw.run(scenario), cw.run(scenario, level="flow")
    assert flow.jobs["time_ps"][0] == pytest.approx(packet.jobs["time_ps"][0], rel=0.01)


def test_a_trace_of_another_tool_is_run_and_a_broken_one_is_named(tmp_path: Path) -> None:
    goal = tmp_path / "ping.goal"
    goal.write_text("num_ranks 2\nrank 0 {\nl1: send 80000b to 1 tag 1\n}\nrank 1 {\nl1: recv 80000b from 0 tag 1\n}\n")
    scenario = tmp_path / "s.toml"
    scenario.write_text('fabric.star = { hosts = 2 }\n[[job]]\ntrace = { goal = { path = "ping.goal" } }\n')
    assert cw.run(cw.Scenario.load(scenario)).flows["bytes"].tolist() == [80_000]
    goal.write_text(goal.read_text().replace("recv", "recieve"))
    with pytest.raises(cw.ScenarioError, match=r"job\[0\]\.trace: .*ping\.goal, line 6"):
        cw.Scenario.load(scenario)


def test_schemes_are_compared_under_training(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"only": ["dctcp"], "ranks": [32], "jobs": ["all-to-all"]}
    found = cw.compare_training(tmp_path / "c", **chosen, progress=False)
    table = found.table()
    assert list(table.index) == [("dctcp", 32)]
    assert 31 * 250_000 * 8 / 100e6 < table["all-to-all ms"].iloc[0] < 4 * 31 * 250_000 * 8 / 100e6
    assert found.ok
    assert "What it says" in found.report(tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--work", "trainings"], "write flows or training"),
        (["--work", "training"], "--work needs --all"),
        (["--all", "--work", "training", "--ranks", "100"], "a multiple of 16"),
        (["--all", "--ranks", "128"], "--ranks needs --work training"),
        (["--all", "--work", "training", "--workload", "imc10"], "--workload has no effect on training jobs"),
    ],
)
def test_a_wrong_option_says_what_is_right(options: list[str], message: str, tmp_path: Path) -> None:
    said = call("compare", *options, "--out", str(tmp_path / "c"))
    assert said.code != 0
    assert message in said.err
