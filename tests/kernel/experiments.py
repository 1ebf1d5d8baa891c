"""Experiments of Augmented Queue in this kernel, with kernel TCP: `python tests/kernel/experiments.py [NAME...]`.

Each makes its own network, says what it measured, and fails where a tolerance that was chosen before is not kept.
`--write` writes the results into docs/aq-linux.json and docs/aq-linux.md, with the commit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bulk
import page
import trace_vms as trace
from foreseen import foreseen
from traffic import TCP_PAYLOAD, Got, Sender, send
from upkeep import upkeep
from world import World, aq, dctcp, missing, sh, tenants_file, tenants_toml

# A full packet on the wire.
FULL = 1_514
# Chosen before any run. A share is off by this much of itself at most; the simulator's prediction likewise.
SHARE, PREDICTION = 0.05, 0.05
QUICK_SHARE = 0.02
# The link of most experiments, and the time for which rates are measured.
LINK_BPS, SECONDS = 1e9, 6.0
HEADROOM = 0.02
# Senders' least retransmission timeout: Linux's own, and the one of most experiments.
TIMER_US, SHORT_TIMER_US = 200_000, 5_000
AQ = f"[sharing.aq]\nheadroom = {HEADROOM}"

Row = dict[str, Any]


def ports(names: list[str]) -> dict[str, int]:
    """A destination port for each tenant."""
    return {name: 5_201 + number for number, name in enumerate(names)}


def predicted(text: str) -> dict[str, float]:
    """The simulator's rate for each tenant of a file, in bits per second on the wire."""
    with tempfile.TemporaryDirectory() as folder, tenants_file(Path(folder), text) as path:
        rows = json.loads(aq("simulate", path, "--json").stdout)
    return {row["tenant"]: float(row["passed_bps"]) for row in rows}


def shared(
    senders: list[Sender],
    weights: dict[str, int],
    how: str,
    seconds: float = SECONDS,
    link_bps: float = LINK_BPS,
    settings: str = AQ,
    link: str = "",
    timer_us: int = SHORT_TIMER_US,
    feedback: dict[str, Any] | None = None,
    by: Callable[[World, list[Sender], float], dict[str, Got]] = send,
    costs: Row | None = None,
) -> tuple[dict[str, Got], str]:
    """Tenants that share the bridge's port under a mechanism. Returns what each got, and the tenants' file.

    `by` makes their traffic. The use of the processors is added to `costs`.
    """
    by_port = ports([one.name for one in senders])
    alone = how == "TBF each"
    senders = [
        Sender(o.name, by_port[o.name], o.control, o.flows, o.udp_bps, number if alone else o.netns)
        for number, o in enumerate(senders)
    ]
    tenants = [
        {
            "name": one.name,
            "port": by_port[one.name],
            "share": f"{{ weight = {weights[one.name]} }}",
            "senders": 1 if one.udp_bps else one.flows,
            "transport": simulated(one),
            **({"feedback": feedback} if feedback else {}),
        }
        for one in senders
    ]
    text = tenants_toml(link_bps, tenants, settings, f'rtt = "1ms"\ntimeout = "{timer_us}us"\n{link}')
    whole = sum(weights.values())
    shares = {name: weight / whole for name, weight in weights.items()}
    namespaces = len(senders) if alone else 1
    with World(namespaces) as world, tempfile.TemporaryDirectory() as folder, tenants_file(Path(folder), text) as path:
        world.rto_min(timer_us)
        if feedback or any(one.control == "dctcp" for one in senders):
            world.ecn()
        if how.startswith("HTB"):
            world.htb(link_bps, shares, by_port, "sfq perturb 10" if how == "HTB + SFQ" else "pfifo limit 1000")
        else:
            world.link(link_bps)
        if how == "policer":
            world.police(link_bps, shares, by_port)
        if alone:
            # The paper's PRL: each tenant's own device is limited.
            for one in senders:
                world.link(link_bps * shares[one.name], device="eth0", netns=world.senders[one.netns])
        if how.startswith("AQ"):
            aq("attach", "out", "--netns", world.bridge, "--tenants", path)
        with measured(world, costs):
            got = by(world, senders, seconds)
    return got, text


