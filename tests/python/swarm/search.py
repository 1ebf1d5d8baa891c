"""Looks for scenarios that fail, and makes each as small as it can."""

from __future__ import annotations

import copy
import functools
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import clearway as cw
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from swarm.draw import Drawing, Ground, name_of
from swarm.hints import HINTS, OFTEN, scaled, tidy
from swarm.settle import toml
from swarm.worker import Worker

LIVE_PERCENT = 8
Case: TypeAlias = "tuple[dict[str, Any], int, int]"
BLOCK = 20
"""Scenarios that follow one number. The next number begins anew."""
KIND_MAX = 3
"""Scenarios of the same kind of failure; after that others are looked for."""
SHRINK_TRIES = 200
"""Smaller scenarios that are tried for a failure."""
SHRINK_SECONDS = 120
"""For how long they are tried: a scenario that fails by its CPU time takes that long each time."""


@dataclass
class Find:
    """A scenario that fails."""

    what: str
    way: str
    detail: str
    scenario: dict[str, Any]
    cut: int
    live: int

    @property
    def kind(self) -> str:
        """The same for the same fault, as far as one can tell."""
        way = self.way if self.way[:1].isalpha() else "threads and parts"
        return f"{way}: {self.what}"

    def text(self) -> str:
        """As a file: the scenario, with what is wrong as a comment."""
        said = [f"{self.way}: {self.what}", *self.detail.splitlines()[:12]]
        head = [f"# cut = {self.cut}, live = {self.live}", *(f"# {line}"[:120].rstrip() for line in said)]
        return "\n".join(head) + "\n\n" + toml(self.scenario)


@dataclass
class Tally:
    """The scenarios that have been tried."""

    scenarios: int = 0
    runs: int = 0
    refused: int = 0
    """Drawings that came to nothing, whatever was left out."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Keys that were left out."""
    seen: Counter[str] = field(default_factory=Counter)
    """Schemes, fabrics and configurations."""

    def add(self, other: Tally) -> None:
        """Adds the scenarios that another process has tried."""
        self.scenarios += other.scenarios
        self.runs += other.runs
        self.refused += other.refused
        self.refusals += other.refusals
        self.seen += other.seen


