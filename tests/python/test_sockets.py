"""Programs that send messages over a network that lives, and Harmony's calls over them.

Nothing here depends on how late the machine is: what waits, waits for longer than any machine takes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import clearway as cw
import numpy as np
import pytest
from clearway.papers.harmony.applications import reframer
from clearway.running.live_bench import picture

ROOT = Path(__file__).parents[2]
LIMIT = 60.0

RACKS = """
[live]
dilation = 20
wait = "sleep"
[live.sockets]
rpc.transport = { harmony = { delta_admission = "100us" } }
bulk.transport = "dctcp"
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 2
host_rate = "1Gbps"
spine_rate = "1Gbps"
[measure]
interval = "0s"
"""


def racks(**keys: Any) -> cw.Scenario:
    return cw.Scenario.from_toml(RACKS).with_({name.replace("__", "."): value for name, value in keys.items()})


@pytest.fixture
def maze() -> Iterator[cw.Maze]:
    with cw.Maze(racks()) as maze:
        yield maze


@pytest.mark.parametrize("keys", [{}, {"live__workers": 2}])
def test_many_sockets_speak_at_once(keys: dict[str, object], tmp_path: Path) -> None:
    loss = {"at": "0s", "link": ["leaf0", "spine0"], "loss": 0.01}
    with cw.Maze(racks(failure=[loss], **keys)) as maze:
        with maze.socket("host7", port=80) as server:
            answering = threading.Thread(
                target=lambda: [server.send(of.source, of.content[::-1], "bulk") for of in server]
            )
            answering.start()
            clients = [maze.socket(f"host{index % 7}") for index in range(14)]
            contents = [os.urandom(1 + 7_001 * index) for index in range(len(clients))]
            sent = [client.send("host7:80", content, "bulk") for client, content in zip(clients, contents)]
            for client, content in zip(clients, contents):
                answer = client.receive(LIMIT)
                assert answer.content == content[::-1]
                assert (answer.source, answer.kind) == (("host7", 80), "bulk")
            for message in sent:
                delivery = message.wait(LIMIT)
                assert delivery.started_ps < delivery.delivered_ps
        answering.join(LIMIT)
    assert not answering.is_alive()
    flows = maze.result.flows.to_pandas()
    assert (flows.status == "completed").all() and len(flows) == 28
    # The time of a message is the flow's, from when its transport got it.
    first = flows.iloc[sent[0].flow]
    delivery = sent[0].wait(0)
    assert first.fct_ps == delivery.delivered_ps - delivery.started_ps
    assert all(finding["ok"] for finding in maze.result.info["audit"] if finding["name"] != "in time")
    maze.result.save(tmp_path / "out")
    assert cw.load(tmp_path / "out").info["ended"] == "closed"


def test_what_can_not_be_is_an_exception_with_advice(maze: cw.Maze) -> None:
    client = maze.socket("host0", 7)
    for call, words in (
        (lambda: maze.socket("host0", 7), "host0:7 is open already"),
        (lambda: maze.socket("host99"), "host99"),
        (lambda: maze.socket("leaf0"), "is a switch"),
        (lambda: maze.socket("host1", 70_000), "ports are 1 to 65535"),
        (lambda: client.send("host1", b"", "rpc"), "is not an address"),
        (lambda: client.send("host1:0", b"", "rpc"), "is not an address"),
        (lambda: client.send("host0:7", b"", "rpc"), "own host"),
        (lambda: client.send("host1:7", b""), 'name one of "bulk", "rpc"'),
        (lambda: client.send("host1:7", b"", "udp"), 'there is no class "udp"'),
        (lambda: cw.Rpc(maze, "host1", kind="udp"), "there is no class 'udp'"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TimeoutError, match="no message has come to host0:7"):
        client.receive(0.01)
    with pytest.raises(cw.Undelivered, match="nobody listens at host5:9"):
        client.send("host5:9", b"hello", "bulk").wait(LIMIT)
    client.close()
    with pytest.raises(cw.MazeOver, match="closed"):
        client.receive(LIMIT)


def test_empty_and_too_much(maze: cw.Maze) -> None:
    one, other = maze.socket("host0"), maze.socket("host4")
    one.send(other.address, b"", "rpc")
    assert other.receive(LIMIT).content == b""
    with pytest.raises(ValueError, match="are too long for a message"):
        one.send(other.address, bytes((1 << 30) + 1), "bulk")
    # Half of a gigabyte is under way, and takes seconds of the network.
    one.send(other.address, bytes(1 << 29), "bulk")
    with pytest.raises(MemoryError, match="no room for 536870912 bytes more"):
        one.send(other.address, bytes(1 << 29), "bulk")
    # A small message has room still.
    one.send(other.address, b"small", "rpc")
    assert other.receive(LIMIT).content == b"small"
    maze.close(0)
    with pytest.raises(cw.MazeOver, match="closed"):
        one.send(other.address, b"", "rpc")


def test_the_networks_end_is_told(maze: cw.Maze) -> None:
    ends = cw.Maze(racks(measure__end="5ms"))
    with ends.socket("host0") as socket, pytest.raises(cw.MazeOver, match="the run is over"):
        socket.receive(LIMIT)
    assert ends.over is not None and "over" in ends.over
    assert ends.close().info["ended"] == "horizon"


def test_a_completion_queue_has_the_papers_flags() -> None:
    dead = {"at": "0s", "link": ["host4", "leaf1"]}
    with cw.Maze(racks(failure=[dead])) as maze:
        queue, client = maze.completions(), maze.socket("host0")
        with maze.socket("host5", 9):
            to = {client.send(f"host{host}:9", b"hello", "rpc", queue=queue).flow: host for host in (4, 5)}
            ended = {to[(completion := queue.next(LIMIT)).sent.flow]: completion for _ in to}
        assert ended[5].flag == "complete" and ended[5].delivery is not None and ended[5].delivery.completed_ps
        assert ended[4].flag in ("failure", "reject") and "harmony has not delivered" in ended[4].reason


def test_calls_are_answered_once_however_often_they_are_sent() -> None:
    done = []

    def serve(request: bytes) -> bytes:
        done.append(request)
        if request == b"wrong":
            raise KeyError("no such block")
        return request.upper()

    # Packets are lost everywhere, so that requests and answers are sent again.
    loss = [{"at": "0s", "link": [f"leaf{leaf}", f"spine{spine}"], "loss": 0.2} for leaf in (0, 1) for spine in (0, 1)]
    with cw.Maze(racks(failure=loss)) as maze:
        server = cw.Rpc(maze, "host7", 7, kind="rpc", fallback="bulk", serve=serve)
        client = cw.Rpc(maze, "host0", kind="rpc", fallback="bulk")
        calls = [client.submit(server.address, b"call %d" % number) for number in range(50)]
        answers = [call.result(LIMIT) for call in calls]
        assert answers == [b"CALL %d" % number for number in range(50)]
        with pytest.raises(cw.RpcError, match="no such block"):
            client.call("host7:7", b"wrong", LIMIT)
        with pytest.raises(cw.RpcError, match="answers no calls"):
            server.call(client.address, b"", LIMIT)
    assert sorted(done) == sorted([b"call %d" % number for number in range(50)] + [b"wrong"])
    flows = maze.result.flows.to_pandas()
    assert (flows["class"] == "rpc").sum() > 104 or (flows["class"] == "bulk").any(), "some were sent again"


def test_a_host_that_comes_again_at_the_same_port_is_answered(maze: cw.Maze) -> None:
    server = cw.Rpc(maze, "host7", 7, kind="rpc", serve=bytes.upper)
    for request in (b"first", b"second"):
        with cw.Rpc(maze, "host0", 9, kind="rpc") as client:
            assert client.call(server.address, request, LIMIT) == request.upper()


def test_a_call_to_a_dead_host_fails() -> None:
    dead = {"at": "0s", "link": ["host4", "leaf1"]}
    with cw.Maze(racks(failure=[dead])) as maze, cw.Rpc(maze, "host0", kind="rpc", tries=2) as client:
        with pytest.raises(cw.Undelivered, match="host4"):
            client.call("host4:7", b"hello", LIMIT)
        patient = cw.Rpc(maze, "host1", kind="bulk")
        with pytest.raises(TimeoutError, match=r"has not answered in 0\.1 s"):
            patient.call("host4:7", b"hello", 0.1)
        open_ = patient.submit("host4:7", b"hello")
        maze.close(0)
        with pytest.raises((cw.MazeOver, cw.Undelivered)):
            open_.result(LIMIT)


PROGRAM = """
import signal, sys
import clearway as cw
def end(*_): raise SystemExit(3)
signal.signal(signal.SIGTERM, end)
with cw.Maze({scenario!r}) as maze:
    socket = maze.socket("host0")
    try:
        print("waits", flush=True)
        socket.receive()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print(maze.result.info["ended"], flush=True)
