"""The same flows and links in ns-3 3.44."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from clearway.peers.answer import Answer, told
from clearway.programs import outside
from clearway.results.result import Result
from clearway.results.times import time_of
from clearway.scenarios.quantity import amount
from clearway.scenarios.scenario import Scenario, _transports

INSTALL = "python -m venv ns3 && ns3/bin/pip install ns3==3.44.post0"
"""How to get the ns-3 that this is written for: a package with its libraries."""
VARIABLE = "CLEARWAY_NS3"
"""The environment variable with the Python that has ns-3."""
CONTROLS = {
    "newreno": "ns3::TcpNewReno",
    "cubic": "ns3::TcpCubic",
    "dctcp": "ns3::TcpDctcp",
    "illinois": "ns3::TcpIllinois",
    "bbr": "ns3::TcpBbr",
    "linux": "ns3::TcpCubic",
}
_FLOWS_TO_A_HOST = 64_000
"""The ports of a destination, one for each flow."""
_PER_HEADER = 2
"""Bytes that ns-3's link adds to an IP packet."""
_LEAD_ROUND_TRIPS = 50
"""How long before its first byte a connection opens, in unloaded round trips, where scenarios have it open already."""
_HERE = Path(__file__).parent
_Marked: TypeAlias = tuple[int, int, int, float, int | None, bool]
"""A class that is marked: see `_core.Scenario.ports`."""


def python(given: str | Path | None = None) -> str:
    """The Python that has ns-3: the one given, that of the environment, or this one."""
    asked = given or os.environ.get(VARIABLE)
    if asked is None and importlib.util.find_spec("ns") is not None:
        return sys.executable
    where = shutil.which(str(asked)) if asked is not None else None
    if where is None:
        said = f"{asked} cannot be run" if asked is not None else "ns-3 is not installed here"
        raise ValueError(f"{said}: `{INSTALL}`, then name its Python: --interpreter ns3/bin/python")
    return where