# Jiffies of /proc/stat in which a processor does nothing, by their place in the line: idle and iowait.
IDLE = (3, 4)


@contextmanager
def measured(world: World, costs: Row | None) -> Iterator[None]:
    """Adds to `costs` what all processors did, both ends' processes too, per full packet that left by the link; and
    of AQ and a policer what their programs took for a packet that they saw, by the kernel's own count."""
    if costs is None:
        yield
        return

    def busy() -> float:
        jiffies = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return (sum(jiffies) - sum(jiffies[place] for place in IDLE)) / os.sysconf("SC_CLK_TCK")

    def programs() -> tuple[int, int]:
        found = [
            one
            for one in json.loads(sh("bpftool -j prog show") or "[]")
            if one.get("name") in ("clearway_aq", "police")
        ]
        return sum(one.get("run_time_ns", 0) for one in found), sum(one.get("run_cnt", 0) for one in found)

    sh("sysctl -qw kernel.bpf_stats_enabled=1")
    try:
        before, bytes_before = busy(), world.sent("out")
        yield
        packets = (world.sent("out") - bytes_before) / FULL
        costs["cpu_us"] = round((busy() - before) * 1e6 / packets, 2)
        ns, count = programs()
        if count:
            costs["ns"] = round(ns / count)
    finally:
        sh("sysctl -qw kernel.bpf_stats_enabled=0")


def simulated(one: Sender) -> str:
    """The simulator's name for a congestion control."""
    if one.udp_bps:
        return "udp"
    return {"reno": "newreno"}.get(one.control, one.control)


def shares_of(got: dict[str, Got]) -> dict[str, float]:
    whole = sum(one.wire_bps for one in got.values())
    return {name: one.wire_bps / whole for name, one in got.items()}


def line(title: str, how: str, got: dict[str, Got]) -> Row:
    """A row of a result: each tenant's rate, round trip and retransmitted part, and the sum."""
    return {
        "what": title,
        "how": how,
        "mbps": {name: round(one.wire_bps / 1e6, 1) for name, one in got.items()},
        "sum_mbps": round(sum(one.wire_bps for one in got.values()) / 1e6, 1),
        "rtt_ms": {name: round(one.rtt_ms, 2) for name, one in got.items()},
        "again": {name: round(one.retransmits / max(one.segments, 1), 4) for name, one in got.items()},
    }


def check(rows: list[Row], what: str, ours: float, wanted: float, tolerance: float) -> None:
    """A statement that can fail."""
    holds = abs(ours / wanted - 1) <= tolerance
    said = {"what": what, "ours": round(ours, 4), "wanted": round(wanted, 4), "tolerance": tolerance, "holds": holds}
    rows.append(said)
    print(f"  {'ok  ' if holds else 'FAIL'} {what}: {ours:.4g}, wanted {wanted:.4g} within {tolerance:.0%}")


HOWS = ["link alone", "HTB", "AQ"]


def quick() -> Row:
    """The page's three commands: two tenants, cubic and bbr, 1:3."""
    rows, checks = [], []
    senders = [Sender("a", 0, "cubic", 4), Sender("b", 0, "bbr", 4)]
    for how in HOWS:
        got, _ = shared(senders, {"a": 1, "b": 3}, how)
        rows.append(line("4 cubic : 4 bbr, weights 1:3", how, got))
        print(" ", rows[-1])
        if how == "AQ":
            check(checks, "b / a", got["b"].wire_bps / got["a"].wire_bps, 3.0, QUICK_SHARE)
            check(checks, "sum over what AQs may have", rows[-1]["sum_mbps"] / 980, 1.0, QUICK_SHARE)
    got, _ = shared(senders, {"a": 1, "b": 3}, "AQ", seconds=2 * SECONDS, timer_us=TIMER_US)
    rows.append(line("the same with Linux's timer, 200 ms", "AQ", got))
    print(" ", rows[-1])
    check(checks, "b / a with Linux's timer", got["b"].wire_bps / got["a"].wire_bps, 3.0, SHARE)
    return {"rows": rows, "checks": checks}


