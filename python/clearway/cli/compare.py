"""`clearway compare`: its options, and the comparisons of all schemes that it makes with `--all`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import clearway as cw
from clearway.cli.options import pairs, workload_names
from clearway.cli.said import ITERATIONS, SLOWDOWN, Said, audit_failed, finish, tell_refused, tell_unchanged
from clearway.files.places import check_folder, check_page, held
from clearway.files.whole import replace

if TYPE_CHECKING:
    from clearway.comparisons.outage import Outage
    from clearway.comparisons.training import Training

Scenarios = Annotated[
    list[Path] | None, typer.Argument(help="Scenarios in TOML; none with --all.", metavar="SCENARIO.toml...")
]
Levels = Annotated[
    list[str] | None, typer.Option(help="The level of each run (repeat for both side by side). Default: packet.")
]
Continue = Annotated[
    bool, typer.Option("--continue", help="Keep the finished runs of an interrupted comparison in the same folder.")
]
All = Annotated[
    bool,
    typer.Option(
        "--all",
        help=(
            "Every scheme on two fabrics with three workloads, at loads 0.3 to 0.9; --transport, --load, "
            "--fabric and --workload select some of them. Runs that exist are kept."
        ),
    ),
]
Fabrics = Annotated[list[str] | None, typer.Option(help="With --all: leaf-spine or fat-tree (repeatable).")]
Workloads = Annotated[
    list[str] | None,
    typer.Option(
        help="With --all: websearch, imc10, datamining, or another of `clearway workloads` (repeatable).",
        autocompletion=workload_names,
    ),
]
Duration = Annotated[str | None, typer.Option(help="With --all: time during which messages arrive. Default: 5ms.")]
Sustained = Annotated[
    str | None,
    typer.Option(
        help="With --all: how long messages arrive in runs for the sustained load; none skips these. Default: 15ms."
    ),
]
Work = Annotated[
    str | None,
    typer.Option(
        help=(
            "With --all: flows (the default); training: jobs over each scheme, alone and beside others; or outage: "
            "a plane or a link that dies in the middle of an all-reduce."
        )
    ),
]
Ranks = Annotated[
    list[int] | None,
    typer.Option(help="With --work training: ranks of the jobs, multiples of 16 (repeatable). Default: 128."),
]
Jobs = Annotated[
    list[str] | None,
    typer.Option(help="With --work training: only this work, such as all-reduce or 'beside rpcs' (repeatable)."),
]
Scale = Annotated[
    float | None,
    typer.Option(help="With --work training: factor on the length of buffers and sequences. Default: 1."),
]
Drawn = Annotated[
    Path | None,
    typer.Option("--picture", help="Also draw slowdown by flow size: .png, .svg or .pdf.", metavar="FILE"),
]
Page = Annotated[
    Path | None, typer.Option(help="With --work training or outage: write the table into this page, between its marks.")
]


def side_by_side(
    read: Sequence[cw.Scenario],
    transports: Sequence[Any],
    flow_controls: Sequence[str],
    chosen: Mapping[str, Any],
    folder: Path,
    said: Said,
    picture: Path | None = None,
) -> NoReturn:
    """Runs scenarios under several schemes or seeds, and says how they compare."""
    if picture is not None and picture.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture {picture}: name a file that ends in .png, .svg or .pdf")
    with held(folder):
        check_page(folder / "report.html")
        comparison = cw.compare(read, transports, flow_controls, folder=folder, progress=True, **chosen)
        report = comparison.report(folder / "report.html")
        if picture is not None:
            replace(picture, lambda part: comparison.plot.slowdown().savefig(part, format=picture.suffix[1:]))
    table = comparison.table()
    said.table(table, numbers=SLOWDOWN if "all mean" in table else ITERATIONS)
    said.lines(comparison.said(), "notes")
    said.place("results", folder)
    said.place("report", report)
    if picture is not None:
        said.place("picture", picture)
    tell_unchanged(comparison.unchanged, said)
    tell_refused(comparison.refused, said)
    finish(comparison.results, said, failed=bool(comparison.refused))


def check_several(options: Mapping[str, object]) -> None:
    """Refuses options of a single run beside several seeds."""
    for option, value in options.items():
        if value:
            raise ValueError(f"{option} is of one run, and these are several; give one --seed")


def check_work(work: str | None, options: Mapping[str, object]) -> None:
    """Refuses a work that there is not, and options that belong to another."""
    if work not in (None, "flows", "training", "outage"):
        raise ValueError(f"--work {work}: write flows, training or outage")
    for option, value in options.items():
        owners = ("training", "outage") if option == "--write" else ("training",)
        if value not in (None, []) and work not in owners:
            raise ValueError(f"{option} needs --work {' or '.join(owners)}")


def everything(
    transport: list[str] | None,
    fabric: list[str] | None,
    workload: list[str] | None,
    load: float | None,
    duration: str | None,
    sustained: str | None,
    set_: list[str] | None,
    seeds: Mapping[str, Any],
    workers: int | None,
    out: Path | None,
    said: Said,
) -> None:
    """`compare --all`: every scheme under the same conditions."""
    folder = out or Path("out") / "all"
    check_folder(folder)
    check_page(folder / "report.html")
    chosen: dict[str, Any] = {"fabrics": fabric, "workloads": workload, "duration": duration, **seeds}
    chosen |= {"sustained": "" if sustained == "none" else sustained, "loads": [load] if load is not None else None}
    found = cw.compare_all(
        folder,
        only=transport or (),
        progress=True,
        sets=pairs(set_),
        workers=workers,
        **{key: value for key, value in chosen.items() if value is not None},
    )
    said.table(found.table())
    for name, why in found.absent.items():
        typer.echo(f"{name} did not take part: {why}", err=True)
    said.place("results", folder)
    said.place("report", found.report(folder / "report.html"))
    said.facts({"absent": dict(found.absent), "ok": found.ok})
    said.end()
    if not found.ok:
        audit_failed("the column `audit` of the runs")


def _check_written(page: Path | None, name: str) -> None:
    """Refuses, before any run, a page that has no place for what would be written."""
    from clearway.reports import marked

    if page is not None:
        marked.check(page, name)


def outage(
    transport: list[str] | None,
    set_: list[str] | None,
    seeds: Mapping[str, Any],
    workers: int | None,
    out: Path | None,
    write: Path | None,
    said: Said,
) -> None:
    """`compare --all --work outage`: a link or a plane dies in the middle of an all-reduce."""
    folder = out or Path("out") / "outage"
    check_folder(folder)
    _check_written(write, "training-outage")
    check_page(folder / "report.html")
    found = cw.compare_outage(folder, only=transport or (), sets=pairs(set_), workers=workers, progress=True, **seeds)
    said.table(
        found.table(),
        numbers="no time: it never ends; least: what the links allow; doubled: if the rest takes twice as long",
    )
    if write is not None:
        said.place("page", found.write(write))
    _end(found, folder, said)


def _end(found: Outage | Training, folder: Path, said: Said) -> None:
    """The last lines of the comparisons under training."""
    for name, why in found.absent.items():
        typer.echo(f"{name} did not take part: {why}", err=True)
    said.place("results", folder)
    said.place("report", found.report(folder / "report.html"))
    tell_unchanged(found.unchanged, said)
    said.facts({"absent": dict(found.absent), "ok": found.ok})
    said.end()
    if not found.ok:
        audit_failed("the column `audit` of the runs")


def training(
    transport: list[str] | None,
    ranks: list[int] | None,
    jobs: list[str] | None,
    scale: float | None,
    set_: list[str] | None,
    seeds: Mapping[str, Any],
    workers: int | None,
    out: Path | None,
    write: Path | None,
    said: Said,
) -> None:
    """`compare --all --work training`: jobs over each scheme, alone and beside others."""
    from clearway.comparisons.training import RANKS, marks

    folder = out or Path("out") / "training"
    check_folder(folder)
    _check_written(write, marks(ranks or RANKS))
    check_page(folder / "report.html")
    chosen: dict[str, Any] = {"ranks": ranks, "jobs": jobs, "scale": scale, **seeds}
    found = cw.compare_training(
        folder,
        only=transport or (),
        sets=pairs(set_),
        workers=workers,
        progress=True,
        **{key: value for key, value in chosen.items() if value is not None},
    )
    table = found.table()
    table.index = [f"{scheme}, {count:,} ranks" for scheme, count in table.index]
    said.table(table)
    for sentence in found.said():
        said.line(sentence, {})
    said.facts({"said": found.said()})
    if write is not None:
        said.place("page", found.write(write))
    _end(found, folder, said)
