"""The record of a figure that was run: its table, its checks and their origin; and how pages show it.

A record is `papers/records/PAPER-FIGURE.json` of the repository. Pages have a region a figure, between
`<!-- PAPER FIGURE: begin -->` and `<!-- PAPER FIGURE: end -->`, which is written from its record and never by hand.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from clearway import _core
from clearway.files.whole import replace
from clearway.papers import PAPERS, RIVALS, paper, slices
from clearway.papers._paper import Options, Paper, title
from clearway.papers.figures import Ran, Shown
from clearway.reports import marked
from clearway.results.read import check_shape

FOLDER = Path("papers") / "records"
# The record of a longer table has evenly spaced rows; its CSV has all rows.
ROWS = 40
DIGITS = 6

Record = dict[str, Any]


def root() -> Path:
    """The checkout that this package is part of; ValueError if it was installed without one."""
    found = Path(__file__).resolve().parents[3]
    if not ((found / "papers").is_dir() and (found / "docs").is_dir() and (found / "python" / "clearway").is_dir()):
        raise ValueError(
            "--write and --stale are for pages of the repository, and this Clearway is installed without it; "
            "clone the repository, and run `clearway paper` from its environment"
        )
    return found


def make(of: Paper, figure: str, shown: Shown, ran: Ran, options: Options, spent: tuple[float, float]) -> Record:
    """The record of a figure. `spent` is its CPU time and wall time in seconds; runs that were there already report
    what they took."""
    cpu, wall = max(ran.cpu_seconds, spent[0]), max(ran.wall_seconds, spent[1])
    return {
        "paper": of.name,
        "figure": figure,
        "title": title(of.figures[figure]),
        "commit": _core.COMMIT,
        "options": options.words,
        "seeds": sorted(ran.seeds),
        "runs": len(ran.digests),
        "digest": ran.digest,
        "cpu_seconds": round(cpu, 1),
        "wall_seconds": round(wall, 1),
        "note": shown.note,
        "table": table(shown.table),
        "checks": checks(shown),
        "behind": [[*of_run, digest] for of_run, digest in sorted(ran.behind.items())],
    }


def differs(record: Mapping[str, Any]) -> str:
    """How the slice of a record differs from what today's code gives; empty if it does not. It takes a second."""
    if not record.get("slice"):
        return "has no slice yet"
    of, options = paper(record["paper"]), Options.of(record["options"])
    try:
        return slices.of_figure(of, record["figure"], options, record["slice"]).wrong
    except Exception as error:
        return f"the figure fails: {error}"


def stale(at: Path, names: Sequence[str], tell: Callable[[str], object]) -> list[tuple[Record, str]]:
    """The records of these papers whose slices differ from what today's code gives, and how; cheapest first."""
    known = [record for record in load(at).values() if record["paper"] in names]
    found = []
    for number, record in enumerate(known, 1):
        tell(f"slice {number} of {len(known)}: {record['paper']} {record['figure']}")
        if why := differs(record):
            found.append((record, why))
    return sorted(found, key=lambda one: float(one[0]["cpu_seconds"]))


def mark(at: Path, names: Sequence[str], older: Sequence[Record]) -> None:
    """Says in the records of these papers which of them are of an older protocol."""
    which = {(record["paper"], record["figure"]) for record in older}
    for key, record in load(at).items():
        said = key in which
        if key[0] in names and said != bool(record.get("older")):
            save({**record, "older": said}, at)


def checks(shown: Shown) -> list[Record]:
    """The statements that were checked. A statement on a number has the paper's, ours and the allowed deviation."""
    found: list[Record] = []
    of_numbers: set[str] = set()
    for held in shown.held:
        of_numbers |= set(held.checks)
        row: Any
        for row, ok in zip(held.rows.itertuples(), held.ok):
            found.append(
                {
                    "statement": f"{held.scheme}: {row.bucket}, {row.statistic}",
                    "against": held.against,
                    "paper": _plain(row.theirs),
                    "ours": _plain(row.ours),
                    "within": _plain(row.within),
                    "ok": ok,
                }
            )
    found += [
        {"statement": statement, "ok": bool(ok)}
        for statement, ok in shown.checks.items()
        if statement not in of_numbers
    ]
    return found


