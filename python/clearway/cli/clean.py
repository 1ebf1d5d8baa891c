"""`clearway clean`: removes what killed commands have left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clearway.files import whole


def clean(
    folders: Annotated[list[Path], typer.Argument(help="Folders in which results are.", metavar="FOLDER...")],
) -> None:
    """Remove files and folders that commands began to write in these folders, or inside them, before they were killed.

    Files that another command is writing stay, and so do all files that Clearway has not made.
    """
    found = [said for folder in folders for said in whole.clean(folder)]
    for said in found:
        typer.echo(said)
    if not found:
        typer.echo("nothing was left behind")