# Table 2 with what a kernel has.
PAIRS = [
    ("5 cubic + 5 cubic", [("cubic", 5), ("cubic", 5)]),
    ("5 cubic + 5 reno", [("cubic", 5), ("reno", 5)]),
    ("5 cubic + 5 bbr", [("cubic", 5), ("bbr", 5)]),
    ("5 reno + 5 bbr", [("reno", 5), ("bbr", 5)]),
    ("10 bbr + 5 reno", [("bbr", 10), ("reno", 5)]),
    ("10 cubic + 5 bbr", [("cubic", 10), ("bbr", 5)]),
]
DCTCP_PAIRS = [
    ("5 cubic + 5 dctcp", [("cubic", 5), ("dctcp", 5)]),
    ("5 reno + 5 dctcp", [("reno", 5), ("dctcp", 5)]),
    ("10 dctcp + 5 reno", [("dctcp", 10), ("reno", 5)]),
    ("5 bbr + 5 dctcp", [("bbr", 5), ("dctcp", 5)]),
]


def table_2() -> Row:
    """Table 2: tenants of different congestion control share a link equally."""
    return equal_shares(PAIRS)


def table_2_dctcp() -> Row:
    """Table 2's rows with DCTCP, which listens to marks; a program brings it into the kernel."""
    with dctcp():
        return equal_shares(DCTCP_PAIRS)


def equal_shares(pairs: list[tuple[str, list[tuple[str, int]]]]) -> Row:
    rows: list[Row] = []
    checks: list[Row] = []
    for title, tenants in pairs:
        names = [f"{'AB'[n]} {flows} {control}" for n, (control, flows) in enumerate(tenants)]
        senders = [Sender(name, 0, control, flows) for name, (control, flows) in zip(names, tenants, strict=True)]
        for how in HOWS:
            got, text = shared(senders, dict.fromkeys(names, 1), how, seconds=3.5)
            rows.append(line(title, how, got))
            print(" ", rows[-1])
            if how != "AQ":
                continue
            share = shares_of(got)
            foreseen = predicted(text)
            rows[-1]["predicted_mbps"] = {name: round(bps / 1e6, 1) for name, bps in foreseen.items()}
            for name in names:
                check(checks, f"{title}: share of {name}", share[name], 0.5, SHARE)
                check(checks, f"{title}: {name}, simulator's", foreseen[name], got[name].wire_bps, PREDICTION)
    return {"rows": rows, "checks": checks}


RIVALS = ["link alone", "HTB", "HTB + SFQ", "TBF each", "policer", "AQ"]


def rivals() -> Row:
    """Some of table 2's rows with other mechanisms that a kernel has, and what each costs the processors."""
    rows: list[Row] = []
    checks: list[Row] = []
    with World() as world:
        absent = [] if world.has_qdisc("sfq") else ["HTB + SFQ"]
    if absent:
        print("  skipped: this kernel has no SFQ")
    for title, tenants in [PAIRS[1], PAIRS[2], PAIRS[4]]:
        names = [f"{'AB'[n]} {flows} {control}" for n, (control, flows) in enumerate(tenants)]
        senders = [Sender(name, 0, control, flows) for name, (control, flows) in zip(names, tenants, strict=True)]
        for how in RIVALS:
            if how in absent:
                continue
            costs: Row = {}
            got, _ = shared(senders, dict.fromkeys(names, 1), how, seconds=3.5, costs=costs)
            rows.append(line(title, how, got) | costs)
            print(" ", rows[-1])
            if how == "AQ":
                for name, share in shares_of(got).items():
                    check(checks, f"{title}: share of {name}", share, 0.5, SHARE)
    return {"rows": rows, "checks": checks}


# Kinds of drop at a sender's own egress.
DROPS = [
    ("tcx, TCX_DROP", "tcx", "TC_ACT_SHOT"),
    ("clsact, TC_ACT_STOLEN", "clsact", "TC_ACT_STOLEN"),
    ("tcx, TCX_REDIRECT to an IFB device", "tcx", "bpf_redirect({sink},0)"),
    ("tcx, TCX_REDIRECT to no device", "tcx", "bpf_redirect(0,0)"),
]


ROUNDS = 3


