"""Bootstrap confidence intervals (95%) of means and quantiles, the same each time.

For a single run, flows are resampled with replacement, as if they were independent. They are not: flows that meet in a
queue are slow together, so this interval is rather too narrow. For several seeds, whole runs are resampled. That
interval is valid, and wide while there are few seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SHARE = 0.95
DRAWS = 400
SEED = 1
# With more values than this, the mean of a resample is practically normal, with the variance of the values over their
# number.
EACH = 500

Interval = tuple[float, float]
Floats = npt.NDArray[np.floating[Any]]


def of_mean(values: Floats) -> Interval:
    """The interval of the mean; NaN for fewer than two values.

    >>> low, high = of_mean(np.arange(100.0))
    >>> round(low), round(high)  # 49.5 and 1.96 standard errors, of 2.89
    (44, 55)
    """
    if len(values) < 2:
        return float("nan"), float("nan")
    if len(values) > EACH:
        # 97.5% of a normal distribution lie below 1.96 standard deviations.
        far = 1.959964 * float(values.std()) / len(values) ** 0.5
        return float(values.mean()) - far, float(values.mean()) + far
    drawn = values[np.random.default_rng(SEED).integers(0, len(values), (DRAWS, len(values)))].mean(axis=1)
    return _ends(drawn)


def of_quantile(rising: Floats, quantile: float) -> Interval:
    """The interval of a quantile of sorted values; NaN for fewer than two.

    The k-th smallest of n resampled values is the value at a position with the distribution of the k-th smallest of n
    uniform numbers: beta(k, n + 1 - k). So it is drawn directly, however many values there are.

    >>> of_quantile(np.arange(10_000.0), 0.5)  # the middle, and about 1.96 * 50 places to each side
    (4896.0, 5099.0)
    """
    count = len(rising)
    if count < 2:
        return float("nan"), float("nan")
    place = (count - 1) * quantile
    drawn = np.random.default_rng(SEED).beta(place + 1, count - place, DRAWS * 5)
    return _ends(rising[np.minimum((drawn * count).astype(int), count - 1)])


def _ends(drawn: Floats) -> Interval:
    low, high = np.quantile(drawn, [(1 - SHARE) / 2, (1 + SHARE) / 2], method="closest_observation")
    return float(low), float(high)
