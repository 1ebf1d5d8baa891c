"""`clearway view`: a result's packets over time, in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from clearway.cli.options import read_result, told_of
from clearway.files import whole


def view(
    result: Annotated[Path, typer.Argument(help="Folder of a result with recorded packets.", metavar="RESULT")],
    out: Annotated[Path | None, typer.Option(help="The page. Default: view.html in the result's folder.")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Write the page and open no browser.")] = False,
) -> None:
    """Draw a result's recorded packets over time, in a page that needs no network, and open it.

    Record packets with `clearway run SCENARIO.toml --set "measure.packets={}"`, or with --trace.
    """
    found = read_result(result)
    with told_of("view", result):
        page = found.view(out or result / "view.html")
    typer.echo(f"view: {page}")
    if not no_open and not _open(page):
        typer.echo("no browser was found: open this file in one")


def _open(page: Path) -> bool:
    # In a sandbox no program can be started: the process that puts the page in its place opens it.
    return whole.keeper.show(page) if whole.keeper is not None else webbrowser.open(page.resolve().as_uri())
