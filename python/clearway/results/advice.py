"""Advice of runs on their settings: on those without effect, and on those that can hardly work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_NUMBER = re.compile(r"\d[\d.,]*")


def by_warning(runs: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    """The names of the runs that have each warning, of runs by name and warnings.

    >>> by_warning([("x", ["a", "b"]), ("y", ["b"])])
    {'a': ['x'], 'b': ['x', 'y']}
    """
    said: dict[str, list[str]] = {}
    for name, warnings in runs:
        for warning in warnings:
            said.setdefault(warning, []).append(name)
    return said


def lines_of(said: Mapping[str, Sequence[str]], runs: int) -> list[str]:
    """Each warning once, with the names of the runs that say it, unless all do. Where runs differ only in the numbers
    of a warning, as with several seeds, those of the first stand for all.

    >>> lines_of({"a: has no effect": ["x", "y"], "b: 3us is too short": ["x"], "b: 4us is too short": ["z"]}, 2)
    ['warning: a: has no effect', 'warning: b: 3us is too short']
    >>> lines_of({"b: 3us is too short": ["x"], "b: 4us is too short": ["y"]}, 5)
    ['x; y: warning: b: 3us is too short']
    """
    alike: dict[str, tuple[str, list[str]]] = {}
    for warning, names in said.items():
        alike.setdefault(_NUMBER.sub("#", warning), (warning, []))[1].extend(names)
    lines = []
    for warning, names in alike.values():
        few = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
        whose = "" if len(names) == runs else f"{'; '.join(few)}: "
        lines.append(f"{whose}warning: {warning}")
    return lines
