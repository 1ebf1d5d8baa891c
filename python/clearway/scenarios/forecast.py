"""The cost of a run, before it runs, and the resources of this machine."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Forecast:
    """The cost of a run at packet level. Hops are counted, and memory is a sum over what was measured: on networks
    that lose little, hops are right within 25%, and memory within a factor of 2.
    """

    hosts: int
    flows: int
    packet_hops: int
    """Packets over links, data and control."""
    end_ps: int
    """Simulated time at the end."""
    memory_bytes: int
    """The most memory at once."""
    memory: dict[str, int]
    """The same by what has it: fabric, flows, packets, samples."""
    cpu_seconds: float | None
    """CPU time on one thread of this machine, by the speed of its beginning; None if that was not measured."""
    refused: str | None
    """Why a run would be refused for lack of memory; None if it fits."""
    warnings: tuple[str, ...] = ()
    """Settings that can hardly work: the key of each, and what would be right."""

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"about {_short(self.packet_hops)} packet-hops"]
        if self.cpu_seconds is not None:
            parts.append(f"{self.cpu_seconds:,.2g} s of CPU" if self.cpu_seconds < 10 else _long(self.cpu_seconds))
        parts += [f"{_short(self.memory_bytes)}B of memory", f"{self.end_ps / 1e9:,.3g} ms simulated"]
        said = ", ".join(parts)
        return f"{said}; it would be refused: {self.refused}" if self.refused else said


def _long(seconds: float) -> str:
    return f"{seconds:,.0f} s of CPU" if seconds < 600 else f"{seconds / 60:,.0f} min of CPU"


def _short(number: float) -> str:
    """A number to two or three digits: 850, 12 k, 1.3 M, 2.4 G."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.0f} "


def foreseen(row: Any) -> Forecast:
    """From what Rust says."""
    memory = dict(row["memory"])
    return Forecast(
        hosts=row["hosts"],
        flows=row["flows"],
        packet_hops=row["packet_hops"],
        end_ps=row["end_ps"],
        memory_bytes=sum(memory.values()),
        memory=memory,
        cpu_seconds=row["cpu_seconds"],
        refused=row["fits"],
        warnings=tuple(row["warnings"]),
    )


def memory_bytes_max(limit: float | None) -> int | None:
    """A limit as Rust takes it: by default what is free now, None for no limit."""
    if limit is None:
        limit = free_bytes()
    if math.isnan(limit) or limit < 0:
        raise ValueError(f"memory_limit={limit}: bytes, or math.inf for no limit")
    return None if math.isinf(limit) else int(limit)


def free_bytes(proc: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> float:
    """Memory that a process can still have: the memory that the kernel could free, and the rest of its control group's;
    infinity where neither says.
    """
    found = [math.inf]
    for line in _lines(proc):
        if line.startswith("MemAvailable:"):
            found.append(float(line.split()[1]) * 1024)
    most, used = _lines(group / "memory.max"), _lines(group / "memory.current")
    if most and used and most[0].isdecimal():
        # The file cache of a group is counted as used, though it could be freed.
        files = [float(line.split()[1]) for line in _lines(group / "memory.stat") if line.startswith("inactive_file ")]
        found.append(max(0.0, float(most[0]) - float(used[0]) + sum(files)))
    return min(found)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
