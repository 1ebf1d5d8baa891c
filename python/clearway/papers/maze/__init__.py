"""Maze (R2C2, section 4.1): runs by the machine's clock beside the simulator, as in figure 7, for all."""

from __future__ import annotations

from pathlib import Path

from clearway.papers._paper import Options, Paper

from . import live


def _apply(options: Options, out: Path) -> None:
    live.OUT, live.scale = out, options.scale


PAPER = Paper(
    "maze",
    "Maze (R2C2, section 4.1)",
    {"figure-7": live.figure_7, "cross-validation": live.cross_validation, "testbeds": live.testbeds},
    _apply,
    ("docs/live-measured.md",),
    frozenset({"scale"}),
)
