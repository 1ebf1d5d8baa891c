"""Clearway: a packet-level simulator for datacenter networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clearway._core import __version__
from clearway.defaults import FastForward, Level
from clearway.errors import Error, MazeOver, Rejected, ResultError, ScenarioError, Undelivered

if TYPE_CHECKING:
    from clearway import gym, harmony, r2c2
    from clearway.calibration.fit import Calibration, calibrate
    from clearway.comparisons.advise import Advice, advise
    from clearway.comparisons.all_schemes import SchemeComparison, compare_all
    from clearway.comparisons.comparison import Comparison, compare
    from clearway.comparisons.outage import Outage, compare_outage
    from clearway.comparisons.sustain import Sustained, sustain
    from clearway.comparisons.training import Training, compare_training
    from clearway.peers.opinion import SecondOpinion, against
    from clearway.programs.new import new_transport
    from clearway.programs.program import trust
    from clearway.results.result import Result, Table, load
    from clearway.results.scan import Scan, scan
    from clearway.running.checkpoints import bisect, fork, inspect
    from clearway.running.machines import Joined, join
    from clearway.running.maze import (
        Address,
        Completion,
        Completions,
        Delivery,
        JoinedMaze,
        Maze,
        Message,
        Sent,
        Socket,
    )
    from clearway.running.rpc import Rpc, RpcError
    from clearway.running.run import Progress, live, run
    from clearway.scenarios.control import Control
    from clearway.scenarios.forecast import Forecast
    from clearway.scenarios.listings import fabrics, schema, schemes, workloads
    from clearway.scenarios.scenario import Scenario
    from clearway.sweeps.points import Point
    from clearway.sweeps.result import SweepResult
    from clearway.sweeps.sweep import Sweep, sweep
    from clearway.tuning.search import tune
    from clearway.tuning.tuned import Tuned

__all__ = [
    "Address",
    "Advice",
    "Calibration",
    "Comparison",
    "Completion",
    "Completions",
    "Control",
    "Delivery",
    "Error",
    "FastForward",
    "Forecast",
    "Joined",
    "JoinedMaze",
    "Level",
    "Maze",
    "MazeOver",
    "Message",
    "Outage",
    "Point",
    "Progress",
    "Rejected",
    "Result",
    "ResultError",
    "Rpc",
    "RpcError",
    "Scan",
    "Scenario",
    "ScenarioError",
    "SchemeComparison",
    "SecondOpinion",
    "Sent",
    "Socket",
    "Sustained",
    "Sweep",
    "SweepResult",
    "Table",
    "Training",
    "Tuned",
    "Undelivered",
    "__version__",
    "advise",
    "against",
    "bisect",
    "calibrate",
    "compare",
    "compare_all",
    "compare_outage",
    "compare_training",
    "fabrics",
    "fork",
    "gym",
    "harmony",
    "inspect",
    "join",
    "live",
    "load",
    "new_transport",
    "r2c2",
    "run",
    "scan",
    "schema",
    "schemes",
    "sustain",
    "sweep",
    "trust",
    "tune",
    "workloads",
]

# The module of each name. It is imported on first use, so that the command's help does not wait for data frames and
# plots.
_PLACES = {
    "calibration.fit": ("Calibration", "calibrate"),
    "comparisons.advise": ("Advice", "advise"),
    "comparisons.all_schemes": ("SchemeComparison", "compare_all"),
    "comparisons.comparison": ("Comparison", "compare"),
    "comparisons.outage": ("Outage", "compare_outage"),
    "comparisons.sustain": ("Sustained", "sustain"),
    "comparisons.training": ("Training", "compare_training"),
    "peers.opinion": ("SecondOpinion", "against"),
    "programs.new": ("new_transport",),
    "programs.program": ("trust",),
    "results.result": ("Result", "Table", "load"),
    "results.scan": ("Scan", "scan"),
    "running.checkpoints": ("bisect", "fork", "inspect"),
    "running.machines": ("Joined", "join"),
    "running.maze": (
        "Address",
        "Completion",
        "Completions",
        "Delivery",
        "JoinedMaze",
        "Maze",
        "Message",
        "Sent",
        "Socket",
    ),
    "running.rpc": ("Rpc", "RpcError"),
    "running.run": ("Progress", "live", "run"),
    "scenarios.control": ("Control",),
    "scenarios.forecast": ("Forecast",),
    "scenarios.listings": ("fabrics", "schema", "schemes", "workloads"),
    "scenarios.scenario": ("Scenario",),
    "sweeps": ("Point", "Sweep", "SweepResult", "sweep"),
    "tuning.search": ("tune",),
    "tuning.tuned": ("Tuned",),
}


RENAMED = {"Estimate": "Forecast"}
"""Earlier names."""


def __getattr__(name: str) -> Any:
    if name in ("gym", "harmony", "r2c2"):
        return import_module(f"clearway.{name}")
    for place, names in _PLACES.items():
        if name in names:
            found = getattr(import_module(f"clearway.{place}"), name)
            globals()[name] = found
            return found
    if name in RENAMED:
        raise AttributeError(f"clearway.{name} is called clearway.{RENAMED[name]}")
    raise AttributeError(f"module 'clearway' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
