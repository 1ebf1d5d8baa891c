"""`clearway trust`: whose programs may run."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from clearway.programs import trust as _trust
from clearway.programs.program import to_trust, trusted


def trust(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a crate, as `transports` of a scenario names it. Default: list the folders that are "
            "trusted.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only say what would run.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust the folder no more.")] = False,
) -> None:
    """Allow the program of a transport crate to run, in its present state.

    A scenario can name a folder whose program reads and runs it, with all rights that you have. It is not started
    before you have trusted it once, and again whenever it or its code has changed. The command says what will run, and
    starts nothing.
    """
    if folder is None:
        if show or forget:
            raise ValueError("name a folder")
        for one in _trust.known():
            typer.echo(f"{one.folder}: {one.program}")
        if not _trust.known():
            typer.echo("no folder is trusted; `clearway trust FOLDER` trusts one", err=True)
        return
    if forget:
        if not _trust.forget(folder):
            raise ValueError(f"{folder} was not trusted; `clearway trust` lists the folders that are")
        typer.echo(f"{folder}: trusted no more")
        return
    for line in _trust_in(folder, show):
        typer.echo(line)


def _trust_in(folder: Path, show: bool) -> list[str]:
    new = trusted(to_trust(folder))
    about = Path(new.program).stat()
    built = datetime.fromtimestamp(about.st_mtime).strftime("%Y-%m-%d %H:%M:%S")
    lines = [
        f"{new.folder}: scenarios that name this folder {'would' if show else 'may'} start, with all rights that you "
        "have:",
        f"  {new.program} ({about.st_size:,} bytes, of {built})",
    ]
    if new.sources:
        lines += ["built with code from elsewhere:", *(f"  {source}" for source in new.sources)]
    if not show:
        _trust.remember(new)
        lines.append("trusted, until the program or its code changes; `clearway trust --forget FOLDER` ends it")
    return lines
