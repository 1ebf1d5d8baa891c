"""Programs that join a Maze of another program by its Unix socket: `clearway live --sockets`, `cw.Maze.connect`.

Nothing here depends on how late the machine is: what waits, waits for longer than any machine takes.
"""

from __future__ import annotations

import os
import signal
import socket as sockets
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import clearway as cw
import pandas as pd
import pytest
from test_cli import PROGRAM
from test_sockets import LIMIT, RACKS


@contextmanager
def rack(folder: Path, *more: str, ends: bool = False) -> Iterator[Path]:
    """A rack of another process, until the block or `measure.end` ends it; its results are in `folder` then. `ends`:
    the block, whatever `more` says.
    """
    scenario, path = folder / "racks.toml", folder / "s"
    scenario.write_text(RACKS)
    command = [*PROGRAM, "live", str(scenario), "--sockets", str(path), "--out", str(folder / "out"), *more]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + LIMIT
        while not path.exists():
            assert running.poll() is None and time.monotonic() < until, running.communicate()
            time.sleep(0.05)
        yield path
    finally:
        if ends or not more:
            running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=LIMIT)
    assert running.returncode in (0, 1), (out, err)  # 1: whether the machine was in time is its own affair
    assert not path.exists()


def clients(folder: Path) -> cw.Result:
    result = cw.load(folder / "out" / "live")
    told = {finding["name"]: finding["ok"] for finding in result.info["audit"]}
    assert told["content right"] and told["bytes conserved"], told
    return result


def ends_where_over_is_gone(table: pd.DataFrame) -> list[str]:
    """How clients ended. Whether one that leaves as the run ends is noticed before the run is over is chance."""
    return sorted("gone" if end == "over" else end for end in table.ended)


def test_two_programs_talk_over_the_rack_of_a_third(tmp_path: Path) -> None:
    other = """
        import sys
        import clearway as cw
        with cw.Maze.connect(sys.argv[1]) as maze, maze.socket("host7", 80) as server:
            print("serves", flush=True)
            for message in server:
                server.send(message.source, message.content[::-1], message.kind)
    """
    with rack(tmp_path) as path:
        serving = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(other), str(path)], stdout=subprocess.PIPE, text=True
        )
        assert serving.stdout is not None and serving.stdout.readline() == "serves\n"
        with cw.Maze.connect(path) as maze, maze.socket("host0") as client:
            assert maze.hosts == [f"host{index}" for index in range(8)]
            assert maze.kinds == {"rpc": "harmony", "bulk": "dctcp"}
            queue = maze.completions()
            for bytes_ in (0, 1, 7_001, 100_000):
                content = os.urandom(bytes_)
                sent = client.send("host7:80", content, "bulk", queue=queue)
                answer = client.receive(LIMIT)
                assert answer.content == content[::-1]
                assert (answer.source, answer.kind) == (("host7", 80), "bulk")
                delivery = sent.wait(LIMIT)
                assert delivery.started_ps < delivery.delivered_ps < answer.delivered_ps
                assert queue.next(LIMIT).flag == "complete"
            with pytest.raises(cw.Undelivered, match="nobody listens at host5:9"):
                client.send("host5:9", b"hello", "bulk").wait(LIMIT)
            with pytest.raises(ValueError, match="no host"):
                maze.socket("host99")
            # A program that is killed is gone, and the rack goes on.
            serving.kill()
            serving.communicate(timeout=LIMIT)
            until = time.monotonic() + LIMIT
            while True:
                try:
                    client.send("host7:80", b"there?", "bulk").wait(LIMIT)
                except cw.Undelivered:
                    break
                assert time.monotonic() < until
            assert maze.over is None
    result = clients(tmp_path)
    table = result.clients.to_pandas()
    assert ends_where_over_is_gone(table) == ["gone", "gone"]
    assert table.sent_messages.sum() >= 9 and (table.pid > 0).all()
    assert result.info["digest"].startswith("none")


