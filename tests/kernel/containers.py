"""Containers with shares of Augmented Queue, without a cluster: `python tests/kernel/containers.py [NAME...]`.

The CNI plugin by its protocol (standard input and environment), chained behind one that makes a veth pair: the standard
`bridge` where it is installed, else the test itself. The hook of a container's runtime by its protocol, and by runc
where that is installed.

Tolerance, chosen before any run: of a flood of UDP at several times a container's rate, over 3 s after its limit is
used up, 0.9 to 1.05 of the rate arrives. A flood that a busy machine starves has no drops; then only the upper bound
holds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon import configure, daemon, kept
from faults import run, settled, until
from world import PREFIX, World, aq, counted, program, sh

HOST, OUTSIDE = f"{PREFIX}h", f"{PREFIX}o"
LOW, HIGH = 0.9, 1.05
# Where Debian and others put the standard plugins.
STANDARD = [Path("/usr/lib/cni"), Path("/opt/cni/bin")]
RATE_BPS = 20e6
RECORDS = Path("/run/clearway-aq")


def on_host(words: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command in the host's network, with this machine's mounts: pins stay where they are."""
    command = ["nsenter", f"--net=/run/netns/{HOST}", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **more)


@contextmanager
def host(folder: Path) -> Iterator[None]:
    """A host with an uplink to a namespace outside, which routes to its containers."""
    for name in (HOST, OUTSIDE):
        sh(f"ip netns add {name}")
        sh(f"ip -n {name} link set lo up")
    sh(f"ip link add up0 netns {HOST} type veth peer name eth0 netns {OUTSIDE}")
    for name, device, four, six in [(HOST, "up0", "10.98.0.1", "fd98::1"), (OUTSIDE, "eth0", "10.98.0.2", "fd98::2")]:
        sh(f"ip -n {name} addr add {four}/24 dev {device}")
        sh(f"ip -n {name} addr add {six}/64 dev {device} nodad")
        sh(f"ip -n {name} link set {device} up")
    sh(f"ip -n {OUTSIDE} route add 10.99.0.0/16 via 10.98.0.1")
    sh(f"ip -n {OUTSIDE} route add fd99::/64 via fd98::1")
    sh("sysctl -qw net.ipv4.ip_forward=1", netns=HOST)
    sh("sysctl -qw net.ipv6.conf.all.forwarding=1", netns=HOST)
    try:
        yield
    finally:
        for path in RECORDS.glob("*.json"):
            record = json.loads(path.read_text())
            if record["netns"] is None and record["by"] != "command":
                on_host([program(), "detach", record["device"]])


class Network:
    """A CNI network: plugins in a chain, as libcni runs them."""

    def __init__(self, folder: Path, plugins: list[dict[str, Any]], version: str = "1.0.0") -> None:
        self.folder, self.plugins, self.version = folder, plugins, version
        # A plugin is found by its type.
        shutil.copy(program(), folder / "clearway-aq")
        self.made = 0

    def call(
        self, command: str, plugin: dict[str, Any], container: str, prev: Any, runtime: dict[str, Any]
    ) -> tuple[int, Any]:
        """Calls one plugin; its exit status and what it printed."""
        asked = {"cniVersion": self.version, "name": "net", **plugin}
        asked.update({"prevResult": prev} if prev else {})
        able = {key: value for key, value in runtime.items() if plugin.get("capabilities", {}).get(key)}
        asked.update({"runtimeConfig": able} if able else {})
        asked.pop("capabilities", None)
        variables = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_NETNS": f"/run/netns/{container}",
            "CNI_IFNAME": "eth0",
            "CNI_PATH": ":".join(map(str, [self.folder, *STANDARD])),
            "PATH": os.environ["PATH"],
        }
        if command in ("VERSION", "GC", "STATUS"):
            variables = {key: value for key, value in variables.items() if key not in ("CNI_CONTAINERID", "CNI_NETNS")}
        found = next(path / plugin["type"] for path in [self.folder, *STANDARD] if (path / plugin["type"]).exists())
        done = on_host([found], input=json.dumps(asked), env=variables)
        assert "panicked" not in done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None

    def add(self, container: str, runtime: dict[str, Any] | None = None, fails: bool = False) -> Any:
        """Adds a container in a namespace of its name; the last result."""
        result = None
        for plugin in self.plugins:
            if plugin["type"] == "veth":
                self.made += 1
                result = veth(container, self.made, self.version)
                continue
            code, said = self.call("ADD", plugin, container, result, runtime or {})
            if code:
                assert fails and said["code"] and said["msg"], said
                return said
            result = said
        assert not fails, result
        return result

    def each(self, command: str, container: str, result: Any, runtime: dict[str, Any] | None = None) -> None:
        """DEL, in the other order, or CHECK."""
        for plugin in self.plugins[:: -1 if command == "DEL" else 1]:
            if plugin["type"] != "veth":
                code, said = self.call(command, plugin, container, result, runtime or {})
                assert code == 0, said


