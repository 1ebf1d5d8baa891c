"""Ways past a share of Augmented Queue that must not exist: `python tests/kernel/attacks.py [NAME...]`.

Other programs at the same hook, before and after; qdiscs that are removed; devices that are renamed, moved or gone;
commands that are killed; fragments, extension headers and tags that hide a port; cgroups that are made again.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faults import TEXT, attached, enforcing, run, settled, until
from traffic import Sender, send
from world import PREFIX, World, aq, counted, program, sh, tenants_file, tenants_toml

TWO = [
    {"name": "a", "port": 5_201, "share": "{ weight = 1 }"},
    {"name": "b", "port": 5_202, "share": "{ weight = 3 }"},
]
# Of 200 Mbps a has a quarter. Over some seconds the limit, 0.6 s of the share, lets it run ahead.
SHARE_BPS = 50e6
SOCKET = "import socket, sys; s = socket.socket"


@contextmanager
def neighbour(
    world: World, place: str, code: int = 0, netns: str | None = None, device: str = "eth0"
) -> Iterator[None]:
    """Another tcx program at egress; by default it returns TCX_PASS."""
    script = Path(__file__).with_name("tcx.py")
    process = world.start(
        f"{sys.executable} {script} {device} egress {place} {code}", netns or world.senders[0], talks=True
    )
    assert process.stdout and process.stdout.readline() == "attached\n", process.stderr and process.stderr.read()
    try:
        yield
    finally:
        process.communicate(timeout=10)


def shown(device: str, netns: str | None) -> dict[str, dict[str, Any]]:
    where = ["--netns", netns] if netns else []
    lines = json.loads(aq("show", device, *where, "--json", "--interval", 0).stdout)
    return {line["tenant"]: line for line in lines}


def sent_bps(world: World, seconds: float = 4.0) -> float:
    """The rate of tenant a with two flows of TCP."""
    return send(world, [Sender("a", 5_201, "cubic", 2)], seconds, skip=2.0)["a"].wire_bps


def keeps_its_share(world: World) -> None:
    """Two-sided: a drop that TCP is told of makes it fall short."""
    got = sent_bps(world)
    assert 0.85 * SHARE_BPS < got < 1.1 * SHARE_BPS, f"{got / 1e6:.1f} Mbps"


def a_program_that_passes_everything_leads_nobody_past(world: World, folder: Path) -> None:
    sender = world.senders[0]
    with tenants_file(folder, TEXT) as path:
        # Attached before ours, at the first place and at the last; then after ours.
        for place in ("first", "last"):
            with neighbour(world, place):
                said = attached(world, path, "eth0", sender)
                assert "before 1 others, which stay" in said, said
                assert shown("eth0", sender)["a"]["enforcing"] is True
                keeps_its_share(world)
                aq("detach", "eth0", "--netns", sender)
        attached(world, path, "eth0", sender)
        with neighbour(world, "last"):
            assert shown("eth0", sender)["a"]["enforcing"] is True
            keeps_its_share(world)
        aq("detach", "eth0", "--netns", sender)


def a_program_put_before_ours_is_told_of_and_overtaken(world: World, folder: Path) -> None:
    sender = world.senders[0]
    with tenants_file(folder, TEXT) as path:
        attached(world, path, "eth0", sender)
        with neighbour(world, "first"):
            line = shown("eth0", sender)["a"]
            assert line["enforcing"] is False and "can pass packets by it" in line["trouble"], line
            table = aq("show", "eth0", "--netns", sender, "--count", 1, "--interval", 0).stdout
            assert "NOT ENFORCED" in table, table
            text = aq("show", "eth0", "--netns", sender, "--prometheus", 0).stdout
            assert 'position="egress",tenant="a"} 0\n' in text.split("clearway_aq_enforcing gauge")[1]
            packets = line["packets"]
            sent_bps(world, 1.0)
            assert shown("eth0", sender)["a"]["packets"] < packets + 100, "it passes ours by"
            before = counted()
            said = aq("refresh", "eth0", "--netns", sender).stdout
            assert "put first" in said, said
            settled(before)
            assert shown("eth0", sender)["a"]["enforcing"] is True
            keeps_its_share(world)
            assert "nothing to heal" in aq("refresh", "eth0", "--netns", sender).stdout
        # Attaching again does it too, and the counters go on.
        packets = shown("eth0", sender)["a"]["packets"]
        with neighbour(world, "first"):
            assert "0 joined" in attached(world, path, "eth0", sender)
            line = shown("eth0", sender)["a"]
            assert line["enforcing"] is True and line["packets"] >= packets, (packets, line)
        aq("detach", "eth0", "--netns", sender)


def a_program_is_replaced_without_a_gap(world: World, folder: Path) -> None:
    """Each new kind of match needs another program; under a flood neither gaps nor counters are lost."""
    sender = world.senders[0]
    more = ["mark = [77]", "vlan = [7]", 'source = ["10.1.0.0/16"]', 'destination = ["10.2.0.0/16"]']
    code = f"{SOCKET}(2, 2)\nwhile True: s.sendto(bytes(1400), ('{world.address}', 5201))"
    with tenants_file(folder, TEXT) as path:
        attached(world, path, "eth0", sender)
        words = ["ip", "netns", "exec", sender, sys.executable, "-c", code]
        flood = subprocess.Popen(words)
        try:
            # Its limit, 0.6 s of its share, is used up.
            time.sleep(2)
            before, began, packets = counter(sender, "tx_bytes"), time.monotonic(), 0
            for count in range(1, 1 + len(more)):
                path.write_text(TEXT.replace('["5201"]', ", ".join(['["5201"]', *more[:count]])))
                said = attached(world, path, "eth0", sender)
                assert "egress by tcx" in said, said
                now = shown("eth0", sender)["a"]["packets"]
                assert now > packets, "its counters go on"
                packets = now
            time.sleep(1)
            got = (counter(sender, "tx_bytes") - before) * 8 / (time.monotonic() - began)
        finally:
            flood.kill()
            flood.wait()
        # A limit used again each time would be four times 0.6 s of its share, within a second or two.
        assert 0.7 * SHARE_BPS < got < 1.2 * SHARE_BPS, f"{got / 1e6:.0f} Mbps"
        aq("detach", "eth0", "--netns", sender)


def other_programs_of_the_chain_go_on(world: World, folder: Path) -> None:
    """Packets that pass ours reach a tcx program behind it, and a filter of clsact behind that."""
    sender = world.senders[0]
    with tenants_file(folder, TEXT) as path:
        attached(world, path, "eth0", sender)
        # It drops everything.
        with neighbour(world, "last", code=2):
            done = subprocess.run(
                ["ip", "netns", "exec", sender, "ping", "-c1", "-W1", world.address], capture_output=True, check=False
            )
            assert b"100% packet loss" in done.stdout, f"the program behind ours sees no packet: {done.stderr!r}"
        sh("tc qdisc add dev eth0 clsact", netns=sender)
        sh("tc filter add dev eth0 egress protocol ip pref 7 u32 match u32 0 0 flowid 1:1", netns=sender)
        with neighbour(world, "last", code=-1):
            keeps_its_share(world)
            now = sh("tc -s filter show dev eth0 egress", netns=sender)
            assert "rule hit" not in now or "rule hit 0" not in now, now
        aq("detach", "eth0", "--netns", sender)
        assert "pref 7" in sh("tc filter show dev eth0 egress", netns=sender)


def removed_qdiscs_take_nothing_away(world: World, folder: Path) -> None:
    sender = world.senders[0]
    with tenants_file(folder, TEXT) as path:
        attached(world, path, "eth0", sender)
        sh("tc qdisc add dev eth0 clsact", netns=sender)
        sh("tc qdisc del dev eth0 clsact", netns=sender)
        sh("tc qdisc replace dev eth0 root pfifo", netns=sender)
        sh("tc qdisc del dev eth0 root", netns=sender)
        keeps_its_share(world)
        aq("detach", "eth0", "--netns", sender)


def a_second_program_of_ours_is_refused(world: World, folder: Path) -> None:
    """Another installation's, with pins and records of its own: packets would be counted twice."""
    sender = world.senders[0]
    elsewhere = ["--pins", "/sys/fs/bpf/", "--run", str(folder / "run")]
    with tenants_file(folder, TEXT) as path:
        for hook in ("tcx", "clsact"):
            words = ["attach", "eth0", "--netns", sender, "--hook", hook, "--tenants", str(path)]
            aq(*words)
            before = counted()
            # The name of the namespace makes other pins and another record.
            words[3] = f"/run/netns/{sender}"
            done = aq(*words, check=False)
            assert done.returncode == 1 and "another clearway-aq" in done.stderr, done
            done = aq(*elsewhere, *words, check=False)
            assert done.returncode == 1 and "another clearway-aq" in done.stderr, done
            settled(before)
            assert shown("eth0", sender)["a"]["enforcing"] is True
            aq("detach", "eth0", "--netns", sender)


