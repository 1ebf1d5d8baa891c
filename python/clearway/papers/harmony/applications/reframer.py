"""Efficient host packet processing (section 6): packets of a connection are held until there is a batch, as Reframer
does.

A core that turns to another connection finds that connection's state in no cache; the packets behind the first of a
batch find it there. Reframer (Ghasemirahni et al., NSDI 2022) holds packets for a fixed time. Over best effort the
arrival time of a batch is unknown: a short time cuts batches, a long one delays what comes alone. Over Harmony a
connection's packets come a slot's period apart, or closer, and none is later than the bound on waiting: (batch - 1)
periods and that bound are always enough for a batch.

The packets' arrivals are those of runs (`measure.arrivals`). The core is modelled: a batch takes the misses of its
connection's state once, unless that is among the last few connections', and a fixed time a packet. A connection is a
pair of hosts. Batches end early with a message, over any network, as a host's stack knows its messages: the original,
which sits before the host, does not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

import clearway as cw
from clearway.papers.figures import Shown
from clearway.reports.looks import COLOURS

from . import network
from .network import HOST_US, Bound, draw, log_scale, run, slots


@dataclass(frozen=True)
class Core:
    """The cost of packets on a core."""

    # Cai et al., "Understanding host network stack overheads" (SIGCOMM 2021): one core takes in 42 Gbps of one flow
    # with all that batches, a packet of 1,500 B in 0.29 us.
    packet_us: float = 0.29
    # A Linux TCP socket's state is about 2 KB (struct tcp_sock): 32 cache lines of 64 B.
    lines: int = 32
    # Memory's latency on a server of two sockets; Reframer's gains are of L2 and L3 misses.
    miss_us: float = 0.085
    # Misses in flight at once: assumed, less than a core's ten line fill buffers as some wait for others.
    parallel: int = 4
    # Connections whose state stays in caches: the last one only, as an application runs between them and takes the
    # rest.
    warm: int = 1
    # Packets of a batch: DPDK's and Reframer's burst.
    batch: int = 32
    # Cores to which connections are spread.
    cores: int = 8

    @property
    def cold_us(self) -> float:
        """A connection's state from memory."""
        return self.lines * self.miss_us / self.parallel


class Packets(NamedTuple):
    """The arrivals at one host, in order of time."""

    us: npt.NDArray[np.float64]
    connection: npt.NDArray[np.int64]
    last: npt.NDArray[np.bool_]


class Batched(NamedTuple):
    """The outcome of batching."""

    packets: int
    batches: int
    cpu_us: float
    latency: npt.NDArray[np.float64]
    # Batches that the timeout ended.
    cut: int


def packets_of(result: cw.Result) -> list[Packets]:
    """By host asked about, its packets and which are the last of their messages."""
    arrivals, flows = result.arrivals.to_pandas(), result.flows.to_pandas()
    arrivals = arrivals.drop(columns="host_name").astype("int64")
    sizes, sources = flows["bytes"].to_numpy(dtype=np.int64), flows["src"].to_numpy(dtype=np.int64)
    so_far = arrivals.groupby("flow")["bytes"].cumsum().to_numpy()
    flow = arrivals["flow"].to_numpy()
    # Above its size come only packets that came before.
    last = (so_far >= sizes[flow]) & (so_far - arrivals["bytes"].to_numpy() < sizes[flow])
    times, host = arrivals["time_ps"].to_numpy() / 1e6, arrivals["host"].to_numpy()
    return [Packets(times[host == one], sources[flow[host == one]], last[host == one]) for one in np.unique(host)]


