"""Arguments that several commands take."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw
from clearway import _core
from clearway.errors import plain
from clearway.files.whole import notice
from clearway.results.pcap import PACKETS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def names(*kinds: str) -> Any:
    """A completion with the names of schemes."""
    return lambda incomplete: [
        row["name"] for row in _core.schemes() if row["kind"] in kinds and row["name"].startswith(incomplete)
    ]


def workload_names(incomplete: str) -> list[str]:
    """A completion with the names of workloads."""
    return [name for name in (str(row["name"]) for row in _core.workloads()) if name.startswith(incomplete)]


ScenarioFile = Annotated[Path, typer.Argument(help="A scenario in TOML.", metavar="SCENARIO.toml")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a key, such as fabric.leaf_spine.racks=4 (repeatable).", metavar="KEY=VALUE"),
]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers.")]
Seeds = Annotated[
    list[int] | None,
    typer.Option(
        "--seed",
        help="Seed of all random numbers. Repeat it for one run per seed and intervals over seeds.",
        metavar="N",
    ),
]
SeedCount = Annotated[
    int | None,
    typer.Option("--seeds", help="Number of seeds, counted up from --seed or the scenario's seed.", min=1, metavar="N"),
]


def share_of(text: str) -> float:
    """A load as a command line has it; a percentage is an error that says what to write."""
    try:
        return float(text)
    except ValueError:
        pass
    number = text.strip().removesuffix("%").strip()
    with contextlib.suppress(ValueError):
        raise typer.BadParameter(f"{text} is a percentage, and a load is a share; write {float(number) / 100:g}")
    raise typer.BadParameter(f"{text} is no number; write a share of the links' capacity, such as 0.6")


Load = Annotated[
    float | None,
    typer.Option(help="Load of every traffic class that has a load.", parser=share_of, metavar="NUMBER"),
]
TransportOption = Annotated[
    str | None,
    typer.Option(
        "--transport",
        help="Transport, with the scenario's settings of it: dctcp; or with other settings: '{ dctcp = { g = 0.1 } }'. "
        "Classes that name a transport keep theirs.",
        metavar="NAME",
        autocompletion=names("transport"),
    ),
]
FlowControl = Annotated[
    str | None,
    typer.Option(
        help="Flow control between switches, such as pfc, instead of the scenario's.",
        metavar="NAME",
        autocompletion=names("flow control"),
    ),
]
Transports = Annotated[
    list[str] | None,
    typer.Option(
        help="Transport to run each scenario with, with the scenario's settings of it (repeatable).",
        metavar="NAME",
        autocompletion=names("transport"),
    ),
]
FlowControls = Annotated[
    list[str] | None,
    typer.Option(
        help="Flow control to run each scenario with (repeatable).",
        metavar="NAME",
        autocompletion=names("flow control"),
    ),
]
Near = Annotated[
    float | None, typer.Option(help="Load at which the search begins, if you know one close to the answer.")
]
KeepsUp = Annotated[
    float,
    typer.Option(
        help="Share of the arriving bytes that must be delivered for a load to count as sustained.",
        min=0.0,
        max=1.0,
    ),
]
Threads = Annotated[int | None, typer.Option(help="Number of threads. Default: all cores.", min=1)]
Out = Annotated[Path | None, typer.Option(help="Folder for the results.", metavar="DIR")]
Sensitive = Annotated[
    bool,
    typer.Option(
        "--sensitivity",
        help="Run three times more, with other timing, starts up to a packet later, and other paths, and mark what "
        "moves by more than 5%: see docs/concepts.md.",
    ),
]
Pcap = Annotated[
    list[str] | None,
    typer.Option(
        "--pcap",
        help="Capture a link, or all links of a node, to a pcapng file for Wireshark and tcpdump, such as "
        "spine0-leaf2:out.pcapng or host3:out.pcapng (repeatable).",
        metavar="LINK|NODE:FILE",
    ),
]
PcapPackets = Annotated[
    int | None, typer.Option("--pcap-packets", help=f"Most packets in each file. Default: {PACKETS:,}.", min=1)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def pairs(sets: list[str] | None) -> list[tuple[str, str]]:
    """Keys and values of `--set`."""
    known = []
    for text in sets or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise cw.ScenarioError(f"--set {text}", None, "", "write KEY=VALUE, such as --set seed=2")
        known.append((key.strip(), value.strip()))
    return known


def seeds_of(seeds: list[int] | None, count: int | None) -> tuple[int | None, int | list[int]]:
    """The seed of a run or comparison, if it has one and that is not the scenario's own; and its seeds if it has
    several: a list, or how many from the scenario's own on.
    """
    if count is not None and seeds and len(seeds) > 1:
        raise ValueError(f"--seeds {count} beside {len(seeds)} times --seed; name the seeds, or say how many")
    if not seeds:
        return None, count if count is not None and count > 1 else []
    drawn = seeds if count is None else list(range(seeds[0], seeds[0] + count))
    return (drawn[0], []) if len(drawn) == 1 else (None, drawn)


def table_or_name(scheme: str) -> str | dict[str, Any]:
    """A scheme as a command line names it: a name, or a table of its settings in TOML."""
    if not scheme.lstrip().startswith("{"):
        return scheme
    try:
        found = tomllib.loads(f"scheme = {scheme}")["scheme"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"--transport {scheme}: {error}; write a table such as {{ dcpim = {{ rounds = 3 }} }}"
        ) from None
    return dict(found)


def read_scenarios(
    paths: Iterable[Path], sets: list[str] | None, seed: int | None, load: float | None
) -> list[cw.Scenario]:
    """Scenarios, each with the same keys set."""
    known = pairs(sets)
    return [cw.Scenario.load(path, known).with_(seed=seed, load=load) for path in paths]


def read_result(folder: Path) -> cw.Result:
    """A result, which may come from another person."""
    notice(folder.parent, folder)
    return cw.load(folder)


@contextlib.contextmanager
def told_of(what: str, *folders: Path) -> Iterator[None]:
    """An error in work with results that another person may have written reports them as damaged: their tables are as
    they should be one by one, but can't come from a run.
    """
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if isinstance(error, ValueError) and frame.f_globals.get("__name__", "").startswith("clearway."):
            raise
        places = ", ".join(map(str, folders))
        raise ValueError(
            f"{places}: damaged: no {what} can be made from its tables ({type(error).__name__}: {plain(str(error))})"
        ) from None
