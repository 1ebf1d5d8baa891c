"""`docs/commands.md`, every command with its arguments and options, from what `--help` is made of.

As a program: writes the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from clearway.cli.main import app

PAGE = Path("docs/commands.md")
HEAD = """# Every command

Written from what `--help` says by `python tests/python/command_docs.py`; a test compares. [The command
line](command-line.md) says what commands have in common: exit status, interruptions, folders, JSON.
"""
# Every command has it.
HELP = "--help"


def page() -> str:
    """The page as the commands have it."""
    found = list(_commands(typer.main.get_command(app), "clearway", None))
    lines = [HEAD, "| command | what it does |", "| --- | --- |"]
    for name, _, command in found:
        lines.append(f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(_first(command.help))} |")
    for name, context, command in found:
        lines += _section(name, context, command)
    return "\n".join(lines).rstrip() + "\n"


def _commands_of(command: Any) -> dict[str, Any]:
    return {name: each for name, each in getattr(command, "commands", {}).items() if not each.hidden}


def _commands(command: Any, name: str, above: Any) -> Iterator[tuple[str, Any, Any]]:
    context = command.make_context(name.split()[-1], [], parent=above, resilient_parsing=True)
    yield name, context, command
    for each, inner in _commands_of(command).items():
        yield from _commands(inner, f"{name} {each}", context)


def _section(name: str, context: Any, command: Any) -> Iterator[str]:
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from ("", f"## `{name}`", "", _text(command.help), "", "```text", usage, "```")
    for kind in ("argument", "option"):
        rows = [
            (names, said)
            for each in command.get_params(context)
            if each.param_type_name == kind and (record := each.get_help_record(context)) is not None
            for names, said in [record]
            if HELP not in names
        ]
        if rows:
            yield from ("", f"| {kind} | meaning |", "| --- | --- |")
            yield from (f"| `{names.replace('|', chr(92) + '|')}` | {_cell(said)} |" for names, said in rows)


def _first(text: str | None) -> str:
    return re.split(r"\n\n", _text(text))[0]


def _text(text: str | None) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", (text or "").strip())


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