def batch(packets: Packets, core: Core, timeout_us: float) -> Batched:
    """Holds each connection's packets until there is a batch, its message's last packet, or the timeout; then a core
    has them."""
    held: OrderedDict[int, list[float]] = OrderedDict()
    released: list[tuple[float, int, list[float]]] = []
    cut = 0

    def time_out(now: float) -> None:
        nonlocal cut
        # Connections are in order of their first packet, and so of their timeouts.
        while held and (due := next(iter(held.values()))[0] + timeout_us) <= now:
            connection, times = held.popitem(last=False)
            released.append((due, connection, times))
            cut += 1

    for at, connection, last in zip(packets.us.tolist(), packets.connection.tolist(), packets.last.tolist()):
        time_out(at)
        times = held.setdefault(connection, [])
        times.append(at)
        if last or len(times) >= core.batch or timeout_us == 0:
            released.append((at, connection, held.pop(connection)))
    time_out(np.inf)
    return _process(released, core, cut)


def _process(released: list[tuple[float, int, list[float]]], core: Core, cut: int) -> Batched:
    free = [0.0] * core.cores
    warm: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(core.cores)]
    cpu, latency = 0.0, []
    for at, connection, times in released:
        of = connection % core.cores
        took = len(times) * core.packet_us + (0.0 if connection in warm[of] else core.cold_us)
        warm[of][connection] = None
        warm[of].move_to_end(connection)
        while len(warm[of]) > core.warm:
            warm[of].popitem(last=False)
        free[of] = max(at, free[of]) + took
        cpu += took
        latency += [free[of] - time for time in times]
    return Batched(len(latency), len(released), cpu, np.array(latency), cut)


def together(hosts: list[Packets], core: Core, timeout_us: float) -> pd.Series[float]:
    """Batching on all hosts that were asked about."""
    found = [batch(packets, core, timeout_us) for packets in hosts]
    packets, batches, cpu, cut = (sum(of[field] for of in found) for field in (0, 1, 2, 4))
    latency = np.concatenate([of.latency for of in found])
    return pd.Series(
        {
            "batch": packets / batches,
            "cut short": cut / batches,
            "Gbps a core": packets * 1460 * 8e-3 / cpu,
            "mean us": latency.mean(),
            "p99 us": np.quantile(latency, 0.99),
        }
    )