def table(frame: pd.DataFrame) -> Record:
    """A table as JSON. A long one has evenly spaced rows, and all rows whose name is not a number."""
    columns = [_words(column) for column in frame.columns]
    index = [str(name) if name is not None else "" for name in frame.index.names]
    rows = []
    every = math.ceil(len(frame) / ROWS)
    for at, (name, row) in enumerate(zip(frame.index, frame.itertuples(index=False))):
        names = list(name) if isinstance(name, tuple) else [name]
        if every == 1 or at % every == 0 or isinstance(names[-1], str):
            rows.append([*map(_plain, names), *map(_plain, row)])
    return {"index": index, "columns": columns, "rows": rows, "of": len(frame)}


def _words(column: object) -> str:
    return " ".join(str(part) for part in column if str(part)) if isinstance(column, tuple) else str(column)


def _plain(value: Any) -> Any:
    """A cell as JSON; numbers have six digits."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return None if value is pd.NA else str(value)


def name_of(record: Mapping[str, Any]) -> str:
    """The name of the record's file."""
    return f"{record['paper']}-{record['figure']}.json"


# Of most records, which therefore don't say it.
_NOW = ("older", False)


def save(record: Record, at: Path) -> Path:
    """Writes a record into a checkout; its path."""
    path = at / FOLDER / name_of(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = ("checks", "behind", "slice")
    inner = {key: value for key, value in record.items() if key not in ("table", *listed) and (key, value) != _NOW}
    # One line for each row, so that a diff shows what changed.
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in inner.items()]
    if record["table"] is not None:
        of = record["table"]
        rows = ",\n".join(f"   {json.dumps(row)}" for row in of["rows"])
        head = ", ".join(f"{json.dumps(key)}: {json.dumps(of[key])}" for key in ("index", "columns", "of"))
        lines.append(f' "table": {{{head}, "rows": [\n{rows}\n ]}}')
    else:
        lines.append(' "table": null')
    for key in (key for key in listed if key in record):
        each = ",\n".join(f"  {json.dumps(one)}" for one in record[key])
        lines.append(f' "{key}": [\n{each}\n ]' if each else f' "{key}": []')
    replace(path, lambda part: part.write_text("{\n" + ",\n".join(lines) + "\n}\n"))
    return path


def load(at: Path) -> dict[tuple[str, str], Record]:
    """All records of a checkout, by paper and figure."""
    found = {}
    for path in sorted((at / FOLDER).glob("*.json")):
        record = _read(path)
        found[record["paper"], record["figure"]] = record
    return found


_SHAPE = {
    "paper": str, "figure": str, "title": str, "commit": str, "options": [str], "seeds": [int], "runs": int,
    "digest": str, "cpu_seconds": (int, float), "wall_seconds": (int, float), "table": object,
    "checks": [{"statement": str, "ok": bool, "against": str, "paper": object, "ours": object, "within": object}],
    "behind": [[str]], "older": bool, "note": str,
    "slice": [{"of": str, "end_us": object, "digest": str, "file": str, "sets": [[str]]}],
}  # fmt: skip
# Records that were written before these were.
_LATER = ("behind", "slice", "older", "note")


def _read(path: Path) -> Record:
    """A record; `ValueError` says what of it is wrong."""
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is no record of a figure: {error}") from None
    check_shape(str(path), "", record, _SHAPE)
    wrong = [key for key in _SHAPE if key not in record and key not in _LATER]
    wrong += [f"checks.{at}" for at, check in enumerate(record.get("checks", [])) if not _is_check(check)]
    if record.get("table") is not None:
        check_shape(str(path), "table", record["table"], {"index": [str], "columns": [str], "rows": [list], "of": int})
        wrong += [f"table.{key}" for key in ("index", "columns", "rows", "of") if key not in record["table"]]
    if not wrong and path.name != name_of(record):
        wrong = [f"paper and figure, whose record is {name_of(record)},"]
    if wrong:
        raise ValueError(f"{path}: {wrong[0]} is missing or not as `clearway paper --write` writes it")
    return record


def _is_check(check: Record) -> bool:
    """Whether a statement has what is shown of it: numbers, if it is about one."""
    numbers = [check.get(key) for key in ("paper", "ours", "within")]
    about_one = "paper" in check
    right = all(isinstance(one, int | float) or (one is None and at == 1) for at, one in enumerate(numbers))
    return {"statement", "ok"} <= set(check) and (not about_one or (right and "against" in check))