def veth(container: str, number: int, version: str) -> Any:
    """The work of a plugin that makes a routed veth pair, for IPv4 and IPv6."""
    name, four, six = f"veth{number}", f"10.99.0.{number + 1}", f"fd99::{number + 1}"
    sh(f"ip link add {name} netns {HOST} type veth peer name eth0 netns {container}")
    sh(f"ip -n {HOST} link set {name} up")
    # Neighbours are told, so that nothing waits for them.
    mac = {
        netns: json.loads(sh(f"ip -n {netns} -j link show dev {device}"))[0]["address"]
        for netns, device in ((HOST, name), (container, "eth0"))
    }
    sh(f"ip -n {container} addr add {four}/32 dev eth0")
    sh(f"ip -n {container} addr add {six}/128 dev eth0 nodad")
    sh(f"ip -n {container} link set eth0 up")
    sh(f"ip -n {HOST} route add {four}/32 dev {name}")
    sh(f"ip -n {HOST} route add {six}/128 dev {name}")
    sh(f"ip -n {HOST} neigh replace {four} lladdr {mac[container]} dev {name}")
    sh(f"ip -n {HOST} neigh replace {six} lladdr {mac[container]} dev {name}")
    for gateway, family in (("169.254.1.1", "-4"), ("fe80::1", "-6")):
        sh(f"ip -n {container} neigh replace {gateway} lladdr {mac[HOST]} dev eth0")
        sh(f"ip -n {container} {family} route add default via {gateway} dev eth0 onlink")
    devices = [
        {"name": name, "mac": mac[HOST]},
        {"name": "eth0", "mac": mac[container], "sandbox": f"/run/netns/{container}"},
    ]
    ips = [{"address": f"{four}/32", "interface": 1}, {"address": f"{six}/128", "interface": 1}]
    return {"cniVersion": version, "interfaces": devices, "ips": ips, "routes": [], "dns": {}}


@contextmanager
def container(name: str) -> Iterator[str]:
    """A namespace of a container."""
    sh(f"ip netns add {PREFIX}{name}")
    sh(f"ip -n {PREFIX}{name} link set lo up")
    try:
        yield f"{PREFIX}{name}"
    finally:
        sh(f"ip netns del {PREFIX}{name}", check=False)


FLOOD = """
import socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
sock = socket.socket(family, socket.SOCK_DGRAM); sock.connect((sys.argv[1], 7000))
end, payload = time.monotonic() + float(sys.argv[2]), bytes(1400)
while time.monotonic() < end:
    try:
        for _ in range(20): sock.send(payload)
    except OSError:
        pass
    time.sleep(0.001)
"""


def received(netns: str, device: str = "eth0") -> int:
    return int(json.loads(sh(f"ip -n {netns} -s -j link show dev {device}"))[0]["stats64"]["rx"]["bytes"])


