"""Plots of results. Each is drawn into given axes; `Plots` makes single figures, a report puts all together.

A scheme has the same colour in every plot of a set of results, chosen for readers with colour blindness (Okabe and
Ito). Sizes and times are on logarithmic axes, since flows differ by five orders of magnitude.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from clearway import _core

if TYPE_CHECKING:
    from clearway._results import Result

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6b6b")

# Where a flow's time goes: column, label, colour.
SPENT = (
    ("wait_ps", "at the sender, until that packet left", "#b8c4d6"),
    ("queued_up_ps", "queued on the way up", "#f3c178"),
    ("queued_down_ps", "queued on the way down", "#e8874a"),
    ("queued_last_ps", "queued before the receiver", "#c8402f"),
    ("serialised_ps", "serialisation", "#3d7ea6"),
    ("propagation_ps", "propagation and processing", "#8fb8a8"),
    ("return_ps", "until the sender knew", "#8d7aa8"),
)

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

Floats = npt.NDArray[np.float64]


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
        tiers = [tier for tier in ("up", "down", "to_host") if any(tier in _tiers(result) for result in self._results)]
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
        some = [(result, colour) for result, colour in _each(self._results) if "guarantees" in result.tables]
        return self._panels([lambda axes: _fullest(axes, some), lambda axes: _waits(axes, some)])

    def where_time_went(self) -> Picture:
        """Mean completion time of short, medium and long flows, by what the time was spent on."""
        sizes = [size for size in ("short", "medium", "long") if any(_of_size(r, size).any() for r in self._results)]
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


def colours(results: Sequence[Result]) -> list[str]:
    """A colour for each result: the scheme's, the same in every report, if each has its own scheme."""
    schemes = [_schemes(result) for result in results]
    own = all(len(names) == 1 for names in schemes) and len({names[0] for names in schemes}) == len(schemes)
    return colours_of([names[0] if own else "" for names in schemes])


def colours_of(names: Sequence[str]) -> list[str]:
    """A colour for each name: a scheme's own, otherwise by position; all different as long as there are enough."""
    catalogue = [row["name"] for row in _core.schemes()]
    taken: list[str] = []
    for index, name in enumerate(names):
        wish = catalogue.index(name) if name in catalogue else index
        palette = [COLOURS[(wish + further) % len(COLOURS)] for further in range(len(COLOURS))]
        taken.append(next((colour for colour in palette if colour not in taken), palette[0]))
    return taken


def _schemes(result: Result) -> list[str]:
    column = result.flows.to_arrow()["transport"].combine_chunks()
    return [str(name) for name in column.dictionary.to_pylist()]


def _each(results: Sequence[Result]) -> Iterator[tuple[Result, str]]:
    return zip(results, colours(results))


def _floats(result: Result, column: str) -> Floats:
    return np.asarray(result.flows[column], dtype=np.float64)


def _slowdown(axes: Axes, results: Sequence[Result], statistic: str) -> None:
    """Flows sorted by size and divided into groups of equal number; each group at its median size."""
    sizes = np.concatenate([_floats(result, "bytes") for result in results])
    groups = int(np.clip(len(sizes) / len(results) / 100, 1, 16))
    limits = np.unique(np.quantile(sizes, np.linspace(0, 1, groups + 1))) if len(sizes) else sizes
    for result, colour in _each(results):
        bytes_, slowdown = _floats(result, "bytes"), _floats(result, "slowdown")
        group = np.clip(np.searchsorted(limits, bytes_, side="left") - 1, 0, None)
        known = ~np.isnan(slowdown)
        points = []
        for index in np.unique(group[known]):
            values = slowdown[known & (group == index)]
            value = values.mean() if statistic == "mean" else np.quantile(values, 0.99)
            points.append((np.median(bytes_[group == index]), value))
        axes.plot(*(np.array(points).reshape(-1, 2).T), marker="o", color=colour, label=labelled(result.name))
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
    for result, colour in _each(results):
        values = np.sort(_floats(result, column))
        values = values[~np.isnan(values)]
        if not len(values):
            continue
        # Points that a page can show. The share is of all flows, so a line that ends below 1 has flows that did not
        # complete.
        at = np.unique(np.linspace(0, len(values) - 1, 500).astype(int))
        share = (at + 1) / len(result.flows)
        axes.step(
            values[at] / (1e6 if column == "fct_ps" else 1),
            share,
            where="post",
            color=colour,
            label=labelled(result.name),
        )
    axes.set(xscale="log", ylabel="share of flows", ylim=(0, 1.02))
    axes.set_xlabel("completion time (µs)" if column == "fct_ps" else "slowdown")
    axes.set_title("completion time" if column == "fct_ps" else "slowdown")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _tiers(result: Result) -> set[str]:
    return set(result.utilisation["tier"]) if "utilisation" in result.tables else set()


