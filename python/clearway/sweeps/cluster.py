"""An executor on Dask workers: of a running scheduler, or of one that a Dask launcher starts (Slurm,
Kubernetes, ...).

Workers need the same build of Clearway as the driver, and share nothing else with it: a run's files are sent along with
it, and its result comes back as bytes, which the driver writes. So only one process writes, and no shared file system
is needed. A run whose worker dies is given to another one by the scheduler.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import queue
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from clearway import _core
from clearway.sweeps.driver import At, Begun, Died, Done, Event, Failed
from clearway.sweeps.points import Task
from clearway.sweeps.worker import throttled, told

# At least this many runs are submitted, so that a cluster that grows with its work has a reason to grow.
AHEAD = 32
LOOK_SECONDS = 2.0
CONNECT_SECONDS = 10
CLOSE_SECONDS = 5


LAUNCHERS = frozenset(
    {
        "distributed.LocalCluster",
        *(
            f"dask_jobqueue.{name}Cluster"
            for name in ("HTCondor", "LSF", "Moab", "OAR", "PBS", "SGE", "SLURM", "Local")
        ),
        "dask_kubernetes.operator.KubeCluster",
        "dask_gateway.GatewayCluster",
        *(
            f"dask_cloudprovider.{name}"
            for name in ("aws.FargateCluster", "aws.EC2Cluster", "azure.AzureVMCluster", "gcp.GCPCluster")
        ),
    }
)
"""The launchers that a sweep's file may name: a file from another person must not be able to run anything else."""

ARGUMENTS = frozenset(
    [
        "account",
        "adaptive",
        "asynchronous",
        "cores",
        "cpus",
        "dashboard_address",
        "death_timeout",
        "disk",
        "image",
        "instance_type",
        "interface",
        "job_cpu",
        "job_extra_directives",
        "job_mem",
        "location",
        "local_directory",
        "log_directory",
        "machine_type",
        "mem",
        "memory",
        "memory_limit",
        "n_workers",
        "name",
        "namespace",
        "ncpus",
        "ngpus",
        "nanny",
        "processes",
        "processes_per_worker",
        "project",
        "projectid",
        "queue",
        "region",
        "resource_spec",
        "resources",
        "shared_temp_directory",
        "silence_logs",
        "size",
        "threads_per_worker",
        "vm_size",
        "walltime",
        "worker_cpu",
        "worker_mem",
        "zone",
    ]
)
"""The arguments that a file may give: sizes, names and places.

Those that take commands (`python`, `job_script_prologue`, `worker_class`, ...) are not among them: a user who needs
these starts a scheduler and names it by `--dask`.
"""

# Text that becomes part of a job script must not end its line, nor be more than one word to a shell.
PLAIN = re.compile(r"[\w ./:=,+@%#\[\]-]*")


