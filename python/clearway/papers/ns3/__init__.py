"""TCP held against ns-3 3.44, where a difference was found that needs a cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers._paper import Options, Paper
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent

_Row: TypeAlias = tuple[object, ...]
_Cases: TypeAlias = dict[str, dict[str, Any]]
FLOWS = 2
PACKET = 1500
STAR = """
transport = "dctcp"
timing = "ideal"
measure = {{ end = "20ms", interval = "5030ns" }}
switch = {{ buffer.per_port.bytes = "500KB", marking.step.threshold = "{mark}B" }}
fabric.star = {{ hosts = 3, rate = "{rate}", propagation = "200ns", switch_delay = "450ns" }}
[[traffic]]
sizes.constant = "100GiB"
arrivals = "all_at_once"
pattern.incast.degree = 2
senders = "0-1"
receivers = "2"
flows = 2
"""


def queue(rate: str, mark: int, per_ack: int) -> tuple[float, float]:
    """Packets in the queue of two endless flows: the mean, and the most, after 5 ms."""
    wanted = cw.Scenario.from_toml(STAR.format(rate=rate, mark=mark))
    if per_ack > 1:
        wanted = wanted.with_({"transport.dctcp.delayed_ack": {"packets": per_ack, "timeout": "500us"}})
    result = figures.simulated(wanted.with_({"name": f"{rate}, {per_ack} packets an acknowledgement"}), threads=1)
    samples = result.queues.to_pandas()
    used = samples.loc[samples["time_ps"] > 5e9, "used_bytes"].astype(float) / PACKET
    return float(used.mean()), float(used.max())


def dctcp_queue() -> Shown:
    """The queue of two endless flows of DCTCP, in packets: ours, ns-3's, and the longest by DCTCP's own model."""
    rows = []
    beside, model = [], []
    for _, case in pd.read_csv(HERE / "dctcp_queue.csv").iterrows():
        rate, mark, per_ack = str(case["rate"]), int(case["mark_bytes"]), int(case["packets_per_ack"])
        mean, most = queue(rate, mark, per_ack)
        # Equation 8 of the paper: the threshold, and a packet of each flow in the round trip until the mark is known.
        longest = mark / PACKET + FLOWS
        rows.append((rate, per_ack, mean, float(case["mean_packets"]), most, float(case["most_packets"]), longest))
        name = f"{rate}, {per_ack} packets an acknowledgement"
        beside.append((name, "mean queue, packets", mean, float(case["mean_packets"]), 0.1))
        if per_ack == 1:
            model.append((name, "longest queue, packets", most, longest, 0.1))
    columns = ["rate", "packets an acknowledgement", "mean", "ns-3's mean", "most", "ns-3's most", "most by the model"]
    against = "ns-3 3.44, two flows; RED without `Gentle`, which marks each packet above the threshold"
    held = [
        Held("dctcp", against, "authors' run", pd.DataFrame(beside, columns=list(Held.COLUMNS))),
        Held(
            "dctcp",
            "the longest queue by its model, K + N (SIGCOMM 2010, equation 8)",
            "closed form",
            pd.DataFrame(model, columns=list(Held.COLUMNS)),
        ),
    ]
    return Shown(pd.DataFrame(rows, columns=columns).set_index(columns[:2]), held=held)


def _beside(transport: str, cases: _Cases, against: str) -> tuple[list[_Row], Held]:
    """Flows of web search into one port: the slowdown by size, ours and ns-3's of the same flows.

    `one_port.csv` has what `clearway against ns3 one_port.toml --seeds 3 --set ... --out FILE` gives with this folder's
    scenario and the keys of each case.
    """
    kept = pd.read_csv(HERE / "one_port.csv")
    wanted = cw.Scenario.load(HERE / "one_port.toml")
    rows, beside = [], []
    for case, keys in cases.items():
        found = []
        of_case = kept[(kept["transport"] == transport) & (kept["case"] == case)]
        for seed in of_case["seed"].unique().tolist():
            theirs = of_case[of_case["seed"] == seed]
            named: dict[str, Any] = {"name": f"{transport}, {case}, seed {seed}", "seed": seed}
            flows = (result := figures.simulated(wanted.with_({**keys, **named}), threads=1)).flows.to_pandas()
            sizes = {"size": result.size_classes().to_numpy(), "ours": flows["slowdown"].astype(float)}
            slowdown = theirs["theirs_ps"].to_numpy(dtype=float) / flows["ideal_ps"].astype(float)
            found.append(pd.DataFrame(sizes | {"theirs": slowdown}))
        for size, group in pd.concat(found).groupby("size", sort=False):
            means, medians = group[["ours", "theirs"]].mean(), group[["ours", "theirs"]].median()
            rows.append((transport, case, str(size), len(group), *means, *medians))
            bucket = f"{case}, {size} flows"
            beside.append((bucket, "mean slowdown", *means, 0.1))
            beside.append((bucket, "median slowdown", *medians, 0.1))
    return rows, Held(transport, against, "authors' run", pd.DataFrame(beside, columns=list(Held.COLUMNS)))


def _shown(found: list[tuple[list[_Row], Held]]) -> Shown:
    columns = ["transport", "case", "flows", "number", "mean", "ns-3's mean", "median", "ns-3's median"]
    rows = [row for rows, _ in found for row in rows]
    return Shown(pd.DataFrame(rows, columns=columns).set_index(columns[:3]), held=[held for _, held in found])


def dctcp_flows() -> Shown:
    """Flows of web search over DCTCP into one port: slowdown by size, ours and ns-3's of the same flows."""
    against = (
        "ns-3 3.44, the same 1,200 flows. ns-3 lets DCTCP's window fall below one segment, and the flow then sends "
        "nothing until its timeout; here and in Linux two segments are the least. With a timeout of 50 us instead of "
        "1 ms a flow waits less"
    )
    cases: _Cases = {f"a timeout of {of}": {"transport.dctcp.rto_min": of} for of in ("1ms", "50us")}
    return _shown([_beside("dctcp", cases, against)])


def tcp_flows() -> Shown:
    """Flows of web search over other TCPs into one port without marks: slowdown by size, ours and ns-3's of the same
    flows."""
    against = "ns-3 3.44, the same 1,200 flows"
    of_each: dict[str, _Cases] = {
        name: {"no marks": {"transport": name}} for name in ("newreno", "cubic", "illinois", "bbr")
    }
    plain = {"cubic": {"control": {"slow_start": "standard"}}}
    of_each["cubic"]["no marks, standard slow start"] = {"transport": plain}
    reasons = {"cubic": ". With the standard slow start long flows agree: the two differ in when HyStart ends it"}
    return _shown([_beside(name, cases, against + reasons.get(name, "")) for name, cases in of_each.items()])


def _apply(options: Options, out: Path) -> None:
    """Nothing here has options, and small runs are not kept."""


PAPER = Paper(
    "ns3",
    "TCP beside ns-3 3.44",
    {"dctcp-queue": dctcp_queue, "dctcp-flows": dctcp_flows, "tcp-flows": tcp_flows},
    _apply,
    ("docs/schemes/tcp.md",),
)
