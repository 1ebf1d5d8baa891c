"""One scenario in many configurations, which must not differ: threads, cuts, skipping, live, and each level.

Runs in a process of its own (`worker`), since what is looked for may end it.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clearway as cw
import pyarrow as pa

from swarm.holds import broken
from swarm.settle import toml

# Fields of `run.json` that may differ between configurations.
OF_THE_MACHINE = {
    "threads", "parts", "part_shapes", "cpu_seconds", "wall_seconds", "peak_memory_bytes", "commit", "skipped", "name",
}  # fmt: skip
# How the engine got there, where it skips.
OF_THE_WAY = {"windows", "events"}


@dataclass
class Found:
    """A fault: its kind, its configuration, and the details."""

    what: str
    way: str
    detail: str


class Trial:
    """The runs of one scenario."""

    def __init__(self, text: str, folder: Path, cut: int, live: int) -> None:
        self.runs = 0
        self.ways: list[str] = []
        self.finds: list[Found] = []
        self.refused: list[str] = []
        self._text, self._folder, self._cut, self._live = text, folder, cut, live
        self._way = "read"

    @property
    def way(self) -> str:
        """The configuration that is being tried."""
        return self._way

    def go(self) -> None:
        """Tries all configurations that the scenario allows."""
        scenario = self._read(self._text)
        base = self._run("1 thread", scenario, threads=1, parts=1)
        self._sound(base, scenario)
        again = self._read(scenario.to_toml())
        if again.to_toml() != scenario.to_toml():
            self._find("written and read back alike", "other text")
        # With jitter and with clocks that differ nothing recurs, and "exact" skips nothing.
        settings = scenario.to_dict()
        jitters = settings.get("timing", "real") == "real" or "jitter" in settings.get("host", {})
        recurs = not jitters and "clock_tolerance" not in settings.get("link", {})
        # Where time is skipped, all messages of jobs have rows, more than `measure.rows_max`.
        recurs = recurs and len(base.flows) == base.info["flows"]
        exact = [("exact", scenario.with_(fast_forward="exact"), {"threads": 1 + self._cut % 2})] if recurs else []
        for way, one, choice in (
            ("2 threads", again, {"threads": 2}),
            (f"{self._cut} parts", scenario, {"threads": 1, "parts": self._cut}),
            (f"2 threads, {self._cut + 1} parts", scenario, {"threads": 2, "parts": self._cut + 1}),
            *exact,
        ):
            self._same(base, self._run(way, one, **choice), skips=way == "exact")
        self._goes_on(base, scenario)
        self._levels(scenario)
        # Live runs refuse hosts whose software costs time.
        if self._live and "cpu" not in settings.get("host", {}):
            self._lives(scenario)

    def _read(self, text: str) -> cw.Scenario:
        return cw.Scenario.from_toml(text, "swarm", self._folder)

    def _find(self, what: str, detail: str) -> None:
        self.finds.append(Found(what, self._way, detail[:2_000]))

    def _run(self, way: str, scenario: cw.Scenario, **choice: Any) -> cw.Result:
        self._way = way
        self.runs += 1
        self.ways.append(way if way[0].isalpha() else "threads and parts")
        return cw.run(scenario, memory_limit=float("inf"), progress=False, **choice)

    def _sound(self, result: cw.Result, scenario: cw.Scenario) -> None:
        """Laws that hold for a result, as it is read back from its folder."""
        with tempfile.TemporaryDirectory() as place:
            saved = cw.load(result.save(Path(place) / "result"))
        for name, table in result._tables.items():
            if apart := list(differences(table, saved._tables[name])):
                self._find("saved and loaded alike", f"{name}: {apart}")
        for what, detail in broken(saved, scenario.to_dict()):
            self._find(what, detail)

    def _same(self, base: cw.Result, other: cw.Result, *, skips: bool = False) -> None:
        """That two runs are the same, but for how they were carried out."""
        left = OF_THE_MACHINE | (OF_THE_WAY if skips else set())
        for key in sorted((base.info.keys() | other.info.keys()) - left):
            one, two = (_without_files(result.info.get(key)) for result in (base, other))
            if one != two:
                self._find(f"same {key}", f"{one!r:.900} and {two!r:.900}")
        if base.tables.keys() != other.tables.keys():
            self._find("same tables", f"{sorted(base.tables)} and {sorted(other.tables)}")
        for name in base.tables.keys() & other.tables.keys():
            if _ipc(base._tables[name]) != _ipc(other._tables[name]):
                self._find(f"same table {name}", "\n".join(differences(base._tables[name], other._tables[name])))

    def _goes_on(self, base: cw.Result, scenario: cw.Scenario) -> None:
        """From a checkpoint at a random moment, on one thread and on two: to the same result."""
        moment = random.Random(self._text).randrange(1, max(2, base.info["end_ps"]))
        for threads in (1, 2):
            with tempfile.TemporaryDirectory() as place:
                file = Path(place) / "swarm.checkpoint"
                keeps = {"threads": threads, "checkpoint": f"{moment}ps", "checkpoint_file": file}
                try:
                    self._same(base, self._run("checkpoint", scenario, **keeps))
                except cw.ScenarioError as error:
                    self.runs -= 1
                    self.ways.pop()
                    self.refused.append(f"checkpoint: {error.key}")
                    return
                if file.is_file():
                    self._same(base, self._run("resume", scenario, threads=threads, resume=file))
                    self._forks(base, scenario, threads, file, moment)

    def _forks(self, base: cw.Result, scenario: cw.Scenario, threads: int, file: Path, moment: int) -> None:
        """Goes on unchanged, and with a failure that comes later: as the whole run with it."""
        self._way = "fork"
        self.runs += 1
        self.ways.append("fork")
        self._same(base, cw.fork(file, {}, threads=threads, progress=False, folder=self._folder)[0])
        failures = scenario.to_dict().get("failure", [])
        named = next((one["link"] for one in failures if "link" in one), None)
        if named is None or threads == 1:
            return
        slow = {"failure": [*failures, {"link": named, "at": f"{moment + moment // 9 + 1}ps", "rate": "3Gbps"}]}
        try:
            whole = self._run("fork, whole", scenario.with_(slow), threads=1, parts=threads)
        except cw.ScenarioError as error:
            self.runs -= 1
            self.ways.pop()
            self.refused.append(f"fork: {error.key}")
            return
        self._way = "fork"
        self._same(whole, cw.fork(file, slow, threads=threads, progress=False, folder=self._folder)[0])

    def _levels(self, scenario: cw.Scenario) -> None:
        """The estimates, where the scenario allows them: each twice."""
        for level, choices in (("flow", ({}, {})), ("links", ({"threads": 1}, {"threads": 2}))):
            try:
                first = self._run(f"level {level}", scenario, level=level, **choices[0])
            except cw.ScenarioError as error:
                self.runs -= 1
                self.ways.pop()
                self.refused.append(f"{level}: {error.key}")
                if not error.key:
                    self._find("a refusal names a key", str(error))
                continue
            self._sound(first, scenario)
            self._same(first, self._run(f"level {level}", scenario, level=level, **choices[1]))

    def _lives(self, scenario: cw.Scenario) -> None:
        """On the machine's clock: packet for packet the simulator's, however late the machine is."""
        # Both must end at the same time: what has ended at an end of its own is cut there.
        shorter = scenario.to_dict()
        shorter["live"] = {"dilation": self._live, "workers": 1 + self._cut % 2, "wait": "sleep"}
        shorter["measure"].pop("drain", None)
        shorter["measure"] |= {"end": "20us" if self._cut % 3 else "70us", "alone": False}
        self._way = "live, simulated"
        scenario = self._read(toml(shorter))
        base = self._run("live, simulated", scenario, threads=1)
        self._way = "live"
        self.runs += 1
        self.ways.append("live")
        lived = cw.live(scenario, progress=False)
        for finding in lived.info["audit"]:
            if not finding["ok"] and finding["name"] != "in time":
                self._find(f"audit: {finding['name']}", finding["detail"])
        if base.info["ended"] == lived.info["ended"] == "horizon" and base.digest != lived.digest:
            self._find("same digest", f"{base.digest} and {lived.digest}")
        there, here = base.flows.to_pandas(), lived.flows.to_pandas()
        early = here["fct_ps"] - here["late_ps"]
        both = there["fct_ps"].notna() & early.notna()
        if (early[both] != there["fct_ps"][both]).any() or (
            base.info["ended"] == lived.info["ended"] == "horizon" and (there["fct_ps"].notna() != early.notna()).any()
        ):
            self._find("same times of flows", f"{there['fct_ps'].tolist()} and {early.tolist()}")


def _without_files(value: Any) -> Any:
    """Without what is said of a file's own text, which a scenario that was written out no longer has."""
    return [said for said in value if "the file's first line" not in str(said)] if isinstance(value, list) else value


def _ipc(table: pa.Table) -> bytes:
    """All bytes of a table: NaN equals NaN, and 0.0 is not -0.0."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def differences(one: pa.Table, other: pa.Table) -> Iterator[str]:
    """The first rows and columns in which two tables differ."""
    if one.num_rows != other.num_rows:
        yield f"{one.num_rows} and {other.num_rows} rows"
    for name in one.column_names:
        if name not in other.column_names:
            yield f"{name}: only in one"
            continue
        pairs = zip(one[name].to_pylist(), other[name].to_pylist())
        apart = [(row, *pair) for row, pair in enumerate(pairs) if repr(pair[0]) != repr(pair[1])]
        if apart:
            row, here, there = apart[0]
            yield f"{name}: {len(apart)} rows differ, row {row}: {here!r} and {there!r}"
