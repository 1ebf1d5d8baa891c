"""Why a flow took as long as it did, in words and numbers, from the tables of its result alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from clearway.reports.plots import STYLE, Picture, add_legend
from clearway.results import points
from clearway.results.packets import matched, way_of
from clearway.results.points import SPENT
from clearway.results.states import at_host, said_of

if TYPE_CHECKING:
    from clearway.results.result import Result

# The possible causes of each part; the words of SPENT name its place.
_CAUSES = {
    "message_ps": "the size of the flow and the rate of its host's link",
    "limits_ps": "packets of other flows of its host, the transport's pacing, window, tokens or grants, and pauses",
    "recovery_ps": "packets that were sent again, and the transport's limits meanwhile",
    "queued_up_ps": "packets before it on links from the racks up",
    "queued_down_ps": "packets before it on links down to the racks",
    "queued_last_ps": "packets before it on the receiver's own link: others sent to the same host",
    "serialised_ps": "the rates of the links",
    "propagation_ps": "the length of its path and the delays of hosts and switches",
    "return_ps": "the way of the last acknowledgement",
}


@dataclass(frozen=True)
class Explanation:
    """The facts on one flow; `str` of it is a page of text, and a notebook shows its picture."""

    flow: int
    """The flow's number."""
    sentences: list[str]
    """The events, in one or two sentences each."""
    parts: pd.DataFrame = field(repr=False)
    """Where its time went: columns `this`, `median` (the median flow of its size and transport) and `more`, in
    microseconds, a row a part. Empty for a flow that did not complete, and at flow level.
    """
    usual: int | None = None
    """The number of the median flow."""
    states: pd.DataFrame = field(repr=False, default_factory=pd.DataFrame)
    """The state of its sender (`measure.flows`): the column `time_us`, and one column per value of its transport. Empty
    if it was
    not followed.
    """

    def __str__(self) -> str:
        lines = list(self.sentences)
        if len(self.parts):
            shown = self.parts.map(lambda value: f"{value:,.2f}").rename_axis("its time, in µs", axis="columns")
            lines += ["", shown.rename(columns={"median": "median flow", "more": "more than that"}).to_string()]
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Where its time went, beside the median flow: two bars; and below, what its sender had of it over time."""
        units = _by_unit(self.states)
        heights = [2.2] * bool(len(self.parts)) + [1.7] * len(units)
        with mpl.rc_context(STYLE):
            picture = Picture(figsize=(9.6, max(sum(heights), 2.2)), layout="constrained")
            axes = picture.subplots(max(len(heights), 1), squeeze=False, gridspec_kw={"height_ratios": heights or [1]})
            rows = list(axes[:, 0])
            if len(self.parts):
                self._draw_parts(picture, rows.pop(0))
            for (unit, names), below in zip(units.items(), rows):
                for name in names:
                    label = name.removesuffix(f"_{unit}")
                    below.step(self.states["time_us"], self.states[name], where="post", label=label)
                below.set(xlabel="µs", ylabel={"bytes": "B", "bps": "bit/s"}.get(unit, unit), ylim=(0, None))
                below.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8.5)
            return picture

    def _draw_parts(self, picture: Picture, axes: Axes) -> None:
        left = np.zeros(2)
        for _, label, colour in SPENT:
            if label in self.parts.index:
                row: Any = self.parts.loc[label]
                width = np.array([float(row["median"]), float(row["this"])])
                axes.barh([0, 1], width, left=left, color=colour, label=label, height=0.6, edgecolor="white")
                left += width
        axes.set_yticks([0, 1], [f"flow {self.usual}, the median", f"flow {self.flow}"])
        axes.set(xlabel="µs")
        axes.grid(axis="y", visible=False)
        add_legend(picture, axes, loc="outside lower center", ncols=4, fontsize=8.5)

    def _repr_svg_(self) -> str:
        return self.picture().svg()


def _by_unit(states: pd.DataFrame) -> dict[str, list[str]]:
    """The names of states by what they end in: those of one unit are drawn together."""
    units: dict[str, list[str]] = {}
    for name in states.columns[1:]:
        unit = str(name).rpartition("_")[2]
        units.setdefault(unit, []).append(str(name))
    return units


def explain(result: Result, flow: int) -> Explanation:
    """Explains one flow of a result: its number is that of column `flow`."""
    explained = _explained(result, flow)
    known = result.states.to_pandas() if "states" in result.tables else pd.DataFrame(columns=["flow"])
    if not (known["flow"] == flow).any():
        return explained
    sender = int(result.flows["src"][list(result.flows["flow"]).index(flow)])
    return replace(explained, states=at_host(result, flow, sender))


def _explained(result: Result, flow: int) -> Explanation:
    flows: Any = result.flows.to_pandas()
    found = flows[flows["flow"] == flow]
    if not len(found):
        raise ValueError(f"{result.name!r} has no flow {flow}: its flows are 0 to {int(flows['flow'].max())}")
    one: Any = found.iloc[0]
    flows["size"] = result.size_classes().astype(object).to_numpy()
    size = str(flows["size"].loc[one.name])
    said = [
        f"Flow {flow} of {result.name}: {int(one['bytes']):,} B of class {one['class']} over {one['transport']}, from "
        f"host{one['src']} to host{one['dst']}."
    ]
    if pd.isna(one["start_ps"]):
        return Explanation(flow, [*said, "It never began: the run ended before."], pd.DataFrame())
    start = float(one["start_ps"])
    if one["status"] != "completed":
        end = float(result.info["end_ps"])
        reason = f" ({one['reason']})" if one["reason"] else ""
        said.append(
            f"It began at {start / 1e9:,.4g} ms and did not complete: {one['status']}{reason}. {_lost(one)}".rstrip()
        )
        return Explanation(flow, said + _around(result, flows, one, end), pd.DataFrame())
    alike = flows[(flows["size"] == size) & (flows["transport"] == one["transport"]) & flows["slowdown"].notna()]
    order = alike.sort_values("slowdown", kind="stable")
    usual: Any = order.iloc[(len(order) - 1) // 2]
    said.append(
        f"It began at {start / 1e9:,.4g} ms and took {one['fct_ps'] / 1e6:,.2f} µs, {one['slowdown']:,.2f} times the "
        f"{one['ideal_ps'] / 1e6:,.2f} µs that it takes alone. {_lost(one)}".rstrip()
    )
    said.append(_among(one, alike, usual, f"{size} flows over {one['transport']}"))
    parts = pd.DataFrame()
    if result.level == "packet":
        columns = [column for column, _, _ in SPENT]
        of = pd.DataFrame(points.parts(result), index=flows.index)[columns] / 1e6
        parts = pd.DataFrame({"this": of.loc[one.name], "median": of.loc[usual.name]})
        parts["more"] = parts["this"] - parts["median"]
        most = str(parts["more"].idxmax())
        more = float(parts["more"].max())
        if one["slowdown"] > usual["slowdown"]:
            words = {column: label for column, label, _ in SPENT}[most]
            said.append(
                f"Most of the difference to that flow is {_spent_on(words)} ({more:,.2f} µs more): {_CAUSES[most]}."
            )
        parts.index = pd.Index([label for _, label, _ in SPENT])
    end = start + float(one["fct_ps"])
    return Explanation(flow, said + _around(result, flows, one, end), parts, int(usual["flow"]))


def _among(one: Any, alike: Any, usual: Any, kind: str) -> str:
    """How a flow stands among those of its kind."""
    if len(alike) == 1:
        return f"It is the only one of the {kind} that completed."
    faster = int((alike["slowdown"] < one["slowdown"]).sum())
    median = f"their median is flow {int(usual['flow'])}, with a slowdown of {usual['slowdown']:,.2f}"
    if int(usual["flow"]) == int(one["flow"]):
        return f"It is the median of the {len(alike):,} {kind}: {faster:,} of them had a lower slowdown."
    if not faster:
        return f"None of the {len(alike):,} {kind} had a lower slowdown; {median}."
    return f"It was slower than {faster / len(alike):.1%} of the {len(alike):,} {kind}; {median}."


def _spent_on(words: str) -> str:
    return words if words.startswith(("at ", "queued ", "until ")) else f"on {words}"


def _lost(one: Any) -> str:
    again = int(one.get("resent_packets", 0) or 0)
    return f"{again:,} of its {int(one['sent_packets']):,} packets were sent again." if again else ""


def _around(result: Result, flows: Any, one: Any, end: float) -> list[str]:
    """Other events between the flow's start and `end`: other flows at its hosts, queues, measurements."""
    start = float(one["start_ps"])
    last = flows["delivered_ps"].astype(float).fillna(float(result.info["end_ps"]))
    meanwhile = flows[(flows["start_ps"].astype(float) < end) & (last > start) & (flows["flow"] != one["flow"])]
    said = []
    for words, side in (("sent", "src"), ("received", "dst")):
        others = meanwhile[meanwhile[side] == one[side]]
        if len(others):
            largest: Any = others.loc[others["bytes"].idxmax()]
            what = f"flow {int(largest['flow'])}, of {int(largest['bytes']):,} B"
            if len(others) > 1:
                sum_ = int(others["bytes"].sum())
                what = f"{len(others):,} other flows, of {sum_:,} B in all; the largest was {what}"
            said.append(f"Meanwhile host{one[side]} also {words} {what}.")
    said += _queues(result, one, start, end)
    said += way_of(result, int(one["flow"]))
    said += matched(result, one)
    said += said_of(result, one)
    if "measures" in result.tables:
        rows: Any = result.measures.to_pandas()
        mine = rows[rows["flow"] == one["flow"]] if "flow" in rows else rows.iloc[:0]
        values = [f"{name} {value:,.6g}" for name, value in zip(mine.get("measure", ()), mine.get("value", ()))]
        if values:
            said.append(f"Its transport measured: {', '.join(values)}.")
    return said


def _queues(result: Result, one: Any, start: float, end: float) -> list[str]:
    """The longest queues at the switches of its two hosts while it was under way, as far as samples saw them."""
    if "queues" not in result.tables or not len(result.queues):
        return []
    racks, said = points.racks(result), []
    rows: Any = result.queues.to_pandas()
    during = rows[(rows["time_ps"].astype(float) >= start) & (rows["time_ps"].astype(float) <= end)]
    for words, side in (("sender", "src"), ("receiver", "dst")):
        at = during[during["switch"].astype(str) == racks.get(int(one[side]), "")]
        if len(at) and int(at["longest_bytes"].max()):
            most = at.loc[at["longest_bytes"].idxmax()]
            said.append(
                f"The longest queue of a port of {most['switch']}, the {words}'s switch, was "
                f"{int(most['longest_bytes']):,} B, at {float(most['time_ps']) / 1e9:,.4g} ms."
            )
    return said
