"""The content of a checkpoint, runs that go on from it otherwise, and where two runs begin to differ."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clearway import _core
from clearway.programs import outside
from clearway.results.result import Result
from clearway.running.run import _cores, _Line, _Listener, result_of
from clearway.scenarios.forecast import memory_bytes_max
from clearway.scenarios.scenario import Scenario, scenario_of


def inspect(
    checkpoint: str | Path, what: str | None = None, *, flow: int | None = None, folder: str | Path | None = None
) -> dict[str, Any]:
    """The state of a node, a port or a flow in a checkpoint that `cw.run` has written, as a tree.

    `what`: a node, such as "host3", or a port of a switch, such as "spine0:3"; without it and `flow`, how far the whole
    network has come. `folder`: where the files are that the scenario names, if they are not where they were. Values
    with a unit are texts ("1.5us"). The names of fields are those of the code, and may change with it.

    >>> import clearway as cw, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tiny.checkpoint"
    >>> whole = cw.run("examples/tiny.toml", checkpoint="3us", checkpoint_file=file)
    >>> cw.run("examples/tiny.toml", resume=file).digest == whole.digest
    True
    >>> inspect(file)["time"]
    '3us'
    """
    core = outside.native(scenario_at(checkpoint, folder)._core, "checkpoints")
    tree: dict[str, Any] = json.loads(_core.inspect(core, checkpoint, what, flow))
    return tree


def scenario_at(checkpoint: str | Path, folder: str | Path | None = None) -> Scenario:
    """The scenario of a checkpoint, every default filled in.

    The files that it names are in `folder`; by default where they were when it ran, if that is in the folder in which
    this program runs: a checkpoint may come from another person, and names no place elsewhere.
    """
    toml, _, was = _core.checkpoint_of(checkpoint)
    here = Path.cwd()
    if folder is None:
        real = os.path.realpath(was)
        folder = was if was and Path(real).is_relative_to(here.resolve()) else here
    return Scenario.from_toml(toml, str(checkpoint), folder)


def fork(
    checkpoint: str | Path,
    *changes: Mapping[str, Any] | Scenario,
    threads: int | None = None,
    progress: bool | _Listener | None = None,
    names: Sequence[str] | None = None,
    memory_limit: float | None = None,
    folder: str | Path | None = None,
) -> list[Result]:
    """Runs that go on from one checkpoint, each with other settings from there on: many what-ifs without simulating
    the time before again.

    `changes`: keys with their values for each run, as in `Scenario.with_`; `{}` changes nothing. Or scenarios. The runs
    go side by side, up to the number of cores or `threads`. `names`: one for each run. All are checked before the
    first begins: a key that can't change raises a `ScenarioError` that says why (`docs/checkpoints.md` has the list).
    Of a failure or a message that begins after the checkpoint, the result is that of a whole run with it. Ctrl-C ends
    those that run with what they have; those that have not begun are left out. `memory_limit` as in `cw.run`, for
    all together. `folder`: where the files are that the scenario names, if they are not where they were.

    >>> import clearway as cw, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tiny.checkpoint"
    >>> whole = cw.run("examples/tiny.toml", checkpoint="3us", checkpoint_file=file)
    >>> same, slow = fork(file, {}, {"failure": [{"link": ["host1", "switch0"], "at": "4us", "rate": "1Gbps"}]})
    >>> same.digest == whole.digest, slow.digest == whole.digest
    (True, False)
    """
    base = scenario_at(checkpoint, folder)
    variants = [change if isinstance(change, Scenario) else base.with_(change) for change in changes]
    if names is not None and len(names) != len(variants):
        raise ValueError(f"names: {len(names)} for {len(variants)} forks; give one for each")
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads}: must be at least 1")
    said = [change if isinstance(change, Mapping) else {} for change in changes]
    labels = list(names or (_name(base, change, number) for number, change in enumerate(said)))
    core, *cores = (outside.native(of._core, "checkpoints") for of in [base, *variants])
    count = min(threads or _cores(), _cores())
    began, cpu = time.perf_counter(), time.process_time()
    with _Line(f"{base.name}, {len(cores)} forks", progress) as line:
        # It is told of all forks together.
        told = line.told()
        ran = _core.fork(core, checkpoint, cores, count, told, memory_bytes_max(memory_limit))
    return [result_of(label, one, began, cpu) for label, one in zip(labels, ran) if one is not None]


def _name(base: Scenario, change: Mapping[str, Any], number: int) -> str:
    said = ", ".join(f"{key}={value}" for key, value in change.items())
    return f"{base.name}, {said or 'unchanged'}" if len(said) < 60 else f"{base.name}, fork {number}"


def bisect(
    one: Scenario | str | Path,
    other: Scenario | str | Path | None = None,
    *,
    threads: tuple[int, int] = (1, 1),
) -> dict[str, Any]:
    """The first event after which the states of two runs differ.

    Two scenarios with the same nodes and links; without `other` the same one twice, on the two numbers of `threads`.
    `state` has the first difference in a field of a node or link: its time, the place, the field, and what both have
    there. `arrival` has the first packet that comes to a node otherwise, which is what changes a digest. `None` where
    there is none. Fields that follow from settings differ from the start: they are named in `from_start`, and left out.

    >>> import clearway as cw
    >>> tiny = cw.Scenario.load("examples/tiny.toml")
    >>> broken = tiny.with_({"failure": [{"link": ["host1", "switch0"], "at": "3us"}]})
    >>> found = bisect(tiny, broken)["state"]
    >>> found["at"], found["place"]
    ('3us', 'host1')
    >>> bisect(tiny, threads=(1, 2))["state"] is None
    True
    """
    sides = [scenario_of(one), scenario_of(one if other is None else other)]
    cores = [outside.native(side._core, "bisect") for side in sides]
    found: dict[str, Any] = json.loads(_core.bisect(cores[0], cores[1], threads))
    return found
