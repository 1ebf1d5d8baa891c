"""The simulator's numbers on a scenario with some keys set: `python foreseen.py SCENARIO KEYS`, in an interpreter that
has the package `clearway`. Prints in JSON, for each class of traffic, when it was done and which bytes each host sent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "python" / "clearway" / "papers" / "augmented_queue"


def interpreter() -> str:
    """The interpreter that has the package: that of `make .venv/.built`, if it is there."""
    built = ROOT / ".venv" / "bin" / "python"
    return os.environ.get("CLEARWAY_PYTHON") or (str(built) if built.exists() else sys.executable)


def foreseen(scenario: str, keys: dict[str, Any]) -> dict[str, Any]:
    """A scenario of the paper with some keys set. By class: `seconds` until all was delivered, `bytes` by host."""
    words = [interpreter(), __file__, str(PAPER / f"{scenario}.toml"), json.dumps(keys)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise RuntimeError(f"the simulator could not be asked: {last}; `make .venv/.built` makes the package")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    import clearway as cw

    wanted = cw.Scenario.load(sys.argv[1]).with_(json.loads(sys.argv[2]))
    flows = cw.run(wanted).flows.to_pandas()
    answer = {}
    for name, mine in flows.groupby("class"):
        mine = mine.sort_values("start_ps")
        by_host = {str(host): [int(size) for size in sent["bytes"]] for host, sent in mine.groupby("src")}
        seconds = float(mine["delivered_ps"].max() - mine["start_ps"].min()) / 1e12
        answer[str(name)] = {"seconds": seconds, "bytes": by_host}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
