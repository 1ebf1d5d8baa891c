"""The daemon of Augmented Queue in a kernel: `python tests/kernel/daemon.py [NAME...]`.

It heals what is removed, follows devices, namespaces and cgroups, survives kills, takes new configurations without a
gap, and serves scrapers. Nothing may leak: programs, maps, links and pins are counted before and after each test.

Tolerances, chosen before any run, none of which depends on how busy the machine is:

- News (of devices, cgroups, files) is tested with looks a minute apart. So a test fails if the
  news does not come, and has ten seconds if it does.
- Under a flood, a tenant's bytes in any span of time, 10 ms or any other, are at most its share's plus its limit plus
  two packets, while tenants and kinds of match change. While shares change too, they are at most its largest share's
  plus two limits: a gap is kept as a time, so a share that falls to a third leaves two thirds of the limit free again.
  A program that was away lets a flood of many times the share pass, and one that forgot a gap another limit. Clocks
  may differ by 0.1%.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attacks import SHARE_BPS, counter, keeps_its_share, neighbour, pins, shown
from faults import DIVIDES, TEXT, TWO, enforcing, run, settled, until
from traffic import Sender, send
from world import PREFIX, World, aq, counted, program, sh, tenants_toml

# Looks that are so rare that only news can be the cause of what is done, and looks of most tests.
RARE, OFTEN = "60s", "100ms"
KILLS = int(os.environ.get("KILLS", "500"))
# Seconds for which tenants come and go.
COMING = float(os.environ.get("COMING", "60"))
METRICS = "127.0.0.1:19122"
STATUS = Path("/run/clearway-aq/.daemon")


@dataclass
class Device:
    """A device of a configuration."""

    name: str
    netns: str | None
    text: str
    hook: str | None = None


def configure(folder: Path, devices: list[Device], every: str = OFTEN, settings: str = "") -> Path:
    """Writes a configuration with a file of tenants for each device, each whole or not at all."""
    text = f'[daemon]\nevery = "{every}"\n{settings}\n'
    for number, device in enumerate(devices):
        file = folder / f"tenants-{number}.toml"
        replace(file, device.text)
        text += f'[[device]]\nname = "{device.name}"\ntenants = "{file.name}"\n'
        text += f'netns = "{device.netns}"\n' if device.netns else ""
        text += f'hook = "{device.hook}"\n' if device.hook else ""
    return replace(folder / "aqd.toml", text)


def replace(path: Path, text: str) -> Path:
    """Writes a file, unless it has this text already."""
    if not path.exists() or path.read_text() != text:
        new = path.with_suffix(".new")
        new.write_text(text)
        new.rename(path)
    return path


class Daemon:
    """A daemon that runs. `ready` is whether it is waited for."""

    def __init__(self, config: Path | None, *, ready: bool = True, netns: str | None = None) -> None:
        words = [f"--net=/run/netns/{netns}"] if netns else []
        # Only the network's namespace is entered: pins stay where they are.
        words = ["nsenter", *words, str(program()), "daemon"] if netns else [str(program()), "daemon"]
        self.folder = tempfile.TemporaryDirectory()
        name = f"{self.folder.name}/notify"
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(name)
        variables = {**os.environ, "NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000000"}
        self.process = subprocess.Popen(
            [*words, *([str(config)] if config else [])], stderr=subprocess.PIPE, text=True, env=variables
        )
        self.said: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if ready:
            try:
                self.hears("READY=1")
            except AssertionError:
                self.end(signal.SIGKILL)
                raise

    def _read(self) -> None:
        assert self.process.stderr
        self.said.extend(iter(self.process.stderr.readline, ""))

    def hears(self, state: str, seconds: float = 10.0) -> None:
        """Waits until the daemon has told systemd a state."""
        self.heard.settimeout(seconds)
        try:
            while self.heard.recv(4_096).decode() != state:
                pass
        except TimeoutError:
            raise AssertionError(f"it did not say {state}: {self.log()}") from None

    def log(self) -> str:
        return "".join(self.said)

    def end(self, signal_: int = signal.SIGTERM) -> int:
        self.process.send_signal(signal_)
        code = self.process.wait(timeout=10)
        self.reader.join(timeout=10)
        self.heard.close()
        self.folder.cleanup()
        return code


@contextmanager
def daemon(config: Path | None, *, netns: str | None = None) -> Iterator[Daemon]:
    """A daemon, ready; it ends well."""
    running = Daemon(config, netns=netns)
    try:
        yield running
    finally:
        code = running.end()
    assert code == 0, running.log()
    assert "panicked" not in running.log(), running.log()
    assert not STATUS.exists(), "who ended says nothing of itself"


def detached(*devices: tuple[str, str | None]) -> None:
    for device, netns in devices:
        aq("detach", device, *(["--netns", netns] if netns else []), check=False)


def kept(running: Daemon, holds: Callable[[], bool]) -> None:
    """Waits until the daemon has brought something about; if not, what it said is told."""
    try:
        until(holds, 10.0)
    except AssertionError as error:
        raise AssertionError(f"{error}: {running.log()}") from None


def heals(netns: str, device: str = "eth0") -> int:
    """How often a device was healed; -1 while that is under way."""
    done = aq("show", device, "--netns", netns, "--json", "--interval", 0, check=False)
    return int(json.loads(done.stdout)[0]["heals"]) if done.returncode == 0 else -1


def what_is_removed_is_attached_again(world: World, folder: Path) -> None:
    """Links and filters that are taken off, programs that are put before ours, records and pins that are lost."""
    sender, other = world.senders
    devices = [Device("eth0", sender, TEXT), Device("eth0", other, TEXT, "clsact")]
    with daemon(configure(folder, devices)) as running:
        assert shown("eth0", sender)["a"]["enforcing"] is True and shown("eth0", other)["a"]["enforcing"] is True
        assert heals(sender) == 0, "to attach is not to heal"
        begun = counted()
        sh(f"bpftool link detach pinned {pins('eth0', sender)}/link")
        kept(running, lambda: heals(sender) == 1 and enforcing(sender))
        (pins("eth0", sender) / "link").unlink()
        kept(running, lambda: heals(sender) == 2 and enforcing(sender))
        with neighbour(world, "first"):
            kept(running, lambda: heals(sender) == 3 and enforcing(sender))
            keeps_its_share(world)
        sh("tc filter del dev eth0 egress", netns=other)
        kept(running, lambda: heals(other) == 1 and enforcing(other))
        sh("tc qdisc del dev eth0 clsact", netns=other)
        kept(running, lambda: heals(other) == 2 and enforcing(other))
        said = aq("show", "eth0", "--netns", sender, "--count", 1, "--interval", 0).stdout
        assert "healed 3 times" in said and "daemon: process" in said, said
        # By a command, too; the configuration decides.
        aq("detach", "eth0", "--netns", sender)
        kept(running, lambda: enforcing(sender))
        record = Path(f"/run/clearway-aq/eth0@{sender}.json")
        record.unlink()
        kept(running, lambda: record.exists() and enforcing(sender))
        settled(begun)
    # Nothing but the lines for a journal, each with its level.
    assert all(re.match(r"<[3-6]>", line) for line in running.said), running.log()
    assert enforcing(sender), "what is attached stays"
    detached(("eth0", sender), ("eth0", other))


def a_device_is_followed(world: World, folder: Path) -> None:
    """Renamed, made again, its name taken by another, and its namespace removed and made again; by news alone."""
    home, device = f"{PREFIX}d0", "d0"

    def make() -> None:
        sh(f"ip -n {home} link add d0 type veth peer name d1")
        sh(f"ip -n {home} link set d0 up")
        sh(f"ip -n {home} link set d1 up")

    sh(f"ip netns add {home}")
    make()
    other = TEXT.replace("weight = 3", "weight = 1")
    with daemon(configure(folder, [Device(device, home, TEXT)], RARE)) as running:
        assert enforcing(home, device)
        sh(f"ip -n {home} link set d0 name d9")
        assert enforcing(home, device), "a link is bound to the device"
        # Its tenants change under its new name.
        configure(folder, [Device(device, home, other)], RARE)
        kept(running, lambda: shown(device, home)["b"]["share"] == "weight 1")
        assert enforcing(home, device)
        # Another device takes the name.
        make_again = f"ip -n {home} link add d0 type veth peer name d2"
        sh(make_again)
        kept(running, lambda: attached_to(home, device) == index(home, "d0") and enforcing(home, device))
        for _ in range(3):
            sh(f"ip -n {home} link del d0")
            sh(make_again)
            kept(running, lambda: attached_to(home, device) == index(home, "d0") and enforcing(home, device))
        sh(f"ip netns del {home}")
        kept(running, lambda: "not there" in running.log())
        # Nothing keeps the namespace alive: its programs go, though the next look is a minute away.
        kept(running, lambda: not links_of("clearway_aq"))
        sh(f"ip netns add {home}")
        make()
        kept(running, lambda: enforcing(home, device))
        running.hears("WATCHDOG=1")
    sh(f"ip netns del {home}")
    detached((device, home))


def links_of(name: str) -> list[Any]:
    """tcx links of programs of a name that are still at a device."""
    ours = {one["id"] for one in json.loads(sh("bpftool -j prog show") or "[]") if one.get("name") == name}
    all_links = json.loads(sh("bpftool -j link show") or "[]")
    return [one for one in all_links if one.get("prog_id") in ours and one.get("ifindex", 0) not in (0, "")]


def index(netns: str, device: str) -> int:
    return int(json.loads(sh(f"ip -n {netns} -j link show dev {device}"))[0]["ifindex"])


def attached_to(netns: str, device: str) -> int:
    """The number of the device of a record; 0 while there is none."""
    record = Path(f"/run/clearway-aq/{device}@{netns}.json")
    try:
        return int(json.loads(record.read_text())["index"])
    except FileNotFoundError:
        return 0


TWENTY = "import socket, sys; s = socket.socket(2, 2); [s.sendto(bytes(9), (sys.argv[1], 9)) for _ in range(20)]"


def a_cgroup_is_followed(world: World, folder: Path) -> None:
    """A service that is started, restarted ten times and stopped; by news alone."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mount = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
    if mount is None:
        print("    skipped: no cgroups of version 2 are mounted here")
        return
    sender, outer = world.senders[0], mount / f"{PREFIX}-slice"
    group = outer / "web.service"
    text = TEXT.replace('ports = ["5201"]', f'cgroup = ["/{outer.name}/{group.name}"]')
    send_it = f"exec ip netns exec {sender} {sys.executable} -c '{TWENTY}' {world.address}"
    try:
        with daemon(configure(folder, [Device("eth0", sender, text)], RARE)) as running:
            line = shown("eth0", sender)["a"]
            assert line["enforcing"] is False and "is not there" in line["trouble"], line
            outer.mkdir()
            for restart in range(11):
                group.mkdir()
                kept(running, lambda: enforcing(sender))
                before = shown("eth0", sender)["a"]["packets"]
                sh_in(group, send_it)
                got = shown("eth0", sender)["a"]["packets"] - before
                assert got == 20, f"{got} packets of 20 after {restart} restarts"
                # The kernel removes a cgroup when its last process has ended.
                until(lambda: removed(group))
        detached(("eth0", sender))
    finally:
        removed(group)
        removed(outer)


