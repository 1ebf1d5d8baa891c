"""Clearway: a packet-level simulator for datacenter networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clearway._core import __version__
from clearway._errors import MazeOver, Rejected, ScenarioError, Undelivered

if TYPE_CHECKING:
    from clearway import gym, harmony, r2c2
    from clearway._compare_all import Everything, compare_all
    from clearway._compare_outage import Outage, compare_outage
    from clearway._compare_training import Training, compare_training
    from clearway._comparison import Comparison, compare
    from clearway._control import Control
    from clearway._estimate import Estimate
    from clearway._listings import fabrics, schema, schemes, workloads
    from clearway._machines import Joined, join
    from clearway._maze import Address, Completion, Completions, Delivery, JoinedMaze, Maze, Message, Sent, Socket
    from clearway._new import new_transport
    from clearway._program import trust
    from clearway._results import Result, Table, load
    from clearway._rpc import Rpc, RpcError
    from clearway._run import Progress, live, run
    from clearway._scenario import Scenario
    from clearway._sustain import Sustained, sustain
    from clearway._sweep.points import Point
    from clearway._sweep.result import SweepResult
    from clearway._sweep.sweep import Sweep, sweep

__all__ = [
    "Address",
    "Comparison",
    "Completion",
    "Completions",
    "Control",
    "Delivery",
    "Estimate",
    "Everything",
    "Joined",
    "JoinedMaze",
    "Maze",
    "MazeOver",
    "Message",
    "Outage",
    "Point",
    "Progress",
    "Rejected",
    "Result",
    "Rpc",
    "RpcError",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Socket",
    "Sustained",
    "Sweep",
    "SweepResult",
    "Table",
    "Training",
    "Undelivered",
    "__version__",
    "compare",
    "compare_all",
    "compare_outage",
    "compare_training",
    "fabrics",
    "gym",
    "harmony",
    "join",
    "live",
    "load",
    "new_transport",
    "r2c2",
    "run",
    "schema",
    "schemes",
    "sustain",
    "sweep",
    "trust",
    "workloads",
]

# The module of each name. It is imported on first use, so that the command's help does not wait for data frames and
# plots.
_PLACES = {
    "_compare_all": ("Everything", "compare_all"),
    "_compare_outage": ("Outage", "compare_outage"),
    "_compare_training": ("Training", "compare_training"),
    "_comparison": ("Comparison", "compare"),
    "_control": ("Control",),
    "_estimate": ("Estimate",),
    "_listings": ("fabrics", "schema", "schemes", "workloads"),
    "_machines": ("Joined", "join"),
    "_maze": ("Address", "Completion", "Completions", "Delivery", "JoinedMaze", "Maze", "Message", "Sent", "Socket"),
    "_new": ("new_transport",),
    "_program": ("trust",),
    "_results": ("Result", "Table", "load"),
    "_rpc": ("Rpc", "RpcError"),
    "_run": ("Progress", "live", "run"),
    "_scenario": ("Scenario",),
    "_sustain": ("Sustained", "sustain"),
    "_sweep": ("Point", "Sweep", "SweepResult", "sweep"),
}


def __getattr__(name: str) -> Any:
    if name in ("gym", "harmony", "r2c2"):
        return import_module(f"clearway.{name}")
    for place, names in _PLACES.items():
        if name in names:
            found = getattr(import_module(f"clearway.{place}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'clearway' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
