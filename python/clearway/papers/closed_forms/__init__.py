"""Every scheme compared with derived numbers: closed forms, and laws from the papers.

Each law stands beside its comparison, derived there or cited; how far ours may be off was chosen before the run.
"""

from __future__ import annotations

from pathlib import Path

from clearway.papers._paper import Options, Paper

from . import comparisons


def _apply(options: Options, out: Path) -> None:
    """Nothing here has options, and small runs are not kept."""


PAPER = Paper(
    "closed-forms",
    "Closed forms and laws",
    {
        "transports": comparisons.all_transports,
        "loss": comparisons.loss,
        "congestion": comparisons.congestion,
        "flow-control": comparisons.flow_control,
        "sharing": comparisons.shares,
    },
    _apply,
    ("docs/accuracy.md",),
)
