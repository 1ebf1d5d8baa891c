"""`clearway tune`: thresholds of a switch, by search over runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw
from clearway.cli.options import FlowControl, Json, Out, Sets, pairs
from clearway.cli.said import EXIT_AUDIT, EXIT_INTERRUPTED, Said
from clearway.files.places import check_folder, check_page, held, place_of
from clearway.files.whole import replace


def share_of(text: str) -> float | None:
    """`10%`, `0.1` or `any`."""
    if text.strip() == "any":
        return None
    number, times = (text.strip()[:-1], 0.01) if text.strip().endswith("%") else (text, 1.0)
    try:
        found = float(number) * times
    except ValueError:
        found = -1.0
    if not 0 <= found <= 100:
        raise ValueError(f"--worse {text}: write a share such as 10%, or any")
    return found


def tune(
    scenarios: Annotated[
        list[Path],
        typer.Argument(help="Scenarios with one switch, and the traffic that it is for.", metavar="SCENARIO.toml..."),
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(
            help="A key to tune, with a range if you like: headroom, alpha, ecn.min=20KB..400KB, ecn.max, "
            "ecn.probability_max, reserved, or one key such as group.1.alpha (repeatable). Default: all but reserved.",
            metavar="KEY[=FROM..TO]",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The first seed. Default: the scenario's.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds with which each setting is tried.", min=1)] = 3,
    worse: Annotated[
        str,
        typer.Option(help="By how much p99 slowdown and goodput may get worse; any: by whatever.", metavar="SHARE"),
    ] = "10%",
    rounds: Annotated[int, typer.Option(help="How often each key is gone through, at most.", min=1)] = 2,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what is tuned, how many runs that takes and how long.")
    ] = False,
    set_: Sets = None,
    flow_control: FlowControl = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes on this machine. Default: one per core.", min=1)
    ] = None,
    out: Out = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the curve into this file: .png, .svg or .pdf.", metavar="FILE")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Also write the answer into this page, between its marks.", metavar="PAGE")
    ] = None,
    json_: Json = False,
) -> None:
    """Find the least headroom, and the marks and alphas, that keep a workload lossless with the least pausing.

    Settings of `flow_control.mmu` are varied over runs of the scenario's own traffic, with several seeds. The answer is
    tables for the scenario, keys of SONiC's configuration where it came from one, and the curve. After an interruption,
    resume with the same command.
    """
    from clearway.reports import marked
    from clearway.tuning.search import plan

    said, share = Said(json_), share_of(worse)
    if picture is not None and picture.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture {picture}: name a file that ends in .png, .svg or .pdf")
    known = pairs(set_)
    read = [cw.Scenario.load(path, known).with_(flow_control=flow_control) for path in scenarios]
    drawn: Any = seeds if seed is None else list(range(seed, seed + seeds))
    chosen = {"keys": key or (), "seeds": drawn, "rounds": rounds, "workers": workers}
    planned = plan(read, **chosen)
    if dry_run:
        said.table(planned.table(), "knobs")
        for note in planned.notes:
            said.line(note, {})
        said.line(str(planned), {"runs": planned.runs, "seconds": planned.seconds})
        said.end()
        return
    folder = out or place_of(scenarios, "-tune")
    if write is not None:
        marked.check(write, "tune")
    check_folder(folder)
    typer.echo(str(planned), err=True)
    with held(folder):
        check_page(folder / "tune.html")
        found = cw.tune(read, folder, worse=share, tell=lambda line: typer.echo(line, err=True), **chosen)
        page = found.report(folder / "tune.html") if found.best is not None else None
        for file in (folder / "tune.png", picture):
            if file is not None and found.curves:
                replace(file, partial(found.curve().savefig, format=file.suffix[1:], dpi=110))
        if write is not None and found.lossless:
            found.write(write)
    _answer(found, folder, page, said)


def _answer(found: cw.Tuned, folder: Path, page: Path | None, said: Said) -> None:
    """Prints the answer, and exits by it."""
    said.table(found.table(), "values")
    said.lines(found.said(), "said")
    if found.lossless:
        said.line(found.snippet(), {"toml": found.snippet()})
        said.lines(found.sonic(), "sonic")
    facts = {"lossless": found.lossless, "setting": found.setting, "needed": dict(found.needed)}
    said.facts(facts | {"least": dict(found.least), "interrupted": found.interrupted})
    for what, place in {"runs": folder / "trials.parquet", "page": page}.items():
        if place is not None:
            said.place(what, place)
    if found.curves:
        said.place("curve", folder / "tune.png")
    said.end()
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if not found.lossless:
        raise typer.Exit(EXIT_AUDIT)