def test_harmonys_calls_go_over_a_joined_rack(tmp_path: Path) -> None:
    with rack(tmp_path) as path, cw.Maze.connect(path) as one, cw.Maze.connect(path) as other:
        server = cw.Rpc(one, "host3", 7, kind="rpc", serve=bytes.upper)
        client = cw.Rpc(other, "host0", kind="rpc", fallback="bulk")
        assert client.call("host3:7", b"how are you?", LIMIT) == b"HOW ARE YOU?"
        server.close()


@contextmanager
def machines(folder: Path) -> Iterator[Path]:
    """A rack on two machines, which are two programs here."""
    with sockets.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    token = folder / "token"
    token.write_text("a token of these tests")
    command = [*PROGRAM, "live", "--join", at, "--token-file", str(token)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with rack(folder, "--machines", "2", "--listen", at, "--token-file", str(token), ends=True) as path:
        yield path
    out, err = other.communicate(timeout=LIMIT)
    assert other.returncode == 0, err
    assert "machine 1 of 0 to 1" in out


@pytest.mark.parametrize("several", ["processes", "machines"])
def test_programs_join_a_rack_in_two_parts(several: str, tmp_path: Path) -> None:
    with (
        machines(tmp_path) if several == "machines" else rack(tmp_path, "--processes", "2", ends=True) as path,
        cw.Maze.connect(path) as maze,
        maze.socket("host0", 7) as client,
        maze.socket("host7", 80) as server,
    ):
        for sender, receiver in ((client, server), (server, client)):
            content = os.urandom(30_000)
            sent = sender.send(receiver.address, content, "bulk")
            assert receiver.receive(LIMIT).content == content
            delivery = sent.wait(LIMIT)
            assert delivery.started_ps < delivery.delivered_ps
    result = clients(tmp_path)
    assert (result.info[several], result.info["flows_completed"]) == (2, 2)
    assert result.clients.to_pandas().sent_messages.tolist() == [2]


def test_the_racks_end_is_told(tmp_path: Path) -> None:
    # So late that a busy machine has joined before.
    with rack(tmp_path, "--set", "measure.end=1s") as path:
        maze = cw.Maze.connect(path)
        socket = maze.socket("host0")
        with pytest.raises(cw.MazeOver, match="the run is over"):
            socket.receive(LIMIT)
        assert maze.over is not None and "over" in repr(maze)
        maze.close()
    assert clients(tmp_path).clients.to_pandas().ended.tolist() == ["over"]


def test_what_can_not_be_joined_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"clearway live SCENARIO\.toml --sockets"):
        cw.Maze.connect(tmp_path / "none")
    there = tmp_path / "s"
    there.write_text("mine")
    with pytest.raises(cw.ScenarioError, match="is no socket"):
        cw.live(cw.Scenario.from_toml(RACKS), sockets=there)
    assert there.read_text() == "mine"
    with pytest.raises(cw.ScenarioError, match="too long for a socket"):
        cw.live(cw.Scenario.from_toml(RACKS), sockets=tmp_path / ("s" * 200))
    # Before it waits for other machines.
    with pytest.raises(cw.ScenarioError, match="no such folder"):
        path = tmp_path / "none" / "s"
        cw.live(cw.Scenario.from_toml(RACKS), sockets=path, machines=2, listen="127.0.0.1:0", token="of these tests, a")


def test_garbage_is_counted(tmp_path: Path) -> None:
    with rack(tmp_path) as path:
        for said in (b"GET / HTTP/1.1\r\n\r\n", struct.pack(">IB8sH", 11, 1, b"CLEARWAY", 99)):
            with sockets.socket(sockets.AF_UNIX) as stranger:
                stranger.connect(str(path))
                stranger.sendall(said)
                stranger.settimeout(LIMIT)
                assert stranger.recv(1000)
        with cw.Maze.connect(path) as maze:
            assert maze.over is None
    table = clients(tmp_path).clients.to_pandas()
    assert ends_where_over_is_gone(table) == ["gone", "length", "version"]
