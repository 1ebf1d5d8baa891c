"""Lists the lines of code that are wider than 120 columns: `python tests/width.py`. Exit status 1 if there are any."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from pathlib import Path

WIDTH = 120
PATTERNS = ["*.rs", "*.py", "*.pyi", "*.yml", "Makefile"]


def width(line: str) -> int:
    """Columns that a line takes: two for a wide sign, none for one that combines with the sign before it."""
    return sum((unicodedata.combining(sign) == 0) + (unicodedata.east_asian_width(sign) in "WF") for sign in line)


def wide() -> list[str]:
    """Where lines are too wide, in all files that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PATTERNS]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    found = []
    for path in (Path(name) for name in sorted(set(names)) if name):
        # A file that is deleted and not yet committed, or a seed that is no text.
        if not path.is_file() or "seeds" in path.parts:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if (columns := width(line)) > WIDTH:
                found.append(f"{path}:{number}: {columns} columns, and {WIDTH} are allowed")
    return found


if __name__ == "__main__":
    lines = wide()
    print("\n".join(lines) or f"no line is wider than {WIDTH} columns")
    sys.exit(bool(lines))
