"""Hints beyond the schema: which values make sense in a small network, and how often a key is drawn.

Both tables are by the end of a key's path, the longest that fits; after a "^" it is the whole path.
Times are meant as tours of a packet through the network, so that a scenario on slow or long links gets as far as one on
fast ones.
"""

from __future__ import annotations

from typing import Any

from swarm.draw import SKIP, Drawing, Ground, Path, amount_of, written

SEEDS = "fuzz/seeds"


def _skip(_: Drawing, __: Path) -> Any:
    return SKIP


def _hosts(drawing: Drawing, _: Path) -> str:
    """A set of hosts, as text."""
    most = len(drawing.ground.hosts) - 1
    first = drawing.number(0, most)
    last = drawing.number(first, most)
    return f"{first}-{last}" if last > first else f"{first}"


def _host_names(drawing: Drawing, _: Path) -> list[str]:
    return sorted({drawing.one_of(*drawing.ground.hosts) for _ in range(drawing.number(1, 2))})


def _link(drawing: Drawing, _: Path) -> list[str]:
    return list(drawing.one_of(*drawing.ground.links))


def _link_names(drawing: Drawing, path: Path) -> list[str]:
    return ["-".join(_link(drawing, path))]


def _ports(drawing: Drawing, path: Path) -> list[str]:
    by_number = f"{drawing.one_of(*drawing.ground.switches)}:{drawing.number(0, 1)}"
    return sorted({by_number, *_link_names(drawing, path)}) if drawing.whether(50) else [by_number]


def _class_names(drawing: Drawing, _: Path) -> Any:
    return [drawing.one_of(*drawing.ground.classes)] if drawing.ground.classes else SKIP


def _transport_names(drawing: Drawing, _: Path) -> Any:
    return [drawing.one_of(*drawing.ground.transports)] if drawing.ground.transports else SKIP


def _dims(drawing: Drawing, _: Path) -> list[int]:
    return drawing.one_of([3], [2, 3], [4, 4], [2, 2, 2], [3, 2, 2], [5])


def _levels(drawing: Drawing, _: Path) -> list[list[int]]:
    cut = drawing.number(1, 6)
    return drawing.one_of([list(range(cut)), list(range(cut, 8))], [[cut, cut + 1]], [list(range(8))])


def _packet_classes(drawing: Drawing, _: Path) -> list[int]:
    first = drawing.number(1, 4)
    return list(range(first, drawing.number(first, 7) + 1))


def _mmu(drawing: Drawing, _: Path) -> dict[str, Any]:
    """Pools, groups and queues that fit the default memory, 500 KB a port, of two ports and more."""
    lossless = _packet_classes(drawing, ())
    lossy = [number for number in range(8) if number not in lossless]
    limit = drawing.one_of({"alpha": 1.0}, {"alpha": 0.125}, {"threshold": "40KB"})
    group = {"groups": lossless, "pool": "in", "xon_offset": "3KB", "reserved": "2KB", **limit}
    queues = {"queues": list(range(8)), "pool": "out", **drawing.one_of({}, {"alpha": 8.0}, {"max_rate": "1Gbps"})}
    found: dict[str, Any] = {
        "lossless": lossless,
        "pool": [
            {"name": "in", "side": "ingress", "bytes": "400KB"},
            {"name": "out", "side": "egress", "bytes": drawing.one_of("400KB", "60KB")},
        ],
        "group": [group, {"groups": lossy, "pool": "in", "alpha": drawing.one_of(8.0, 0.5)}],
        "queue": [queues],
    }
    if drawing.whether(30):
        queues["ecn"] = {"min": "5KB", "max": "20KB", "probability_max": 0.2, "drop": drawing.whether(50)}
        if drawing.whether(30):
            queues["ecn"]["average"] = drawing.number(1, 9)
        if drawing.whether(50):
            worse = {"min": "0B", "max": "10KB", "probability_max": 0.5, "drop": drawing.whether(50)}
            queues["ecn"] |= {"at_departure": drawing.whether(50), "yellow": worse, "red": {**worse, "mark": False}}
            bursts = drawing.one_of({"ebs": "20KB"}, {"pir": "50Gbps", "pbs": "20KB"})
            found["meter"] = [{"classes": lossless, "cir": drawing.one_of("1Gbps", "30Gbps"), "cbs": "9KB", **bursts}]
    if drawing.whether(20):
        found["max_rate"] = drawing.one_of("1Gbps", "60Gbps")
    if drawing.whether(50):
        weights = [drawing.number(1, 9) for _ in range(8)]
        found["schedule"] = [{"queues": list(range(8)), "weights": weights, "by": drawing.one_of("bytes", "packets")}]
    if drawing.whether(30):
        found["cell"] = drawing.one_of("256B", "80B")
    if drawing.whether(30):
        # Headroom suffices for the reaction; so does a pause that is said again in time.
        found |= {"quanta": drawing.one_of(500, 20_000, 65_535), **drawing.one_of({}, {"refresh": 100})}
    if drawing.whether(30):
        found["watchdog"] = {"detection": drawing.tours(20, 100), "restoration": drawing.tours(20)}
    return found


