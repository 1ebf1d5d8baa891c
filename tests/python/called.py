"""The command called within this process: what it says, and its exit status.

An error that it doesn't turn into words comes through.
"""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from clearway._cli import main


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str


def call(*arguments: object) -> Called:
    out, err = io.StringIO(), io.StringIO()
    argv = ["clearway", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Called(code, out.getvalue(), err.getvalue())
