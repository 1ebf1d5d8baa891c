"""Measures live runs on this machine and writes what came out into docs/live-measured.md.

`python tests/live_page.py` measures both parts, or one by its name: `bench` is `clearway live --bench`; `attached` is
the kernel's TCP between two network namespaces over a fabric, and needs root. The measurements are in
docs/live-bench.json; the region of the page between `<!-- live-bench: begin -->` and `<!-- live-bench: end -->` is
written from that and never by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RECORD, PAGE, PICTURE = DOCS / "live-bench.json", DOCS / "live-measured.md", DOCS / "live-bench.png"
REGION = re.compile(r"(<!-- live-bench: begin -->\n).*?(<!-- live-bench: end -->\n)", re.DOTALL)
# R2C2, section 4.1: Gbps on a link of 40 with packets of 8 KB; what a hop takes, in ns.
PAPER = {8192: "38 Gbps"}
PAPER_HOP = "3 us"
# A single TCP connection over a switch, links of 40 Gbps.
ATTACHED = {"1,500 B": 1500, "9,000 B": 9000}
SECONDS = 5
SCENE = """
name = "kernel TCP over a fabric"
live.content = "none"
measure.end = "3600s"
host.mtu = "{mtu}B"
switch.buffer.per_port.bytes = "4MB"
fabric.star = {{ hosts = 2, rate = "40Gbps", propagation = "1us", switch_delay = "0s" }}
"""
RECEIVER = """
import socket, time
with socket.create_server(("", 5201), family=socket.AF_INET) as server:
    connection, _ = server.accept()
    room, count, began = bytearray(1 << 20), 0, time.monotonic()
    while got := connection.recv_into(room):
        count += got
    print(count * 8 / (time.monotonic() - began) * 1e-9)
"""
SENDER = """
import socket, sys, time
until = time.monotonic() + 30
while True:
    try:
        connection = socket.create_connection((sys.argv[1], 5201), timeout=10)
        break
    except OSError:
        if time.monotonic() > until:
            raise
        time.sleep(0.2)
content, end = bytes(1 << 20), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    connection.sendall(content)
"""


def filled(page: str, record: Mapping[str, Any]) -> str:
    """The page with its region as the record has it; ValueError if it has none."""
    if len(REGION.findall(page)) != 1:
        raise ValueError("the page needs one region, from <!-- live-bench: begin --> to <!-- live-bench: end -->")
    return REGION.sub(lambda marks: marks[1] + render(record) + marks[2], page)


def render(record: Mapping[str, Any]) -> str:
    """The region's text."""
    parts = []
    if bench := record.get("bench"):
        parts += [_where(bench), *_bench(bench["report"])]
    if attached := record.get("attached"):
        parts += [_where(attached, "**The kernel's TCP over attached hosts.** "), _attached(attached)]
    return "\n\n".join(parts) + "\n" if parts else "Not yet measured: `python tests/live_page.py`.\n"


def _where(part: Mapping[str, Any], title: str = "") -> str:
    return _wrapped(
        f"{title}Measured at commit {part['commit']} on {part['date']}, on {part['cores']} cores of {part['cpu']}, "
        f"while {part['load']:.1f} other programs wanted them (`{part['command']}`)."
    )


def _bench(report: Mapping[str, Any]) -> Iterator[str]:
    yield _table(
        ["packets", "most, over 2 hops", "over links of 40 Gbps", "in time", "paper, link of 40 Gbps", "cores away"],
        [
            [
                f"{row['packet_bytes']:,} B",
                f"{row['most_gbps']:.1f} Gbps",
                f"{row['at_40_gbps']:.1f} Gbps",
                "yes" if row["in_time"] else "no",
                PAPER.get(row["packet_bytes"], ""),
                _percent(row),
            ]
            for row in report["throughput"]
        ],
    )
    yield _table(
        ["workers", "a hop, median", "p99", "idle: p99", "stopped for", "paper", "packet-hops a second", "a word"],
        [
            [
                _workers(row),
                f"{row['median_ns']:,.0f} ns",
                f"{row['p99_ns']:,.0f} ns",
                f"{row['machine_p99_ns']:,.0f} ns",
                f"{row['machine_stopped_percent']:.1f}%",
                PAPER_HOP,
                f"{hops['million_per_second']:.2f} M",
                f"{hops['word_ns']:.0f} ns" if hops["word_ns"] else "",
            ]
            for row, hops in zip(report["latency"], report["hops"], strict=True)
        ],
    )
    yield _table(
        ["flows on one worker, 32 Gbps together", "had", "the least had of its rate", "in time", "cores away"],
        [
            [
                str(row["flows"]),
                f"{row['gbps']:.1f} Gbps",
                f"{row['least']:.1%}",
                "yes" if row["in_time"] else "no",
                _percent(row),
            ]
            for row in report["sharing"]
        ],
    )
    one, two = (
        next(row["million_per_second"] for row in report["hops"] if shape(row))
        for shape in (
            lambda row: row["workers"] == 2 and row["processes"] == 1,
            lambda row: row["processes"] == 2,
        )
    )
    yield _table(
        ["packets", "over a trunk between two machines, both this one", "datagrams sent again", "cores away"],
        [
            [
                f"{row['packet_bytes']:,} B",
                f"{row['gbps']:.1f} Gbps",
                f"{row['sent_again_percent']:.2f}%",
                _percent(row),
            ]
            for row in report["trunk"]
        ],
    )
    yield f"![Throughput by packet size, latency of a hop, flows on one worker, packet-hops a second]({PICTURE.name})"
    yield _wrapped(f"Two processes of one worker each move {two / one:.2f} times what two workers of one process do.")


