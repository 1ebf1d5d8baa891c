"""Times as people write them."""

from __future__ import annotations

import re

_UNITS = {"s": 1e12, "ms": 1e9, "us": 1e6, "µs": 1e6, "ns": 1e3, "ps": 1.0}


def time_of(text: str) -> float:
    """A time such as "1.2ms" in picoseconds."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zµ]+)\s*", text)
    if found is None or found[2] not in _UNITS or found[1].count(".") > 1 or found[1] == ".":
        raise ValueError(f"{text!r} is no time: write a number and one of {', '.join(_UNITS)}, such as 1.2ms")
    return float(found[1]) * _UNITS[found[2]]
