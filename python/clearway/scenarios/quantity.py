"""Quantities as scenarios write them, in numbers."""

from __future__ import annotations

import re

LIGHT_M_PER_S = 198_000_000
"""Speed of light in a cable."""
_UNITS = {"": 1, "K": 10**3, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_A_SECOND = {"ps": 1e12, "ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
"""Units in a second. Dividing by a whole number gives the nearest float; 1e-9 is itself rounded."""


def amount(text: object) -> float:
    """Bytes, bit/s or seconds of a quantity as scenarios have it.

    >>> amount("12MB"), amount("3.6Tbps"), amount("200ns")
    (12000000.0, 3600000000000.0, 2e-07)
    """
    found = re.fullmatch(r"([\d.]+)\s*([A-Za-z]*)", str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a quantity, such as 12MB")
    number, unit = float(found[1]), found[2]
    if unit in _A_SECOND:
        return number / _A_SECOND[unit]
    prefix = re.sub(r"(B|bps)$", "", unit)
    return number * (_BINARY.get(prefix) or _UNITS[prefix])
