"""Another program's answer: the same flows, as they went there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Answer:
    """The same flows in the other program."""

    delivered_ps: npt.NDArray[np.int64]
    """When each flow's last byte was there, or -1."""
    received_bytes: npt.NDArray[np.int64]
    """The bytes of each flow that were there at the end."""
    dropped_packets: npt.NDArray[np.int64]
    """Of each link, in the order of the table `links`; retransmissions that were dropped too."""
    marked_packets: npt.NDArray[np.int64]
    queued_bytes_max: npt.NDArray[np.int64]
    ended_ps: int
    version: str
    sent_packets: npt.NDArray[np.int64] | None = None
    """Packets with content of each flow, sent again or not, where the program says that."""
    resent_packets: npt.NDArray[np.int64] | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    """Counters of the program's hosts, by the program's own names."""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    """How the run went, such as how late the machine was."""


def told(
    words: Sequence[str], version: str, progress: Callable[[float, int], object] | None, *, input_: bool = False
) -> tuple[str, list[str]]:
    """Runs another program, which prints `version VERSION` and `progress PICOSECONDS FLOWS`: its version, `version` if
    it says none, and all other lines. With `input_` it has an input that ends when this process does."""
    others = []
    # A session of its own: an interrupt comes from here, and no process stays behind.
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE if input_ else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert running.stdout is not None
            for line in running.stdout:
                match line.split():
                    case ["version", said]:
                        version = said
                    case ["progress", now, done]:
                        if progress is not None:
                            progress(int(now) / 1e12, int(done))
                    case _:
                        others.append(line)
        except BaseException:
            running.kill()
            raise
    return version, others
