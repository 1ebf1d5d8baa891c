"""The cost of estimates at flow level for 100,000 hosts: writes the table of `docs/flow-level-measured.md`.

    python examples/flow-level/size.py

Each run is a process of its own on one core, so that its CPU time and peak memory are its own. CPU time covers
everything from reading the scenario to the tables in Python.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import clearway as cw
from clearway import _core

PAGE = Path("docs/flow-level-measured.md")
BEGIN, END = "<!-- size: begin -->\n", "<!-- size: end -->\n"
SCENARIO = Path("examples/flow-level/large.toml")

FAT_TREE = {"fabric": {"fat_tree": {"k": 74}}}
CASES: dict[str, dict[str, Any]] = {
    "leaf-spine of 102,400 hosts": {},
    "the same for 4 ms": {"traffic.0.duration": "4ms"},
    "the same, 2:1 oversubscribed": {"fabric.leaf_spine.oversubscription": 2.0},
    "fat-tree of 101,306 hosts (k = 74)": FAT_TREE,
    "the same, a path by hash for each flow": {**FAT_TREE, "switch.balancing": "ecmp"},
}


def measure(name: str) -> dict[str, float]:
    """Runs one case in this process."""
    result = cw.run(cw.Scenario.load(SCENARIO).with_(CASES[name]), level="flow", progress=False)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"flows": len(result.flows), "cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss * 1024 / 1e6}


def main() -> None:
    """Measures all cases and writes the table into the page."""
    if len(sys.argv) == 2:
        print(json.dumps(measure(sys.argv[1])))
        return
    lines = ["| network | flows | CPU, s | peak memory, MB |", "| --- | ---: | ---: | ---: |"]
    for name in CASES:
        done = subprocess.run([sys.executable, __file__, name], check=True, text=True, stdout=subprocess.PIPE)
        of = json.loads(done.stdout)
        lines.append(f"| {name} | {of['flows']:,} | {of['cpu']:.2g} | {of['mb']:,.0f} |")
        print(lines[-1], file=sys.stderr)
    lines += ["", f"`python examples/flow-level/size.py` at commit {_core.COMMIT}, {platform.machine()}.", ""]
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(lines) + END + after)


if __name__ == "__main__":
    main()
