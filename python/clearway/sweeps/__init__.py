"""Sweeps: many runs whose results are kept by their content, so that nothing is computed twice.

A *point* is a run with labels, and a *task* is what is run: a simulation, or anything else whose result is a folder. A
task's key is a digest of everything that determines its result, and a *store* is a folder of results by key. The store
is the only state. A *driver* runs points; there may be several on one store, on several machines. It claims a key, has
its *workers* run the task, and puts the result in its place by renaming. So whatever is killed at any moment, the store
has only complete results, and claims of dead drivers, which the next driver takes over.

- `points.py`: points, tasks, keys
- `file.py`, `values.py`: `sweep.toml`
- `store.py`: results, failures, claims, logs
- `driver.py`: which run when; what is done about failures
- `local.py`, `worker.py`: processes of this machine; `cluster.py`: Dask
- `watch.py`: the display meanwhile
- `result.py`, `page.py`: the table, the dataset, the report

Absent on purpose: a database, a scheduler of our own, retries of runs that failed by themselves (they would fail again:
a simulation repeats itself exactly).
"""

from clearway.sweeps.points import Point, Simulation, Task
from clearway.sweeps.result import SweepResult
from clearway.sweeps.sweep import Sweep, sweep

__all__ = ["Point", "Simulation", "Sweep", "SweepResult", "Task", "sweep"]