def refusals(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Each thing that ns-3 cannot do, by key: with it nothing can be compared."""
    [name, *others] = _names(scenario)
    if others:
        yield f"transport: {name} and {', '.join(others)}; one transport can be compared at a time"
    if name not in CONTROLS:
        yield f"transport: ns-3 has no {name}; it has {', '.join(CONTROLS)}"
    for key, plain in (("flow_control", "none"), ("sharing", "physical_queue")):
        if scenario.get(key, plain) != plain:
            yield f"{key}: ns-3 has {plain!r} alone"
    for key in ("failure", "job", "entity"):
        if scenario.get(key):
            yield f"{key}: is not told to ns-3, so that the flows would not be the same"
    for index, of in enumerate(scenario.get("traffic", [])):
        if of.get("resubmit"):
            yield f"traffic[{index}].resubmit: ns-3 would not have the same flows"
    if scenario["switch"].get("balancing", "ecmp") not in ("ecmp", "spray"):
        yield f"switch.balancing: ns-3 has 'ecmp' and 'spray' here, not {scenario['switch']['balancing']!r}"


def differences(scenario: Mapping[str, Any]) -> Iterator[str]:
    """The differences that remain, though the flows and links are the same."""
    [(name, of)] = scenario["transport"].items()
    control = of.get("control", {})
    for key in ("rack", "tail_loss_probe", "plb"):
        if of.get(key):
            yield f"transport.{name}.{key}: ns-3 has none"
    start = control.get("slow_start", "standard")
    if name != "cubic" and name != "linux" and start != "standard":
        yield f"transport.{name}.control.slow_start: ns-3 has the standard one"
    if isinstance(start, Mapping) and "hystart_plus_plus" in start:
        yield f"transport.{name}.control.slow_start: ns-3 has HyStart"
    if control.get("version", "v1") != "v1":
        yield f"transport.{name}.control.version: ns-3 has BBR's version 1"
    buffer = scenario["switch"]["buffer"]
    if "per_port" not in buffer:
        yield "switch.buffer: ns-3's ports share no memory; each has the most that one port can fill here"
    if scenario["switch"].get("cut_through"):
        yield "switch.cut_through: ns-3 stores each packet whole"
    jitter = scenario["host"].get("jitter")
    if jitter not in (None, "0ps") or scenario.get("timing", "real") != "ideal":
        yield "host.jitter, link.clock_tolerance: ns-3's hosts have no jitter, and its clocks agree"
    yield "hosts: a window of ns-3's waits in the host's queue, though flows take turns there; here it waits before it"
    yield "paths: both hash each flow to one of its shortest paths, but not alike"


def run(
    scenario: Scenario, result: Result, program: str, progress: Callable[[float, int], None] | None = None
) -> Answer:
    """Runs the flows of a result in ns-3.

    `scenario` is that of `result`, and `program` the Python that has ns-3 (see `python`). `progress` is called with the
    simulated seconds and the number of completed flows.
    """
    read, pairs = scenario.to_dict(), _pairs(result)
    port_bytes, marked = outside.native(scenario._core, "another program's run").ports()
    with tempfile.TemporaryDirectory(prefix="clearway-ns3-") as folder:
        asked, settings, answer = (Path(folder) / name for name in ("request", "settings", "answer"))
        asked.write_text(_request(read, result, pairs, port_bytes, marked))
        # As text, which any attribute of ns-3 reads.
        keys = _settings(read, _held_bytes(result, port_bytes))
        plain = {key: value if isinstance(value, str) else json.dumps(value) for key, value in keys}
        settings.write_text(json.dumps(plain))
        words = [program, str(_HERE / "inside" / "run_ns3.py"), str(_HERE / "inside" / "network_ns3.cc")]
        version, errors = told([*words, *map(str, (asked, settings, answer))], "3.44", progress)
        # cppyy says of each start that it could not place a `main`. Of a crash the first lines say why.
        said = "".join(line for line in errors if "runStaticInitializersOnce" not in line)
        if not answer.exists():
            raise ValueError(f"ns-3 did not run: {said.strip()[:1500] or 'it said nothing'}")
        rows = [[int(word) for word in line.split()] for line in answer.read_text().splitlines()]
    [ended], of_flows, of_ports = rows[0], rows[1 : 1 + len(result.flows)], rows[1 + len(result.flows) :]
    order = [row for pair in pairs for row in pair]
    ports = np.zeros((len(order), 3), dtype=np.int64)
    ports[order] = of_ports
    flows = np.array(of_flows, dtype=np.int64)
    return Answer(flows[:, 0], flows[:, 1], ports[:, 0], ports[:, 1], ports[:, 2], int(ended), version)


def _names(scenario: Mapping[str, Any]) -> list[str]:
    """The names of its transports."""
    each = (of if isinstance(of, str) else next(iter(of)) for _, of in _transports(scenario))
    return list(dict.fromkeys(each))


def _settings(scenario: Mapping[str, Any], held_bytes: int) -> Iterator[tuple[str, object]]:
    """The defaults of ns-3 that the transport's settings ask for. `held_bytes`: all that a path can hold."""
    [(name, of)] = scenario["transport"].items()
    control = of.get("control", {})

    def time(text: str) -> str:
        return f"{time_of(text):.0f}ps"

    delayed = of.get("delayed_ack")
    yield "TcpSocket::SegmentSize", payload(scenario)
    yield "TcpSocket::InitialCwnd", of["initial_window"]
    yield "TcpSocket::DelAckCount", delayed["packets"] if delayed else 1
    if delayed:
        yield "TcpSocket::DelAckTimeout", time(delayed["timeout"])
    # A window beyond what a path holds would wait in the sender's own queue, where Linux lets none wait (TCP small
    # queues); and no timestamps, since ns-3's count milliseconds.
    yield "TcpSocket::SndBufSize", held_bytes
    yield "TcpSocket::RcvBufSize", 1 << 28
    yield "TcpSocketBase::Timestamp", False
    # By default ns-3 paces no faster than 4 Gbps.
    yield "TcpSocketState::MaxPacingRate", "1000000Gbps"
    yield "TcpSocketBase::MinRto", time(of["rto_min"])
    yield "TcpSocketBase::ClockGranularity", time(of["clock_granularity"])
    yield "TcpSocketBase::ReTxThreshold", of["reordering"]
    # A lost SYN is sent again after the same time.
    yield "TcpSocket::ConnTimeout", time(of["rto_min"])
    if control.get("ecn") or name == "dctcp":
        yield "TcpSocketBase::UseEcn", "On"
    if name == "dctcp":
        yield "TcpDctcp::DctcpShiftG", control["g"]
        yield "TcpDctcp::DctcpAlphaOnInit", control["alpha"]
    if name in ("cubic", "linux"):
        start = control["slow_start"]
        hystart = start.get("hystart") if isinstance(start, Mapping) else None
        yield "TcpCubic::C", control["c"]
        yield "TcpCubic::Beta", control["beta"]
        yield "TcpCubic::FastConvergence", control["fast_convergence"]
        yield "TcpCubic::HyStart", start != "standard"
        if hystart:
            yield "TcpCubic::HyStartLowWindow", hystart["low_window"]
            yield "TcpCubic::HyStartAckDelta", time(hystart["ack_delta"])
            yield "TcpCubic::HyStartMinSamples", hystart["min_samples"]
            yield "TcpCubic::HyStartDelayMin", time(hystart["delay_min"])
            yield "TcpCubic::HyStartDelayMax", time(hystart["delay_max"])


def _packet(scenario: Mapping[str, Any]) -> int:
    return round(amount(scenario["host"]["mtu"]))


def payload(scenario: Mapping[str, Any]) -> int:
    """Bytes of a message in a full packet."""
    return _packet(scenario) - round(amount(scenario["host"]["header"]))


def _pairs(result: Result) -> list[tuple[int, int]]:
    """The rows of the table `links`, both directions of each link together."""
    waiting: dict[tuple[str, str], deque[int]] = {}
    found = []
    ends = zip(result.links["from_node"].tolist(), result.links["to_node"].tolist(), strict=True)
    for row, (start, end) in enumerate(ends):
        if other := waiting.get((end, start)):
            found.append((other.popleft(), row))
        else:
            waiting.setdefault((start, end), deque()).append(row)
    if any(waiting.values()):
        raise ValueError("a link has one direction alone; ns-3's have both")
    return found


def _request(
    read: Mapping[str, Any], result: Result, pairs: list[tuple[int, int]], port_bytes: int, marked: list[_Marked]
) -> str:
    """The lines that `network_ns3.cc` reads."""
    [(name, of)] = read["transport"].items()
    links = list(result.links)
    names = dict.fromkeys(end for link in links for end in (link["from_node"], link["to_node"]))
    # A host's place is its number.
    hosts = sorted((node for node in names if node.startswith("host")), key=lambda node: int(node.removeprefix("host")))
    number = {node: at for at, node in enumerate([*hosts, *(node for node in names if not node.startswith("host"))])}
    packet = _packet(read)
    lead = 0 if of.get("handshake") else _LEAD_ROUND_TRIPS * int(result.info["data_rtt_ps"])
    end_ps = int(result.info["end_ps"])
    if result.info["ended"] == "goal":
        # All flows were done here; there they have as long again, and what scenarios drain for.
        end_ps += end_ps + round(time_of(read["measure"]["drain"]))
    most = max(Counter(result.flows["dst"].tolist()).values())
    if most > _FLOWS_TO_A_HOST:
        raise ValueError(f"{most:,} flows to one host: ns-3's has {_FLOWS_TO_A_HOST:,} ports here")
    sizes = [len(number), len(hosts), len(pairs), len(result.flows)]
    spray = read["switch"].get("balancing", "ecmp") == "spray"
    times = [lead, end_ps, max(end_ps // 100, 1)]
    lines = [" ".join(map(str, [*sizes, read["seed"], *times, int(spray), int(of.get("prr", False))]))]
    neighbours: dict[int, list[tuple[int, int]]] = {node: [] for node in range(len(number))}
    for pair in pairs:
        rows = [links[row] for row in pair]
        ends = [number[row["from_node"]] for row in rows]
        lines.append(f"{ends[0]} {ends[1]} {sum(row['delay_ps'] for row in rows) // 2}")
        for row, own, other in zip(rows, ends, reversed(ends), strict=True):
            # Full packets take as long as here, though ns-3's links add a header to them.
            rate = round(row["rate_bps"] * (packet + _PER_HEADER) / packet)
            lines.append(f"{rate} {_queue(own < len(hosts), row['rate_bps'], port_bytes, marked, packet)}")
            neighbours[own].append((other, len(neighbours[own]) + 1))
    lines += _ways(neighbours, len(hosts))
    for flow in result.flows:
        ends_and_size = f"{flow['src']} {flow['dst']} {flow['bytes']}"
        lines.append(f"{ends_and_size} {flow['start_ps']} {lead} {CONTROLS[name]}")
    return "\n".join(lines) + "\n"


def _held_bytes(result: Result, port_bytes: int) -> int:
    """The most of one flow that a path can hold: the bandwidth-delay product, and its switches' queues."""
    # A fabric of `n` tiers has paths of at most 2n - 1 switches.
    switches = 1 if set(result.links["tier"].tolist()) <= {"from_host", "to_host"} else 5
    return int(result.info["bdp_bytes"]) + switches * port_bytes


def _queue(at_host: bool, rate: int, port_bytes: int, marked: list[_Marked], packet: int) -> str:
    """A port's queue: bytes, and from where to where it marks with which probability."""
    if at_host:
        return "0 0 0 1 0"
    if not marked:
        return f"{port_bytes} 0 0 1 0"
    _, low, high, most, per, gentle = marked[0]
    scale = rate / per if per else 1.0
    # Here a length counts the packet that comes and the one that waits in ns-3's device; RED counts neither.
    least, greatest = (max(length * scale - 2 * packet, packet) for length in (low, high))
    return f"{port_bytes} {least} {greatest} {most} {int(gentle)}"


def _ways(neighbours: Mapping[int, list[tuple[int, int]]], hosts: int) -> Iterator[str]:
    """Of each node, the interfaces that lead to each host by a shortest path; hosts forward nothing."""
    distances = []
    for host in range(hosts):
        far = {host: 0}
        queue = deque([host])
        while queue:
            node = queue.popleft()
            for other, _ in neighbours[node]:
                if other not in far:
                    far[other] = far[node] + 1
                    if other >= hosts:
                        queue.append(other)
        distances.append(far)
    for node, of in neighbours.items():
        rows = []
        for host in range(hosts):
            far = distances[host]
            ways = [interface for other, interface in of if far.get(other, -2) == far.get(node, -1) - 1]
            if host == node:
                ways = []
            rows.append(" ".join(map(str, [len(ways), *ways])))
        yield " ".join(rows)
