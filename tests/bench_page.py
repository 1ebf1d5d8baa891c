"""Writes docs/speed.md's region of measured numbers from docs/speed.json: `make bench WRITE=1` runs it.

Records of other machines (docs/speed-NAME.json) add a column each to the table of goals. The region stands between
`<!-- bench: begin -->` and `<!-- bench: end -->` and is never written by hand.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
RECORD, PAGE = DOCS / "speed.json", DOCS / "speed.md"
REGION = re.compile(r"(<!-- bench: begin -->\n).*?(<!-- bench: end -->\n)", re.DOTALL)
HEADS = ["scenario", "threads", "packet-hops", "per CPU second", "of the 144-host line", "events a hop", "peak memory"]
HEADS += ["a host", "a flow"]
# The goals of large fabrics and bursts beside the 144-host line, chosen before the engine was cut by locality: at
# least, and at best.
GOALS = {
    "poisson-1024/dcpim": (0.65, 0.8),
    "poisson-8192/dcpim": (0.4, 0.6),
    "permutation-1024/ndp": (0.45, 0.6),
    "permutation-1024/dctcp": (0.55, 0.7),
}
# A second thread by the wall clock, and the permutation beside htsim's NDP by CPU time.
ONE, TWO, PEER = "poisson-1024/dcpim", "poisson-1024/dcpim/2-threads", "permutation-1024/ndp"
GOAL_TWO, GOAL_PEER = (1.8, 1.9), (12.0, 20.0)


def read() -> tuple[Mapping[str, Any] | None, list[Mapping[str, Any]]]:
    """The page's record, if there is one, and those of other machines."""
    record, *others = (
        json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        for path in (RECORD, *sorted(DOCS.glob("speed-*.json")))
    )
    return record, others


def filled(page: str, record: Mapping[str, Any] | None, others: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page with its region as the records have it; ValueError if it has none."""
    if len(REGION.findall(page)) != 1:
        raise ValueError("the page needs one region, from <!-- bench: begin --> to <!-- bench: end -->")
    return REGION.sub(lambda marks: marks[1] + render(record, others) + marks[2], page)


def render(record: Mapping[str, Any] | None, others: Sequence[Mapping[str, Any]] = ()) -> str:
    """The region's text."""
    if record is None:
        return "Not yet measured on this build: `make bench WRITE=1`.\n"
    machine = record["machine"]
    memory = f"{machine['memory_bytes'] / 2**30:.0f} GiB"
    said = (
        f"Measured at commit {record['commit']} on {record['date'][:10]}, on {machine['cores']} cores of "
        f"{machine['cpu']} with caches of {machine['caches']} and {memory} of memory, Linux {machine['kernel']}."
    )
    if record["quick"]:
        said += " A quick run: scenarios are shorter than they should be."
    lines = [f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    lines += [f"| {' | '.join(cells(line))} |" for line in record["lines"]]
    conclusions = [f"- {said}" for said in record["conclusions"]]
    parts = [wrapped(said), "\n".join(lines), "\n".join(wrapped(each, "  ") for each in conclusions)]
    parts.append(goals(record, others))
    return "\n\n".join(part for part in parts if part) + "\n"


def goals(record: Mapping[str, Any], others: Sequence[Mapping[str, Any]] = ()) -> str:
    """Which goals were reached, of those that the record has lines for, and what other machines reached."""
    rows, elsewhere = reached(record), [reached(other) for other in others]
    if not rows:
        return ""
    heads = ["goal", "at least", "at best", "reached"]
    heads += [f"{other['machine']['cpu']}, commit {other['commit']}" for other in others]
    said = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for name, (what, value, (least, best)) in rows.items():
        values = [value, *(other[name][1] if name in other else None for other in elsewhere)]
        marks = ["" if value is None else f"{value:.2f}" + " **missed**" * (value < least) for value in values]
        said.append(f"| {what} | {least:g} | {best:g} | {' | '.join(marks)} |")
    for other in others:
        machine = other["machine"]
        what = (
            f"{machine['cpu']}: {machine['cores']} cores with caches of {machine['caches']}, on {other['date'][:10]}."
        )
        said += ["", wrapped(what)]
    return "\n".join(said)


def reached(record: Mapping[str, Any]) -> dict[str, tuple[str, float, tuple[float, float]]]:
    """The results of a record for each goal that it has lines for: what it is, the value and the goal."""
    lines = {line["name"]: line for line in record["lines"]}
    rows = {
        name: (f"{lines[name]['title']}, of the 144-host line", lines[name]["ratio"], goal)
        for name, goal in GOALS.items()
        if name in lines
    }
    if ONE in lines and TWO in lines:
        rows[TWO] = ("a second thread, 1,024 hosts", lines[ONE]["wall_s"] / lines[TWO]["wall_s"], GOAL_TWO)
    for peer in record.get("peers", []):
        if peer["name"] == PEER:
            what = f"{lines[PEER]['title']}: CPU time of htsim's"
            rows["peer"] = (what, peer["cpu_s"] / lines[PEER]["cpu_s"], GOAL_PEER)
    return rows


def cells(line: Mapping[str, Any]) -> list[str]:
    return [
        line["title"],
        str(line["threads"]),
        f"{line['hops'] / 1e6:.1f} M",
        f"{line['hops_per_cpu_s'] / 1e6:.2f} M",
        f"{line['ratio']:.2f}",
        f"{line['events_per_hop']:.2f}",
        f"{line['peak_bytes'] / 1e6:.0f} MB",
        f"{line['bytes_a_host'] / 1e3:.0f} KB",
        f"{line['bytes_a_flow'] / 1e3:.3g} KB",
    ]


def wrapped(text: str, later: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)


def main() -> int:
    before = PAGE.read_text(encoding="utf-8")
    after = filled(before, *read())
    if after != before:
        PAGE.write_text(after, encoding="utf-8")
        print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
