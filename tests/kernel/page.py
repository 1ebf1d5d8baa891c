"""Writes measured numbers into docs/aq-linux.md from docs/aq-linux.json: `experiments.py --write` calls it.

Each experiment's region stands between `<!-- begin kernel NAME -->` and `<!-- end kernel NAME -->`; it is never written
by hand.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORD, PAGE = DOCS / "aq-linux.json", DOCS / "aq-linux.md"
REGION = re.compile(r"(<!-- begin kernel ([\w-]+) -->\n).*?(<!-- end kernel \2 -->\n)", re.DOTALL)


def record(name: str, result: dict[str, Any]) -> None:
    """Keeps an experiment's result with its origin, and writes the page anew."""
    records = load()
    records[name] = {**result, "origin": origin()}
    RECORD.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")


def load() -> dict[str, Any]:
    """All records."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def origin() -> dict[str, str]:
    """Where and when something was measured."""
    git = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), platform.machine())
    cores = str(sum(line.startswith("processor") for line in lines))
    kernel = platform.release().split("-")[0]
    date = time.strftime("%Y-%m-%d")
    return {"commit": git.stdout.strip(), "date": date, "cpu": cpu, "cores": cores, "kernel": kernel}


def filled(page: str, records: dict[str, Any]) -> str:
    """The page with its regions as the records have them."""
    return REGION.sub(lambda marks: marks[1] + render(records.get(marks[2]), marks[2]) + marks[3], page)


def regions(page: str) -> list[str]:
    """The experiments that a page shows."""
    return [marks[1] for marks in REGION.findall(page)]


def render(result: dict[str, Any] | None, name: str) -> str:
    """A region's text."""
    if result is None:
        return f"Not yet measured: `make test-kernel KERNEL={name} WRITE=1`.\n"
    by = result["origin"]
    said = (
        f"`make test-kernel KERNEL={name} WRITE=1` at commit {by['commit']} on {by['date']}: Linux {by['kernel']}, "
        f"{by['cores']} cores of {by['cpu']}."
    )
    parts = [table(result["rows"]), wrapped(said)]
    if result["checks"]:
        held = sum(one["holds"] for one in result["checks"])
        lines = [f"{held} of {len(result['checks'])} statements hold within tolerances that were chosen before."]
        for one in result["checks"]:
            if not one["holds"]:
                off = one["ours"] / one["wanted"] - 1
                lines.append(
                    f"- Does not hold: {one['what']} is {one['ours']:.4g} and not {one['wanted']:.4g} "
                    f"({off:+.1%}; tolerance {one['tolerance']:.0%})."
                )
        parts.append("\n".join(wrapped(each, "  " if each.startswith("-") else "") for each in lines))
    return "\n\n".join(parts) + "\n"


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


HEADS = {
    "what": "",
    "how": "under",
    "mbps": "Mbps on the wire",
    "sum_mbps": "sum",
    "predicted_mbps": "simulator",
    "rtt_ms": "round trip, ms",
    "again": "sent again",
    "fairness": "fairness",
    "cpu_us": "CPU, us a packet",
    "off_mean": "mean error",
    "off_most": "largest error",
    "seconds": "s",
    "ns": "program, ns",
    "mb": "MB",
}
PARTS = {"again", "off_mean", "off_most"}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a table; a column that no row has is left out."""
    keys = [key for key in HEADS if any(key in row for row in rows)]
    lines = [f"| {' | '.join(HEADS[key] for key in keys)} |", "|" + "---|" * len(keys)]
    for row in rows:
        lines.append(f"| {' | '.join(cell(key, row.get(key)) for key in keys)} |")
    return "\n".join(lines)


def cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return " + ".join(cell(key, one) for one in value.values())
    if isinstance(value, str):
        return value
    return f"{value:.2%}" if key in PARTS else f"{value:,.4g}" if value < 1_000 else f"{value:,.0f}"
