"""Measures how much time and memory large scenarios take, and writes it into docs/speed.md: `make bench-scale`.

Scenarios are in tests/scale. Each is checked and run in a process of its own; peak memory is the kernel's count.
`python tests/scale_page.py NAME ...` measures only those. The measurements are in docs/scale.json; the region of
the page between `<!-- scale: begin -->` and `<!-- scale: end -->` is written from that and never by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "tests" / "scale"
RECORD, PAGE = ROOT / "docs" / "scale.json", ROOT / "docs" / "speed.md"
REGION = re.compile(r"(<!-- scale: begin -->\n).*?(<!-- scale: end -->\n)", re.DOTALL)
HEADS = ["scenario", "command", "time", "peak memory"]


class Row(NamedTuple):
    """A command on a scenario."""

    title: str
    scenario: str
    command: tuple[str, ...]


ROWS = {
    "ring-10000/check": Row("all-reduce of 1 GB among 10,000 ranks", "ring-10000", ("check",)),
    "ring-10000/run": Row("all-reduce of 1 GB among 10,000 ranks", "ring-10000", ("run", "--level", "flow")),
    "gpu-1024/check": Row("Llama 3 8B on 1,024 accelerators", "gpu-1024", ("check",)),
    "gpu-1024/run": Row(
        "Llama 3 8B on 1,024 accelerators",
        "gpu-1024",
        ("run", "--set", "measure.end=2ms", "--set", "measure.interval=0s"),
    ),
    "ring-1024/run": Row("all-reduce of 64 MB among 1,024 ranks", "ring-1024", ("run",)),
    "hosts-65536/check": Row("2,000 flows between 65,536 hosts", "hosts-65536", ("check",)),
    "hosts-65536/run": Row("2,000 flows between 65,536 hosts", "hosts-65536", ("run",)),
}


def measure(row: Row) -> dict[str, Any]:
    """Runs a command once: its time in seconds, its peak memory in bytes and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        command, *options = row.command
        out = ["--out", f"{folder}/out"] if command == "run" else []
        path = str(SCENARIOS / f"{row.scenario}.toml")
        began = time.monotonic()
        said = Path(folder, "said.txt")
        with said.open("wb") as file:
            child = subprocess.Popen(
                [sys.executable, "-m", "clearway", command, path, *options, *out], stdout=file, stderr=file
            )
            _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{row.scenario} {command}: status {child.returncode}\n{said.read_text()[-2000:]}")
    return {"wall_s": round(wall, 2), "peak_bytes": usage.ru_maxrss * 1024}


def render(record: Mapping[str, Any] | None) -> str:
    """The region's text."""
    if record is None:
        return "Not yet measured: `make bench-scale`.\n"
    lines = [record["machine"], "", f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    for name, row in ROWS.items():
        if line := record.get(name):
            said = f"{line['wall_s']:.3g} s", f"{line['peak_bytes'] / 1e6:.0f} MB"
            lines.append(f"| {row.title} | `clearway {' '.join(row.command)}` | {said[0]} | {said[1]} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """When and where this is, and with which build."""
    cpu = platform.processor()
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        cpu = found[1] if found else cpu
    build = "" if (ROOT / ".venv" / ".release").is_file() else ", with the extension module for tests"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return f"Measured on {day}, on {os.cpu_count()} cores of {cpu}{build}."


def filled(page: str, record: Mapping[str, Any] | None) -> str:
    """The page with its region as the record has it; ValueError if it has none."""
    if len(REGION.findall(page)) != 1:
        raise ValueError("the page needs one region, from <!-- scale: begin --> to <!-- scale: end -->")
    return REGION.sub(lambda marks: marks[1] + render(record) + marks[2], page)


def read() -> dict[str, Any] | None:
    """Earlier measurements."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else None


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in ROWS]:
        print(f"no such line: {', '.join(unknown)}; there are {', '.join(ROWS)}")
        return 2
    record = read() or {}
    for name in names or ROWS:
        record |= {"machine": machine(), name: measure(ROWS[name])}
        print(name, record[name], flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
