"""Faults of the past: each of these tests has been seen to fail."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import time
from html import unescape
from pathlib import Path
from typing import Any

import clearway as cw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from called import call
from clearway import _core
from test_cli import PROGRAM

TINY = Path("examples/tiny.toml").resolve()

# Nothing arrives within a nanosecond.
EMPTY = """
name = "empty"
transport = "udp"
[fabric.star]
hosts = 2
[[traffic]]
name = "none"
sizes = { constant = "1MB" }
arrivals = { poisson = { load = 0.0001 } }
duration = "1ns"
"""

# A minute and more of work, whatever is done with it.
LONG = """
name = "long"
transport = "udp"
[fabric.leaf_spine]
racks = 4
hosts_per_rack = 8
spines = 2
[[traffic]]
name = "web"
sizes = "websearch"
arrivals = { poisson = { load = 0.5 } }
flows = 100000
"""

SLOW = """
name = "slow"
transport = "udp"
[fabric.star]
hosts = 2
rate = "50Mbps"
propagation = "400us"
switch_delay = "900us"
[[traffic]]
name = "few"
sizes = { constant = "30KB" }
arrivals = { periodic = { load = 0.1 } }
flows = 2000
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("empty", EMPTY), ("long", LONG), ("slow", SLOW)):
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "tiny.toml").write_text(TINY.read_text())
    (tmp_path / "sweep.toml").write_text('scenario = "long.toml"\n[vary]\nseed = [1, 2]\n')
    return tmp_path


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that begins to simulate has begun too early."""

    def simulate(*_: Any) -> None:
        raise AssertionError("it has been simulated")

    for name in ("simulate", "estimate", "live"):
        monkeypatch.setattr(_core, name, simulate)


# 2


def test_a_run_without_flows_has_a_table_and_a_page(place: Path) -> None:
    for level in ("packet", "flow"):
        done = call("run", "empty.toml", "--out", level, "--level", level)
        assert done.code == 0 and "empty" in done.out, done.err
        assert "no flows" in Path(level, "report.html").read_text()
    assert cw.load("packet").slowdown(by="size")["flows"].tolist() == [0, 0, 0]
    assert call("compare", "empty.toml", "tiny.toml").code == 0


def test_a_run_without_flows_spoils_no_sweep(place: Path) -> None:
    Path("swept.toml").write_text('scenario = "empty.toml"\n[vary]\ntraffic.none.duration = ["1ns", "10ms"]\n')
    done = call("sweep", "swept.toml")
    assert done.code == 0, done.err
    assert call("sweep", "swept.toml").code == 0


# 3


def test_a_comparison_of_everything_on_smaller_ground_runs_or_says_why_not(place: Path) -> None:
    few = ["--load", 0.5, "--workload", "imc10", "--fabric", "leaf-spine", "--duration", "20us", "--sustained", "none"]
    done = call("compare", "--all", "--transport", "udp", *few, "--set", "fabric.leaf_spine.racks=4", "--out", "all")
    assert done.code == 0 and "udp" in done.out, done.out + done.err
    assert "fairness on the whole leaf-spine" in Path("all", "report.html").read_text(), "racks 1 to 8 send there"
    done = call(
        "compare", "--all", "--transport", "udp", *few, "--set", "traffic.all.senders=racks 1-99", "--out", "none"
    )
    assert done.code == 2 and "udp cannot run on this fabric" in done.err and "rack" in done.err, done.err


# 4


@pytest.mark.parametrize("command", ["run", "compare", "sustain", "live", "sweep", "all"])
@pytest.mark.parametrize("kind", ["below a file", "a file", "a link to nothing", "somebody's folder"])
def test_a_place_for_results_that_will_not_do_is_refused_before_work(
    command: str, kind: str, place: Path, no_work: None
) -> None:
    (place / "file").write_text("mine")
    (place / "link").symlink_to("nowhere")
    (place / "folder").mkdir()
    (place / "folder" / "thesis.txt").touch()
    out = {"below a file": "file/out", "a file": "file", "a link to nothing": "link", "somebody's folder": "folder"}[
        kind
    ]
    if kind == "somebody's folder" and command in ("compare", "sustain", "live", "sweep", "all"):
        pytest.skip("results get folders of their own in it")
    arguments = {"all": ["compare", "--all"], "sweep": ["sweep", "sweep.toml"]}.get(command, [command, "long.toml"])
    done = call(*arguments, "--out", out)
    assert done.code == 2 and out in done.err, done.err
    assert sorted(os.listdir(place / "folder")) == ["thesis.txt"] and (place / "file").read_text() == "mine"


def test_a_link_to_a_folder_is_followed(place: Path) -> None:
    (place / "there").mkdir()
    (place / "out").symlink_to("there")
    assert call("run", "tiny.toml", "--out", "out").code == 0
    assert (place / "out").is_symlink() and cw.load("there").ok


# 5


def test_a_file_that_is_not_ours_is_never_deleted(place: Path, result: cw.Result) -> None:
    folder = result.save(place / "r")
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"thesis\.txt"):
        result.save(folder)
    assert (folder / "thesis.txt").read_text() == "years of work"
    done = call("run", "tiny.toml", "--out", folder)
    assert done.code == 2 and "thesis.txt" in done.err
    assert cw.load(folder).digest == result.digest


def test_a_dataset_that_follows_its_sweep_leaves_what_is_not_its_own(place: Path) -> None:
    swept = cw.sweep(cw.Scenario.load("tiny.toml"), {"seed": [1, 2]}, place / "s")
    part = next(iter(sorted(swept.dataset.glob("flows/run=*"))))
    for each in swept.dataset.glob("flows/run=*"):
        (each / "mine.txt").touch()
    other = cw.sweep(cw.Scenario.load("tiny.toml"), {"seed": [3]}, place / "s")
    assert (other.dataset / "flows" / part.name / "mine.txt").exists()
    assert not (part / "part.parquet").exists()


def test_a_page_replaces_pages_alone(place: Path, result: cw.Result) -> None:
    result.save(place / "r")
    (place / "thesis.md").write_text("years of work")
    done = call("report", "r", "--out", "thesis.md")
    assert done.code == 2 and "thesis.md" in done.err
    assert (place / "thesis.md").read_text() == "years of work"
    assert call("report", "r", "--out", "page.html").code == call("report", "r", "--out", "page.html").code == 0


# 6 and 7


def begin(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_request_to_end_is_heard_like_ctrl_c_and_a_second_run_into_one_folder_is_refused(place: Path) -> None:
    running = {
        "run": begin("run", "long.toml", "--threads", "1", "--out", "run"),
        "compare": begin(
            "compare", "long.toml", "--transport", "udp", "--transport", "dctcp", "--threads", "1", "--out", "compare"
        ),
        "sustain": begin("sustain", "long.toml", "--threads", "1", "--out", "sustain"),
        "sweep": begin("sweep", "sweep.toml", "--workers", "1", "--out", "sweep"),
        "live": begin("live", "slow.toml", "--out", "live"),
    }
    try:
        until = time.monotonic() + 60
        while not Path("live/simulated/run.json").exists() and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(4)
        for command in ("run", "compare", "sustain", "live"):
            again = call(command, "tiny.toml", "--out", command)
            assert again.code == 2 and f"{command}: " in again.err and str(running[command].pid) in again.err, again.err
        for process in running.values():
            process.terminate()
        said = {command: process.communicate(timeout=60) for command, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
    for command, (out, err) in said.items():
        assert running[command].returncode == 130, (command, out, err)
        assert "interrupted" in out + err and "Traceback" not in err, (command, err)
    assert "interrupted: not even known whether the lowest holds, nothing is known above, to 1" in said["sustain"][1]
    assert cw.load("run").interrupted and cw.load("compare/udp").interrupted and cw.load("live/live").interrupted
    assert not [path.name for path in place.glob(".*")], "nothing is left behind"


# 8


@pytest.mark.parametrize(
    "launcher",
    ["subprocess.Popen", "os.system", "distributed.LocalCluster.close", "distributed.cli", "builtins.exec", "x"],
)
def test_a_sweep_file_runs_no_command(launcher: str, place: Path) -> None:
    pytest.importorskip("distributed")
    text = (
        f'scenario = "tiny.toml"\n[vary]\nseed = [1]\n[cluster]\nlauncher = "{launcher}"\n'
        f'arguments = {{ args = ["touch", "ran"] }}\n'
    )
    Path("evil.toml").write_text(text)
    done = call("sweep", "evil.toml")
    assert done.code == 2 and "evil.toml:5" in done.err and "dask_jobqueue.SLURMCluster" in done.err, done.err
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    "argument",
    [
        'job_script_prologue = ["touch ran"]',
        'python = "/tmp/evil"',
        'queue = "short\\ntouch ran"',
        'local_directory = "/tmp; touch ran"',
        'queue = ["$(touch ran)"]',
    ],
)
def test_nor_do_the_arguments_of_a_launcher(argument: str, place: Path) -> None:
    text = (
        'scenario = "tiny.toml"\n[vary]\nseed = [1]\n[cluster]\nlauncher = "dask_jobqueue.SLURMCluster"\n'
        f"arguments = {{ {argument} }}\n"
    )
    Path("evil.toml").write_text(text)
    done = call("sweep", "evil.toml")
    assert done.code == 2 and "evil.toml:6" in done.err, done.err


# 10


@pytest.mark.parametrize("plan", [["--plan"], []])
def test_a_hundred_million_runs_are_refused_at_once(plan: list[str], place: Path, no_work: None) -> None:
    Path("huge.toml").write_text(
        'scenario = "tiny.toml"\n[vary]\nseed = { from = 1, to = 10000 }\n'
        "fabric.star.hosts = { from = 2, to = 10001 }\n"
    )
    began = time.process_time()
    done = call("sweep", "huge.toml", *plan)
    assert done.code == 2 and "100,000,000" in done.err and "huge.toml:3" in done.err, done.err
    assert time.process_time() - began < 2
    with pytest.raises(ValueError, match="100,000,000"):
        cw.Sweep.over(
            cw.Scenario.load("tiny.toml"), {"seed": range(10_000), "fabric.star.hosts": range(2, 10_002)}, "s"
        )


@pytest.mark.parametrize("high", ["1e9", "inf", "nan"])
def test_a_search_over_endless_loads_is_refused_at_once(high: str, place: Path, no_work: None) -> None:
    began = time.process_time()
    done = call("sustain", "long.toml", "--high", high)
    assert done.code == 2 and "high" in done.err, done.err
    assert time.process_time() - began < 2


# 11


@pytest.mark.parametrize("name", ["[red]x", "a[/]b", "[/bold]", "[link=x]y"])
def test_brackets_in_names_are_text(name: str, place: Path) -> None:
    done = call("run", "tiny.toml", "--set", f"name={json.dumps(name)}", "--out", "r")
    assert done.code == 0, done.err
    assert cw.load("r").name == name and any(line.startswith(name) for line in done.out.splitlines()), done.out


def test_a_name_that_begins_with_an_underscore_is_in_the_legend(result: cw.Result) -> None:
    runs = [
        cw.Result(name, result.tables, result.info, result.scenario_toml) for name in ("_hidden", "_nolegend_", "seen")
    ]
    picture = cw.Comparison(runs).plot.fct_cdf()
    assert [text.get_text() for legend in picture.legends for text in legend.get_texts()] == [
        "_hidden",
        "_nolegend_",
        "seen",
    ]
    drawn = [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", picture.svg())]
    assert "_hidden" in drawn


# 12


@pytest.mark.parametrize("command", ["schemes", "schema", "run tiny.toml --out r", "--help"])
@pytest.mark.parametrize("how", [">&-", "| head -c 1 >/dev/null", ">/dev/full"])
def test_closed_standard_output_is_no_traceback(command: str, how: str, place: Path) -> None:
    program = f"{PROGRAM[0]} -c '{PROGRAM[2]}' {command} {how}"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    if command.startswith("run"):
        assert (place / "r" / "report.html").exists(), "the work is done all the same"
    if how == ">/dev/full":
        assert done.returncode == 2 and "No space left" in done.stderr


# 13


def _without(path: Path, key: str) -> None:
    info = json.loads(path.read_text())
    del info[key]
    path.write_text(json.dumps(info))


def _table(path: Path, change: Any) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def _info(path: Path, **values: Any) -> None:
    (path / "run.json").write_text(json.dumps(json.loads((path / "run.json").read_text()) | values))


DAMAGE: dict[str, Any] = {
    "run.json is a list": lambda at: (at / "run.json").write_text("[]"),
    "run.json is a number": lambda at: (at / "run.json").write_text("3"),
    "run.json is cut off": lambda at: (at / "run.json").write_text((at / "run.json").read_text()[:100]),
    "run.json has no audit": lambda at: _without(at / "run.json", "audit"),
    "run.json has no hosts": lambda at: _without(at / "run.json", "hosts"),
    "audit is a word": lambda at: _info(at, audit="fine"),
    "audit has numbers": lambda at: _info(at, audit=[1, 2]),
    "hosts is a word": lambda at: _info(at, hosts="many"),
    "bdp is negative": lambda at: _info(at, bdp_bytes=-1),
    "no flows.parquet": lambda at: (at / "flows.parquet").unlink(),
    "no links.parquet": lambda at: (at / "links.parquet").unlink(),
    "flows.parquet is empty": lambda at: (at / "flows.parquet").write_bytes(b""),
    "flows.parquet is another table": lambda at: shutil.copy(at / "links.parquet", at / "flows.parquet"),
    "a column is gone": lambda at: _table(at / "flows.parquet", lambda table: table.drop_columns(["slowdown"])),
    "a column is text": lambda at: _table(
        at / "flows.parquet", lambda table: table.set_column(3, "bytes", pa.array(["x"] * len(table)))
    ),
    "a name is a number": lambda at: _table(
        at / "links.parquet", lambda table: table.set_column(3, "tier", pa.array([1] * len(table)))
    ),
    "scenario.toml is no TOML": lambda at: (at / "scenario.toml").write_text("= ="),
    "scenario.toml is bytes": lambda at: (at / "scenario.toml").write_bytes(b"\xff\xfe"),
    "scenario.toml is another thing": lambda at: (at / "scenario.toml").write_text("fabric = 3\ntraffic = 4\n"),
    "a parquet that is a folder": lambda at: (at / "extra.parquet").mkdir(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_report_on_a_damaged_result_says_what_is_wrong(damage: str, place: Path, result: cw.Result) -> None:
    folder = result.save(place / "r")
    DAMAGE[damage](folder)
    done = call("report", "r")
    if done.code:
        assert done.code == 2 and done.err.startswith("error: r") and len(done.err.splitlines()) == 1, done.err
    else:
        assert damage in ("scenario.toml is another thing",)
    if done.code:
        with pytest.raises((ValueError, OSError)):
            cw.load("r")
    else:
        cw.load("r")


# 14


def test_a_full_disk_is_called_that(place: Path) -> None:
    """A limit on what a process may write to a file is the nearest thing to a full disk that a test has."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))

    assert call("sweep", "sweep.toml", "--plan").code == 0
    Path("sweep.toml").write_text('scenario = "tiny.toml"\n[vary]\nseed = [1, 2, 3]\n')
    assert call("sweep", "sweep.toml", "--out", "s").code == 0
    for name in ("report.html", "runs.parquet"):
        Path("s", name).unlink()
    for command in (["run", "tiny.toml", "--out", "r"], ["sweep", "sweep.toml", "--out", "s"]):
        done = subprocess.run(
            [*PROGRAM, *command], capture_output=True, text=True, timeout=60, check=False, preexec_fn=small
        )
        assert done.returncode == 2 and "File too large" in done.stderr and "No such file" not in done.stderr, (
            done.stderr
        )
    assert not list(place.glob("**/.*.parquet*")), "nothing half written is left"


