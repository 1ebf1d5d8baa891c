from __future__ import annotations

import io
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clearway as cw
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from clearway import _core
from clearway.sweeps import Simulation
from clearway.sweeps import store as stores
from clearway.sweeps.driver import Board, Running
from clearway.sweeps.points import Told
from clearway.sweeps.watch import Watch
from rich.console import Console
from sweep_tasks import Square
from test_cli import clearway
from test_report import Links

TINY = Path("examples/tiny.toml").resolve()


def tiny() -> cw.Scenario:
    return cw.Scenario.load(TINY)


def squares(folder: Path, count: int = 4, **more: Any) -> cw.Sweep:
    points = [cw.Point(Square(number, str(folder), **more), {"number": number}) for number in range(count)]
    return cw.Sweep(points, folder / "out")


def times(folder: Path) -> dict[int, int]:
    """How often each square was taken."""
    return {int(path.stem): len(path.read_text().splitlines()) for path in folder.glob("*.txt")}


def begun(store: Path) -> list[str]:
    lines = [json.loads(line) for path in store.glob("log/*") for line in path.read_text().splitlines()]
    return [line["run"] for line in lines if line["event"] == "begun"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> cw.SweepResult:
    base = tiny().with_({"traffic.ring.arrivals": {"poisson": {"load": 0.5}}, "traffic.ring.flows": 40})
    vary = {"transport": ["udp", "dcpim", {"dcpim": {"rounds": 2}}], "load": [0.3, 0.6], "seed": [1, 2]}
    return cw.sweep(base, vary, tmp_path_factory.mktemp("swept"), workers=2)


def test_a_sweep_has_every_combination_as_a_run_alone_has_it(swept: cw.SweepResult) -> None:
    table = swept.table()
    assert len(table) == 3 * 2 * 2 and set(table["status"]) == {"done"} and swept.ok
    assert list(table.columns[:4]) == ["transport", "load", "seed", "status"]
    alone = cw.run(
        tiny().with_(
            {"traffic.ring.arrivals": {"poisson": {"load": 0.6}}, "traffic.ring.flows": 40}, transport="dcpim", seed=2
        )
    )
    of_it = swept["dcpim, load 0.6, seed 2"]
    assert of_it.digest == alone.digest == table.loc["dcpim, load 0.6, seed 2", "digest"]
    row = cw.Comparison([alone]).table().iloc[0]
    for column in row.index:
        assert table.loc["dcpim, load 0.6, seed 2", column] == pytest.approx(row[column], nan_ok=True)
    assert of_it.info["peak_memory_bytes"] > 0
    assert len(list(swept.results())) == 12


def test_the_dataset_is_read_by_whoever_reads_parquet(swept: cw.SweepResult) -> None:
    frame = pd.read_parquet(swept.dataset / "flows")
    assert len(frame) == 12 * 40
    # `transport` is a column of the flows, that of each flow.
    assert set(frame["axis_transport"]) == {"udp", "dcpim", "dcpim rounds 2"} and set(frame["transport"]) == {
        "udp",
        "dcpim",
    }
    assert set(frame["load"]) == {0.3, 0.6} and frame["seed"].dtype == "int64"
    lazy = pl.scan_parquet(swept.dataset / "flows" / "**" / "*.parquet", hive_partitioning=True)
    counts = lazy.group_by("axis_transport", "load", "seed", "run").len().collect()
    assert len(counts) == 12 and set(counts["len"]) == {40}
    runs = pd.read_parquet(swept.folder / "runs.parquet").set_index("run")
    assert set(runs.index) == set(frame["run"].astype(str))
    assert runs["name"].tolist() == list(swept.table().index)
    field = pq.read_schema(next(swept.dataset.glob("flows/*/*.parquet"))).field("fct_ps")
    assert field.metadata[b"unit"] == b"ps"


def test_a_dataset_follows_its_sweep(tmp_path: Path) -> None:
    one = cw.sweep(tiny(), {"seed": [1, 2]}, tmp_path)
    assert len(list(one.dataset.glob("flows/*"))) == 2
    stamps = {path: path.stat().st_mtime_ns for path in one.dataset.glob("*/*/*.parquet")}
    other = cw.sweep(tiny(), {"seed": [2, 3, 4]}, tmp_path)
    assert set(pd.read_parquet(other.dataset / "flows")["seed"]) == {2, 3, 4}
    again = [path for path in other.dataset.glob("*/*/*.parquet") if path in stamps]
    assert again and all(path.stat().st_mtime_ns == stamps[path] for path in again), "what was right is left alone"
    assert len(begun(tmp_path / "store")) == 4, "seed 2 was known"


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    a = cw.sweep(tiny(), {"seed": [1, 2]}, tmp_path / "a", store=tmp_path / "store")
    # Names change no result; and one content twice in a sweep is run once.
    points = [cw.Point(tiny().with_(seed=seed, name=f"mine {seed}"), {"mine": seed}) for seed in (1, 2, 3)]
    points.append(cw.Point(tiny().with_(seed=3), {"mine": 4}))
    b = cw.Sweep(points, tmp_path / "b", store=tmp_path / "store").run()
    assert len(begun(tmp_path / "store")) == 3
    assert a.table()["digest"].tolist() == b.table()["digest"].tolist()[:2]
    assert b.table()["digest"].iloc[2] == b.table()["digest"].iloc[3]
    assert sorted(pd.read_parquet(b.dataset / "flows")["mine"].unique()) == [1, 2, 3, 4]
    assert pd.read_parquet(tmp_path / "b" / "runs.parquet")["run"].is_unique


def test_what_makes_a_result_makes_its_key(tmp_path: Path) -> None:
    key = Simulation.of(tiny()).key
    assert Simulation.of(tiny().with_(name="other")).key == key
    assert Simulation.of(tiny().with_(seed=2)).key != key

    class Said(Simulation):
        """Says something else of a result."""

        def row(self, folder: Path) -> dict[str, Any]:
            return {}

    class Ran(Simulation):
        """Runs in another way."""

        def run(self, folder: Path, threads: int, told: Told) -> None: ...

    plain = Simulation.of(tiny())
    assert Said(plain.toml).key == key != Ran(plain.toml).key
    trace = "start_ns,src,dst,bytes\n0,0,1,1000\n"
    scenario = 'transport = "udp"\nfabric.star.hosts = 2\n[[traffic]]\ntrace = { csv = { path = "flows.csv" } }\n'
    keys = []
    for size in (1000, 2000, 1000):
        (tmp_path / "flows.csv").write_text(trace.replace("1000", str(size)))
        keys.append(Simulation.of(cw.Scenario.from_toml(scenario, folder=tmp_path)).key)
    assert keys[0] == keys[2] != keys[1], "a file counts by what is in it"
    # The file goes with the run.
    swept = cw.Sweep([cw.Point(cw.Scenario.from_toml(scenario, folder=tmp_path), {"n": 1})], tmp_path / "out")
    (tmp_path / "flows.csv").unlink()
    result = swept.run()["n 1"]
    assert result.flows["bytes"].tolist() == [1000] and "flows.csv" in result.scenario_toml


@pytest.mark.parametrize("said", ["", ", ranks = 2"])
def test_the_files_of_a_jobs_trace_go_with_the_run(said: str, tmp_path: Path) -> None:
    shutil.copytree("tests/python/chakra", tmp_path / "t")
    chakra = f'path = "t/two", groups = "t/groups.json"{said}'
    toml = f"fabric.star.hosts = 2\n[[job]]\ntrace = {{ chakra = {{ {chakra} }} }}\n"
    scenario = cw.Scenario.from_toml(toml, folder=tmp_path)
    whole = cw.run(scenario)
    swept = cw.Sweep([cw.Point(scenario, {"n": 1})], tmp_path / "out")
    shutil.rmtree(tmp_path / "t")
    assert swept.run()["n 1"].digest == whole.digest


def test_a_failed_run_is_reported_and_tried_again_alone(tmp_path: Path) -> None:
    points = [
        cw.Point(Square(number, str(tmp_path), ends="fails" if number == 2 else ""), {"number": number})
        for number in range(4)
    ]
    sweep = cw.Sweep(points, tmp_path / "out")
    swept = sweep.run()
    assert swept.failed == {"number 2": "2 has no square today"} and not swept.ok
    assert swept.table()["square"].dropna().tolist() == [0, 1, 9]
    assert times(tmp_path) == dict.fromkeys(range(4), 1)
    assert sweep.run().failed == swept.failed and times(tmp_path) == dict.fromkeys(range(4), 1), "not again by itself"
    sweep.run(retry_failed=True)
    assert times(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 1}
    said = json.loads(next((tmp_path / "out" / "store" / "failed").iterdir()).read_text())
    assert said["error"] == "2 has no square today" and said["attempt"] == 2


@pytest.mark.parametrize(("ends", "status", "times_run"), [("dies", "failed", 2), ("dies once", "done", 2)])
def test_a_run_whose_worker_dies_is_done_again_once_and_stops_no_other(
    tmp_path: Path, ends: str, status: str, times_run: int
) -> None:
    points = [
        cw.Point(Square(number, str(tmp_path), ends=ends if number == 1 else ""), {"number": number})
        for number in range(4)
    ]
    swept = cw.Sweep(points, tmp_path / "out").run(workers=2)
    assert swept.status == {"number 0": "done", "number 1": status, "number 2": "done", "number 3": "done"}
    assert times(tmp_path) == {0: 1, 1: times_run, 2: 1, 3: 1}
    assert all("signal 9" in error for error in swept.failed.values())


def test_what_an_audit_finds_is_told_apart(tmp_path: Path) -> None:
    swept = squares(tmp_path, ends="audit").run()
    assert set(swept.status.values()) == {"audit"} and not swept.ok
    assert swept.troubles["number 0"] == "audit: odd"
    assert "failed their audit" in swept.report().read_text()


def test_an_unforeseen_error_is_kept_with_where_it_came_from(tmp_path: Path) -> None:
    point = cw.Point(Square("three", str(tmp_path)), {"number": "three"})  # type: ignore[arg-type]
    swept = cw.Sweep([point], tmp_path / "out").run()
    assert "TypeError" in swept.failed["three"] and "sweep_tasks.py" in swept.failed["three"]


def test_everything_is_checked_before_anything_runs(tmp_path: Path) -> None:
    points = [
        cw.Point(tiny().with_(seed=1), {"n": 1}),
        cw.Point(tiny().with_({"traffic.ring.pattern.stride.by": 8}), {"n": 2}),
    ]
    sweep = cw.Sweep(points, tmp_path / "out")
    with pytest.raises(cw.ScenarioError, match="in the run 'n 2'"):
        sweep.run()
    assert not (tmp_path / "out").exists()


def test_points_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two points have the name 'n 1'"):
        cw.Sweep([cw.Point(tiny(), {"n": 1}), cw.Point(tiny(), {"n": 1})], tmp_path)


def test_a_claim_is_its_drivers_until_that_one_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "HEARTBEAT_SECONDS", 0.02)
    one, other = stores.Store(tmp_path).open(), stores.Store(tmp_path).open()
    assert one.claim("r1") == 1 and other.claim("r1") is None
    assert other.claim("r2") == 1
    one.close()
    assert other.claim("r1") == 2, "given up"
    assert other.claim("r1") is None, "its own"
    # Of another machine, whose locks can't be seen, the heartbeat tells.
    far = stores.Store(tmp_path).open()
    (far.home / "lock").write_text(json.dumps({"machine": "far away"}))
    assert far.claim("r3") == 1
    monkeypatch.setattr(stores, "DEAD_SECONDS", 0.3)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        assert other.claim("r3") is None, "it beats"
        time.sleep(0.02)
    far._ended.set()
    while (claimed := other.claim("r3")) is None:
        assert time.monotonic() < end + 10
        time.sleep(0.02)
    assert claimed == 2
    # One that was taken for dead and buried keeps nothing any more.
    third = stores.Store(tmp_path).open()
    (tmp_path / "drivers" / far.token / "lock").unlink()
    for file in far.home.iterdir():
        file.unlink()
    far.home.rmdir()
    with pytest.raises(stores.Lost):
        far.fail("r3", stores.Failure(1, "", ""))
    for driver in (other, far, third):
        driver.close()


