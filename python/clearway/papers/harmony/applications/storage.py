"""CPU-efficient storage stacks (section 6): one client core, shared by applications that read 128 KB from remote
devices.

Each application has one read outstanding: it submits a command, the command crosses the network, the device reads, the
data cross the network, the application touches them and submits the next. How does the core learn that the data are
there?

- *Polling*: the application looks until they are. It has the core meanwhile, until its time slice ends.
- *Polling that yields*: it looks and lets the next one have the core, a context switch each.
- *Hybrid polling*: it sleeps half the mean time that reads have taken (Linux, io_poll_delay = 0), then looks.
- *Interrupts*: it sleeps; the NIC interrupts, at once or some time after the first completion (coalescing).
- *Timer*: it sleeps until the bound. Who dispatches the applications looks at the clock, at which they were to run
  again, when one of them goes to sleep; a timer interrupt is needed only where the core would be idle. Over best effort
  there is no bound: the timer is there set to a quantile of what was seen, to see what the bound is worth.

Threads that can run wait in order and no thread is preempted by one that wakes, which spares interrupts a context
switch.
A read's two messages take what the next two of a run took. Not modelled: threads that never sleep beside these, several
cores, the storage server's CPU (it has the same choice), devices that are late.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

import clearway as cw
from clearway.papers.figures import Shown, cell
from clearway.reports.looks import COLOURS

from . import network
from .network import Bound, draw, log_scale, run, slots

READ, COMMAND = 128_000, 72
NIC = -1
# Reads of a simulation.
COUNT = 6_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Client:
    """The times of the client's core and of the device, in microseconds."""

    # A ring and a doorbell in user space, and a PDU to make or to check: assumed, well below a system call's path
    # through the kernel.
    submit: float = 1.0
    complete: float = 1.0
    # The application reads once what came, at 10 GB/s: assumed, about what one core copies from memory.
    touch: float = READ / 10e3
    # Between two processes at a pipe: 2.4 us (Linux 6.6, a Core i7 of the 11th generation, pinned). The effect of a
    # context switch on caches comes on top, and is not counted: Li, Ding and Shen, "Quantifying the cost of context
    # switch" (ExpCS 2007).
    switch: float = 2.4
    # Larsen et al., "Architectural breakdown of end-to-end latency in a TCP/IP network" (IJPP 2009): more than 3 us of
    # interrupt processing a frame; what Yang, Minturn and Hady, "When poll is better than interrupt" (FAST 2012), spare
    # by polling.
    interrupt: float = 3.0
    # A timer's interrupt is an interrupt.
    timer: float = 3.0
    # C1's exit latency on a Skylake server (Linux, drivers/idle/intel_idle.c).
    idle_exit: float = 2.0
    # One look at a completion queue in memory that the device has just written: a cache miss.
    look: float = 0.1
    # Linux's base slice with 8 or more CPUs: 0.7 ms times 4 (kernel/sched/fair.c).
    time_slice: float = 2_800.0
    # mlx5's default moderation where it counts from the completion.
    coalesce: float = 8.0
    # Intel Optane P5800X: 6 us, and 7.2 GB/s for what is read (its product brief). Spread evenly over the 5 us that
    # follow: assumed.
    device: float = 6.0 + READ / 7.2e3
    device_spread: float = 5.0


class Design(NamedTuple):
    """How a core learns of completions."""

    how: str  # poll, yield, hybrid, interrupt, coalesce, timer
    # Of hybrid and timer: how long a thread sleeps from submission on.
    sleep: float = 0.0


class Load(NamedTuple):
    """The results of reads on one core."""

    latency: Floats
    busy: float
    span: float
    late: int

    @property
    def kiops(self) -> float:
        """Thousands of reads a second."""
        return 1e3 * len(self.latency) / self.span

    @property
    def cpu(self) -> float:
        """Per read."""
        return self.busy / len(self.latency)


class Reads:
    """The delays of commands and reads of a run, in the order in which they came to each host."""

    def __init__(self, result: cw.Result, if_rejected: float) -> None:
        flows = result.flows.to_pandas().sort_values(["dst", "start_ps"])
        self.reads, self.commands = (
            self._delays(flows[flows["class"] == of], if_rejected) for of in ("reads", "commands")
        )
        wanted = flows["class"].isin(["reads", "commands"])
        self.rejected = float(flows[wanted]["fct_ps"].isna().mean())

    @staticmethod
    def _delays(flows: pd.DataFrame, if_rejected: float) -> Floats:
        us = flows["fct_ps"].astype(float) / 1e6
        # A rejected read is asked for again once that is known.
        return np.asarray(us.fillna(us.bfill().ffill() + if_rejected), dtype=np.float64)

    def of(self, client: Client, random: np.random.Generator) -> Iterator[float]:
        """From a command's departure until all data are at the client."""
        first = int(random.integers(len(self.reads)))
        device = client.device + client.device_spread * random.random(len(self.reads))
        network = zip(cycle(self.commands), islice(cycle(self.reads), first, None), cycle(device))
        return (sum(parts) for parts in network)

    def mean(self, client: Client) -> float:
        """The mean time of a read, in us."""
        return float(self.reads.mean() + self.commands.mean() + client.device + client.device_spread / 2)


