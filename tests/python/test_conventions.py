"""Conventions of command lines and of Python packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import clearway as cw
import pytest
from called import call
from clearway.results.tables import TABLES
from clearway.running.run import Progress, _Line
from test_cli import PROGRAM


def test_the_version_is_said() -> None:
    done = call("--version")
    assert done.code == 0 and re.fullmatch(rf"clearway {re.escape(cw.__version__)} \(\w+\)\n", done.out)


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clearway", "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and done.stdout == call("--version").out


def test_help_does_not_wait_for_data_frames() -> None:
    """Its imports and its CPU time, 0.1 s here, show it whatever else the machine does."""
    code = (
        "import sys; sys.argv = ['clearway', '--help']\nfrom clearway.cli.main import main\ntry: main()\n"
        "except SystemExit: pass\n"
    )
    code += "heavy = {'pandas', 'numpy', 'matplotlib', 'pyarrow', 'rich'} & set(sys.modules); assert not heavy, heavy"
    began = os.times()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "compare" in done.stdout, done.stderr
    assert os.times().children_user - began.children_user < 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("clearway ru", "run"),
        ("clearway run x.toml --flow-control pf", "pfc"),
        ("clearway compare --transport dcp", "dcpim"),
    ],
)
def test_shells_complete_commands_and_schemes(words: str, wanted: str) -> None:
    environment = os.environ | {
        "_CLEARWAY_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    program = Path(sys.executable).parent / "clearway"
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert wanted in done.stdout.split(), done.stdout + done.stderr


def test_everything_that_prints_a_table_prints_json(
    tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text('scenario = "tiny.toml"\n[vary]\nseed = [1]\n')
    run = json.loads(call("run", tiny_file, "--json").out)
    assert (
        run["table"][0]["run"] == "tiny"
        and run["table"][0]["all mean"] > 1
        and run["result"] == "out/tiny"
        and run["ok"] is True
    )
    flow = json.loads(call("run", tiny_file, "--level", "flow", "--json").out)
    assert flow["table"][0]["dropped"] is None, "unknown, and no NaN, which JSON has not"
    for command, key, rows in (
        (["compare", tiny_file, "--transport", "udp", "--transport", "dcpim"], "table", 2),
        (["sustain", tiny_file, "--low", 0.3, "--high", 0.3, "--all-complete"], "runs", 1),
        (["sweep", "sweep.toml"], "runs", 1),
        (["sweep", "sweep.toml", "--plan"], "table", 1),
        (["schemes"], "table", len(cw.schemes())),
        (["fabrics"], "table", len(cw.fabrics())),
        (["workloads"], "table", len(cw.workloads())),
    ):
        done = call(*command, "--json")
        assert done.code == 0 and len(json.loads(done.out)[key]) == rows, done.err


def test_check_names_nodes_and_links_as_failures_do(tiny_file: Path) -> None:
    done = call("check", tiny_file)
    assert (
        "host0, host1, ..., host7 (8)" in done.out
        and "leaf0 - spine0, leaf0 - spine1, leaf1 - spine0, leaf1 - spine1" in done.out
    )
    said = json.loads(call("check", tiny_file, "--json").out)
    assert (
        said["nodes"] == [f"host{n}" for n in range(8)] + ["leaf0", "leaf1", "spine0", "spine1"] and said["hosts"] == 8
    )
    every = call("check", tiny_file, "--names").out
    for link in said["links"]:
        assert (
            f"{link['from_node']} - {link['to_node']}" in every or f"{link['to_node']} - {link['from_node']}" in every
        )
    failing = cw.Scenario.load(tiny_file).with_(
        {"failure": [{"link": [said["links"][-1]["from_node"], said["links"][-1]["to_node"]], "at": "1us"}]}
    )
    failing.check()


def test_init_writes_a_scenario_that_runs_and_replaces_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("init").code == 0
    text = Path("scenario.toml").read_text()
    assert sum(line.lstrip().startswith("#") or " # " in line for line in text.splitlines()) > 15
    assert call("run", "scenario.toml", "--set", "traffic.0.flows=20").code == 0
    done = call("init")
    assert done.code == 0 and "stays as it is" in done.out and Path("scenario.toml").read_text() == text
    assert call("init", "no/where.toml").code == 2


def test_what_init_says_in_comments_is_right_too() -> None:
    text = (Path(cw.__file__).parent / "cli/init.toml").read_text()
    bare = (
        text.replace("# [[failure]]\n# link", "[[failure]]\nlink")
        .replace('# at = "1ms"', 'at = "1ms"')
        .replace("# end =", "end =")
    )
    assert bare != text
    cw.Scenario.from_toml(bare).check()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of progress lines, which a test sets."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_a_line_is_said_every_few_seconds(
    capsys: pytest.CaptureFixture[str], now: list[float]
) -> None:
    with _Line("mine", True) as line:
        assert line.listener is not None
        for step in range(1, 121):
            now[0] += 0.125
            line.listener(Progress(step * 10**9, 10**12, step, 120, step / 120))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3 and said[0].startswith(
        "mine: 40 of 120 flows, 40.000 ms simulated in 5 s, about 10 s left"
    ), said


def test_the_line_says_for_how_long_no_payload_has_come(capsys: pytest.CaptureFixture[str], now: list[float]) -> None:
    with _Line("mine", True) as line:
        assert line.listener is not None
        now[0] += 6
        line.listener(Progress(8 * 10**9, 10**12, 1, 2, 0.5, 5 * 10**9))
    said = capsys.readouterr().err
    assert said.startswith("mine: 1 of 2 flows, 8.000 ms simulated, no payload for 5.000 ms of them in 6 s"), said


def test_a_sweep_that_takes_long_says_how_it_stands(tmp_path: Path) -> None:
    from clearway.sweeps import watch
    from clearway.sweeps.driver import Board

    board = Board({"a": "a", "b": "b"}, done={"a"})
    looker = watch.Watch(board, True)
    looker._reported_at -= watch.TELL_SECONDS + 1
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()) as err:
        looker("")
        looker("")
    assert err.getvalue().splitlines() == ["[1/2] 1 of 2 done"]


# Notebooks


def test_a_comparison_shows_itself(result: cw.Result) -> None:
    comparison = cw.Comparison([result])
    assert "tiny" in repr(comparison) and "short mean" in repr(comparison)
    assert "<table" in comparison._repr_html_()


def test_tables_and_their_columns_are_completed(result: cw.Result) -> None:
    shown = dir(result)
    assert set(result.tables) <= set(shown) and "guarantees" not in shown
    for name in TABLES:
        kind = getattr(cw.Result, name)
        assert isinstance(kind, property) and kind.__doc__, name
        assert f"`{next(iter(TABLES[name]))}`" in kind.__doc__
    assert result.flows.columns == result.flows._ipython_key_completions_() == list(TABLES["flows"])
    with pytest.raises(KeyError, match="fct_ps"):
        result.flows["fct"]


def test_a_notebook_is_not_asked_for_widgets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with _Line("mine", None) as line:
        assert line._rich is None and line.listener is not None
        now[0] += 1
        line.listener(Progress(10**9, 10**12, 1, 2, 0.5))
    said = capsys.readouterr().err
    assert said.startswith("\rmine: 1 of 2 flows") and said.endswith("\r") and "\n" not in said


def test_a_file_is_a_scenario_everywhere(tiny_file: Path, tmp_path: Path) -> None:
    assert cw.run(str(tiny_file)).digest == cw.run(tiny_file).digest == cw.run(cw.Scenario.load(tiny_file)).digest
    assert len(cw.compare([str(tiny_file), tiny_file]).results) == 2
    assert cw.sweep(tiny_file, {"seed": [1]}, tmp_path / "s").ok
    assert cw.sustain(tiny_file, low=0.3, high=0.3, keeps_up=None).load == 0.3
    with pytest.raises(cw.ScenarioError, match=r"absent\.toml: could not be read"):
        cw.run("absent.toml")
    with pytest.raises(TypeError, match="from_toml"):
        cw.run(tiny_file.read_text())
    with pytest.raises(TypeError, match=r"int 3 is not a scenario.*x\.toml"):
        cw.run(3)  # type: ignore[arg-type]


def test_the_command_as_a_process_is_the_command_in_one(tiny_file: Path, tmp_path: Path) -> None:
    command = ["check", str(tiny_file), "--probe", "0"]
    done = subprocess.run([*PROGRAM, *command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == call(*command).out
