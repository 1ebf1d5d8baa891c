"""`clearway run --checkpoint` and `--resume`; `clearway inspect`: what is in a checkpoint; `clearway fork` and
`clearway bisect`.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw
from clearway.cli.options import Json, Out, ScenarioFile, Sets, Threads, pairs
from clearway.cli.said import SLOWDOWN, Said, finish
from clearway.files.places import check_page, check_result, held, slug

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


CheckpointFile = Annotated[
    Path, typer.Argument(help="File of a checkpoint, or the folder that has it.", metavar="CHECKPOINT")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        help="Where the files are that the scenario names. Default: where they were, if that is below this folder.",
        metavar="DIR",
    ),
]


def file_of(checkpoint: Path) -> Path:
    """The file of a checkpoint that is named by its folder, or by itself."""
    return checkpoint / NAME if checkpoint.is_dir() else checkpoint


def forks_of(checkpoint: Path) -> Path:
    """Where forks go by default: beside the folder of the checkpoints.

    >>> str(forks_of(Path("out/tiny-checkpoints/last.checkpoint"))), str(forks_of(Path("warm.checkpoint")))
    ('out/tiny-forks', 'out/warm-forks')
    """
    folder = checkpoint.parent if checkpoint.name == NAME else checkpoint
    if folder.name.endswith("-checkpoints"):
        return folder.with_name(f"{folder.name.removesuffix('-checkpoints')}-forks")
    return Path("out") / f"{slug(folder.stem)}-forks"


def fork(
    checkpoint: CheckpointFile,
    set_: Sets = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            help="A value that some forks have (repeatable): for several of one key there is a fork each, for several "
            "keys every combination.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="Also go on without any change, to compare with.")
    ] = False,
    threads: Threads = None,
    out: Out = None,
    folder: Folder = None,
    json_: Json = False,
) -> None:
    """Go on from a checkpoint with other settings, in several ways side by side.

    docs/checkpoints.md lists the keys that can change, and says why the others can't.
    """
    from clearway.running.checkpoints import scenario_at

    file, place, said = file_of(checkpoint), out or forks_of(checkpoint), Said(json_)
    base = scenario_at(file, folder)
    forks = {"unchanged": base} if unchanged else {}
    forks |= {name: base.with_text(sets) for name, sets in combined(pairs(set_), pairs(vary)).items()}
    if not forks:
        raise ValueError("nothing changes: give --set KEY=VALUE or --vary KEY=VALUE, or --unchanged to go on as it was")
    with held(place):
        check_page(place / "report.html")
        for name in forks:
            check_result(place / slug(name))
        results = cw.fork(file, *forks.values(), names=list(forks), threads=threads, progress=True, folder=folder)
        for result in results:
            result.save(place / slug(result.name))
        comparison = cw.Comparison(results)
        report = comparison.report(place / "report.html") if results else None
    said.table(comparison.table(), numbers=SLOWDOWN)
    said.lines(comparison.said(), "notes")
    said.place("results", place)
    if report is not None:
        said.place("report", report)
    finish(results, said)


def combined(sets: list[tuple[str, str]], vary: list[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """By name, the keys of each fork: those that all have, with each combination of values that vary.

    >>> combined([("a", "1")], [("b", "2"), ("b", "3"), ("c", "4")])
    {'b=2, c=4': [('a', '1'), ('b', '2'), ('c', '4')], 'b=3, c=4': [('a', '1'), ('b', '3'), ('c', '4')]}
    >>> combined([("a", "1")], [])
    {'a=1': [('a', '1')]}
    """
    values: dict[str, list[tuple[str, str]]] = {}
    for key, value in vary:
        values.setdefault(key, []).append((key, value))
    if not values:
        return {", ".join(f"{key}={value}" for key, value in sets): sets} if sets else {}
    several = itertools.product(*values.values())
    return {", ".join(f"{key}={value}" for key, value in own): [*sets, *own] for own in several}


def bisect(
    scenario: ScenarioFile,
    other: Annotated[
        Path | None,
        typer.Argument(help="Another scenario with the same nodes. Default: the same one.", metavar="OTHER.toml"),
    ] = None,
    set_: Sets = None,
    set_other: Annotated[
        list[str] | None,
        typer.Option("--set-other", help="Set a key of the second run alone (repeatable).", metavar="KEY=VALUE"),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option("--threads", help="Number of threads; given twice, that of each run. Default: 1.", min=1),
    ] = None,
    json_: Json = False,
) -> None:
    """Find the first event after which the states of two runs differ.

    It says when and where that is, and in which field.
    """
    one, two = (threads or [1])[0], (threads or [1])[-1]
    if len(threads or []) > 2:
        raise ValueError("--threads: two runs are compared; give it once or twice")
    read = [cw.Scenario.load(scenario, pairs(set_))]
    read.append(cw.Scenario.load(other or scenario, [*pairs(set_), *pairs(set_other)]))
    found = cw.bisect(read[0], read[1], threads=(one, two))
    if json_:
        typer.echo(json.dumps(found, indent=1))
    else:
        for line in told(found):
            typer.echo(line)


def told(found: dict[str, Any]) -> list[str]:
    """The differences that a bisection has found, in lines."""
    said = []
    if found["from_start"]:
        said.append(f"left out, since settings make them differ from the start: {', '.join(found['from_start'])}")
    for what, key in (("the states differ", "state"), ("a packet comes otherwise", "arrival")):
        apart = found[key]
        if apart is None:
            said.append(f"{what}: never, up to {found['end_ps'] / 1e6:g}us")
            continue
        said.append(f"{what}: first at {apart['at']}, at {apart['place']}, in {apart['field']}")
        said += [f"  {which}: {line}" for which, of in zip(("first", "second"), apart["values"]) for line in lines(of)]
        if apart["also"]:
            more = f", and {len(apart['also']) - 8} more" if len(apart["also"]) > 8 else ""
            said.append(f"  then also at: {', '.join(apart['also'][:8])}{more}")
    return said


def inspect(
    checkpoint: CheckpointFile,
    what: Annotated[
        str | None,
        typer.Argument(help="A node, such as host3, or a port of a switch, such as spine0:3.", metavar="NODE"),
    ] = None,
    flow: Annotated[int | None, typer.Option("--flow", help="Number of a flow: its state at both ends.", min=0)] = None,
    folder: Folder = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the whole state of a node, a port or a flow in a checkpoint.

    Names are those of the code, which are the papers'. Without a node: how far the network has come.
    """
    if what is not None and flow is not None:
        raise ValueError("give either a node or --flow")
    tree = cw.inspect(file_of(checkpoint), what, flow=flow, folder=folder)
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
