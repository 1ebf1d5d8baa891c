from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table as RichTable

import clearway as cw
from clearway._run import slug
from clearway._sustain import KEEPS_UP

app = typer.Typer(
    help="Clearway: a laboratory for datacenter networks without congestion.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ScenarioFile = Annotated[Path, typer.Argument(help="A scenario, TOML.", metavar="SCENARIO.toml")]
ScenarioFiles = Annotated[list[Path], typer.Argument(help="Scenarios, TOML.", metavar="SCENARIO.toml...")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a key, such as fabric.leaf_spine.racks=4 (again for more).", metavar="KEY=VALUE"),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.")]
Load = Annotated[float | None, typer.Option(help="Load of all classes that arrive by load.")]
FlowControl = Annotated[
    str | None, typer.Option(help="The flow control between switches, such as pfc, in place of the scenario's.")
]
Threads = Annotated[int | None, typer.Option(help="Threads; all cores if not given.", min=1)]
Out = Annotated[Path | None, typer.Option(help="Folder for the results.", metavar="DIR")]

# A sweep's table that is longer is not printed.
ROWS = 60

EXIT_AUDIT, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


@app.command()
def run(
    scenario: ScenarioFile,
    set_: Sets = None,
    seed: Seed = None,
    load: Load = None,
    flow_control: FlowControl = None,
    level: Annotated[
        str, typer.Option(help='"packet", or "flow" for an estimate in seconds without packets: see docs/flow-level.md.')
    ] = "packet",
    threads: Threads = None,
    out: Out = None,
) -> None:
    """Simulate a scenario and keep the result."""
    read = _read([scenario], set_, seed, load)[0].with_(flow_control=flow_control)
    result = cw.run(read, level=level, threads=threads)
    folder = result.save(out or Path("out") / slug(scenario.stem))
    _show(cw.Comparison([result]).table())
    _finish([result], [f"result: {folder}", f"report: {result.report(folder / 'report.html')}"])


@app.command()
def compare(
    scenarios: Annotated[
        list[Path] | None, typer.Argument(help="Scenarios, TOML; none with --all.", metavar="SCENARIO.toml...")
    ] = None,
    transport: Annotated[
        list[str] | None, typer.Option(help="A transport to run each scenario with (again for more).")
    ] = None,
    flow_control: Annotated[
        list[str] | None, typer.Option(help="A flow control to run each of them over (again for more).")
    ] = None,
    level: Annotated[
        list[str] | None, typer.Option(help="The level of each run, packet if not given (again for both side by side).")
    ] = None,
    set_: Sets = None,
    seed: Seed = None,
    load: Load = None,
    threads: Threads = None,
    out: Out = None,
    continue_: Annotated[
        bool, typer.Option("--continue", help="Keep what an interrupted comparison in the same folder has finished.")
    ] = False,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Every scheme of the house on two fabrics under three workloads, loads 0.3 to 0.9; --transport, --load, "
            "--fabric and --workload choose among them. What is there already is kept.",
        ),
    ] = False,
    fabric: Annotated[list[str] | None, typer.Option(help="With --all: leaf-spine or fat-tree (again for more).")] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help="With --all: websearch, imc10, datamining, or another of `clearway workloads` (again for more).")
    ] = None,
    duration: Annotated[str | None, typer.Option(help="With --all: how long messages arrive in a run; 5ms if not given.")] = None,
    sustained: Annotated[
        str | None, typer.Option(help="With --all: how long where the sustained load is looked for, 15ms if not given; none to leave it out.")
    ] = None,
) -> None:
    """Run several schemes or scenarios; one table, one report."""
    of_all = {"--fabric": fabric, "--workload": workload, "--duration": duration, "--sustained": sustained}
    if all_:
        if scenarios or flow_control:
            raise ValueError("--all has scenarios and flow controls of its own: name none")
        _compare_all(transport, fabric, workload, load, duration, sustained, set_, seed, threads, out)
        return
    for option, value in of_all.items():
        if value:
            raise ValueError(f"{option} goes with --all")
    if not scenarios:
        raise ValueError("name a scenario, such as examples/dcpim-vs-tcp.toml, or say --all")
    folder = out or Path("out") / slug("-".join(path.stem for path in scenarios))
    read = _read(scenarios, set_, seed, load)
    levels = level or ["packet"]
    comparison = cw.compare(
        read, transport or (), flow_control or (), levels=levels, threads=threads, folder=folder, keep=continue_
    )
    _show(comparison.table())
    _finish(comparison.results, [f"results: {folder}", f"report: {comparison.report(folder / 'report.html')}"])


