"""How lines are told apart: a colour, a dash and a marker for each transport and scheme, the same in every picture.

Colours are chosen for readers with colour blindness (the first eight after Okabe and Ito) and can be seen on white and
on dark pages. Dashes say the family: what asks before it sends is solid, what reacts is dashed, what is paused link by
link is dashed and dotted, what shares among entities is dotted.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clearway.reports.spec import SPEC

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway.results.result import Result

COLOURS: tuple[str, ...] = tuple(SPEC["looks"]["colours"].values())
# In matplotlib's words.
DASHES: tuple[str, ...] = tuple(SPEC["looks"]["dashes"])
MARKERS: tuple[str, ...] = tuple(SPEC["looks"]["markers"])


class Look(NamedTuple):
    """How a line is drawn; dash and marker in matplotlib's words."""

    colour: str
    dash: str = "-"
    marker: str = "o"

    def beside(self, number: int) -> Look:
        """The same colour, for the next lines of the same name: 0 is this look itself."""
        dash, marker = DASHES.index(self.dash) + number, MARKERS.index(self.marker) + number
        return Look(self.colour, DASHES[dash % len(DASHES)], MARKERS[marker % len(MARKERS)])


LOOKS = {
    name: Look(SPEC["looks"]["colours"][colour], dash, marker)
    for name, (colour, dash, marker) in SPEC["looks"]["schemes"].items()
}


def look(name: str) -> Look | None:
    """The look of a transport, a flow control, a mechanism of sharing, or of a transport over a flow control.

    RDMA leaves everything to the flow control below it and looks like that; what runs over PFC looks like itself.
    """
    over, _, below = name.partition(" over ")
    if below and over == "rdma":
        return LOOKS.get(below)
    return LOOKS.get(over) if below in ("", "pfc") else None


def looks(names: Sequence[str]) -> list[Look]:
    """A look for each name, no two alike: its own, and what is free for names that have none."""
    found: list[Look | None] = []
    for name in names:
        own = look(name)
        found.append(None if own in found else own)
    taken = {one for one in found if one is not None}
    used = Counter(one.colour for one in taken)
    filled = []
    for own in found:
        one = own or _free(taken, used)
        if own is None:
            taken.add(one)
            used[one.colour] += 1
        filled.append(one)
    return filled


def _free(taken: set[Look], used: Counter[str]) -> Look:
    """A look that is not taken, of a colour that is taken least."""
    colour = min(COLOURS, key=lambda one: used[one])
    pairs: Iterator[tuple[str, str]] = ((dash, marker) for marker in MARKERS for dash in DASHES)
    of_colour = (Look(colour, *pair) for pair in pairs)
    return next(itertools.chain((one for one in of_colour if one not in taken), [Look(colour)]))


def looks_of(results: Sequence[Result]) -> list[Look]:
    """A look for each result: that of its scheme, if it has one alone."""
    return looks([_scheme(result) for result in results])


def _scheme(result: Result) -> str:
    """The transport of a result with the flow control below it; empty if there are several transports."""
    transports = result.flows.to_arrow()["transport"].combine_chunks().dictionary.to_pylist()
    below = tomllib.loads(result.scenario_toml).get("flow_control", "none")
    name = below if isinstance(below, str) else next(iter(below), "none")
    if len(transports) != 1:
        return ""
    return str(transports[0]) if name == "none" else f"{transports[0]} over {name}"
