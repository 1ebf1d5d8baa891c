"""Shared by the three applications: the networks that they run over, Harmony's bound on a message, how pictures are
laid out.

Delays are those of runs, of Harmony and of best effort on the same traffic. The host's part is modelled, in
microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Keys
from clearway.reports.plots import STYLE, Picture

HERE = Path(__file__).parent
OUT = Path("out/harmony/applications")

# Section 6: "we simply add 1us to Harmony's end-to-end delay bound", for what hosts take.
HOST_US = 1.0
# Messages, packets and files are this many times as many.
scale = 1.0

BEST_EFFORT: dict[str, Any] = {"DCTCP": "dctcp", "dcPIM": {"dcpim": {"departures": "paper"}}}

Model = TypeVar("Model")


def run(scenario: str, name: str, sets: Keys) -> cw.Result:
    """A scenario of this folder with some keys set."""
    return figures.run(HERE / f"{scenario}.toml", name, sets, OUT)


def slots(k: int, delta_us: float, **more: Any) -> dict[str, Any]:
    """Harmony with this many slots and this bound on a request's wait."""
    return {"harmony": {"slots": k, "delta_admission": f"{delta_us:g}us", **more}}


class Bound:
    """Harmony's guarantee on the network of a run, in microseconds, with K slots and a wait of delta_admission at
    most.

    `wait` is Equation 1's, for the link that makes it longest, with what the paper leaves out of it: a packet of best
    effort at each meeting, and the control packets of all virtual links. A request and a reject have no virtual link;
    they are taken to wait twice as long each. So hosts reckon, too, when they conclude that an answer is missing.
    """

    CONTROL_SHARE = 0.01
    PACKET, HEADER = 1500, 40

    def __init__(self, result: cw.Result, k: int, delta_us: float) -> None:
        links = result.links.to_pandas()
        gbps = links["rate_bps"].astype(float) / 1e9
        access = float(gbps[links["tier"] == "from_host"].min())
        # A leaf-spine's longest path is over three switches.
        self.k, self.delta, self.switches = k, delta_us, 3
        self.slot_gbps = access / k * (1 - self.CONTROL_SHARE)
        self.rtt = float(result.info["data_rtt_ps"]) / 1e6
        self.period = self.PACKET * 8e-3 / self.slot_gbps
        # At each meeting a packet of each virtual link and one of best effort, and control packets.
        virtual_link = self.PACKET + 3 * self.HEADER
        rounds = [(int(rate * k / access) * virtual_link + self.PACKET) * 8e-3 / rate for rate in gbps.unique()]
        self.wait = float(self.switches * (self.switches + 1) / 2 * max(rounds))

    @property
    def admission(self) -> float:
        """From a request's departure to its rsvp."""
        return self.delta + self.rtt + 4 * self.wait

    @property
    def answer(self) -> float:
        """Or to a reject: the receiver may have tried last just before delta_admission, and learns a round trip
        later that it was in vain."""
        return self.admission + self.rtt

    def transfer(self, size: int) -> float:
        """From a rsvp's arrival until the receiver has all of a message that has one slot, and the sender knows."""
        packets = -(-size // (self.PACKET - self.HEADER))
        slip = (self.k + 1) * self.PACKET * 8e-3 / (self.slot_gbps * self.k)
        return packets * self.period + slip + self.rtt + 2 * self.wait

    def message(self, size: int) -> float:
        """From a message's submission to its completion or reject, with what hosts take."""
        return self.admission + self.transfer(size) + HOST_US


def sensitivity(
    model: Model, outcome: Callable[[Model], Mapping[str, float]], factors: Sequence[float] = (0.5, 2.0)
) -> pd.DataFrame:
    """The outcome with each number of a model by itself multiplied by each factor."""
    rows = {("as it is", 1.0): outcome(model)}
    constants: Any = model
    for field in fields(constants):
        value = getattr(constants, field.name)
        for factor in factors if value else ():
            changed = type(value)(max(1, round(value * factor))) if isinstance(value, int) else value * factor
            rows[field.name, factor] = outcome(replace(constants, **{field.name: changed}))
    return pd.DataFrame(rows).T.rename_axis(["constant", "times"])


def log_scale(axes: Axes, which: str) -> None:
    """A logarithmic axis with plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis, (low, high) = (axes.xaxis, axes.get_xlim()) if which == "x" else (axes.yaxis, axes.get_ylim())
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 300 * low else (1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw(panels: Sequence[Callable[[Axes], object]], columns: int = 2) -> Picture:
    """Panels in rows in the style of the package."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(5.4 * columns, 3.6 * rows), layout="constrained")
        places = list(picture.subplots(rows, columns, squeeze=False).flat)
        for axes, panel in zip(places, panels):
            panel(axes)
        for axes in places[len(panels) :]:
            axes.set_axis_off()
        return picture