def _compare_all(
    transport: list[str] | None,
    fabric: list[str] | None,
    workload: list[str] | None,
    load: float | None,
    duration: str | None,
    sustained: str | None,
    set_: list[str] | None,
    seed: int | None,
    workers: int | None,
    out: Path | None,
) -> None:
    folder = out or Path("out") / "all"
    chosen: dict[str, Any] = {"fabrics": fabric, "workloads": workload, "duration": duration, "seed": seed}
    chosen |= {"sustained": "" if sustained == "none" else sustained, "loads": [load] if load is not None else None}
    found = cw.compare_all(
        folder, only=transport or (), sets=_pairs(set_), workers=workers, **{key: value for key, value in chosen.items() if value is not None}
    )
    _show(found.table())
    for name, why in found.absent.items():
        typer.echo(f"{name} did not take part: {why}", err=True)
    typer.echo(f"results: {folder}")
    typer.echo(f"report: {found.report(folder / 'report.html')}")
    if not found.ok:
        typer.echo("AUDIT: a run is not in order; the column audit of the runs says which", err=True)
        raise typer.Exit(EXIT_AUDIT)


@app.command()
def sustain(
    scenario: ScenarioFile,
    traffic: Annotated[
        str | None, typer.Option(help="The class to load and to judge; the first that arrives by load if not given.")
    ] = None,
    low: Annotated[float, typer.Option(help="The lowest load.")] = 0.05,
    high: Annotated[float, typer.Option(help="The highest load.")] = 1.0,
    resolution: Annotated[float, typer.Option(help="Steps between loads.")] = 0.01,
    slowdown: Annotated[float | None, typer.Option(help="No completed message may be slower.")] = None,
    delay_us: Annotated[float | None, typer.Option(help="No completed message may take longer.")] = None,
    keeps_up: Annotated[
        float, typer.Option(help="Share of what arrives by which unfinished work must not grow.", min=0.0, max=1.0)
    ] = KEEPS_UP,
    all_complete: Annotated[
        bool, typer.Option("--all-complete", help="In place of that: every message must complete, as Harmony's paper has it.")
    ] = False,
    set_: Sets = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seed of everything random (again for more; all must hold).")] = None,
    flow_control: FlowControl = None,
    threads: Threads = None,
    out: Out = None,
    continue_: Annotated[
        bool, typer.Option("--continue", help="Go on from the runs that an interrupted search has left in the same folder.")
    ] = False,
) -> None:
    """Find the highest load at which unfinished work does not grow, by bisection."""
    read = _read([scenario], set_, None, None)[0].with_(flow_control=flow_control)
    found = cw.sustain(
        read,
        traffic=traffic,
        low=low,
        high=high,
        resolution=resolution,
        seeds=seed or (),
        slowdown=slowdown,
        delay_us=delay_us,
        keeps_up=None if all_complete else keeps_up,
        threads=threads,
        told=lambda row: typer.echo(f"load {row['load']:g}, seed {row['seed']}: {'holds' if row['holds'] else 'fails'}", err=True),
        folder=out,
        keep=continue_,
    )
    said = {column: found.runs[column].map({True: "yes", False: "no"}) for column in ("holds", "audit")}
    _show(found.runs.assign(**said).set_index("load"))
    typer.echo(str(found))
    if out is not None:
        typer.echo(f"results: {out}")
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if not found.runs["audit"].all():
        typer.echo("AUDIT: a run is not in order; `clearway run` on its load and seed says why", err=True)
        raise typer.Exit(EXIT_AUDIT)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="What is varied over which scenario, TOML: see docs/sweeps.md.", metavar="SWEEP.toml")],
    workers: Annotated[
        int | None, typer.Option(help="Processes of this machine, a run each; as many as it has cores if not given.", min=1)
    ] = None,
    dask: Annotated[
        str | None, typer.Option(help="Run on the workers of a Dask scheduler, such as tcp://host:8786.", metavar="ADDRESS")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what has failed before.")] = False,
    out: Out = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of results by content, which sweeps may share; in --out if not given.", metavar="DIR")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would run, and run nothing.")] = False,
) -> None:
    """Run a scenario over ranges of its keys; one dataset, one report. Go on by the same command, after whatever has ended it."""
    read = cw.Sweep.load(file, out, store=store)
    if plan:
        read.check()
        found = read.result().table()
        _show(found[["status"]])
        typer.echo(f"{len(found)} runs, {int((found['status'] == 'missing').sum())} of them to do")
        raise typer.Exit(0)
    result = read.run(workers=workers, dask=dask, retry_failed=retry_failed, progress=True)
    ended = result.table().query("status != 'missing'").drop(columns=[*result.axes, "key", "digest", "packet hops"], errors="ignore")
    if len(ended) <= ROWS:
        _show(ended)
    for place, what in ((result.dataset, "dataset"), (result.folder / "runs.parquet", "table"), (result.report(), "report")):
        typer.echo(f"{what}: {place}")
    for kind, errors in (("FAILED", result.failed), ("AUDIT", result.troubles)):
        for name, error in errors.items():
            typer.echo(f"{name}: {kind}: {error}", err=True)
    if result.interrupted:
        typer.echo("interrupted: the same command goes on from here", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    raise typer.Exit(0 if result.ok else EXIT_AUDIT)


@app.command()
def live(
    scenario: ScenarioFile, set_: Sets = None, seed: Seed = None, load: Load = None, out: Out = None
) -> None:
    """Run a scenario on the real clock over UDP on loopback, and beside it in the simulator."""
    read = _read([scenario], set_, seed, load)[0]
    folder = out or Path("out") / f"{slug(scenario.stem)}-live"
    results = [cw.run(read, name="simulated")]
    if not results[0].interrupted:
        results.append(cw.live(read, name="live"))
    for result in results:
        result.save(folder / slug(result.name))
    tables = [result.fct().rename(index={"all": result.name}) for result in results]
    _show(pd.concat(tables).rename_axis("FCT, us"))
    if len(results) == 2:
        info = results[1].info
        late = f"events handled late by {info['late_us_median']:,.0f} us (median), {info['late_us_p99']:,.0f} us (99%)"
        typer.echo(f"{late}; {info['refused_datagrams']} foreign datagrams dropped")
    _finish(results, [f"results: {folder}"])


@app.command()
def check(scenario: ScenarioFile, set_: Sets = None) -> None:
    """Work a scenario out without running it."""
    read = _read([scenario], set_, None, None)[0]
    hosts, flows = read.check()
    typer.echo(f"{scenario}: {hosts:,} hosts, {flows:,} flows over {', '.join(read.transports)}")


@app.command()
def report(
    results: Annotated[
        list[Path], typer.Argument(help="Folders of results, or of comparisons.", metavar="DIR...")
    ],
    out: Annotated[Path, typer.Option(help="The page to write.", metavar="FILE")] = Path("report.html"),
) -> None:
    """Write one report page on several results."""
    loaded = [cw.load(inner) for folder in results for inner in _results_in(folder)]
    typer.echo(cw.Comparison(loaded).report(out))


@app.command()
def schemes() -> None:
    """List the transports, and the mechanisms by which entities share."""
    _show(cw.schemes()[["kind", "title", "summary", "needs"]])


@app.command()
def fabrics() -> None:
    """List the topologies and their parameters."""
    _show(cw.fabrics())


@app.command()
def workloads() -> None:
    """List the published distributions of flow sizes."""
    _show(cw.workloads())


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    typer.echo(json.dumps(cw.schema(), indent=2))


def _results_in(folder: Path) -> list[Path]:
    """The folders of a comparison, by the names of their runs; or the folder itself."""
    return sorted(run.parent for run in folder.glob("*/run.json")) or [folder]


def _pairs(sets: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in sets or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise cw.ScenarioError(f"--set {text}", None, "", "write KEY=VALUE, such as --set seed=2")
        pairs.append((key.strip(), value.strip()))
    return pairs


def _read(
    paths: Iterable[Path], sets: list[str] | None, seed: int | None, load: float | None
) -> list[cw.Scenario]:
    pairs = _pairs(sets)
    read = []
    for path in paths:
        scenario = cw.Scenario.load(path)
        if pairs:
            scenario = scenario.with_text(pairs)
        read.append(scenario.with_(seed=seed, load=load))
    return read


def _show(frame: pd.DataFrame) -> None:
    """Prints a table; numbers to four digits."""
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    table.add_column(str(frame.index.name or ""), style="bold")
    for column, values in frame.items():
        numeric = pd.api.types.is_numeric_dtype(values)
        table.add_column(str(column).replace(" ", "\n", 1), justify="right" if numeric else "left", overflow="fold")
    for name, row in frame.iterrows():
        table.add_row(str(name), *(_cell(value) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        if value != value:
            return "-"
        return f"{value:,.0f}" if value.is_integer() or abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _finish(results: list[cw.Result], places: list[str]) -> NoReturn:
    """Says where the results are and what the audits found, and exits accordingly."""
    for place in places:
        typer.echo(place)
    for result in results:
        for finding in result.info["audit"]:
            if not finding["ok"]:
                typer.echo(f"{result.name}: AUDIT: {finding['name']}: {finding['detail']}", err=True)
    if any(result.interrupted for result in results):
        typer.echo("interrupted: the results are those up to there", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    raise typer.Exit(0 if all(result.ok for result in results) else EXIT_AUDIT)


def main() -> NoReturn:
    """The command `clearway`."""
    try:
        app()
        sys.exit(0)
    except (cw.ScenarioError, ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(EXIT_USAGE)
    except KeyboardInterrupt:
        # Not while a run went on, which would have ended with what it had.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os._exit(EXIT_INTERRUPTED)
