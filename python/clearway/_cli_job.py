"""`clearway job`: a scenario's training job as a file of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clearway._cli_options import Json, ScenarioFile, Seed, Sets, read_scenarios
from clearway._cli_said import Said


def job(
    scenario: ScenarioFile,
    set_: Sets = None,
    seed: Seed = None,
    goal: Annotated[
        Path | None, typer.Option(help="Write GOAL text (LogGOPSim, ATLAHS) to this file.", metavar="FILE")
    ] = None,
    chakra: Annotated[
        Path | None,
        typer.Option(help="Write Chakra execution traces (ASTRA-sim): PREFIX.0.et for rank 0, ...", metavar="PREFIX"),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--job", help="The name of the job. Default: the only one.", metavar="NAME")
    ] = None,
    json_: Json = False,
) -> None:
    """Write a scenario's training job for other tools."""
    if goal is None and chakra is None:
        raise ValueError("say what to write: --goal FILE, --chakra PREFIX, or both")
    read, said = read_scenarios([scenario], set_, seed, None)[0], Said(json_)
    files = read.write_job(goal=goal, chakra=chakra, job=name)
    shown = [str(file) for file in files]
    more = f", ..., {shown[-1]} ({len(shown):,} files)" if len(shown) > 2 else ", ".join(["", *shown[1:]])
    said.line(f"written: {shown[0]}{more}", {"written": shown})
    said.end()