def _utilisation(axes: Axes, results: Sequence[Result], tier: str) -> None:
    titles = {"up": "links from leaves up", "down": "links down to leaves", "to_host": "links to hosts"}
    for result, colour in _each(results):
        if tier not in _tiers(result):
            continue
        table = result.utilisation
        of_tier = table["tier"] == tier
        time, used = table["time_ps"][of_tier] / 1e9, table["utilisation"][of_tier]
        axes.plot(*_thinned(time, used, np.mean), color=colour, label=labelled(result.name), linewidth=1.3)
    axes.set(xlabel="time (ms)", ylabel="share of capacity", ylim=(0, 1.02))
    axes.set_title(titles[tier])


def _queues(axes: Axes, results: Sequence[Result], column: str, title: str) -> None:
    for result, colour in _each(results):
        if "queues" not in result.tables or not len(result.queues):
            continue
        table = result.queues
        time, at = np.unique(table["time_ps"], return_inverse=True)
        longest = np.zeros(len(time))
        np.maximum.at(longest, at, table[column].astype(float))
        axes.plot(
            *_thinned(time / 1e9, longest / 1e3, np.max), color=colour, label=labelled(result.name), linewidth=1.3
        )
    axes.set(xlabel="time (ms)", ylabel="KB")
    axes.set_ylim(bottom=0)
    axes.set_title(title)


def _fullest(axes: Axes, results: Sequence[tuple[Result, str]]) -> None:
    """For each tier, the link that came nearest to its bound."""
    tiers = {"up": "up", "down": "down", "to_host": "to hosts"}
    width = 0.8 / max(len(results), 1)
    for place, (result, colour) in enumerate(results):
        frame = result.guarantees.to_pandas()
        fullest = (
            frame.loc[frame.groupby("tier", observed=True)["share"].idxmax()].set_index("tier").reindex(list(tiers))
        )
        at = np.arange(len(tiers)) + (place - (len(results) - 1) / 2) * width
        most, bound = (fullest[f"queue_{name}_bytes"].astype(float) / 1e3 for name in ("max", "bound"))
        axes.bar(at, most, width * 0.86, color=colour, label=labelled(result.name))
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


def _waits(axes: Axes, results: Sequence[tuple[Result, str]]) -> None:
    """The line falls vertically at the longest wait; the bound is dashed."""
    least = 1e-5
    one_bound = len({result.guaranteed_waits["wait_bound_ps"][-1] for result, _ in results}) == 1
    for result, colour in results:
        table = result.guaranteed_waits
        wait, bound = table["wait_ps"] / 1e6, table["wait_bound_ps"][-1] / 1e6
        longer = np.append(1 - table["quantile"][:-1], least / 100)
        axes.plot([0, *wait], [1, *longer], drawstyle="steps-post", color=colour, label=labelled(result.name))
        axes.axvline(bound, color="#1d2025" if one_bound else colour, linestyle=(0, (4, 2)), linewidth=1.4)
    axes.set(yscale="log", ylim=(least / 2, 1.3), xlabel="wait in all switches together (µs)")
    axes.set_xlim(left=0)
    axes.set_ylabel("packets that waited longer")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.5%}".rstrip("0%").rstrip(".") + "%"))
    axes.set_title("waits, and the bound (dashed)")


def _thinned(x: Floats, y: Floats, summary: Callable[[Any], Any]) -> tuple[Floats, Floats]:
    """At most 300 points, each a summary of its neighbours."""
    if len(x) <= 300:
        return x, y
    cuts = np.linspace(0, len(x), 301).astype(int)
    parts = list(itertools.pairwise(cuts))
    return np.array([x[a:b].mean() for a, b in parts]), np.array([summary(y[a:b]) for a, b in parts])


def _of_size(result: Result, size: str) -> npt.NDArray[np.bool_]:
    """Completed flows of the size class."""
    of_size = (result.size_classes() == size).to_numpy(dtype=bool)
    return of_size & ~np.isnan(_floats(result, "fct_ps"))


def _spent(axes: Axes, results: Sequence[Result], size: str) -> None:
    places = np.arange(len(results))[::-1]
    done = [_of_size(result, size) for result in results]
    left = np.zeros(len(results))
    for column, label, colour in SPENT:
        width = np.array(
            [_floats(result, column)[of].mean() / 1e6 if of.any() else 0.0 for result, of in zip(results, done)]
        )
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