# 18


def test_a_flipped_bit_in_a_table_is_noticed(place: Path, result: cw.Result) -> None:
    folder = result.save(place / "r")
    for name in ("flows", "links"):
        path = folder / f"{name}.parquet"
        sound = path.read_bytes()
        random = np.random.default_rng(1)
        for at in random.integers(0, len(sound), 150):
            flipped = bytearray(sound)
            flipped[at] ^= 1 << int(random.integers(8))
            path.write_bytes(flipped)
            try:
                read = cw.load(folder)._tables[name]
            except ValueError as error:
                assert f"{name}.parquet" in str(error)
            else:
                assert read.equals(result._tables[name]), f"byte {at} of {len(sound)}"
        path.write_bytes(sound)
        cw.load(folder)


def test_pages_of_tables_carry_checksums(place: Path, result: cw.Result) -> None:
    """So that other readers can notice it too."""
    path = result.save(place / "r") / "flows.parquet"
    file = pq.ParquetFile(path)
    column = file.metadata.row_group(0).column(file.schema_arrow.names.index("bytes"))
    begin = column.dictionary_page_offset or column.data_page_offset
    sound = bytearray(path.read_bytes())
    sound[begin + column.total_compressed_size - 5] ^= 1
    path.write_bytes(sound)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(path, columns=["bytes"], page_checksum_verification=True)
