"""What the command line shows as a default, and the package uses: here, so that help needs no data frames."""

from typing import Literal, TypeAlias, get_args

Level: TypeAlias = Literal["packet", "flow", "links"]
"""How much of a network is simulated: packets, flows that share links max-min fairly, or each link alone."""
LEVELS: tuple[Level, ...] = get_args(Level)

FastForward: TypeAlias = Literal["off", "exact", "approximate"]
"""What `fast_forward` of a scenario may be: which repetition of a run is skipped."""

KEEPS_UP = 0.98
"""What a network must deliver of what arrives for the load to be sustained, where nothing else is said: all but 2%."""

ONE_RUN = "95% of resamplings of one run's flows; what other seeds give it does not say"
"""What the interval of a single run is."""
