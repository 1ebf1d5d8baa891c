"""DCTCP (RFC 8257) as a class of one's own, against the one that Clearway has: the same packets, the same digest.

python examples/own_dctcp.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import clearway as cw

if TYPE_CHECKING:
    from clearway._core import AckEvent, CongestionEvent, StartEvent


class Dctcp(cw.Control):
    """A window as NewReno keeps it, and the share of marked bytes."""

    ecn = "proportional"

    def __init__(self, g: float = 0.0625, alpha: float = 1.0) -> None:
        self.g, self.alpha = g, alpha

    def on_start(self, start: StartEvent) -> None:
        """In slow start, with the initial window."""
        self.mss = start.mss_bytes
        self.threshold = 2**63
        # Bytes since the window last grew; what was acknowledged of the window of data that is observed. Its end is
        # `quiet_until`.
        self.counted = self.acked = self.marked = 0
        self.quiet_bytes = 1

    def on_ack(self, acks: AckEvent) -> None:
        """Counts marks, and lets the window grow. In slow start it hears of each that lets it grow; then of none until
        the window grows or the observed one ends, since each would get the same answer.
        """
        self.acked += acks.acked_bytes
        self.marked += acks.marked_bytes
        if acks.una > self.quiet_until:
            self.alpha = self.alpha * (1.0 - self.g) + self.g * (self.marked / self.acked)
            self.quiet_until = acks.next
            self.acked = self.marked = 0
        window, growing = self.window_bytes, acks.growing_bytes
        if window < self.threshold:
            if growing:
                # After a timeout (phase 2) one acknowledgement may cover much that arrived long ago.
                self.window_bytes = window + min(growing, (1 if acks.phase == 2 else 2) * self.mss)
            return
        counted = self.counted + growing
        # Bytes that an acknowledgement counts beyond a window wait for the next one that may let it grow.
        if counted >= window and acks.window_limited and not acks.marked and acks.phase != 1:
            counted -= window
            self.window_bytes = window = window + self.mss
        self.counted = counted
        self.quiet_bytes = max(window - counted, 0)

    def on_mark(self, mark: CongestionEvent) -> None:
        """Takes half of alpha from the window."""
        self._reduce(int(self.window_bytes * (1.0 - self.alpha / 2.0)))

    def on_loss(self, loss: CongestionEvent) -> None:
        """Takes half; a timeout takes all but a segment."""
        if not loss.again:
            self._reduce(loss.flight_bytes // 2)
        if loss.timeout:
            self.window_bytes = self.mss
            self.quiet_bytes = 1

    def _reduce(self, window_bytes: int) -> None:
        self.threshold = self.window_bytes = self.quiet_bytes = max(window_bytes, 2 * self.mss)
        self.counted = 0


if __name__ == "__main__":
    scenario = cw.Scenario.load(Path(__file__).with_name("tiny.toml"))
    modules = {"ecn": "proportional", "module": "wasm/dctcp-c.wasm"}
    for name, transport in {"built in": "dctcp", "class": Dctcp(), "module": {"custom": modules}}.items():
        print(name, cw.run(scenario.with_(transport=transport), progress=False).info["digest"])
