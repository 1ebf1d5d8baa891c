"""Ours against the runs of Pyrrha's authors, by class and by size (clearway.papers.pyrrha.ns3)."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from clearway.papers.pyrrha import ns3 as runs
from clearway.papers.pyrrha import scenes


@pytest.fixture
def ns3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(scenes, "OUT", tmp_path)
    return runs


# Numbers that may be off by more than a tenth, with the reason in papers/pyrrha/README.md.
KNOWN = {
    "BFC-32": {
        "vulnerable, 10 to 100 KB: mean FCT, us",
        "background, 300 B to 1 KB: mean FCT, us",
    },
    "Pyrrha": {"vulnerable, up to 300 B: p99 FCT, us"},
    "Pyrrha by the paper's text": {
        "vulnerable, up to 300 B: mean FCT, us",
        "vulnerable, 300 B to 1 KB: mean FCT, us",
        "vulnerable, 10 to 100 KB: p99 FCT, us",
        "background, 300 B to 1 KB: mean FCT, us",
    },
}


def outside(ns3: ModuleType, name: str, seeds: tuple[int, ...] | None = None) -> set[str]:
    held, _ = ns3.held(name, seeds)
    off = held.rows[(held.rows["ours"] / held.rows["theirs"] - 1).abs() > held.rows["within"]]
    return set(off["bucket"] + ": " + off["statistic"])


@pytest.mark.parametrize("name", ["PFC, Memcached", "Pyrrha, Memcached"])
def test_memcached_is_theirs_on_one_seed(ns3: ModuleType, name: str) -> None:
    assert outside(ns3, name, (1,)) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "PFC",
        "Pyrrha",
        "Pyrrha by the paper's text",
        "DCQCN + PFC",
        "HPCC + PFC",
        "BFC-32",
        "PFC, Memcached",
    ],
)
def test_a_run_of_the_authors_is_ours_by_class_and_size(ns3: ModuleType, name: str) -> None:
    assert outside(ns3, name) <= KNOWN.get(name, set())