def flooded_bps(source: str, to: str, address: str) -> float:
    """The rate that arrives of a flood of some 200 Mbps, after the limit, 0.6 s of the rate, is used up."""
    flood = subprocess.Popen(["ip", "netns", "exec", source, sys.executable, "-c", FLOOD, address, "5"])
    try:
        time.sleep(1.5)
        before, began = received(to), time.monotonic()
        time.sleep(3)
        return (received(to) - before) * 8 / (time.monotonic() - began)
    finally:
        flood.kill()
        flood.wait()


def lines(device: str) -> dict[tuple[str, str], dict[str, Any]]:
    said = on_host([program(), "show", device, "--json", "--interval", "0"])
    assert said.returncode == 0, said.stderr
    return {(line["tenant"], line["position"]): line for line in json.loads(said.stdout)}


def enforces(device: str) -> bool:
    """Whether a device's shares hold; it may be healed at the moment."""
    said = on_host([program(), "show", device, "--json", "--interval", "0"])
    return said.returncode == 0 and all(line["enforcing"] for line in json.loads(said.stdout))


def holds(got: float, rate: float, drops: int, what: str) -> None:
    assert got < HIGH * rate, f"{what}: {got / 1e6:.1f} of {rate / 1e6:.0f} Mbps"
    assert got > LOW * rate or drops == 0, f"{what}: {got / 1e6:.1f} of {rate / 1e6:.0f} Mbps"


AQ = {"type": "clearway-aq", "capabilities": {"bandwidth": True, "aq": True}}
RATES = {"bandwidth": {"ingressRate": int(RATE_BPS), "ingressBurst": 2**31 - 1, "egressRate": int(2 * RATE_BPS)}}


def a_container_has_its_rates(world: World, folder: Path) -> None:
    """ADD, CHECK and DEL behind a plugin that makes a device, IPv4 and IPv6, both directions, and a restart."""
    begin = counted()["prog"]
    with host(folder), container("c0") as name:
        network = Network(folder, [{"type": "veth"}, AQ])
        result = network.add(name, RATES)
        assert result["cniVersion"] == "1.0.0" and result["interfaces"][0]["name"] == "veth1", result
        network.each("CHECK", name, result, RATES)
        for address, back in (("10.98.0.2", "10.99.0.2"), ("fd98::2", "fd99::2")):
            drops = lines("veth1")["container", "ingress"]["drops"]
            got = flooded_bps(name, OUTSIDE, address)
            now = lines("veth1")["container", "ingress"]
            holds(got, 2 * RATE_BPS, now["drops"] - drops, f"sent to {address}")
            drops = lines("veth1")["container", "egress"]["drops"]
            got = flooded_bps(OUTSIDE, name, back)
            holds(got, RATE_BPS, lines("veth1")["container", "egress"]["drops"] - drops, f"received by {back}")
        # A check finds other rates, and a program that was taken off.
        code, said = network.call("CHECK", AQ, name, result, {"bandwidth": {"ingressRate": 1_000_000}})
        assert code == 1 and "other rates" in said["msg"], said
        sh("bpftool link detach pinned /sys/fs/bpf/clearway-aq/veth1/egress/link")
        code, said = network.call("CHECK", AQ, name, result, RATES)
        assert code == 1 and said["code"] == 101, said
        # Restarted: the same container has another namespace and another device.
        network.each("DEL", name, result, RATES)
        assert counted()["prog"] == begin
        sh(f"ip netns del {name}")
        sh(f"ip netns add {name}")
        sh(f"ip -n {name} link set lo up")
        result = network.add(name, RATES)
        network.each("CHECK", name, result, RATES)
        # DEL is no error twice, nor without its namespace.
        sh(f"ip netns del {name}")
        network.each("DEL", name, result, RATES)
        network.each("DEL", name, None, RATES)
        until(lambda: counted()["prog"] == begin)
        assert not list(RECORDS.glob("veth*")), list(RECORDS.glob("veth*"))


