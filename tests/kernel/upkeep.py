"""The daemon's cost, and how soon it heals: the experiment `daemon` of experiments.py."""

from __future__ import annotations

import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from attacks import pins
from containers import AQ, RATES, Network, container, host
from daemon import METRICS, Daemon, Device, attached_to, configure, daemon, descriptors, detached, index, resident
from faults import TEXT, enforcing
from world import World, sh, tenants_toml

# Chosen before any run: what is noticed at the next look is healed a quarter of a second after it at most; news takes
# as long; the daemon takes a hundredth of a processor.
LATE, CPU = 0.25, 0.01
TRIES = 5


def upkeep() -> dict[str, Any]:
    """How soon the daemon heals, what it costs with 1,000 tenants, and what a container's start takes."""
    rows: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []

    def row(what: str, limit: float | None = None, **values: float) -> None:
        rows.append({"what": what, "how": "daemon", **values})
        print(" ", rows[-1])
        if limit is not None:
            ours = values["seconds"]
            one = {"what": f"{what}, s", "ours": ours, "wanted": limit, "tolerance": 0.0, "holds": ours <= limit}
            checks.append(one)

    thousand = [{"name": f"t{n}", "port": 10_000 + n, "share": "{ weight = 1 }"} for n in range(1_000)]
    text = tenants_toml(1e9, thousand)
    with World() as world, tempfile.TemporaryDirectory() as made:
        folder, sender = Path(made), world.senders[0]
        link = pins("eth0", sender) / "link"
        with daemon(configure(folder, [Device("eth0", sender, TEXT)], "1s")):
            took = [timed(lambda: sh(f"bpftool link detach pinned {link}"), sender) for _ in range(TRIES)]
            row("a removed link is attached again, looks a second apart, longest", 1 + LATE, seconds=max(took))
        detached(("eth0", sender))
        with daemon(configure(folder, [Device("d0", sender, TEXT)], "60s")):
            took = [remade(sender) for _ in range(TRIES)]
            row("a device that is made again has its shares", LATE, seconds=median(took))
        detached(("d0", sender))
        settings = f'metrics = "{METRICS}"'
        with daemon(configure(folder, [Device("eth0", sender, text)], "1s", settings)) as running:
            took = [changed(folder, sender, text, number, settings) for number in range(TRIES)]
            row("of 1,000 tenants another one is there after its file is written", LATE, seconds=median(took))
            before, began = spent(running), time.monotonic()
            time.sleep(10)
            used = (spent(running) - before) / (time.monotonic() - began)
            row("processor time of a second, 1,000 tenants", CPU, seconds=used)
            row("memory, 1,000 tenants", mb=resident(running) / 1e3)
            took = []
            for _ in range(TRIES):
                at = time.monotonic()
                with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=10) as answer:
                    answer.read()
                took.append(time.monotonic() - at)
            row("a scrape of 1,000 tenants", LATE, seconds=median(took))
            assert descriptors(running) < 50
        detached(("eth0", sender))
    with World(), tempfile.TemporaryDirectory() as made, host(Path(made)), container("c0") as name:
        network = Network(Path(made), [{"type": "veth"}, AQ])
        result, took = network.add(name, RATES), []
        for _ in range(TRIES):
            at = time.monotonic()
            code, _ = network.call("ADD", AQ, name, result, RATES)
            took.append(time.monotonic() - at)
            assert code == 0
            network.call("DEL", AQ, name, result, RATES)
        rows.append({"what": "CNI ADD of a container with rates", "how": "plugin", "seconds": round(median(took), 4)})
        print(" ", rows[-1])
    for one in rows:
        one.update({key: round(value, 4) for key, value in one.items() if isinstance(value, float)})
    return {"rows": rows, "checks": checks}


def timed(act: Callable[[], object], netns: str) -> float:
    """Seconds from an act until shares are enforced again."""
    act()
    began = time.monotonic()
    while not enforcing(netns):
        assert time.monotonic() - began < 20
    return time.monotonic() - began


def remade(netns: str) -> float:
    sh(f"ip -n {netns} link del d0", check=False)
    sh(f"ip -n {netns} link add d0 type veth peer name d1")
    began, now = time.monotonic(), index(netns, "d0")
    record = Path(f"/run/clearway-aq/d0@{netns}.json")
    while attached_to(netns, "d0") != now or json.loads(record.read_text())["unfinished"]:
        assert time.monotonic() - began < 20
    return time.monotonic() - began


def changed(folder: Path, netns: str, text: str, number: int, settings: str) -> float:
    configure(folder, [Device("eth0", netns, text.replace('"t7"', f'"n{number}"'))], "1s", settings)
    began, record = time.monotonic(), Path(f"/run/clearway-aq/eth0@{netns}.json")
    while f'"n{number}"' not in record.read_text():
        assert time.monotonic() - began < 20
    return time.monotonic() - began


def spent(running: Daemon) -> float:
    """Seconds of a processor that the daemon has had."""
    words = Path(f"/proc/{running.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