def simulate(client: Client, design: Design, reads: Reads, apps: int, count: int = COUNT, seed: int = 1) -> Load:
    """This many reads on one core, by this many applications."""
    random = np.random.default_rng([seed, apps])
    delays = [reads.of(client, random) for _ in range(apps)]
    # All begin at once, which is no steady state.
    begin = 4 * apps
    load = (_polled if design.how in ("poll", "yield") else _slept)(client, design, delays, begin + count)
    part = count / (begin + count)
    late = round(load.late * part)
    return Load(load.latency[begin:], load.busy * part, load.span * part, late)


def _polled(client: Client, design: Design, delays: list[Iterator[float]], count: int) -> Load:
    """The core is never idle: an application that has it looks until it is out of time, or once."""
    latency: list[float] = []
    now, late = 0.0, 0
    submitted: list[float | None] = [None] * len(delays)
    there = [0.0] * len(delays)
    turn, shared = 0, len(delays) > 1
    while len(latency) < count:
        now += client.switch if shared else 0.0
        ends = now + client.time_slice if shared else np.inf
        while len(latency) < count:
            began = submitted[turn]
            if began is not None:
                if there[turn] > now and design.how == "yield" and shared:
                    now += client.look
                    break
                if there[turn] > ends:
                    now = ends
                    break
                now = max(now, there[turn]) + client.look + client.complete
                latency.append(now - began)
                now += client.touch
            submitted[turn] = now
            now += client.submit
            there[turn] = now + next(delays[turn])
            if now >= ends or (design.how == "yield" and shared):
                break
        turn = (turn + 1) % len(delays)
    return Load(np.array(latency), now, now, late)


def _slept(client: Client, design: Design, delays: list[Iterator[float]], count: int) -> Load:
    """An application sleeps until something wakes it."""
    how, timed = design.how, design.how in ("hybrid", "timer")
    now = busy = 0.0
    latency: list[float] = []
    late, last = 0, -1
    ready = deque(range(len(delays)))
    submitted: list[float | None] = [None] * len(delays)
    there = [0.0] * len(delays)
    # Who is to be woken when; the NIC wakes all whose completions it holds.
    ahead: list[tuple[float, int]] = []
    held: list[int] = []
    while len(latency) < count:
        while ahead and (ahead[0][0] <= now or not ready):
            at, who = heapq.heappop(ahead)
            if how == "coalesce" and who != NIC:
                if not held:
                    heapq.heappush(ahead, (at + client.coalesce, NIC))
                held.append(who)
                now = now if ready else max(now, at)
                continue
            idle = at > now
            cost = {"hybrid": client.timer, "timer": client.timer if idle else 0.0}.get(how, client.interrupt)
            now = (at + client.idle_exit if idle else now) + cost
            busy += cost
            ready.extend(held if who == NIC else [who])
            held = [] if who == NIC else held
        who, began = ready.popleft(), now
        if who != last:
            now, last = now + client.switch, who
        since = submitted[who]
        if since is not None:
            if there[who] > now and how == "timer":
                late += 1
                now += client.look
                heapq.heappush(ahead, (now + design.sleep, who))
                busy += now - began
                continue
            now = max(now, there[who]) + client.look + client.complete
            latency.append(now - since)
            now += client.touch
        submitted[who] = now
        now += client.submit
        there[who] = now + next(delays[who])
        heapq.heappush(ahead, (now - client.submit + design.sleep if timed else there[who], who))
        busy += now - began
    return Load(np.array(latency), busy, now, late)


# K and delta_admission: the bound on a read for the load that it takes (as Figure 6a's region).
OPERATING = [(8, 63.0), (8, 126.0), (4, 63.0), (4, 126.0), (2, 63.0), (2, 126.0)]
# With more rejects than one message in this number, it is no operating point.
REJECTS = 1e-3
APPS = [1, 2, 4, 8, 16, 32, 64]
SHARED = 16


def bound_of(bound: Bound, client: Client) -> float:
    """From a read's submission until its data are there, whatever happens short of a failure or a reject."""
    return bound.message(COMMAND) + client.device + client.device_spread + bound.message(READ)


