"""The needs of each command: it gets nothing else of the machine (`files/sandbox.py`)."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from clearway.cli.checkpoints import folder_of, forks_of
from clearway.cli.options import pairs, seeds_of
from clearway.files import sandbox
from clearway.files.places import place_of, slug
from clearway.files.sandbox import Needs
from clearway.programs import trust
from clearway.results.pcap import places

_Takes = ParamSpec("_Takes")
_Gives = TypeVar("_Gives")
Said = dict[str, Any]
"""The values of a command's arguments, by name."""

NO_SANDBOX = Annotated[
    bool,
    typer.Option(
        "--no-sandbox",
        help="Run with all your rights. By default the kernel limits the command to the files that it was given and "
        "to its output folder (SECURITY.md).",
    ),
]
ALLOW_PROGRAMS = Annotated[
    bool,
    typer.Option(
        "--allow-programs",
        help="Let the scenario start the program of a crate in `transports` without `clearway trust`.",
    ),
]


def _given(*paths: Path | None) -> list[Path]:
    return [path for path in paths if path is not None]


def _run(said: Said) -> Needs:
    scenario = said["scenario"]
    captures = map(Path, places("--pcap", said.get("pcap")).values())
    _, several = seeds_of(said.get("seed"), said.get("seeds"))
    if several:
        folder = said.get("out") or place_of([scenario], "-seeds")
        return Needs(toml=[scenario], sets=pairs(said.get("set_")), folders=[folder])
    result = said.get("out") or place_of([scenario])
    keeps = said.get("checkpoint") is not None or said.get("resume")
    return Needs(
        toml=[scenario],
        sets=pairs(said.get("set_")),
        result=result,
        folders=[folder_of(result)] if keeps else [],
        files=[*captures, *_given(said.get("trace"))],
    )


def _inspect(said: Said) -> Needs:
    return Needs(reads=[said["checkpoint"], said.get("folder") or Path()])


def _fork(said: Said) -> Needs:
    checkpoint = said["checkpoint"]
    folder = said.get("out") or forks_of(checkpoint)
    return Needs(
        sets=pairs([*(said.get("set_") or []), *(said.get("vary") or [])]),
        reads=[checkpoint, said.get("folder") or Path()],
        folders=[folder],
    )


def _bisect(said: Said) -> Needs:
    toml = _given(said["scenario"], said.get("other"))
    return Needs(toml=toml, sets=pairs([*(said.get("set_") or []), *(said.get("set_other") or [])]))


def _compare(said: Said) -> Needs:
    scenarios = said.get("scenarios") or []
    name = said.get("work") if said.get("work") in ("training", "outage") else "all"
    default = Path("out") / str(name) if said.get("all_") else place_of(scenarios, "-compare")
    return Needs(
        toml=scenarios,
        sets=pairs(said.get("set_")),
        reads=_given(said.get("write")),
        folders=[said.get("out") or default],
        files=_given(said.get("write"), said.get("picture")),
        workers=bool(said.get("all_")),
    )


def _advise(said: Said) -> Needs:
    return Needs(
        toml=[said["scenario"]],
        sets=pairs(said.get("set_")),
        reads=_given(said.get("write")),
        folders=[said.get("out") or place_of([said["scenario"]], "-advise")],
        files=_given(said.get("write")),
        workers=True,
    )


def _sustain(said: Said) -> Needs:
    return Needs(toml=[said["scenario"]], sets=pairs(said.get("set_")), folders=_given(said.get("out")))


def _sweep(said: Said) -> Needs:
    if said.get("cluster"):
        return Needs(none="--cluster starts programs")
    file, out = said["file"], said.get("out")
    folder = out or Path("out") / slug(_name_of(file))
    places = _given(folder, said.get("store"))
    return Needs(toml=[file], folders=places, network=said.get("dask") is not None, workers=True)


def _name_of(file: Path) -> str:
    """The name of a sweep."""
    from clearway.files.reach import name_of

    with contextlib.suppress(OSError, ValueError):
        if file.is_file() and file.stat().st_size <= sandbox.MOST_BYTES:
            return name_of(file.read_text(encoding="utf-8")) or file.stem
    return file.stem


def _check(said: Said) -> Needs:
    return Needs(toml=[said["scenario"]], sets=pairs(said.get("set_")))


def _report(said: Said) -> Needs:
    # An earlier page is looked at before it is replaced.
    return Needs(reads=[*said["results"], said["out"]], files=[said["out"]])


def _live(said: Said) -> Needs:
    if said.get("attach"):
        return Needs(none="hosts are attached, which takes rights over devices")
    scenario, out, join = said.get("scenario"), said.get("out"), said.get("join")
    captures = [Path(file).parent for file in places("--capture", said.get("capture")).values()]
    sockets = said.get("sockets")
    default = Path("out") / (f"{slug(scenario.stem)}-live" if scenario is not None else "live-bench")
    return Needs(
        toml=_given(scenario),
        sets=pairs(said.get("set_")),
        reads=_given(said.get("token_file")),
        folders=[] if join is not None else [out or default],
        # A machine that joins writes the captures of its part where it is.
        writes=[*captures, *([Path()] if join is not None else []), *([sockets.parent] if sockets is not None else [])],
        network=True,
        workers=True,
    )


