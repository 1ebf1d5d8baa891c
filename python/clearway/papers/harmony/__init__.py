"""Harmony (NSDI 2024): its theory, its evaluation, and its section 6's applications, modelled end to end."""

from __future__ import annotations

from pathlib import Path

from clearway.papers._paper import Options, Paper

from . import both, evaluation, setting, theory
from .applications import detector, network, reframer, storage

_APPLICATIONS = {
    "storage": storage.storage,
    "storage-change": storage.storage_change,
    "storage-sensitivity": storage.storage_sensitivity,
    "reframer": reframer.reframer,
    "reframer-sensitivity": reframer.reframer_sensitivity,
    "detector-false": detector.detector_false,
    "detector-time": detector.detector_time,
}


def _apply(options: Options, out: Path) -> None:
    setting.OUT, setting.scale = out, options.scale
    setting.service = "round_robin" if options.in_turn else "fifo"
    network.OUT, network.scale = out / "applications", options.scale


PAPER = Paper(
    "harmony",
    "Harmony (NSDI 2024)",
    {
        "theory": theory.theory,
        "lone": theory.lone,
        "counterexample": theory.counterexample,
        "figure-1": theory.figure_1,
        "figure-4": theory.figure_4,
        "figure-5b": evaluation.figure_5b,
        "figure-5c": evaluation.figure_5c,
        "figure-5d": evaluation.figure_5d,
        "figure-6a": evaluation.figure_6a,
        "figure-6b": evaluation.figure_6b,
        "figure-6c": evaluation.figure_6c,
        "figure-7": evaluation.figure_7,
        "figure-8a": evaluation.figure_8a,
        "figure-8b": evaluation.figure_8b,
        "figure-8c": evaluation.figure_8c,
        "parameters": evaluation.parameters,
        "adversary": theory.adversary,
        "services": evaluation.services,
        "retry": evaluation.retry,
        **both.FIGURES,
        **_APPLICATIONS,
    },
    _apply,
    ("papers/harmony/README.md", "papers/harmony/applications.md"),
    frozenset({"scale", "in_turn"}),
    elsewhere=dict.fromkeys(_APPLICATIONS, "applications"),
    groups={"applications": tuple(_APPLICATIONS), "detector": ("detector-false", "detector-time")},
    absent={
        "figure-2": "a drawing: virtual links and slots",
        "figure-3": "a drawing: a programmable switch",
        "figure-5a": "a drawing: the testbed",
    },
)
