"""TCP held against ns-3 3.44, where a difference was found that needs a cause."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers._paper import Options, Paper
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent

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
    """The queue of two endless flows of DCTCP, in packets: ours, ns-3's, and the longest by DCTCP's own model. Short
    flows wait behind it, so that they are faster here than in ns-3 by as much as the queue is shorter."""
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
    against = (
        "ns-3 3.44, two flows, a threshold of as many bytes. RED looks before it adds the packet, so that its "
        "threshold is a packet higher, and not at the two packets in the device below. ns-3's default acknowledges "
        "every second packet, and its windows rise further above the threshold than DCTCP's model says"
    )
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


def _apply(options: Options, out: Path) -> None:
    """Nothing here has options, and small runs are not kept."""


PAPER = Paper("ns3", "TCP beside ns-3 3.44", {"dctcp-queue": dctcp_queue}, _apply, ("docs/schemes/tcp.md",))
