"""What runs say of their settings: that one has no effect, or can hardly work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def lines_of(said: Mapping[str, Sequence[str]], runs: int) -> list[str]:
    """Each warning once, with the names of the runs that say it, unless all do.

    >>> lines_of({"a: has no effect": ["x", "y"], "b: is too short": ["x"]}, 2)
    ['warning: a: has no effect', 'x: warning: b: is too short']
    """
    lines = []
    for warning, names in said.items():
        few = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
        whose = "" if len(names) == runs else f"{', '.join(few)}: "
        lines.append(f"{whose}warning: {warning}")
    return lines
