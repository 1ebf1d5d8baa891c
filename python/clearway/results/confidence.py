"""Intervals (95%) of means and quantiles, the same each time.

For a single run, flows are resampled with replacement, as if they were independent. They are not: flows that meet in a
queue are slow together. So this interval says how far the flows of that run tell, and is no confidence interval of what
other seeds would give. It is a bootstrap interval, and needs some flows ([`of_mean`], [`of_quantile`]).

For several seeds the numbers of whole runs are independent, and few: Student's t-interval of their mean ([`of_seeds`]).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

SHARE = 0.95
DRAWS = 400
SEED = 1
LEAST = 20
"""With fewer values a bootstrap interval of the mean is too narrow: with n values from a normal distribution it covers
P(|t| < 1.96 sqrt(1 - 1/n)) with n - 1 degrees of freedom, which is 93% for 20 and 75% for 3."""
# With more values than this, the mean of a resample is practically normal, with the variance of the values over their
# number.
EACH = 500

Interval = tuple[float, float]
Floats = npt.NDArray[np.floating[Any]]


def of_mean(values: Floats) -> Interval:
    """The interval of the mean; NaN for fewer than `LEAST` values.

    >>> low, high = of_mean(np.arange(100.0))
    >>> round(low), round(high)  # 49.5 and 1.96 standard errors, of 2.89
    (44, 55)
    """
    if len(values) < LEAST:
        return float("nan"), float("nan")
    if len(values) > EACH:
        # 97.5% of a normal distribution lie below 1.96 standard deviations.
        far = 1.959964 * float(values.std()) / len(values) ** 0.5
        return float(values.mean()) - far, float(values.mean()) + far
    drawn = values[np.random.default_rng(SEED).integers(0, len(values), (DRAWS, len(values)))].mean(axis=1)
    return _ends(drawn)


def of_quantile(rising: Floats, quantile: float) -> Interval:
    """The interval of a quantile of sorted values; NaN if there are so few that even the largest is below the quantile
    in more than 2.5% of samples: then no value can be the interval's upper end. That takes 6 values for the median,
    368 for the 99th percentile, and 3,688 for the 99.9th.

    The k-th smallest of n resampled values is the value at a position with the distribution of the k-th smallest of n
    uniform numbers: beta(k, n + 1 - k). So it is drawn directly, however many values there are.

    >>> of_quantile(np.arange(10_000.0), 0.5)  # the middle, and about 1.96 * 50 places to each side
    (4896.0, 5099.0)
    """
    count = len(rising)
    if count < 2 or quantile**count > (1 - SHARE) / 2:
        return float("nan"), float("nan")
    place = (count - 1) * quantile
    drawn = np.random.default_rng(SEED).beta(place + 1, count - place, DRAWS * 5)
    return _ends(rising[np.minimum((drawn * count).astype(int), count - 1)])


def _ends(drawn: Floats) -> Interval:
    low, high = np.quantile(drawn, [(1 - SHARE) / 2, (1 + SHARE) / 2], method="closest_observation")
    return float(low), float(high)


def of_seeds(values: Floats) -> Interval:
    """Student's t-interval of the mean of a number that each of several runs gives; NaN for fewer than two runs.

    >>> of_seeds(np.array([1.0, 2.0, 3.0]))  # 2 and 4.303 standard errors, of 0.577
    (-0.48..., 4.48...)
    """
    count = len(values)
    if count < 2:
        return float("nan"), float("nan")
    far = student(count - 1) * float(values.std(ddof=1)) / math.sqrt(count)
    mean = float(values.mean())
    return mean - far, mean + far


def student(degrees: int) -> float:
    """How many standard errors to each side hold 95% of Student's t-distribution, by bisection of its distribution
    (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> [round(student(degrees), 3) for degrees in (1, 2, 4, 9, 29)]
    [12.706, 4.303, 2.776, 2.262, 2.045]
    """
    low, high = 1.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < SHARE else (low, middle)
    return low


def _within(far: float, degrees: int) -> float:
    """The share of Student's t-distribution between `-far` and `far`."""
    angle = math.atan(far / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    term, total = (cosine, cosine) if degrees % 2 else (1.0, 1.0)
    for step in range(2 + degrees % 2, degrees - 1, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    if degrees % 2 == 0:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
