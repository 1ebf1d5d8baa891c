"""`python -m clearway`, and the command `clearway`."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_INTERRUPTED = 130


def _at_once(number: int, frame: FrameType | None) -> NoReturn:
    """Nothing has begun, and nothing is to be saved: not even modules are there yet."""
    os.write(2, b"interrupted: nothing had begun\n")
    os._exit(EXIT_INTERRUPTED)


def main() -> NoReturn:
    """The command. A signal while it starts or ends is no traceback either."""
    for number in SIGNALS:
        signal.signal(number, _at_once)
    from clearway.cli.main import main as command

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