def networks(
    background: float = 0.3, points: int = len(OPERATING)
) -> tuple[dict[str, Reads], dict[str, tuple[Reads, Bound]]]:
    """Reads over best effort, and over Harmony at each operating point, beside web search at the given load."""
    sets: dict[str, object] = {f"traffic.{index}.duration": f"{3 * network.scale:g}ms" for index in range(3)}
    sets["traffic.2.arrivals.poisson.load"] = background
    best = {}
    for name, transport in network.BEST_EFFORT.items():
        all_of_it = {**sets, "transport": transport, "traffic.2.transport": transport}
        best[name] = Reads(run("rpcs", f"storage {name} beside {background:g}", all_of_it), np.nan)
    ours = {}
    for k, delta in OPERATING[:points]:
        result = run("rpcs", f"storage K={k} {delta:g}us beside {background:g}", {**sets, "transport": slots(k, delta)})
        bound = Bound(result, k, delta)
        ours[f"K={k}, {delta:g}us"] = Reads(result, bound.message(READ)), bound
    return best, ours


def designs(client: Client) -> dict[str, tuple[Design, Reads]]:
    """All that are compared: designs over best effort, and the timer over Harmony's bounds."""
    best, ours = networks()
    found = {}
    for name, reads in best.items():
        for how in ("poll", "yield", "interrupt", "coalesce"):
            found[f"{how}, {name}"] = Design(how), reads
        found[f"hybrid, {name}"] = Design("hybrid", reads.mean(client) / 2), reads
        found[f"timer at p99.9, {name}"] = Design("timer", p999(client, reads)), reads
    for name, (reads, bound) in ours.items():
        if reads.rejected <= REJECTS:
            found[f"timer at the bound, Harmony {name}"] = Design("timer", bound_of(bound, client)), reads
    reads = next(reads for reads, _ in ours.values())
    found["interrupt, Harmony"] = Design("interrupt"), reads
    found["poll, Harmony"] = Design("poll"), reads
    return found


def p999(client: Client, reads: Reads) -> float:
    """The 99.9th percentile of a read's time."""
    random = np.random.default_rng(2)
    return float(np.quantile(list(islice(reads.of(client, random), 4 * len(reads.reads))), 0.999))


def row(load: Load) -> dict[str, float]:
    """A row of the table: latencies, CPU and rates."""
    p50, p99, p999 = np.quantile(load.latency, [0.5, 0.99, 0.999])
    cpu = {"core busy": load.busy / load.span, "CPU us/read": load.cpu}
    return {"kIOPS": load.kiops, **cpu, "p50 us": p50, "p99 us": p99, "p99.9 us": p999, "late": load.late}


def storage() -> Shown:
    """Storage: reads per second of one core and their latency, by how the core learns that data have arrived."""
    client = Client()
    chosen = designs(client)
    loads = {(name, apps): simulate(client, *of, apps) for name, of in chosen.items() for apps in APPS}
    rows = {(name, apps): row(loads[name, apps]) for name in chosen for apps in (1, SHARED, APPS[-1])}
    table = pd.DataFrame(rows).T.rename_axis(["design", "applications"])
    curves = {name: pd.DataFrame([row(loads[name, apps]) for apps in APPS], index=APPS) for name in chosen}
    timers = [name for name in chosen if name.startswith("timer at the bound")]
    alone, shared = table.xs(1, level="applications"), table.xs(SHARED, level="applications")
    full = table.xs(APPS[-1], level="applications")
    rivals = [name for name in chosen if name not in timers]
    sleeping = [name for name in rivals if name.startswith(("interrupt", "coalesce"))]
    best = max(timers, key=lambda name: -cell(pd.DataFrame(shared), name, "p99.9 us"))
    gain = full.loc[best, "kIOPS"] / full.loc[sleeping, "kIOPS"].max()
    tail = full.loc[best, "p99.9 us"] / full.loc[sleeping, "p99.9 us"].min()
    polls = [name for name in rivals if name.startswith("poll")]
    checks = {
        "no read comes after its bound but where a message was rejected, one in 1,000": bool(
            (table.loc[timers, "late"] <= 4 * REJECTS * COUNT).all()
        ),
        "alone, polling has the least latency": bool(alone.loc[polls, "p99 us"].min() <= 1.001 * alone["p99 us"].min()),
        "shared, polling has the longest tail": bool(
            shared.loc[polls, "p99 us"].min() >= 3 * shared.loc[sleeping, "p99 us"].max()
        ),
        f"full, {best} reads {gain:.2f} times as much as interrupts": bool(gain > 1),
        f"and its 99.9th percentile is {tail:.2f} times theirs": bool(tail <= 1),
    }
    return Shown(table.round(3), checks, draw([_operating(curves, "p99 us"), _cpu(curves)]))


