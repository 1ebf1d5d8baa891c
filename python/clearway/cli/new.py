"""`clearway new`: crates to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clearway.cli.help import App
from clearway.programs import new as _new

app = App(no_args_is_help=True)


@app.callback()
def new() -> None:
    """Write a crate to start from."""


@app.command()
def transport(
    name: Annotated[
        str, typer.Argument(help="Its name: that of the crate, of its folder, and in scenarios.", metavar="NAME")
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            help="Folder of Clearway's source, which the crate is built with. Default: that of this Clearway.",
            metavar="DIR",
        ),
    ] = None,
) -> None:
    """Write a crate with a receiver-driven transport: its code, its tests, and a scenario that runs it.

    docs/write-a-transport.md explains it line by line.
    """
    folder = _new.new_transport(name, ".", source)
    typer.echo(f"{folder}: written. Next, in {folder}:")
    typer.echo("  cargo test")
    typer.echo("  cargo build --release && clearway trust . && clearway run scenario.toml")