def silent() -> Row:
    """Which drop at its own egress a sender's TCP is not told of: each tenant policed at 100, 200 and 300 Mbps.

    In rounds, each with every kind of drop, so that a busy machine is busy for all. The kernel's own silent drop is the
    yardstick.
    """
    rates = {"a": 100e6, "b": 200e6, "c": 300e6}
    by_port = ports(list(rates))
    rounds: list[dict[str, dict[str, Got]]] = []
    for _ in range(ROUNDS):
        rounds.append({})
        for how, hook, drop in DROPS:
            with World() as world:
                world.rto_min(SHORT_TIMER_US)
                netns = world.senders[0]
                sh(f"ip -n {netns} link add sink0 type ifb")
                sh(f"ip -n {netns} link set sink0 up")
                sink = json.loads(sh(f"ip -n {netns} -j link show sink0"))[0]["ifindex"]
                for name, rate_bps in rates.items():
                    world.police_own(rate_bps, by_port[name], hook, drop.format(sink=sink))
                senders = [Sender(name, by_port[name], "cubic", 4) for name in rates]
                rounds[-1][how] = send(world, senders, SECONDS)

    def mean(how: str, name: str) -> Got:
        all_of = [one[how][name] for one in rounds]
        bps, rtt = (sum(getattr(got, what) for got in all_of) / ROUNDS for what in ("wire_bps", "rtt_ms"))
        return Got(name, bps, sum(got.retransmits for got in all_of), sum(got.segments for got in all_of), rtt)

    got = {how: {name: mean(how, name) for name in rates} for how, *_ in DROPS}
    rows = [line("4 cubic each at 100, 200 and 300 Mbps", how, all_of) for how, all_of in got.items()]
    for row in rows:
        print(" ", row)
    checks: list[Row] = []
    told, stolen, *silent_ways = got
    for name in rates:
        for how in silent_ways:
            what = f"{how} over {stolen}: {name}"
            check(checks, what, got[how][name].wire_bps, got[stolen][name].wire_bps, SHARE)
    sums = {how: sum(one.wire_bps for one in got[how].values()) for how in (told, stolen)}
    check(checks, f"{told} over {stolen}", sums[told] / sums[stolen], 0.25, 0.8)
    return {"rows": rows, "checks": checks}


def figure_8() -> Row:
    """Figure 8: one flow against many, 1:1 and 1:2."""
    rows, checks = [], []
    for weights in ({"A": 1, "B": 1}, {"A": 1, "B": 2}):
        for flows in (1, 4, 16, 64):
            for how in ("link alone", "AQ"):
                senders = [Sender("A", 0, "cubic", 1), Sender("B", 0, "cubic", flows)]
                if how == "link alone" and weights["B"] == 2:
                    continue
                got, _ = shared(senders, weights, how, seconds=4.0)
                title = f"1 : {flows} flows, weights {weights['A']}:{weights['B']}"
                rows.append(line(title, how, got))
                print(" ", rows[-1])
                if how == "AQ":
                    check(checks, f"{title}: share of A", shares_of(got)["A"], 1 / (1 + weights["B"]), SHARE)
    return {"rows": rows, "checks": checks}


# Transfers of each entity in figures 7 and 10, and what the kernel's network is in the simulator.
TRANSFERS = 110
LIKE_THE_KERNEL: dict[str, Any] = {
    "fabric.dumbbell.bottleneck_rate": f"{LINK_BPS:.0f}bps",
    "fabric.dumbbell.host_rate": f"{2 * LINK_BPS:.0f}bps",
    # Round trips over veth pairs that wait for nothing: six of these.
    "fabric.dumbbell.propagation": "20us",
    "host.mtu": f"{FULL}B",
    "host.header": "66B",
    "switch.buffer": {"per_port": {"bytes": "1.5MB"}},
    "switch.marking": {"step": {"threshold": "1.5MB"}},
    "measure.end": "60s",
    "traffic.0.flows": TRANSFERS,
    "traffic.1.flows": TRANSFERS,
}


