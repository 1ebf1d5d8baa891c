"""What Harmony's guarantee is good for: section 6's three applications, modelled end to end, with the comparison that each draws.

    python papers/harmony/applications.py storage

Each prints a table and whether it shows what the paper says, and leaves a CSV, and where there is one a picture, in
`out/harmony/applications`. What this build has run before is not run again. `applications.md` says what is modelled, and what came out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import figures
from applications import network
from applications.detector import detector_false, detector_time
from applications.reframer import reframer, reframer_sensitivity
from applications.storage import storage, storage_change, storage_sensitivity

APPLICATIONS: dict[str, figures.Figures] = {
    "storage": {"storage": storage, "storage-change": storage_change, "storage-sensitivity": storage_sensitivity},
    "reframer": {"reframer": reframer, "reframer-sensitivity": reframer_sensitivity},
    "detector": {"detector-false": detector_false, "detector-time": detector_time},
}


def main(
    which: Annotated[
        list[str] | None, typer.Argument(help=f"{', '.join(APPLICATIONS)}, one of their tables, or all.")
    ] = None,
    scale: Annotated[float, typer.Option(help="Runs are this many times as long.")] = 1.0,
) -> None:
    """Models section 6's applications of Harmony."""
    network.scale = scale
    tables = {name: table for of in APPLICATIONS.values() for name, table in of.items()}
    names = [name for asked in which or [] for name in APPLICATIONS.get(asked, [asked])]
    figures.show(tables, names, network.OUT)


if __name__ == "__main__":
    typer.run(main)
