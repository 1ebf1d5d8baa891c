"""One of the other processes of `clearway live --processes`: the first one starts it, and is at its standard input."""

import signal
import sys

from clearway import _core

# The command of such a process.
PART = (sys.executable, "-m", "clearway.running.part")


def main() -> None:
    """Takes part in a live run until that is over."""
    # The first process is told to end, and then says so: what there is is kept.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _core.live_part()


if __name__ == "__main__":
    main()
