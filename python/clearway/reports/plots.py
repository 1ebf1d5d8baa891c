"""Plots of results. Each is drawn into given axes; `Plots` makes single figures, a report puts all together.

A scheme looks the same in every plot: see `looks`. Sizes and times are on logarithmic axes, since flows differ by five
orders of magnitude.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from clearway.reports.looks import Look, looks_of
from clearway.results import points
from clearway.results.points import SPENT, TIERS
from clearway.results.statistics import SIZES

if TYPE_CHECKING:
    from clearway.results.result import Result

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": "#8a8f98",
    "axes.labelcolor": "#30343b",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e7e9ed",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "clearway",
    "text.color": "#1d2025",
    # Names are plain text: a dollar sign starts no formula.
    "text.parse_math": False,
    "xtick.color": "#555b66",
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "ytick.color": "#555b66",
}


class Picture(Figure):
    """A matplotlib figure that a notebook displays; `savefig("x.pdf")` writes it to a file."""

    def svg(self) -> str:
        """As an SVG element, without anything from outside."""
        out = io.StringIO()
        with mpl.rc_context(STYLE):
            self.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        text = out.getvalue()
        return text[text.index("<svg") :]

    def _repr_svg_(self) -> str:
        return self.svg()


# Matplotlib leaves labels with a leading underscore out of legends.
_SHOWN = "\u200b"


def labelled(name: str) -> str:
    """A label for any name that matplotlib shows in a legend; `add_legend` restores the name."""
    return f"{_SHOWN}{name}" if name.startswith("_") else name


def add_legend(picture: Figure, axes: Axes, **how: Any) -> None:
    """A legend of the labelled artists in these axes, with matplotlib's options `how`."""
    handles, labels = axes.get_legend_handles_labels()
    legend = picture.legend(handles, labels, **how)
    for text in legend.get_texts():
        text.set_text(text.get_text().removeprefix(_SHOWN))


