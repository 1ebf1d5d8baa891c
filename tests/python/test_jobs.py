"""Training jobs from Python: results, reports, other tools' files, and the comparison of schemes."""

from __future__ import annotations

import importlib.util
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
    assert "The critical path of train takes" in said.err
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
    idle = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.alone": True}), level=level)
    assert any("measure.alone: has no effect without a [[job]]" in said for said in idle.info["warnings"])


def test_a_live_run_measures_jobs_alone_too() -> None:
    scenario = cw.Scenario.load("examples/tiny.toml").with_({"traffic": [], "job": [RING], "measure.alone": True})
    jobs = cw.live(scenario).tables["jobs"].to_arrow().to_pandas()
    assert (jobs["alone_ps"] > 0).all() and jobs["slowdown"].notna().all()


def test_a_run_prints_the_slowdown_that_was_asked_for(tmp_path: Path) -> None:
    job = 'job = [{ name = "train", steps = [{ all_reduce = { bytes = "80KB" } }] }]'
    asked = ["--set", "traffic=[]", "--set", job, "--set", "measure.alone=true"]
    said = call("run", "examples/tiny.toml", *asked, "--out", str(tmp_path / "r"))
    assert said.code == 0, said.err
    assert "slowdown: time over that of the job alone" in said.err
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
    page = tmp_path / "page.md"
    page.write_text("<!-- training-32: begin -->\n<!-- training-32: end -->\n")
    text = found.write(page).read_text()
    assert text.splitlines()[1].startswith("1. all-to-all, 32 ranks: dctcp is the fastest with ")
    assert f"| dctcp | 32 | {table['all-to-all ms'].iloc[0]:.3g} | – |\n" in text and "With seed 1, at commit " in text
    costs = found.costs().iloc[0]
    assert 0 < costs["exposed ms"] <= table["all-to-all ms"].iloc[0] and costs["longest queue KB"] > 0
    assert f"| dctcp | 32 | {costs['exposed ms']:.3g} | {costs['longest queue KB']:.3g} | " in text


def test_calls_and_a_torus_are_part_of_the_comparison(tmp_path: Path) -> None:
    """Small buffers: the four jobs of 32 ranks each, two jobs, calls, a torus of 2 x 4 x 4."""
    jobs = ["all-reduce", "two jobs", "beside rpcs", "torus all-reduce"]
    chosen: dict[str, Any] = {"only": ["dctcp", "r2c2"], "ranks": [32], "jobs": jobs, "scale": 0.02}
    found = cw.compare_training(tmp_path / "c", **chosen, progress=False)
    runs = found.runs.set_index(["scheme", "work"])
    assert set(runs.index) == {
        *((scheme, work) for scheme in ("dctcp", "r2c2") for work in jobs),
        ("dctcp under aq", "two jobs"),
        ("dctcp beside harmony", "beside rpcs"),
    }
    assert not found.absent and found.ok and not found.unchanged
    # Two parts of 62 of the buffer, one after the other, on a network without other traffic.
    assert runs.loc[("dctcp", "all-reduce"), "time ms"] > 2 * 31 / 32 * 320e3 * 8 / 100e6
    calls = runs.loc[[("dctcp", "beside rpcs"), ("dctcp beside harmony", "beside rpcs")]]
    assert (calls["slowdown"] > 1).all() and (calls["rpc p99 us"] > 0.8).all()
    assert runs["slowdown"].notna().sum() == 3, "only where something is beside the job"
    said = found.said()
    assert any("Harmony's beside a job over DCTCP" in one for one in said)
    assert any("On a torus of three dimensions with 32 nodes" in one for one in said)
    page = found.report(tmp_path / "report.html").read_text()
    assert "Remote procedure calls beside the all-reduce" in page
    assert all(any(letter.isdigit() for letter in one) for one in said), "each sentence has its number"


