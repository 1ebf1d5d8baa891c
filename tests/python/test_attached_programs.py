"""Programs that people use, over attached hosts: ping, iperf3, nginx and HTTP/3, between two network namespaces.

Each needs root and the program itself (Debian: iputils-ping, iperf3, nginx-light and curl, ngtcp2-client and
ngtcp2-server with openssl), and is skipped without.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from test_cli import PROGRAM

# Four links from one host to the other, each of 1 ms and 1 Gbps.
SCENARIO = """
live.wait = "sleep"
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
spines = 1
host_rate = "1Gbps"
spine_rate = "1Gbps"
propagation = "1ms"
"""
HERE, THERE = "10.77.0.1", "10.77.0.4"

Run = Callable[..., str]


def needs(*programs: str) -> None:
    missing = [program for program in ("ip", *programs) if shutil.which(program) is None]
    if missing or os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        pytest.skip(f"needs root, /dev/net/tun and {', '.join(missing or programs)}")


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"])
def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Run, Run, Path]]:
    """Two namespaces on a living fabric: what runs a program in the one and in the other, and the result's folder."""
    needs()
    names = [f"clearway-{os.getpid()}-{end}" for end in ("here", "there")]
    with contextlib.ExitStack() as ends:
        for name in names:
            made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"no namespaces: {made.stderr}")
            ends.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
        (tmp_path / "scenario.toml").write_text(SCENARIO)
        command = [*PROGRAM, "live", "scenario.toml", "--processes", str(request.param), "--out", "out"]
        for host, name in zip(("host0", "host3"), names, strict=True):
            command += ["--attach", f"{host}=netns:{name}"]
        live = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        ends.callback(live.kill)

        def within(name: str) -> Run:
            def run(*words: str, background: bool = False) -> str:
                words = ("ip", "netns", "exec", name, *words)
                if background:
                    program = subprocess.Popen(
                        words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                    )
                    ends.callback(program.wait)
                    ends.callback(program.terminate)
                    return ""
                done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
                assert done.returncode == 0, (words, done.stdout, done.stderr)
                return done.stdout

            return run

        here, there = within(names[0]), within(names[1])
        until(lambda: here("ip", "-o", "address", "show", "dev", "host0"))
        yield here, there, tmp_path
        live.send_signal(signal.SIGINT)
        _, said = live.communicate(timeout=60)
        result = cw.load(tmp_path / "out/live")
        assert result.info["processes"] == request.param, said
        faults = [finding for finding in result.info["audit"] if not finding["ok"] and finding["name"] != "in time"]
        assert not faults


def until(works: Callable[[], object]) -> Any:
    """Its result, once it works."""
    end = time.monotonic() + 30
    while True:
        try:
            return works()
        except AssertionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def test_a_ping_takes_what_eight_links_take(fabric: tuple[Run, Run, Path]) -> None:
    needs("ping")
    here, _, _ = fabric
    said = until(lambda: here("ping", "-c", "5", "-i", "0.2", THERE))
    times = [float(line.split("time=")[1].split()[0]) for line in said.splitlines() if "time=" in line]
    # 8 ms, and what a busy machine adds at its best.
    assert len(times) == 5
    assert 8 <= min(times) < 16, times


def test_iperf3_has_what_the_link_leaves(fabric: tuple[Run, Run, Path]) -> None:
    needs("iperf3")
    here, there, _ = fabric
    there("iperf3", "--server", "--one-off", background=True)
    said = until(lambda: here("iperf3", "--client", THERE, "--time", "3", "--json"))
    mbps = json.loads(said)["end"]["sum_received"]["bits_per_second"] * 1e-6
    # A packet of 1,500 B carries 1,448 B; the kernel needs a while to fill 8 Mb of link.
    assert 100 < mbps <= 966


def test_nginx_serves_a_file_whole(fabric: tuple[Run, Run, Path]) -> None:
    needs("nginx", "curl")
    here, there, folder = fabric
    content = os.urandom(2_000_000)
    (folder / "file").write_bytes(content)
    (folder / "nginx.conf").write_text(
        "daemon off; user root; pid nginx.pid; error_log error.log; events {}\n"
        f"http {{ access_log off; server {{ listen 8080; root {folder}; }} }}\n"
    )
    there("nginx", "-p", str(folder), "-c", "nginx.conf", background=True)
    until(lambda: here("curl", "--silent", "--fail", "--output", "got", f"http://{THERE}:8080/file"))
    assert (folder / "got").read_bytes() == content


def test_http_3_over_quic_serves_a_file_whole(fabric: tuple[Run, Run, Path]) -> None:
    needs("gtlsserver", "gtlsclient", "openssl")
    here, there, folder = fabric
    content = os.urandom(500_000)
    (folder / "file").write_bytes(content)
    (folder / "got").mkdir()
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    here("openssl", "req", "-x509", "-nodes", *curve, "-subj", "/CN=there", "-days", "2", *files)
    there("gtlsserver", "-q", "-d", str(folder), THERE, "4433", "key.pem", "certificate.pem", background=True)
    ask = ["gtlsclient", "-q", "--exit-on-all-streams-close", "--download", str(folder / "got")]

    def got() -> None:
        here(*ask, THERE, "4433", f"https://{THERE}:4433/file")
        assert (folder / "got/file").read_bytes() == content

    until(got)
