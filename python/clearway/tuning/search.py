"""The search for a setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from clearway.errors import ScenarioError
from clearway.scenarios.scenario import Scenarios, scenarios_of
from clearway.tuning.keys import shortage
from clearway.tuning.knobs import Base, Knob, TuneError, based
from clearway.tuning.trials import Score, Setting, Trials
from clearway.tuning.tuned import Tuned

STRIDE = 4
"""The first look at a ladder tries every fourth value."""
SAME = 0.01
"""Pauses that differ by less than this share of what they were at the start are the same."""
WORSE = 0.1
"""By how much slowdowns may get worse, and goodput less, unless something else is asked for."""
OVERHEAD_S = 0.2
"""Of each run, beside the simulation: it is read, planned and saved."""
ROUNDS = 2
SEEDS = 3
POINTS = 9
"""Values of a knob in the curve, at most, beside the found one."""


@dataclass(frozen=True)
class Plan:
    """A search before it begins."""

    bases: tuple[Base, ...]
    seeds: tuple[int, ...]
    settings: int
    """How many settings it tries at most."""
    seconds: float
    """How long that takes at most on this machine."""

    @property
    def runs(self) -> int:
        """How many runs that is at most."""
        return self.settings * len(self.bases) * len(self.seeds)

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions."""
        return self.bases[0].notes

    def table(self) -> pd.DataFrame:
        """One row a knob: what it is now, and its ladder."""
        rows = [
            {
                "key": knob.key,
                "is": knob.shown(knob.now),
                "from": knob.shown(knob.values[0]),
                "to": knob.shown(knob.values[-1]),
                "values": len(knob.values),
                "search": "bisection" if knob.bisected else "every fourth, second, next",
            }
            for knob in self.bases[0].knobs
        ]
        return pd.DataFrame(rows).set_index("key")

    def __str__(self) -> str:
        time = f"{self.seconds:.0f} s" if self.seconds < 100 else f"{self.seconds / 60:.0f} min"
        scenarios = f" x {len(self.bases)} scenarios" if len(self.bases) > 1 else ""
        return (
            f"at most {self.runs:,} runs ({self.settings} settings x {len(self.seeds)} seeds{scenarios}), about {time}"
        )


def tune(
    scenarios: Scenarios,
    folder: str | Path,
    *,
    keys: Sequence[str] = (),
    seeds: int | Sequence[int] = SEEDS,
    worse: float | None = WORSE,
    rounds: int = ROUNDS,
    workers: int | None = None,
    progress: bool | None = None,
    tell: Callable[[str], object] | None = None,
) -> Tuned:
    """The least headroom, and the marks and shares of memory, with which a scenario's own traffic loses no lossless
    packet and pauses least.

    `keys` are what is tuned: `headroom`, `alpha`, `ecn.min`, `ecn.max`, `ecn.probability_max`, `reserved`, or one key
    such as `group.1.alpha`, with a range if you like: `"ecn.min=20KB..400KB"`. All but `reserved` by default. A setting
    counts as lossless if it is so with all `seeds` and over all scenarios. Of those, the least pause time wins, then
    the least reserved memory, then the least slowdown. The 99th percentile of slowdowns may get worse by the share
    `worse`, and goodput as much less; `None` for any. Runs are kept in `folder`: the same call resumes. `tell` is
    called with a line about each step.

    >>> import clearway as cw, tempfile
    >>> s = cw.Scenario.load("examples/switch/incast.toml")
    >>> found = cw.tune(s, tempfile.mkdtemp(), keys=["headroom"], seeds=1, progress=False)
    >>> found.lossless, found.least["group.0.headroom"] <= found.needed["group.0.headroom"]
    (True, True)
    """
    planned = plan(scenarios, keys=keys, seeds=seeds, rounds=rounds, forecast=False)
    trials = Trials(planned.bases, planned.seeds, Path(folder), workers, progress, tell, planned.settings)
    with trials:
        return _Search(trials, worse, rounds).run()


