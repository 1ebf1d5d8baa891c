"""Records how runs of the bench progress, in CPU time, for a test: `python tests/record_progress.py`.

It writes tests/python/progress.csv: a row about every hundredth of a run's work. It needs the installed package and
some minutes; one thread each, so that CPU time is what a quiet machine's clock would show.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import clearway as cw

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "crates" / "sim" / "examples" / "bench" / "scenarios"
RECORDED = ROOT / "tests" / "python" / "progress.csv"
RUNS = [
    ("leaf-spine", "dcpim", "none", {}),
    ("leaf-spine", "dctcp", "none", {}),
    ("permutation-1024", "ndp", "none", {"traffic.0.sizes": {"constant": "300KB"}}),
    ("storm", "rdma", "pfc", {}),
]
EVERY = 0.01


def main() -> None:
    with RECORDED.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["run", "cpu_seconds", "fraction"])
        for name, transport, flow_control, keys in RUNS:
            scenario = cw.Scenario.load(BENCH / f"{name}.toml")
            scenario = scenario.with_(keys, transport=transport, flow_control=flow_control)
            label = f"{name} {transport}"
            told: list[tuple[float, float]] = []
            began = time.thread_time()
            cw.run(
                scenario,
                threads=1,
                progress=lambda at, told=told, began=began: told.append((time.thread_time() - began, at.fraction)),
            )
            last = -1.0
            for index, (seconds, fraction) in enumerate(told):
                if fraction - last >= EVERY or index in (0, len(told) - 1):
                    rows.writerow([label, f"{seconds:.3f}", f"{fraction:.4f}"])
                    last = fraction


if __name__ == "__main__":
    main()
