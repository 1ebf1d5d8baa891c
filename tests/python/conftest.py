from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import clearway as cw
import pytest

TINY = """
name = "tiny"
transport = "dcpim"

[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 2

[[traffic]]
name = "web"
sizes = "imc10"
arrivals = { poisson = { load = 0.5 } }
flows = 200
"""


@pytest.fixture
def scenario() -> cw.Scenario:
    return cw.Scenario.from_toml(TINY)


@pytest.fixture(scope="session")
def result() -> cw.Result:
    return cw.run(cw.Scenario.from_toml(TINY), threads=1)


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def load_runner(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Loads the runner of a paper's figures, `papers/NAME/reproduce.py`, for one test."""

    def load(name: str) -> ModuleType:
        paper = Path("papers", name).resolve()
        monkeypatch.syspath_prepend(str(paper))
        spec = importlib.util.spec_from_file_location("reproduce", paper / "reproduce.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "reproduce", module)
        spec.loader.exec_module(module)
        return module

    return load
