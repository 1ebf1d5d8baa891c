"""`clearway run --checkpoint` and `--resume`; `clearway inspect`: what is in a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw
from clearway.cli.said import Said

NAME = "last.checkpoint"

When = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        help='Write the whole state down at this simulated time, such as 2ms, or at "every 10ms", so that the run '
        "can go on from there (docs/checkpoints.md).",
        metavar="TIME",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the last checkpoint of this scenario, instead of from the start.")
]


def folder_of(result: Path) -> Path:
    """The folder of a run's checkpoints: beside that of its result, which is replaced as a whole."""
    return result.with_name(f"{result.name}-checkpoints")


def chosen(result: Path, when: str | None, resume: bool) -> dict[str, Any]:
    """The settings of `cw.run`."""
    file = folder_of(result) / NAME
    if resume and not file.is_file():
        raise FileNotFoundError(f"--resume: there is no {file}; run with --checkpoint first")
    if when is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    return {"checkpoint": when, "checkpoint_file": file, "resume": file if resume else None}


def tell(result: Path, when: str | None, said: Said) -> None:
    """Where the last checkpoint is; or that there is none, because the run ended before it was due."""
    file = folder_of(result) / NAME
    if when is None:
        return
    if file.is_file():
        said.place("checkpoint", file)
    else:
        typer.echo("no checkpoint was due before the run ended", err=True)


def inspect(
    checkpoint: Annotated[
        Path, typer.Argument(help="File of a checkpoint, or the folder that has it.", metavar="CHECKPOINT")
    ],
    what: Annotated[
        str | None,
        typer.Argument(help="A node, such as host3, or a port of a switch, such as spine0:3.", metavar="NODE"),
    ] = None,
    flow: Annotated[int | None, typer.Option("--flow", help="Number of a flow: its state at both ends.", min=0)] = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the files are that the scenario names.", metavar="DIR")
    ] = Path("."),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the whole state of a node, a port or a flow in a checkpoint.

    Names are those of the code, which are the papers'. Without a node: how far the network has come.
    """
    if what is not None and flow is not None:
        raise ValueError("give either a node or --flow")
    tree = cw.inspect(checkpoint / NAME if checkpoint.is_dir() else checkpoint, what, flow=flow, folder=folder)
    if json_:
        typer.echo(json.dumps(tree, indent=1))
        return
    for line in lines(tree):
        typer.echo(line)


def lines(tree: Any, depth: int = 0) -> list[str]:
    """A tree as lines that are indented; what is short stands in one.

    >>> lines({"time": "2us", "queue": {"packets": [], "bytes": 0}, "flows": [1, 2]})
    ['time: 2us', 'queue: packets: none, bytes: 0', 'flows: 1, 2']
    """
    if (flat := _flat(tree)) is not None:
        return [f"{'  ' * depth}{flat}"]
    fields = tree.items() if isinstance(tree, dict) else enumerate(tree)
    said = []
    for name, value in fields:
        flat = _flat(value)
        if flat is not None and len(flat) + 2 * depth < 100:
            said.append(f"{'  ' * depth}{name}: {flat}")
        else:
            said += [f"{'  ' * depth}{name}:", *lines(value, depth + 1)]
    return said


def _flat(value: Any) -> str | None:
    """A value in one line, if it holds nothing that needs more."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ([], {}):
        return "none"
    if not isinstance(value, (list, dict)):
        return str(value)
    items = value.values() if isinstance(value, dict) else value
    if any(isinstance(item, (list, dict)) and item for item in items):
        return None
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_flat(item)}" for name, item in value.items()) if len(value) <= 4 else None
    return ", ".join(str(_flat(item)) for item in value)
