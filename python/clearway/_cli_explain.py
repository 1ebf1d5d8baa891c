"""`clearway explain`: why one flow of a result took as long as it did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw


def explain(
    result: Annotated[Path, typer.Argument(help="Folder of a result.", metavar="RESULT")],
    flow: Annotated[int, typer.Option("--flow", help="Number of the flow: column `flow` of its flows.", metavar="N")],
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Also draw where its time went: .svg, .pdf or .png.", metavar="FILE"),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Say why a flow took as long as it did, beside the median flow of its size."""
    known = (".svg", ".pdf", ".png")
    if picture is not None and picture.suffix not in known:
        raise ValueError(f"--picture {picture}: its name must end in one of {', '.join(known)}")
    found = cw.load(result).explain(flow)
    if picture is not None and not len(found.parts):
        raise ValueError(f"--picture {picture}: flow {flow} has no parts to draw: it did not complete in packets")
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        found.picture().savefig(picture)
    if json_:
        said: dict[str, Any] = {"flow": flow, "sentences": found.sentences, "median_flow": found.usual}
        said["us"] = {str(part): row for part, row in found.parts.to_dict("index").items()}
        typer.echo(json.dumps(said | ({"picture": str(picture)} if picture else {}), indent=2))
        return
    typer.echo(str(found))
    if picture is not None:
        typer.echo(f"picture: {picture}")
