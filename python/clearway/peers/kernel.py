"""The same flows over the TCP of this machine's kernel: network namespaces on a live fabric."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clearway.peers.answer import Answer, told
from clearway.programs import outside
from clearway.results.result import Result
from clearway.results.times import time_of
from clearway.scenarios.quantity import amount
from clearway.scenarios.scenario import Scenario, _transports

CONTROLS = {
    "newreno": ("reno",),
    "cubic": ("cubic",),
    "linux": ("cubic",),
    "bbr": ("bbr",),
    # The second is a program of ours for kernels that were built without DCTCP: tests/kernel/dctcp.bpf.c.
    "dctcp": ("dctcp", "cwaqdctcp"),
    "illinois": ("illinois",),
}
"""Names of the kernel's congestion controls; the first that it has is taken."""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PARAMETERS = Path("/sys/module/tcp_cubic/parameters")
HEADERS = {40: "0", 52: "1"}
"""`tcp_timestamps` by bytes of headers: IPv4's 20, TCP's 20, and 12 of timestamps."""
LATE_SHARE = 0.05
"""How late the fabric's events may be in 99 of 100 cases, of the network's unloaded round trip: what is later than that
shows in completion times."""
LOST_SHARE = 0.01
"""For how much of the run the network may stand still because the machine did not follow."""
FLOWS_MAX, HOSTS_MAX, SECONDS_MAX = 20_000, 250, 600
_HERE = Path(__file__).parent / "inside"
_TOOLS = {"unshare": "util-linux", "mount": "mount", "ip": "iproute2"}
_NETWORK = "10.77.0.0/16"


@dataclass(frozen=True)
class TcpInfo:
    """The kernel's numbers of a connection (`struct tcp_info`, linux/tcp.h); 0 where it is too old to have one."""

    retransmissions: int
    """`tcpi_total_retrans`: packets that were sent again."""
    sent_packets: int
    """`tcpi_data_segs_out`: packets with content, those that were sent again among them."""
    marked_packets: int
    """`tcpi_delivered_ce`: of the packets that arrived, those whose mark came back."""
    delivered_packets: int
    timeouts: int
    rtt_us: int
    min_rtt_us: int
    window_packets: int

    @classmethod
    def parse(cls, raw: bytes) -> TcpInfo:
        """Reads it.

        >>> TcpInfo.parse(bytes(104)).retransmissions
        0
        """
        whole = raw.ljust(_INFO_BYTES, b"\0")

        def word(at: int, form: str = "=I") -> int:
            return int(struct.unpack_from(form, whole, at)[0])

        return cls(
            retransmissions=word(100),
            sent_packets=word(156),
            marked_packets=word(196),
            delivered_packets=word(192),
            timeouts=word(240, "=H"),
            rtt_us=word(68),
            min_rtt_us=word(148),
            window_packets=word(80),
        )


_INFO_BYTES = 248


def counters(text: str) -> dict[str, int]:
    """The numbers of `/proc/net/snmp` and `/proc/net/netstat`, by the names that nstat gives them.

    >>> counters("Tcp: InSegs RetransSegs\\nTcp: 12 3\\n")
    {'TcpInSegs': 12, 'TcpRetransSegs': 3}
    """
    found: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        group, *heads = names.split()
        same, *numbers = values.split()
        if group != same or len(heads) != len(numbers):
            raise ValueError(f"{group} has {len(heads)} names and {same} {len(numbers)} numbers")
        found |= {group.rstrip(":") + head: int(number) for head, number in zip(heads, numbers, strict=True)}
    return found


