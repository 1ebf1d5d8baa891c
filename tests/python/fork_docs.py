"""The table of `docs/checkpoints.md` that says which keys a fork may change, from what the engine says.

As a program: writes it.
"""

from __future__ import annotations

from pathlib import Path

from clearway import _core

PAGE = Path("docs/checkpoints.md")
BEGIN, END = "<!-- keys of forks: begin -->\n", "<!-- keys of forks: end -->\n"


def table() -> str:
    keys = _core.fork_keys()
    free = [f"| `{key}` | {what} |" for key, is_free, what in keys if is_free]
    fixed = [f"| `{key}` | {why} |" for key, is_free, why in keys if not is_free]
    may = ["| may change | what it is then |", "| --- | --- |", *free]
    may_not = ["| may not | why |", "| --- | --- |", *fixed]
    return "\n".join(["", *may, "", *may_not, "", ""])


def written(page: str) -> str:
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
