"""A process that runs one task after the other: `python -m clearway.sweeps.worker FD`, the descriptor of its end of a
pipe.

It ends when the other end is gone: the driver may be killed at any time.
"""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from clearway.files import sandbox

# How often the progress of a run is reported.
TELL_SECONDS = 0.5


def main(handle: int) -> None:
    """Runs (key, task, scratch, threads) as they come; answers (what, key, ...)."""
    sandbox.inherit()
    driver: Connection[Any, Any] = Connection(handle)

    def tells(key: str) -> Callable[[float, str], None]:
        return throttled(lambda share, words: driver.send(("at", key, share, words)))

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            key, task, scratch, threads = driver.recv()
            driver.send(("begun", key))
            _forget_peak()
            try:
                task.run(Path(scratch), threads, tells(key))
            except (BrokenPipeError, ConnectionResetError):
                return
            except Exception as error:
                driver.send(("failed", key, told(error)))
            else:
                driver.send(("done", key))


def throttled(tell: Callable[[float, str], object]) -> Callable[[float, str], None]:
    """The same callback, called at most every `TELL_SECONDS`."""
    last = time.monotonic()

    def sometimes(share: float, words: str) -> None:
        nonlocal last
        if time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            tell(share, words)

    return sometimes


def told(error: Exception) -> str:
    """An error as the store has it: one line for an expected error, a traceback for any other."""
    foreseen = isinstance(error, ValueError | OSError)
    return str(error) if foreseen else "".join(traceback.format_exception(error))


def _forget_peak() -> None:
    """Resets the peak of the memory, so that each run counts its own."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main(int(sys.argv[1]))
