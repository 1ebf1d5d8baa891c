"""A library's constants from measurements, each with its interval, and what none of them explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clearway import _core
from clearway.calibration import logs
from clearway.calibration.logs import Cell
from clearway.scenarios.listings import network
from clearway.scenarios.quantity import amount
from clearway.scenarios.scenario import Scenario

__all__ = ["Calibration", "Constant", "Machine", "calibrate", "calibrate_cells"]


@dataclass(frozen=True)
class Machine:
    """The links that the library finds, and what is known of it."""

    ranks_per_host: int
    nic_bps: int
    """Of a host, all its links together."""
    local_bps: int = 3_600_000_000_000
    """Of a rank into its host."""
    multicast: bool = False
    """Whether the switch between ranks adds up and multicasts (NVLS)."""
    channels: int = 16
    ring: bool = False
    """Whether the library has rings alone."""


@dataclass(frozen=True)
class _Prior:
    """A constant before any measurement: NCCL's own, or what is common; `spread` is a factor's logarithm."""

    key: str
    value: float
    spread: float
    shown: tuple[float, str]
    """The factor and the unit in which it is shown."""
    likely: tuple[float, float]
    """Beyond these it stands for something else."""
    most: float = math.inf


PRIORS = (
    _Prior("launch", 15e-6, 1.5, (1e6, "us"), (2e-6, 100e-6)),
    _Prior("step_latency", 1.0, 1.0, (1.0, ""), (0.3, 3.0)),
    _Prior("nic_efficiency", 0.9, 0.7, (1.0, ""), (0.6, 0.999), 1.0),
    _Prior("local_efficiency", 0.7, 0.5, (1.0, ""), (0.4, 0.999), 1.0),
    _Prior("copy", 160e9, 1.0, (1e-9, "Gbps"), (24e9, 640e9)),
    _Prior("simple", 10e-6, 1.5, (1e6, "us"), (0.5e-6, 100e-6)),
    _Prior("send_recv", 5e-6, 1.0, (1e6, "us"), (0.5e-6, 100e-6)),
)
"""At most six are fitted: `send_recv` where there is no link within hosts alone."""

SHOWN = {prior.key: prior.shown for prior in PRIORS}
"""By constant, the factor and the unit in which it is shown."""

NOISE = 0.03
"""Spread of a measurement, as a share: runs of the same test differ by this much."""


@dataclass(frozen=True)
class Constant:
    """A fitted constant."""

    key: str
    value: float
    """In seconds, bits a second, or as a share."""
    low: float
    high: float
    """The interval in which it lies with 95%."""
    determined: bool
    """Whether the measurements say more than was known before."""
    physical: bool
    """Whether it is what its name says, and not what stands in for something else."""


@dataclass
class Calibration:
    """Constants of a library on a machine."""

    machine: Machine
    constants: list[Constant]
    cells: pd.DataFrame
    """By measurement: what was measured, ours, the error, whether it was held out, algorithm and protocol."""
    held_out: pd.Series[float]
    """Errors on sizes that were held out, by constants from the other half."""
    line: pd.Series[float]
    """Errors on the same sizes of a line t = a + b x bytes, fitted to each table."""
    unexplained: list[str] = field(default_factory=list)
    """Measurements that no constant explains, in sentences."""

    def predict(self, kind: str, ranks: int, sizes: Sequence[int]) -> list[float]:
        """Time of collectives in a network of their own, in microseconds."""
        values = {constant.key: constant.value for constant in self.constants}
        return [1e6 * time for time, _, _ in _times(self.machine, values, kind, ranks, sizes)]

    @property
    def library(self) -> str:
        """The table for a scenario's job, as TOML."""
        of = self.machine
        lines = [f'like = "{"ring" if of.ring else "nccl"}"', f"channels = {of.channels}"]
        lines += [_line(constant) for constant in self.constants]
        return "[library]\n" + "\n".join(lines) + "\n"