def _style(name: str) -> dict[str, Any]:
    kinds = ["poll", "yield", "hybrid", "interrupt", "coalesce", "timer at p99.9", "timer at the bound"]
    kind = next(index for index, kind in enumerate(kinds) if name.startswith(kind))
    line = "-" if "Harmony" in name else "--" if "DCTCP" in name else ":"
    return {"color": COLOURS[kind], "linestyle": line, "marker": "o", "label": name}


def _shown(curves: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """DCTCP's, and one operating point of Harmony's: the others are in the table."""
    timers = [name for name in curves if name.startswith("timer at the bound")]
    return {name: curve for name, curve in curves.items() if "dcPIM" not in name and name not in timers[1:]}


def _operating(curves: dict[str, pd.DataFrame], tail: str) -> Callable[[Axes], None]:
    def panel(axes: Axes) -> None:
        for name, curve in _shown(curves).items():
            axes.plot(curve["kIOPS"], curve[tail], **_style(name))
        axes.set(xlabel="thousand reads a second and core", ylabel=f"latency, {tail}")
        log_scale(axes, "y")
        axes.set_title(f"{APPS[0]} to {APPS[-1]} applications on one core")
        axes.legend(fontsize=6)

    return panel


def _cpu(curves: dict[str, pd.DataFrame]) -> Callable[[Axes], None]:
    def panel(axes: Axes) -> None:
        for name, curve in _shown(curves).items():
            axes.plot(curve.index, curve["CPU us/read"], **_style(name))
        axes.set(xscale="log", xlabel="applications", ylabel="CPU a read (us)", title="The cost of a read")
        log_scale(axes, "y")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(APPS, [str(apps) for apps in APPS])

    return panel


def storage_change() -> Shown:
    """Storage: timers that were set beside web search at load 0.3 and stay the same at higher loads; one
    application."""
    client, rows, misses = Client(), {}, {}
    timers = {name: p999(client, reads) for name, reads in networks(points=0)[0].items()}
    for background in (0.3, 0.5, 0.6):
        best, ours = networks(background, points=1)
        harmony, (bounded, bound) = next(iter(ours.items()))
        for name, reads in {**best, f"Harmony {harmony}": bounded}.items():
            sleep = timers.get(name, bound_of(bound, client))
            load = simulate(client, Design("timer", sleep), reads, 1, 4 * COUNT)
            misses[name, background] = 1e3 * load.late / len(load.latency)
            rows[name, background] = {"timer us": sleep, **row(load), "late of 1,000": misses[name, background]}
    table = pd.DataFrame(rows).T.rename_axis(["network", "web search"])
    checks = {
        f"{name}: with web search at 0.6, {misses[name, 0.6]:.1f} reads of 1,000 are late, more than 1": misses[
            name, 0.6
        ]
        > 1
        for name in network.BEST_EFFORT
    }
    checks["over Harmony none is, whatever web search there is"] = all(
        of == 0 for key, of in misses.items() if "Harmony" in key[0]
    )
    return Shown(table.round(3), checks)


def storage_sensitivity() -> Shown:
    """Storage: how each constant of the host affects the comparison with interrupts."""
    best, ours = networks()
    reads = best["DCTCP"]
    usable = {name: of for name, of in ours.items() if of[0].rejected <= REJECTS}
    name, (bounded, bound) = min(usable.items(), key=lambda of: of[1][1].message(READ))

    def outcome(client: Client) -> dict[str, float]:
        timer = Design("timer", bound_of(bound, client))
        loads = {
            "timer": simulate(client, timer, bounded, APPS[-1], 3_000),
            "interrupt": simulate(client, Design("interrupt"), reads, APPS[-1], 3_000),
            "coalesce": simulate(client, Design("coalesce"), reads, APPS[-1], 3_000),
        }
        tails = {how: float(np.quantile(load.latency, 0.99)) for how, load in loads.items()}
        return {
            "timer / interrupts, kIOPS": loads["timer"].kiops / loads["interrupt"].kiops,
            "timer / coalesced": loads["timer"].kiops / loads["coalesce"].kiops,
            "p99 / interrupts'": tails["timer"] / tails["interrupt"],
            "p99 / coalesced": tails["timer"] / tails["coalesce"],
        }

    table = network.sensitivity(Client(), outcome)
    none = outcome(replace(Client(), interrupt=0.0))
    table.loc[("interrupt", 0.0), :] = pd.Series(none)
    checks = {
        f"{name}: more reads than with interrupts, whatever constant is halved or doubled": bool(
            (table.drop(index=("interrupt", 0.0))["timer / interrupts, kIOPS"] > 1).all()
        )
    }
    return Shown(table.round(3), checks)
