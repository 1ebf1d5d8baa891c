"""The page docs/accuracy.md: every scheme beside the numbers from outside that it is compared with.

A figure leaves what it compared in `papers/accuracy/PAPER-FIGURE.csv` of the repository; this puts all of that on one
page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from clearway import _core
from clearway.files.whole import replace
from clearway.papers import records as figures
from clearway.papers.figures import Held
from clearway.scenarios.listings import schemes

FOLDER = Path("papers") / "accuracy"
PAGE = Path("docs") / "accuracy.md"

# Names for the lack of a mechanism, and for one that its user brings.
ABSENT = ("none", "physical_queue", "custom")

INTRODUCTION = """# How accurate it is

This page compares each scheme with numbers from outside Clearway: results of the authors' own programs on the same
flows, numbers that their papers print, closed forms, and optima of linear programs. Each line of the first table is one
comparison. The column "numbers" links to its values, ours beside theirs, by size of flow or by case; "command" repeats
it. The tolerance (`allowed`) was chosen before the run. Each comparison is also a test: in `make test`, or in `make
test-slow` if it takes long.

`clearway paper --write` writes this page from the records that the commands of the table leave in `papers/accuracy`.
Nothing in it is typed. Records of an "older protocol" have not been made anew by today's code yet.
"""


def record(paper: str, figure: str, held: Sequence[Held], command: str, at: Path) -> Path:
    """Records a figure's comparisons in a checkout, with the command, the commit and the seeds."""
    rows = pd.concat(
        [
            one.rows[list(Held.COLUMNS)].assign(
                scheme=one.scheme, against=one.against, kind=one.kind, seeds=one.seeds, error=one.error
            )
            for one in held
        ]
    )
    path = at / FOLDER / f"{paper}-{figure}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows.assign(command=command, commit=_core.COMMIT)
    replace(path, lambda part: table.to_csv(part, index=False, float_format="%.6g"))
    return path


def records(at: Path) -> pd.DataFrame:
    """All comparisons, one row for each number."""
    parts = [_read(path) for path in sorted((at / FOLDER).glob("*.csv"))]
    if not parts:
        raise ValueError(
            f"{at / FOLDER} holds no record; first run a figure that compares, such as `clearway paper pyrrha "
            "reference`"
        )
    rows = pd.concat(parts, ignore_index=True)
    older = {figures.command(record) for record in figures.load(at).values() if record.get("older")}
    return rows.assign(older=rows["command"].isin(older))


_OF_ALL = ("scheme", "against", "kind", "seeds", "error", "command", "commit")


def _read(path: Path) -> pd.DataFrame:
    """A record; `ValueError` says what of it is wrong."""
    try:
        rows = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: is no record of comparisons: {error}") from None
    missing = [name for name in (*Held.COLUMNS, *_OF_ALL) if name not in rows]
    missing += [name for name in ("ours", "theirs", "within", "error") if name in rows and rows[name].dtype == object]
    if missing:
        raise ValueError(f"{path}: the column {missing[0]} is missing or has no numbers")
    return rows


def page(rows: pd.DataFrame, known: Sequence[str]) -> str:
    """The page: one line for each comparison, the schemes without one, then the numbers of each comparison."""
    text = [INTRODUCTION]
    groups = list(rows.groupby(["scheme", "against", "kind", "seeds", "command", "commit"], sort=False))
    lines = [
        "| scheme | held against | kind | command | numbers | median error | worst error | outside what is allowed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, ((scheme, against, kind, _, command, _), group) in enumerate(groups, 1):
        worst = max(group["error"], key=abs)
        outside = int((group["error"].abs() > group["within"]).sum())
        median = group["error"].abs().median()
        errors = f"{median:.1%} | {worst:+.1%} | {outside or 'none'}"
        buckets = f"[{len(group)}](#{anchor(number)})"
        older = ", older protocol" if group["older"].any() else ""
        lines.append(f"| {scheme} | {against} | {kind} | `{command}`{older} | {buckets} | {errors} |")
    text.append("\n".join(lines) + "\n")
    named = {word for scheme in rows["scheme"] for word in scheme.replace(",", " ").split()}
    without = [name for name in known if name not in named]
    if without:
        text.append(f"**No outside number yet:** {', '.join(f'`{name}`' for name in without)}.\n")
    for number, ((scheme, against, kind, seeds, command, commit), group) in enumerate(groups, 1):
        said = f"{kind}; `{command}`, commit {commit}, seeds {seeds}."
        text.append(f'<a id="{anchor(number)}"></a>\n\n## {scheme}: {against}\n\n{said}\n')
        table = ["| flows | statistic | ours | theirs | error | allowed |", "|---|---|---|---|---|---|"]
        row: Any
        for row in group.itertuples():
            mark = "" if abs(row.error) <= row.within else " **outside**"
            numbers = f"{row.ours:.4g} | {row.theirs:.4g} | {row.error:+.1%}{mark} | {row.within:.0%}"
            table.append(f"| {row.bucket} | {row.statistic} | {numbers} |")
        text.append("\n".join(table) + "\n")
    return "\n".join(text)


def anchor(number: int) -> str:
    """Where the page has the numbers of a comparison. Headings do not tell all of them apart."""
    return f"comparison-{number}"


def schemes_known() -> list[str]:
    """The schemes that need a comparison."""
    return [str(name) for name in schemes().index if name not in ABSENT]


def write(at: Path) -> Path:
    """Writes the page of a checkout."""
    text = page(records(at), schemes_known())
    replace(at / PAGE, lambda part: part.write_text(text))
    return at / PAGE
