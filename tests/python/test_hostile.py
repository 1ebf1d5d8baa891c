"""No input makes the command print a traceback, panic, hang or die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from hostile import SECONDS

# By the wall, where others share the machine: the CPU time of a case is held to `SECONDS`.
WATCH_SECONDS = 60.0


def tried(place: Path, count: int, first: int = 0) -> dict[int, dict[str, Any]]:
    """How each case ended. A process that dies or hangs at one is followed by another, from the next on."""
    found: dict[int, dict[str, Any]] = {}
    here = Path(__file__).parent
    environment = os.environ | {
        "PYTHONPATH": str(here),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "2",
        "PYTHONWARNINGS": "ignore",
    }
    # Its rules read examples before it goes to its own folder.
    program = (
        f"import sys, os; import hostile; os.chdir({str(place)!r}); hostile.main(int(sys.argv[1]), int(sys.argv[2]))"
    )
    while first < count:
        command = [sys.executable, "-c", program, str(count), str(first)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            begun: dict[str, Any] = {}
            watch = threading.Timer(WATCH_SECONDS, process.kill)
            watch.start()
            for line in process.stdout:
                if not line.startswith("{"):
                    continue
                said = json.loads(line)
                if "begun" in said:
                    begun = said
                else:
                    found[said["ended"]] = {**begun, **said}
                    begun = {}
                    watch.cancel()
                    watch = threading.Timer(WATCH_SECONDS, process.kill)
                    watch.start()
            watch.cancel()
            err = process.stderr.read()
            process.wait()
        if begun:
            found[begun["begun"]] = {
                **begun,
                "code": None,
                "err": f"ended by {process.returncode}: {err[-600:]}",
                "seconds": 0.0,
            }
            first = begun["begun"] + 1
        else:
            assert process.returncode == 0, err
            first = count
    return found


def held(place: Path, count: int) -> None:
    cw.run(cw.Scenario.load("examples/tiny.toml")).save(place / "sound")
    found = tried(place, count)
    assert len(found) == count
    wrong = []
    for case in found.values():
        sound = case["code"] in (0, 1, 2) and "Traceback" not in case["err"] and "panicked" not in case["err"]
        # Click says what is wrong with a call after how it is used.
        if not sound or (case["code"] == 2 and not case["err"].strip()) or case["seconds"] > SECONDS:
            wrong.append(
                f"{case['name']}: {case['words']!r:.300}: {case['code']} in {case['seconds']} s: {case['err']}"
            )
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)
    codes = [case["code"] for case in found.values()]
    assert codes.count(2) > count / 3 and codes.count(0) > count / 50, (
        "most are refused, and some are not wrong after all"
    )


def test_hostile_inputs_are_told_what_is_wrong_with_them(tmp_path: Path) -> None:
    held(tmp_path, 560)


@pytest.mark.slow
def test_many_more_hostile_inputs(tmp_path: Path) -> None:
    held(tmp_path, 6_000)
