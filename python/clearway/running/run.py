"""Runs a scenario, in simulated time or in real time."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from clearway import _core
from clearway.defaults import LEVELS, Level
from clearway.files import reach, sandbox
from clearway.programs import outside
from clearway.programs.program import Source
from clearway.results import pcap as _pcap
from clearway.results.result import Result, from_core
from clearway.running import sensitivity as sensitivity_of
from clearway.running.machines import tell, the_token
from clearway.running.part import PART
from clearway.scenarios.forecast import memory_bytes_max
from clearway.scenarios.scenario import Scenario, scenario_of


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    now_ps: int
    horizon_ps: int
    flows_done: int
    flows: int
    fraction: float
    """Share of the work that is done, by bytes delivered; by simulated time, where that ends the run sooner."""
    still_ps: int = 0
    """For how long no class has received payload, if that is long: some hundred round trips; otherwise 0."""

    @property
    def still(self) -> str:
        """That no payload comes, as a clause; nothing if it does."""
        return f", no payload for {self.still_ps / 1e9:,.3f} ms of them" if self.still_ps else ""


class Pace:
    """How long a run will still take, by how fast its work has been done so far.

    It begins with the first progress, so that what was worked out before the first packet slows nothing down.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def left(self, seconds: float, fraction: float) -> float | None:
        """Seconds left at a time by any clock, or None while too little is done to tell."""
        first_seconds, first_fraction = self._first = self._first or (seconds, fraction)
        done = fraction - first_fraction
        return (seconds - first_seconds) / done * (1 - fraction) if done > SAID_FROM else None


SAID_FROM = 0.02
"""Share of the work that is done before a line says how long the rest takes."""


class _Listener(Protocol):
    def __call__(self, progress: Progress, /) -> object: ...


def run(
    scenario: Scenario | str | Path,
    *,
    level: Level = "packet",
    threads: int | None = None,
    progress: bool | _Listener | None = None,
    name: str | None = None,
    memory_limit: float | None = None,
    parts: int | None = None,
    pcap: Mapping[str, str | Path] | None = None,
    pcap_packets: int = _pcap.PACKETS,
    sensitivity: bool = False,
    checkpoint: str | None = None,
    checkpoint_file: str | Path = "clearway.checkpoint",
    resume: str | Path | None = None,
) -> Result:
    """Simulates a scenario or a scenario file, packet by packet, or estimates it.

    `level`: "packet", or "flow" for an estimate in which flows are fluids that share links max-min fairly. That takes
    seconds for 100,000 hosts, but does not model queues, losses and differences between transports: see
    `docs/flow-level.md`. Or "links" for an estimate in which each link is simulated alone, packet by packet: see
    `docs/links.md`. `threads`: number of threads, by default and at most the number of cores; it does not affect
    the result. `progress`: a function that is called about ten times a second, or True for a line in the terminal or
    notebook (the default for interactive use), or every few seconds elsewhere. Ctrl-C ends the run at a consistent
    point: the result so far is returned, with `interrupted` set. `memory_limit`: a run that will need more bytes, by an
    estimate that may be wrong by a factor of 2, is refused with a `ScenarioError` that says which setting would fit,
    before any of it is made; by default what is free now, and `math.inf` for none. `parts`: into how many parts the
    threads
    cut the network at most; it does not affect the result, and by default there are as many as threads. `pcap`:
    files by link or node, such as `{"spine0-leaf2": "out.pcapng"}`, which get what these links, or all links of a node,
    carry, `pcap_packets` packets at most, for Wireshark and tcpdump. `sensitivity`: three more runs, with other timing,
    starts up to a packet later, and other paths; `info["sensitivity"]` has each number with how far it moves, and marks
    as a phase effect what moves by more than 5%. `checkpoint`: "2ms", or "every 10ms": the run's whole state is written
    to `checkpoint_file` then, each time in place of the one before. `resume`: such a file, from which the run goes on
    to the result that it would have had (`docs/checkpoints.md`).

    >>> import clearway as cw
    >>> r = cw.run(cw.Scenario.load("examples/tiny.toml"))
    >>> r.ok, len(r.flows), r.slowdown()["mean"].round(2).item()
    (True, 8, 1.0)
    >>> cw.run(cw.Scenario.load("examples/tiny.toml"), level="flow").slowdown()["mean"].item()
    1.0
    """
    scenario = scenario_of(scenario)
    _check(level, threads, parts, sensitivity, checkpoint is not None or resume is not None)
    files = _pcap.check(pcap, level, pcap_packets)
    cores = _cores()
    count = min(threads or cores, cores)
    label, core = name if name is not None else scenario.name, scenario._core
    limit = memory_bytes_max(memory_limit)
    if level == "flow":
        return _run(label, progress, lambda listen: outside.estimate(core, listen, limit))
    if level == "links":
        plain = outside.native(core, "an estimate by single links")
        return _run(label, progress, lambda listen: _core.estimate_links(plain, count, listen, limit))
    contents: list[tuple[bytes, bool]] = []

    def start(listen: Any) -> Any:
        captures = (files, pcap_packets) if files else None
        keeps = None if checkpoint is None else (checkpoint, Path(checkpoint_file))
        goes_on = None if resume is None else Path(resume)
        simulated, captured = outside.simulate(core, count, listen, limit, parts, captures, keeps, goes_on)
        contents.extend(captured)
        return simulated

    result = _run(label, progress, start)
    if isinstance(core, outside.Outside):
        result.info |= core.used
    result.info["warnings"] += _pcap.write(files, contents, pcap_packets)
    if sensitivity and not result.interrupted:
        others = {}
        for said, other in sensitivity_of.variants(scenario, result).items():
            others[said] = run(other, threads=threads, progress=progress, memory_limit=memory_limit, name=said)
        if not any(other.interrupted for other in others.values()):
            result.info["sensitivity"] = sensitivity_of.compared(result, others)
    return result