def traced(
    rows: list[Row],
    checks: list[Row],
    title: str,
    scenario: str,
    keys: Row,
    controls: dict[str, str],
    weights: list[int],
) -> None:
    """Two entities that each send the same web search transfers, drawn by the simulator, one connection each: how long
    they take in the kernel and in the simulator. A scenario has A's hosts first, then B's."""
    names = dict(zip("ab", "AB", strict=True))
    shares = {name: weight / sum(weights) for name, weight in zip("AB", weights, strict=True)}
    by_port = ports(list(shares))
    said = [
        {"name": n, "port": by_port[n], "share": f"{{ weight = {w} }}"} for n, w in zip(shares, weights, strict=True)
    ]
    text = tenants_toml(LINK_BPS, said, AQ, f'rtt = "1ms"\ntimeout = "{SHORT_TIMER_US}us"')
    # The simulator's scenarios have one limit for all: the larger.
    with tempfile.TemporaryDirectory() as folder, tenants_file(Path(folder), text) as path:
        limit = max(row["limit_bytes"] for row in json.loads(aq("check", path, "--json").stdout))
    fixed = {"fixed": {"bytes": f"{limit}B"}}
    keys = {
        **LIKE_THE_KERNEL,
        **keys,
        "sharing": {"aq": {"headroom": HEADROOM, "limit": fixed, "idle_after": "0s"}},
        **{
            f"traffic.{n}.transport": {simulated(Sender("", 0, control)): {"rto_min": f"{SHORT_TIMER_US}us"}}
            for n, control in enumerate(controls.values())
        },
    }
    foretold = foreseen(scenario, keys)
    at_once = 4 if scenario == "figure-10" else 1
    vms: list[trace.Vm] = []
    for kind, name in names.items():
        for sizes in foretold[kind]["bytes"].values():
            vms.append(trace.Vm(name, len(vms), by_port[name], controls[name], sizes, at_once))
    for how in HOWS:
        with World(len(vms)) as world, tempfile.TemporaryDirectory() as folder:
            world.rto_min(SHORT_TIMER_US)
            if "dctcp" in controls.values():
                world.ecn()
            if how == "HTB":
                world.htb(LINK_BPS, shares, by_port)
            else:
                world.link(LINK_BPS)
            with tenants_file(Path(folder), text) as path:
                if how == "AQ":
                    aq("attach", "out", "--netns", world.bridge, "--tenants", path)
                done = trace.run(world, vms, 60.0)
        wire = {name: 8 * one.sent_bytes / TCP_PAYLOAD for name, one in done.items()}
        took = {name: one.seconds for name, one in done.items()}
        # Of what each could do by itself: an entity with twice the share should be done in half the time.
        fair = sorted(took[name] * shares[name] for name in took)
        row: Row = {"what": title, "how": how, "mbps": {name: round(wire[name] / took[name] / 1e6, 1) for name in took}}
        row |= {"seconds": round(max(took.values()), 3), "fairness": round(fair[0] / fair[1], 3)}
        if how == "AQ":
            told = {name: wire[name] / foretold[kind]["seconds"] for kind, name in names.items()}
            row["predicted_mbps"] = {name: round(bps / 1e6, 1) for name, bps in told.items()}
            check(checks, f"{title}: fairness", row["fairness"], 1.0, SHARE)
            for name, bps in told.items():
                check(checks, f"{title}: {name}, simulator's", bps, wire[name] / took[name], PREDICTION)
        rows.append(row)
        print(" ", row)


def figure_7() -> Row:
    """Figure 7: an entity of one VM beside one of several; both send the same web search transfers."""
    rows: list[Row] = []
    checks: list[Row] = []
    for vms in (1, 2, 4, 8):
        keys = {"traffic.1.senders": f"1-{vms}" if vms > 1 else "1"}
        traced(rows, checks, f"1 : {vms} VMs", "figure-7", keys, {"A": "cubic", "B": "cubic"}, [1, 1])
    return {"rows": rows, "checks": checks}


def figure_10() -> Row:
    """Figure 10: two entities of four VMs, with different congestion control; both send the same transfers."""
    rows: list[Row] = []
    checks: list[Row] = []
    for first, second, weights in (
        ("cubic", "reno", [1, 1]),
        ("cubic", "bbr", [1, 1]),
        ("reno", "bbr", [1, 1]),
        ("cubic", "cubic", [1, 2]),
    ):
        keys = {f"entity.{n}.request.0.share.weight": weight for n, weight in enumerate(weights)}
        title = f"{first} + {second}, weights {weights[0]}:{weights[1]}"
        traced(rows, checks, title, "figure-10", keys, {"A": first, "B": second}, weights)
    return {"rows": rows, "checks": checks}