def _explain(said: Said) -> Needs:
    return Needs(reads=[said["result"]], files=_given(said.get("picture")))


def _trace(said: Said) -> Needs:
    return Needs(reads=[said["result"]], files=[said["file"]])


def _view(said: Said) -> Needs:
    page = said.get("out") or said["result"] / "view.html"
    return Needs(reads=[said["result"]], files=[page], shows=not said.get("no_open"))


def _job(said: Said) -> Needs:
    files = _given(said.get("goal"), said.get("chakra"))
    return Needs(toml=[said["scenario"]], sets=pairs(said.get("set_")), files=files)


def _import(said: Said) -> Needs:
    from clearway.cli.imports import graph_of, named_of

    files, out = named_of(said["files"]), said["out"]
    beside = [graph_of(out)] if any(name for name, _ in files) and said.get("topology") is None else []
    reads = [*(path for _, path in files), *_given(said.get("lookup"), said.get("topology"))]
    return Needs(reads=reads, files=[out, *beside])


def _switch_check(said: Said) -> Needs:
    file = said["file"]
    toml = [file] if file.suffix == ".toml" else []
    return Needs(toml=toml, reads=[*_given(said.get("lookup")), *([] if toml else [file])])


def _switch_headroom(said: Said) -> Needs:
    files = _given(said.get("out"), said.get("write"))
    return Needs(reads=[*said["places"], *_given(said.get("write"))], files=files)


def _tune(said: Said) -> Needs:
    scenarios = said["scenarios"]
    return Needs(
        toml=scenarios,
        sets=pairs(said.get("set_")),
        reads=_given(said.get("write")),
        folders=[] if said.get("dry_run") else [said.get("out") or place_of(scenarios, "-tune")],
        files=_given(said.get("picture"), said.get("write")),
        workers=True,
    )


def _against(said: Said) -> Needs:
    return Needs(none=f"{said['program']} is a program of its own")


def _calibrate(said: Said) -> Needs:
    return Needs(toml=[said["fabric"]], reads=said["logs"], files=_given(said.get("out")))


NEEDS: dict[str, Callable[[Said], Needs]] = {
    "advise": _advise,
    "against": _against,
    "bisect": _bisect,
    "calibrate": _calibrate,
    "check": _check,
    "compare": _compare,
    "explain": _explain,
    "fork": _fork,
    "import": _import,
    "inspect": _inspect,
    "job": _job,
    "live": _live,
    "report": _report,
    "run": _run,
    "sustain": _sustain,
    "sweep": _sweep,
    "switch check": _switch_check,
    "switch headroom": _switch_headroom,
    "trace": _trace,
    "tune": _tune,
    "view": _view,
}
SCENARIOS = frozenset(
    {
        "advise",
        "against",
        "bisect",
        "calibrate",
        "check",
        "compare",
        "job",
        "live",
        "run",
        "sustain",
        "sweep",
        "switch check",
        "tune",
    }
)
"""The commands that read scenarios."""

EXEMPT = {
    "aq": "is another program, which takes rights over devices",
    "clean": "reads names alone, and removes what has names of Clearway's own",
    "fabrics": "reads nothing",
    "init": "reads nothing",
    "new transport": "reads the source of Clearway alone",
    "paper": "runs the package's own scenarios alone, and other simulators for comparison",
    "pcap": "reads nothing",
    "schema": "reads nothing",
    "schemes": "reads nothing",
    "trust": "writes the user's settings, and reads a manifest",
    "workloads": "reads nothing",
}
"""The commands without a sandbox, and why."""


def sandboxed(command: Callable[_Takes, _Gives]) -> Callable[_Takes, _Gives]:
    """A command that runs in a sandbox, with the options that say how."""
    name = command.__name__
    own = {"no_sandbox": NO_SANDBOX} | ({"allow_programs": ALLOW_PROGRAMS} if name in SCENARIOS else {})

    @functools.wraps(command)
    def inside(*args: _Takes.args, **said: _Takes.kwargs) -> _Gives:
        open_ = said.pop("no_sandbox", False)
        with _allowed(bool(said.pop("allow_programs", False))):
            if open_:
                sandbox.leave_open("--no-sandbox")
            else:
                sandbox.close(NEEDS[name](dict(said)))
            return command(*args, **said)

    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for key, kind in own.items()
    ]
    parameters = [*signature.parameters.values(), *added]
    inside.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    inside.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return inside


@contextlib.contextmanager
def _allowed(programs: bool) -> Iterator[None]:
    before = os.environ.get(trust.ALLOW)
    if programs:
        trust.allow_all()
    try:
        yield
    finally:
        if programs and before is None:
            del os.environ[trust.ALLOW]
        elif programs:
            os.environ[trust.ALLOW] = str(before)
