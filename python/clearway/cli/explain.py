"""`clearway explain`: why one flow of a result took as long as it did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw
from clearway.cli.options import read_result, told_of
from clearway.files.whole import replace


def explain(
    result: Annotated[Path, typer.Argument(help="Folder of a result.", metavar="RESULT")],
    flow: Annotated[
        int | None, typer.Option("--flow", help="Number of the flow: column `flow` of its flows.", metavar="N")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="Instead: which queue was the longest at this time, and whose packets were in it."),
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", help="With --at: of this link, such as leaf0-host0.", metavar="LINK")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Also draw where its time went: .svg, .pdf or .png.", metavar="FILE"),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Say why a flow took as long as it did, or what waited where at a time.

    The packets that waited need to have been recorded: `clearway run --trace`, or `measure.packets` in the scenario.
    The state of the flow's transport (window, rate, tokens) needs `measure.flows`, which `--trace` sets too.
    """
    if (flow is None) == (at is None):
        raise ValueError("give either --flow, the number of a flow, or --at, a time such as 1.2ms")
    if flow is None:
        found_at = read_result(result)
        with told_of("explanation", result):
            _say_at(found_at, str(at), link, json_)
        return
    if link is not None:
        raise ValueError(f"--link {link}: it goes with --at")
    known = (".svg", ".pdf", ".png")
    if picture is not None and picture.suffix not in known:
        raise ValueError(f"--picture {picture}: its name must end in one of {', '.join(known)}")
    read = read_result(result)
    with told_of("explanation", result):
        found = read.explain(flow)
    if picture is not None and not len(found.parts) and not len(found.states):
        raise ValueError(f"--picture {picture}: flow {flow} has no parts to draw: it did not complete in packets")
    if picture is not None:
        kind = picture.suffix.removeprefix(".")
        replace(picture, lambda part: found.picture().savefig(part, format=kind))
    if json_:
        said: dict[str, Any] = {"flow": flow, "sentences": found.sentences, "median_flow": found.usual}
        said["us"] = {str(part): row for part, row in found.parts.to_dict("index").items()}
        typer.echo(json.dumps(said | ({"picture": str(picture)} if picture else {}), indent=2))
        return
    typer.echo(str(found))
    if picture is not None:
        typer.echo(f"picture: {picture}")


def _say_at(result: cw.Result, at: str, link: str | None, as_json: bool) -> None:
    from clearway.results.packets import said_at, waiting
    from clearway.results.times import time_of

    when = time_of(at)
    said = said_at(result, when, link)
    if not as_json:
        typer.echo("\n".join(said))
        return
    rows = waiting(result, when, link)[["flow", "says", "bytes", "came_ps", "time_ps"]]
    typer.echo(json.dumps({"time_ps": when, "sentences": said, "packets": json.loads(rows.to_json(orient="records"))}))