def figure_9() -> Row:
    """Figure 9: UDP at line rate beside TCP."""
    rows, checks = [], []
    senders = [Sender(f"TCP {n}", 0, "cubic", 1) for n in range(1, 5)]
    senders.append(Sender("UDP", 0, "", udp_bps=0.3e9))
    weights = {one.name: 1 for one in senders}
    # A lower link: this machine can't send UDP at 1 Gbps packet by packet.
    for how in HOWS:
        got, _ = shared(senders, weights, how, link_bps=0.25e9)
        rows.append(line("4 TCP, UDP at 1.2 times the link", how, got))
        print(" ", rows[-1])
        if how == "AQ":
            for name, share in shares_of(got).items():
                check(checks, f"share of {name}", share, 0.2, SHARE)
    return {"rows": rows, "checks": checks}


def through(world: World) -> dict[str, int]:
    """Bytes out of and into the VM behind the port `out` of the bridge."""
    return {"out": sum(world.sent(f"in{n}") for n in range(3)), "in": world.sent("out")}


def vms() -> Row:
    """Table 3, a fiftieth as fast: a VM sends to three and receives from three, 100 Mbps each way."""
    rows, checks = [], []
    rate = 100e6
    senders = [Sender(f"in {n}", 5_201 + n, "cubic", 2, netns=n) for n in range(3)]
    senders += [Sender(f"out {n}", 5_211 + n, "cubic", 2, netns=n, back=True) for n in range(3)]
    for how in ("link alone", "AQ"):
        with World(3) as world, tempfile.TemporaryDirectory() as folder:
            world.rto_min(SHORT_TIMER_US)
            world.link(5 * rate)
            for n in range(3):
                world.link(5 * rate, device=f"in{n}")
            text = f"""
                link = {{ capacity = "500Mbps", timeout = "{SHORT_TIMER_US}us" }}
                [[entity]]
                name = "A"
                match = {{ destination = ["{world.address}/32"], source = ["{world.address}/32"] }}
                request = [
                    {{ share = {{ absolute = "100Mbps" }}, position = "egress" }},
                    {{ share = {{ absolute = "100Mbps" }}, position = "ingress" }},
                ]
            """
            with tenants_file(Path(folder), text) as path:
                if how == "AQ":
                    aq("attach", "out", "--netns", world.bridge, "--tenants", path)
                # All packets count, acknowledgements too: they leave by the same AQ as data.
                with ThreadPoolExecutor(1) as pool:
                    sending = pool.submit(send, world, senders, SECONDS, 3.0)
                    time.sleep(3.0)
                    began, before = time.monotonic(), through(world)
                    time.sleep(SECONDS - 1.0)
                    after, took = through(world), time.monotonic() - began
                    sending.result()
        both = {way: 8 * (after[way] - before[way]) / took for way in after}
        rows.append({"what": "VM A: out + in", "how": how, "mbps": {w: round(r / 1e6, 1) for w, r in both.items()}})
        print(" ", rows[-1])
        if how == "AQ":
            for way, got_bps in both.items():
                check(checks, f"{way}bound of 100 Mbps", got_bps, rate, SHARE)
    return {"rows": rows, "checks": checks}


def limits() -> Row:
    """The effect of a larger limit or of marks on retransmissions."""
    rows: list[Row] = []
    senders = [Sender("cubic", 0, "cubic", 4), Sender("bbr", 0, "bbr", 4)]
    for timer in (TIMER_US, SHORT_TIMER_US):
        for limit in ("300KB", "600KB", "2.5MB", "10MB"):
            settings = f'{AQ}\nlimit = {{ fixed = {{ bytes = "{limit}" }} }}'
            got, _ = shared(senders, {"cubic": 1, "bbr": 1}, "AQ", settings=settings, timer_us=timer)
            rows.append(line(f"cubic + bbr, limit {limit}, timer {timer / 1e3:g} ms", "AQ", got))
            print(" ", rows[-1])
    marked = {"ecn": {"step": {"threshold": "1.8MB"}}}
    settings = f'{AQ}\nlimit = {{ fixed = {{ bytes = "2.5MB" }} }}'
    got, _ = shared(senders, {"cubic": 1, "bbr": 1}, "AQ", settings=settings, feedback=marked)
    rows.append(line("cubic + bbr, limit 2.5MB, timer 5 ms, marks above 1.8MB", "AQ", got))
    print(" ", rows[-1])
    return {"rows": rows, "checks": []}


