"""Random scenarios run alike in every configuration, and their results hold what must hold: see `swarm`."""

from __future__ import annotations

from pathlib import Path

import pytest
from swarm.search import Search, replayed
from swarm.worker import Worker

# Failures here are looked into with `make swarm`'s options: `python -m swarm --first NUMBER`, or by the file that it
# has written.
FOUND = sorted(Path("tests/swarm").glob("*.toml"))
NUMBERS = 28
"""Each transport has its turn."""
EXAMPLES = 6
"""Scenarios that follow each number: all together take about a minute of CPU time."""


@pytest.mark.parametrize("part", range(4))
def test_random_scenarios_run_alike_in_every_configuration(part: int) -> None:
    search = Search()
    try:
        for number in range(part, NUMBERS, 4):
            find = search.find(number, EXAMPLES)
            assert find is None, find.text()
    finally:
        search.worker.close()
    tally = search.tally
    assert tally.scenarios >= NUMBERS / 4 * EXAMPLES * 0.8 and tally.runs > 4 * tally.scenarios
    assert tally.refused <= tally.scenarios / 20, f"{tally.refused} of {tally.scenarios} were refused for good"


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_is_mended(path: Path) -> None:
    worker = Worker()
    try:
        finds = replayed(path, worker)
    finally:
        worker.close()
    assert not finds, "\n".join(f"{find.kind}: {find.detail}" for find in finds)