def missing(controls: Sequence[str] = ()) -> str | None:
    """Why the kernel can't be asked here; None if it can. `controls`: names of which it must have one."""
    if not sys.platform.startswith("linux"):
        return f"this system is {sys.platform}: network namespaces are Linux's"
    if os.geteuid() != 0:
        return "this is not root, which makes network namespaces and devices: run it under `sudo`"
    for tool, package in _TOOLS.items():
        if shutil.which(tool) is None:
            return f"{tool} is not installed: `apt install {package}`"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: `modprobe tun` brings it"
    tried = subprocess.run([*_unshare(), "unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"no namespaces can be made here: {tried.stderr.strip()}"
    if controls and control_of(controls) is None:
        return (
            f"this kernel, {os.uname().release}, has no {controls[0]}: it has {AVAILABLE.read_text().strip()}; "
            f"`modprobe tcp_{controls[0]}` brings it where the kernel was built with it"
        )
    return None


def control_of(names: Sequence[str]) -> str | None:
    """The first of these congestion controls that the kernel has; modules are loaded for it."""
    for name in names:
        if name not in AVAILABLE.read_text().split() and shutil.which("modprobe"):
            subprocess.run(["modprobe", f"tcp_{name}"], capture_output=True, check=False)
        if name in AVAILABLE.read_text().split():
            return name
    return None


def refusals(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Each thing that the kernel cannot do, by key: with it nothing can be compared."""
    names = list(dict.fromkeys(of if isinstance(of, str) else next(iter(of)) for _, of in _transports(scenario)))
    [name, *others] = names
    if others:
        yield f"transport: {name} and {', '.join(others)}; one transport can be compared at a time"
    if name not in CONTROLS:
        yield f"transport: the kernel has no {name}; it has {', '.join(CONTROLS)}"
    if scenario.get("sharing", "physical_queue") != "physical_queue":
        yield "sharing: entities are told by their transport, which the kernel's packets don't have"
    for key in ("failure", "job", "entity"):
        if scenario.get(key):
            yield f"{key}: is not told to the kernel, so that the flows would not be the same"
    for index, of in enumerate(scenario.get("traffic", [])):
        if of.get("resubmit"):
            yield f"traffic[{index}].resubmit: the kernel would not have the same flows"
    header = round(amount(scenario["host"]["header"]))
    if header not in HEADERS:
        yield f"host.header: {header} B; Linux's packets have 40 B of headers, or 52 B with TCP's timestamps"
    if scenario.get("live", {}).get("dilation", 1) != 1:
        yield "live.dilation: the kernel's clock can't be slowed down; leave it out, and take slower links"
    if not others and name in CONTROLS and isinstance(of := scenario["transport"], Mapping) and name in of:
        yield from _refused_settings(name, of[name])


def _refused_settings(name: str, of: Mapping[str, Any]) -> Iterator[str]:
    at, control = f"transport.{name}", of.get("control", {})
    for key in ("class", "ack_class"):
        if of.get(key, 1) != 1:
            yield f"{at}.{key}: packets of attached hosts have class 1"
    if of.get("plb"):
        yield f"{at}.plb: is not set in the kernel by this"
    delayed = of.get("delayed_ack")
    if delayed and delayed["packets"] != 2:
        yield f"{at}.delayed_ack.packets: the kernel acknowledges every second packet, or each; write 2, or none"
    start = control.get("slow_start", "standard")
    if name in ("cubic", "linux"):
        for key, value in (("c", 0.4), ("beta", 0.7), ("fast_convergence", True)):
            if control.get(key, value) != value:
                yield f"{at}.control.{key}: the kernel has {value}"
        if isinstance(start, Mapping) and "hystart" not in start:
            yield f"{at}.control.slow_start: the kernel has HyStart, or none"
        has = _parameter("hystart", 1) == 1
        if (start != "standard") != has:
            yield (
                f"{at}.control.slow_start: this kernel's HyStart is {'on' if has else 'off'} for the whole machine "
                f"({PARAMETERS}/hystart)"
            )
    elif start != "standard":
        yield f"{at}.control.slow_start: the kernel's {CONTROLS[name][0]} has the standard one"
    if control.get("version", "v1") != "v1":
        yield f"{at}.control.version: the kernel has BBR's version 1"
    if name == "dctcp" and control.get("g", 1 / 16) != 1 / 16:
        yield f"{at}.control.g: the kernel has 1/16"


def _parameter(name: str, default: int) -> int:
    """A parameter of the kernel's CUBIC."""
    try:
        return int((PARAMETERS / name).read_text())
    except (OSError, ValueError):
        return default


def differences(scenario: Mapping[str, Any]) -> Iterator[str]:
    """The differences that remain, though the flows and links are the same."""
    [(name, of)] = scenario["transport"].items()
    at = f"transport.{name}"
    for key, rfc in (("rack", "RFC 8985"), ("tail_loss_probe", "RFC 8985"), ("prr", "RFC 9937")):
        if not of.get(key) and not (name == "bbr" and key == "prr"):
            yield f"{at}.{key}: the kernel always has it ({rfc})"
    delayed = of.get("delayed_ack")
    if delayed and time_of(delayed["timeout"]) != 40e9:
        yield f"{at}.delayed_ack.timeout: the kernel has 40 ms or more, by the times between packets"
    if delayed:
        yield "acknowledgements: the kernel's first 16 of a connection are not delayed"
    if of.get("rto_variance_min", "0ps") == "0ps":
        yield f"{at}.rto_variance_min: the kernel adds its rto_min to the round trip; here their sum is at least that"
    if name == "bbr":
        if not of.get("handshake"):
            yield f"{at}.handshake: the kernel has measured a round trip at an open connection, before any queue"
        yield f"{at}.control.rtprop_filter_len, probe_rtt_duration: the kernel has 10 s and 200 ms"
    if name == "dctcp" and control_of(CONTROLS["dctcp"]) == CONTROLS["dctcp"][1]:
        yield f"{at}: this kernel has no DCTCP of its own; a program after RFC 8257 takes its place"
    yield "hosts: a kernel's window waits in its host's queue, where flows take no turns; here it waits before that"
    yield "hosts: the kernel hands over up to 64 KB at once, and has a receive window of 16 MB"
    yield "acknowledgements: the kernel's are longer by 12 bytes and more while packets are missing (SACK)"


def run(
    scenario: Scenario,
    result: Result,
    progress: Callable[[float, int], None] | None = None,
    captures: Mapping[str, str | Path] | None = None,
) -> Answer:
    """Runs the flows of a result over the kernel's TCP, in real time.

    `scenario` is that of `result`. `progress` is called with the seconds that have passed and the number of completed
    flows. `captures`: files by link or node, as `clearway live --capture` takes them.
    """
    read = scenario.to_dict()
    [(name, _)] = read["transport"].items()
    control = control_of(CONTROLS[name])
    assert control is not None, "`missing` has said so"
    end_ps = int(result.info["end_ps"])
    if result.info["ended"] == "goal":
        # All flows were done here; there they have as long again, and what scenarios drain for.
        end_ps += end_ps + round(time_of(read["measure"]["drain"]))
    _check_size(result, end_ps)
    with tempfile.TemporaryDirectory(prefix="clearway-kernel-") as folder:
        place = Path(folder)
        request = _request(scenario, read, result, control, end_ps, place, captures or {})
        (place / "request").write_text(json.dumps(request))
        version, said = _stage(place / "request", progress)
        if not (place / "answer").exists():
            raise ValueError(f"the kernel's flows did not run: {said.strip()[-1500:] or 'nothing was said'}")
        answer = json.loads((place / "answer").read_text())
        theirs = Result.load(place / "out" / "live")
        return _answer(result, theirs, answer, version)


def _check_size(result: Result, end_ps: int) -> None:
    hosts = set(result.flows["src"].tolist()) | set(result.flows["dst"].tolist())
    if len(result.flows) > FLOWS_MAX:
        raise ValueError(f"{len(result.flows):,} flows: each is a connection, of which there may be {FLOWS_MAX:,} here")
    if len(hosts) > HOSTS_MAX:
        raise ValueError(
            f"{len(hosts):,} hosts have flows: each is a namespace, of which there may be {HOSTS_MAX} here"
        )
    if end_ps > SECONDS_MAX * 1e12:
        raise ValueError(f"the flows may take {end_ps / 1e12:,.0f} s, in real time; {SECONDS_MAX} are the most")


def _unshare() -> list[str]:
    """Namespaces of processes and mounts: what is started in them ends with them."""
    return ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]


def _stage(request: Path, progress: Callable[[float, int], None] | None) -> tuple[str, str]:
    """Runs a request; the kernel's release, and what was said beside."""
    words = [*_unshare(), sys.executable, str(_HERE / "kernel_stage.py"), str(request)]
    # The stage ends when its input does.
    version, others = told(words, os.uname().release, progress, input_=True)
    return version, "".join(others)


def _request(
    scenario: Scenario,
    read: Mapping[str, Any],
    result: Result,
    control: str,
    end_ps: int,
    place: Path,
    captures: Mapping[str, str | Path],
) -> dict[str, Any]:
    """The request that `kernel_stage.py` reads; the files that it names are in `place`."""
    sends: dict[int, list[list[Any]]] = {}
    receives: dict[int, list[list[Any]]] = {}
    for flow in result.flows:
        source, destination = int(flow["src"]), int(flow["dst"])
        of = [int(flow["flow"]), _address(destination), int(flow["bytes"]), int(flow["start_ps"]) // 1000, control]
        sends.setdefault(source, []).append(of)
        receives.setdefault(destination, []).append([of[0], of[2]])
    names = _names(result)
    (place / "scenario.toml").write_text(fabric(scenario, names).to_toml())
    [(name, of)] = read["transport"].items()
    plans = []
    for host, node in names.items():
        plan = {
            "address": _address(host),
            "device": node.encode()[:15].decode(errors="ignore"),
            "network": _NETWORK,
            "control": control,
            "route": _route(of),
            "sysctls": _sysctls(name, of, read),
            "sends": sends.get(host, []),
            "receives": receives.get(host, []),
            "open_before": not of.get("handshake"),
        }
        (place / f"host{host}").write_text(json.dumps(plan))
        plans.append({"name": f"host{host}", "plan": str(place / f"host{host}")})
    live = [sys.executable, "-m", "clearway", "live", str(place / "scenario.toml"), "--out", str(place / "out")]
    live += [f"--attach={node}=netns:host{host}" for host, node in names.items()]
    live += [f"--capture={link}:{Path(file).resolve()}" for link, file in captures.items()]
    return {
        "hosts": plans,
        "host": str(_HERE / "kernel_host.py"),
        "live": live,
        "log": str(place / "log"),
        "answer": str(place / "answer"),
        "flows": len(result.flows),
        "end_ns": end_ps // 1000,
    }


def _names(result: Result) -> dict[int, str]:
    """The hosts that have flows, by number."""
    flows = result.flows
    found = dict(zip(flows["src"].tolist(), flows["source"].tolist(), strict=True))
    found |= dict(zip(flows["dst"].tolist(), flows["destination"].tolist(), strict=True))
    return {int(host): str(found[host]) for host in sorted(found)}


def fabric(scenario: Scenario, names: Mapping[int, str]) -> Scenario:
    """The scenario's network without its traffic, with the marks that its transport asks for, in real time. `names`:
    of the hosts that the kernel has."""
    keys: dict[str, Any] = {
        "traffic": [],
        "live.attach": {node: f"netns:host{host}" for host, node in names.items()},
        "live.network": _NETWORK,
        "live.wait": "sleep",
        "live.content": "none",
        "measure.interval": "0s",
        "measure.end": "7200s",
    }
    bare, what = scenario.with_(keys), "another program's run"
    asked, has = (outside.native(one._core, what).ports() for one in (scenario, bare))
    if asked != has:
        _, marked = asked
        [(_, low, high, most, per, _)] = marked
        if low != high or most != 1 or per is not None:
            raise ValueError("switch.marking: the transport's own marks can't be said; set switch.marking")
        bare = bare.with_({"switch.marking": {"step": {"threshold": f"{low}B"}}})
    return bare


def _address(host: int) -> str:
    """That of an attached host in `live.network`."""
    return f"10.77.{(host + 1) >> 8}.{(host + 1) & 255}"


def _route(of: Mapping[str, Any]) -> list[str]:
    """Attributes of the route to the other hosts."""
    words = ["initcwnd", str(of["initial_window"])]
    # Each packet is acknowledged.
    return words if of.get("delayed_ack") else [*words, "quickack", "1"]


def _sysctls(name: str, of: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, str]:
    """Settings of each namespace, so that nothing depends on how the machine is set."""
    ecn = of.get("control", {}).get("ecn") or name == "dctcp"
    return {
        "tcp_ecn": "1" if ecn else "0",
        "tcp_timestamps": HEADERS[round(amount(read["host"]["header"]))],
        "tcp_sack": "1",
        "tcp_dsack": "1",
        "tcp_recovery": "1",
        "tcp_early_retrans": "3",
        "tcp_frto": "2",
        "tcp_reordering": str(of["reordering"]),
        "tcp_rto_min_us": str(max(round(time_of(of["rto_min"]) / 1e6), 1)),
        "tcp_rto_max_ms": str(min(max(round(time_of(of["rto_max"]) / 1e9), 1000), 120_000)),
        "tcp_slow_start_after_idle": "1",
        # Nothing of a flow is kept for the next.
        "tcp_no_metrics_save": "1",
        "tcp_autocorking": "1",
        "tcp_mtu_probing": "0",
        # No window of a receiver's, and all of a message in the sender's buffer.
        "tcp_rmem": "4096 16777216 33554432",
        "tcp_wmem": "4096 16777216 33554432",
    }


def _answer(result: Result, theirs: Result, answer: Mapping[str, Any], version: str) -> Answer:
    """The answer, of the reports of hosts and fabric."""
    count = len(result.flows)
    number = {int(flow): row for row, flow in enumerate(result.flows["flow"].tolist())}
    delivered, got = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    began, done = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    infos: list[TcpInfo] = [TcpInfo.parse(b"")] * count
    total: dict[str, int] = {}
    for report in answer["reports"].values():
        for flow, (began_ns, raw) in report["sent"].items():
            began[number[int(flow)]] = began_ns
            infos[number[int(flow)]] = TcpInfo.parse(bytes.fromhex(raw))
        for flow, (bytes_, done_ns, wrong) in report["received"].items():
            if wrong:
                raise ValueError(f"flow {flow} came with other bytes than were sent: this is an error of Clearway's")
            got[number[int(flow)]], done[number[int(flow)]] = bytes_, done_ns
        for name, value in counters(report["counters"]).items():
            total[name] = total.get(name, 0) + value
    starts = result.flows["start_ps"].astype(np.int64)
    whole = done >= 0
    delivered[whole] = starts[whole] + (done - began)[whole] * 1000
    late_ns = np.maximum(began - answer["t0_ns"] - starts // 1000, 0)[began >= 0]
    links = _links(result, theirs)
    facts = _facts(theirs, answer, late_ns)
    return Answer(
        delivered_ps=delivered,
        received_bytes=got,
        dropped_packets=links["overflow_packets"],
        marked_packets=links["marked_packets"],
        queued_bytes_max=links["queued_bytes_max"],
        ended_ps=int(answer["ended_ns"]) * 1000,
        version=f"Linux {version}",
        sent_packets=np.array([info.sent_packets for info in infos], dtype=np.int64),
        resent_packets=np.array([info.retransmissions for info in infos], dtype=np.int64),
        counters={name: value for name, value in total.items() if value and name.startswith("Tcp")},
        facts=facts,
    )


def _links(result: Result, theirs: Result) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    ours, other = result.links.to_pandas(), theirs.links.to_pandas()
    same = ["from_node", "to_node"]
    if not ours[same].equals(other[same]):
        raise ValueError("the live fabric has other links: this is an error of Clearway's")
    columns = ("overflow_packets", "marked_packets", "queued_bytes_max")
    return {name: other[name].to_numpy().astype(np.int64) for name in columns}


def _facts(theirs: Result, answer: Mapping[str, Any], late_ns: Any) -> dict[str, float | str]:
    """How late the machine was."""
    info = theirs.info
    return {
        "late_us_p99": float(info["late_us_p99"]),
        "start_late_us_max": float(late_ns.max(initial=0)) / 1000,
        "lost_share": float(info["lost_ps"]) / max(float(info["end_ps"]), 1),
        "priority": str(answer["priority"]),
    }


def late(result: Result, answer: Answer) -> str | None:
    """Why a run says nothing, since the machine was too late; None if it was in time."""
    rtt_us = float(result.info["data_rtt_ps"]) / 1e6
    most = LATE_SHARE * rtt_us
    for name, what in (("late_us_p99", "packets (99%)"), ("start_late_us_max", "flows")):
        if (by := float(answer.facts[name])) > most:
            return f"{what} were late by {by:,.0f} us, more than {LATE_SHARE:.0%} of the round trip of {rtt_us:,.0f} us"
    if (share := float(answer.facts["lost_share"])) > LOST_SHARE:
        return f"the network stood still for {share:.1%} of the time"
    return None