def number(value: Any) -> str:
    """A cell of a page: four digits."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        whole = isinstance(value, int) or abs(value) >= 10_000 or float(value).is_integer()
        return f"{value:,.0f}" if whole else f"{value:.4g}"
    return str(value).replace("|", "\\|")


def command(record: Mapping[str, Any]) -> str:
    """The command that runs the figure again, as a shell reads it."""
    return shlex.join(["clearway", "paper", record["paper"], record["figure"], *record["options"]])


def render(record: Mapping[str, Any] | None, of: str, figure: str) -> str:
    """The text of a figure's region."""
    if record is None:
        return f"Not yet run on this build: `clearway paper {of} {figure}`.\n"
    parts = [_wrapped(f"*{record['title']}*")]
    if record.get("note"):
        parts.append(_wrapped(record["note"]))
    parts += _rendered_checks(record["checks"])
    if record["table"] is not None and record["table"]["rows"]:
        parts.append(_rendered_table(record["table"]))
    parts.append(_provenance(record))
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str, later: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)


def _rendered_checks(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    numbers = [check for check in found if "paper" in check]
    for against in dict.fromkeys(check["against"] for check in numbers):
        lines = ["| statement | theirs | ours | off | allowed | |", "|---|---|---|---|---|---|"]
        for check in (check for check in numbers if check["against"] == against):
            theirs, ours = check["paper"], check["ours"]
            off = f"{ours / theirs - 1:+.1%}" if theirs and ours is not None else "-"
            cells = [number(check["statement"]), number(theirs), number(ours), off, f"{100 * check['within']:.3g}%"]
            lines.append(f"| {' | '.join(cells)} | {'holds' if check['ok'] else '**fails**'} |")
        yield _wrapped(f"Held against {against}:") + "\n\n" + "\n".join(lines)
    others = [check for check in found if "paper" not in check]
    if others:
        said = [f"- {'holds' if check['ok'] else '**fails**'}: {check['statement']}" for check in others]
        yield "\n".join(_wrapped(each, "  ") for each in said)


def _rendered_table(of: Mapping[str, Any]) -> str:
    heads = [number(head) for head in (*of["index"], *of["columns"])]
    lines = marked.table(heads, ([number(cell) for cell in row] for row in of["rows"]))
    count = len(of["rows"])
    what = "The table" if count == of["of"] else f"{count} of the table's {of['of']} rows"
    return f"<details><summary>{what}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _provenance(record: Mapping[str, Any]) -> str:
    words = [f"commit {record['commit']}"]
    seeds = record["seeds"]
    if seeds:
        words.append(f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}")
    if record["runs"]:
        words.append(f"{record['runs']:,} run{'s' * (record['runs'] > 1)}, digest {record['digest']}")
    cpu = record["cpu_seconds"]
    words.append(f"{cpu:,.0f} s of CPU" if cpu >= 10 else f"{cpu:.2g} s of CPU")
    older = "**Older protocol**, not yet made anew by today's code: " if record.get("older") else ""
    return _wrapped(f"{older}`{command(record)}`: {'; '.join(words)}.")


MARK = re.compile(r"<!-- ([\w-]+) ([\w-]+): begin -->\n(.*?)<!-- \1 \2: end -->\n", re.DOTALL)


def pages(at: Path) -> list[Path]:
    """The pages of a checkout that may have regions."""
    return sorted([*(at / "papers").glob("*/*.md"), *(at / "docs").rglob("*.md")])


def filled(text: str, records: Mapping[tuple[str, str], Record]) -> str:
    """A page with its regions written from the records."""

    def region(match: re.Match[str]) -> str:
        of, figure = match[1], match[2]
        if figure not in paper(of).figures:
            raise ValueError(f"a page has a region of {of} {figure}, and there is no such figure; delete the region")
        inner = render(records.get((of, figure)), of, figure)
        return f"<!-- {of} {figure}: begin -->\n{inner}<!-- {of} {figure}: end -->\n"

    return MARK.sub(region, text)


def write_pages(at: Path) -> list[Path]:
    """Writes all regions of all pages from the records; the pages that changed."""
    known, changed = load(at), []
    for page in pages(at):
        before = page.read_text()
        after = filled(before, known)
        if after != before:
            replace(page, partial(Path.write_text, data=after))
            changed.append(page)
    return changed


def shown_pictures(of: Paper, at: Path) -> dict[str, Path]:
    """The pictures that a paper's pages show, by figure: beside the page, as FIGURE.png or PAPER-FIGURE.png."""
    found: dict[str, Path] = {}
    for page in of.pages:
        for name in re.findall(r"!\[[^\]]*\]\(([\w-]+)\.png\)", (at / page).read_text()):
            figure = name.removeprefix(f"{of.name}-")
            if figure in of.figures:
                found[figure] = (at / page).parent / f"{name}.png"
    return found


def all_papers() -> list[Paper]:
    """The five papers and the other papers that results are compared with."""
    return [paper(name) for name in [*PAPERS, *RIVALS]]