def plan(
    scenarios: Scenarios,
    *,
    keys: Sequence[str] = (),
    seeds: int | Sequence[int] = SEEDS,
    rounds: int = ROUNDS,
    workers: int | None = None,
    forecast: bool = True,
) -> Plan:
    """The search that `tune` would make, without a run of it."""
    given = scenarios_of(scenarios)
    if not given:
        raise TuneError("no scenario: name one, or several that have one switch")
    bases = _together([based(scenario, keys) for scenario in given])
    first = int(given[0].to_dict()["seed"])
    drawn = tuple(range(first, first + seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not drawn or len(set(drawn)) < len(drawn):
        raise TuneError(f"seeds: {seeds!r} are no seeds, or some are named twice")
    if rounds < 1:
        raise TuneError(f"rounds: {rounds} is not at least 1")
    settings = _settings_max(bases[0].knobs, rounds)
    trials = Trials(bases, drawn, Path(), workers)
    cpu = trials.forecast().cpu_seconds or 0.0 if forecast else 0.0
    return Plan(bases, drawn, settings, (cpu + OVERHEAD_S) * settings * trials.each / trials.lanes)


def _together(bases: Sequence[Base]) -> tuple[Base, ...]:
    """Bases with the same knobs, whose ladders go as far as that of the base that needs most."""
    for base in bases[1:]:
        if [knob.key for knob in base.knobs] != [knob.key for knob in bases[0].knobs]:
            raise TuneError(
                f"{base.scenario.name}: has other tables in flow_control.mmu than {bases[0].scenario.name}; scenarios "
                "that are tuned together have one switch"
            )
    knobs = tuple(max(same, key=lambda knob: knob.values[-1]) for same in zip(*(base.knobs for base in bases)))
    return tuple(replace(base, knobs=knobs) for base in bases)


def _settings_max(knobs: Sequence[Knob], rounds: int) -> int:
    most = 1  # the scenario's own
    for knob in knobs:
        size = len(knob.values)
        if knob.bisected:
            most += math.ceil(math.log2(size)) + 1
        else:
            most += rounds * (math.ceil(size / STRIDE) + 1 + 2 + 2)
        most += min(POINTS, size)
    return most + 2  # the start, and all headroom together


class _Search:
    def __init__(self, trials: Trials, worse: float | None, rounds: int) -> None:
        self.trials, self.worse, self.rounds = trials, worse, rounds
        self.knobs = trials.bases[0].knobs
        self.start: Score | None = None

    def run(self) -> Tuned:
        """The search; interrupted, it says what it has found by then."""
        asked = {knob.key: knob.now for knob in self.knobs}
        asked_score = best = None
        curves: dict[str, list[Score]] = {}
        least: dict[str, float] = {}
        interrupted, why = False, ""
        try:
            [asked_score] = self.trials.scores([asked], "as it is")
            top, why = self.largest(asked)
            [self.start] = self.trials.scores([top], "headroom by arithmetic")
            best = self.thresholds(self.start)
            if best.losses or best.refused:
                why = self.reason(best, why)
            else:
                best, least = self.headroom(best)
                curves = self.curves(best)
        except KeyboardInterrupt:
            interrupted = True
        best = best or self.start or asked_score
        needed = {knob.key: knob.values[-1] for knob in self.knobs if knob.bisected}
        return Tuned(
            bases=self.trials.bases,
            seeds=self.trials.seeds,
            asked=asked_score,
            start=self.start,
            best=best,
            needed=needed,
            least=least,
            curves=curves,
            trials=self.trials.table(),
            folder=self.trials.folder,
            worse=self.worse,
            why=why,
            interrupted=interrupted,
        )

    def largest(self, asked: Setting) -> tuple[Setting, str]:
        """Headroom as arithmetic says, or as much as fits into the memory, and why not all of it."""
        parts = [knob for knob in self.knobs if knob.bisected]
        if not parts:
            return asked, ""

        def at(share: float) -> dict[str, float]:
            values = {knob.key: knob.values[math.floor(share * (len(knob.values) - 1))] for knob in parts}
            return {**asked, **values}

        why = self.refusal(at(1.0))
        if not why:
            return at(1.0), ""
        low, high = 0, 64
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if not self.refusal(at(middle / 64)) else (low, middle)
        return at(low / 64), why

    def refusal(self, setting: Setting) -> str:
        """Why a setting could not run; empty if it could."""
        for base in self.trials.bases:
            try:
                base.with_(setting).check()
            except ScenarioError as error:
                return f"{error.key}: {error.message}"
        return ""

    def thresholds(self, best: Score) -> Score:
        """The best of the knobs that are not bisected, one after the other."""
        others = [knob for knob in self.knobs if not knob.bisected]
        for turn in range(self.rounds if others else 0):
            before = best.setting
            for knob in others:
                best = self.along(knob, best, f"round {turn + 1}, {knob.key}")
            if best.setting == before:
                break
        return best

    def along(self, knob: Knob, best: Score, step: str) -> Score:
        """The best value of one knob: every fourth, every second beside the best, its neighbours."""
        size, stride = len(knob.values), STRIDE
        places: Iterable[int] = {*range(0, size, STRIDE), size - 1}
        while stride:
            tried = [{**best.setting, knob.key: knob.values[place]} for place in sorted(places)]
            best = self.choose([best, *self.trials.scores(tried, step)])
            here, stride = knob.values.index(best.setting[knob.key]), stride // 2
            places = {place for place in (here - stride, here + stride) if 0 <= place < size} if stride else ()
        return best

    def choose(self, scores: Sequence[Score]) -> Score:
        """The best; the first of them, which is the present one, unless another is better."""
        allowed = [score for score in scores if not score.refused and self.is_allowed(score)] or list(scores[:1])
        fewest = min(score.losses for score in allowed)
        allowed = [score for score in allowed if score.losses == fewest]
        start = self.start.paused_ms if self.start is not None and not self.start.refused else 0.0
        least = min(score.paused_ms for score in allowed)
        near = [score for score in allowed if score.paused_ms <= least + SAME * start]
        reserved = min(score.reserved_bytes for score in near)
        near = [score for score in near if score.reserved_bytes <= reserved]
        first = min(near, key=lambda score: score.p99)
        # One that is as good as the present setting does not replace it.
        return scores[0] if scores[0] in near and scores[0].p99 <= first.p99 * (1 + SAME) else first

    def is_allowed(self, score: Score) -> bool:
        """Whether flows do not do worse than at the start, by more than is allowed."""
        start = self.start
        if self.worse is None or start is None or start.refused or start.losses:
            return True
        slow = not math.isnan(start.p99) and score.p99 > start.p99 * (1 + self.worse)
        return not slow and score.goodput_gbps >= start.goodput_gbps * (1 - self.worse)

    def headroom(self, best: Score) -> tuple[Score, dict[str, float]]:
        """The least headroom of each kind, by bisection with the others as they were; then all together."""
        least: dict[str, float] = {}
        # Runs without pauses say nothing about headroom.
        parts = [knob for knob in self.knobs if knob.bisected and best.paused_ms > 0]
        for knob in parts:
            place = knob.values.index(best.setting[knob.key])
            low, high = -1, place  # it holds at `high`
            while high - low > 1:
                middle = (low + high) // 2
                tried = {**best.setting, knob.key: knob.values[middle]}
                [score] = self.trials.scores([tried], f"bisection of {knob.key}")
                low, high = (low, middle) if self.holds(score) else (middle, high)
            least[knob.key] = knob.values[high]
        if not least:
            return best, least
        for more in range(max(len(knob.values) for knob in parts)):
            together = dict(best.setting)
            for knob in parts:
                place = min(knob.values.index(least[knob.key]) + more, knob.values.index(best.setting[knob.key]))
                together[knob.key] = knob.values[place]
            [score] = self.trials.scores([together], "all headroom together")
            if self.holds(score):
                return score, {knob.key: together[knob.key] for knob in parts}
        return best, {knob.key: best.setting[knob.key] for knob in parts}

    def holds(self, score: Score) -> bool:
        """Whether it loses nothing."""
        return not score.refused and score.losses == 0

    def curves(self, best: Score) -> dict[str, list[Score]]:
        """By knob: how the values of its ladder do, with all others as found."""
        curves = {}
        for knob in self.knobs:
            size = len(knob.values)
            places = (
                {round(step * (size - 1) / (POINTS - 1)) for step in range(POINTS)} if size > POINTS else range(size)
            )
            places = {*places, knob.values.index(best.setting[knob.key])}
            tried = [{**best.setting, knob.key: knob.values[place]} for place in sorted(places)]
            curves[knob.key] = [
                score for score in self.trials.scores(tried, f"curve of {knob.key}") if not score.refused
            ]
        return curves

    def reason(self, best: Score, why: str) -> str:
        """Why nothing is lossless."""
        if best.refused:
            return best.refused
        if why:
            return f"arithmetic asks for more headroom than the memory has ({why})"
        return shortage(self.trials.bases[0], best.setting)
