"""Settings that hardly make sense are reported by `check` before a run, and by the result."""

from __future__ import annotations

from pathlib import Path

import pytest
from called import call

TEXT = """
transport = "dctcp"
[fabric.star]
hosts = 8
[[traffic]]
name = "a"
sizes = { constant = "10KB" }
arrivals = { poisson = { load = 0.5 } }
flows = 300
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "s.toml"
    file.write_text(TEXT)
    return file


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("load = 0.5", "load = 1.5"), "traffic[0].arrivals.poisson.load: 1.5 is more than the links carry"),
        (("load = 0.5", "load = 50"), "for 50 percent write 0.5"),
        (("flows = 300", 'flows = 300\nduration = "1s"'), "delete one of flows and duration"),
        (("flows = 300", 'flows = 300\nduration = "1us"'), "of 300 messages arrive within duration"),
        (("flows = 300", "flows = 50"), "50 messages in all: a 99th percentile of fewer than 100"),
        (("[fabric", '[measure]\nend = "9us"\n[fabric'), "measure.end: the run ends at 9us, before"),
        (
            ("[fabric", 'switch.marking = { step = { threshold = "1MB" } }\n[fabric'),
            "packets are dropped before any is marked",
        ),
    ],
)
def test_check_says_what_hardly_makes_sense(file: Path, change: tuple[str, str], said: str) -> None:
    quiet = call("check", file, "--probe", "0")
    assert quiet.code == 0 and said not in quiet.err
    file.write_text(TEXT.replace(*change))
    done = call("check", file, "--probe", "0")
    assert done.code == 0 and done.err.count(said) == 1, done.err


def test_a_result_says_it_too(file: Path) -> None:
    assert "warning" not in call("run", file).err
    done = call("run", file, "--load", "1.2")
    assert done.code == 0 and "warning: traffic[0].arrivals.poisson.load: 1.2 is more than the links carry" in done.err
    # The meaning of a percentile is in the table's notes.
    assert "p99 of fewer than 100 flows" in call("run", file, "--set", "traffic.0.flows=50").err


def test_a_table_of_sizes_that_states_another_mean_is_said(file: Path) -> None:
    Path("mean.txt").write_text("5050\n100 0.5\n10000 1\n")
    sizes = 'sizes = { cdf_file = { path = "mean.txt", unit = "bytes", probability = "fraction" } }'
    file.write_text(TEXT.replace('sizes = { constant = "10KB" }', sizes))
    done = call("check", file, "--probe", "0")
    assert "traffic[0].sizes: the file's first line states a mean of 5.05KB" in done.err and "2.575KB" in done.err
