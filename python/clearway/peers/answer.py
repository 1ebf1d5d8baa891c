"""Another program's answer: the same flows, as they went there."""

from __future__ import annotations

from collections.abc import Mapping
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
