"""The command `clearway`: its arguments and its output. The rest of the package does the work.

Data frames, plots and tables are imported where they are needed, so that help appears at once.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, TypeVar, cast

import typer

import clearway as cw
from clearway import _core
from clearway.cli import advise, aq, checkpoints, clean, explain, imports, live, paper, trust, view
from clearway.cli import against as _cli_against
from clearway.cli import calibrate as _cli_calibrate
from clearway.cli import compare as _cli_compare
from clearway.cli import job as _cli_job
from clearway.cli import new as _cli_new
from clearway.cli import pcap as _cli_pcap
from clearway.cli import switch as _cli_switch
from clearway.cli import trace as _cli_trace
from clearway.cli import tune as _cli_tune
from clearway.cli.help import App
from clearway.cli.options import (
    FlowControl,
    FlowControls,
    Json,
    KeepsUp,
    Load,
    Near,
    Out,
    Pcap,
    PcapPackets,
    ScenarioFile,
    SeedCount,
    Seeds,
    Sensitive,
    Sets,
    Threads,
    TransportOption,
    Transports,
    read_result,
    read_scenarios,
    seeds_of,
    table_or_name,
    told_of,
)
from clearway.cli.said import (
    EXIT_AUDIT,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    Said,
    audit_failed,
    finish,
    tell_jobs,
    tell_run,
    tell_unchanged,
)
from clearway.cli.sandbox import sandboxed
from clearway.defaults import KEEPS_UP
from clearway.files import sandbox
from clearway.files.places import check_folder, check_page, held, place_of
from clearway.files.whole import notice
from clearway.results import pcap as _pcap
from clearway.results.advice import lines_of
from clearway.running import sensitivity as sensitivity_of

if TYPE_CHECKING:
    import pandas as pd

    from clearway.scenarios.listings import Network

app = App(
    help="Clearway: a packet-level simulator for datacenter networks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_Named = TypeVar("_Named")

# A longer table of a sweep is not printed.
ROWS = 60
# `check` prints this many names of nodes and links.
NAMES = 6


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clearway {cw.__version__} ({_core.COMMIT})")
        raise typer.Exit(0)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print version and commit, and exit."),
    ] = False,
) -> None:
    """Clearway: a packet-level simulator for datacenter networks."""


@app.command()
@sandboxed
def run(
    scenario: ScenarioFile,
    set_: Sets = None,
    seed: Seeds = None,
    seeds: SeedCount = None,
    load: Load = None,
    transport: TransportOption = None,
    flow_control: FlowControl = None,
    level: Annotated[
        str,
        typer.Option(
            help="packet: every packet. flow: an estimate without packets, in seconds (docs/flow-level.md). "
            "links: an estimate from single links (docs/links.md)."
        ),
    ] = "packet",
    fast_forward: Annotated[
        str | None,
        typer.Option(
            help="exact: skip repetitions, with the same results. approximate: also move steady flows ahead by their "
            "average (docs/acceleration.md).",
            metavar="MODE",
        ),
    ] = None,
    threads: Threads = None,
    parts: Annotated[
        int | None,
        typer.Option(
            help="Number of parts into which threads divide the network, at most. Default: one per thread.", min=1
        ),
    ] = None,
    out: Out = None,
    force: Annotated[bool, typer.Option("--force", help="Run even if memory looks insufficient.")] = False,
    trace: _cli_trace.TraceFile = None,
    trace_flow: _cli_trace.Flows = None,
    trace_class: _cli_trace.Classes = None,
    trace_host: _cli_trace.Hosts = None,
    trace_link: _cli_trace.Links = None,
    trace_from: _cli_trace.From = None,
    trace_until: _cli_trace.Until = None,
    pcap: Pcap = None,
    pcap_packets: PcapPackets = None,
    sensitivity: Sensitive = False,
    checkpoint: checkpoints.When = None,
    resume: checkpoints.Resume = False,
    json_: Json = False,
) -> None:
    """Simulate a scenario and write its results."""
    own, several = seeds_of(seed, seeds)
    read = read_scenarios([scenario], set_, own, load)[0].with_(
        transport=table_or_name(transport) if transport else None,
        flow_control=flow_control,
        fast_forward=cast("cw.FastForward | None", fast_forward),
    )
    if several:
        of_one = {"--trace": trace, "--pcap": pcap, "--parts": parts, "--force": force, "--sensitivity": sensitivity}
        _cli_compare.check_several(of_one | {"--checkpoint": checkpoint, "--resume": resume})
        chosen: dict[str, Any] = {"levels": [level], "threads": threads, "seeds": several}
        _cli_compare.side_by_side([read], (), (), chosen, out or place_of([scenario], "-seeds"), Said(json_))
    some = {"flow": trace_flow, "class": trace_class, "host": trace_host, "link": trace_link}
    read = _cli_trace.recorded(read, trace, **some, **{"from": trace_from, "until": trace_until})
    captured = _captured(pcap, pcap_packets) | {"sensitivity": sensitivity}
    folder, said = out or place_of([scenario]), Said(json_)
    with held(folder, result=True):
        limit = math.inf if force else None
        captured |= {"level": level, "threads": threads, "memory_limit": limit, "parts": parts}
        captured |= checkpoints.chosen(folder, checkpoint, resume)
        result = cw.run(read, progress=True, **captured)
        result.save(folder)
        report = result.report(folder / "report.html")
        if trace is not None:
            result.trace(trace)
    tell_run(result, said)
    tell_jobs(result, said)
    said.lines(cw.Comparison([result]).said(), "notes")
    said.lines(sensitivity_of.lines(result.info.get("sensitivity")), "sensitivity")
    places = {"result": folder, "report": report} | ({} if trace is None else {"trace": trace})
    for what, place in [*places.items(), *((f"pcap of {link}", Path(file)) for link, file in captured["pcap"].items())]:
        said.place(what, place)
    checkpoints.tell(folder, checkpoint, said)
    finish([result], said)


def _captured(pcap: list[str] | None, packets: int | None) -> dict[str, Any]:
    if packets is None:
        return {"pcap": _pcap.places("--pcap", pcap)}
    if not pcap:
        raise ValueError(f"--pcap-packets {packets}: it needs --pcap LINK:FILE or --pcap NODE:FILE")
    return {"pcap": _pcap.places("--pcap", pcap), "pcap_packets": packets}


@app.command()
@sandboxed
def compare(
    scenarios: _cli_compare.Scenarios = None,
    transport: Transports = None,
    flow_control: FlowControls = None,
    level: _cli_compare.Levels = None,
    set_: Sets = None,
    seed: Seeds = None,
    seeds: SeedCount = None,
    load: Load = None,
    threads: Threads = None,
    out: Out = None,
    continue_: _cli_compare.Continue = False,
    picture: _cli_compare.Drawn = None,
    all_: _cli_compare.All = False,
    fabric: _cli_compare.Fabrics = None,
    workload: _cli_compare.Workloads = None,
    duration: _cli_compare.Duration = None,
    sustained: _cli_compare.Sustained = None,
    work: _cli_compare.Work = None,
    ranks: _cli_compare.Ranks = None,
    job: _cli_compare.Jobs = None,
    scale: _cli_compare.Scale = None,
    write: _cli_compare.Page = None,
    json_: Json = False,
) -> None:
    """Run several schemes or scenarios, and write one table and one report."""
    of_all = {"--fabric": fabric, "--workload": workload, "--duration": duration, "--sustained": sustained}
    of_work = {"--ranks": ranks, "--job": job, "--scale": scale, "--write": write}
    _cli_compare.check_work(work, of_work)
    said = Said(json_)
    if all_:
        if picture is not None:
            raise ValueError("--picture is of given scenarios; --all has its pictures in its report")
        if scenarios or flow_control:
            raise ValueError("--all uses scenarios and flow controls of its own; name none beside it")
        own, several = seeds_of(seed, seeds)
        drawn = {key: value for key, value in {"seed": own, "seeds": several}.items() if value}
        if work in ("training", "outage"):
            for option, value in {**of_all, "--load": load}.items():
                if value:
                    raise ValueError(f"{option} has no effect on training jobs; leave it out")
        if work == "outage":
            _cli_compare.outage(transport, set_, drawn, threads, out, write, said)
        elif work == "training":
            _cli_compare.training(transport, ranks, job, scale, set_, drawn, threads, out, write, said)
        else:
            _cli_compare.everything(
                transport, fabric, workload, load, duration, sustained, set_, drawn, threads, out, said
            )
        return
    for option, value in {**of_all, "--work": work}.items():
        if value:
            raise ValueError(f"{option} needs --all")
    if not scenarios:
        raise ValueError("name a scenario, such as examples/dcpim-vs-tcp.toml, or use --all")
    folder = out or place_of(scenarios, "-compare")
    own, several = seeds_of(seed, seeds)
    read = read_scenarios(scenarios, set_, own, load)
    chosen: dict[str, Any] = {"levels": level or ["packet"], "threads": threads, "keep": continue_}
    chosen["seeds"] = several
    _cli_compare.side_by_side(
        read, [table_or_name(one) for one in transport or ()], flow_control or (), chosen, folder, said, picture
    )


@app.command()
@sandboxed
def sustain(
    scenario: ScenarioFile,
    traffic: Annotated[
        str | None,
        typer.Option(
            help="Class whose load is varied and whose messages are judged. Default: the first class with a load."
        ),
    ] = None,
    low: Annotated[float, typer.Option(help="Lowest load.")] = 0.05,
    high: Annotated[float, typer.Option(help="Highest load.")] = 1.0,
    resolution: Annotated[float, typer.Option(help="Step between loads.")] = 0.01,
    near: Near = None,
    slowdown: Annotated[float | None, typer.Option(help="No completed message may have a higher slowdown.")] = None,
    delay_us: Annotated[float | None, typer.Option(help="No completed message may take longer.")] = None,
    keeps_up: KeepsUp = KEEPS_UP,
    all_complete: Annotated[
        bool,
        typer.Option("--all-complete", help="Require instead that every message completes, as in Harmony's paper."),
    ] = False,
    set_: Sets = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Seed of all random numbers (repeatable; the load must hold with all seeds)."),
    ] = None,
    flow_control: FlowControl = None,
    threads: Threads = None,
    out: Out = None,
    continue_: Annotated[
        bool,
        typer.Option("--continue", help="Resume from the runs of an interrupted search in the same folder."),
    ] = False,
    lengthen: Annotated[
        bool,
        typer.Option(
            "--lengthen/--no-lengthen",
            help="Lengthen runs if the scenario's arrivals are too short to decide; otherwise refuse.",
        ),
    ] = True,
    json_: Json = False,
) -> None:
    """Find the highest load at which unfinished work does not grow, by bisection."""
    read, said = read_scenarios([scenario], set_, None, None)[0].with_(flow_control=flow_control), Said(json_)
    with held(out) if out is not None else contextlib.nullcontext():
        found = cw.sustain(
            read,
            traffic=traffic,
            low=low,
            high=high,
            resolution=resolution,
            seeds=seed or (),
            near=near,
            slowdown=slowdown,
            delay_us=delay_us,
            keeps_up=None if all_complete else keeps_up,
            lengthen=lengthen,
            threads=threads,
            progress=True,
            tell=_tell,
            folder=out,
            keep=continue_,
        )
    runs = found.runs
    words = {column: runs[column].map({True: "yes", False: "no"}) for column in ("holds", "audit")}
    said.table((runs if json_ else runs.assign(**words)).set_index("load"), "runs")
    said.line(
        str(found), {"load": found.load, "fails": found.fails, "interrupted": found.interrupted, "said": str(found)}
    )
    if found.longer > 1:
        said.line(
            f"the scenario's arrivals are too short to judge a load; runs lasted up to {found.longer:,} times as long",
            {"times as long": found.longer},
        )
    if out is not None:
        said.place("results", out)
    said.end()
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if not found.runs["audit"].all():
        audit_failed("`clearway run` at its load and seed")


def _tell(row: pd.Series[Any]) -> None:
    longer = f" ({row['times as long']} times as long as the scenario says)" if row["times as long"] > 1 else ""
    typer.echo(f"load {row['load']:g}, seed {row['seed']}: {'holds' if row['holds'] else 'fails'}{longer}", err=True)


@app.command()
@sandboxed
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            help="The sweep in TOML: scenarios and what is varied. See docs/sweeps.md.", metavar="SWEEP.toml"
        ),
    ],
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of processes on this machine, with one run at a time each. Default: one for each core.", min=1
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Run on the workers of a Dask scheduler, such as tcp://host:8786.", metavar="ADDRESS"),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Start the cluster that the file describes, and run on it.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat runs that have failed.")] = False,
    seed: Seeds = None,
    seeds: SeedCount = None,
    out: Out = None,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Folder of results, which several sweeps may share. Default: a folder in --out.", metavar="DIR"
        ),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print what would run, and run nothing.")] = False,
    json_: Json = False,
) -> None:
    """Run a scenario over ranges of its keys, and write one dataset and one report.

    After an interruption, resume with the same command.
    """
    own, several = seeds_of(seed, seeds)
    drawn = [own] if own is not None else several or None
    read, said = cw.Sweep.load(file, out, store=store, seeds=drawn), Said(json_)
    for place in (read.folder, read.store):
        check_folder(place)
    check_page(read.folder / "report.html")
    notice(read.folder, read.store / "runs")
    if plan:
        read.check()
        found = read.result().table()
        said.table(found[["status"]])
        missing = int((found["status"] == "missing").sum())
        said.line(f"{len(found)} runs, {missing} of them to do", {"runs": len(found), "to do": missing})
        said.end()
        raise typer.Exit(0)
    result = read.run(workers=workers, dask=dask, cluster=cluster, retry_failed=retry_failed, progress=True)
    ended = (
        result.table()
        .query("status != 'missing'")
        .drop(columns=[*result.axes, "key", "digest", "packet hops"], errors="ignore")
    )
    if len(ended) <= ROWS or json_:
        said.table(ended, "runs")
    for where, what in (
        (result.dataset, "dataset"),
        (result.folder / "runs.parquet", "table"),
        (result.report(), "report"),
    ):
        said.place(what, where)
    tell_unchanged(result.unchanged, said)
    for line in lines_of(result.warnings, len(result.points)):
        typer.echo(line, err=True)
    said.facts({"failed": result.failed, "audit": result.troubles, "interrupted": result.interrupted})
    said.end()
    for kind, errors in (("FAILED", result.failed), ("AUDIT", result.troubles)):
        for name, error in errors.items():
            typer.echo(f"{name}: {kind}: {error}", err=True)
    if result.interrupted:
        typer.echo("interrupted: run the same command again to continue", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    raise typer.Exit(0 if result.ok else EXIT_AUDIT)


@app.command()
@sandboxed
def check(
    scenario: ScenarioFile,
    set_: Sets = None,
    names: Annotated[
        bool,
        typer.Option(
            "--names", help="Print the names of all nodes and links, not only the first and last of each kind."
        ),
    ] = False,
    probe: Annotated[
        float, typer.Option(help="CPU seconds for measuring this machine's speed; 0 to skip that.", min=0.0)
    ] = 1.0,
    json_: Json = False,
) -> None:
    """Check a scenario without running it: its cost, advice, nodes and links."""
    from clearway.scenarios.listings import network

    read, said = read_scenarios([scenario], set_, None, None)[0], Said(json_)
    foreseen = read.forecast(probe_seconds=probe)
    facts = {"hosts": foreseen.hosts, "flows": foreseen.flows, "transports": read.transports}
    hosts, flows, over = foreseen.hosts, foreseen.flows, ", ".join(read.transports)
    said.line(f"{scenario}: {hosts:,} hosts, {flows:,} flows over {over}", facts)
    said.line(f"a run: {foreseen}", {"estimate": foreseen.facts()})
    for warning in foreseen.warnings:
        typer.echo(f"{scenario}: warning: {warning}", err=True)
    found = network(read)
    if json_:
        said.facts({"nodes": found.nodes(), "links": found.links()})
    else:
        for line in _named(found, names):
            typer.echo(line)
    said.end()


def _named(network: Network, every: bool) -> list[str]:
    """The nodes by kind, and the links between each pair of kinds."""
    kinds: dict[str, list[str]] = {}
    for name in network.nodes():
        kinds.setdefault(name.rstrip("0123456789"), []).append(name)
    lines = [f"nodes: {len(network.names):,}"]
    lines += [f"  {_some(names, every, str)} ({len(names):,})" for names in kinds.values()]
    cables = network.cables()
    lines.append(f"links, as failures name them: {sum(map(len, cables.values())):,}")

    def between(cable: tuple[int, int]) -> str:
        return " - ".join(network.names[end] for end in cable)

    lines += [
        f"  {_some(of, every, between)} ({len(of):,} at {rate / 1e9:g} Gbps)" for (_, _, rate), of in cables.items()
    ]
    return lines


def _some(of: Sequence[_Named], every: bool, name: Callable[[_Named], str]) -> str:
    """All names, or the first two and the last. Others are not made: of a million cables that takes long."""
    if every or len(of) <= NAMES:
        return ", ".join(map(name, of))
    return f"{name(of[0])}, {name(of[1])}, ..., {name(of[-1])}"


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.", metavar="SCENARIO.toml")] = Path("scenario.toml"),
) -> None:
    """Write a scenario to start from, with explanations."""
    text = (Path(__file__).parent / "init.toml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text.replace("scenario.toml", str(file)))
    except FileExistsError:
        if not file.is_file():
            raise FileExistsError(f"{file} is no file; name another") from None
        typer.echo(f"{file}: is there already, and stays as it is. Next: clearway run {file}")
        return
    except OSError as error:
        raise type(error)(f"{file} cannot be written: {error.strerror}; name another file") from None
    typer.echo(f"{file}: written. Next: clearway run {file}")


@app.command()
@sandboxed
def report(
    results: Annotated[list[Path], typer.Argument(help="Folders of results, or of comparisons.", metavar="DIR...")],
    out: Annotated[Path, typer.Option(help="The file of the report.", metavar="FILE")] = Path("report.html"),
) -> None:
    """Write one report on several results."""
    check_page(out)
    loaded = [read_result(inner) for folder in results for inner in _results_in(folder)]
    with told_of("report", *results):
        page = cw.Comparison(loaded).report(out)
    typer.echo(page)


app.add_typer(_cli_new.app, name="new")
app.add_typer(_cli_switch.app, name="switch")
_cli_switch.app.command(name="check")(sandboxed(_cli_switch.check))
_cli_switch.app.command(name="headroom")(sandboxed(_cli_switch.headroom))
app.command()(sandboxed(advise.advise))
app.command()(sandboxed(_cli_tune.tune))
app.command()(trust.trust)
app.command()(paper.paper)
app.command()(sandboxed(live.live))
app.command()(sandboxed(explain.explain))
app.command()(sandboxed(checkpoints.inspect))
app.command()(sandboxed(checkpoints.fork))
app.command()(sandboxed(checkpoints.bisect))
app.command()(sandboxed(_cli_trace.trace))
app.command()(sandboxed(view.view))
app.command()(sandboxed(_cli_job.job))
app.command()(sandboxed(imports.import_))
app.command()(sandboxed(_cli_against.against))
app.command()(sandboxed(_cli_calibrate.calibrate))
app.command()(clean.clean)
app.command()(_cli_pcap.pcap)

# Its arguments, --help among them, are the program's own.
app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
)(aq.aq)


@app.command()
def schemes(json_: Json = False) -> None:
    """List the transports, flow controls and sharing mechanisms."""
    _list(cw.schemes()[["kind", "title", "summary", "needs"]], json_)


@app.command()
def fabrics(json_: Json = False) -> None:
    """List the topologies and their parameters."""
    _list(cw.fabrics(), json_)


@app.command()
def workloads(json_: Json = False) -> None:
    """List the published distributions of flow sizes."""
    _list(cw.workloads(), json_)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    typer.echo(json.dumps(cw.schema(), indent=2))


def _list(frame: pd.DataFrame, as_json: bool) -> None:
    said = Said(as_json)
    said.table(frame)
    said.end()


def _results_in(folder: Path) -> list[Path]:
    """The results of a comparison by the names of their runs, or the folder itself."""
    return sorted(run.parent for run in folder.glob("*/run.json")) or [folder]


class _Readers:
    """Standard output. If its reader exits, the work goes on without output."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        try:
            return self._out.write(text)
        except BrokenPipeError:
            self.left()
            return len(text)

    def flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            self.left()

    def left(self) -> None:
        """Discards what is not written yet, and all later output."""
        # By its descriptor: buffered output goes there too, at the latest when Python exits.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._out.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def _ended(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _not_lost(unraisable: Any) -> None:
    """Python drops an exception that comes while it cleans up; Ctrl-C then comes once more."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    else:
        sys.__unraisablehook__(unraisable)


def main() -> NoReturn:
    """The command `clearway`."""
    hook, sys.unraisablehook = sys.unraisablehook, _not_lost
    # A request to terminate (from a batch system or `timeout`) is handled like Ctrl-C: results so far are kept.
    before = signal.signal(signal.SIGTERM, _ended)
    out = sys.stdout
    # It may have been closed: `clearway run x.toml >&-`.
    sys.stdout = _Readers(out if out is not None else open(os.devnull, "w"))  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        app()
        sys.exit(0)
    except SystemExit as end:
        if _because_of(end, KeyboardInterrupt):
            _leave()
        sys.exit(_flushed(end.code))
    except (cw.ScenarioError, ValueError, OSError) as error:
        typer.echo(f"error: {_words(error)}{sandbox.hint(_words(error))}", err=True)
        sys.exit(_flushed(EXIT_USAGE))
    except MemoryError:
        typer.echo("error: there is not enough memory for this", err=True)
        sys.exit(_flushed(EXIT_USAGE))
    except KeyboardInterrupt:
        _leave()
    finally:
        sandbox.done()
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
        sys.stdout, sys.unraisablehook = out, hook


def _because_of(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None and not isinstance(error, kind):
        error = error.__context__
    return error is not None


def _leave() -> NoReturn:
    """Exits at once. No run is in progress, which would have ended with its results so far."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    typer.echo("interrupted: there is nothing to save, or it is saved already", err=True)
    _flushed(None)
    sandbox.done()
    os._exit(EXIT_INTERRUPTED)


def _flushed(code: Any) -> Any:
    """The same exit status, or another if the output could not be written, for example to a full disk."""
    try:
        sys.stdout.flush()
    except OSError as error:
        typer.echo(f"error: standard output: {error.strerror}", err=True)
        if isinstance(sys.stdout, _Readers):
            sys.stdout.left()
        return EXIT_USAGE
    return code


def _words(error: BaseException) -> str:
    """An operating-system error in plain words, with its file."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}" + (" (the disk is full)" if error.errno == errno.ENOSPC else "")
    return str(error)
