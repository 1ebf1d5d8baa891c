"""Tables in terminals and pipes, the form of `--help`, and completion."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from called import call
from clearway.cli.layout import terminal, tsv

COLUMNS = [f"{size} {name}" for size in ("all", "short", "medium", "long") for name in ("mean", "p99")]


def frame(rows: int) -> pd.DataFrame:
    """A table as `compare` has it, with unequal numbers and lengths of names."""
    found = []
    for row in range(rows):
        values: dict[str, object] = {}
        for place, name in enumerate(COLUMNS):
            value = 1.2345 * (row + 1) ** place
            values |= {name: value, f"{name} low": value * 0.9, f"{name} high": value * 1.1 if place != 3 else np.nan}
        found.append(values | {"goodput Gbps": 1234.5 * row, "unfinished": row})
    names = [f"{'very ' * row}long name {row}" for row in range(rows)]
    return pd.DataFrame(found, index=pd.Index(names, name="run"))


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("width", [80, 100, 400])
def test_a_table_fits_its_terminal_and_loses_no_number(rows: int, width: int) -> None:
    of = frame(rows)
    shown = terminal(of, width)
    assert max(map(len, shown.splitlines())) <= width
    for name in of.index:
        assert name in shown
    for value in of[COLUMNS].to_numpy().ravel():
        assert f"{value:.4g}" in shown or f"{value:,.0f}" in shown, (value, shown)
    # Intervals come last, or beside their numbers.
    assert shown.count("..") == rows * (len(COLUMNS) - 1)
    if rows > 1 and width == 80:
        assert shown.index("Intervals") > shown.index("unfinished")


def test_long_texts_are_folded() -> None:
    shown = terminal(cw.schemes()[["kind", "title", "summary"]], 80)
    assert max(map(len, shown.splitlines())) <= 80 and "dcpim" in shown


def test_a_pipe_gets_tab_separated_values_and_nothing_else(tmp_path: Path) -> None:
    done = call("compare", "examples/tiny.toml", "--transport", "udp", "--transport", "dctcp", "--out", tmp_path / "c")
    read = pd.read_csv(io.StringIO(done.out), sep="\t", index_col="run")
    assert list(read.index) == ["udp", "dctcp"] and read["all mean"].between(1, 100).all()
    assert f"results: {tmp_path / 'c'}" in done.err
    again = pd.read_csv(io.StringIO(tsv(frame(3))), sep="\t", index_col="run")
    pd.testing.assert_frame_equal(again, frame(3), check_dtype=False)


@pytest.mark.parametrize("command", ["", "run", "compare", "sweep", "live", "advise"])
def test_help_is_grouped_whole_and_in_plain_words(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = call(*([command] if command else []), "--help").out
    assert max(map(len, shown.splitlines())) <= 80
    assert "..." not in shown.replace("...]", "").replace("toml...", "").replace("[ARGS]...", "")
    assert "<" not in shown and "list[" not in shown
    groups = [line for line in shown.splitlines() if line and not line.startswith(" ") and line.endswith(":")]
    assert len(groups) >= 4, groups


def test_a_percentage_is_no_load_and_the_share_is_named() -> None:
    assert (
        "60% is a percentage, and a load is a share; write 0.6"
        in call("run", "examples/tiny.toml", "--load", "60%").err
    )
    assert "such as 0.6" in call("run", "examples/tiny.toml", "--load", "much").err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_options_and_schemes(shell: str) -> None:
    def completed(line: str) -> str:
        words = line.split(" ")
        told = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
        told |= {"_CLEARWAY_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        command = [str(Path(sys.executable).parent / "clearway")]
        return subprocess.run(command, env=os.environ | told, capture_output=True, text=True, timeout=60).stdout

    assert "compare" in completed("clearway com")
    assert "--transport" in completed("clearway run --tr")
    found = completed("clearway run --transport d")
    assert all(name in found for name in ("dcpim", "dctcp", "dcqcn")) and "ndp" not in found
