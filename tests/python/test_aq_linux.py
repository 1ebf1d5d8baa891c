"""`clearway aq`, as far as it goes without the program, and the page of kernel experiments."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from called import call
from clearway.cli import aq
from test_cli import PROGRAM

ROOT = Path(__file__).resolve().parents[2]


def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("aq_linux_page", ROOT / "tests" / "kernel" / "page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_the_program_the_command_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARWAY_AQ", "/nowhere/clearway-aq")
    done = call("aq", "show")
    assert done.code == 2 and "make aq" in done.err and "Traceback" not in done.err


def test_the_program_gets_all_arguments_as_they_are(tmp_path: Path) -> None:
    fake = tmp_path / "clearway-aq"
    fake.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 3\n')
    fake.chmod(0o755)
    words = ["aq", "attach", "eth0", "--tenants", "a b.toml", "--help", "-x"]
    environment = os.environ | {"CLEARWAY_AQ": str(fake)}
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "|".join(words[1:]) + "|"), done.stderr


def test_a_program_that_cannot_be_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clearway-aq").write_text("")
    monkeypatch.setenv("CLEARWAY_AQ", str(tmp_path / "clearway-aq"))
    with pytest.raises(ValueError, match="is not installed"):
        aq.program()


def test_the_page_shows_what_was_recorded() -> None:
    writer = page()
    text = writer.PAGE.read_text(encoding="utf-8")
    records = writer.load()
    assert writer.filled(text, records) == text, "write it by `make test-kernel WRITE=1`"
    assert set(records) <= set(writer.regions(text)), "an experiment without a place on the page"


def test_a_statement_that_fails_stays_on_the_page() -> None:
    writer = page()
    result = {
        "rows": [{"what": "x", "how": "AQ", "mbps": {"a": 10.0, "b": 20.0}, "again": {"a": 0.5, "b": 0.0}}],
        "checks": [{"what": "b / a", "ours": 2.0, "wanted": 3.0, "tolerance": 0.02, "holds": False}],
        "origin": {"commit": "c", "date": "d", "cpu": "e", "cores": "2", "kernel": "6.18"},
    }
    text = writer.render(result, "x")
    assert "0 of 1 statements" in text and "Does not hold: b / a is 2 and not 3 (-33.3%; tolerance 2%)." in text
    assert "| x | AQ | 10 + 20 | 50.00% + 0.00% |" in text
    assert json.loads(json.dumps(result)) == result
    assert "Not yet measured" in writer.render(None, "x")
    assert sys.version_info >= (3, 10)
