"""How far a mean or a quantile would move if the run were made again: bootstrap intervals of 95%, the same each time.

Of one run its flows are drawn anew, with replacement, as if each were independent of the others. They are not: flows
that meet in a queue are slow together, so that an interval of one run is rather too narrow. Of several seeds whole runs
are drawn anew, which is honest, and wide while there are few.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SHARE = 0.95
DRAWS = 400
SEED = 1
# Of more values than this the mean of a draw is as good as normal, with the variance of the values over their number.
EACH = 500

Interval = tuple[float, float]
Floats = npt.NDArray[np.floating[Any]]


def of_mean(values: Floats) -> Interval:
    """Of the mean; not a number for fewer than two values.

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
    """Of a quantile of values in rising order; not a number for fewer than two.

    The k-th smallest of n draws with replacement is the value at a place that is distributed as the k-th smallest of n
    uniform numbers: beta(k, n + 1 - k). So it is drawn at once, however many values there are.

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
