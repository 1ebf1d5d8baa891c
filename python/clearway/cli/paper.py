"""The command `clearway paper`: runs, draws and checks the figures of papers."""

from __future__ import annotations

import dataclasses
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearway.files.whole import replace

if TYPE_CHECKING:
    from clearway.papers._paper import Options, Paper

EXIT_FAILS, EXIT_USAGE = 1, 2


def _papers(incomplete: str) -> list[str]:
    from clearway import papers

    return [name for name in [*papers.PAPERS, *papers.RIVALS] if name.startswith(incomplete)]


def _figures(context: typer.Context, incomplete: str) -> list[str]:
    from clearway import papers

    chosen = context.params.get("name")
    return [name for name in papers.paper(chosen).figures if name.startswith(incomplete)] if chosen else []


def paper(
    name: Annotated[
        str | None,
        typer.Argument(help="A paper, such as pyrrha; none lists them.", metavar="PAPER", autocompletion=_papers),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            help="Its figures and tables, such as figure-11; none lists them.",
            metavar="FIGURE...",
            autocompletion=_figures,
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="All figures of the paper, or of all papers if none is named.")
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Write the results into the pages of the repository, with commit, seeds and digest; all figures of "
            "the paper if none is named.",
        ),
    ] = False,
    stale: Annotated[
        bool,
        typer.Option(
            "--stale",
            help="Run a slice of each record again, in two minutes for all papers, and list the records that this "
            "build no longer gives, cheapest first; with --write, say so on their pages; with --all --write, make "
            "them anew, which goes on where it was interrupted.",
        ),
    ] = False,
    scale: Annotated[
        float,
        typer.Option(help="Factor on the number of flows, or on the time for which they arrive.", metavar="FACTOR"),
    ] = 1.0,
    seeds: Annotated[int, typer.Option(help="Number of seeds of results with confidence intervals.", metavar="N")] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Of the other schemes run only this one (repeatable).", metavar="SCHEME"),
    ] = None,
    in_turn: Annotated[bool, typer.Option("--in-turn", help="Harmony: links serve virtual links in turn.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for runs, tables and pictures; out/PAPER if not given.", metavar="DIR"),
    ] = None,
) -> None:
    """Run, draw and check figures and tables of the papers, with the papers' numbers beside ours.

    Runs that this build has finished are kept. Exits with 1 if a statement of a paper does not hold.
    """
    from clearway import papers
    from clearway.papers._paper import Options

    options = Options(scale, seeds, tuple(only or ()), in_turn, out)
    if stale:
        if figures or options.words:
            raise ValueError("--stale takes records of whole papers, with the options of each; name no figure and none")
        chosen = _stale([papers.paper(name).name] if name else [*papers.PAPERS, *papers.RIVALS], out, all_, write)
        if chosen and not (all_ and write and _run_all(chosen, write)):
            raise typer.Exit(EXIT_FAILS)
        return
    if name is None:
        if not (all_ or write):
            _list([papers.paper(each) for each in papers.PAPERS], [papers.paper(each) for each in papers.RIVALS])
            return
        wanted = [papers.paper(each) for each in [*papers.PAPERS, *papers.RIVALS]]
        # Each paper gets the options that it takes.
        chosen = [(of, _fitting(of, options), list(of.figures)) for of in wanted]
    else:
        of = papers.paper(name)
        if all_ and figures:
            raise ValueError(f"--all runs all figures of {name}; name none beside it")
        if not (figures or all_ or write):
            _list([of])
            return
        chosen = [(of, options, of.names(figures or []))]
    if not _run_all(chosen, write):
        raise typer.Exit(EXIT_FAILS)


def _stale(names: list[str], out: Path | None, all_: bool, write: bool) -> list[tuple[Paper, Options, list[str]]]:
    """Lists the records that this build no longer gives; what to run to make them anew."""
    from clearway import papers
    from clearway.papers import records
    from clearway.papers._paper import Options

    root = records.root()
    found = records.stale(root, names, partial(typer.echo, err=True))
    if write:
        records.mark(root, names, [record for record, _ in found])
        _write_pages(root)
    for record, why in found:
        typer.echo(f"{records.command(record)} --write\n    {record['cpu_seconds']:,.0f} s of CPU; {why}")
    hours = sum(float(record["cpu_seconds"]) for record, _ in found) / 3600
    anew = " ".join(["clearway paper", *(names if len(names) == 1 else ()), "--all --stale --write"])
    last = f"; to make them anew takes about {hours:.1f} h of CPU: {anew}" if found and not (all_ and write) else ""
    typer.echo(f"{len(found)} records are stale{last}")
    return [
        (papers.paper(record["paper"]), dataclasses.replace(Options.of(record["options"]), out=out), [record["figure"]])
        for record, _ in found
    ]


