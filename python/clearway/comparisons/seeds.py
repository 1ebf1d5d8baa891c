"""Comparisons of all schemes with several seeds: which seeds, and the rows of runs that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from clearway.results.confidence import of_seeds


def seeds_from(seed: int, seeds: int | Iterable[int]) -> list[int]:
    """The seeds of a comparison: `seeds` of them from `seed` on, or those that `seeds` lists.

    >>> seeds_from(3, 2), seeds_from(1, [7, 9])
    ([3, 4], [7, 9])
    """
    if isinstance(seeds, int):
        if seeds < 1:
            raise ValueError(f"seeds={seeds}: must be at least 1, or a list of seeds")
        return list(range(seed, seed + seeds))
    listed = list(seeds)
    if not listed or len(set(listed)) < len(listed):
        raise ValueError(f"seeds={listed}: name each seed once")
    return listed


def label(seed: int, seeds: Sequence[int]) -> dict[str, Any]:
    """The label of a run among runs with other seeds."""
    return {"seed": seed} if len(seeds) > 1 else {}


def said(seeds: Sequence[int]) -> str:
    """Which seeds, in words.

    >>> said([1]), said([1, 2, 3]), said([1, 5])
    ('seed 1', 'means over seeds 1 to 3', 'means over seeds 1, 5')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    row = list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return "means over seeds " + (f"{seeds[0]} to {seeds[-1]}" if row else ", ".join(map(str, seeds)))


def over_seeds(runs: pd.DataFrame, by: Sequence[str], *, whole: bool = False) -> pd.DataFrame:
    """Means over the seeds of runs with equal labels `by`; `NAME low` and `NAME high` become the ends of a 95%
    t-interval over seeds. `audit` is that of the worst run. With `whole`, a number that one run lacks is not known of
    all, as the time of a job that never ends. Runs with one seed each stay as they are.

    >>> runs = pd.DataFrame({"scheme": ["a", "a"], "seed": [1, 2], "mean": [1.0, 3.0], "mean low": 0.0, "audit": 1.0})
    >>> over_seeds(runs, ["scheme"])[["scheme", "seeds", "mean", "mean low"]].values.tolist()
    [['a', 2, 2.0, -10.70...]]
    """
    if "seed" not in runs:
        return runs
    numbers = [name for name in runs.select_dtypes("number") if name not in (*by, "seed")]
    found = []
    for _, group in runs.groupby(list(by), sort=False, dropna=False):
        row: dict[Any, Any] = {name: group[name].iloc[0] for name in by} | {"seeds": len(group)}
        ends: dict[str, float] = {}
        for name in numbers:
            values = group[name].to_numpy(dtype=float)
            known = values[~np.isnan(values)]
            row[name] = float(known.mean()) if len(known) and not (whole and len(known) < len(values)) else np.nan
            ends[f"{name} low"], ends[f"{name} high"] = of_seeds(known)
        row |= {name: end for name, end in ends.items() if name in runs}
        found.append(row | {"audit": float(group["audit"].min())})
    return pd.DataFrame(found)