def refused(name: str, arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first key of [cluster] that is refused, and why; none if all are accepted."""
    if name not in LAUNCHERS:
        known = ", ".join(sorted(LAUNCHERS))
        return (
            "launcher",
            f"{name!r} is not a launcher that a sweep's file may name, such as dask_jobqueue.SLURMCluster; known: "
            f"{known}",
        )
    for key, value in arguments.items():
        if key not in ARGUMENTS:
            hint = "start a scheduler of your own and name it by --dask for what needs more"
            return (
                "arguments",
                f"{key!r} is not an argument that a sweep's file may give; {hint}. Known: "
                f"{', '.join(sorted(ARGUMENTS))}",
            )
        odd = next((word for word in _words(value) if not PLAIN.fullmatch(word)), None)
        if odd is not None:
            return (
                "arguments",
                f"{key}: {odd!r} has a sign that means something to a shell; letters, digits and ./:=,+@%#[]- may be "
                "in it",
            )
    return None


def _words(value: Any) -> Iterator[str]:
    """All strings in a value: keys, and nested values."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _words(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str):
        yield value


@dataclass(frozen=True)
class Launcher:
    """A class that starts a cluster, one of `LAUNCHERS`, such as `dask_jobqueue.SLURMCluster`."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Its arguments."""
    scale: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its `scale`, such as `{"jobs": 10}`: a cluster of one size."""
    adapt: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its `adapt`, such as `{"maximum_jobs": 100}`: one that grows and shrinks."""

    def start(self) -> Any:
        """The cluster."""
        wrong = refused(self.name, self.arguments)
        if wrong is not None:
            raise ValueError(f"cluster.{wrong[0]}: {wrong[1]}")
        module, _, name = self.name.rpartition(".")
        launcher = (
            getattr(_imported(module, module.partition(".")[0].replace("_", "-")), name, None) if module else None
        )
        if launcher is None:
            raise ValueError(
                f"cluster.launcher {self.name!r}: there is no such class; write module and class, such as "
                "dask_jobqueue.SLURMCluster"
            )
        try:
            cluster = launcher(**self.arguments)
        except TypeError as error:
            raise ValueError(f"cluster.arguments: {self.name}: {error}") from None
        if self.scale:
            cluster.scale(**self.scale)
        if self.adapt:
            cluster.adapt(**self.adapt)
        return cluster


class Cluster:
    """Workers of a scheduler, by its address, by a `distributed.Client`, or started by a launcher."""

    def __init__(self, target: Any) -> None:
        distributed = _imported("distributed", "clearway[dask]")
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(_quiet())
        if isinstance(target, Launcher):
            target = self._stack.enter_context(contextlib.closing(target.start()))
        if isinstance(target, distributed.Client):
            self._client = target
        else:
            try:
                if isinstance(target, str):
                    # A client without a scheduler would take half a minute to close.
                    distributed.comm.get_address_host_port(target)
                client = distributed.Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError) as error:
                self._stack.close()
                raise ValueError(f"no Dask scheduler answers at {target}: {error}") from None
            self._client = self._stack.enter_context(contextlib.closing(client))
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._futures: dict[str, Any] = {}
        self._fetching = threading.Lock()
        self._topic = f"clearway-{secrets.token_hex(8)}"
        self._client.subscribe_topic(self._topic, self._hear)
        self._lanes, self._looked = 0, float("-inf")

    @property
    def room(self) -> int:
        """Twice the number of tasks that the workers can run at once, so that no worker waits for this driver."""
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._lanes, self._looked = sum(self._client.nthreads().values()), time.monotonic()
        return max(2 * self._lanes, AHEAD) - len(self._futures)

    def submit(self, key: str, task: Task, scratch: Path) -> None:
        """Submits a task to the scheduler."""
        # The task has a different name in Dask each time, so that the scheduler never returns the result of an earlier
        # attempt.
        name = f"clearway-{key}-{secrets.token_hex(4)}"
        future = self._client.submit(_work, key, task, _build(), self._topic, key=name, pure=False)
        self._futures[key] = future
        future.add_done_callback(partial(self._fetch, key, scratch))

    def events(self, seconds: float) -> Iterator[Event]:
        """Messages and results from the workers."""
        try:
            event = self._events.get(timeout=seconds)
            while True:
                if isinstance(event, Done | Failed | Died):
                    self._futures.pop(event.key, None)
                if isinstance(event, Died) and self._client.status != "running":
                    raise ConnectionError(
                        f"the Dask scheduler at {self._client.scheduler.address} is gone; results of runs that have "
                        "ended are kept"
                    )
                yield event
                event = self._events.get_nowait()
        except queue.Empty:
            return

    def close(self) -> None:
        """Cancels running tasks and stops the cluster if this executor started it."""
        futures, self._futures = list(self._futures.values()), {}
        with contextlib.suppress(Exception):
            self._client.cancel(futures, force=True)
            self._client.unsubscribe_topic(self._topic)
        # A result that is on its way has an end before the client's loop has: asyncio prints a traceback otherwise.
        if self._fetching.acquire(timeout=CLOSE_SECONDS):
            self._fetching.release()
        self._stack.close()

    def _hear(self, event: tuple[float, Any]) -> None:
        _, said = event
        key = said["key"]
        self._events.put(Begun(key, said["begun"]) if "begun" in said else At(key, said["share"], said["words"]))

    def _fetch(self, key: str, scratch: Path, future: Any) -> None:
        from distributed.comm.core import CommClosedError

        if future.status in ("cancelled", "lost"):
            self._events.put(Died(key, "the scheduler does not know of it any more"))
            return
        try:
            with self._fetching:
                if key not in self._futures:
                    return
                files = future.result()
            scratch.mkdir()
            for name, content in files.items():
                (scratch / name).write_bytes(content)
        except CancelledError as error:
            self._events.put(Died(key, f"the scheduler does not know of it any more: {error}"))
        except CommClosedError as error:
            # The run has not failed, but the transfer of its result.
            self._events.put(Died(key, f"its result was lost on its way: {error}"))
        except Exception as error:
            self._events.put(Failed(key, told(error)))
        else:
            self._events.put(Done(key, scratch))


class Unwanted(Exception):
    """The result of a run is no longer wanted."""


def _work(key: str, task: Task, build: str, topic: str) -> dict[str, bytes]:
    """Runs a task on a worker: the files of its result."""
    from distributed import get_worker

    worker: Any = get_worker()
    if build != _build():
        raise RuntimeError(
            f"the worker {worker.address} has Clearway {_build()}, and the driver has {build}; install the same build "
            "on both"
        )
    name = worker.get_current_task()
    worker.log_event(topic, {"key": key, "begun": f"{worker.address}, process {os.getpid()}"})

    def tell(share: float, words: str) -> None:
        # The driver may be gone: its tasks are then cancelled, but a thread cannot be ended from outside.
        state = worker.state.tasks.get(name)
        if state is None or state.state == "cancelled":
            raise Unwanted(key)
        worker.log_event(topic, {"key": key, "share": share, "words": words})

    # Dask removes what a killed worker leaves there.
    with tempfile.TemporaryDirectory(prefix="clearway-", dir=worker.local_directory) as place:
        folder = Path(place) / "result"
        task.run(folder, 1, throttled(tell))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences Dask's log: it logs tracebacks of a lost connection, which is reported as an error here."""
    known = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logger for logger in known if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


def _build() -> str:
    return f"{_core.__version__} ({_core.COMMIT}, source {_core.SOURCE})"


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(f"{module} is not installed ({error}): pip install '{package}'") from None
