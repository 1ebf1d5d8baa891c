"""Faults that must not occur with Augmented Queue in a kernel: `python tests/kernel/faults.py`.

Wrong files, devices and rights; two commands at once; commands that are killed; devices that go away; tenants that come
and go; neighbours at the same hook. Nothing may leak: programs, maps, links, pins and qdiscs are counted before and
after each.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from traffic import Sender, send
from world import World, aq, counted, missing, program, sh, tenants_file, tenants_toml

TWO = [
    {"name": "a", "port": 5_201, "share": "{ weight = 1 }"},
    {"name": "b", "port": 5_202, "share": "{ weight = 3 }"},
]
DIVIDES = '[sharing.aq]\nwork_conserving = { reallocate = { period = "50ms", headroom = 0.1 } }'
TEXT = tenants_toml(200e6, TWO)


def settled(before: dict[str, int]) -> None:
    """Everything is as it was. The kernel frees a program some time after its last holder is gone."""
    began = time.monotonic()
    while (after := counted()) != before:
        assert time.monotonic() - began < 10, f"leaks: {before} before, {after} after"
        time.sleep(0.1)


def enforcing(netns: str, device: str = "eth0") -> bool:
    """Whether the shares of a device's tenants hold; a command may be changing them."""
    done = aq("show", device, "--netns", netns, "--json", "--interval", 0, check=False)
    return done.returncode == 0 and all(line["enforcing"] for line in json.loads(done.stdout))


def attached(world: World, path: Path, device: str = "out", netns: str | None = None) -> str:
    return aq("attach", device, "--netns", netns or world.bridge, "--tenants", path).stdout


def refuses(wanted: str, *arguments: object) -> None:
    """A command must fail with these words, and leave nothing."""
    before = counted()
    done = aq(*arguments, check=False)
    assert done.returncode == 1 and wanted in done.stderr, (wanted, done.returncode, done.stderr)
    assert "panicked" not in done.stderr, done.stderr
    assert counted() == before, (before, counted())


