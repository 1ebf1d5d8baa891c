from __future__ import annotations

import signal
from pathlib import Path

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


# pytest-xdist's processes ignore Ctrl-C, and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
