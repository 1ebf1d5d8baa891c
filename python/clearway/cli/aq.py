"""The command `clearway aq`: finds the program `clearway-aq`, which attaches Augmented Queue to devices.

The program is no part of the package: few need it, and building it needs clang. Everything that it does, it says itself
(`clearway aq --help`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import typer

NAME = "clearway-aq"


def places() -> Iterable[Path]:
    """Where the program may be, the likeliest first."""
    if chosen := os.environ.get("CLEARWAY_AQ"):
        yield Path(chosen)
        return
    if found := shutil.which(NAME):
        yield Path(found)
    yield Path(sys.executable).parent / NAME
    # A clone of the repository, after `make aq`.
    clone = Path(__file__).resolve().parents[3]
    if (clone / "Cargo.toml").exists():
        target = Path(os.environ.get("CARGO_TARGET_DIR", clone / "target"))
        yield target / "release" / NAME


def program() -> Path:
    """The program; an error that says how to get it if it is nowhere."""
    for place in places():
        if place.is_file() and os.access(place, os.X_OK):
            return place
    raise ValueError(
        f"{NAME} is not installed: in a clone of the repository, `make aq` builds it (it needs a Rust toolchain, clang "
        "and libbpf's headers); CLEARWAY_AQ can name it"
    )


def aq(context: typer.Context) -> None:
    """Divide a Linux network device among tenants: Augmented Queue as an eBPF program (docs/aq-linux.md)."""
    found = program()
    sys.stdout.flush()
    os.execv(found, [str(found), *context.args])