def _check(level: str, threads: int | None, parts: int | None, sensitivity: bool, checkpoints: bool) -> None:
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: must be one of {', '.join(LEVELS)}")
    for name, number in (("threads", threads), ("parts", parts)):
        if number is not None and number < 1:
            raise ValueError(f"{name}={number}: must be at least 1")
    if sensitivity and level != "packet":
        raise ValueError(f'sensitivity: needs level="packet", not {level!r}, which has no phases')
    if checkpoints and level != "packet":
        raise ValueError(f'checkpoints: they need level="packet", not {level!r}, which takes seconds')


def live(
    scenario: Scenario | str | Path,
    *,
    progress: bool | _Listener | None = None,
    name: str | None = None,
    processes: int = 1,
    machines: int = 1,
    listen: str | None = None,
    token: str | None = None,
    tell: Callable[[str], object] = tell,
    sockets: str | Path | None = None,
    folder: str | Path = ".",
) -> Result:
    """Runs a scenario in real time, with real content, on the simulator's own hosts and switches.

    How fast the network can run depends on the machine: see `docs/live-measured.md`. With several `processes` each has
    `live.workers` threads and a part of the nodes, and so has each of several `machines`: the run then waits at the
    address `listen` ("0.0.0.0:7770") until the others have called `cw.join` with the same `token` (by default that of
    the environment variable CLEARWAY_TOKEN). `tell` is called with messages about what happens until then.

    With `sockets`, other programs send messages over the network while the run lasts: they join it by the Unix socket
    at that path, with `cw.Maze.connect`. On several machines they join at the first.

    `folder`: where the files of `live.capture` are that the scenario's own text names. It can name nothing outside, and
    no devices in `live.attach`: a scenario may come from another person. Keys set over the text are taken as they are,
    as in
    `scenario.with_({"live.capture.host3": "/tmp/out.pcapng"})`. No file is overwritten that is not a capture.
    """
    if processes < 1:
        raise ValueError(f"processes: {processes} is not at least 1")
    if machines < 1:
        raise ValueError(f"machines: {machines} is not at least 1")
    if (machines > 1) != (listen is not None):
        raise ValueError('machines and listen go together: machines=2, listen="0.0.0.0:7770"')
    if machines > 1 and processes > 1:
        raise ValueError("on several machines each is one process: set live.workers for more threads")
    scenario = scenario_of(scenario)
    label = name if name is not None else f"{scenario.name}, live"
    core = live_core(scenario, folder)
    if listen is not None:
        at, secret = listen, the_token(token)
        return _run(
            label, progress, lambda listen: _core.live_machines(core, machines, at, secret, tell, listen, sockets)
        )
    if sockets is not None:
        return _run(label, progress, lambda listen: _core.live_sockets(core, sockets, listen, processes, PART))
    return _run(label, progress, lambda listen: _core.live(core, listen, processes, PART))