def hundred() -> Row:
    """A hundred tenants of eight flows, weights 1 to 10."""
    rows, checks = [], []
    names = [f"t{n:02}" for n in range(100)]
    controls = ["cubic", "reno", "bbr"]
    weights = {name: 1 + n % 10 for n, name in enumerate(names)}
    senders = [Sender(name, 0, controls[n % 3], 8) for n, name in enumerate(names)]
    whole = sum(weights.values())

    def row(how: str, rates: dict[str, float]) -> tuple[dict[str, float], str]:
        all_bps = sum(rates.values())
        off = {name: rates[name] / all_bps / (weights[name] / whole) - 1 for name in names}
        worst = max(off, key=lambda name: abs(off[name]))
        mean, most = round(sum(map(abs, off.values())) / len(off), 4), round(abs(off[worst]), 4)
        said = {"what": "100 tenants of 8 flows, weights 1 to 10", "how": how, "sum_mbps": round(all_bps / 1e6, 1)}
        rows.append({**said, "off_mean": mean, "off_most": most})
        print(" ", rows[-1], worst)
        return off, worst

    text = ""
    for how in ("link alone", "HTB", "AQ"):
        got, text = shared(senders, weights, how, seconds=12.0, by=bulk.send)
        off, worst = row(how, {name: one.wire_bps for name, one in got.items()})
        if how == "AQ":
            check(checks, "the share furthest off, over its weight", 1 + off[worst], 1.0, SHARE)
    row("AQ, simulator", predicted(text))
    return {"rows": rows, "checks": checks}


def scale() -> Row:
    """A thousand tenants attach in a second; what a packet costs with one, a thousand and a million AQs."""
    rows, checks = [], []
    tenants = [{"name": f"t{n}", "port": 10_000 + n, "share": "{ weight = 1 }"} for n in range(1_000)]
    text = tenants_toml(1e9, tenants, AQ)
    with World() as world, tempfile.TemporaryDirectory() as folder, tenants_file(Path(folder), text) as path:
        began = time.monotonic()
        aq("attach", "out", "--netns", world.bridge, "--tenants", path)
        took = time.monotonic() - began
    rows.append({"what": "attach of 1,000 tenants", "how": "AQ", "seconds": round(took, 3)})
    print(" ", rows[-1])
    holds = took <= 1.0
    checks.append(
        {"what": "1,000 tenants attach, s", "ours": round(took, 3), "wanted": 1.0, "tolerance": 0.0, "holds": holds}
    )
    cost = json.loads(aq("cost", "--json").stdout)
    for entry in cost:
        rows.append({"what": f"a packet of {entry['what']}", "how": "AQ", "ns": entry["ns"], "mb": entry["mb"]})
        print(" ", rows[-1])
    return {"rows": rows, "checks": checks}


EXPERIMENTS: dict[str, Callable[[], Row]] = {
    "quick": quick,
    "table-2": table_2,
    "table-2-dctcp": table_2_dctcp,
    "rivals": rivals,
    "silent": silent,
    "figure-8": figure_8,
    "figure-9": figure_9,
    "figure-7": figure_7,
    "figure-10": figure_10,
    "table-3": vms,
    "limits": limits,
    "hundred": hundred,
    "scale": scale,
    "daemon": upkeep,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *EXPERIMENTS], help="experiments; none runs all")
    parser.add_argument("--write", action="store_true", help="write docs/aq-linux.json and its page")
    arguments = parser.parse_args()
    if why := missing():
        print(f"skipped: {why}")
        return 0
    failed = []
    for name in arguments.names or EXPERIMENTS:
        print(f"{name}: {EXPERIMENTS[name].__doc__}", flush=True)
        result = EXPERIMENTS[name]()
        failed += [f"{name}: {one['what']}" for one in result["checks"] if not one["holds"]]
        if arguments.write:
            page.record(name, result)
    print("\n".join(["all within their tolerances"] if not failed else ["not within tolerance:", *failed]))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
