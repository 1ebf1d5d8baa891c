"""Augmented Queue (SIGCOMM 2023): figures and tables of its evaluation, the least limit that its section 6 leaves open,
and what its evaluation does not ask."""

from __future__ import annotations

from pathlib import Path

from clearway.papers._paper import Options, Paper

from . import beyond, evaluation, least_limit, lending


def _apply(options: Options, out: Path) -> None:
    evaluation.OUT = out


PAPER = Paper(
    "augmented-queue",
    "Augmented Queue (SIGCOMM 2023)",
    {
        "figure-1": evaluation.figure_1,
        "figure-6": evaluation.figure_6,
        "figure-7": evaluation.figure_7,
        "figure-8": evaluation.figure_8,
        "figure-9": evaluation.figure_9,
        "figure-10": evaluation.figure_10,
        "figure-12": evaluation.figure_12,
        "table-2": evaluation.table_2,
        "table-3": evaluation.table_3,
        "table-4": evaluation.table_4,
        "least-limit": least_limit.least_limit,
        **beyond.FIGURES,
        **lending.FIGURES,
    },
    _apply,
    ("papers/augmented-queue/README.md", "papers/augmented-queue/beyond.md"),
    absent={
        "figure-2": "a drawing: guarantees of four VMs",
        "figure-3": "a drawing: the A-Gap beside a sum that may be negative",
        "figure-4": "a drawing: AQs in a network",
        "figure-5": "a drawing: the simulated networks",
        "figure-11": "stages, MAUs and PHV of a compiled P4 program on Tofino",
        "table-1": "fields of a request",
    },
)