def test_a_plane_that_dies_takes_its_share_and_no_more(tmp_path: Path) -> None:
    """Half of the planes: what sprays over all of them takes twice as long for what is left, within 10%; nothing takes
    less than the links allow; what does not repeat what is lost never ends.
    """
    from clearway.comparisons.outage import MARKS, least_ms
    from clearway.reports import marked

    begin, end = marked.marks(MARKS)

    found = cw.compare_outage(tmp_path / "o", only=["uet", "dcpim", "dctcp", "udp", "r2c2"], progress=False)
    table = found.table()
    # dcPIM admits what was lost again one phase later, which is 4% of the whole.
    for scheme, within in (("uet", 0.1), ("dcpim", 0.15)):
        row = table.loc[scheme]
        assert row["half of the planes ms"] == pytest.approx(row["doubled ms"], rel=within), scheme
        # One link of 16 between switches: less than a tenth of what is left.
        assert row["one link ms"] < 1.1 * row["whole ms"], scheme
    ended = table.drop("udp")
    assert (ended["half of the planes ms"] >= least_ms()).all()
    assert (ended["whole ms"] >= least_ms() / 2).all()
    assert table.loc["udp", ["whole ms", "half of the planes ms", "one link ms"]].isna().all()
    assert list(found.absent) == ["r2c2"] and found.ok and not found.unchanged
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    text = found.write(page).read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| udp | never | never | never | never |" in text
    assert "Not there: r2c2: treats a host and its switch as one node" in text
    page.write_text("nothing")
    with pytest.raises(ValueError, match="has no place for the table"):
        found.write(page)


def test_the_page_has_what_the_command_writes() -> None:
    """Every scheme of the comparison is in the table of docs/training-measured.md, or said not to take part."""
    from clearway.comparisons import outage
    from clearway.comparisons.all_schemes import contenders
    from clearway.reports import marked

    begin, end = marked.marks(outage.MARKS)
    text = marked.check("docs/training-measured.md", outage.MARKS)
    table = text[text.index(begin) : text.index(end)]
    lost = [one.name for one in contenders() if f"| {one.name} |" not in table and one.name not in table]
    assert not lost


def test_what_large_jobs_took_is_on_the_page_and_was_foreseen() -> None:
    spec = importlib.util.spec_from_file_location("training_page", "tests/training_page.py")
    assert spec is not None and spec.loader is not None
    training_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(training_page)
    record = json.loads(training_page.RECORD.read_text())
    page = training_page.PAGE.read_text()
    assert training_page.filled(page, record) == page
    taken = {key.split(", ")[0]: of for key, of in record.items() if key.endswith("packet")}
    assert "gpt" in taken
    for name, of in taken.items():
        foreseen = cw.Scenario.load(f"examples/{name}.toml").forecast(probe_seconds=0)
        # As docs/command-line.md promises: hops within 25%, memory within a factor of 2; Python alone has 140 MB.
        assert of["packet_hops"] == pytest.approx(foreseen.packet_hops, rel=0.25), name
        assert 0.5 < (of["peak_memory_bytes"] - 140e6) / foreseen.memory_bytes < 2, name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--work", "trainings"], "write flows, training or outage"),
        (["--work", "training"], "--work needs --all"),
        (["--all", "--work", "training", "--ranks", "100"], "a multiple of 16"),
        (["--all", "--ranks", "128"], "--ranks needs --work training"),
        (["--all", "--work", "training", "--scale", "0"], "write a number above 0"),
        (["--all", "--work", "training", "--job", "alltoall"], "'alltoall' is not a job of this comparison"),
        (["--all", "--job", "all-reduce"], "--job needs --work training"),
        (["--all", "--write", "docs/x.md"], "--write needs --work training or outage"),
        (["--all", "--work", "training", "--write", "README.md"], "README.md: has no place for the table"),
        (["--all", "--work", "outage", "--load", "0.3"], "--load has no effect on training jobs"),
        (["--all", "--work", "training", "--workload", "imc10"], "--workload has no effect on training jobs"),
    ],
)
def test_a_wrong_option_says_what_is_right(options: list[str], message: str, tmp_path: Path) -> None:
    said = call("compare", *options, "--out", str(tmp_path / "c"))
    assert said.code != 0
    assert message in said.err
