"""The form of `--help`: commands by task with their whole sentence, options in groups, and values by plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# Commands by task, in the order of a first use; those that are not named here come last.
TASKS = {
    "Start": ("init", "check", "run", "compare"),
    "Decide": ("advise", "sweep", "sustain", "switch", "tune", "against"),
    "Look into a result": ("explain", "inspect", "view", "report", "trace", "pcap"),
    "Go on otherwise": ("fork", "bisect"),
    "Real packets": ("live", "aq"),
    "Reference": ("schemes", "fabrics", "workloads", "schema", "paper"),
    "Files and programs": ("import", "job", "calibrate", "new", "trust", "clean"),
}
# Options by subject; those that are not named here are the command's own, and come first.
SUBJECTS = {
    "Changes to the scenario": (
        "--set",
        "--seed",
        "--seeds",
        "--load",
        "--transport",
        "--flow-control",
        "--level",
        "--fast-forward",
    ),
    "All schemes": (
        "--all",
        "--fabric",
        "--workload",
        "--duration",
        "--sustained",
        "--work",
        "--ranks",
        "--job",
        "--scale",
        "--write",
    ),
    "Recording": (
        "--trace",
        "--trace-flow",
        "--trace-class",
        "--trace-host",
        "--trace-link",
        "--trace-from",
        "--trace-until",
        "--pcap",
        "--pcap-packets",
    ),
    "Results and cost": (
        "--out",
        "--picture",
        "--json",
        "--continue",
        "--threads",
        "--parts",
        "--workers",
        "--force",
        "--checkpoint",
        "--resume",
    ),
    "Security and help": ("--no-sandbox", "--allow-programs", "--help"),
}
# The subjects of options that are not a command's own everywhere.
_ONLY = {"All schemes": ("compare",)}
_VALUES = {"int": "N", "float": "NUMBER", "path": "PATH"}


class Command(TyperCommand):
    """A command whose options are grouped."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments and the groups of options."""
        _write_groups(self, ctx, formatter)


class Group(TyperGroup):
    """A command with commands, by task."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The commands by task, and then the options."""
        self.format_commands(ctx, formatter)
        _write_groups(self, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with its whole first sentence."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: command for name, command in known.items() if command is not None and not command.hidden}
        width = max(map(len, shown))
        placed = {name for names in TASKS.values() for name in names}
        tasks = {**TASKS, "Commands": [name for name in shown if name not in placed]}
        for title, names in tasks.items():
            rows = [(name.ljust(width), _first(shown[name].help)) for name in names if name in shown]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class App(typer.Typer):
    """A Typer whose commands have this form."""

    def __init__(self, **named: Any) -> None:
        super().__init__(cls=Group, rich_markup_mode=None, **named)

    def command(self, name: str | None = None, **named: Any) -> Callable[[Any], Any]:
        """As Typer's."""
        return super().command(name, **{"cls": Command, **named})


def _first(text: str | None) -> str:
    """The first sentence of a help text."""
    plain = re.sub(r"\s+", " ", (text or "").split("\n\n")[0]).strip()
    return re.split(r"(?<=\.) (?=[A-Z`])", plain)[0]


def _value(names: str, kind: str) -> str:
    """A plain name for the value of an option: `--load NUMBER`, `--trace-host HOST`."""
    plain = re.sub(r"^list\[|\]$| range$", "", kind).lower()
    return _VALUES.get(plain, names.split(" ")[0].rsplit("-", 1)[-1].upper())


def records(command: Any, ctx: Any) -> Iterator[tuple[str, str, str]]:
    """Of each argument and option its kind, its names, and its description."""
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is not None:
            names = record[0]
            if (kind := re.search(r" <([^>]*)>", names)) is not None:
                value = f" {_value(names, kind[1])}" if each.param_type_name == "option" else ""
                names = names.replace(kind[0], value)
            yield each.param_type_name, names, _plain_range(record[1])


def _plain_range(said: str) -> str:
    """A description whose bounds are words; that a number is at least 1 goes without saying."""
    said = re.sub(r"\s*\[(x>=1|required)\]$|; (x>=1|required)(?=\])", "", said)
    said = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", said)
    return re.sub(r"x>=([\d.]+)", r"at least \1", said)


def _write_groups(command: Any, ctx: Any, formatter: Any) -> None:
    arguments: list[tuple[str, str]] = []
    groups: dict[str, list[tuple[str, str]]] = {"Options": [], **{title: [] for title in SUBJECTS}}
    for kind, names, said in records(command, ctx):
        if kind == "argument":
            arguments.append((names, said))
            continue
        own = {name.split(" ")[0] for name in re.split(r",\s*|\s*/\s*", names)}
        title = next((title for title, options in SUBJECTS.items() if own & set(options)), "Options")
        if command.name not in _ONLY.get(title, (command.name,)):
            title = "Options"
        groups[title].append((names, said))
    for title, rows in {"Arguments": arguments, **groups}.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