def _line(constant: Constant) -> str:
    if constant.key in ("launch", "simple", "send_recv"):
        text = f'"{round(constant.value * 1e9)}ns"'
    elif constant.key == "copy":
        text = f'"{round(constant.value / 1e6)}Mbps"'
    else:
        text = f"{constant.value:.4g}"
    unsure = "" if constant.determined else "  # not determined by the logs"
    return f"{constant.key} = {text}{unsure}"


def _times(
    of: Machine, values: dict[str, float], kind: str, ranks: int, sizes: Sequence[int]
) -> list[tuple[float, str, str]]:
    at = {prior.key: prior.value for prior in PRIORS} | {"send_recv": 0.0} | values
    starts = (at["launch"], at["simple"], at["send_recv"], at["step_latency"])
    numbers = (*starts, at["nic_efficiency"], at["local_efficiency"], at["copy"], of.channels)
    local = min(of.ranks_per_host, ranks)
    shape = (ranks, -(-ranks // of.ranks_per_host), local)
    links = (of.nic_bps, of.local_bps, of.multicast)
    return _core.collective_times(kind, shape, list(sizes), numbers, links, of.ring)


class _Fit:
    """Least squares of logarithms, with what is known before as further rows. Far outliers count by their distance and
    not its square, because a single slow run should not move a constant."""

    def __init__(self, of: Machine, cells: Sequence[Cell]) -> None:
        self.of, self.cells = of, cells
        several = any(cell.ranks > of.ranks_per_host for cell in cells)
        wanted = {"launch", "step_latency", "copy", "simple"}
        wanted |= {"nic_efficiency"} if several else set()
        wanted |= {"local_efficiency"} if of.ranks_per_host > 1 else set()
        if any(cell.kind == "send_recv" for cell in cells) and len(wanted) < 6:
            wanted.add("send_recv")
        self.priors = [prior for prior in PRIORS if prior.key in wanted]
        self.start = np.log([prior.value for prior in self.priors])
        self.spread = np.array([prior.spread for prior in self.priors])
        self.tables: dict[tuple[str, int], list[int]] = {}
        for at, cell in enumerate(cells):
            self.tables.setdefault((cell.kind, cell.ranks), []).append(at)
        self.measured = np.log([cell.us for cell in cells])

    def values(self, x: np.ndarray) -> dict[str, float]:
        return {p.key: min(float(np.exp(value)), p.most) for p, value in zip(self.priors, x)}

    def errors(self, x: np.ndarray) -> np.ndarray:
        values, ours = self.values(x), np.empty(len(self.cells))
        for (kind, ranks), places in self.tables.items():
            sizes = [self.cells[at].bytes for at in places]
            ours[places] = [1e6 * time for time, _, _ in _times(self.of, values, kind, ranks, sizes)]
        return np.log(np.maximum(ours, 1e-9)) - self.measured

    def rows(self, x: np.ndarray) -> np.ndarray:
        off = self.errors(x) / NOISE
        far = np.sign(off) * np.sqrt(4 * (np.sqrt(1 + off * off / 2) - 1))
        return np.concatenate([far, (x - self.start) / self.spread])

    def slopes(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        by = 1e-3
        return np.array([(self.rows(x + by * unit) - rows) / by for unit in np.eye(len(x))]).T

    def solve(self) -> np.ndarray:
        """The constants' logarithms."""
        random, best = np.random.default_rng(0), None
        free = np.ones(len(self.start), dtype=bool)
        for attempt in range(12):
            x = self.start + (random.normal(size=len(self.start)) * self.spread * 0.8 if attempt else 0)
            x, cost = self._descend(x, free)
            if best is None or cost < best[1]:
                best = (x, cost)
        assert best is not None
        return best[0]

    def interval(self, x: np.ndarray, at: int) -> tuple[float, float]:
        """Where one constant's logarithm lies with 95%: beyond, the others cannot make up for it (profile
        likelihood). Errors larger than the spread of measurements widen it."""
        rows = self.rows(x)
        cost = float(rows @ rows)
        allowed = cost + 4 * max(1.0, float(np.mean((self.errors(x) / NOISE) ** 2)))
        free = np.arange(len(x)) != at
        ends = []
        for way in (-1, 1):
            inside, outside = 0.0, 3 * float(self.spread[at])
            for _ in range(7):
                middle = (inside + outside) / 2
                moved = x.copy()
                moved[at] += way * middle
                _, other = self._descend(moved, free, steps=8)
                inside, outside = (middle, outside) if other <= allowed else (inside, middle)
            ends.append(float(x[at]) + way * inside)
        return ends[0], ends[1]

    def _descend(self, x: np.ndarray, free: np.ndarray, steps: int = 50) -> tuple[np.ndarray, float]:
        """Levenberg and Marquardt's steps of the constants that are free."""
        rows = self.rows(x)
        cost, damping = float(rows @ rows), 0.01
        for _ in range(steps):
            slopes = np.where(free, self.slopes(x, rows), 0.0)
            square = slopes.T @ slopes
            step = np.linalg.solve(square + damping * np.diag(np.diag(square) + 1e-6), slopes.T @ rows)
            tried = x - np.clip(step, -1, 1)
            new = self.rows(tried)
            lower = float(new @ new)
            if lower < cost:
                done, x, rows, cost, damping = cost - lower < 1e-5 * cost, tried, new, lower, damping / 3
                if done:
                    break
            elif (damping := damping * 4) > 1e7:
                break
        return x, cost


def _halves(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Every second size of each table, from the smallest on, and the others."""
    halves: tuple[list[Cell], list[Cell]] = ([], [])
    seen: dict[tuple[str, int], int] = {}
    for cell in sorted(cells, key=lambda cell: (cell.kind, cell.ranks, cell.bytes)):
        place = seen.get((cell.kind, cell.ranks), 0)
        seen[cell.kind, cell.ranks] = place + 1
        halves[place % 2].append(cell)
    return halves


def _line_errors(known: Sequence[Cell], others: Sequence[Cell]) -> list[float]:
    """Errors of a line for each table, with weights so that each size counts by its relative error."""
    found = []
    for cell in others:
        table = [of for of in known if (of.kind, of.ranks) == (cell.kind, cell.ranks)]
        x, y = np.array([float(of.bytes) for of in table]), np.array([of.us for of in table])
        if len(table) < 2:
            continue
        found.append(float(np.polyval(np.polyfit(x, y, 1, w=1 / y), float(cell.bytes)) / cell.us - 1))
    return found


def calibrate_cells(of: Machine, cells: Sequence[Cell], *, half: bool = False) -> Calibration:
    """Fits the constants of a machine. `half` leaves them at those from every second size."""
    if len(cells) < 3:
        raise ValueError(
            f"{len(cells)} measurements do not determine a library's constants; give a log with 3 sizes or more"
        )
    known, others = _halves(cells)
    fit = _Fit(of, known)
    x = fit.solve()
    held = [_error(of, fit.values(x), cell) for cell in others]
    if not half:
        fit = _Fit(of, cells)
        x = fit.solve()
    values = fit.values(x)
    constants = []
    for at, prior in enumerate(fit.priors):
        low, high = (min(math.exp(end), prior.most) for end in fit.interval(x, at))
        middle = values[prior.key]
        determined = math.log(high / low) < 2 * prior.spread
        physical = prior.likely[0] <= middle <= prior.likely[1]
        constants.append(Constant(prior.key, middle, low, high, determined, physical))
    rows: list[dict[str, Any]] = []
    for cell in sorted(cells, key=lambda cell: (cell.kind, cell.ranks, cell.bytes)):
        time, algorithm, protocol = _times(of, values, cell.kind, cell.ranks, [cell.bytes])[0]
        rows.append(
            {
                "collective": cell.kind,
                "ranks": cell.ranks,
                "bytes": cell.bytes,
                "measured_us": cell.us,
                "ours_us": 1e6 * time,
                "error": 1e6 * time / cell.us - 1,
                "held_out": cell in others,
                "algorithm": algorithm,
                "protocol": protocol,
            }
        )
    table = pd.DataFrame(rows)
    line = pd.Series(_line_errors(known, others), dtype=float)
    return Calibration(of, constants, table, pd.Series(held, dtype=float), line, _unexplained(table, constants))


def _error(of: Machine, values: dict[str, float], cell: Cell) -> float:
    return 1e6 * _times(of, values, cell.kind, cell.ranks, [cell.bytes])[0][0] / cell.us - 1


def _unexplained(table: pd.DataFrame, constants: Sequence[Constant]) -> list[str]:
    """Measurements far from ours, and constants that are none, in sentences."""
    said = []
    row: Any
    for row in (
        table[table["error"].abs() > 3 * NOISE].sort_values("error", key=abs, ascending=False).head(3).itertuples()
    ):
        way = "longer" if row.error < 0 else "shorter"
        said.append(
            f"{row.collective} of {row.bytes:,} B took {row.measured_us:,.1f} us, {abs(row.error):.0%} {way} than "
            "these constants say"
        )
    for (kind, _), part in table.groupby(["collective", "ranks"]):
        speed = part["bytes"] / part["measured_us"]
        falls = (speed.shift() / speed - 1).fillna(0.0)
        if falls.max() > 2 * NOISE:
            at = int(part["bytes"].to_numpy()[int(falls.to_numpy().argmax())])
            said.append(f"{kind} moves fewer bytes a second at {at:,} B than at the size before: no constant does that")
    for constant in constants:
        if constant.determined and not constant.physical:
            said.append(f"{constant.key} is outside of what its name can mean, so it stands in for something else")
    return said or ["nothing beyond the spread of measurements"]


def machine_of(fabric: Path) -> Machine:
    """The links of a scenario's hosts, and what its first job says about ranks."""
    scenario = Scenario.load(fabric)
    links = network(scenario)
    first = next((link["from_node"] for link in links.links() if link["tier"] == "from_host"), None)
    nic = sum(link["rate_bps"] for link in links.links() if link["tier"] == "from_host" and link["from_node"] == first)
    job: dict[str, Any] = next(iter(scenario.to_dict().get("job", [])), {})
    if not job:
        raise ValueError(
            f"{fabric}: has no [[job]]; write one with ranks_per_host and local, so that it is known what a host has"
        )
    local, library = job.get("local", {}), job.get("library", {})
    channels = int(library.get("channels", 1))
    return Machine(
        ranks_per_host=int(job.get("ranks_per_host", 1)),
        nic_bps=nic,
        local_bps=round(amount(local.get("rate", "3.6Tbps"))),
        multicast=bool(local.get("multicast", False)),
        channels=16 if channels == 1 else channels,
        ring=library.get("like") == "ring",
    )


def calibrate(
    logs_: Sequence[str | Path],
    fabric: str | Path,
    *,
    collective: str | None = None,
    ranks: int | None = None,
    partial: bool = False,
) -> Calibration:
    """Constants of a collective library from logs of nccl-tests, rccl-tests or OSU's benchmarks.

    `fabric` is a scenario with the hosts' links and a job, whose `ranks_per_host` and `local` say what a host has.
    `collective` and `ranks` are for logs that do not say them, `partial` takes logs that were cut off. Every second
    size is held out to know the error; the constants are then fitted to all. `Calibration.library` is the table for a
    job.
    """
    if not logs_:
        raise ValueError("give a log at least")
    of = machine_of(Path(fabric))
    cells: list[Cell] = []
    for path in map(Path, logs_):
        log = logs.read(path, kind=collective, ranks=ranks, partial=partial)
        most = log.cells[0].ranks
        if log.hosts is not None and most > log.hosts * of.ranks_per_host:
            raise ValueError(
                f"{path}: {most} ranks on {log.hosts} hosts, and the job of {fabric} has ranks_per_host = "
                f"{of.ranks_per_host}; write {-(-most // log.hosts)}"
            )
        cells += log.cells
    return calibrate_cells(of, cells)
