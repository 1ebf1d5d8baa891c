"""The display of a running sweep: a live table in a terminal. Elsewhere, such as in a notebook or a log, it is one
line for each run that has ended, and now and then one on the state of the sweep."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from clearway.sweeps.driver import Board, Running

# How often a line on the state of a sweep is printed while no run ends.
TELL_SECONDS = 10.0
# Rows of the live table: a cluster has more workers than a screen has lines.
ROWS = 24


class Watch:
    """Shows a board. `show` is true or false, or none: only in a terminal or a notebook."""

    def __init__(self, board: Board, show: bool | None) -> None:
        # In a notebook a live table needs widgets.
        looks = sys.stderr.isatty() and "ipykernel" not in sys.modules
        show = True if show is None and "ipykernel" in sys.modules else show
        self.board = board
        self._lines = bool(show) and not looks
        self._reported_at = time.monotonic()
        self._live: Any = None
        if looks and show is not False:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                get_renderable=self._table, console=Console(stderr=True), refresh_per_second=4, transient=True
            )

    def __call__(self, said: str) -> None:
        """Shows a change of the board, or a message."""
        if said and self._live is not None:
            self._live.console.print(said, markup=False, highlight=False)
        elif self._lines and (said or time.monotonic() - self._reported_at > TELL_SECONDS):
            ended, left = len(self.board.done) + len(self.board.failed), _left(self.board)
            words = f"{said}{f' ({left})' if left else ''}" if said else summary(self.board)
            print(f"[{ended}/{len(self.board.names)}] {words}", file=sys.stderr, flush=True)
            self._reported_at = time.monotonic()

    def __enter__(self) -> Watch:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _table(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        board = self.board
        runs = list(board.running.items())
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        table.add_column("runs now", ratio=3, no_wrap=True, overflow="ellipsis")
        table.add_column("", width=20)
        table.add_column("", ratio=3, no_wrap=True, overflow="ellipsis")
        table.add_column("for", justify="right", no_wrap=True)
        table.add_column("where", ratio=2, no_wrap=True, overflow="ellipsis")
        for key, run in sorted(runs, key=lambda item: item[1].began or float("inf"))[:ROWS]:
            bar = ProgressBar(total=1.0, completed=run.share, width=20)
            table.add_row(Text(board.names[key]), bar, Text(run.words), _spent(run), Text(run.where))
        if len(runs) > ROWS:
            table.add_row(f"and {len(runs) - ROWS} more", "", "", "", "")
        share = (len(board.done) + len(board.failed)) / max(len(board.names), 1)
        whole = Table.grid(padding=(0, 1), expand=False)
        whole.add_row(ProgressBar(total=1.0, completed=share, width=40), Text(summary(board)))
        return Group(table, whole)


def summary(board: Board) -> str:
    """The state of a sweep in one line."""
    parts = [f"{len(board.done)} of {len(board.names)} done"]
    parts += [f"{board.kept} of them before"] if board.kept else []
    parts += [f"{len(board.failed)} failed"] if board.failed else []
    parts += [f"{len(board.running)} running"] if board.running else []
    parts += [f"{board.elsewhere} with other drivers"] if board.elsewhere else []
    left = _left(board)
    return ", ".join([*parts, left] if left else parts)


def _left(board: Board) -> str:
    if not (board.running or board.waiting or board.elsewhere):
        return ""
    seconds = board.seconds_left()
    return f"about {_duration(seconds)} left" if seconds is not None else ""


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _spent(run: Running) -> str:
    if run.began is None:
        return "starting" if run.tries == 1 else "again"
    return _duration(time.monotonic() - run.began)