"""


@pytest.mark.parametrize(("number", "status", "said"), [("SIGINT", 0, ["interrupted", "closed"]), ("SIGTERM", 3, [])])
def test_a_signal_ends_a_wait(number: str, status: int, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "racks.toml").write_text(RACKS)
    program = PROGRAM.format(scenario=str(tmp_path / "racks.toml"))
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None and running.stdout.readline() == "waits\n"
    running.send_signal(getattr(signal, number))
    rest, _ = running.communicate(timeout=LIMIT)
    assert (running.returncode, rest.split()) == (status, said)


def test_a_program_that_closes_nothing_ends_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "racks.toml").write_text(RACKS)
    program = f"""
        import clearway as cw
        maze = cw.Maze({str(tmp_path / "racks.toml")!r})
        server = cw.Rpc(maze, "host3", 7, kind="rpc", serve=bytes.upper)
        client = cw.Rpc(maze, "host0", kind="rpc")
        print(client.call("host3:7", b"hello", 60))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "b'HELLO'\n", "")


def test_harmonys_applications_run_for_real(tmp_path: Path) -> None:
    program = [sys.executable, "examples/live/harmony.py", "--blocks", "4", "--cut-ms", "1"]
    ran = subprocess.run(
        [*program, "--out", str(tmp_path / "out")],
        cwd=ROOT, capture_output=True, text=True, timeout=4 * LIMIT, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    failed, right, _ = ran.stdout.splitlines()
    assert failed == "host4 has failed: the detector has no answer to its probe"
    assert right == "4 of 4 blocks came back as they were written; host7 lives"
    flows = cw.load(tmp_path / "out").flows.to_pandas()
    assert {"rpc", "load"} <= set(flows["class"])


def test_by_a_time_of_the_network_all_has_come_that_was_delivered_before(maze: cw.Maze) -> None:
    server, clients = maze.socket("host7", 80), [maze.socket(f"host{host}") for host in range(7)]
    for number in range(70):
        clients[number % 7].send("host7:80", bytes(100 * number), "bulk")
    first = server.receive(LIMIT)
    came, from_ps, until_ps = [first.flow], 0, first.delivered_ps
    while len(came) < 70:
        until_ps += 200_000_000
        while (message := server.receive_until(until_ps, LIMIT)) is not None:
            assert from_ps <= message.delivered_ps < until_ps
            came.append(message.flow)
        assert maze.now_ps >= until_ps
        from_ps = until_ps
    assert len(set(came)) == 70
    with pytest.raises(ValueError, match="until_ps=-1: must be from 0"):
        server.receive_until(-1)
    with pytest.raises(TimeoutError, match="the network has not come to"):
        server.receive_until((1 << 64) - 1, 0.01)
    maze.close()
    for ended in (lambda: server.receive_until(until_ps + 1), lambda: maze.now_ps):
        with pytest.raises(cw.MazeOver):
            ended()


@pytest.fixture(scope="module")
def batching() -> ModuleType:
    spec = importlib.util.spec_from_file_location("batching", ROOT / "examples/live/batching.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["batching"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "timeout_us"), [("rpc", None), ("rpc", 0.0), ("rpc", 3.0), ("bulk", 3.0)])
def test_a_host_gathers_the_batches_that_the_model_makes_of_the_same_arrivals(
    kind: str, timeout_us: float | None, batching: ModuleType
) -> None:
    """When messages come is the machine's affair, too; what the host makes of them is not."""
    bound = batching.bound_us()
    timeout = bound if timeout_us is None else timeout_us
    host, senders, result = batching.run(kind, 8, timeout, 1)
    assert len(host.arrivals) == 7 * 8 and batching.right(host, senders, 1) == 7
    times = np.array([time for time, _ in host.arrivals])
    assert (np.diff(times) >= 0).all()
    connections = np.unique([str(source) for _, source in host.arrivals], return_inverse=True)[1]
    packets = reframer.Packets(times / 1e6, connections.astype(np.int64), np.zeros(len(times), bool))
    model = reframer.batch(packets, reframer.Core(batch=8), timeout)
    assert (len(host.batches), host.cut) == (model.batches, model.cut)
    # A batch is processed when the network has come to its end, and not before its last message.
    assert min(host.held_us) >= 0
    if kind == "rpc":
        # However late the machine is: beyond 1 us of the network it stands still.
        assert max(delay for sender in senders for delay in sender.delays_us) <= bound
    assert all(finding["ok"] for finding in result.info["audit"] if finding["name"] != "in time")


def test_harmonys_batches_run_for_real() -> None:
    ran = subprocess.run(
        [sys.executable, "examples/live/batching.py", "--bursts", "1", "--batch", "4"],
        cwd=ROOT, capture_output=True, text=True, timeout=4 * LIMIT, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    bound, each, bounded, guessed, same = ran.stdout.splitlines()
    assert re.fullmatch(r"over Harmony a message comes within \d+\.\d us", bound)
    assert each.startswith("Harmony, each as it comes: 1.00 messages a batch")
    for line in (each, bounded, guessed, same):
        assert line.endswith("7 of 7 states right"), line
    for line in (each, bounded):
        assert " 0 late," in line


def test_the_benchs_picture_says_how_long_the_cores_were_away() -> None:
    where, away = {"workers": 1, "processes": 1}, {"away_percent": 12.4}
    report = {
        "throughput": [{"packet_bytes": 8192, "most_gbps": 55.0, "at_40_gbps": 40.0, **away}],
        "latency": [{**where, "median_ns": 540.0, "p99_ns": 3_000.0, "machine_p99_ns": 200.0, **away}],
        "sharing": [{"flows": 1, "gbps": 32.0, "least": 1.0, **away}],
        "hops": [{**where, "million_per_second": 2.5, **away}],
    }
    panels = picture(report).axes
    assert len(panels) == 4
    assert all("cores taken away for 12 to 12% of the time" in axes.get_title(loc="left") for axes in panels)
