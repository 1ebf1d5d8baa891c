"""Max-min fair rates by linear programs, to hold R2C2's allocations against (section 3.3): the MP algorithm that the
paper names.

Radunovic and Le Boudec (ToN 2007, section 4.1): maximise the least rate; find the flows that can't have more while all
others have that much; fix them; repeat. It has only the problem in common with the water-filling of
`crates/transports/src/r2c2/rates.rs`. The tests there hold rates against the same programs solved by `microlp`; here a
simplex of forty lines solves them, so that a figure needs no solver.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Below this a rate counts as zero, in the unit of the rates.
NOTHING = 1e-9


def maximise(aim: Array, rows: Array, most: Array) -> float:
    """The most that `aim @ x` can be while `rows @ x <= most` and `x >= 0`. `most` is nowhere below 0, so that x = 0
    is a place to begin."""
    constraints, variables = rows.shape
    tableau = np.zeros((constraints + 1, variables + constraints + 1))
    tableau[:-1, :variables] = rows
    tableau[:-1, variables:-1] = np.eye(constraints)
    tableau[:-1, -1] = most
    tableau[-1, :variables] = -aim
    basis = np.arange(variables, variables + constraints)
    while True:
        # Bland's rule, which rules out cycles: take the first column that improves the objective, and of rows that tie
        # the one of the first variable.
        gaining = np.flatnonzero(tableau[-1, :-1] < -NOTHING)
        if not len(gaining):
            return float(tableau[-1, -1])
        column = gaining[0]
        positive = np.flatnonzero(tableau[:-1, column] > NOTHING)
        if not len(positive):
            raise ValueError("the linear program is unbounded")
        ratios = tableau[positive, -1] / tableau[positive, column]
        tied = positive[ratios <= ratios.min() + NOTHING]
        row = tied[np.argmin(basis[tied])]
        tableau[row] /= tableau[row, column]
        others = np.arange(constraints + 1) != row
        tableau[others] -= np.outer(tableau[others, column], tableau[row])
        basis[row] = column


def max_min(capacity: Array, loads: Array, weights: Array, demands: Array) -> Array:
    """The weighted max-min fair rates of flows (columns of `loads`: what a unit of a flow's rate puts on each link,
    its row), none of which has more than its demand."""
    flows = len(weights)
    of_level = loads * weights
    levels = np.full(flows, np.nan)
    while np.isnan(levels).any():
        free = np.flatnonzero(np.isnan(levels))
        left = np.maximum(capacity - of_level @ np.nan_to_num(levels), 0)
        bounded = np.isfinite(demands[free])
        ceilings = (demands / weights)[free][bounded]
        # One level for all that are free, as high as it can be ...
        rows = np.concatenate([of_level[:, free].sum(axis=1), np.ones(len(ceilings))])[:, None]
        least = maximise(np.ones(1), rows, np.concatenate([left, ceilings]))
        # ... and which of them can't have more than that while the others have it.
        rows = np.concatenate([of_level[:, free], np.eye(len(free))[bounded]])
        spare = np.maximum(np.concatenate([left - of_level[:, free].sum(axis=1) * least, ceilings - least]), 0)
        more = np.array([maximise(np.eye(len(free))[flow], rows, spare) for flow in range(len(free))])
        levels[free[more <= 1e-6]] = least
    return levels * weights
