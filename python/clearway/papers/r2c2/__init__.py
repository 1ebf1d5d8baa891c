"""R2C2 (SIGCOMM 2015): figures of its evaluation, and the numbers of sections 3.2, 5 and 6."""

from __future__ import annotations

from pathlib import Path

from clearway.papers._paper import Options, Paper

from . import evaluation, figures_of_theory, rack


def _apply(options: Options, out: Path) -> None:
    rack.OUT, rack.scale = out, options.scale
    rack.forget()


PAPER = Paper(
    "r2c2",
    "R2C2 (SIGCOMM 2015)",
    {
        "figure-2": figures_of_theory.figure_2,
        "figure-4": figures_of_theory.figure_4,
        "figure-8": figures_of_theory.figure_8,
        "figure-18": figures_of_theory.figure_18,
        "linear-programs": figures_of_theory.rates_by_linear_programs,
        "arithmetic": evaluation.arithmetic,
        "figure-7": evaluation.figure_7,
        "figure-9": evaluation.figure_9,
        "figure-10": evaluation.figure_10,
        "figure-11": evaluation.figure_11,
        "figure-12": evaluation.figure_12,
        "figure-13": evaluation.figure_13,
        "figure-14": evaluation.figure_14,
        "reordering": evaluation.reordering,
        "length": evaluation.length,
        "figure-15": evaluation.figure_15,
        "figure-16": evaluation.figure_16,
        "figure-17": evaluation.figure_17,
        "figure-19": evaluation.figure_19,
        "clos": evaluation.clos,
        "tcp": evaluation.tcp,
        "pfq": evaluation.pfq,
        "cost": evaluation.cost,
    },
    _apply,
    ("papers/r2c2/README.md",),
    frozenset({"scale"}),
    absent={
        "figure-1": "a drawing: a torus",
        "figure-3": "a drawing: a flow's weights on links",
        "figure-5": "a drawing: the emulator",
        "figure-6": "a drawing: formats of packets",
    },
)
