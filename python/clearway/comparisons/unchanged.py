"""Runs that should differ and do not: another transport, flow control or fabric, and every packet as it was.

A setting that has no effect looks like a result. Where two runs of a comparison or sweep differ in one of these three
and have the same digest, the table, the page and the terminal say so, with what is likely to be the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearway.results.result import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COLUMN = "same digest as"
"""Of a table: the run that this one does not differ from."""
NAMED = 4
"""The number of runs that a sentence names."""

_REASONS = {
    "transport": (
        "nothing happened to which these transports react differently (no queue, mark or loss, or too few packets), or "
        "the setting that differs belongs to a part that is off"
    ),
    "flow control": "no queue became long enough for either to pause anything",
    "fabric": "no packet passes the parts in which the fabrics differ",
}
_AT_FLOW_LEVEL = "at flow level transports share links alike and flow controls do nothing; compare at packet level"


@dataclass(frozen=True)
class Ran:
    """A run: its name, its digest, its level, and its scenario with every default filled in."""

    name: str
    digest: str
    level: str
    toml: str


@dataclass(frozen=True)
class Unchanged:
    """Runs with one digest, of which each differs from the first in what is named."""

    first: str
    others: tuple[str, ...]
    differs: tuple[str, ...]
    level: str

    def __str__(self) -> str:
        others = "; ".join(self.others[:NAMED]) + ("; ..." if len(self.others) > NAMED else "")
        differs = " and ".join(self.differs)
        at_flow_level = self.level == "flow" and "fabric" not in self.differs
        why = [_AT_FLOW_LEVEL] if at_flow_level else [_REASONS[one] for one in self.differs]
        return (
            f"{others}: another {differs} than {self.first}, but the same digest: every packet was the same, so "
            f"nothing can be concluded from their equal results. Likely reason: {'; '.join(why)}."
        )


def unchanged(runs: Iterable[Ran]) -> list[Unchanged]:
    """Those of these runs that should have differed and did not.

    >>> toml = "[fabric.star]\\nhosts = 2\\n[[traffic]]\\nname = 'a'\\n"
    >>> runs = [Ran(name, "00ff", "packet", f"transport = '{name}'\\n" + toml) for name in ("udp", "dctcp")]
    >>> [(one.first, one.others, one.differs) for one in unchanged(runs)]
    [('udp', ('dctcp',), ('transport',))]
    """
    alike: dict[tuple[str, str], list[Ran]] = {}
    for run in runs:
        if run.digest:
            alike.setdefault((run.level, run.digest), []).append(run)
    found = []
    for same in alike.values():
        if len(same) < 2:
            continue
        first, *rest = ((run, _of(run.toml)) for run in same)
        groups: dict[tuple[str, ...], list[str]] = {}
        for run, of in rest:
            differs = tuple(what for what, value in of.items() if value != first[1][what])
            if differs:
                groups.setdefault(differs, []).append(run.name)
        found += [Unchanged(first[0].name, tuple(names), what, first[0].level) for what, names in groups.items()]
    return found


def of_results(results: Iterable[Result]) -> list[Unchanged]:
    """The same of results."""
    return unchanged(Ran(one.name, one.digest or "", one.level, one.scenario_toml) for one in results)


def same_as(found: Iterable[Unchanged]) -> dict[str, str]:
    """For each run: the run from which it should differ and does not."""
    return {other: one.first for one in found for other in one.others}


def _of(toml: str) -> dict[str, Any]:
    """The transport of each class and job, the flow control, and the fabric."""
    scenario = tomllib.loads(toml)
    classes = [*scenario.get("traffic", []), *scenario.get("job", [])]
    return {
        "transport": [one.get("transport", scenario.get("transport")) for one in classes],
        "flow control": scenario.get("flow_control"),
        "fabric": scenario.get("fabric"),
    }