def _nvidia(drawing: Drawing, _: Path) -> dict[str, Any]:
    choices = {
        "rate_to_set_on_first_cnp": drawing.one_of(0, 5_000),
        "rpg_max_rate": drawing.one_of(0, 8_000),
        "rpg_gd": drawing.one_of(11, 10, 8),
        "rpg_time_reset": drawing.one_of(300, 20),
        "rpg_byte_reset": drawing.one_of(32_767, 0),
        "clamp_tgt_rate": drawing.whether(50),
        "min_time_between_cnps": drawing.one_of(4, 0, 50),
    }
    return {key: value for key, value in choices.items() if drawing.whether(50)}


def _adaptive(drawing: Drawing, _: Path) -> list[dict[str, Any]]:
    ranges = [{"least": "50us", "most": "400us", "retries": drawing.one_of(1, 3)}, {"least": "1ms", "most": "1ms"}]
    return ranges[: drawing.number(1, 2)]


def _channels(drawing: Drawing, _: Path) -> list[list[int]]:
    cut = drawing.number(1, 7)
    return [list(range(1, cut + 1)), *([list(range(cut + 1, 8))] if cut < 7 else [])]


def _weights(drawing: Drawing, _: Path) -> list[float]:
    return [float(drawing.number(0, 3)) + 0.5 for _ in drawing.ground.hosts]


def _load(drawing: Drawing, _: Path) -> float:
    return drawing.one_of(0.5, 0.9, 0.1, 2.0)


def _bytes(drawing: Drawing, _: Path) -> str:
    """Of a message: a byte, a packet and one more byte, many packets."""
    return written(drawing.one_of(1_460, 1, 1_461, 9_000, 30_000, 100_000, 64), "Bytes")


def _times(*counts: float) -> Any:
    return lambda drawing, _: drawing.tours(*counts)


def _file(kind: str, *names: str) -> Any:
    return lambda drawing, _: f"{SEEDS}/{kind}/{drawing.one_of(*names)}"


def _fabric_file(drawing: Drawing, _: Path) -> dict[str, str]:
    path, kind = drawing.one_of(("graph/two-racks.txt", "graph"), ("graph/several-links.txt", "graph"),
                                ("hpcc/star.txt", "hpcc"), ("htsim/fat-tree.topo", "htsim"))  # fmt: skip
    return {"path": f"{SEEDS}/topology_{path}", "format": kind}


def _points(_: Drawing, __: Path) -> list[list[float]]:
    return [[1.0, 0.3], [4.0, 0.8], [20.0, 1.0]]


def _uniform(drawing: Drawing, path: Path) -> dict[str, str]:
    least, most = sorted(amount_of(_bytes(drawing, path), "Bytes") for _ in range(2))
    return {"min": written(least, "Bytes"), "max": written(most, "Bytes")}


def _failure(drawing: Drawing, path: Path) -> Any:
    """Of a link or of a switch, and repaired after it has begun."""
    if not drawing.ground.links:
        return SKIP
    items = drawing.number(1, 2)
    return [_one_failure(drawing, path) for _ in range(items)]