def test_the_code_is_in_the_key_and_not_only_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit says nothing of edits. Neither a sweep nor `compare --continue` takes over what other code has made."""
    key, before = Simulation.of(tiny()).key, {}
    for source in ("0000000000000000", "0000000000000000", "1111111111111111"):
        monkeypatch.setattr(_core, "SOURCE", source)
        cw.compare(tiny(), folder=tmp_path, keep=True, progress=False)
        before[source] = (tmp_path / "tiny" / "run.json").stat().st_ino
        assert len({key, Simulation.of(tiny()).key}) == 2
        key = key if source[0] == "0" else Simulation.of(tiny()).key
    assert len(set(before.values())) == 2
    cw.compare(tiny(), folder=tmp_path, keep=True, progress=False)
    assert (tmp_path / "tiny" / "run.json").stat().st_ino == before["1111111111111111"], "the same code keeps it"


def test_a_comparison_repeats_what_has_another_trace(tmp_path: Path) -> None:
    text = 'transport = "udp"\nfabric.star.hosts = 2\n[[traffic]]\ntrace = { csv = { path = "flows.csv" } }\n'
    for size in (1000, 1000, 2000):
        (tmp_path / "flows.csv").write_text(f"start_ns,src,dst,bytes\n0,0,1,{size}\n")
        scenario = cw.Scenario.from_toml(text, folder=tmp_path)
        [result] = cw.compare(scenario, folder=tmp_path / "out", keep=True, progress=False).results
        assert result.flows["bytes"].tolist() == [size]


def _cut(folder: Path) -> None:
    content = (folder / "flows.parquet").read_bytes()
    (folder / "flows.parquet").write_bytes(content[: len(content) // 2])


def _altered(folder: Path) -> None:
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"digest": "0" * 16}))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a table is cut off": (_cut, r"flows\.parquet: its checksum"),
    "run.json is cut off": (lambda at: (at / "run.json").write_text("{"), r"run\.json"),
    "a table is missing": (lambda at: (at / "links.parquet").unlink(), r"links\.parquet is missing"),
    "run.json is missing": (lambda at: (at / "run.json").unlink(), r"run\.json"),
    "the digest is another": (_altered, r"run\.json: it is not what was written"),
    "the scenario is another": (lambda at: (at / "scenario.toml").write_text("fabric.star.hosts = 2"), "scenario.toml"),
    "it is empty": (lambda at: [path.unlink() for path in at.iterdir()], "is not|is damaged"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_result_is_computed_again_with_a_warning(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, words = DAMAGES[what]
    point = cw.Point(tiny(), {"n": 1})
    sweep = cw.Sweep([point], tmp_path / "swept")
    digest = sweep.run(progress=False)["n 1"].digest
    compared = tmp_path / "compared"
    cw.compare(tiny(), folder=compared, progress=False)
    assert capsys.readouterr().err == ""
    for place in (sweep.store / "runs" / point.key, compared / "tiny"):
        damage(place)
    assert sweep.result().status == {"n 1": "missing"}
    assert re.search(words, capsys.readouterr().err)
    again = sweep.run(progress=False)
    assert again.ok and again["n 1"].digest == digest and begun(sweep.store) == [point.key] * 2
    said = capsys.readouterr().err
    assert re.search(rf"warning: n 1: .*{point.key}.*({words}).*computed again", said), said
    assert not list((sweep.store / "drivers").iterdir())
    if (compared / "tiny" / "run.json").exists():
        [kept] = cw.compare(tiny(), folder=compared, keep=True, progress=False).results
        assert kept.digest == digest == cw.load(compared / "tiny").digest
        assert re.search(f"({words}).*computed again", capsys.readouterr().err)


def test_a_result_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    driver = stores.Store(tmp_path).open()
    for text in ("first", "second"):
        scratch = driver.scratch("r1")
        scratch.mkdir()
        (scratch / "text").write_text(text)
        assert driver.keep("r1", scratch) == (text == "first")
    assert (driver.place("r1") / "text").read_text() == "first"
    driver.close()


FILE = """\
scenario = "tiny.toml"