def two_plugins_are_chained(world: World, folder: Path) -> None:
    """The standard bridge and bandwidth before ours, with addresses by host-local."""
    if not all(any((path / kind).exists() for path in STANDARD) for kind in ("bridge", "host-local", "bandwidth")):
        print("    skipped: the standard plugins are not installed (containernetworking-plugins)")
        return
    # The store of addresses.
    ipam = {"type": "host-local", "subnet": "10.99.0.0/24", "dataDir": str(folder / "ipam")}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipam": ipam, "isDefaultGateway": True}
    bandwidth = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
    wide = {"bandwidth": {"ingressRate": 10**9, "ingressBurst": 10**9, "egressRate": 10**9, "egressBurst": 10**9}}
    ours = {**AQ, "ingressRate": int(RATE_BPS), "egressRate": int(RATE_BPS), "capabilities": {}}
    begin = counted()["prog"]
    with host(folder), container("c0") as name:
        for chain in ([bridge, ours], [bridge, bandwidth, ours]):
            network = Network(folder, chain, "0.4.0")
            result = network.add(name, wide)
            address = result["ips"][0]["address"].split("/")[0]
            device = result["interfaces"][1]["name"]
            got = flooded_bps(name, OUTSIDE, "10.98.0.2")
            holds(
                got, RATE_BPS, lines(device)["container", "ingress"]["drops"], f"sent behind {len(chain) - 1} plugins"
            )
            got = flooded_bps(OUTSIDE, name, address)
            holds(got, RATE_BPS, lines(device)["container", "egress"]["drops"], "received")
            network.each("DEL", name, result, wide)
        until(lambda: counted()["prog"] == begin)


def weights_share_an_uplink(world: World, folder: Path) -> None:
    """Containers join and leave the tenants of a device, 1:3 of 40 Mbps, forty at once; stale ones go."""
    begin = counted()["prog"]
    shared = {**AQ, "aq": {"weight": 1, "device": "up0", "capacity": "40Mbps", "headroom": 0.0}}
    with host(folder), container("c0") as one, container("c1") as other:
        network = Network(folder, [{"type": "veth"}, shared], "1.1.0")
        results = {one: network.add(one), other: network.add(other, {"aq": {"weight": 3}})}
        flood = subprocess.Popen(["ip", "netns", "exec", other, sys.executable, "-c", FLOOD, "10.98.0.2", "9"])
        try:
            flooded_bps(one, OUTSIDE, "10.98.0.2")
            now = lines("up0")
            rates = [now[f"{name}/eth0", "egress"]["allocated_bps"] for name in (one, other)]
            assert abs(rates[0] - 10e6) < 1e3 and abs(rates[1] - 30e6) < 1e3, rates
            passed = [now[f"{name}/eth0", "egress"]["bytes"] for name in (one, other)]
            assert all(now[f"{name}/eth0", "egress"]["drops"] for name in (one, other)), "both flood"
            print(f"    {passed[1] / passed[0]:.2f} times the bytes with thrice the weight")
        finally:
            flood.kill()
            flood.wait()
        for name in (one, other):
            network.each("CHECK", name, results[name], {"aq": {"weight": 3}} if name == other else None)
        # Many at once, as when a machine starts; each waits for those before.
        variables = {"CNI_COMMAND": "ADD", "CNI_NETNS": f"/run/netns/{one}", "CNI_IFNAME": "eth0", "CNI_PATH": "/"}
        started = []
        for number in range(40):
            prev = {"cniVersion": "1.1.0", "ips": [{"address": f"10.99.1.{number}/32"}]}
            asked = {"cniVersion": "1.1.0", "name": "net", **shared, "prevResult": prev}
            words = ["nsenter", f"--net=/run/netns/{HOST}", str(folder / "clearway-aq")]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            process: Any = subprocess.Popen(words, env={**variables, "CNI_CONTAINERID": f"x{number}"}, **pipes)
            started.append((process, json.dumps(asked)))
        for process, asked_text in started:
            out, _ = process.communicate(asked_text, timeout=60)
            assert process.returncode == 0, out
        assert sum(position == "egress" for _, position in lines("up0")) == 1 + 42
        valid = [{"containerID": name, "ifname": "eth0"} for name in (one, other)]
        code, said = network.call("GC", {**shared, "cni.dev/valid-attachments": valid}, "", None, {})
        assert code == 0, said
        assert sum(position == "egress" for _, position in lines("up0")) == 1 + 2
        code, said = network.call("STATUS", shared, "", None, {})
        assert code == 0, said
        # The record of a device that an operator attached stays when the last container leaves; this one goes.
        for name in (one, other):
            network.each("DEL", name, results[name])
        until(lambda: counted()["prog"] == begin)
        # A wish that can't be given is an error, and leaves nothing.
        slow = Network(folder, [{"type": "veth"}, {**AQ, "ingressRate": 1}])
        slow.made = network.made
        said = slow.add(one_more(), fails=True)
        assert "1bps is not from" in said["msg"], said
        said = Network(folder, [AQ]).add(one, fails=True)
        assert said["code"] == 7 and "prevResult" in said["msg"], said
        assert counted()["prog"] == begin and not list(RECORDS.glob("veth*"))
        sh(f"ip netns del {PREFIX}c9")