TIMEOUTS = [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
HOSTS = 16
SLOTS = [2, 8]


class Traffic(NamedTuple):
    """The traffic to hosts: a scenario, the keys set in it, and how long Harmony's requests may wait."""

    scenario: str
    sets: Callable[[], dict[str, object]]
    delta_us: float


TRAFFIC = {
    "RPCs at load 0.5": Traffic(
        "rpcs",
        lambda: {
            "traffic.0.arrivals.poisson.load": 0.5,
            "traffic.0.duration": f"{2 * network.scale:g}ms",
            "traffic.1.flows": 1,
            "traffic.2.flows": 1,
        },
        63.0,
    ),
    # Who has all its messages wait for each other has no use for a reject.
    "32 connections a host": Traffic("connections", lambda: {"traffic.0.flows": round(8_000 * network.scale)}, 5_000.0),
}


class Network(NamedTuple):
    """The messages that reached the hosts over one network; over Harmony also its bound and the share of rejected
    messages."""

    hosts: list[Packets]
    bound: Bound | None = None
    rejected: float = 0.0


def networks(traffic: Traffic) -> dict[str, Network]:
    """The same messages over each network, with the arrivals at some hosts."""
    sets = {"measure.arrivals": [f"host{host}" for host in range(HOSTS)], **traffic.sets()}
    found = {}
    for name, transport in network.BEST_EFFORT.items():
        found[name] = Network(packets_of(run(traffic.scenario, f"reframer {name}", {**sets, "transport": transport})))
    for k in SLOTS:
        result = run(traffic.scenario, f"reframer K={k}", {**sets, "transport": slots(k, traffic.delta_us)})
        rejected = float((result.flows["status"] == "rejected").mean())
        found[f"Harmony, K={k}"] = Network(packets_of(result), Bound(result, k, traffic.delta_us), rejected)
    return found


def timeout_of(bound: Bound, core: Core) -> float:
    """The time for a batch of one slot's packets, and 1 us for the host."""
    return float((core.batch - 1) * bound.period + bound.wait + HOST_US)


def reframer() -> Shown:
    """Reframer: CPU efficiency and latency, with fixed timeouts over best-effort delivery and with a timeout from
    Harmony's bound."""
    core, rows, checks, panels = Core(), {}, {}, []
    for traffic, of in TRAFFIC.items():
        found = networks(of)
        for name, (hosts, bound, rejected) in found.items():
            for timeout in TIMEOUTS if bound is None else [timeout_of(bound, core)]:
                rows[traffic, name, round(timeout, 1)] = {**together(hosts, core, timeout), "rejected": rejected}
        table = pd.DataFrame(rows).T.rename_axis(["traffic", "network", "timeout us"]).sort_index()
        at = pd.DataFrame(table.loc[traffic])
        for name in (name for name in found if found[name].bound):
            ours = at.loc[[name]].iloc[0]
            checks[f"{traffic}, {name}: 1 batch in 1,000 at most is cut short ({ours['cut short']:.2%})"] = (
                ours["cut short"] <= 1e-3
            )
            for rival in network.BEST_EFFORT:
                unheld, same = gains(ours, pd.DataFrame(at.loc[rival]))
                said = f"{same:.2f} times {rival}'s throughput at the same mean delay (paper: 2); {unheld:.2f} unheld"
                checks[f"{traffic}, {name}: {said}"] = bool(same >= 1)
        panels += [_tradeoff(traffic, at, delay) for delay in ("mean us", "p99 us")]
    return Shown(table.round(3), checks, draw(panels))


def gains(ours: pd.Series[float], fixed: pd.DataFrame) -> tuple[float, float]:
    """How many times as much a core takes in as with fixed timeouts: with none, and with the best whose mean delay
    is no longer."""
    within = fixed[fixed["mean us"] <= ours["mean us"]]["Gbps a core"]
    same = float(ours["Gbps a core"] / within.max()) if len(within) else np.inf
    return float(ours["Gbps a core"] / fixed["Gbps a core"].iloc[0]), same


def _tradeoff(traffic: str, table: pd.DataFrame, delay: str) -> Callable[[Axes], None]:
    def panel(axes: Axes) -> None:
        for index, (name, curve) in enumerate(table.groupby(level="network", sort=False)):
            fixed = len(curve) > 1
            style = {"marker": "o"} if fixed else {"marker": "*", "ms": 13, "linestyle": ""}
            label = f"{name}, fixed timeouts" if fixed else f"{name}, from the bound"
            axes.plot(curve[delay], curve["Gbps a core"], color=COLOURS[index], label=label, **style)
        axes.set(xlabel=f"a packet's delay in the host, {delay}", ylabel="Gbps a core", title=traffic)
        log_scale(axes, "x")
        axes.legend(fontsize=7)

    return panel


def reframer_sensitivity() -> Shown:
    """Reframer: how each constant of the core affects the comparison, with 32 connections a host."""
    found = networks(TRAFFIC["32 connections a host"])
    some = {name: of._replace(hosts=of.hosts[: HOSTS // 4]) for name, of in found.items()}
    last = f"Harmony, K={SLOTS[-1]}"

    def outcome(core: Core) -> dict[str, float]:
        hosts, bound, _ = some[last]
        assert bound is not None
        ours = together(hosts, core, timeout_of(bound, core))
        row = {"Gbps a core": ours["Gbps a core"], "mean us": ours["mean us"], "cut short": ours["cut short"]}
        for name in network.BEST_EFFORT:
            fixed = pd.DataFrame([together(some[name].hosts, core, timeout) for timeout in TIMEOUTS])
            row[f"x {name} unheld"], row[f"x {name} at the same delay"] = gains(ours, fixed)
        return row

    table = network.sensitivity(Core(), outcome)
    checks = {
        f"{last}: no less than DCTCP at the same delay, whatever constant is halved or doubled": bool(
            (table["x DCTCP at the same delay"] >= 1).all()
        )
    }
    return Shown(table.round(3), checks)