[vary]
transport = ["udp", { dcpim = { rounds = 2 } }]
fabric.star.hosts = { from = 4, to = 8, step = 4, name = "size" }
seed = { from = 1, to = 2 }

[[zip]]
traffic.ring.sizes.constant = ["10KB", "100KB"]
traffic.ring.pattern.stride.by = [1, 2]

[[skip]]
transport = "udp"
size = 8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(TINY.read_text())
    path = tmp_path / "sweep.toml"
    path.write_text(FILE)
    return path


def test_a_file_crosses_zips_and_skips(file: Path) -> None:
    sweep = cw.Sweep.load(file)
    assert sweep.folder == Path("out/sweep")
    assert len(sweep.points) == (2 * 2 - 1) * 2 * 2
    labels = [point.labels for point in sweep.points]
    assert list(labels[0]) == ["transport", "size", "seed", "constant", "by"]
    assert not any(label["transport"] == "udp" and label["size"] == 8 for label in labels)
    assert {(label["constant"], label["by"]) for label in labels} == {("10KB", 1), ("100KB", 2)}
    sweep.check()


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (("[[zip]]", "[[zap]]"), 8, '"zap" is not a known key here; did you mean "zip"?'),
        (('"udp", {', '"upd", {'), 4, 'did you mean "udp"'),
        (("rounds = 2", "rouns = 2"), 4, 'did you mean "rounds"'),
        (("seed = {", "sed = {"), 6, 'did you mean "seed"'),
        (("from = 4", "from = 0"), 5, "0"),
        (("step = 4", "stp = 4"), 5, 'did you mean "step"'),
        (("step = 4", "factor = 1"), 5, "factor must be above 1"),
        (("to = 2", 'to = "2KB"'), 6, "in the same unit"),
        (("by = [1, 2]", "by = [1, 2, 3]"), 8, "equally many"),
        (("by = [1, 2]", "by = [1, 8]"), 10, "8"),
        (("size = 8", "sise = 8"), 14, 'did you mean "size"'),
        (('name = "size"', 'labels = ["small"]'), 5, "one for each value"),
        (("seed = { from = 1, to = 2 }", "seed = 7"), 6, "neither a list of values"),
        (("seed = { from = 1, to = 2 }", "seed = [1, 1]"), 6, "have the same label"),
        (("seed = { from = 1, to = 2 }", "seed = ["), None, "line"),
        (("seed = { from = 1, to = 2 }", "load = [0.5]"), 6, "no traffic class"),
        (("seed = { from = 1, to = 2 }", 'load = ["much"]'), 6, "load"),
        (('scenario = "tiny.toml"', ""), None, "name a file"),
        (('scenario = "tiny.toml"', 'scenario = "tinny.toml"'), None, "could not be read"),
        (("[vary]", "[set]\nseed = -1\n[vary]"), 4, "seed"),
        # A date was a traceback.
        (("[vary]", "[set]\nseed = 1979-05-27\n[vary]"), 4, "expected a whole number"),
        (("[[zip]]", "[cluster]\nlauncher = 3\n[[zip]]"), 9, "is not text"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_its_line(
    file: Path, change: tuple[str, str], line: int | None, said: str
) -> None:
    assert change[0] in FILE
    file.write_text(FILE.replace(*change))
    done = clearway("sweep", file, "--plan")
    assert done.returncode == 2, done.stdout
    assert said in done.stderr, done.stderr
    if line is not None:
        assert f"{file}:{line}: " in done.stderr, done.stderr


def test_a_scenario_may_stand_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "in.toml"
    text = '# ours\n[vary]\nseed = [1, 2]\n\n[scenario]\ntransport = "udp"\n\n[scenario.fabric.star]\nhosts = 4\n\n' + (
        '[[scenario.traffic]]\nsizes = { constant = "1KB" }\narrivals = "all_at_once"\n'
    )
    path.write_text(text)
    assert [point.name for point in cw.Sweep.load(path).points] == ["seed 1", "seed 2"]
    path.write_text(text.replace("hosts = 4", "hots = 4"))
    with pytest.raises(cw.ScenarioError, match=re.escape(f"{path}:9: fabric.star.hots")):
        cw.Sweep.load(path)


def test_levels_are_varied_as_keys_are(file: Path, tmp_path: Path) -> None:
    file.write_text('scenario = "tiny.toml"\nvary.level = ["packet", "flow"]\n')
    swept = cw.Sweep.load(file, tmp_path / "out").run()
    assert swept.ok and [result.level for _, result in swept.results()] == ["packet", "flow"]
    assert "All combinations" in swept.report().read_text()
    file.write_text('scenario = "tiny.toml"\nset.level = "flow"\nvary.seed = [1]\n')
    assert cw.Sweep.load(file, tmp_path / "out").run()["seed 1"].level == "flow"
    file.write_text('scenario = "tiny.toml"\nvary.level = ["packet", "flows"]\n')
    with pytest.raises(cw.ScenarioError, match=re.escape(f"{file}:2: vary.level")):
        cw.Sweep.load(file)


def test_several_scenarios_are_an_axis(file: Path) -> None:
    (file.parent / "other.toml").write_text(TINY.read_text().replace('"tiny"', '"other"'))
    file.write_text('scenario = ["tiny.toml", "other.toml"]\nvary.seed = [1, 2]\n')
    names = [point.name for point in cw.Sweep.load(file).points]
    assert names == ["tiny, seed 1", "tiny, seed 2", "other, seed 1", "other, seed 2"]


def test_the_command_runs_and_goes_on(file: Path, tmp_path: Path) -> None:
    planned = clearway("sweep", file, "--plan", "--out", tmp_path / "s")
    assert planned.returncode == 0 and "12 runs, 12 of them to do" in planned.stderr
    assert not (tmp_path / "s").exists()
    done = clearway("sweep", file, "--workers", 2, "--out", tmp_path / "s")
    assert done.returncode == 0, done.stderr
    assert "[12/12] done in" in done.stderr and (tmp_path / "s" / "report.html").exists()
    assert "12 runs, 0 of them to do" in clearway("sweep", file, "--plan", "--out", tmp_path / "s").stderr
    # A point more is a run more.
    file.write_text(FILE.replace("to = 2 }", "to = 3 }"))
    again = clearway("sweep", file, "--out", tmp_path / "s")
    assert again.returncode == 0 and again.stderr.count("done in") == 6, again.stderr


def test_who_watches_sees_what_runs_and_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    board = Board({f"r{number}": f"load {number}" for number in range(10)}, lanes=2, waiting=5)
    assert board.seconds_left() is None, "not known yet"
    # Half done after 5 s: it takes 10. So do the five to come, two at a time, and one that has just begun.
    board.running = {
        "r1": Running(1, began=now - 5, share=0.5, words="7 of 14 flows", where="process 7"),
        "r2": Running(1, began=now),
    }
    assert board.seconds_left() == pytest.approx((5 + 10 + 5 * 10) / 2)
    # Those that have ended took 4 s; what runs goes by itself.
    board.took, board.done = [3.0, 5.0], {"r3", "r4"}
    assert board.seconds_left() == pytest.approx((5 + 4 + 5 * 4) / 2)
    out = io.StringIO()
    Console(file=out, width=120).print(Watch(board, False)._table())
    for words in ("load 1", "7 of 14 flows", "process 7", "2 of 10 done, 2 running, about 14 s left"):
        assert words in out.getvalue()


def test_the_report_shows_each_line_and_needs_no_network(swept: cw.SweepResult, tmp_path: Path) -> None:
    page = swept.report(tmp_path / "r.html").read_text()
    links = Links()
    links.feed(page)
    assert links.external == []
    assert "<h2>Slowdown against load, by transport</h2>" in page
    pictures = re.findall(r'<div class=charts role=img aria-label="([^"]*)"', page)
    assert len(pictures) == 2 and all("Lines: udp, dcpim, dcpim rounds 2." in said for said in pictures)
    assert all(f"medium flows: {what}" in pictures[0] for what in ("mean", "99th percentile"))
    for name in ("udp", "dcpim", "dcpim rounds 2"):
        assert f"</svg>{name}</label>" in page
    for digest in swept.table()["digest"]:
        assert digest in page


def test_a_report_has_a_page_whatever_the_axes(tmp_path: Path) -> None:
    for number, vary in enumerate(
        ({"seed": [1]}, {"transport": ["udp", "dcpim"]}, {"fabric.star.hosts": [4, 8], "host.mtu": ["1KB", "9KB"]})
    ):
        result = cw.sweep(tiny(), vary, tmp_path / str(number), store=tmp_path / "store")
        assert result.ok and "All combinations" in result.report().read_text()
    nothing = squares(tmp_path).result()
    assert "have not been run" in nothing.report(tmp_path / "none.html").read_text()
    assert set(nothing.table()["status"]) == {"missing"}


def test_seeds_of_the_command_line_replace_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    tiny = Path("examples/tiny.toml").resolve()
    file.write_text(f'scenario = "{tiny}"\n[vary]\nfabric.star.hosts = [4, 8]\nseed = [1, 2]\n')
    for words, seeds in (
        (("--seeds", "3"), [1, 2, 3]),
        (("--seed", "9"), [9]),
        (("--seed", "9", "--seed", "4"), [9, 4]),
    ):
        done = clearway("sweep", file, "--plan", "--json", "--out", tmp_path / "out", *words)
        assert done.returncode == 0, done.stderr
        named = [f"hosts {hosts}, seed {seed}" for hosts in (4, 8) for seed in seeds]
        assert [name for name in named if name not in done.stdout] == [] and f'"runs": {len(named)}' in done.stdout
    file.write_text(
        file.read_text().replace("seed = [1, 2]", "") + "[[zip]]\nseed = [1, 2]\nreroute_delay = ['1us', '2us']\n"
    )
    done = clearway("sweep", file, "--plan", "--seeds", "3", "--out", tmp_path / "out")
    assert done.returncode == 2 and "seed varies together with other keys here" in done.stderr
