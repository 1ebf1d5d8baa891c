"""`clearway job`: a scenario's training job as a file of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.options import Json, ScenarioFile, Seed, Sets, read_scenarios
from clearway.cli.said import Said
from clearway.files import whole


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
    files = _written(read, goal, chakra, name)
    shown = [str(file) for file in files]
    more = f", ..., {shown[-1]} ({len(shown):,} files)" if len(shown) > 2 else ", ".join(["", *shown[1:]])
    said.line(f"written: {shown[0]}{more}", {"written": shown})
    said.end()


def _written(read: cw.Scenario, goal: Path | None, chakra: Path | None, name: str | None) -> list[Path]:
    keeper = whole.keeper
    if keeper is None:
        return read.write_job(goal=goal, chakra=chakra, job=name)
    files: list[Path] = []
    for kind, place in (("goal", goal), ("chakra", chakra)):
        staged = keeper.staged(place) if place is not None else None
        if place is None or staged is None:
            continue
        for part in read.write_job(**{kind: staged.folder / staged.place.name}, job=name):
            keeper.add(staged, part)
            files.append(place.with_name(part.name))
    return files