def live_core(scenario: Scenario, folder: str | Path) -> _core.Scenario:
    """The scenario of the live driver, with the captures that the scenario's own text names in a folder."""
    core = outside.native(scenario._core, "live runs")
    text, name, base, sets, _ = core.parts()
    source = Source(text, name, base, sets)
    captures = reach.check_live(text, sets, scenario.to_dict().get("live", {}), source.refuse)
    if not captures:
        return core
    Path(folder).mkdir(parents=True, exist_ok=True)
    placed = [(f"live.capture.{link}", json.dumps(str(Path(folder) / file))) for link, file in captures.items()]
    return outside.native(scenario.with_text(placed)._core, "live runs")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(
    label: str,
    progress: bool | _Listener | None,
    start: Callable[[Callable[[int, int, int, int, float], object] | None], Any],
) -> Result:
    began, cpu = time.perf_counter(), time.process_time()
    with _Line(label, progress) as line:
        ran = start(line.told())
    result = result_of(label, ran, began, cpu)
    if result.interrupted and progress is True:
        print(f"{label}: interrupted; what there is so far is kept", file=sys.stderr, flush=True)
    return result


def result_of(label: str, ran: Any, began: float, cpu: float) -> Result:
    """The result of what the engine has run, with what it took since these times of the machine and of its CPU."""
    tables, info, toml = from_core(label, ran)
    info |= {
        "commit": _core.COMMIT,
        "sandbox": sandbox.state(),
        "source": _core.SOURCE,
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - began,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    return Result(label, tables, info, toml)


TELL_SECONDS = 5.0
"""How often a run is told of where lines are kept, such as in a log."""


class _Line:
    """Progress display: a bar in a terminal, a changing line in a notebook, otherwise a line every few seconds."""

    def __init__(self, label: str, progress: bool | _Listener | None) -> None:
        self._rich: Any = None
        self._label, self._began = label, time.monotonic()
        self._told, self._wide, self._pace = self._began, 0, Pace()
        self._notebook = "ipykernel" in sys.modules
        if callable(progress):
            self.listener: _Listener | None = progress
            return
        looks = sys.stderr is not None and (sys.stderr.isatty() or self._notebook)
        self.listener = self._say if progress or (progress is None and looks) else None
        if self.listener is not None and looks and not self._notebook:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as RichProgress

            self._rich = RichProgress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[now]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
            )
            self._task = self._rich.add_task(label, total=1, now="", left="")
            self.listener = self._update

    def told(self) -> Callable[[int, int, int, int, float], object] | None:
        """The function that the engine calls, if a listener is to be told."""
        listener = self.listener
        return None if listener is None else lambda *at: listener(Progress(*at))

    def _update(self, at: Progress) -> None:
        left = self._pace.left(time.monotonic(), at.fraction)
        # Links that are simulated alone have no time in common.
        simulated = f"  {at.now_ps / 1e9:,.3f} ms simulated{at.still}" if at.now_ps else ""
        now = f"{at.flows_done:,}/{at.flows:,} flows{simulated}"
        said = "" if left is None else f"about {left:,.0f} s left"
        self._rich.update(self._task, completed=at.fraction, now=now, left=said)

    def _say(self, at: Progress) -> None:
        now = time.monotonic()
        seconds = self._pace.left(now, at.fraction)
        if now - self._told < (0.5 if self._notebook else TELL_SECONDS):
            return
        self._told = now
        spent = now - self._began
        left = f", about {seconds:,.0f} s left" if seconds is not None else ""
        simulated = f", {at.now_ps / 1e9:,.3f} ms simulated{at.still}" if at.now_ps else ""
        words = f"{self._label}: {at.flows_done:,} of {at.flows:,} flows{simulated} in {spent:,.0f} s{left}"
        # A notebook shows text after a carriage return in the same line; a shorter line must cover the longer one.
        line = f"\r{words:<{self._wide}}" if self._notebook else f"{words}\n"
        self._wide = max(self._wide, len(words)) if self._notebook else 0
        print(line, end="", file=sys.stderr, flush=True)

    def __enter__(self) -> _Line:
        if self._rich is not None:
            self._rich.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._rich is not None:
            self._rich.stop()
        elif self._wide:
            print(f"\r{'':<{self._wide}}\r", end="", file=sys.stderr, flush=True)