def a_lost_record_is_no_obstacle(world: World, folder: Path) -> None:
    """/run may be emptied while the program stands."""
    sender = world.senders[0]
    before = counted()
    record = Path(f"/run/clearway-aq/eth0@{sender}.json")
    with tenants_file(folder, TEXT) as path:
        for hook in ("tcx", "clsact"):
            words = ["attach", "eth0", "--netns", sender, "--hook", hook, "--tenants", path]
            aq(*words)
            record.unlink()
            assert "had no record" in aq("detach", "eth0", "--netns", sender).stdout
            settled(before)
            aq(*words)
            record.unlink()
            done = aq(*words, check=False)
            if hook == "tcx":
                assert "removed pins that had no record" in done.stdout, done
            else:
                # It may be another installation's; who attached it knows.
                assert done.returncode == 1 and "its record was lost" in done.stderr, done
                aq("detach", "eth0", "--netns", sender)
                aq(*words)
            assert shown("eth0", sender)["a"]["enforcing"] is True
            assert counted()["prog"] == before["prog"] + 1, counted()
            aq("detach", "eth0", "--netns", sender)
            sh("tc qdisc del dev eth0 clsact", netns=sender, check=False)


def clsact_says_what_runs_before_it(world: World, folder: Path) -> None:
    """Where it is asked for, or the kernel has no tcx."""
    sender = world.senders[0]
    words = ["attach", "eth0", "--netns", sender, "--hook", "clsact", "--tenants"]
    with tenants_file(folder, TEXT) as path:
        with neighbour(world, "last"):
            before = counted()
            done = aq(*words, path, check=False)
            assert done.returncode == 1 and "run before clsact" in done.stderr, done
            settled(before)
            assert "clsact" not in sh("tc qdisc show dev eth0", netns=sender)
        sh("tc qdisc add dev eth0 clsact", netns=sender)
        sh("tc filter add dev eth0 egress protocol ip pref 1 u32 match u32 0 0 flowid 1:1", netns=sender)
        done = aq(*words, path, check=False)
        assert done.returncode == 1 and "has priority 1" in done.stderr, done
        sh("tc qdisc del dev eth0 clsact", netns=sender)
        aq(*words, path)
        assert shown("eth0", sender)["a"]["enforcing"] is True, shown("eth0", sender)["a"]
        keeps_its_share(world)
        with neighbour(world, "last"):
            line = shown("eth0", sender)["a"]
            assert line["enforcing"] is False and "run before its filter" in line["trouble"], line
        sh("tc qdisc del dev eth0 clsact", netns=sender)
        line = shown("eth0", sender)["a"]
        assert line["enforcing"] is False and "removed" in line["trouble"], line
        said = aq("refresh", "eth0", "--netns", sender).stdout
        assert "attached again" in said, said
        assert shown("eth0", sender)["a"]["enforcing"] is True
        aq("detach", "eth0", "--netns", sender)