def one_more() -> str:
    sh(f"ip netns add {PREFIX}c9")
    return f"{PREFIX}c9"


def a_daemon_keeps_what_containers_have(world: World, folder: Path) -> None:
    """It heals their devices, collects those that crashed without DEL, and leaves those that joined its own device."""
    begin = counted()["prog"]
    with host(folder), container("c0") as one, container("c1") as other:
        shared = {**AQ, "aq": {"weight": 1, "device": "up0", "capacity": "40Mbps"}}
        network = Network(folder, [{"type": "veth"}, shared])
        with daemon(configure(folder, [], "60s"), netns=HOST) as running:
            for name in (one, other):
                network.add(name, RATES)
            # Crashed: the devices go, and by that news the records.
            sh(f"ip netns del {other}")
            kept(running, lambda: not (RECORDS / "veth2.json").exists() and (RECORDS / "veth1.json").exists())
            assert (f"{other}/eth0", "egress") in lines("up0"), "that is the runtime's to say, by DEL or GC"
            network.each("DEL", other, None)
            assert (f"{other}/eth0", "egress") not in lines("up0")
            sh("bpftool link detach pinned /sys/fs/bpf/clearway-aq/veth1/egress/link")
            running.process.send_signal(1)
            (folder / "aqd.toml").write_text('[daemon]\nevery = "50ms"\n')
            kept(running, lambda: enforces("veth1"))
            network.each("DEL", one, None)
            kept(running, lambda: counted()["prog"] == begin)
        assert "panicked" not in running.log()


def a_runtimes_hook_gives_shares(world: World, folder: Path) -> None:
    """By its protocol: a container is created, runs and stops."""
    begin = counted()["prog"]

    def hook(state: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
        return on_host([program(), "hook", *more], input=json.dumps({"ociVersion": "1.0.2", "bundle": "/b", **state}))

    with host(folder), container("c0") as name:
        process = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "120"])
        try:
            time.sleep(0.3)
            asks = {"clearway.aq/ingress": "20Mbps", "clearway.aq/egress": "40Mbps", "clearway.aq/weight": "2"}
            state = {"id": "c0", "status": "created", "pid": process.pid, "annotations": asks}
            shared = ["--device", "up0", "--capacity", "40Mbps"]
            done = hook(state, *shared)
            assert done.returncode == 1 and "after the network is made" in done.stderr, done
            veth(name, 1, "1.0.0")
            done = hook(state)
            assert done.returncode == 1 and "--device" in done.stderr, done
            done = hook({**state, "annotations": {"clearway.aq/ingress": "fast"}})
            assert done.returncode == 1 and "annotation clearway.aq/ingress" in done.stderr, done
            assert hook({**state, "annotations": {}}).returncode == 0
            done = hook(state, *shared)
            assert done.returncode == 0, done.stderr
            assert ("c0", "egress") in lines("up0"), lines("up0")
            got = flooded_bps(name, OUTSIDE, "10.98.0.2")
            holds(got, 40e6, lines("veth1")["container", "ingress"]["drops"], "sent")
        finally:
            process.kill()
            process.wait()
        done = hook({"id": "c0", "status": "stopped"})
        assert done.returncode == 0, done.stderr
        until(lambda: counted()["prog"] == begin)