def sh_in(group: Path, command: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"echo $$ > {group}/cgroup.procs && {command}"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done


def removed(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def a_daemon_or_command_killed_at_any_moment_leaves_nothing(world: World, folder: Path) -> None:
    """Kills of the daemon while it begins, heals and takes configurations, and of commands beside it."""
    draw = random.Random(64)
    tenants = [{"name": f"t{n}", "port": 10_000 + n, "share": "{ weight = 1 }"} for n in range(200)]
    by_mark = re.sub(r'ports = \["(\d+)"\]', r"mark = [\1]", tenants_toml(1e9, tenants))
    texts = [by_mark, by_mark.replace("mark = [10007]", 'ports = ["80"]'), TEXT]
    sender, begin = world.senders[0], counted()
    kills, unfinished = 0, 0
    record = Path(f"/run/clearway-aq/eth0@{sender}.json")
    while kills < KILLS:
        hook = ("tcx", "clsact")[kills // 50 % 2]
        config = configure(folder, [Device("eth0", sender, draw.choice(texts), hook)], RARE)
        running = Daemon(config, ready=False)
        words = draw.choice([["refresh"], ["detach"], ["attach"], []])
        if words:
            more = ["--tenants", str(folder / "tenants-0.toml"), "--hook", hook] if words == ["attach"] else []
            command = [str(program()), *words, "eth0", "--netns", sender, *more]
            time.sleep(draw.uniform(0, 0.03))
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            beside = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
        time.sleep(draw.uniform(0, 0.06))
        if draw.random() < 0.5:
            configure(folder, [Device("eth0", sender, draw.choice(texts), hook)], RARE)
            time.sleep(draw.uniform(0, 0.03))
        assert "panicked" not in running.log(), running.log()
        kills += running.end(signal.SIGKILL) == -signal.SIGKILL
        if words:
            beside.kill()
            kills += beside.wait() == -signal.SIGKILL
        unfinished += record.exists() and bool(json.loads(record.read_text())["unfinished"])
        if draw.random() < 0.2:
            # The next daemon goes on from what is there: one program with these tenants, and nothing beside it.
            text = draw.choice(texts)
            with daemon(configure(folder, [Device("eth0", sender, text, hook)], RARE)) as after:
                kept(after, lambda: enforcing(sender))
                now = counted()
                links = begin["link"] + (hook == "tcx")
                assert (now["prog"], now["link"]) == (begin["prog"] + 1, links), (begin, now, after.log())
                tenants_now = len(shown("eth0", sender))
                assert tenants_now == 1 + text.count("[[entity]]"), (tenants_now, words, after.log())
        if draw.random() < 0.1:
            # Without the device in its configuration it removes all.
            with daemon(configure(folder, [], RARE)):
                pass
            detached(("eth0", sender))
            settled(begin)
            qdiscs = sh("tc qdisc show dev eth0", netns=sender)
            assert "clsact" not in qdiscs, (qdiscs, words)
    detached(("eth0", sender))
    print(f"    {kills} processes killed, {unfinished} times with work under way")
    assert KILLS < 100 or unfinished > 5, "kills come too early or too late to show anything"


# Packets of a flood with their headers, and a limit that is small beside 10 ms of the shares.
PACKET = 1_400 + 42
LIMIT = 40_000
CAPTURE = """
import socket, struct, sys, time
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)
# SO_TIMESTAMPNS: when the device got it, which is right behind the program.
tap.setsockopt(socket.SOL_SOCKET, 35, 1)
tap.bind(("eth0", 0)); tap.settimeout(0.5)
print("taps", flush=True)
end, out = time.monotonic() + float(sys.argv[1]), open(sys.argv[2], "wb")
while time.monotonic() < end:
    try:
        data, extra, _, place = tap.recvmsg(64, 256, socket.MSG_TRUNC)
    except TimeoutError:
        continue
    # Of IPv4 and UDP, the destination port.
    if place[2] == 4 and data[12:14] == b"\\x08\\x00" and data[23] == 17:
        seconds, nanos = struct.unpack("qq", extra[0][2][:16])
        out.write(struct.pack("<qHH", seconds * 10**9 + nanos, struct.unpack(">H", data[36:38])[0], 1442))
lost = struct.unpack("II", tap.getsockopt(263, 6, 8))[1]
print("lost", lost, flush=True)
"""
FLOOD = """
import socket, sys
socks = [socket.socket(2, 2) for _ in range(2)]
for one, port in zip(socks, (5201, 5202)): one.connect((sys.argv[1], port))
payload = bytes(1400)
while True:
    for one in socks:
        try:
            one.send(payload)
        except OSError:
            pass
"""


def a_new_configuration_leaves_no_gap(world: World, folder: Path) -> None:
    """Two floods while tenants, kinds of match and then shares change every 150 ms, by file and by SIGHUP."""
    settings = f'[sharing.aq]\nheadroom = 0.0\nlimit = {{ fixed = {{ bytes = "{LIMIT}B" }} }}'

    def text(weights: tuple[int, int], number: int) -> str:
        tenants = [
            {"name": name, "port": 5_201 + place, "share": f"{{ weight = {weights[place]} }}"}
            for place, name in enumerate("ab")
        ]
        tenants.append({"name": f"x{number}", "port": 80, "share": '{ absolute = "1Mbps" }'})
        made = tenants_toml(41e6, tenants, settings, 'burst = "2KB"\nrtt = "1ms"\ntimeout = "5ms"')
        # Each kind of match needs another program.
        more = ["mark = [7]", "vlan = [7]", 'source = ["10.1.0.0/16"]', 'destination = ["10.2.0.0/16"]'][: number // 4]
        return made.replace('["5201"]', ", ".join(['["5201"]', *more]))

    same = [text((2, 2), number) for number in range(20)]
    swing = [text([(1, 3), (3, 1), (2, 2)][number % 3], 19) for number in range(20)]
    for what, texts, share, limits in (("tenants", same, 20e6, 1), ("shares", swing, 30e6, 2)):
        flooded(world, folder, what, texts, share, limits)
        detached(("eth0", world.senders[0]))


def flooded(world: World, folder: Path, what: str, texts: list[str], share_bps: float, limits: int) -> None:
    """Floods while configurations follow each other; no tenant may have more than its share and these limits."""
    sender, capture = world.senders[0], folder / "packets"
    with daemon(configure(folder, [Device("eth0", sender, texts[0])])) as running:
        flood = subprocess.Popen(["ip", "netns", "exec", sender, sys.executable, "-c", FLOOD, world.address])
        words = [sys.executable, "-c", CAPTURE, str(0.15 * len(texts) + 2), str(capture)]
        tap = subprocess.Popen(["ip", "netns", "exec", sender, *words], stdout=subprocess.PIPE, text=True)
        try:
            assert tap.stdout and tap.stdout.readline() == "taps\n"
            for change, text in enumerate(texts):
                configure(folder, [Device("eth0", sender, text)])
                if change % 2:
                    running.process.send_signal(signal.SIGHUP)
                time.sleep(0.15)
            lost = tap.stdout.readline().split()
        finally:
            flood.kill()
            flood.wait()
            tap.wait(timeout=20)
        assert lost == ["lost", "0"], lost
        taken = running.log().count("a new configuration")
        assert taken > len(texts) / 2, (taken, len(texts))
    packets = list(struct.iter_unpack("<qHH", capture.read_bytes()))
    drops = {name: line["drops"] for name, line in shown("eth0", sender).items()}
    for port, name in ((5_201, "a"), (5_202, "b")):
        times = sorted(at for at, to, _ in packets if to == port)
        assert len(times) > 1_000 and drops[name] > 100, (len(times), drops, "there was no flood")
        room = limits * LIMIT + 2 * PACKET
        worst, most = over(times, 1.001 * share_bps), in_any(times, 10_000_000)
        print(
            f"    {what}, {name}: {taken} changes; in 10 ms {most} bytes of {share_bps / 800 + room:.0f}, "
            f"above the share in any span {worst:.0f} of {room}"
        )
        assert most <= share_bps / 800 + room, f"{name}: {most} bytes in 10 ms"
        assert worst <= room, f"{name}: {worst:.0f} bytes above its share, of {room}"


def over(times: list[int], bps: float) -> float:
    """The most bytes above a rate in any span of time: a queue that is served at the rate, when it is longest."""
    queue, last, most = 0.0, times[0], 0.0
    for at in times:
        queue = max(0.0, queue - (at - last) * bps / 8e9) + PACKET
        last, most = at, max(most, queue)
    return most


def in_any(times: list[int], span_ns: int) -> int:
    """The most bytes in any span of this length."""
    first, most = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= span_ns:
            first += 1
        most = max(most, last - first + 1)
    return most * PACKET


def many_scrapers_are_served_at_once(world: World, folder: Path) -> None:
    """Twenty, beside one that sends nothing, one that reads nothing, and a hundred that come and go."""
    sender = world.senders[0]
    tenants = [{"name": f"t{n}", "port": 10_000 + n, "share": "{ weight = 1 }"} for n in range(1_000)]
    settings = f'metrics = "{METRICS}"'
    host, port = METRICS.split(":")
    config = configure(folder, [Device("eth0", sender, tenants_toml(1e9, tenants))], OFTEN, settings)
    with daemon(config) as running:
        opened = time.monotonic()
        mute = socket.create_connection((host, int(port)))
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect((host, int(port)))
        deaf.send(b"GET /metrics HTTP/1.1\r\n\r\n")
        rude = [socket.create_connection((host, int(port))) for _ in range(100)]
        for one in rude:
            one.close()
        answers: list[str] = []

        def scrape() -> None:
            for _ in range(5):
                with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=30) as answer:
                    answers.append(answer.read().decode())

        threads = [threading.Thread(target=scrape) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert len(answers) == 100, f"{len(answers)} of 100 answers"
        for text in answers:
            assert text.count("clearway_aq_enforcing{") == 1_001
            assert f'clearway_aq_enforcing{{device="eth0",netns="{sender}",position="egress",tenant="t7"}} 1' in text
            assert "clearway_aq_config_refused 0" in text and "clearway_aq_escaped_bytes_total{" in text
        # The first is still connected: nothing hung up on it to serve the others. After 10 s it would be.
        mute.settimeout(10)
        mute.send(b"GET / HTTP/1.1\r\n\r\n")
        assert mute.recv(12) == b"HTTP/1.1 200" or time.monotonic() - opened > 9
        # A healing goes on while the deaf one hangs.
        sh(f"bpftool link detach pinned {pins('eth0', sender)}/link")
        kept(running, lambda: enforcing(sender))
        # By a socket in the file system, from the next configuration on.
        path = folder / "metrics"
        configure(folder, [Device("eth0", sender, TEXT)], OFTEN, f'metrics = "unix:{path}"')
        kept(running, path.exists)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            kept(running, lambda: b"200 OK" in client.recv(1 << 20))
    assert not path.exists()
    detached(("eth0", sender))


def a_wrong_configuration_is_refused(world: World, folder: Path) -> None:
    """At the beginning by the exit status, later with the old one in force."""
    sender = world.senders[0]

    def ends(config: Path, code: int, why: str, before: list[str] | None = None) -> None:
        words = [*(before or []), str(program()), "daemon", str(config)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
        assert done.returncode == code and why in done.stderr, (code, why, done)

    begin = counted()
    good = [Device("eth0", sender, TEXT)]
    wrong = [
        ("[[device]]\nname = 3", "expected a string"),
        ("[daemon]\nport = 1", "unknown field `port`"),
        ('[daemon]\nmetrics = "0.0.0.0:80"', "from elsewhere"),
        ('[[device]]\nname = "eth0"', "write either tenants"),
        ('[[device]]\nname = "eth0"\ntenants = "absent.toml"', "absent.toml"),
        ('[[device]]\nname = "eth0"\ntenants = "wrong.toml"', "declined"),
    ]
    (folder / "wrong.toml").write_text(TEXT.replace("{ weight = 3 }", '{ absolute = "300Mbps" }'))
    for text, why in wrong:
        ends(replace(folder / "aqd.toml", text), 78, why)
    ends(folder / "absent.toml", 78, "absent.toml")
    ends(configure(folder, good), 77, "CAP_BPF", ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"])
    settled(begin)
    with daemon(configure(folder, good, RARE, f'metrics = "{METRICS}"')) as running:
        ends(folder / "aqd.toml", 75, "another daemon")
        for count, (text, why) in enumerate(wrong, 1):
            replace(folder / "aqd.toml", text)
            kept(running, lambda: running.log().count("is refused, the one before stays") >= count)  # noqa: B023
            assert why in running.said[-1], running.said[-1]
            said = aq("show", "eth0", "--netns", sender, "--count", 1, "--interval", 0).stdout
            assert "the new configuration is refused" in said and why in said, said
        with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=10) as answer:
            assert b"clearway_aq_config_refused 1\n" in answer.read()
        assert enforcing(sender)
        # A wrong file of tenants under a right configuration.
        configure(folder, good, RARE, f'metrics = "{METRICS}"')
        kept(running, lambda: not json.loads(STATUS.read_text())["refused"])
        (folder / "tenants-0.toml").write_text(TEXT.replace("weight", "wait"))
        kept(running, lambda: "wait" in (json.loads(STATUS.read_text())["refused"] or ""))
        assert enforcing(sender) and shown("eth0", sender)["b"]["share"] == "weight 3"
        # Taken out of the configuration, a device is as it was.
        configure(folder, [], RARE)
        kept(running, lambda: not Path(f"/run/clearway-aq/eth0@{sender}.json").exists())
        settled(begin)


def rights_are_dropped(world: World, folder: Path) -> None:
    """Two capabilities; a third only where a device is in another namespace, and no way back to more."""
    bits = {"net_admin": 1 << 12, "sys_admin": 1 << 21, "bpf": 1 << 39}
    home = world.senders[0]
    for config, netns, names in [
        (configure(folder, [Device("eth0", home, TEXT)]), None, ["net_admin", "bpf", "sys_admin"]),
        (configure(folder, [Device("eth0", None, TEXT)]), home, ["net_admin", "bpf"]),
    ]:
        # In the device's own namespace it need not enter one; written again, since the file is the same.
        configure(folder, [Device("eth0", None if netns else home, TEXT)])
        with daemon(config, netns=netns) as running:
            status = Path(f"/proc/{running.process.pid}/status").read_text()
            mask = sum(bits[name] for name in names)
            for key in ("CapEff", "CapPrm", "CapBnd"):
                assert f"{key}:\t{mask:016x}" in status, (key, names, status)
            assert "NoNewPrivs:\t1" in status and "CapInh:\t0000000000000000" in status
            if netns:
                # Of another namespace it can't take a device any more, and says so.
                configure(folder, [Device("eth0", world.bridge, TEXT)])
                kept(running, lambda: "start it again" in running.log())
                place = f"{pins('eth0', home).parent.parent}/eth0/egress/link"
                sh(f"bpftool link detach pinned {place}")
                kept(running, lambda: "attached again" in running.log())
        if netns:
            subprocess.run(
                ["nsenter", f"--net=/run/netns/{netns}", str(program()), "detach", "eth0"],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=60,
            )
        else:
            detached(("eth0", home))


def what_passes_the_program_by_is_told_of(world: World, folder: Path) -> None:
    """A packet socket may leave tc out; the device's own counter tells."""
    sender = world.senders[0]
    frame = bytes.fromhex("ffffffffffff 020000000001 88b5") + bytes(1_486)
    code = (
        "import socket; s = socket.socket(17, 3); s.bind(('eth0', 0)); s.setsockopt(263, 20, 1)\n"
        f"[s.send({frame!r}) for _ in range(10_000)]"
    )
    # Of a queue of 100 KB twice as much may be late, and a megabyte beside it.
    text = TEXT.replace("[link]", '[link]\nqueue = "100KB"')
    with daemon(configure(folder, [Device("eth0", sender, text)])) as running:
        before = counter(sender, "tx_bytes")
        send(world, [Sender("a", 5_201, "cubic", 2)], 2.0, skip=0)
        sent = counter(sender, "tx_bytes") - before
        assert sent > 5e6 and shown("eth0", sender)["a"]["escaped_bytes"] == 0, (sent, shown("eth0", sender)["a"])
        subprocess.run(["ip", "netns", "exec", sender, sys.executable, "-c", code], check=True, timeout=60)
        kept(running, lambda: shown("eth0", sender)["a"]["escaped_bytes"] > 12e6)
        line = shown("eth0", sender)["a"]
        assert line["enforcing"] is False and "did not see" in line["trouble"], line
        assert line["escaped_bytes"] <= 15e6, line
    detached(("eth0", sender))


def idle_shares_are_lent(world: World, folder: Path) -> None:
    """As `divide` lends them, by the daemon; given back when it ends."""
    world.rto_min(5_000)
    text = tenants_toml(200e6, TWO, DIVIDES, 'timeout = "5ms"')
    config = configure(folder, [Device("out", world.bridge, text)])
    with daemon(config):
        alone = send(world, [Sender("a", 5_201, "cubic", 4)], 4.0)["a"].wire_bps
        # Of 200 Mbps a fifth more than its share of 50 would be none; most of it is lent.
        assert alone > 2 * SHARE_BPS, alone
        refused = aq("divide", "out", "--netns", world.bridge, check=False)
        assert "another clearway-aq" in refused.stderr, refused.stderr
    rates = {name: line["allocated_bps"] for name, line in shown("out", world.bridge).items()}
    assert abs(rates["a"] - 50e6) < 1e3 and abs(rates["b"] - 150e6) < 1e3, rates
    detached(("out", world.bridge))


def a_thousand_tenants_come_and_go(world: World, folder: Path) -> None:
    """A thousand are there; a thousand times a minute one leaves and another joins. COMING=600 for ten minutes."""
    sender, device = world.senders[0], "eth0"
    stays = [{"name": f"t{n}", "port": 10_000 + n, "share": "{ weight = 1 }"} for n in range(999)]
    text = tenants_toml(1e9, [*stays, TWO[0]])
    head, *parts = text.split("[[entity]]")
    record = Path(f"/run/clearway-aq/{device}@{sender}.json")
    with daemon(configure(folder, [Device(device, sender, text)], RARE)) as running:
        before, memory, files = counted(), resident(running), descriptors(running)
        began, changes, packets = time.monotonic(), 0, 0
        while time.monotonic() - began < COMING:
            place = changes % 999
            parts[place] = re.sub(r'name = "\w+"', f'name = "n{changes}"', parts[place])
            replace(folder / "tenants-0.toml", "[[entity]]".join([head, *parts]))
            # The next when this one is there.
            waited = time.monotonic()
            while f'"n{changes}"' not in record.read_text():
                assert time.monotonic() - waited < 10, running.log()[-2_000:]
                time.sleep(0.002)
            changes += 1
            if changes % 100 == 0:
                words = [sys.executable, "-c", TWENTY, world.address]
                subprocess.run(["ip", "netns", "exec", sender, *words], check=True)
                now = shown(device, sender)["(default)"]["packets"]
                assert now > packets, "the counters of who stays go on"
                packets = now
        kept(running, lambda: len(shown(device, sender)) == 1_001 and enforcing(sender))
        settled(before)
        grown = resident(running) / memory
        print(f"    {changes} changes in {COMING:.0f} s; memory {grown:.2f} of before")
        assert running.log().count("joined") >= changes, "each was one change"
        assert descriptors(running) == files and grown < 2, (files, descriptors(running), grown)
    detached((device, sender))


def resident(running: Daemon) -> int:
    text = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0])


def descriptors(running: Daemon) -> int:
    return len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))


def the_unit_is_a_unit(world: World, folder: Path) -> None:
    """By systemd's own check, where that is installed."""
    unit = Path(__file__).parents[2] / "examples/aq-linux/clearway-aqd.service"
    text = unit.read_text()
    assert "Type=notify" in text and "WatchdogSec=" in text and "AmbientCapabilities" not in text
    copy = folder / unit.name
    # Its program must be there.
    copy.write_text(text.replace("/usr/local/bin/clearway-aq", str(program())))
    try:
        done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        print("    skipped: systemd-analyze is not installed")
        return
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert done.returncode == 0 and not said, done.stderr


TESTS: list[Callable[[World, Path], None]] = [
    a_wrong_configuration_is_refused,
    rights_are_dropped,
    what_is_removed_is_attached_again,
    a_device_is_followed,
    a_cgroup_is_followed,
    a_new_configuration_leaves_no_gap,
    many_scrapers_are_served_at_once,
    what_passes_the_program_by_is_told_of,
    idle_shares_are_lent,
    a_thousand_tenants_come_and_go,
    the_unit_is_a_unit,
    a_daemon_or_command_killed_at_any_moment_leaves_nothing,
]

if __name__ == "__main__":
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 6):
        print("skipped: this kernel has no tcx")
        sys.exit(0)
    sys.exit(run(TESTS, sys.argv[1:], senders=2))
