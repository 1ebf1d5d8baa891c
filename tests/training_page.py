"""Runs large training jobs, each in a process of its own, and writes what they take into docs/training-measured.md.

`python tests/training_page.py` runs those of a minute at most, `python tests/training_page.py all-reduce-1024 packet`
one by its name and level. The measurements are in docs/training.json, so that a run replaces its own line only; the
region of the page between `<!-- training-cost: begin -->` and `<!-- training-cost: end -->` is written from that and
never by hand.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs" / "training.json", ROOT / "docs" / "training-measured.md"
REGION = re.compile(r"(<!-- training-cost: begin -->\n).*?(<!-- training-cost: end -->\n)", re.DOTALL)
RUNS = {
    ("gpt", "packet"): "a GPT-like iteration, 128 ranks",
    ("gpt", "flow"): "the same, flow level",
    ("all-reduce-1024", "packet"): "all-reduce of 1 GB, 1,024 ranks",
    ("all-reduce-1024", "flow"): "the same, flow level",
}
LONG = {("all-reduce-1024", "packet")}
HEAD = ["job", "its time", "packet-hops", "CPU time", "wall time", "peak memory", "at commit"]


def filled(page: str, record: Mapping[str, Any]) -> str:
    """The page with its region as the record has it; ValueError if it has none."""
    if len(REGION.findall(page)) != 1:
        raise ValueError("the page needs one region, from <!-- training-cost: begin --> to <!-- training-cost: end -->")
    return REGION.sub(lambda marks: marks[1] + render(record) + marks[2], page)


def render(record: Mapping[str, Any]) -> str:
    """The region's text."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for (name, level), title in RUNS.items():
        line = record.get(f"{name}, {level}")
        cells = _cells(line) if line else ["not yet measured", *[""] * (len(HEAD) - 2)]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(line: Mapping[str, Any]) -> list[str]:
    hops = f"{line['packet_hops'] / 1e6:,.1f} M" if line["packet_hops"] else "none"
    times = [f"{line[key]:,.1f} s" for key in ("cpu_seconds", "wall_seconds")]
    return [f"{line['time_ms']:,.2f} ms", hops, *times, f"{line['peak_memory_bytes'] / 1e6:,.0f} MB", line["commit"]]


def measured(name: str, level: str) -> dict[str, Any]:
    """A run and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result"
        command = [
            sys.executable,
            "-m",
            "clearway",
            "run",
            f"examples/{name}.toml",
            "--level",
            level,
            "--out",
            str(out),
        ]
        subprocess.run(command, check=True, cwd=ROOT)
        info = json.loads((out / "run.json").read_text())
        from clearway import load

        jobs = load(out).jobs.to_pandas()
    row = {key: info.get(key, 0) for key in ("packet_hops", "cpu_seconds", "wall_seconds", "peak_memory_bytes")}
    return row | {"time_ms": float(jobs["time_ps"].sum()) / 1e9, "commit": info["commit"], "digest": info["digest"]}


def main() -> None:
    """Runs what is asked for and writes the page."""
    asked = tuple(sys.argv[1:3])
    known = ", ".join(" ".join(run) for run in RUNS)
    if asked and asked not in RUNS:
        raise SystemExit(f"{' '.join(asked)} is not one of {known}")
    for run in RUNS:
        if run != asked and (asked or run in LONG):
            continue
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        record[", ".join(run)] = measured(*run)
        RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
        PAGE.write_text(filled(PAGE.read_text(), record))


if __name__ == "__main__":
    main()
