"""The result of a search: sentences, a table, the curve, a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pyarrow as pa

from clearway.reports import html, marked
from clearway.reports.looks import COLOURS
from clearway.reports.plots import STYLE, Picture
from clearway.scenarios.scenario import Scenario
from clearway.tuning import keys
from clearway.tuning.knobs import KINDS, Base, Knob
from clearway.tuning.trials import Score


@dataclass(frozen=True)
class Tuned:
    """The result of `clearway.tune`."""

    bases: Sequence[Base]
    seeds: Sequence[int]
    asked: Score | None
    """How the scenario does as it is."""
    start: Score | None
    """How it does with the headroom that arithmetic asks for, and all else as it is."""
    best: Score | None
    """How the found setting does."""
    needed: Mapping[str, float]
    """By key of a headroom: what arithmetic asks for, in bytes."""
    least: Mapping[str, float]
    """By key of a headroom: the least that lost nothing; empty if none did."""
    curves: Mapping[str, Sequence[Score]]
    """By key: what its values do, with all others as found."""
    trials: pa.Table
    """One row a run."""
    folder: Path
    worse: float | None
    why: str
    """Why nothing was lossless; or why headroom could not be what arithmetic asks for."""
    interrupted: bool = False

    @property
    def lossless(self) -> bool:
        """Whether a setting was found that lost no lossless packet in any run."""
        return self.best is not None and not self.best.refused and self.best.losses == 0

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The knobs."""
        return self.bases[0].knobs

    @property
    def setting(self) -> dict[str, float]:
        """The found value of each knob, by its key."""
        return dict(self.best.setting) if self.best is not None else {}

    @property
    def scenario(self) -> Scenario:
        """The first scenario, with what was found."""
        return self.bases[0].with_(self.setting)

    def snippet(self) -> str:
        """Tables of `flow_control.mmu` to put into the scenario."""
        return keys.snippet(self.bases[0], self.setting)

    def sonic(self) -> list[str]:
        """Which keys of SONiC's configuration to change, and to what, if the scenario was imported from one."""
        return keys.sonic(self.bases[0], self.setting)

    def said(self) -> list[str]:
        """The answer, in sentences."""
        if self.best is None or self.start is None:
            return ["interrupted before the first runs ended: run the same command again to go on"]
        runs = f"{len(self.trials)} runs"
        if not self.lossless:
            losses = (
                f"{self.best.losses:,} lossless packets in {self.best.runs} runs" if self.best.runs else "it can't run"
            )
            first = "interrupted" if self.interrupted else "nothing that was tried is lossless"
            return [
                f"{first} ({runs}); the best setting still loses: {losses}",
                *([f"why: {self.why}"] if self.why else []),
            ]
        said = [f"interrupted after {runs}; the best so far:"] if self.interrupted else []
        said.append(
            f"lossless in {self.best.runs} of {self.best.runs} runs: links paused for {_ms(self.best.paused_ms)}, "
            f"{_ms(self.start.paused_ms)} before; p99 slowdown {_short(self.best.p99)}, {_short(self.start.p99)} before"
        )
        if self.asked is not None and self.asked.losses:
            said.append(f"as it is the scenario loses {self.asked.losses:,} lossless packets in {self.asked.runs} runs")
        for key, least in self.least.items():
            said.append(
                f"{key}: {least:,.0f} B is the least that lost nothing, {least / self.needed[key]:.0%} of the "
                f"{self.needed[key]:,.0f} B of arithmetic, which suffice for any traffic"
            )
        if not self.least and self.needed and not self.interrupted:
            said.append(
                "nothing pauses then, so that these runs say nothing about headroom: it is what arithmetic asks for"
            )
        if self.why and self.least:
            said.append(f"headroom was tried up to what fits: {self.why}")
        return said

    def table(self) -> pd.DataFrame:
        """One row a knob: what it was, what was found, and the range that was searched."""
        rows = [
            {
                "key": knob.key,
                "was": knob.shown(knob.now),
                "found": knob.shown(self.setting[knob.key]) if self.setting else "",
                "least tried": knob.shown(knob.values[0]),
                "most tried": knob.shown(knob.values[-1]),
            }
            for knob in self.knobs
        ]
        return pd.DataFrame(rows).set_index("key")

    def curve(self) -> Picture:
        """Pause time, lost lossless packets and p99 slowdown over the values of each knob, with the others as found."""
        shown = {knob: self.curves.get(knob.key, ()) for knob in self.knobs}
        shown = {knob: scores for knob, scores in shown.items() if scores}
        lines = (
            ("paused, ms", "paused_ms"),
            ("lossless packets lost", "losses"),
            ("p99 slowdown", "p99"),
        )
        with mpl.rc_context(STYLE):
            picture = Picture(figsize=(2.6 + 2.7 * max(len(shown), 1), 6.2), layout="constrained")
            if not shown:
                return picture
            panels = picture.subplots(len(lines), len(shown), sharex="col", sharey="row", squeeze=False)
            for column, (knob, scores) in enumerate(shown.items()):
                values = [score.setting[knob.key] for score in scores]
                for row, (name, of) in enumerate(lines):
                    axes = panels[row][column]
                    axes.plot(values, [getattr(score, of) for score in scores], marker="o", color=COLOURS[row])
                    axes.axvline(self.setting[knob.key], color="#30343b", linewidth=1, linestyle="--")
                    if knob.key in self.needed:
                        axes.axvline(self.needed[knob.key], color="#8a8f98", linewidth=1, linestyle=":")
                    if knob.kind in ("alpha", "ecn.min", "ecn.probability_max"):
                        axes.set_xscale("log")
                    if column == 0:
                        axes.set_ylabel(name)
                panels[0][column].set_title(knob.key)
                panels[-1][column].set_xlabel(_UNITS[knob.kind])
            for of_row in panels:
                # All panels of a row share an axis, which is known now.
                of_row[0].set_ylim(bottom=0, top=max(of_row[0].get_ylim()[1], 0.1))
            panels[-1][0].set_yscale("log")
            panels[-1][0].set_ylim(bottom=1)
            return picture

    def markdown(self) -> str:
        """The sentences, the table and what to write, as a page has them."""
        table = self.table()
        rows = [[str(name), *map(str, row)] for name, row in zip(table.index, table.to_numpy())]
        lines = [f"- {one}" for one in self.said()]
        lines += [
            "",
            *marked.table(["key", *map(str, table.columns)], rows),
            "",
            "```toml",
            self.snippet().rstrip(),
            "```",
        ]
        return "\n".join(lines) + "\n"

    def write(self, page: str | Path) -> Path:
        """Puts them into a page in Markdown, between the marks `tune`."""
        return marked.put(page, "tune", self.markdown())

    def report(self, path: str | Path) -> Path:
        """Writes a page to hand on."""
        table = self.table()
        rows = [[str(name), *map(str, row)] for name, row in zip(table.index, table.to_numpy())]
        names = ", ".join(base.scenario.name for base in self.bases)
        seeds = ", ".join(map(str, self.seeds))
        kinds = "".join(
            f"<li>{escape(kind)}: {escape(said)}"
            for kind, said in KINDS.items()
            if any(k.kind == kind for k in self.knobs)
        )
        sonic = "".join(f"<li><code>{escape(line)}</code>" for line in self.sonic())
        parts = [
            f"<h1>{escape(names)}: tuned</h1>",
            f"<p class=subtitle>{len(self.trials)} runs, seeds {seeds}</p>",
            html.section("Answer", "<ol>" + "".join(f"<li>{escape(one)}" for one in self.said()) + "</ol>"),
            html.section("Values", html.table(["key", *map(str, table.columns)], rows, text=5) + f"<ul>{kinds}</ul>"),
            html.section("Curve", f"<figure>{self.curve().svg()}</figure>{_LEGEND}" if self.curves else ""),
            html.section("For the scenario", f"<pre>{escape(self.snippet())}</pre>" if self.lossless else ""),
            html.section("For SONiC", f"<ul>{sonic}</ul>" if sonic and self.lossless else ""),
            html.section("Scenario", f"<pre>{escape(self.bases[0].scenario.to_toml())}</pre>"),
        ]
        return html.write("Tuned", parts, Path(path), "")


_UNITS = {
    "headroom": "bytes",
    "reserved": "bytes",
    "ecn.min": "bytes",
    "ecn.max": "times ecn.min",
    "alpha": "share of free memory",
    "ecn.probability_max": "probability",
}
_LEGEND = (
    "<p>Each column varies one key, with all others as found. Dashed: what was found; dotted: what arithmetic asks "
    "for. Pause time is that of all links together. Means over runs; losses are those of all runs.</p>"
)


def _ms(value: float) -> str:
    return f"{value:,.3g} ms"


def _short(value: float) -> str:
    return f"{value:.3g}"
