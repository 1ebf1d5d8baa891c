"""The command called within this process: what it says, and its exit status.

An error that it doesn't turn into words comes through.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from clearway.cli.main import main
from clearway.files import sandbox


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str


@contextlib.contextmanager
def within(folder: Path | None) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder or here)
    try:
        yield
    finally:
        os.chdir(here)


def call(*arguments: object, cwd: Path | None = None) -> Called:
    out, err = io.StringIO(), io.StringIO()
    argv = ["clearway", *map(str, arguments)]
    with (
        mock.patch.object(sys, "argv", argv),
        # It would stay closed around the tests.
        mock.patch.object(sandbox, "close", lambda needs: None),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        within(cwd),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Called(code, out.getvalue(), err.getvalue())
