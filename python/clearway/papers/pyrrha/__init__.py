"""Pyrrha (NSDI 2025): figures and tables of the paper, and its authors' own runs on the same flows."""

from __future__ import annotations

from pathlib import Path

from clearway.papers._paper import Options, Paper

from . import evaluation, ns3, parameters, scenes


def _apply(options: Options, out: Path) -> None:
    scenes.OUT, scenes.scale = out, options.scale


PAPER = Paper(
    "pyrrha",
    "Pyrrha (NSDI 2025)",
    {
        "reference": ns3.reference,
        "reference-settings": ns3.settings,
        "bfc-departures": ns3.bfc_departures,
        "figure-2": evaluation.figure_2,
        "figure-3": evaluation.figure_3,
        "figure-7": evaluation.figure_7,
        "figure-9": evaluation.figure_9,
        "figure-10": evaluation.figure_10,
        "figure-11": evaluation.figure_11,
        "bfc-queues": evaluation.bfc_queues,
        "figure-12": evaluation.figure_12,
        "figure-13": evaluation.figure_13,
        "figure-14": evaluation.figure_14,
        "figure-15": evaluation.figure_15,
        "figure-16": evaluation.figure_16,
        "figure-17": evaluation.figure_17,
        "figure-18": evaluation.figure_18,
        "figure-19": evaluation.figure_19,
        "figure-20": evaluation.figure_20,
        "figure-21": evaluation.figure_21,
        "figure-22": evaluation.figure_22,
        "figure-23": evaluation.figure_23,
        "figure-24": evaluation.figure_24,
        "figure-25": evaluation.figure_25,
        "figure-26": evaluation.figure_26,
        "figure-27": parameters.figure_27,
        "figure-28": parameters.figure_28,
        "figure-29": parameters.figure_29,
        "figure-31": parameters.figure_31,
        "tables-4-7": parameters.tables_4_to_7,
    },
    _apply,
    ("papers/pyrrha/README.md",),
    frozenset({"scale"}),
    absent={
        "figure-1": "a drawing: congestion control beside flow control",
        "figure-4": "a drawing: a tree of congestion",
        "figure-5": "a drawing: the switch",
        "figure-6": "a drawing: states of an isolation queue",
        "figure-8": "a drawing: the testbed",
        "figure-30": "a drawing: the P4 program",
        "figure-32": "a drawing: assignment of queues in the P4 program",
        "table-1": "how ids follow from packets: crates/link-control/src/pyrrha/regular.rs tests it",
        "table-2": "a compiler's report on a P4 program that is not public",
        "table-3": "a compiler's report on a P4 program that is not public",
    },
)
