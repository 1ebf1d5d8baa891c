"""Ranges of values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

# More values than this are a mistake, such as a step in the wrong unit.
MOST = 10_000


def span(said: Mapping[str, Any]) -> list[Any]:
    """The values of a range: `from` and `to`, both included, and `step` (1 by default), `factor` or `count`.

    Both ends may have a unit, the same one. `ValueError` says what is wrong with a range.

    >>> span({"from": 0.3, "to": 0.9, "step": 0.2})
    [0.3, 0.5, 0.7, 0.9]
    >>> span({"from": "10KB", "to": "80KB", "factor": 2})
    ['10KB', '20KB', '40KB', '80KB']
    >>> span({"from": 1, "to": 4})
    [1, 2, 3, 4]
    """
    missing = [end for end in ("from", "to") if end not in said]
    ways = [way for way in ("step", "factor", "count") if way in said]
    if missing:
        raise ValueError(f"a range needs {missing[0]!r}, as in {{ from = 1, to = 5 }}")
    if len(ways) > 1:
        raise ValueError(f"{' and '.join(ways)} both set the distance of values; write one of them")
    (low, unit), (high, other) = _number("from", said["from"]), _number("to", said["to"])
    if unit != other:
        raise ValueError(f"from {said['from']} to {said['to']}: write both in the same unit")
    way = ways[0] if ways else "step"
    by, by_unit = _number(way, said.get(way, f"1{unit}" if unit else 1))
    if by_unit != (unit if way == "step" else ""):
        raise ValueError(f"{way} {said[way]}: write it {f'in {unit}' if unit and way == 'step' else 'without a unit'}")
    numbers = _numbers(low, high, way, by)
    whole = all(isinstance(number, int) for number in (low, by)) and all(
        float(number).is_integer() for number in numbers
    )
    values = [int(number) if whole else number for number in numbers]
    return [f"{value:.12g}{unit}" for value in values] if unit else values


def _numbers(low: float, high: float, way: str, by: float) -> list[float]:
    """The values of a range, rounded to hide floating-point error."""
    if not low <= high:
        raise ValueError(f"from {low:g} to {high:g} is empty; write the lower end at from")
    if way == "count":
        if by != int(by) or not 2 <= by <= MOST:
            raise ValueError(f"count {by:g}: must be a whole number from 2 (both ends) to {MOST:,}")
        return [_round(low + (high - low) * step / (by - 1)) for step in range(int(by))]
    if way == "step" and not by > 0:
        raise ValueError(f"step {by:g}: must be above 0")
    if way == "factor" and not (by > 1 and low > 0):
        raise ValueError(f"factor {by:g} from {low:g}: factor must be above 1, and from above 0")
    steps = (high - low) / by if way == "step" else math.log(high / low, by)
    if not steps <= MOST:
        raise ValueError(
            f"{way} {by:g} from {low:g} to {high:g} gives more than {MOST:,} values, which is the most; write a "
            f"larger {way}"
        )
    return [_round(low + step * by if way == "step" else low * by**step) for step in range(int(steps + 1e-9) + 1)]


def _round(number: float) -> float:
    return float(f"{number:.12g}")


def _number(end: str, said: Any) -> tuple[float, str]:
    """A number and its unit."""
    if isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said):
        return said, ""
    found = re.fullmatch(r"([0-9.]+)\s*([A-Za-z]+)", said) if isinstance(said, str) else None
    try:
        assert found is not None
        number = float(found[1])
    except (AssertionError, ValueError):
        raise ValueError(f"{end} {said!r} is not a number, with or without a unit") from None
    return number, found[2]
