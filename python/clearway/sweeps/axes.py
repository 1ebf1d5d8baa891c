"""Axes: the values that a sweep varies. A sweep runs all combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clearway.defaults import LEVELS
from clearway.errors import ScenarioError
from clearway.scenarios.scenario import Scenario
from clearway.sweeps.points import Label, Point


@dataclass(frozen=True)
class Axis:
    """Keys of a scenario that are varied together.

    `load` is every class's, as in `Scenario.with_`; `level` that of the run.
    """

    names: Sequence[str]
    """The name of each key."""
    keys: Sequence[str]
    steps: Sequence[Sequence[Any]]
    """The values of all keys, step by step."""
    labels: Sequence[Sequence[Label]]
    """Their labels, step by step."""

    @staticmethod
    def of(name: str, key: str, values: Iterable[Any]) -> Axis:
        """An axis of one key; each value's label is the value as written."""
        steps = [[value] for value in values]
        return Axis([name], [key], steps, [[label(value) for value in step] for step in steps])


Choice = Mapping[str, Any]
"""Values by key."""


def cross(
    bases: Mapping[str, Scenario],
    axes: Sequence[Axis],
    wanted: Callable[[Mapping[str, Label]], bool] = lambda labels: True,
    located: Callable[[Choice, ScenarioError], ScenarioError] = lambda choice, error: error,
    level: Any = "packet",
) -> list[Point]:
    """Each base with each step of each axis. An axis `scenario` tells bases apart, if there are several."""
    points = []
    for base, labels, choice in _combinations(bases, axes):
        if not wanted(labels):
            continue
        try:
            points.append(Point(chosen(bases[base], choice), labels, choice.get("level", level)))
        except ScenarioError as error:
            raise located(choice, error) from None
    return points


MOST = 100_000
"""The most runs of a sweep. More are a mistake: planning alone would take minutes and gigabytes."""


def too_many(bases: int, axes: Sequence[Axis]) -> str:
    """The error if there are too many combinations; empty otherwise."""
    counts = [len(axis.steps) for axis in axes]
    runs = bases * math.prod(counts)
    if runs <= MOST:
        return ""
    product = " x ".join(f"{count:,}" for count in ([bases] if bases > 1 else []) + counts)
    return (
        f"{product} combinations are {runs:,} runs, and at most {MOST:,} are possible; vary keys together ([[zip]]), "
        "or in larger steps"
    )


def chosen(scenario: Scenario, choice: Choice) -> Scenario:
    """A scenario with chosen values."""
    if choice.get("level", "packet") not in LEVELS:
        raise ScenarioError(f"--set level={choice['level']}", None, "", f"a level is one of {', '.join(LEVELS)}")
    scenario = scenario.with_({key: value for key, value in choice.items() if key not in ("load", "level")})
    if "load" not in choice:
        return scenario
    try:
        return scenario.with_(load=choice["load"])
    except ScenarioError:
        raise
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"--set load={choice['load']}", None, "", str(error).removeprefix("load: ")) from None


def _combinations(
    bases: Mapping[str, Scenario], axes: Sequence[Axis]
) -> Iterator[tuple[str, dict[str, Label], Choice]]:
    steps = [list(zip(axis.steps, axis.labels, strict=True)) for axis in axes]
    for base, *chosen in itertools.product(bases, *steps):
        labels: dict[str, Label] = {"scenario": base} if len(bases) > 1 else {}
        choice: dict[str, Any] = {}
        for axis, (values, called) in zip(axes, chosen, strict=True):
            labels |= dict(zip(axis.names, called, strict=True))
            choice |= dict(zip(axis.keys, values, strict=True))
        yield base, labels, choice


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """The last part of each key, or the whole key if two end alike.

    >>> short_names(["seed", "fabric.star.rate", "host.rate"])
    {'seed': 'seed', 'fabric.star.rate': 'fabric.star.rate', 'host.rate': 'host.rate'}
    """
    keys = list(keys)
    last = [key.rpartition(".")[2] for key in keys]
    return {key: name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)}


def label(value: Any) -> Label:
    """The label of a value.

    >>> label({"dcpim": {"rounds": 3, "channels": 2}})
    'dcpim rounds 3 channels 2'
    """
    return value if isinstance(value, str | int | float) else _words(value)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_words(inner)}".strip() for key, inner in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(_words, value))
    return str(value)
