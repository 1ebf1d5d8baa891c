"""Logs of nccl-tests, of rccl-tests, and of OSU's benchmarks: what took how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 16 << 20
"""A longer file is no log of these tests: a table has some 30 rows."""

# Collectives as the tests call them, and as a step of a job is called.
KINDS = {
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "sendrecv": "send_recv",
    "send_recv": "send_recv",
}
OTHERS = ("alltoall", "all_to_all", "broadcast", "bcast", "gather", "scatter", "reduce", "hypercube")

_FAILED = re.compile(
    r"test failure|nccl failure|cuda failure|hip failure|rccl failure|mpi_abort|unhandled (cuda|system|hip) error"
    r"|segmentation fault|killed by signal|\bFAILED\b|nccl warn",
    re.IGNORECASE,
)
_OSU = re.compile(r"#\s*OSU\s+(?P<what>.*?)\s+(Latency|Bandwidth)\s+Test", re.IGNORECASE)


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    kind: str
    """The collective, as a step of a job is called: "all_reduce"."""
    ranks: int
    bytes: int
    """Of the buffer, as NCCL's tests count it."""
    us: float
    """Out of place."""


@dataclass(frozen=True)
class Log:
    """A log's measurements."""

    tool: str
    cells: tuple[Cell, ...]
    hosts: int | None
    """How many hosts it says there were."""


def read(path: Path, *, kind: str | None = None, ranks: int | None = None, partial: bool = False) -> Log:
    """The measurements of a log; `ValueError` says where it is not one, or is not whole.

    `kind` and `ranks` are for logs that do not say them. `partial` takes what a run that was cut off has left.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(
                f"{path}: is {path.stat().st_size:,} bytes long; a log of these tests has less than 16 MiB"
            )
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    return parse(text, str(path), kind=kind, ranks=ranks, partial=partial)


def parse(text: str, name: str, *, kind: str | None = None, ranks: int | None = None, partial: bool = False) -> Log:
    """The measurements of a log whose text is given; errors call it `name`."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if _FAILED.search(line):
            said = line.strip()[:100]
            raise ValueError(
                f"{name}, line {number}: the run failed ({said!r}); calibrate with the log of a run that ended"
            )
    if kind is not None and kind not in KINDS.values():
        raise ValueError(f"the collective {kind!r} is not known; known: {', '.join(sorted(set(KINDS.values())))}")
    if (osu := _OSU.search(text)) is not None:
        return _osu(lines, name, osu["what"], ranks)
    return _nccl(lines, name, kind, ranks, partial)


