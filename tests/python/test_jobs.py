"""Training jobs from Python: results, reports, other tools' files, and the comparison of schemes."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("level", ["packet", "flow"])
def test_a_job_beside_another_is_measured_against_itself_alone(level: str) -> None:
    sums = {"steps": [{"all_reduce": {"bytes": "2920000B"}}], "ranks": 2}
    jobs = [{"name": "one", **sums}, {"name": "two", **sums}]
    both = cw.Scenario.load("examples/tiny.toml").with_({"traffic": [], "job": jobs})
    table = cw.run(both.with_({"measure.alone": True}), level=level).jobs.to_pandas()
    # Both use the same two links all the time.
    assert table["slowdown"].tolist() == pytest.approx([2, 2], rel=0.02)
    assert (table["slowdown"] == table["time_ps"] / table["alone_ps"]).all()
    assert cw.run(both, level=level).jobs.to_pandas()[["alone_ps", "slowdown"]].isna().all(axis=None)
    with pytest.raises(cw.ScenarioError, match=r"measure\.alone: has no effect without a \[\[job\]\]"):
        cw.Scenario.load("examples/tiny.toml").with_({"measure.alone": True})


def test_a_run_prints_the_slowdown_that_was_asked_for(tmp_path: Path) -> None:
    job = 'job = [{ name = "train", steps = [{ all_reduce = { bytes = "80KB" } }] }]'
    asked = ["--set", "traffic=[]", "--set", job, "--set", "measure.alone=true"]
    said = call("run", "examples/tiny.toml", *asked, "--out", str(tmp_path / "r"))
    assert said.code == 0, said.err
    assert "slowdown: time over that of the job alone" in said.out
    assert "slowdown" in (tmp_path / "r" / "report.html").read_text()


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


@pytest.mark.parametrize("tool", ["goal", "chakra"])
def test_a_job_that_is_written_is_the_same_when_it_is_read(tool: str, tmp_path: Path) -> None:
    """One with two channels and collectives beside computation: the same messages and computations. One in which no two
    messages are under way between the same ranks: the same time, too, as far as a unit of the format is exact.
    """
    said = call("job", "examples/training.toml", f"--{tool}", str(tmp_path / "train"), "--json")
    assert said.code == 0, said.err
    assert len(json.loads(said.out)["written"]) == (1 if tool == "goal" else 16)
    base = cw.Scenario.load("examples/training.toml").with_({"traffic": [], "fabric": {"star": {"hosts": 16}}})
    written, read = cw.run(base), cw.run(base.with_({"job": [again(tool, tmp_path / "train")]}))
    sent = [sorted(of.flows.to_pandas()[["src", "dst", "bytes"]].itertuples(index=False)) for of in (written, read)]
    assert sent[0] == sent[1]
    computed = [of.ranks.to_pandas().query("what == 'compute'") for of in (written, read)]
    assert len(computed[0]) == len(computed[1]) == 2 * 2 * 16
    simple = base.with_({"job": [{**RING, "iterations": 2}]})
    place = {tool: tmp_path / "ring"}
    assert simple.write_job(goal=place.get("goal"), chakra=place.get("chakra"))
    ends = [
        float(cw.run(one).jobs.to_pandas()["end_ps"].max())
        for one in (simple, simple.with_({"job": [again(tool, tmp_path / "ring")]}))
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-4)
    twice = call("job", "examples/training.toml", f"--{tool}", str(tmp_path / "train"))
    assert twice.code == 2
    assert "exists already" in twice.err


def again(tool: str, path: Path) -> dict[str, Any]:
    """A job that is read from what was written."""
    return {"name": "train", "trace": {tool: {"path": str(path)}}}


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    assert "say what to write" in call("job", "examples/training.toml").err
    assert "add a [[job]]" in call("job", "examples/tiny.toml", "--goal", str(tmp_path / "x")).err
    other = call("job", "examples/training.toml", "--goal", str(tmp_path / "x"), "--job", "tain")
    assert 'none is called "tain"; there are "train"' in other.err
    lost = call("job", "examples/training.toml", "--goal", str(tmp_path / "none" / "x"))
    assert "cannot be written" in lost.err
    # Of Chakra's files none stays if one cannot be written.
    (tmp_path / "t.3.et").write_text("mine")
    assert call("job", "examples/training.toml", "--chakra", str(tmp_path / "t")).code == 2
    assert [file.name for file in tmp_path.iterdir()] == ["t.3.et"]


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
