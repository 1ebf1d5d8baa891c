"""Tasks for tests of sweeps: they take as long as they are told and say in a file that they were run."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearway.sweeps import Task
from clearway.sweeps.points import Told


@dataclass(frozen=True)
class Square(Task):
    """A number's square, as a result with more than one file."""

    number: int
    notes: str
    """A folder in which each run leaves a line."""
    seconds: float = 0.0
    ends: str = ""
    """`fails`; `dies`: its process is killed each time, `dies once`; `audit`: its result is in trouble."""

    @property
    def content(self) -> bytes:
        return f"{self.number} {self.ends}".encode()

    def run(self, folder: Path, threads: int, told: Told) -> None:
        note = Path(self.notes) / f"{self.number}.txt"
        times = len(note.read_text().splitlines()) if note.exists() else 0
        with note.open("a") as file:
            file.write(f"{os.getpid()}\n")
        began = time.monotonic()
        while (spent := time.monotonic() - began) < self.seconds:
            told(spent / self.seconds, "squaring")
            time.sleep(0.02)
        if self.ends == "fails":
            raise ValueError(f"{self.number} has no square today")
        if self.ends == "dies" or (self.ends == "dies once" and times == 0):
            os.kill(os.getpid(), signal.SIGKILL)
        folder.mkdir()
        (folder / "square.json").write_text(json.dumps(self.number**2))
        (folder / "whole.txt").write_text("whole")

    def row(self, folder: Path) -> dict[str, Any]:
        assert (folder / "whole.txt").read_text() == "whole"
        return {"square": json.loads((folder / "square.json").read_text())}

    def trouble(self, folder: Path) -> str:
        return "audit: odd" if self.ends == "audit" else ""
