"""Looks for scenarios that fail for a while, on all cores: `make swarm SECONDS=600`.

Scenarios that fail are written to a folder, one file each; as a test one goes to `tests/swarm`, with the fix.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path
from queue import Empty
from typing import Any

from swarm.search import BLOCK, Tally, searched


def main() -> int:
    """The number of failures is the exit status, as far as that goes."""
    parser = argparse.ArgumentParser(prog="make swarm", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, help="number of the first block; by default another each time")
    parser.add_argument("--out", type=Path, default=Path("target/swarm"))
    chosen = parser.parse_args()
    first = chosen.first if chosen.first is not None else int(time.time()) % 1_000_000 * 1_000
    print(f"blocks of {BLOCK} scenarios from number {first} on, for {chosen.seconds:,.0f} s", flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    queue, began = spawn.Queue(), time.time()
    processes = [
        spawn.Process(target=searched, args=(first + place, chosen.processes, began + chosen.seconds, queue))
        for place in range(chosen.processes)
    ]
    for process in processes:
        process.start()
    found = gathered(queue, processes, chosen.out, began)
    return min(found, 100)


def gathered(queue: Any, processes: list[Any], out: Path, began: float) -> int:
    """Says what the processes tell until all have ended, and then what was tried; the number of failures."""
    tally, found = Tally(), 0
    while True:
        try:
            number, more, find = queue.get(timeout=1)
        except Empty:
            if not any(process.is_alive() for process in processes) and queue.empty():
                break
            continue
        tally.add(more)
        if find is not None:
            found += 1
            path = out / f"{number}.toml"
            path.write_text(find[1], encoding="utf-8")
            print(f"FOUND {find[0]}\n  {path}", flush=True)
        rate = tally.runs / (time.time() - began)
        line = f"{tally.scenarios:,} scenarios, {tally.runs:,} runs, {rate:.1f} a second, {found} found"
        print(line, file=sys.stderr, flush=True)
    print(line_of(tally, found, time.time() - began))
    return found


def line_of(tally: Tally, found: int, seconds: float) -> str:
    """The scenarios that were tried, in lines."""
    counts = "\n".join(f"  {count:>7,}  {what}" for what, count in sorted(tally.seen.items()))
    left = ", ".join(f"{key} {count:,}" for key, count in tally.refusals.most_common(12))
    return (
        f"{tally.scenarios:,} scenarios in {tally.runs:,} runs in {seconds:,.0f} s, {tally.runs / seconds:.1f} runs a "
        f"second: {found} found\n{tally.refused:,} were refused whatever was left out; most often left out: {left}\n"
        f"scenarios by what they have, and runs by configuration:\n{counts}"
    )


if __name__ == "__main__":
    sys.exit(main())
