"""Writes docs/accuracy.md: every scheme beside the numbers from outside that it was held against.

    python papers/accuracy.py

A runner leaves what it compared in `papers/accuracy/PAPER-FIGURE.csv` (`figures.Held`); this puts those records on one page. It runs
nothing: to measure a row again, run the command beside it, then this.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from clearway._listings import schemes

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "accuracy.md"

# Names for the lack of a mechanism.
ABSENT = ("none", "physical_queue")

INTRODUCTION = """# How accurate it is

Every scheme, what outside number it was held against, and how far ours is off, bucket by bucket. An outside number is what the authors'
own program gave on the same flows, what their paper prints, a closed form, or the optimum of a linear program. `allowed` was chosen
before the run. The same comparison is a test (`make test`, or `make test-slow` where it takes long).

This page is written by `python papers/accuracy.py` from what the commands beside each table left in `papers/accuracy`; nothing in it is
typed.
"""


def records() -> pd.DataFrame:
    """All that was compared, a row a number."""
    parts = [pd.read_csv(path) for path in sorted((HERE / "accuracy").glob("*.csv"))]
    if not parts:
        raise SystemExit(
            "papers/accuracy holds no record: run a figure that compares first, such as papers/pyrrha/reproduce.py reference"
        )
    return pd.concat(parts, ignore_index=True)


def page(rows: pd.DataFrame, known: list[str]) -> str:
    """The page: a line a comparison, the schemes that have none, then each comparison's numbers."""
    text = [INTRODUCTION]
    groups = list(rows.groupby(["scheme", "against", "kind", "seeds", "command", "commit"], sort=False))
    lines = [
        "| scheme | held against | kind | numbers | median error | worst error | outside what is allowed |",
        "|---|---|---|---|---|---|---|",
    ]
    for (scheme, against, kind, *_), group in groups:
        worst = group["error"].loc[group["error"].abs().idxmax()]
        outside = int((group["error"].abs() > group["within"]).sum())
        lines.append(
            f"| {scheme} | {against} | {kind} | {len(group)} | {group['error'].abs().median():.1%} | {worst:+.1%} | {outside or 'none'} |"
        )
    text.append("\n".join(lines) + "\n")
    named = {word for scheme in rows["scheme"] for word in scheme.replace(",", " ").split()}
    without = [name for name in known if name not in named]
    if without:
        text.append(f"**No outside number yet:** {', '.join(f'`{name}`' for name in without)}.\n")
    for (scheme, against, kind, seeds, command, commit), group in groups:
        text.append(f"## {scheme}: {against}\n\n{kind}; `{command}`, commit {commit}, seeds {seeds}.\n")
        table = ["| flows | statistic | ours | theirs | error | allowed |", "|---|---|---|---|---|---|"]
        for row in group.itertuples():
            mark = "" if abs(row.error) <= row.within else " **outside**"
            table.append(
                f"| {row.bucket} | {row.statistic} | {row.ours:.4g} | {row.theirs:.4g} | {row.error:+.1%}{mark} | {row.within:.0%} |"
            )
        text.append("\n".join(table) + "\n")
    return "\n".join(text)


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(records(), [name for name in schemes().index if name not in ABSENT]))
    print(PAGE.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
