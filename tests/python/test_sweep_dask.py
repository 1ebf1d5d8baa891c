"""Sweeps on a real Dask scheduler with two worker processes over TCP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import clearway as cw
import pytest
from test_sweep_kills import RING, TINY, begin, clearway, counted, finish, log, until

SCHEDULER = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
WORKER = [sys.executable, "-m", "distributed.cli.dask_worker"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sweep.toml").write_text(RING.format(tiny=TINY, runs=8))
    return tmp_path


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, place: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.place = place
        self.scheduler = self._start(*SCHEDULER, "--host", self.address, "--no-dashboard", "--no-show")
        self.workers = [self.worker() for _ in range(2)]

    def worker(self) -> subprocess.Popen[bytes]:
        """One more, of one thread, that is not started again when it dies."""
        return self._start(*WORKER, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.place / "dask.log").open("ab") as said:
            return subprocess.Popen(command, cwd=self.place, stdout=said, stderr=said)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "dask").mkdir()
    cluster = Cluster(tmp_path / "dask")
    yield cluster
    cluster.close()


def test_a_worker_that_is_killed_loses_no_run(folder: Path, cluster: Cluster) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--dask", cluster.address) as driver:
        until(lambda: sum(counted(store, "begun").values()) >= 3)
        last = [line for line in log(store) if line["event"] == "begun"][-1]
        dead = int(str(last["where"]).split()[-1])
        assert dead in {worker.pid for worker in cluster.workers}
        os.kill(dead, signal.SIGKILL)
        _, stderr = driver.communicate(timeout=120)
    assert driver.returncode == 0, stderr
    assert len(list((store / "runs").iterdir())) == 8
    assert len(counted(store, "kept")) == 8 and set(counted(store, "kept").values()) == {1}
    where = {line["where"] for line in log(store) if line["event"] == "begun"}
    assert len(where) == 2, "both had runs"
    swept = cw.Sweep.load(folder / "sweep.toml", folder / "out").result()
    alone = cw.run(cw.Scenario.load(TINY).with_({"traffic.ring.sizes": {"constant": "200MB"}}, seed=3))
    assert swept.ok and swept["seed 3"].digest == alone.digest


def test_a_driver_that_is_killed_loses_nothing_and_leaves_the_workers_free(folder: Path, cluster: Cluster) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--dask", cluster.address) as driver:
        until(lambda: len(counted(store, "kept")) >= 2)
        driver.kill()
    before = set(counted(store, "kept"))
    done = finish(folder, "--dask", cluster.address)
    assert done.returncode == 0, done.stderr
    assert len(list((store / "runs").iterdir())) == 8
    assert set(counted(store, "kept").values()) == {1}
    assert all(counted(store, "begun")[key] == 1 for key in before), "what was done is not begun again"
    assert all(worker.poll() is None for worker in cluster.workers)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_runs_on_for_a_driver_that_is_gone(folder: Path, cluster: Cluster, how: signal.Signals) -> None:
    store = folder / "out" / "store"
    text = (folder / "sweep.toml").read_text()
    (folder / "sweep.toml").write_text(text.replace("200MB", "200GB"))
    with begin(folder, "--dask", cluster.address) as driver:
        until(lambda: len(counted(store, "begun")) == 2)
        driver.send_signal(how)
        _, stderr = driver.communicate(timeout=60)
    assert driver.returncode == (130 if how == signal.SIGINT else -how) and "Traceback" not in stderr, stderr
    # The runs that were begun would take the workers hours.
    (folder / "sweep.toml").write_text(text)
    done = finish(folder, "--dask", cluster.address)
    assert done.returncode == 0, done.stderr


def test_nobody_asks_for_the_result_of_a_run_that_was_cancelled(cluster: Cluster) -> None:
    # The client closes next: asyncio printed a traceback for an answer that came too late.
    from clearway.sweeps.cluster import Cluster as Executor
    from clearway.sweeps.driver import Died

    class Cancelled:
        status = "cancelled"

        def result(self) -> dict[str, bytes]:
            raise AssertionError("asked for")

    executor = Executor(cluster.address)
    executor._fetch("run", cluster.place, Cancelled())
    (said,) = executor.events(1)
    assert isinstance(said, Died)
    # A result that comes after the end is not asked for either.
    late = Cancelled()
    late.status = "finished"
    executor.close()
    executor._fetch("run", cluster.place, late)
    assert not list(executor.events(0))


def test_a_scheduler_that_is_gone_fails_no_run(folder: Path, cluster: Cluster) -> None:
    store = folder / "out" / "store"
    with begin(folder, "--dask", cluster.address) as driver:
        until(lambda: len(counted(store, "kept")) >= 2)
        cluster.scheduler.kill()
        _, stderr = driver.communicate(timeout=90)
    assert driver.returncode == 2 and "is gone" in stderr and "Traceback" not in stderr, stderr
    assert not list((store / "failed").iterdir())
    assert finish(folder).returncode == 0


def test_an_address_without_a_scheduler_is_an_error(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        done = clearway("sweep", "sweep.toml", "--dask", address, cwd=folder)
    assert done.returncode == 2 and address in done.stderr
    done = clearway("sweep", "sweep.toml", "--dask", "carrier-pigeon", cwd=folder)
    assert done.returncode == 2 and "carrier-pigeon" in done.stderr


def test_a_launcher_starts_its_cluster(folder: Path) -> None:
    text = (folder / "sweep.toml").read_text()
    launched = """
[cluster]
launcher = "distributed.LocalCluster"
arguments = { n_workers = 0, threads_per_worker = 1, dashboard_address = "" }
scale = { n = 2 }
"""
    (folder / "sweep.toml").write_text(text + launched)
    done = finish(folder, "--cluster")
    assert done.returncode == 0, done.stderr
    where = {str(line["where"]).partition(",")[0] for line in log(folder / "out" / "store") if line["event"] == "begun"}
    assert where and all(address.startswith("tcp://") for address in where)
    for wrong, said in (
        ("dask_jobqueue.SLURMCluster", "pip install 'dask-jobqueue'"),
        ("distributed.NoCluster", "not a launcher that a sweep's file may name"),
        ("SLURMCluster", "such as dask_jobqueue.SLURMCluster"),
    ):
        named = (text + launched).replace("distributed.LocalCluster", wrong)
        (folder / "sweep.toml").write_text(named)
        done = clearway("sweep", "sweep.toml", "--out", "other", "--cluster", cwd=folder)
        assert done.returncode == 2 and said in done.stderr, done.stderr