def runc_calls_the_hook(world: World, folder: Path) -> None:
    """A container of runc's with hooks as the example has them."""
    if shutil.which("runc") is None or shutil.which("busybox") is None:
        print("    skipped: runc or busybox is not installed")
        return
    begin = counted()["prog"]
    with host(folder), container("c0") as name:
        veth(name, 1, "1.0.0")
        root = folder / "bundle" / "rootfs" / "bin"
        root.mkdir(parents=True)
        shutil.copy(shutil.which("busybox") or "", root / "sleep")
        bundle = folder / "bundle"
        subprocess.run(["runc", "spec", "--bundle", str(bundle)], check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"].update({"args": ["/bin/sleep", "100"], "terminal": False})
        for one in spec["linux"]["namespaces"]:
            if one["type"] == "network":
                one["path"] = f"/run/netns/{name}"
        spec["annotations"] = {"clearway.aq/egress": "40Mbps"}
        call = {
            "path": shutil.which("nsenter"),
            "args": ["nsenter", f"--net=/run/netns/{HOST}", str(program()), "hook"],
        }
        spec["hooks"] = {"createRuntime": [call], "poststop": [call]}
        (bundle / "config.json").write_text(json.dumps(spec))
        run_it = ["runc", "run", "--detach", "--bundle", str(bundle), f"{PREFIX}c"]
        done = subprocess.run(run_it, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode and "cgroup" in done.stderr:
            print(f"    skipped: runc finds no cgroups that it knows: {done.stderr.strip()[:100]}")
            return
        assert done.returncode == 0, done.stderr
        got = flooded_bps(name, OUTSIDE, "10.98.0.2")
        holds(got, 40e6, lines("veth1")["container", "ingress"]["drops"], "sent")
        subprocess.run(["runc", "delete", "--force", f"{PREFIX}c"], check=True)
        until(lambda: counted()["prog"] == begin)


def examples_are_what_they_seem(world: World, folder: Path) -> None:
    """Each example's commands are commands, and its JSON is JSON."""
    examples = Path(__file__).parents[2] / "examples/aq-linux"
    chain = json.loads((examples / "10-clearway.conflist").read_text())
    assert chain["plugins"][-1]["type"] == "clearway-aq"
    hook = json.loads((examples / "oci-hook.json").read_text())
    assert hook["hook"]["args"][1] == "hook" and set(hook["stages"]) == {"createRuntime", "poststop"}
    text = (examples / "daemonset.yaml").read_text()
    try:
        import yaml
    except ImportError:
        print("    skipped in part: PyYAML is not installed")
    else:
        kinds = {one["kind"]: one for one in yaml.safe_load_all(text)}
        spec = kinds["DaemonSet"]["spec"]["template"]["spec"]
        assert spec["hostNetwork"] is True
        assert spec["containers"][0]["args"][0] == "daemon", spec["containers"][0]
        assert set(spec["containers"][0]["securityContext"]["capabilities"]["add"]) >= {"BPF", "NET_ADMIN"}
    done = subprocess.run([str(program()), "daemon", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "78" in done.stdout
    before = counted()
    settled(before)
    assert aq("check", examples / "tenants.toml", check=False).returncode in (0, 1)


TESTS: list[Callable[[World, Path], None]] = [
    a_container_has_its_rates,
    two_plugins_are_chained,
    weights_share_an_uplink,
    a_daemon_keeps_what_containers_have,
    a_runtimes_hook_gives_shares,
    runc_calls_the_hook,
    examples_are_what_they_seem,
]

if __name__ == "__main__":
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 6):
        print("skipped: this kernel has no tcx")
        sys.exit(0)
    sys.exit(run(TESTS, sys.argv[1:]))
