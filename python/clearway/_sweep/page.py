from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearway._sweep.result import SweepResult


def write(result: SweepResult, path: Path) -> Path:
    path.write_text("")
    return path
