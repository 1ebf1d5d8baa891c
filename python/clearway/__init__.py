"""Clearway: a laboratory for datacenter networks without congestion.

    import clearway as cw

    r = cw.run(cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_(load=0.8))
    r.slowdown(by="size")
    r.flows.to_pandas()
    r.plot.slowdown()
"""

from clearway import harmony, r2c2
from clearway._compare_all import Everything, compare_all
from clearway._core import __version__
from clearway._errors import ScenarioError
from clearway._listings import fabrics, schema, schemes, workloads
from clearway._results import Result, Table
from clearway._run import Comparison, Progress, compare, live, run
from clearway._scenario import Scenario
from clearway._sustain import Sustained, sustain
from clearway._sweep import Point, Sweep, SweepResult, sweep

load = Result.load

__all__ = [
    "Comparison",
    "Everything",
    "Point",
    "Progress",
    "Result",
    "Scenario",
    "ScenarioError",
    "Sustained",
    "Sweep",
    "SweepResult",
    "Table",
    "__version__",
    "compare",
    "compare_all",
    "fabrics",
    "harmony",
    "live",
    "load",
    "r2c2",
    "run",
    "schema",
    "schemes",
    "sustain",
    "sweep",
    "workloads",
]
