"""Defaults that the command line shows and the package uses: here, so that help needs no data frames."""

from typing import Literal, TypeAlias, get_args

Level: TypeAlias = Literal["packet", "flow", "links"]
"""How much of a network is simulated: packets, flows that share links max-min fairly, or each link alone."""
LEVELS: tuple[Level, ...] = get_args(Level)

FastForward: TypeAlias = Literal["off", "exact", "approximate"]
"""The values of a scenario's `fast_forward`: which repetition of a run is skipped."""

KEEPS_UP = 0.98
"""The share of arriving bytes that a network must deliver for the load to be sustained, by default: all but 2%."""

ONE_RUN = "95% of resamplings of one run's flows; what other seeds give it does not say"
"""The meaning of the interval of a single run."""