def _attached(part: Mapping[str, Any]) -> str:
    heads = ["packets of the fabric", "one TCP connection", "time for which the network stood still"]
    return _table(
        heads, [[row["packets"], f"{row['gbps']:.1f} Gbps", f"{row['lost_percent']:.0f}%"] for row in part["rows"]]
    )


def _workers(row: Mapping[str, Any]) -> str:
    return f"{row['processes']} processes" if row["processes"] > 1 else str(row["workers"])


def _percent(row: Mapping[str, Any]) -> str:
    return f"{row['away_percent']:.0f}%"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def measured(part: str) -> dict[str, Any]:
    """A part's numbers, with where they come from."""
    load = os.getloadavg()[0]
    found = {"bench": _measured_bench, "attached": _measured_attached}[part]()
    version = _clearway("--version")
    return {
        "commit": re.sub(r".*\((\w+)\).*", r"\1", version.strip()),
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "load": load,
        "command": "clearway live --bench" if part == "bench" else "python tests/live_page.py attached",
        **found,
    }


def _cpu() -> str:
    said = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return said[1] if said else platform.processor()


def _clearway(*words: str) -> str:
    command = [sys.executable, "-m", "clearway", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _measured_bench() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        said = json.loads(_clearway("live", "--bench", "--json", "--out", folder))
        PICTURE.write_bytes((Path(folder) / "bench.png").read_bytes())
    return {"report": {name: said[name] for name in ("throughput", "latency", "sharing", "hops", "trunk")}}


def _measured_attached() -> dict[str, Any]:
    rows = []
    with _namespaces("clearway-red", "clearway-blue") as (red, blue):
        for packets, mtu in ATTACHED.items():
            gbps, lost = _transfer(red, blue, mtu)
            rows.append({"packets": packets, "gbps": gbps, "lost_percent": 100 * lost})
    return {"rows": rows}


@contextlib.contextmanager
def _namespaces(*names: str) -> Iterator[tuple[str, ...]]:
    if os.geteuid() != 0:
        sys.exit("attached hosts need root: run `python tests/live_page.py attached` as root, or measure only `bench`")
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _transfer(red: str, blue: str, mtu: int) -> tuple[float, float]:
    """Gbps of one TCP connection, and for how much of the time the network stood still."""
    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder) / "scene.toml"
        scene.write_text(SCENE.format(mtu=mtu), encoding="utf-8")
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "clearway", "live", str(scene), "--out", str(out)]
        command += [f"--attach=host0=netns:{red}", f"--attach=host1=netns:{blue}"]
        fabric = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        within = ["ip", "netns", "exec"]
        receiver = subprocess.Popen([*within, blue, sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)
        try:
            send = [*within, red, sys.executable, "-c", SENDER, "10.77.0.2", str(SECONDS)]
            subprocess.run(send, check=True, timeout=60)
            gbps = float(receiver.communicate(timeout=30)[0])
        finally:
            receiver.kill()
            fabric.send_signal(signal.SIGTERM)
            fabric.wait(timeout=60)
        info = json.loads((out / "live" / "run.json").read_text(encoding="utf-8"))
    return gbps, float(info["lost_ps"]) / float(info["end_ps"])


def main(parts: list[str]) -> int:
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    for part in parts or ["bench", "attached"]:
        record[part] = measured(part)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