def detach_says_what_is_true(world: World, folder: Path) -> None:
    """Of a device that was renamed, moved or removed, and of a namespace that has no name any more."""
    home, other = f"{PREFIX}d0", f"{PREFIX}d1"
    before = counted()
    with tenants_file(folder, TEXT) as path:
        for hook in ("tcx", "clsact"):

            def make() -> None:
                sh(f"ip netns add {home}")
                sh(f"ip -n {home} link add d0 type veth peer name d1")
                sh(f"ip -n {home} link set d0 up")
                sh(f"ip -n {home} link set d1 up")
                aq("attach", "d0", "--netns", home, "--hook", hook, "--tenants", path)  # noqa: B023

            def bare() -> bool:
                return "clearway_aq" not in sh("bpftool -j prog show")

            def detached(name: str = "d0") -> str:
                done = aq("detach", name, "--netns", home, check=False)
                assert done.returncode == 0, done.stderr
                time.sleep(0.3)
                return done.stdout

            # Renamed: by its old name, by its new one, and attached again under the new one.
            make()
            sh(f"ip -n {home} link set d0 name d9")
            assert "d0 is d9 now: as it was" in detached() and bare()
            aq("attach", "d9", "--netns", home, "--hook", hook, "--tenants", path)
            sh(f"ip -n {home} link set d9 name d8")
            assert "d9 is d8 now: as it was" in detached("d8") and bare()
            aq("attach", "d8", "--netns", home, "--hook", hook, "--tenants", path)
            sh(f"ip -n {home} link set d8 name d7")
            said = aq("attach", "d7", "--netns", home, "--hook", hook, "--tenants", path).stdout
            assert "d8 is d7 now" in said and sh("bpftool -j prog show").count('"clearway_aq"') == 1, said
            # Gone.
            sh(f"ip -n {home} link del d7")
            assert "the device is gone" in detached("d7") and bare()
            # Nothing there, and an absent device.
            refused = aq("detach", "d7", "--netns", home, check=False)
            assert refused.returncode == 1 and "nothing of ours" in refused.stderr
            sh(f"ip netns del {home}")
            # A namespace that is gone, one that lives without a name, and a name that another namespace has now.
            make()
            sh(f"ip netns del {home}")
            time.sleep(0.5)
            assert "its namespace is gone" in detached() and bare()
            make()
            with held(home):
                sh(f"ip netns del {home}")
                done = aq("detach", "d0", "--netns", home, check=False)
                if hook == "tcx":
                    assert "lives" in done.stdout, done
                    assert bare()
                else:
                    assert done.returncode == 1 and "no name any more" in done.stderr, done
            time.sleep(0.5)
            aq("detach", "d0", "--netns", home, check=False)
            make()
            sh(f"ip netns del {home}")
            time.sleep(0.5)
            sh(f"ip netns add {home}")
            sh(f"ip -n {home} link add d0 type veth peer name d1")
            assert "as it was" not in detached() and bare()
            sh(f"ip netns del {home}")
        # A device that was moved: a tcx link goes along.
        make()
        sh(f"ip netns add {other}")
        sh(f"ip -n {home} link set d0 netns {other}")
        said = detached()
        assert ("in another namespace now" in said or "the device is gone" in said) and bare(), said
        sh(f"ip netns del {home}")
        sh(f"ip netns del {other}")
    settled(before)


