"""dcPIM (SIGCOMM 2022, section 4): the paper's evaluation, its rivals on the same ground."""

from __future__ import annotations

from pathlib import Path

from clearway.papers import unknown
from clearway.papers._paper import Options, Paper

from . import default_setup, evaluation, lengths, setting, theory, training


def _apply(options: Options, out: Path) -> None:
    for scheme in options.only:
        if scheme not in setting.BOTH:
            raise ValueError(f"--only {unknown(scheme, list(setting.BOTH), 'scheme of these figures')}")
    setting.OUT, setting.scale, setting.seeds = out, options.scale, options.seeds
    setting.only = frozenset(options.only)


PAPER = Paper(
    "dcpim",
    "dcPIM (SIGCOMM 2022)",
    {
        "figure-3a": default_setup.figure_3a,
        "figure-3": default_setup.figure_3,
        "figure-3b": default_setup.figure_3b,
        "reference": default_setup.reference,
        "reference-imc10": default_setup.reference_imc10,
        "departures": default_setup.departures,
        "departures-imc10": lengths.departures_imc10,
        "clocks": default_setup.clocks,
        "figure-4a": evaluation.figure_4a,
        "figure-4b": evaluation.figure_4b,
        "figure-4c": evaluation.figure_4c,
        "figure-5ab": evaluation.figure_5ab,
        "figure-5ab-length": lengths.figure_5ab_length,
        "figure-5cd": evaluation.figure_5cd,
        "figure-6": evaluation.figure_6,
        "figure-6a": evaluation.figure_6a,
        "figure-7": evaluation.figure_7,
        "theorem-1": theory.theorem_1,
        "training": training.training,
    },
    _apply,
    ("papers/dcpim/README.md",),
    frozenset({"scale", "seeds", "only"}),
    absent={
        "figure-1": "a drawing: an example of matching",
        "figure-2": "a drawing: phases side by side",
        "table-1": "the parameters of its simulations",
    },
)
