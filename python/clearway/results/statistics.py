"""Counts, means and quantiles of groups of flows, with their intervals: numbers alone, which need no data frames."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clearway.results.confidence import of_mean, of_quantile

if TYPE_CHECKING:
    from clearway.results.result import Result

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
SIZES = ("short", "medium", "long")
"""Classes of flows by length: up to one bandwidth-delay product, up to eight, and longer."""


def of_groups(values: Floats, groups: Mapping[str, Bools]) -> dict[str, dict[str, float]]:
    """By group: the number of its values that are known, their mean and quantiles (linear between order statistics),
    each with the ends of its interval.
    """
    return {group: of_values(values[mine]) for group, mine in groups.items()}


def of_values(values: Floats) -> dict[str, float]:
    """The number of known values, their mean and quantiles, each with the ends of its interval."""
    rising = np.sort(values[~np.isnan(values)])
    count = len(rising)
    row = {"flows": count, "mean": math.fsum(rising) / count if count else math.nan}
    row |= {name: quantile(rising, share) for name, share in QUANTILES.items()}
    for name in ("mean", *QUANTILES):
        row[f"{name} low"], row[f"{name} high"] = (
            of_mean(rising) if name == "mean" else of_quantile(rising, QUANTILES[name])
        )
    return row


def quantile(rising: Floats, share: float) -> float:
    """A quantile of sorted values, linear between the two next to it; NaN without any."""
    if not len(rising):
        return math.nan
    place = share * (len(rising) - 1)
    below = int(place)
    value = float(rising[below])
    if place == below:
        return value
    return value + (float(rising[below + 1]) - value) * (place - below)


def sizes(result: Result) -> npt.NDArray[Any]:
    """The class by length of each flow."""
    bdp = result.info["bdp_bytes"]
    place = np.searchsorted([bdp, 8 * bdp], np.asarray(result.flows["bytes"], dtype=float), side="left")
    return np.array(SIZES, dtype=object)[place]


def slowdowns(result: Result) -> dict[str, dict[str, float]]:
    """The slowdown of all completed flows, and of short, medium and long ones: `Result.slowdown` has the columns."""
    values, of = np.asarray(result.flows["slowdown"], dtype=float), sizes(result)
    return of_groups(values, {"all": np.ones(len(values), dtype=bool), **{size: of == size for size in SIZES}})
