"""The output of commands: tables and lines for people, or one JSON object for programs; and their exit status."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

import clearway as cw
from clearway.cli.layout import Rows, records, terminal, tsv
from clearway.defaults import ONE_RUN
from clearway.results.advice import by_warning, lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from clearway.comparisons.unchanged import Unchanged

EXIT_AUDIT, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


# The numbers of a table of jobs.
_JOBS = "time: mean of the iterations; exposed: the part in which a rank does not compute; bus: as in NCCL's tests"

# The numbers of a table of runs.
SLOWDOWN = "mean, p99: slowdown, a flow's completion time over that alone in the network, of all flows and by size"

# The numbers of a table of runs with training jobs alone.
ITERATIONS = "iteration: mean time of an iteration, from its first computation to the end of its last"


class Said:
    """The output of a command: text as it goes, or JSON at the end."""

    def __init__(self, as_json: bool) -> None:
        self._json: dict[str, Any] | None = {} if as_json else None
        self._tables = 0

    def table(self, frame: pd.DataFrame | Rows, name: str = "table", numbers: str = "") -> None:
        """A table; `name` is its key, `numbers` what its numbers are."""
        if self._json is None:
            if self._tables:
                typer.echo("")
            show(frame, numbers)
            self._tables += 1
            return
        self._json[name] = [{key: _plain(value) for key, value in row.items()} for row in records(frame)]

    def place(self, what: str, where: object) -> None:
        """A file or folder that has been written."""
        self.line(f"{what}: {where}", {what: str(where)})

    def facts(self, facts: dict[str, Any]) -> None:
        """Facts for programs only."""
        if self._json is not None:
            self._json |= facts

    def line(self, text: str, facts: dict[str, Any]) -> None:
        """A line of text, and its facts for programs. Beside a table in a pipe, text goes to standard error."""
        if self._json is None:
            typer.echo(text, err=self._tables > 0 and not sys.stdout.isatty())
        self.facts(facts)

    def lines(self, lines: Sequence[str], name: str) -> None:
        """Lines of text, which programs get as a list."""
        for line in lines:
            self.line(line, {})
        self.facts({name: list(lines)})

    def end(self) -> None:
        """Prints the JSON."""
        if self._json is not None:
            typer.echo(json.dumps(self._json, indent=2, allow_nan=False))


def tell_run(result: cw.Result, said: Said) -> None:
    """The numbers of one run."""
    if "jobs" in result.tables:
        said.table(cw.Comparison([result]).table(), numbers=SLOWDOWN)
        return
    from clearway.comparisons.comparison import row_of

    said.table(Rows("run", {result.name: row_of(result)}), numbers=SLOWDOWN)


def tell_jobs(result: cw.Result, said: Said) -> None:
    """How a result's training jobs went, and what made them as long as they were; nothing without any."""
    if "jobs" not in result.tables:
        return
    from clearway.results.jobs import said_of, summary

    table = summary(result)
    said.table(table, "jobs", _JOBS + ("; slowdown: time over that of the job alone" if "slowdown" in table else ""))
    sentences = said_of(result)
    for sentence in sentences:
        said.line(sentence, {})
    said.facts({"critical": sentences})


def tell_unchanged(found: Sequence[Unchanged], said: Said) -> None:
    """Which runs should have differed and did not."""
    for one in found:
        typer.echo(f"warning: {one}", err=True)
    said.facts({"unchanged": [str(one) for one in found]})


def _plain(value: Any) -> Any:
    """A cell as JSON: no NaN, no NumPy types."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return (
        value
        if isinstance(value, str | int | float | bool) or value is None
        else None
        if str(value) == "<NA>"
        else str(value)
    )


def show(frame: pd.DataFrame | Rows, numbers: str = "") -> None:
    """Prints a table. In a terminal numbers have four digits, and below them is the meaning of `numbers` and intervals.
    Into a pipe or a file goes the table as tab-separated values, and the explanation to standard error.
    """
    told = sys.stdout.isatty()
    typer.echo(terminal(frame) if told else tsv(frame))
    ends = [column for column in frame.columns if str(column).endswith((" low", " high"))]
    if isinstance(frame, Rows):
        known, interval = any(row[end] == row[end] for row in frame.rows.values() for end in ends), frame.interval
    else:
        known, interval = bool(ends) and bool(frame[ends].notna().any(axis=None)), frame.attrs.get("interval", "")
    if known:
        numbers = f"{numbers}{'; ' if numbers else ''}(low..high): {interval or ONE_RUN}"
    if numbers:
        typer.echo(numbers, err=not told)


def tell_warnings(results: Sequence[cw.Result]) -> None:
    """Prints each warning once: with the names of its runs, unless all of them have it."""
    said = by_warning((result.name, result.info.get("warnings", [])) for result in results)
    for line in lines_of(said, len(results)):
        typer.echo(line, err=True)


def tell_refused(refused: Mapping[str, str], said: Said) -> None:
    """Which runs of a comparison could not run, and why."""
    for name, why in refused.items():
        typer.echo(f"{name} did not run: {why}", err=True)
    said.facts({"refused": dict(refused)})


def audit_failed(where: str) -> NoReturn:
    """A run of many has a fault in its audit; `where` is the place that names the run."""
    typer.echo(f"AUDIT: the audit of a run found a fault; {where} says which", err=True)
    raise typer.Exit(EXIT_AUDIT)


def finish(results: list[cw.Result], said: Said, *, endless: bool = False, failed: bool = False) -> NoReturn:
    """Prints the audits' faults, and exits accordingly. A run without an end of its own ends well when it is
    interrupted.
    `failed`: whether a run of a comparison did not run.
    """
    interrupted = not endless and any(result.interrupted for result in results)
    ok = all(result.ok for result in results) and not failed
    said.facts({"ok": ok, "interrupted": interrupted})
    said.end()
    tell_warnings(results)
    for result in results:
        for finding in result.info["audit"]:
            if not finding["ok"]:
                typer.echo(f"{result.name}: AUDIT: {finding['name']}: {finding['detail']}", err=True)
    if interrupted:
        typer.echo("interrupted: the results are those up to there", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    raise typer.Exit(0 if ok else EXIT_AUDIT)