@contextmanager
def held(netns: str) -> Iterator[None]:
    """A process in a namespace, which keeps it alive."""
    process = subprocess.Popen(["ip", "netns", "exec", netns, "sleep", "60"])
    time.sleep(0.2)
    try:
        yield
    finally:
        process.kill()
        process.wait()


KILLS = 90


def a_command_killed_at_any_moment_leaves_nothing_and_stacks_nothing(world: World, folder: Path) -> None:
    """Attach, change, refresh and detach, each killed after a random time; then the next command puts all right."""
    draw = random.Random(63)
    tenants = [{"name": f"t{n}", "port": 10_000 + n, "share": "{ weight = 1 }"} for n in range(300)]
    files = [folder / f"{PREFIX}-{n}.toml" for n in range(2)]
    other = [*tenants[100:], {"name": "x", "port": 80, "share": "{ weight = 5 }"}]
    for file, those in zip(files, (tenants, other), strict=True):
        # By mark: a map of few entries is read sooner than one of all ports.
        text = re.sub(r'ports = \["(\d+)"\]', r"mark = [\1]", tenants_toml(1e9, those))
        # And one by port: another kind of match makes another program.
        file.write_text(text.replace("mark = [80]", 'ports = ["80"]'))
    netns, device = world.senders[0], "eth0"
    begin, kills, stuck = counted(), 0, 0
    while kills < KILLS:
        hook = ("tcx", "clsact")[kills // 15 % 2]
        words = [
            ["attach", device, "--netns", netns, "--hook", hook, "--tenants", str(draw.choice(files))],
            ["detach", device, "--netns", netns],
            ["refresh", device, "--netns", netns],
        ]
        command = draw.choices(words, weights=[4, 2, 1])[0]
        process = subprocess.Popen([str(program()), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0, 0.12))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        # The command's child may hold its lock for an instant more.
        time.sleep(0.01)
        done = aq("show", device, "--netns", netns, "--json", "--interval", 0, check=False)
        lines = json.loads(done.stdout) if done.returncode == 0 else []
        record = Path(f"/run/clearway-aq/{device}@{netns}.json")
        if record.exists() and json.loads(record.read_text())["unfinished"]:
            stuck += 1
            assert not any(line["enforcing"] for line in lines), lines[0]
        if draw.random() < 0.5:
            # The next command is another attach: one program stands there, with these tenants and no others.
            file = draw.choice(files)
            aq("attach", device, "--netns", netns, "--hook", hook, "--tenants", file)
            lines = shown(device, netns)
            assert lines["t200"]["enforcing"] is True, lines["t200"]
            assert ("x" in lines) == (file == files[1])
            now = counted()
            assert (now["prog"], now["link"]) == (begin["prog"] + 1, begin["link"] + (hook == "tcx")), (begin, now)
            keys = json.loads(sh(f"bpftool -j map dump pinned {pins(device, netns)}/keys"))
            assert len(keys) == (300 if file == files[0] else 200), f"{len(keys)} marks"
        else:
            done = aq("detach", device, "--netns", netns, check=False)
            assert done.returncode == 0 or "nothing of ours" in done.stderr, done.stderr
            settled(begin)
            assert "clsact" not in sh("tc qdisc show dev eth0", netns=netns), command
    aq("detach", device, "--netns", netns, check=False)
    print(f"    {kills} commands killed, {stuck} of them at work")
    assert stuck > 5, "kills come too early or too late to show anything"


def pins(device: str, netns: str) -> Path:
    return Path(f"/sys/fs/bpf/clearway-aq/{device}@{netns}/egress")


def fragments_belong_to_their_first(world: World, folder: Path) -> None:
    """UDP in datagrams of 8,000 bytes: five of six fragments have no ports."""
    with tenants_file(folder, TEXT) as path:
        attached(world, path)
        before = arrived(world)
        server = world.start("iperf3 -s -1 -p 5201", world.receiver)
        time.sleep(0.3)
        client = world.start(f"iperf3 -c {world.address} -p 5201 -u -b 300M -l 8000 -t 5", world.senders[0])
        client.wait(timeout=30)
        server.kill()
        got = (arrived(world) - before) * 8 / 5
        lines = shown("out", world.bridge)
        assert 0.5 * SHARE_BPS < got < 1.5 * SHARE_BPS, f"{got / 1e6:.0f} Mbps of {SHARE_BPS / 1e6:.0f}"
        assert lines["a"]["drops"] > 1_000 and lines["a"]["hidden"] == 0, lines["a"]
        aq("detach", "out", "--netns", world.bridge)


def arrived(world: World) -> int:
    """Bytes that the receiver's device has seen."""
    return counter(world.receiver, "rx_bytes")


def counter(netns: str, name: str) -> int:
    """A counter of a namespace's eth0."""
    return int(sh(f"cat /sys/class/net/eth0/statistics/{name}", netns=netns))


def headers_before_the_transports_hide_no_port(world: World, folder: Path) -> None:
    """UDP over IPv6 with destination options."""
    sender = world.senders[0]
    for netns, address in ((sender, "fd97::1"), (world.receiver, "fd97::2")):
        sh(f"ip -n {netns} addr add {address}/64 dev eth0 nodad")
    time.sleep(0.5)
    # IPV6_DSTOPTS: 8 bytes of padding. The limit is 0.6 s of the share.
    code = (
        f"{SOCKET}(10, 2); s.setsockopt(41, 59, bytes([0, 0, 1, 4, 0, 0, 0, 0]))\n"
        "import time; end = time.monotonic() + 4\n"
        "while time.monotonic() < end: s.sendto(bytes(1200), ('fd97::2', 5201))"
    )
    with tenants_file(folder, TEXT) as path:
        attached(world, path)
        before = arrived(world)
        subprocess.run(["ip", "netns", "exec", sender, sys.executable, "-c", code], check=True, timeout=60)
        got = (arrived(world) - before) * 8 / 4
        line = shown("out", world.bridge)["a"]
        assert line["packets"] > 1_000 and line["drops"] > 1_000, line
        assert 0.5 * SHARE_BPS < got < 1.5 * SHARE_BPS, f"{got / 1e6:.0f} Mbps of {SHARE_BPS / 1e6:.0f}"
        aq("detach", "out", "--netns", world.bridge)


def a_raw_socket_cannot_call_its_packets_something_else(world: World, folder: Path) -> None:
    """Frames of UDP to a's port from a packet socket that says ARP, and the same with VLAN tags in the frame."""
    sender = world.senders[0]
    mac = json.loads(sh("ip -j link show eth0", netns=world.receiver))[0]["address"].replace(":", "")
    addresses = f"{mac} 020000000001"
    packet = "0800 45000578 00000000 40110000 0a610001 0a61fffe 04d2 1451 0564 0000"
    with tenants_file(folder, TEXT) as path:
        attached(world, path, "eth0", sender)
        for protocol, tags in (("0x0806", ""), ("0x8100", "8100 0007"), ("0x88a8", "88a8 0007 8100 0008")):
            frame = bytes.fromhex(f"{addresses} {tags} {packet}") + bytes(1_372)
            code = (
                f"{SOCKET}(17, 3); s.bind(('eth0', {protocol}))\n"
                f"import time; frame = bytes.fromhex('{frame.hex()}'); end = time.monotonic() + 3\n"
                "while time.monotonic() < end:\n for _ in range(100): s.send(frame)"
            )
            before = counter(sender, "tx_bytes")
            subprocess.run(["ip", "netns", "exec", sender, sys.executable, "-c", code], check=True, timeout=60)
            got = (counter(sender, "tx_bytes") - before) * 8 / 3
            assert got > 0.5 * SHARE_BPS, f"{protocol}: {got / 1e6:.0f} Mbps"
            assert got < 1.7 * SHARE_BPS, f"{protocol}: {got / 1e6:.0f} Mbps of {SHARE_BPS / 1e6:.0f}"
        line = shown("eth0", sender)["a"]
        assert line["drops"] > 1_000, line
        aq("detach", "eth0", "--netns", sender)


def a_cgroup_that_is_made_again_is_told_of_and_found(world: World, folder: Path) -> None:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mount = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
    if mount is None:
        print("    skipped: no cgroups of version 2 are mounted here")
        return
    sender, group = world.senders[0], mount / f"{PREFIX}-again"
    text = TEXT.replace('ports = ["5201"]', f'cgroup = ["/{group.name}"]')

    def sends() -> float:
        server = world.start("iperf3 -s -1 -p 5301 -J", world.receiver)
        time.sleep(0.3)
        into = f"echo $$ > {group}/cgroup.procs && exec ip netns exec {sender}"
        subprocess.run(
            ["sh", "-c", f"{into} iperf3 -c {world.address} -p 5301 -t 5 -P 2"], check=True, capture_output=True
        )
        out, _ = server.communicate(timeout=20)
        return float(json.loads(out)["end"]["sum_received"]["bits_per_second"])

    group.mkdir()
    try:
        with tenants_file(folder, text) as path:
            attached(world, path, "eth0", sender)
            assert sends() < 1.5 * SHARE_BPS
            group.rmdir()
            group.mkdir()
            line = shown("eth0", sender)["a"]
            if line["enforcing"] is False:
                assert "was made again" in line["trouble"], line
                assert "1 cgroups were made again" in aq("refresh", "eth0", "--netns", sender).stdout
            assert shown("eth0", sender)["a"]["enforcing"] is True
            got = sends()
            assert got < 1.5 * SHARE_BPS, f"{got / 1e6:.0f} Mbps"
            words = [str(program()), "attach", "eth0", "--netns", sender, "--tenants", str(path), "--keep"]
            keeper = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            try:
                group.rmdir()
                group.mkdir()
                until(lambda: enforcing(sender))
            finally:
                keeper.kill()
                keeper.wait()
            aq("detach", "eth0", "--netns", sender)
    finally:
        group.rmdir()


def who_keeps_a_device_heals_it(world: World, folder: Path) -> None:
    """`attach --keep` sees a program that came before ours, and a link that was taken off."""
    sender = world.senders[0]
    with tenants_file(folder, TEXT) as path:
        words = [str(program()), "attach", "eth0", "--netns", sender, "--tenants", str(path), "--keep"]
        keeper = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: enforcing(sender))
            with neighbour(world, "first"):
                # From here on it stands behind, until the keeper sees it.
                until(lambda: enforcing(sender))
                keeps_its_share(world)
            sh(f"bpftool link detach pinned {pins('eth0', sender)}/link")
            until(lambda: enforcing(sender))
            keeps_its_share(world)
            aq("detach", "eth0", "--netns", sender)
            assert keeper.wait(timeout=5) == 0, keeper.stderr and keeper.stderr.read()
            said = keeper.stdout.read() if keeper.stdout else ""
            assert "put first" in said and "attached again" in said, said
        finally:
            keeper.kill()
            keeper.wait()


TESTS: list[Callable[[World, Path], None]] = [
    a_program_that_passes_everything_leads_nobody_past,
    a_program_put_before_ours_is_told_of_and_overtaken,
    a_program_is_replaced_without_a_gap,
    other_programs_of_the_chain_go_on,
    removed_qdiscs_take_nothing_away,
    a_second_program_of_ours_is_refused,
    a_lost_record_is_no_obstacle,
    clsact_says_what_runs_before_it,
    detach_says_what_is_true,
    a_command_killed_at_any_moment_leaves_nothing_and_stacks_nothing,
    fragments_belong_to_their_first,
    headers_before_the_transports_hide_no_port,
    a_raw_socket_cannot_call_its_packets_something_else,
    a_cgroup_that_is_made_again_is_told_of_and_found,
    who_keeps_a_device_heals_it,
]

if __name__ == "__main__":
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 6):
        print("skipped: this kernel has no tcx")
        sys.exit(0)
    sys.exit(run(TESTS, sys.argv[1:]))
