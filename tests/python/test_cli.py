"""The command as a person meets it: its output and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import clearway as cw
import pytest
from called import call

PROGRAM = [sys.executable, "-c", "from clearway.cli.main import main; main()"]
LONG = Path("examples/dcpim-vs-tcp.toml").resolve()


def clearway(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command within this process: another one takes seconds to import what draws."""
    done = call(*arguments, cwd=cwd)
    assert "Traceback" not in done.err, done.err
    return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)


def test_only_what_draws_imports_what_draws(tmp_path: Path) -> None:
    """Data frames take longer to import than a small run, and charts twice that."""
    heavy = ("pandas", "pyarrow", "bokeh", "matplotlib", "polars", "rich")
    drawn = ("pandas", "pyarrow.compute", "bokeh", "matplotlib", "polars", "rich")
    for words, few in (
        (["--version"], heavy),
        (["check", "examples/tiny.toml", "--probe", "0"], heavy),
        (["check", "examples/tiny.toml", "--probe", "0", "--json"], heavy),
        (["init", str(tmp_path / "mine.toml")], heavy),
        (["run", "examples/tiny.toml", "--out", str(tmp_path / "tiny")], drawn),
        (["run", "examples/tiny.toml", "--json", "--out", str(tmp_path / "tiny")], drawn),
    ):
        code = (
            f"import sys\nsys.argv = ['clearway', *{words!r}]\nfrom clearway.cli.main import main\ntry:\n    main()\n"
            f"except SystemExit as ended:\n    assert not ended.code, ended\n"
            f"print('imported', sorted(set({few!r}) & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "imported []", (words, done.stdout)


def test_run_keeps_a_result_and_a_report(tiny_file: Path, tmp_path: Path) -> None:
    done = clearway(
        "run", tiny_file, "--seed", 7, "--threads", 2, "--set", "traffic.web.flows=50", "--out", "r", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    result = cw.load(tmp_path / "r")
    assert (result.info["seed"], len(result.flows)) == (7, 50)
    assert (tmp_path / "r" / "report.html").exists()
    assert "unfinished" in done.stdout and "tiny" in done.stdout
    assert done.stderr.splitlines()[-2:] == ["result: r", "report: r/report.html"], "no progress without a terminal"


def test_compare_gives_one_table_and_one_report(tiny_file: Path, tmp_path: Path) -> None:
    done = clearway("compare", tiny_file, "--transport", "udp", "--transport", "dcpim", "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines() if line]
    assert "udp" in rows and "dcpim" in rows
    again = clearway("report", tmp_path / "c", "--out", tmp_path / "again.html")
    assert again.returncode == 0
    assert "<svg" in (tmp_path / "again.html").read_text()


def test_flow_controls_by_name(tiny_file: Path, tmp_path: Path) -> None:
    done = clearway("run", tiny_file, "--flow-control", "pfc", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "congestion" in cw.load(tmp_path / "r").tables
    done = clearway("run", tiny_file, "--transport", "dctcp", "--out", "t", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert cw.load(tmp_path / "t").digest == cw.run(cw.Scenario.load(tiny_file).with_(transport="dctcp")).digest
    done = clearway("compare", tiny_file, "--flow-control", "none", "--flow-control", "pfc", "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "c").iterdir() if path.is_dir()) == ["none", "pfc"]
    done = clearway("compare", tiny_file, "--flow-control", "pcf", cwd=tmp_path)
    assert done.returncode == 2 and 'did you mean "pfc"' in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (("racks = 2", "rakcs = 2"), 6, 'did you mean "racks"'),
        (("racks = 2", 'racks = 2\nhost_rate = "100Gb"'), 7, "Gbps"),
        (("load = 0.5", "load = 0"), 13, "not a load"),
        (("hosts_per_rack = 4", "hosts_per_rack = 0"), 7, "at least 1"),
        (("flows = 200", 'flows = 200\nduration = "0s"'), 15, "nothing can arrive"),
        (('sizes = "imc10"', 'sizes = "imc11"'), 12, 'did you mean "imc10"'),
        (('sizes = "imc10"', 'sizes = "IMC10"'), 12, 'did you mean "imc10"'),
        (("racks = 2", "Racks = 2"), 6, 'did you mean "racks"'),
        (("flows = 200", 'flows = 200\n[switch.marking.step]\nthreshold = "100KBit"'), 16, "100KBit"),
    ],
)
def test_errors_name_file_line_and_remedy(tiny_file: Path, change: tuple[str, str], line: int, said: str) -> None:
    text = tiny_file.read_text()
    assert change[0] in text
    tiny_file.write_text(text.replace(*change))
    done = clearway("run", tiny_file)
    assert done.returncode == 2
    assert f"{tiny_file}:{line}: " in done.stderr and said in done.stderr, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "absent.toml"],
        ["run", "/"],
        ["run", LONG, "--set", "seed"],
        ["run", LONG, "--set", "seed=many"],
        ["run", LONG, "--set", "fabric.nowhere=1"],
        ["run", LONG, "--seed", "-1"],
        ["run", LONG, "--threads", "0"],
        ["run", LONG, "--load", "nan"],
        ["compare", LONG, "--transport", "smoke-signals"],
        ["compare"],
        ["report", "/"],
        ["check", "absent.toml"],
        ["nonsense"],
    ],
)
def test_wrong_calls_exit_with_2_and_without_a_traceback(arguments: list[object], tmp_path: Path) -> None:
    done = clearway(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.strip()
    assert os.listdir(tmp_path) == []


def test_bytes_that_are_no_scenario_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00name")
    assert clearway("run", tmp_path / "x.toml").returncode == 2


def test_other_peoples_files_are_left_alone(tiny_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    done = clearway("run", tiny_file, "--out", tmp_path / "mine")
    assert done.returncode == 2 and "no result of a run" in done.stderr
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_ctrl_c_while_progress_is_told_keeps_what_the_run_has() -> None:
    def told(progress: cw.Progress) -> None:
        raise KeyboardInterrupt

    result = cw.run(cw.Scenario.load(LONG).with_({"traffic.0.flows": 20_000}), progress=told)
    assert result.interrupted and result.info["flows_completed"] < 20_000


def test_interrupt_keeps_what_there_is(tmp_path: Path) -> None:
    command = [*PROGRAM, "compare", str(LONG), "--transport", "dcpim", "--transport", "dctcp", "--out", "c"]
    command += ["--set", "traffic.0.flows=200000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "of 200,000 flows" in process.stderr.readline(), "the run has begun"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr and "Traceback" not in stderr
    result = cw.load(tmp_path / "c" / "dcpim")
    assert result.interrupted and not result.ok
    assert 0 < result.info["flows_completed"] < 200_000
    assert all(finding["ok"] for finding in result.info["audit"])
    assert [path.name for path in (tmp_path / "c").iterdir() if path.is_dir()] == ["dcpim"]
    assert "was interrupted" in (tmp_path / "c" / "report.html").read_text()


def test_listings() -> None:
    for listing, names in (
        ("schemes", ["dcpim", "udp", "elastic_switch"]),
        ("fabrics", ["leaf_spine", "fat_tree", "torus"]),
        ("workloads", ["websearch", "ali_storage"]),
    ):
        done = clearway(listing)
        assert done.returncode == 0
        assert set(names) <= {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert "traffic" in json.loads(clearway("schema").stdout)["properties"]
    assert "144 hosts" in clearway("check", LONG).stdout
