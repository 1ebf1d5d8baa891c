"""Networks of namespaces and veth pairs, made for an experiment and removed after it, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tcx

ROOT = Path(__file__).parents[2]
# Names of things made here begin so: nothing else is touched.
PREFIX = "cwaq"
NEEDED = ("ip", "tc", "iperf3", "bpftool")


def program() -> Path:
    """The command `clearway-aq`, as `make aq` builds it."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return Path(os.environ.get("CLEARWAY_AQ", folder / "release" / "clearway-aq"))


def missing() -> str | None:
    """Why kernel experiments can't run here; none if they can."""
    if os.uname().sysname != "Linux":
        return "this is no Linux"
    if os.geteuid() != 0:
        return "this is not root"
    for tool in NEEDED:
        if shutil.which(tool) is None:
            return f"{tool} is not installed (`make test-kernel` installs it on Debian)"
    if not program().exists():
        return f"{program()} is not built (`make aq`)"
    return None


def sh(command: str, *, check: bool = True, netns: str | None = None) -> str:
    """Runs a command line and returns what it prints."""
    words = ["ip", "netns", "exec", netns] if netns else []
    done = subprocess.run([*words, *command.split()], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def aq(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs clearway-aq."""
    words = [str(program()), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done


def counted() -> dict[str, int]:
    """The kernel's programs, maps, links and namespaces: equal before and after, or something leaked."""
    counts = {}
    for kind in ("prog", "map", "link"):
        counts[kind] = len(json.loads(sh(f"bpftool -j {kind} show") or "[]"))
    # Others on the machine may make some meanwhile.
    counts["netns"] = sum(name.startswith(PREFIX) for name in sh("ip netns list").splitlines())
    pins = Path("/sys/fs/bpf/clearway-aq")
    counts["pins"] = sum(1 for _ in pins.rglob("*")) if pins.exists() else 0
    return counts


def detach_all() -> None:
    """Detaches what tests attached, even those that failed on the way."""
    for path in Path("/run/clearway-aq").glob("*.json"):
        record = json.loads(path.read_text())
        if (record["netns"] or "").startswith(PREFIX):
            aq("detach", record["device"], "--netns", record["netns"], check=False)


class World:
    """Senders and a receiver at a bridge, each in a namespace: `cwaqs0` ... - `cwaqb` - `cwaqr`.

    Traffic to the receiver leaves by the port `out` of the bridge.
    """

    def __init__(self, senders: int = 1) -> None:
        self.senders = [f"{PREFIX}s{n}" for n in range(senders)]
        self.bridge, self.receiver = f"{PREFIX}b", f"{PREFIX}r"
        self.address = "10.97.255.254"
        self._running: list[subprocess.Popen[str]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> World:
        self._remove()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        detach_all()
        self._remove()
        if self._folder:
            self._folder.cleanup()

    def _remove(self) -> None:
        for name in [line.split()[0] for line in sh("ip netns list").splitlines()]:
            if name.startswith(PREFIX):
                sh(f"ip netns del {name}", check=False)

    def _make(self) -> None:
        for name in [*self.senders, self.bridge, self.receiver]:
            sh(f"ip netns add {name}")
        sh(f"ip -n {self.bridge} link add br0 type bridge")
        sh(f"ip -n {self.bridge} link set br0 up")
        ends = [(name, f"in{n}", f"10.97.{n // 250}.{n % 250 + 1}/16") for n, name in enumerate(self.senders)]
        for name, port, address in [*ends, (self.receiver, "out", f"{self.address}/16")]:
            sh(f"ip link add eth0 netns {name} type veth peer name {port} netns {self.bridge}")
            sh(f"ip -n {self.bridge} link set {port} master br0")
            sh(f"ip -n {self.bridge} link set {port} up")
            sh(f"ip -n {name} addr add {address} dev eth0")
            sh(f"ip -n {name} link set lo up")
            sh(f"ip -n {name} link set eth0 up")
        time.sleep(0.2)

    def link(
        self, rate_bps: float, queue_bytes: int = 1_500_000, device: str = "out", netns: str | None = None
    ) -> None:
        """Makes a device, by default the port to the receiver, a link of this rate with a FIFO: a token bucket."""
        burst = max(65_536 * 2, int(rate_bps / 8 / 1_000))
        command = f"tc qdisc replace dev {device} root handle 1: tbf rate {rate_bps:.0f}bit"
        sh(f"{command} burst {burst} limit {queue_bytes}", netns=netns or self.bridge)

    def sent(self, device: str) -> int:
        """Bytes on the wire that the queue of a port has sent."""
        return int(json.loads(sh(f"tc -s -j qdisc show dev {device}", netns=self.bridge))[0]["bytes"])

    def has_qdisc(self, kind: str) -> bool:
        """Whether this kernel has a queueing discipline."""
        try:
            sh(f"tc qdisc add dev lo root {kind}", netns=self.bridge)
        except RuntimeError:
            return False
        sh("tc qdisc del dev lo root", netns=self.bridge)
        return True

    def police(self, rate_bps: float, shares: dict[str, float], ports: dict[str, int]) -> None:
        """Polices each tenant at the port: the kernel's policer, or a program where the kernel has none."""
        sh("tc qdisc replace dev out clsact", netns=self.bridge)
        for number, (name, share) in enumerate(shares.items(), 1):
            rate, port = rate_bps * share, ports[name]
            # 10 ms, and at least two packets of the most segments.
            burst = max(2 * 65_536, int(rate / 8 / 100))
            action = f"action police rate {rate:.0f}bit burst {burst} conform-exceed drop"
            to = f"tc filter add dev out egress protocol ip pref {number}"
            try:
                sh(f"{to} u32 match ip dport {port} 0xffff {action}", netns=self.bridge)
            except RuntimeError:
                program = self._policer(port, rate, burst)
                sh(f"tc filter add dev out egress pref {number} bpf da obj {program} sec classifier", netns=self.bridge)

    def police_own(self, rate_bps: float, port: int, hook: str, drop: str) -> None:
        """Polices what a sender sends to a port at its own device, by a drop of this kind."""
        netns, burst = self.senders[0], max(2 * 65_536, int(rate_bps / 8 / 100))
        program = self._policer(port, rate_bps, burst, drop)
        if hook == "clsact":
            sh("tc qdisc replace dev eth0 clsact", netns=netns)
            sh(f"tc filter add dev eth0 egress pref {port} bpf da obj {program} sec classifier", netns=netns)
            return
        # `ip netns exec` has a BPF file system of its own or none, so the program comes by a descriptor.
        pin = Path(f"/sys/fs/bpf/{PREFIX}police")
        sh(f"bpftool prog load {program} {pin}")
        try:
            opened = tcx.pinned(str(pin))
        finally:
            pin.unlink()
        script = Path(__file__).with_name("tcx.py")
        words = ["ip", "netns", "exec", netns, sys.executable, str(script), "eth0", "egress", "last", f"fd{opened}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process: subprocess.Popen[str] = subprocess.Popen(words, pass_fds=[opened], **pipes)
        self._running.append(process)
        assert process.stdout and process.stdout.readline() == "attached\n"
        os.close(opened)

    def _policer(self, port: int, rate_bps: float, burst: int, drop: str = "TC_ACT_SHOT") -> Path:
        folder = self._folder or tempfile.TemporaryDirectory()
        self._folder = folder
        program = Path(folder.name, f"police-{port}.o")
        per_kb = 8e12 / rate_bps
        settings = f"-DPORT={port} -DNS_PER_KB={per_kb:.0f}ULL -DBURST_NS={burst * per_kb / 1_000:.0f}ULL -DDROP={drop}"
        source = Path(__file__).with_name("policer.bpf.c")
        headers = f"-I/usr/include/{os.uname().machine}-linux-gnu"
        sh(f"clang -O2 -g -target bpf -mcpu=v3 {headers} {settings} -c {source} -o {program}")
        return program

    def htb(
        self,
        rate_bps: float,
        shares: dict[str, float],
        ports: dict[str, int],
        leaf: str = "pfifo limit 1000",
    ) -> None:
        """Makes the port a link of this rate with a class a tenant: what operators use today."""
        bridge = self.bridge
        sh("tc qdisc replace dev out root handle 1: htb default 999", netns=bridge)
        burst = max(65_536 * 2, int(rate_bps / 8 / 1_000))
        sh(f"tc class add dev out parent 1: classid 1:1 htb rate {rate_bps:.0f}bit burst {burst}", netns=bridge)
        for number, (name, share) in enumerate(shares.items(), 10):
            rate = f"rate {rate_bps * share:.0f}bit ceil {rate_bps:.0f}bit burst {burst} cburst {burst}"
            sh(f"tc class add dev out parent 1:1 classid 1:{number} htb {rate}", netns=bridge)
            sh(f"tc qdisc add dev out parent 1:{number} {leaf}", netns=bridge)
            match = f"u32 match ip dport {ports[name]} 0xffff flowid 1:{number}"
            sh(f"tc filter add dev out parent 1: protocol ip {match}", netns=bridge)
        sh(f"tc class add dev out parent 1:1 classid 1:999 htb rate 1mbit ceil {rate_bps:.0f}bit", netns=bridge)

    def rto_min(self, microseconds: int) -> None:
        """Sets the least retransmission timeout of all, the receiver too: it may send back."""
        for name in [*self.senders, self.receiver]:
            if Path("/proc/sys/net/ipv4/tcp_rto_min_us").exists():
                sh(f"sysctl -qw net.ipv4.tcp_rto_min_us={microseconds}", netns=name)
            else:
                # Before Linux 6.11 only routes have one.
                route = json.loads(sh(f"ip -n {name} -j route show dev eth0"))[0]
                said = f"{route['dst']} dev eth0 src {route['prefsrc']} rto_min {microseconds // 1_000}ms"
                sh(f"ip -n {name} route replace {said}")

    def ecn(self) -> None:
        """Lets TCP use marks."""
        for name in [*self.senders, self.receiver]:
            sh("sysctl -qw net.ipv4.tcp_ecn=1", netns=name)

    def start(self, command: str, netns: str, *, talks: bool = False) -> subprocess.Popen[str]:
        """Starts a process in a namespace; it ends with the world. One that talks has a standard input.

        It goes before other processes of the machine, which would have it send less than its share.
        """
        words = ["nice", "-n", "-19", "ip", "netns", "exec", netns, *command.split()]
        given = subprocess.PIPE if talks else None
        process = subprocess.Popen(words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._running.append(process)
        return process


@contextmanager
def dctcp() -> Iterator[None]:
    """DCTCP as a congestion control of this kernel, by a program, under the name `cwaqdctcp`."""
    folder = Path(__file__).parent
    with tempfile.TemporaryDirectory() as made:
        kernel, program = Path(made, "vmlinux.h"), Path(made, "dctcp.o")
        kernel.write_text(sh("bpftool btf dump file /sys/kernel/btf/vmlinux format c"))
        machine = {"x86_64": "x86", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
        flags = f"-O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_{machine} -I{made}"
        sh(f"clang {flags} -c {folder / 'dctcp.bpf.c'} -o {program}")
        sh(f"bpftool struct_ops register {program}")
    try:
        yield
    finally:
        sh("bpftool struct_ops unregister name cwaqdctcp", check=False)


@contextmanager
def tenants_file(folder: Path, text: str) -> Iterator[Path]:
    """A file of tenants that is there for a while."""
    path = folder / f"{PREFIX}-tenants.toml"
    path.write_text(text)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def toml(value: Any) -> str:
    """A value as TOML within a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def tenants_toml(capacity_bps: float, tenants: list[dict[str, Any]], settings: str = "", link: str = "") -> str:
    """The file for tenants that are told apart by destination port; each has `name`, `share` and `port`."""
    text = f'[link]\ncapacity = "{capacity_bps:.0f}bps"\n{link}\n{settings}\n'
    for tenant in tenants:
        text += f'[[entity]]\nname = "{tenant["name"]}"\nmatch = {{ ports = ["{tenant["port"]}"] }}\n'
        for key in ("transport", "senders", "work_conserving", "feedback"):
            if key in tenant:
                text += f"{key} = {toml(tenant[key])}\n"
        position = tenant.get("position", "egress")
        text += f'request = [{{ share = {tenant["share"]}, position = "{position}" }}]\n'
    return text
