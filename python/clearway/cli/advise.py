"""`clearway advise`: which transport for a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.options import Json, Out, ScenarioFile, Sets, names, read_scenarios
from clearway.cli.said import Said, audit_failed
from clearway.files.places import check_folder, check_page, held, place_of


def advise(
    scenario: ScenarioFile,
    budget: Annotated[str, typer.Option(help="Time for the search, such as 90s, 10m or 2h.", metavar="TIME")] = "10m",
    transport: Annotated[
        list[str] | None,
        typer.Option(
            help="Transport to compare (repeatable). Default: all.", metavar="NAME", autocompletion=names("transport")
        ),
    ] = None,
    buffer: Annotated[
        list[str] | None,
        typer.Option(
            help="Buffer size to try (repeatable). Default: a quarter, half, two and four times the present one.",
            metavar="SIZE",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds per transport, at most.", min=2)] = 10,
    set_: Sets = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes on this machine. Default: one per core.", min=1)
    ] = None,
    out: Out = None,
    write: Annotated[
        Path | None, typer.Option(help="Also write the answer into this page, between its marks.", metavar="PAGE")
    ] = None,
    json_: Json = False,
) -> None:
    """Say which transport suits a cluster, with which buffers, and what a failed link does.

    The scenario describes the cluster: its fabric, and its traffic or training job. Every transport runs it with one
    seed, the best ones with several seeds, failed links and other buffers, within a budget of time. The answer is a
    list of sentences with their uncertainty, and a page to hand on.
    """
    from clearway.comparisons.advise import seconds_of
    from clearway.reports import marked

    seconds = seconds_of(budget)
    read = read_scenarios([scenario], set_, None, None)[0]
    folder, said = out or place_of([scenario], "-advise"), Said(json_)
    if write is not None:
        marked.check(write, "advice")
    check_folder(folder)
    with held(folder):
        check_page(folder / "advice.html")
        found = cw.advise(
            read, folder, budget=seconds, seeds=seeds, only=transport or (), buffers=buffer or (), workers=workers
        )
        page = found.report(folder / "advice.html", read)
        if write is not None:
            found.write(write)
    if json_ or sys.stdout.isatty():
        said.table(found.table())
    for number, sentence in enumerate(found.said(), 1):
        said.line(f"{number}. {sentence}", {})
    said.line(f"{found.setting}.", {"setting": found.setting})
    said.facts({"said": found.said(), "absent": dict(found.absent)})
    said.place("page", page)
    said.end()
    if not found.ok:
        audit_failed("the column `status` of the runs")
