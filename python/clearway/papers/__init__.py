"""The papers of this project: their figures and tables, run, drawn and checked against the printed values.

    >>> from clearway import papers
    >>> papers.PAPERS["pyrrha"]
    'Pyrrha (NSDI 2025)'
    >>> list(papers.paper("homa").figures)
    ['figure-12', 'bursts']

As a command: `clearway paper`. Scenarios and reference data are files of this package, beside each paper's modules.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from clearway.papers._paper import Options, Paper
    from clearway.papers.figures import Shown

__all__ = ["PAPERS", "RIVALS", "paper", "run"]

PAPERS = {
    "dcpim": "dcPIM (SIGCOMM 2022)",
    "augmented-queue": "Augmented Queue (SIGCOMM 2023)",
    "pyrrha": "Pyrrha (NSDI 2025)",
    "harmony": "Harmony (NSDI 2024)",
    "r2c2": "R2C2 (SIGCOMM 2015)",
}
"""The five papers whose evaluation is reproduced, by the command's name for each."""

RIVALS = {
    "phost": "pHost (CoNEXT 2015) and pFabric (SIGCOMM 2013)",
    "homa": "Homa (SIGCOMM 2018)",
    "ndp": "NDP (SIGCOMM 2017)",
    "uet": "Ultra Ethernet Transport (2025)",
    "ns3": "TCP beside ns-3 3.44",
    "hardware": "Collectives, experts, a switch, and software of hosts, as measured on hardware",
    "maze": "Maze (R2C2, section 4.1): live runs beside the simulator",
    "closed-forms": "Every scheme beside closed forms and the laws of its paper",
}
"""Other schemes that are compared with numbers from outside."""


def paper(name: str) -> Paper:
    """A paper by its name; `ValueError` lists the known ones."""
    known = [*PAPERS, *RIVALS]
    if name not in known:
        raise ValueError(unknown(name, known, "paper"))
    return cast("Paper", import_module(f"clearway.papers.{name.replace('-', '_')}").PAPER)


def run(name: str, figure: str, options: Options | None = None) -> Shown:
    """Runs a figure or table. Returns its table, which of the paper's statements hold, and its picture.

    Finished runs are kept in the folder `out` of the paper, in the current folder unless `options` names another.
    """
    from clearway.papers._paper import Options

    chosen = paper(name)
    function = chosen.figure(figure)
    chosen.use(options or Options())
    return function()


def unknown(name: str, known: list[str], kind: str) -> str:
    """The message about an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(name, known, 1)
    return (
        f"{name!r} is not a {kind}; " + (f"did you mean {near[0]!r}? " if near else "") + f"known: {', '.join(known)}"
    )