def what_is_wrong_is_said_before_any_work(world: World, folder: Path) -> None:
    with tenants_file(folder, TEXT) as path:
        refuses("no such network device", "attach", "absent0", "--netns", world.bridge, "--tenants", path)
        refuses("no name of a network device", "attach", "a/b", "--tenants", path)
        refuses("--netns nowhere", "attach", "out", "--netns", "nowhere", "--tenants", path)
        refuses("nothing of ours", "detach", "out", "--netns", world.bridge)
        refuses("nothing is attached", "show", "out", "--netns", world.bridge)
        refuses("nothing is attached", "divide", "out", "--netns", world.bridge)
        refuses("absent.toml", "attach", "out", "--netns", world.bridge, "--tenants", folder / "absent.toml")
        nobody = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", str(program())]
        done = subprocess.run(
            [*nobody, "attach", "lo", "--tenants", str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and "CAP_BPF" in done.stderr, done.stderr
    for wrong, wanted in [
        ("", "link"),
        ("[link]\ncapacity = 3", "a rate with its unit"),
        (TEXT.replace("weight", "wait"), "wait"),
        (TEXT.replace("{ weight = 3 }", '{ absolute = "300Mbps" }'), "declined"),
        (TEXT.replace('ports = ["5202"]', 'cgroup = ["/no/such/group"]'), "/no/such/group"),
        (TEXT + TEXT, "duplicate"),
    ]:
        with tenants_file(folder, wrong) as path:
            refuses(wanted, "attach", "out", "--netns", world.bridge, "--tenants", path)


def a_device_is_left_as_it_was(world: World, folder: Path) -> None:
    def looks(device: str, netns: str) -> str:
        return "".join(
            sh(f"{command}", netns=netns)
            for command in (
                f"tc qdisc show dev {device}",
                f"tc filter show dev {device} egress",
                f"tc filter show dev {device} ingress",
            )
        )

    both = TEXT.replace(
        'position = "egress" }]', 'position = "egress" }, { share = { weight = 1 }, position = "ingress" }]'
    )
    with tenants_file(folder, both) as path:
        sender = world.senders[0]
        for device, netns, hook in (("out", world.bridge, ""), ("eth0", sender, ""), ("eth0", sender, "clsact")):
            before, count = looks(device, netns), counted()
            asked = ["--hook", hook] if hook else []
            said = aq("attach", device, "--netns", netns, "--tenants", path, *asked).stdout
            hook = hook or "tcx"
            assert f"egress by {hook}" in said and f"ingress by {hook}" in said, said
            now = counted()
            links = 2 if hook == "tcx" else 0
            assert (now["prog"], now["link"]) == (count["prog"] + 2, count["link"] + links), (count, now)
            assert (looks(device, netns) != before) == (hook == "clsact")
            aq("detach", device, "--netns", netns)
            assert looks(device, netns) == before, looks(device, netns)
            settled(count)


def neighbours_stay(world: World, folder: Path) -> None:
    """A qdisc and a filter that others put there are there after attach and after detach, and see packets."""
    sender = world.senders[0]
    sh("tc qdisc add dev eth0 clsact", netns=sender)
    sh("tc filter add dev eth0 egress protocol ip pref 7 u32 match u32 0 0 flowid 1:1", netns=sender)
    sh("tc qdisc add dev eth0 root handle 9: tbf rate 500mbit burst 256kb limit 1mb", netns=sender)
    with tenants_file(folder, TEXT) as path:
        for hook in ("tcx", "clsact"):
            said = aq("attach", "eth0", "--netns", sender, "--tenants", path, "--hook", hook).stdout
            assert (", before " in said and "which stay" in said) == (hook == "clsact"), said
            send(world, [Sender("a", 5_201, "cubic")], 3.0, skip=0)
            now = sh("tc -s filter show dev eth0 egress", netns=sender)
            assert "pref 7" in now and "tbf 9:" in sh("tc qdisc show dev eth0", netns=sender)
            # With CONFIG_CLS_U32_PERF the filter counts.
            assert "rule hit" not in now or "rule hit 0" not in now, now
            aq("detach", "eth0", "--netns", sender)
    now = sh("tc filter show dev eth0 egress", netns=sender)
    assert "pref 7" in now and "clearway_aq" not in now, now
    assert "clsact" in sh("tc qdisc show dev eth0", netns=sender), "it was there before"
    sh("tc qdisc del dev eth0 clsact", netns=sender)
    sh("tc qdisc del dev eth0 root", netns=sender)


def two_commands_at_once_do_not_mix(world: World, folder: Path) -> None:
    with tenants_file(folder, TEXT) as path:
        words = [str(program()), "attach", "out", "--netns", world.bridge, "--tenants", str(path)]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        ends = [(*process.communicate(), process.returncode) for process in running]
        assert any(code == 0 for *_, code in ends), ends
        for _, err, code in ends:
            assert code == 0 or "another clearway-aq is at work" in err, err
        shown = json.loads(aq("show", "out", "--netns", world.bridge, "--json", "--interval", 0.1).stdout)
        assert [line["tenant"] for line in shown] == ["(default)", "a", "b"]
        aq("detach", "out", "--netns", world.bridge)


def tenants_join_and_leave_under_load(world: World, folder: Path) -> None:
    """A thousand changes a minute; those who stay keep their share and their counters."""
    stays = [Sender("a", 5_201, "cubic", 2), Sender("b", 5_202, "cubic", 2)]
    with tenants_file(folder, TEXT) as path:
        attached(world, path)
        before = counted()
        servers = [world.start(f"iperf3 -s -1 -p {one.port}", world.receiver) for one in stays]
        time.sleep(0.3)
        clients = [
            world.start(f"iperf3 -c {world.address} -p {one.port} -P 2 -t 12 -J", world.senders[0]) for one in stays
        ]
        began, changes, packets = time.monotonic(), 0, 0
        while time.monotonic() - began < 10:
            extra = [{"name": f"x{changes}", "port": 6_000 + changes, "share": "{ weight = 1 }"}]
            path.write_text(tenants_toml(200e6, TWO + extra[: changes % 2]))
            attached(world, path)
            changes += 1
            if changes % 20 == 0:
                shown = json.loads(aq("show", "out", "--netns", world.bridge, "--json", "--interval", 0).stdout)
                now = next(line["packets"] for line in shown if line["tenant"] == "a")
                assert now > packets, "counters of those who stay go on"
                packets = now
        for process in clients:
            process.communicate(timeout=30)
        for server in servers:
            server.kill()
        assert changes * 6 >= 1_000, f"{changes} changes in 10 s"
        assert counted() == before
        print(f"    {changes} changes in 10 s")
        aq("detach", "out", "--netns", world.bridge)


NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def any_user_reads_counters(world: World, folder: Path) -> None:
    """Without any capability, where the BPF file system lets others in; what is pinned can't be written."""
    binary, pins, run = (Path("/run") / f"cwaq-{name}" for name in ("program", "pins", "run"))
    rights = ["--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"]
    try:
        shutil.copy(program(), binary)
        pins.mkdir()
        sh(f"mount -t bpf -o mode=0711 bpf {pins}")
        places = ["--pins", str(pins), "--run", str(run)]
        with tenants_file(folder, TEXT) as path:
            aq(*places, "attach", "out", "--netns", world.bridge, "--tenants", path)
            send(world, [Sender("a", 5_201, "cubic", 2)], 2.0, skip=0)
            words = [*NOBODY, *rights, str(binary), *places, "show", "--json", "--interval", "0"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            packets = {line["tenant"]: line["packets"] for line in json.loads(done.stdout)}
            assert packets["a"] > 100, packets
            state = next(pins.rglob("egress/states"))
            write = [*NOBODY, *rights, "bpftool", "map", "update", "pinned", str(state), "key", "0", "0", "0", "0"]
            done = subprocess.run([*write, "value", *(["0"] * 64)], capture_output=True, text=True, check=False)
            assert done.returncode != 0, "any user could write counters"
            pins.chmod(0o700)
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 1 and "chmod o+x" in done.stderr, done.stderr
            aq(*places, "detach", "out", "--netns", world.bridge)
    finally:
        sh(f"umount {pins}", check=False)
        binary.unlink(missing_ok=True)
        pins.rmdir()
        shutil.rmtree(run, ignore_errors=True)


def two_capabilities_are_enough(world: World, folder: Path) -> None:
    """A user with CAP_BPF and CAP_NET_ADMIN, and a BPF file system of its own."""
    rights = "-all,+bpf,+net_admin"
    words = [*NOBODY, "--bounding-set", rights]
    words += ["--inh-caps", rights, "--ambient-caps", rights]
    binary, pins, run = (Path("/run") / f"cwaq-{name}" for name in ("program", "pins", "run"))
    sh("ip link add cwaqv0 type veth peer name cwaqv1")
    try:
        shutil.copy(program(), binary)
        for made in (pins, run):
            made.mkdir()
            made.chmod(0o777)
        sh(f"mount -t bpf -o mode=0777 bpf {pins}")
        words += [str(binary), "--pins", str(pins), "--run", str(run)]
        file = run / "tenants.toml"
        # Without CAP_PERFMON the verifier follows more ways: all kinds of match at once, both ways.
        every = (
            'mark = [1], vlan = [1], destination = ["10.0.0.0/8"], source = ["::/0"], source_ports = ["1"], '
            'portless = ["10.0.0.0/8"], ports = ["5201"]'
        )
        asks = "{ share = { weight = 1 }, position = "
        text = TEXT.replace('ports = ["5201"]', every)
        file.write_text(text.replace('position = "egress" }]', f'position = "egress" }}, {asks}"ingress" }}]'))
        for command in (["attach", "cwaqv0", "--tenants", str(file)], ["show", "--json", "--interval", "0"]):
            done = subprocess.run([*words, *command], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        done = subprocess.run([*words, "detach", "cwaqv0"], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "as it was" in done.stdout, done.stderr
    finally:
        sh("ip link del cwaqv0")
        sh(f"umount {pins}", check=False)
        binary.unlink(missing_ok=True)
        pins.rmdir()
        shutil.rmtree(run)


def a_device_goes_and_returns(world: World, folder: Path) -> None:
    before = counted()
    with tenants_file(folder, TEXT) as path:
        for device, netns in (("out", world.bridge), ("eth0", world.senders[0])):
            attached(world, path, device, netns)
            sh(f"ip -n {netns} link del {device}")
            aq("show", device, "--netns", netns, "--json", "--interval", 0)
            if device == "out":
                sh(f"ip link add eth0 netns {world.receiver} type veth peer name out netns {world.bridge}")
                sh(f"ip -n {world.bridge} link set out master br0")
                sh(f"ip -n {world.bridge} link set out up")
                sh(f"ip -n {world.receiver} addr add {world.address}/16 dev eth0")
                sh(f"ip -n {world.receiver} link set eth0 up")
                attached(world, path, device, netns)
                time.sleep(0.5)
                got = send(world, [Sender("a", 5_201, "cubic", 2)], 3.0)
                assert got["a"].wire_bps < 60e6, got
            aq("detach", device, "--netns", netns)
    settled(before)


def who_keeps_a_device_attaches_again(world: World, folder: Path) -> None:
    """`attach --keep` sees a device go and return, with two capabilities, and ends when it is told or detached."""
    netns, device = world.senders[0], "cwaqv0"
    sh(f"ip -n {netns} link add {device} type veth peer name cwaqv1")
    with tenants_file(folder, TEXT) as path:
        words = [str(program()), "attach", device, "--netns", netns, "--tenants", str(path), "--keep"]
        keeper = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(3):
                until(lambda: enforcing(netns, device))
                sh(f"ip -n {netns} link del {device}")
                until(lambda: not enforcing(netns, device))
                time.sleep(0.5)
                sh(f"ip -n {netns} link add {device} type veth peer name cwaqv1")
            until(lambda: enforcing(netns, device))
            rights = Path(f"/proc/{keeper.pid}/status").read_text()
            # Bits 12 and 39: network administration, BPF.
            assert f"CapEff:\t{1 << 12 | 1 << 39:016x}" in rights, rights
            aq("detach", device, "--netns", netns)
            assert keeper.wait(timeout=5) == 0, keeper.stderr and keeper.stderr.read()
            said = keeper.stdout.read() if keeper.stdout else ""
            assert said.splitlines().count(f"{device}: the device is gone") == 3 and said.count("egress by tcx") == 4, (
                said
            )
        finally:
            keeper.kill()
            keeper.wait()
    sh(f"ip -n {netns} link del {device}")


def until(holds: Callable[[], bool], seconds: float = 8.0) -> None:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not come about"
        time.sleep(0.05)


def round_trips_are_taken_from_connections(world: World, folder: Path) -> None:
    sender = world.senders[0]
    with tenants_file(folder, TEXT) as path:
        assert "since no TCP connection of eth0 tells another" in attached(world, path, "eth0", sender)
        world.start("iperf3 -s -1 -p 5201", world.receiver)
        time.sleep(0.3)
        world.start(f"iperf3 -c {world.address} -p 5201 -P 2 -t 8 -b 20M", sender)
        time.sleep(2.0)
        said = attached(world, path, "eth0", sender)
        assert "the longest of 2 TCP connections" in said, said
        lines = sh("ss -tinH state established", netns=sender).split()
        least = [float(word.split(":")[1]) for word in lines if word.startswith("minrtt:")]
        told = re.search(r"round trip (\d+)us", said)
        assert told and abs(int(told[1]) / 1_000 - max(least)) < 0.05, (said, least)
    with tenants_file(folder, TEXT.replace("[link]", '[link]\nrtt = "1us"')) as path:
        done = aq("attach", "eth0", "--netns", sender, "--tenants", path)
        assert "link.rtt is 1us, but" in done.stderr, done.stderr
    aq("detach", "eth0", "--netns", sender)


def a_scenarios_entities_are_attached(world: World, folder: Path) -> None:
    path = folder / "two.toml"
    entity = """
        [[entity]]
        name = "{0}"
        traffic = ["{0}"]
        request = [{{ share = {{ weight = {1} }}, link = ["left", "right"], position = "ingress" }}]
        [[traffic]]
        name = "{0}"
        transport = "cubic"
        sizes = {{ constant = "1MB" }}
        senders = "{1}"
        pattern = {{ stride = {{ by = 4 }} }}
        arrivals = "all_at_once"
    """
    fabric = 'hosts_per_side = 4\nhost_rate = "1Gbps"\nbottleneck_rate = "200Mbps"'
    before = f"sharing = {{ aq = {{ headroom = 0.02 }} }}\n[fabric.dumbbell]\n{fabric}\n"
    path.write_text(before + entity.format("a", 1) + entity.format("b", 3))
    words = ["attach", "out", "--netns", world.bridge, "--scenario", path, "--match", "a=ports:5201"]
    refuses("--match b=", *words)
    refuses('no entity "c"', *words, "--match", "b=mark:1", "--match", "c=mark:2")
    aq(*words, "--match", "b=ports:5202")
    shown = json.loads(aq("show", "out", "--netns", world.bridge, "--json", "--interval", 0).stdout)
    rates = {line["tenant"]: line["allocated_bps"] for line in shown}
    assert abs(rates["a"] - 49e6) < 1e3 and abs(rates["b"] - 147e6) < 1e3, rates
    # As a file of tenants, it is the same: no tenant joins or leaves.
    matches = ["--match", "a=ports:5201", "--match", "b=ports:5202"]
    with tenants_file(folder, aq("tenants", "--scenario", path, *matches).stdout) as written:
        assert "0 joined, 0 left" in attached(world, written)
    aq("detach", "out", "--netns", world.bridge)


def a_vlan_is_told(world: World, folder: Path) -> None:
    """Tagged frames, as they come in by a device: the kernel holds the tag beside the packet."""
    text = TEXT.replace('ports = ["5201"]', "vlan = [42]").replace('"egress"', '"ingress"')
    frame = bytes.fromhex("ffffffffffff 020000000001 8100 002a 0800 45000032 00000000 40110000 0a610001 0a61fffe")
    send_it = f"[s.send({frame + bytes(60)!r}) for _ in range(9)]"
    code = f"import socket; s = socket.socket(17, 3); s.bind(('eth0', 0)); {send_it}"
    with tenants_file(folder, text) as path:
        attached(world, path, "in0")
        words = ["ip", "netns", "exec", world.senders[0], sys.executable, "-c", code]
        subprocess.run(words, check=True)
        shown = json.loads(aq("show", "in0", "--netns", world.bridge, "--json", "--interval", 0).stdout)
        packets = {line["tenant"]: line["packets"] for line in shown}
        assert packets["a"] == 9 and packets["b"] == 0, packets
        aq("detach", "in0", "--netns", world.bridge)


def idle_shares_are_lent_while_the_daemon_runs(world: World, folder: Path) -> None:
    world.rto_min(5_000)
    with tenants_file(folder, tenants_toml(200e6, TWO, DIVIDES, 'timeout = "5ms"')) as path:
        attached(world, path)
        words = [str(program()), "divide", "out", "--netns", world.bridge]
        daemon = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        try:
            alone = send(world, [Sender("a", 5_201, "cubic", 4)], 4.0)["a"].wire_bps
            assert alone > 160e6, alone
            both = send(world, [Sender("a", 5_201, "cubic", 4), Sender("b", 5_202, "cubic", 4)], 6.0, skip=2)
            assert 2.5 < both["b"].wire_bps / both["a"].wire_bps < 3.5, both
            refused = aq("divide", "out", "--netns", world.bridge, check=False)
            assert "another clearway-aq" in refused.stderr, refused.stderr
            rights = Path(f"/proc/{daemon.pid}/status").read_text()
            assert "CapEff:\t0000000000000000" in rights
        finally:
            daemon.terminate()
            assert daemon.wait(timeout=10) == 0, daemon.stderr and daemon.stderr.read()
        shown = json.loads(aq("show", "out", "--netns", world.bridge, "--json", "--interval", 0).stdout)
        rates = {line["tenant"]: line["allocated_bps"] for line in shown}
        assert abs(rates["a"] - 50e6) < 1e3 and abs(rates["b"] - 150e6) < 1e3, rates
        # Killed, it leaves rates as they are: none below its guarantee.
        daemon = subprocess.Popen(words)
        send(world, [Sender("a", 5_201, "cubic", 4)], 2.0)
        daemon.kill()
        daemon.wait()
        shown = json.loads(aq("show", "out", "--netns", world.bridge, "--json", "--interval", 0).stdout)
        assert all(line["allocated_bps"] >= rates[line["tenant"]] - 1_000 for line in shown), shown
        aq("detach", "out", "--netns", world.bridge)


def counters_are_shown(world: World, folder: Path) -> None:
    with tenants_file(folder, TEXT) as path:
        attached(world, path)
        send(world, [Sender("a", 5_201, "cubic", 2)], 2.0, skip=0)
        text = aq("show", "out", "--netns", world.bridge, "--prometheus", 0).stdout
        assert f'clearway_aq_drops_total{{device="out",netns="{world.bridge}",position="egress",tenant="a"}}' in text
        words = [str(program()), "show", "out", "--netns", world.bridge, "--prometheus", "19121"]
        server = subprocess.Popen(words)
        try:
            time.sleep(0.3)
            with urllib.request.urlopen("http://127.0.0.1:19121/metrics", timeout=5) as answer:
                assert b"clearway_aq_bytes_total" in answer.read()
        finally:
            server.kill()
            server.wait()
        shown = aq("show", "out", "--netns", world.bridge, "--count", 1, "--interval", 0.2).stdout
        assert "weight 3" in shown, shown
        aq("detach", "out", "--netns", world.bridge)


def a_cgroup_is_told(world: World, folder: Path) -> None:
    """Packets of processes in a cgroup, whatever its depth, belong to it at their own egress."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mount = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
    if mount is None:
        print("    skipped: no cgroups of version 2 are mounted here")
        return
    group, inner = mount / "cwaq", mount / "cwaq" / "inner"
    inner.mkdir(parents=True)
    try:
        text = TEXT.replace('ports = ["5201"]', 'cgroup = ["/cwaq"]')
        with tenants_file(folder, text) as path:
            attached(world, path, "eth0", world.senders[0])
            server = world.start("iperf3 -s -1 -p 5301", world.receiver)
            time.sleep(0.3)
            into = f"echo $$ > {inner}/cgroup.procs && exec ip netns exec {world.senders[0]}"
            words = ["sh", "-c", f"{into} iperf3 -c {world.address} -p 5301 -t 2 -J"]
            subprocess.run(words, check=True, capture_output=True)
            server.kill()
            shown = json.loads(aq("show", "eth0", "--netns", world.senders[0], "--json", "--interval", 0).stdout)
            packets = {line["tenant"]: line["packets"] for line in shown}
            assert packets["a"] > 100, packets
            aq("detach", "eth0", "--netns", world.senders[0])
            # Behind another device a packet has no socket any more.
            done = aq("attach", "out", "--netns", world.bridge, "--tenants", path)
            assert "cgroup" in done.stderr, done.stderr
            aq("detach", "out", "--netns", world.bridge)
    finally:
        inner.rmdir()
        group.rmdir()


TESTS: list[Callable[[World, Path], None]] = [
    what_is_wrong_is_said_before_any_work,
    a_device_is_left_as_it_was,
    neighbours_stay,
    two_commands_at_once_do_not_mix,
    tenants_join_and_leave_under_load,
    idle_shares_are_lent_while_the_daemon_runs,
    counters_are_shown,
    a_cgroup_is_told,
    a_scenarios_entities_are_attached,
    a_vlan_is_told,
    round_trips_are_taken_from_connections,
    any_user_reads_counters,
    who_keeps_a_device_attaches_again,
    two_capabilities_are_enough,
    a_device_goes_and_returns,
]


def run(tests: list[Callable[[World, Path], None]], names: list[str], senders: int = 1) -> int:
    """Runs tests, all or those of these names, each in a world of its own; the exit status."""
    if why := missing():
        print(f"skipped: {why}")
        return 0
    failed = 0
    # Mounts of an attach are no leak.
    for test in tests:
        if names and test.__name__ not in names:
            continue
        before = counted()
        try:
            with World(senders) as world, tempfile.TemporaryDirectory() as folder:
                test(world, Path(folder))
            settled(before)
            print(f"ok   {test.__name__}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {test.__name__}: {type(error).__name__}: {error}", flush=True)
            # Its remains are no leak of the next.
            time.sleep(2)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(run(TESTS, sys.argv[1:]))