def _number(word: str, name: str, line: int, what: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{name}, line {line}: {word[:40]!r} is no {what}") from None
    if not 0 < value < 1e15:
        raise ValueError(f"{name}, line {line}: {word[:40]} is no {what}; it is above 0")
    return value


def _nccl(lines: list[str], name: str, kind: str | None, ranks: int | None, partial: bool) -> Log:
    columns = _columns(lines, name)
    rows: list[tuple[int, int, float, float, str]] = []
    ended, hosts, said = False, set(), 0
    for number, line in enumerate(lines, 1):
        words = line.split()
        if (device := re.match(r"#\s*Rank\s+(\d+).*\bon\s+(\S+)\s+device", line)) is not None:
            hosts.add(device[2])
            said = max(said, int(device[1]) + 1)
        ended |= line.startswith("# Avg bus bandwidth")
        if not words or not words[0].isdigit():
            continue
        if len(words) < len(columns):
            if partial and number >= len(lines) - 1:
                break
            raise ValueError(
                f"{name}, line {number}: has {len(words)} columns of {len(columns)}, so the log was cut off in the "
                "middle of a row; delete the row, or take what is there with --partial"
            )
        by_name = dict(zip(reversed(columns), reversed(words)))  # the first of two columns of a name
        if int(words[0]) == 0:
            continue
        wrong = by_name.get("#wrong", by_name.get("error", "0"))
        if wrong not in ("0", "N/A") and not wrong.startswith("0e"):
            raise ValueError(
                f"{name}, line {number}: {wrong} wrong values; calibrate with a run whose results were right"
            )
        time = _number(by_name["time"], name, number, "time in us")
        bus = float(by_name["busbw"]) / max(float(by_name["algbw"]), 1e-9) if _numeric(by_name) else 0.0
        rows.append((int(words[0]), number, time, bus, by_name.get("redop", "")))
    if not rows:
        raise ValueError(f"{name}: has a header of nccl-tests and no row with a size; the run ended before its first")
    if not ended and not partial:
        raise ValueError(
            f'{name}: ends after {rows[-1][0]:,} bytes without the line "# Avg bus bandwidth", so the run was cut off; '
            "take what is there with --partial"
        )
    n = ranks or said
    if n < 2:
        raise ValueError(f"{name}: does not say how many ranks there were; say it with --ranks")
    what = kind or _kind(lines, name, rows, n)
    tool = "rccl-tests" if any("rccl" in line.lower() for line in lines[:40]) else "nccl-tests"
    return Log(tool, tuple(Cell(what, n, size, time) for size, _, time, _, _ in rows), len(hosts) or None)


def _numeric(row: Mapping[str, str]) -> bool:
    try:
        return float(row["algbw"]) > 0.5 and float(row["busbw"]) > 0
    except (KeyError, ValueError):
        return False


def _columns(lines: list[str], name: str) -> list[str]:
    """The names of the columns, as the header has them."""
    for line in lines:
        words = line.lstrip("#").split()
        if words[:2] == ["size", "count"]:
            missing = [need for need in ("time", "algbw", "busbw") if need not in words]
            if missing:
                raise ValueError(
                    f"{name}: the header has no column {missing[0]!r}, so it is of a version that is not known here; "
                    f"its columns: {' '.join(words[:20])}"
                )
            return words
    raise ValueError(
        f"{name}: is no log of nccl-tests or rccl-tests (no header with size, count, time and busbw) and none of OSU's "
        'benchmarks (no line "# OSU ... Latency Test")'
    )


def _kind(lines: list[str], name: str, rows: list[tuple[int, int, float, float, str]], n: int) -> str:
    """Which collective it was: newer versions say so, a file's name may, and the bus bandwidth tells."""
    head = " ".join(lines[:60]).lower() + " " + Path(name).name.lower()
    for word in OTHERS[:4]:
        if re.search(rf"{word}(_perf)?\b", head):
            raise ValueError(
                f"{name}: is about {word}, for which there is no model; known: {', '.join(KINDS.values())}"
            )
    for word, known in KINDS.items():
        if re.search(rf"(?<![a-z]){word}(_perf)?(?![a-z])", head):
            return known
    factors = sorted(row[3] for row in rows if row[3] > 0)
    factor = factors[len(factors) // 2] if factors else 0.0
    near = {"all_reduce": 2 * (n - 1) / n, "all_gather": (n - 1) / n, "send_recv": 1.0}
    if n == 2 or not factor:
        raise ValueError(f"{name}: does not say which collective it is about; say it with --collective")
    best = min(near, key=lambda known: abs(near[known] - factor))
    off = abs(near[best] / factor - 1)
    if best == "all_gather" and rows[-1][4] not in ("none", ""):
        best = "reduce_scatter"
    if off > 0.02:
        raise ValueError(f"{name}: does not say which collective it is about; say it with --collective")
    return best


def _osu(lines: list[str], name: str, what: str, ranks: int | None) -> Log:
    word = re.sub(r"[\s-]+", "_", re.sub(r"^(MPI|NCCL|RCCL|XCCL)\S*\s+", "", what, flags=re.IGNORECASE)).lower()
    kind = next((known for of, known in KINDS.items() if word == of), None)
    if kind is None:
        raise ValueError(
            f"{name}: is OSU's {what!r}, for which there is no model; known: Allreduce, Allgather, Reduce_scatter"
        )
    if ranks is None or ranks < 2:
        raise ValueError(f"{name}: OSU's logs do not say how many ranks there were; say it with --ranks")
    cells = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or not words[0].isdigit():
            continue
        if len(words) < 2:
            raise ValueError(
                f"{name}, line {number}: has a size and no latency, so the log was cut off; delete the row"
            )
        size = int(words[0]) * (ranks if kind == "all_gather" else 1)  # OSU counts what a rank brings
        if size:
            cells.append(Cell(kind, ranks, size, _number(words[1], name, number, "latency in us")))
    if not cells:
        raise ValueError(f"{name}: has a header of OSU's benchmarks and no row with a size")
    return Log("OSU", tuple(cells), None)
