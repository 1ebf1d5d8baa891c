"""The list of commands in `docs/commands.md`, with arguments and options, from the data behind `--help`.

The page above the mark is written by hand. As a program: writes the list below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from clearway.cli.help import records
from clearway.cli.main import app

PAGE = Path("docs/commands.md")
MARK = "<!-- generated from --help by python tests/python/command_docs.py -->\n"
# Every command has it.
HELP = "--help"


def page(written: str) -> str:
    """The page as the commands have it, with the text of the written page above the mark."""
    found = list(_commands(typer.main.get_command(app), "clearway", None))
    lines = [written.split(MARK)[0] + MARK, "## Every command", "", "| command | effect |", "| --- | --- |"]
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
    yield from ("", f"### `{name}`", "", _text(command.help), "", "```text", usage, "```")
    for kind in ("argument", "option"):
        rows = [(names, said) for each, names, said in records(command, context) if each == kind and HELP not in names]
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
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