class Plots:
    """Plots of one or more results; each is a matplotlib figure.

    >>> import clearway as cw
    >>> r = cw.run(cw.Scenario.load("examples/tiny.toml"))
    >>> r.plot.slowdown().axes[0].get_ylabel()
    'slowdown'
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = list(results)

    def slowdown(self) -> Picture:
        """Slowdown by flow size: mean, and 99th percentile."""
        return self._panels(
            [lambda axes: _slowdown(axes, self._results, "mean"), lambda axes: _slowdown(axes, self._results, "p99")],
            share_y=True,
        )

    def fct_cdf(self) -> Picture:
        """Distributions of completion times and of slowdowns."""
        return self._panels(
            [lambda axes: _cdf(axes, self._results, "fct_ps"), lambda axes: _cdf(axes, self._results, "slowdown")],
            share_y=True,
        )

    def utilisation(self) -> Picture:
        """Utilisation of links over time: away from hosts, towards them, and to hosts."""
        tiers = points.tiers(self._results)
        return self._panels(
            [lambda axes, tier=tier: _utilisation(axes, self._results, tier) for tier in tiers],  # type: ignore[misc]
            share_y=True,
        )

    def queues(self) -> Picture:
        """Queues over time: the longest of all ports, and the buffer in use at the fullest switch."""
        return self._panels(
            [
                lambda axes: _queues(axes, self._results, "longest_bytes", "longest queue of a port"),
                lambda axes: _queues(axes, self._results, "used_bytes", "buffer in use at the fullest switch"),
            ]
        )

    def guarantees(self) -> Picture:
        """Guaranteed bounds against measurements: the fullest queues by tier, and the waits of packets.

        Only for runs with a scheme that guarantees bounds (Harmony): those with the tables `guarantees` and
        `guaranteed_waits`.
        """
        some = [(result, look) for result, look in _each(self._results) if "guarantees" in result.tables]
        return self._panels([lambda axes: _fullest(axes, some), lambda axes: _waits(axes, some)])

    def where_time_went(self) -> Picture:
        """Mean completion time of short, medium and long flows, by what the time was spent on."""
        sizes = [size for size in SIZES if any(points.of_size(r, size).any() for r in self._results)]
        height = 1.15 + 0.3 * len(self._results)
        picture = self._panels(
            [lambda axes, size=size: _spent(axes, self._results, size) for size in sizes],  # type: ignore[misc]
            height=height,
            legend=False,
        )
        if sizes:
            for axes in picture.axes[1:]:
                axes.tick_params(labelleft=False)
            with mpl.rc_context(STYLE):
                add_legend(picture, picture.axes[0], loc="outside lower center", ncols=4, fontsize=8.5)
        return picture

    def _panels(
        self,
        draw: Sequence[Callable[[Axes], None]],
        *,
        height: float = 2.9,
        share_y: bool = False,
        legend: bool = True,
    ) -> Picture:
        with mpl.rc_context(STYLE):
            picture = Picture(figsize=(9.6, height), layout="constrained")
            all_axes = picture.subplots(1, max(len(draw), 1), sharey=share_y, squeeze=False)[0]
            for axes, panel in zip(all_axes, draw):
                panel(axes)
            if share_y:
                for axes in all_axes[1:]:
                    axes.set_ylabel("")
            labels = len(all_axes[0].get_legend_handles_labels()[1])
            if legend and labels > 1:
                add_legend(picture, all_axes[0], loc="outside upper right", ncols=min(labels, 6))
            return picture


def _each(results: Sequence[Result]) -> Iterator[tuple[Result, Look]]:
    return zip(results, looks_of(results))


def _line(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "linestyle": look.dash}


def _slowdown(axes: Axes, results: Sequence[Result], statistic: str) -> None:
    for frame, (result, look) in zip(points.by_size(points.every(results)), _each(results)):
        axes.plot(frame["size"], frame[statistic], **_line(look), marker=look.marker, label=labelled(result.name))
    axes.set(xscale="log", yscale="log", xlabel="flow size", ylabel="slowdown")
    axes.set_title("mean" if statistic == "mean" else "99th percentile")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _bytes(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    # Readable ticks even where the axis spans less than a decade.
    axes.axhline(2, alpha=0)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _cdf(axes: Axes, results: Sequence[Result], column: str) -> None:
    for line, (result, look) in zip(points.every(results), _each(results)):
        values, share = points.distribution(line, column)
        if len(values):
            shown = values / (1e6 if column == "fct_ps" else 1)
            axes.step(shown, share, where="post", **_line(look), label=labelled(result.name))
    axes.set(xscale="log", ylabel="share of flows", ylim=(0, 1.02))
    axes.set_xlabel("completion time (µs)" if column == "fct_ps" else "slowdown")
    axes.set_title("completion time" if column == "fct_ps" else "slowdown")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _utilisation(axes: Axes, results: Sequence[Result], tier: str) -> None:
    for result, look in _each(results):
        time, used = points.utilisation(result, tier)
        if len(time):
            axes.plot(time, used, **_line(look), label=labelled(result.name), linewidth=1.3)
    axes.set(xlabel="time (ms)", ylabel="share of capacity", ylim=(0, 1.02))
    axes.set_title(TIERS[tier])


def _queues(axes: Axes, results: Sequence[Result], column: str, title: str) -> None:
    for result, look in _each(results):
        time, longest = points.queues(result, column)
        if len(time):
            axes.plot(time, longest, **_line(look), label=labelled(result.name), linewidth=1.3)
    axes.set(xlabel="time (ms)", ylabel="KB")
    axes.set_ylim(bottom=0)
    axes.set_title(title)


def _fullest(axes: Axes, results: Sequence[tuple[Result, Look]]) -> None:
    """For each tier, the link that came nearest to its bound."""
    tiers = {"up": "up", "down": "down", "to_host": "to hosts"}
    width = 0.8 / max(len(results), 1)
    for place, (result, look) in enumerate(results):
        fullest = points.fullest(result)
        at = np.arange(len(tiers)) + (place - (len(results) - 1) / 2) * width
        most, bound = (fullest[f"queue_{name}_bytes"].astype(float) / 1e3 for name in ("max", "bound"))
        axes.bar(at, most, width * 0.86, color=look.colour, label=labelled(result.name))
        axes.hlines(bound, at - width * 0.43, at + width * 0.43, color="#1d2025", linewidth=1.6)
        for x, y, share in zip(at, np.fmax(most, bound), fullest["share"]):
            if not np.isnan(share):
                axes.annotate(f"{share:.0%}", (x, y), (0, 2), textcoords="offset points", ha="center", fontsize=7.5)
    axes.set_xticks(range(len(tiers)), list(tiers.values()))
    axes.set(ylabel="KB", xlabel="links")
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    axes.grid(axis="x", visible=False)
    axes.set_title("most that waited, and the bound")


def _waits(axes: Axes, results: Sequence[tuple[Result, Look]]) -> None:
    """The line falls vertically at the longest wait; the bound is dashed."""
    least = 1e-5
    one_bound = len({result.guaranteed_waits["wait_bound_ps"][-1] for result, _ in results}) == 1
    for result, look in results:
        times, longer, bound = points.waits(result, least)
        axes.plot(times, longer, drawstyle="steps-post", **_line(look), label=labelled(result.name))
        axes.axvline(bound, color="#1d2025" if one_bound else look.colour, linestyle=(0, (4, 2)), linewidth=1.4)
    axes.set(yscale="log", ylim=(least / 2, 1.3), xlabel="wait in all switches together (µs)")
    axes.set_xlim(left=0)
    axes.set_ylabel("packets that waited longer")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.5%}".rstrip("0%").rstrip(".") + "%"))
    axes.set_title("waits, and the bound (dashed)")


def _spent(axes: Axes, results: Sequence[Result], size: str) -> None:
    places = np.arange(len(results))[::-1]
    left = np.zeros(len(results))
    frame = points.spent(results, size)
    for column, label, colour in SPENT:
        width = frame[column]
        axes.barh(places, width, left=left, color=colour, height=0.62, label=label, edgecolor="white", linewidth=0.4)
        left += width
    axes.set_yticks(places, [result.name for result in results])
    axes.set(xlabel="mean completion time (µs)")
    axes.set_title(f"{size} flows")
    axes.grid(axis="y", visible=False)


def _bytes(value: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= scale:
            return f"{value / scale:g} {unit}"
    return f"{value:g} B"