def _one_failure(drawing: Drawing, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = drawing.item(path)
    if "switch" in found and drawing.whether(30):
        for name in ("link", "bit_error_rate", "loss", "rate", "one_way"):
            found.pop(name, None)
    else:
        found.pop("switch", None)
        found["link"] = _link(drawing, path)
    degraded = [name for name in ("bit_error_rate", "loss", "rate") if name in found]
    for name in degraded[1:]:
        del found[name]
    if not degraded:
        found.pop("one_way", None)
    if "until" in found:
        ends = amount_of(found["at"], "Duration") + amount_of(found["until"], "Duration")
        found["until"] = written(max(1, ends), "Duration")
    return found


def _flap(drawing: Drawing, _: Path) -> dict[str, str]:
    down = drawing.tours(0.5, 2, 5)
    return {"down": down, "every": written(amount_of(down, "Duration") * drawing.one_of(2, 3, 10), "Duration")}


def _traffic(drawing: Drawing, path: Path) -> list[dict[str, Any]]:
    classes = [_one_class(drawing, path, place) for place in range(drawing.number(1, 3))]
    drawing.ground.classes += [one["name"] for one in classes]
    return classes


def _one_class(drawing: Drawing, path: Path, place: int) -> dict[str, Any]:
    found: dict[str, Any] = drawing.item(path)
    found["name"] = f"class {place}"
    if "trace" in found:
        return {name: found[name] for name in ("name", "trace", "start", "transport", "resubmit") if name in found}
    for kind in ("poisson", "periodic"):
        arrivals = found["arrivals"].get(kind) if isinstance(found["arrivals"], dict) else None
        if arrivals is not None:
            rate = ("load", _load(drawing, path)) if drawing.whether(70) else ("every", drawing.tours(0.3, 1, 5))
            for name in ("load", "every", *(("counting", "of") if rate[0] == "every" else ())):
                arrivals.pop(name, None)
            arrivals[rate[0]] = rate[1]
    found["flows"] = drawing.number(1, 12)
    return found


def _trace(drawing: Drawing, _: Path) -> dict[str, Any]:
    kind, name = drawing.one_of(
        ("csv", "plain.csv"),
        ("csv", "classes.csv"),
        ("hpcc", "flow.txt"),
        ("htsim", "plain.cm"),
        ("htsim", "triggers.cm"),
        ("parquet", "plain.parquet"),
    )
    return {kind: {"path": f"{SEEDS}/trace_{kind}/{name}"}}


def _first_of(one: dict[str, Any], *names: str) -> str | None:
    """The first of these keys that a table has; it keeps this one alone."""
    found = [name for name in names if name in one]
    for name in found[1:]:
        del one[name]
    return found[0] if found else None


def _entity(drawing: Drawing, path: Path) -> list[dict[str, Any]]:
    """Groups of hosts that share none, or of traffic."""
    found = []
    for place in range(drawing.number(1, 2)):
        one: dict[str, Any] = drawing.item(path)
        one["name"] = f"entity {place}"
        if _first_of(one, "traffic", "transports", "hosts") in (None, "hosts"):
            one["hosts"] = f"{place}"
        else:
            one["each"] = "host"
        asked = {request["position"]: request for request in one.get("request", [])}
        if "hosts" not in one:
            asked.pop("egress", None)
        one["request"] = list(asked.values())
        if not asked:
            del one["request"]
        found.append(one)
    return found


def _job(drawing: Drawing, path: Path) -> list[dict[str, Any]]:
    found = []
    for place in range(drawing.number(1, 2)):
        one: dict[str, Any] = drawing.item(path)
        one["name"] = f"job {place}"
        if _first_of(one, "model", "trace", "steps") is None:
            one["steps"] = drawing.key((*path, "steps"))
        found.append(one)
    drawing.ground.classes += [one["name"] for one in found]
    return found


def _model(drawing: Drawing, path: Path) -> dict[str, Any]:
    """A model that trains in some packets."""
    found: dict[str, Any] = drawing.key(path, hinted=False)
    found["model"] = {"gpt": {"hidden": 64, "layers": 2, "sequence": 16, "vocabulary": 100}}
    found["accelerator"] = {"teraflops": 100.0, "efficiency": 0.5}
    found["micro_batches"] = drawing.number(1, 2)
    return found


def _job_trace(drawing: Drawing, _: Path) -> dict[str, Any]:
    kind, name = drawing.one_of(("goal", "ping_pong"), ("goal", "tree"), ("htsim", "ring"), ("htsim", "barrier"),
                                ("simai", "micro"))  # fmt: skip
    return {kind: {"path": f"{SEEDS}/job_{kind}/{name}"}}


def _step_bytes(drawing: Drawing, _: Path) -> str:
    return written(drawing.one_of(4_000, 1, 1_461, 30_000, 100_000), "Bytes")


def _flow_numbers(drawing: Drawing, _: Path) -> list[int]:
    return [drawing.number(0, 3)]


def tidy(scenario: dict[str, Any]) -> None:
    """Leaves out some of what has no effect beside what else there is, so that fewer scenarios have idle settings."""
    measure = scenario["measure"]
    if "end" in measure:
        measure.pop("drain", None)
    if not scenario.get("job"):
        measure.pop("alone", None)
    if not scenario.get("failure"):
        for name in [name for name in scenario if name.startswith("reroute_")]:
            del scenario[name]
    if "intake_rate" not in scenario.get("host", {}):
        scenario.get("host", {}).pop("intake_buffer", None)


def _drain(drawing: Drawing, _: Path) -> str:
    return drawing.tours(200, 20, 1_000)


def _end(drawing: Drawing, _: Path) -> str:
    return drawing.tours(30, 5, 100)


def scaled(ground: Ground, links: list[tuple[int, int]], mtu: int) -> None:
    """Says how long a tour takes: a packet over the slowest and longest of these links (bit/s, ps), four times."""
    slowest = max(mtu * 8 * 10**12 // max(rate, 1) for rate, _ in links)
    ground.tour_ps = 4 * (slowest + max(delay for _, delay in links)) or 1


_CPU_TIMES = (
    "per_message_send",
    "per_packet_send",
    "pcie_latency",
    "interrupt_moderation",
    "interrupt",
    "per_packet_receive",
    "hand_over",
    "per_batch_receive",
    "wake_up",
    "polling",
    "per_message_receive",
)

HINTS: dict[str, Any] = {
    "name": _skip,
    "^seed": lambda drawing, _: drawing.number(1, 2**32 - 1),
    "path_seed": lambda drawing, _: drawing.number(1, 2**32 - 1),
    "start_jitter": _times(0, 1, 10),
    "^transports": _skip,
    "^live": _skip,
    "^fast_forward": _skip,
    "fabric.file": _fabric_file,
    "fabric.fat_tree.k": [2, 4],
    "dims": _dims,
    "oversubscription": [1.0, 2.0, 3.5, 16.0],
    "transport.custom.module": _file("module", "text"),
    "over.custom": _skip,
    # Traffic.
    "^traffic": _traffic,
    "traffic.start": _times(0, 1, 10),
    "traffic.duration": _times(5, 50),
    "traffic.senders": _hosts,
    "traffic.receivers": _hosts,
    "traffic.avoid": _hosts,
    "traffic.stream": ["stream"],
    "traffic.trace": _trace,
    "traffic.admissible": _times(3, 30),
    "traffic.phases.on": _times(1, 5),
    "traffic.phases.off": _times(1, 5),
    "traffic.resubmit.after": _times(0, 1, 20),
    "sizes.constant": _bytes,
    "sizes.uniform": _uniform,
    "sizes.pareto.mean": _bytes,
    "sizes.pareto.cap": ["300KB"],
    "sizes.pareto.shape": [1.5, 1.05, 3.0],
    "sizes.cdf.points": _points,
    "sizes.cdf.probability": ["fraction"],
    "sizes.cdf_file.path": _file("sizes", "heading.txt", "three-columns.txt"),
    "arrivals.closed_loop.think": _times(0, 1, 5),
    "arrivals.periodic.jitter": _times(0, 0.5),
    "load": _load,
    "every": _times(0.3, 1, 5),
    "pattern.weighted": _weights,
    "pattern.hot_spots.hosts": _hosts,
    "degree": [1, 2, 3],
    # Jobs.
    "^job": _job,
    "job.hosts": _hosts,
    "job.model": _model,
    "job.trace": _job_trace,
    "job.ranks": [2, 3, 4, 8],
    "job.start": _times(0, 1, 10),
    "job.iterations": [1, 2, 3],
    "stragglers.rank": [0, 1],
    "stragglers.factor": [1.5, 3.0],
    "steps.compute": _times(0.1, 1, 5),
    "steps.name": _skip,
    "all_reduce.name": _skip,
    "bytes": _step_bytes,
    "among.size": [2, 4],
    "library.chunk": ["1KB", "5KB"],
    "library.latency": _times(0, 0.2),
    # Failures and who learns of them.
    "^failure": _failure,
    "failure.at": _times(1, 0, 0.3, 5, 20),
    "failure.until": _times(1, 5, 50),
    "failure.flap": _flap,
    "failure.switch": lambda drawing, _: drawing.one_of(*drawing.ground.switches),
    "failure.bit_error_rate": [1e-6, 1e-4, 1e-9],
    "failure.loss": [0.01, 0.2, 1e-3, 1.0],
    "failure.rate": ["10Gbps", "1Gbps", "300Mbps"],
    "reroute_delay": _times(1, 0, 20),
    "reroute_per_hop": _times(0.3, 5),
    "reroute_compute_max": _times(0.3, 5),
    # Sharing.
    "^entity": _entity,
    "entity.hosts": _hosts,
    "entity.traffic": _class_names,
    "entity.transports": _transport_names,
    "entity.start": _times(0, 5),
    "entity.end": _times(20, 100),
    "request.link": _link,
    "absolute": ["1Gbps", "100Mbps", "10Gbps"],
    "weight": [1, 2, 5],
    "headroom": [0.0, 0.03, 0.2],
    # Switches and hosts.
    "switch.levels": _levels,
    "flow_control.classes": _packet_classes,
    "pfc.classes": _packet_classes,
    "flow_control.mmu": _mmu,
    "pyrrha.classes": _packet_classes,
    "pfc.headroom": lambda drawing, path: drawing.key(path, hinted=False),
    "vcs": _channels,
    "class": [1, 2, 3, 7],
    "ack_class": [0, 1, 2, 7],
    "cnp_class": [0, 1, 7],
    "control.nvidia": _nvidia,
    "go_back_n.ack_timeout": [4, 9, 14],
    "go_back_n.retry_cnt": [7, 1],
    "go_back_n.adaptive": _adaptive,
    "pfc.quanta": [500, 20_000, 65_535],
    "pfc.refresh": [100, 0, 400],
    "host.mtu": ["1500B", "500B", "4160B", "9000B", "256B"],
    "host.header": ["40B", "64B", "20B"],
    "host.delay": ["225ns", "7us", "0s"],
    "host.clock_drift_ppb_max": [0, 100_000, 200_000],
    "intake_rate": ["10Gbps", "1Gbps", "90Gbps"],
    "cpu.cores": [1, 2, 16],
    "cpu.sibling_slowdown": [1.0, 1.6],
    "cpu.tso": ["64KB", "3KB", "0B"],
    "cpu.nic_queue": ["1B", "10KB", "1MB"],
    "cpu.pcie_rate": ["64Gbps", "7Gbps"],
    "cpu.gro": [1, 3, 64],
    "cpu.threads": [1, 3, 40],
    "cpu.ports": [1, 3],
    **{f"cpu.{name}": ["0s", "300ns", "2us"] for name in _CPU_TIMES},
    "transmission_step": ["1ns", "100ps"],
    "skewed.skew": [0.7, 0.1, 1.0],
    "probability_max": [0.2, 1.0],
    "buffer.shared.bytes": ["1MB", "30KB", "16MB"],
    "per_port.bytes": ["500KB", "10KB", "100KB"],
    "buffer.shared.alpha": [0.5, 2.0, 8.0],
    # The measurements.
    "measure.alone": lambda drawing, _: drawing.whether(50),
    "measure.arrivals": _host_names,
    "measure.drain": _drain,
    "measure.end": _end,
    "measure.interval": _times(1, 0, 0.1, 7),
    "measure.ports": _ports,
    "measure.rows_max": [2_097_152, 1_000, 64],
    "measure.packets.classes": _class_names,
    "measure.flows.classes": _class_names,
    "measure.packets.flows": _flow_numbers,
    "measure.flows.flows": _flow_numbers,
    "measure.packets.hosts": _host_names,
    "measure.flows.hosts": _host_names,
    "measure.packets.links": _link_names,
    "measure.packets.from": _times(0, 1),
    "measure.flows.from": _times(0, 1),
    "measure.packets.until": _times(5, 50),
    "measure.flows.until": _times(5, 50),
}  # fmt: skip

OFTEN: dict[str, int] = {
    "^fabric": 100,
    "^measure": 100,
    "measure.drain": 100,
    "measure.end": 25,
    "measure.interval": 60,
    "^transport": 100,
    "^traffic": 85,
    "^job": 15,
    "^switch": 50,
    "switch.balancing": 40,
    "switch.buffer": 40,
    "switch.overflow": 15,
    "switch.early_drop": 5,
    "switch.mark_at": 5,
    "switch.cut_through": 30,
    "^flow_control": 50,
    "^sharing": 20,
    "^entity": 20,
    "entity.request": 85,
    "entity.hosts": 60,
    "^failure": 25,
    "^host": 40,
    "^link": 10,
    "link.llr": 100,
    "^transmission_step": 4,
    "^decomposition": 10,
    "^reroute_delay": 40,
    "traffic.sizes": 100,
    "traffic.arrivals": 100,
    "traffic.pattern": 60,
    "traffic.transport": 25,
    "traffic.trace": 4,
    "traffic.phases": 8,
    "traffic.admissible": 5,
    "traffic.round_to": 5,
    "traffic.avoid": 5,
    "traffic.stream": 5,
    "traffic.resubmit": 10,
    "job.model": 15,
    "job.trace": 10,
    "job.steps": 60,
    "job.transport": 20,
    "failure.link": 60,
    "request.link": 25,
    "custom": 3,
}