def _fitting(of: Paper, options: Options) -> Options:
    """The options that a paper takes, with a folder of its own."""
    default = type(options)()
    kept = {key: getattr(options if key in of.takes else default, key) for key in ("scale", "seeds", "only", "in_turn")}
    return dataclasses.replace(options, **kept, out=None if options.out is None else options.out / of.name)


def _list(*groups: list[Paper]) -> None:
    from clearway.papers._paper import title

    for group in groups:
        for of in group:
            taken = "".join(f" --{option.replace('_', '-')}" for option in sorted(of.takes))
            typer.secho(f"{of.name}: {of.title}{f'   [{taken.strip()}]' if taken else ''}", bold=True)
            for figure, function in of.figures.items():
                typer.echo(f"  {figure:20} {title(function)}")
            for figure, why in of.absent.items():
                typer.echo(f"  ({figure}: {why})")
    typer.echo(
        "\nclearway paper PAPER FIGURE runs, draws and checks one; clearway paper --all runs everything, in hours."
    )


def _run_all(chosen: list[tuple[Paper, Options, list[str]]], write: bool) -> bool:
    """Runs figures; whether all statements of the papers hold."""
    from clearway.papers import figures, records

    root = records.root() if write else None
    figures.telling = True
    began, total, at, ok = time.monotonic(), sum(len(names) for *_, names in chosen), 0, True
    try:
        for of, options, names in chosen:
            for name in names:
                at += 1
                folder = of.use(options)
                if total > 1:
                    typer.echo(f"{of.name} {name}: {at} of {total}, after {time.monotonic() - began:,.0f} s", err=True)
                try:
                    ok &= _run(of, name, options, folder, root)
                except Exception as error:
                    # Of hours of figures the others are made.
                    if total == 1:
                        raise
                    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
                    typer.secho(f"error: {of.name} {name}: {kind}{error}", err=True, fg=typer.colors.RED)
                    ok = False
    finally:
        # After an interruption too: pages must agree with the records that were written.
        if root is not None:
            _write_pages(root)
    if total > 1:
        typer.echo(f"{total} figures in {time.monotonic() - began:,.0f} s", err=True)
    return ok


def _run(of: Paper, name: str, options: Options, folder: Path, root: Path | None) -> bool:
    """Runs one figure or table; whether the paper's statements hold."""
    from clearway.papers import accuracy, figures, records, slices
    from clearway.papers._paper import title

    typer.secho(f"\n{of.name} {name}: {title(of.figures[name])}", bold=True)
    began, cpu = time.perf_counter(), sum(os.times()[:4])
    with figures.listened() as ran:
        shown = of.figures[name]()
    spent = sum(os.times()[:4]) - cpu, time.perf_counter() - began
    typer.echo(shown.table.map(records.number).to_string())
    for check, holds in shown.checks.items():
        typer.secho(f"  {'pass' if holds else 'FAIL'}  {check}", fg=None if holds else typer.colors.RED)
    folder = folder / of.elsewhere.get(name, "")
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / f"{name}.csv", shown.table.to_csv)
    typer.echo(f"  {folder / name}.csv")
    if shown.picture is not None:
        draw = partial(shown.picture.savefig, format="png", dpi=150)
        replace(folder / f"{name}.png", draw)
        typer.echo(f"  {folder / name}.png")
    if root is not None:
        record = records.make(of, name, shown, ran, options, spent)
        record["slice"] = slices.of_figure(of, name, options, asked=ran.asked).pieces
        typer.echo(f"  {records.save(record, root)}")
        if shown.held:
            accuracy.record(of.name, name, shown.held, records.command(record), root)
        if shown.picture is not None and (place := records.shown_pictures(of, root).get(name)):
            replace(place, draw)
    return all(shown.checks.values())


def _write_pages(root: Path) -> None:
    from clearway.papers import accuracy, records

    for page in [*records.write_pages(root), accuracy.write(root)]:
        typer.echo(f"page: {page}")