class Search:
    """A search, with a worker of its own."""

    def __init__(self) -> None:
        self.worker, self.tally = Worker(), Tally()
        self.known: Counter[str] = Counter()
        self.until = math.inf
        # The last scenario and what was wrong with it: hypothesis asks again for one that fails.
        self._last: tuple[str, list[Find]] = ("", [])
        self._schema = cw.schema()
        self._grounds = functools.lru_cache(1_000)(self._ask_ground)

    def find(self, number: int, examples: int) -> Find | None:
        """Tries the scenarios of a block; returns the first that fails, made small."""
        last: list[Find] = []

        @seed(number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            # Its way of making smaller takes minutes, and draws a scenario anew for each try.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(self._cases(number))
        def tried(case: Case) -> None:
            if finds := self._one(*case):
                last[:] = finds[:1]
                raise AssertionError(finds[0].kind)

        try:
            tried()
        except AssertionError:
            return self._smaller(last[0])
        except Flaky as group:
            # It failed, and then it did not.
            find = last[0]
            find.detail = f"not each time: {group}\n{find.detail}"
            return find
        return None

    def _cases(self, number: int) -> st.SearchStrategy[Case]:
        """Scenarios, each with a number of parts to cut it into, and the dilation of a live run, or 0."""

        @st.composite
        def cases(draw: st.DrawFn) -> Case:
            drawing = Drawing(draw, self._schema, HINTS, OFTEN, number)
            drawn = drawing.scenario(lambda fabric: self._grounds(json.dumps(fabric)))
            tidy(drawn)
            return drawn, drawing.number(2, 12), drawing.one_of(1, 20) if drawing.whether(LIVE_PERCENT) else 0

        return cases()

    def _one(self, drawn: dict[str, Any], cut: int, live: int) -> list[Find]:
        asked = json.dumps([drawn, cut, live])
        if asked != self._last[0]:
            if time.time() > self.until:
                return []
            self._last = (asked, self._settled(drawn, cut, live))
        return self._new(self._last[1])

    def _settled(self, drawn: dict[str, Any], cut: int, live: int) -> list[Find]:
        """The fault of a drawn scenario, once it is made valid."""
        answer = self.worker.ask(do="settle", scenario=drawn)
        if said := answer.get("died") or answer.get("panicked"):
            return [Find(said, "check", answer["words"], drawn, cut, live)]
        self.tally.scenarios += 1
        self.tally.refusals.update(_key_of(key) for key, _ in answer["refusals"])
        if answer["nameless"]:
            return [Find("a refusal names a key", "check", answer["nameless"][0], drawn, cut, live)]
        if answer["scenario"] is None:
            self.tally.refused += 1
            return []
        return self.trial(answer["scenario"], cut, live)

    def _new(self, finds: list[Find]) -> list[Find]:
        return [find for find in finds if find.kind not in self.known]

    def trial(self, scenario: dict[str, Any], cut: int, live: int) -> list[Find]:
        """The fault of a scenario that can be run."""
        answer = self.worker.ask(do="trial", toml=toml(scenario), cut=cut, live=live)
        if "died" in answer:
            return [Find(answer["died"], "run", answer["words"], scenario, cut, live)]
        if "finds" not in answer:
            return [Find(answer["panicked"], "run", answer["words"], scenario, cut, live)]
        self.tally.runs += answer["runs"]
        self.tally.seen.update(answer["ways"])
        self.tally.seen.update(covered(scenario))
        return [Find(one["what"], one["way"], one["detail"], scenario, cut, live) for one in answer["finds"]]

    def _ask_ground(self, fabric: str) -> Ground | None:
        answer = self.worker.ask(do="ground", fabric=json.loads(fabric))
        if "names" not in answer:
            return None
        hosts = [name for name in answer["names"] if name.startswith("host")]
        switches = [name for name in answer["names"] if not name.startswith("host")]
        ground = Ground(hosts or ["host0"], switches or ["switch0"], [(a, b) for a, b in answer["ends"]])
        scaled(ground, [(rate, delay) for rate, delay in answer["speeds"]], 1_500)
        return ground

    def _smaller(self, find: Find) -> Find:
        """Leaves out what is not needed for a failure of this kind, as long as there is something."""
        best, tries, again, until = find, 0, True, time.time() + SHRINK_SECONDS
        while again:
            again = False
            for scenario in _smaller_ones(best.scenario):
                if (tries := tries + 1) > SHRINK_TRIES or time.time() > until:
                    return best
                if found := self._fails(scenario, best):
                    best, again = found, True
                    break
        return best

    def _fails(self, scenario: dict[str, Any], as_: Find) -> Find | None:
        answer = self.worker.ask(do="settle", scenario=scenario)
        if "scenario" not in answer:
            found = [Find(answer.get("died") or answer["panicked"], "check", answer["words"], scenario, as_.cut, 0)]
        elif answer["scenario"] != scenario:
            return None
        else:
            found = self.trial(scenario, as_.cut, as_.live)
        return next((one for one in found if one.kind == as_.kind), None)


def searched(first: int, step: int, until: float, queue: Any) -> None:
    """Tries the scenarios of every `step`-th number, from one on, and tells of each block."""
    search, number = Search(), first
    search.until = until
    kinds: dict[str, int] = {}
    while time.time() < until:
        find = search.find(number, BLOCK)
        if find is not None:
            kinds[find.kind] = kinds.get(find.kind, 0) + 1
            if kinds[find.kind] >= KIND_MAX:
                search.known[find.kind] += 1
        queue.put((number, search.tally, None if find is None else (find.kind, find.text())))
        search.tally = Tally()
        number += step
    search.worker.close()


def covered(scenario: dict[str, Any]) -> list[str]:
    """The parts of a scenario, in the words of the report."""
    transports = [scenario.get("transport")]
    for one in [*scenario.get("traffic", []), *scenario.get("job", [])]:
        transports += [one.get("transport"), *(again.get("over") for again in one.get("resubmit", []))]
    found = [f"transport {name_of(one)}" for one in transports if one]
    found += [f"{key} {name_of(scenario[key])}" for key in ("fabric", "flow_control", "sharing") if key in scenario]
    found += [key for key in ("job", "failure", "entity", "link") if scenario.get(key)]
    balancing = scenario.get("switch", {}).get("balancing")
    return sorted({*found, *([f"balancing {name_of(balancing)}"] if balancing else [])})


PLAINER: list[tuple[tuple[Any, ...], Any]] = [
    (("fabric",), {"star": {"hosts": 3}}),
    (("traffic", 0, "sizes"), {"constant": "3KB"}),
    (("traffic", 0, "flows"), 1),
    (("traffic", 0, "flows"), 2),
    (("transport",), "dctcp"),
]
"""Values that a person would try first."""


def _smaller_ones(scenario: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same scenario with a plainer value, or without one key or entry, larger parts first."""
    paths = sorted(_paths(scenario), key=len)
    for path, value in PLAINER:
        if path in paths and _at(scenario, path) != value:
            smaller: Any = copy.deepcopy(scenario)
            _at(smaller, path[:-1])[path[-1]] = value
            yield smaller
    for path in paths:
        # A fabric's numbers have larger defaults.
        if path[0] != "fabric":
            smaller = copy.deepcopy(scenario)
            del _at(smaller, path[:-1])[path[-1]]
            yield smaller


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*path, step)
        yield from _paths(one, (*path, step))


def _key_of(key: str) -> str:
    return ".".join(step for step in key.replace("[", ".").replace("]", "").split(".") if not step.isdecimal())


def replayed(path: Path, worker: Worker) -> list[Find]:
    """The fault of a scenario that was found once."""
    text = path.read_text(encoding="utf-8")
    cut, live = (int(part.split("=")[1]) for part in text.splitlines()[0].lstrip("# ").split(","))
    answer = worker.ask(do="trial", toml=text, cut=cut, live=live)
    if "finds" not in answer:
        return [Find(answer.get("died") or answer["panicked"], "run", answer["words"], {}, cut, live)]
    return [Find(one["what"], one["way"], one["detail"], {}, cut, live) for one in answer["finds"]]
