"""Tries a wheel as a new user does: `python tests/try_wheel.py [WHEEL]`, by default the newest in target/wheels.

Installs it into an environment of its own, without cargo in PATH, writes the scenario that is in the wheel, runs it,
and looks for its figures. Exit status 1 if there are none within a minute of `pip install`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

SECONDS = 60


def main() -> int:
    """Tries the wheel that is named, or the newest."""
    wheels = sorted(Path("target/wheels").glob("clearway-*.whl"), key=lambda path: path.stat().st_mtime)
    wheel = Path(sys.argv[1]) if len(sys.argv) > 1 else wheels[-1] if wheels else None
    if wheel is None or not wheel.is_file():
        print(
            f"{wheel or 'target/wheels/clearway-*.whl'}: there is no such wheel; `make wheel` builds one",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory() as place:
        took = _try(wheel.resolve(), Path(place))
    print(f"{wheel.name}: figures {took:.1f} s after pip install")
    if took > SECONDS:
        print(f"more than {SECONDS} s", file=sys.stderr)
    return int(took > SECONDS)


def _try(wheel: Path, place: Path) -> float:
    """Seconds from the end of `pip install` to a page with figures."""
    venv.create(place / "venv", with_pip=True)
    programs = place / "venv" / "bin"
    # The system's own programs, and no toolchain.
    words = [str(programs), *(path for path in os.defpath.split(os.pathsep) if path)]
    alone = {"PATH": os.pathsep.join(words), "HOME": str(place), "LANG": os.environ.get("LANG", "C.UTF-8")}
    for name in ("cargo", "rustc", "maturin"):
        assert shutil.which(name, path=alone["PATH"]) is None, f"{name} is in {alone['PATH']}"

    def call(*command: str) -> str:
        done = subprocess.run(command, cwd=place, env=alone, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)} failed: {done.stdout}{done.stderr}"
        return done.stdout

    call("pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    began = time.monotonic()
    print(call("clearway", "--version").strip())
    call("clearway", "init", "first.toml")
    print(call("clearway", "run", "first.toml", "--set", "traffic.websearch.flows=100", "--out", "first"))
    took = time.monotonic() - began
    page = (place / "first" / "report.html").read_text(encoding="utf-8")
    figures = re.findall(r"<div class=charts role=img aria-label=", page)
    assert len(figures) >= 5, f"the page has {len(figures)} figures"
    print(f"{len(figures)} figures in a page of {len(page) / 1e6:.1f} MB")
    return took


if __name__ == "__main__":
    sys.exit(main())
