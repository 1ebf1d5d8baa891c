"""Homa, DCTCP and TCP on 40 hosts whose software costs time, held against Homa/Linux's published latencies.

The costs of software follow from the timeline of lone messages alone (`host.cpu = { like = "linux_xl170" }`). The
latencies under load are those of HomaModule's notes on performance, item 31: of the tenth of all messages that are
shortest, from a request to its answer.

A message here goes one way, and a client's requests and a server's answers are the same kind of traffic. So a round
trip is the sum of two messages that are drawn independently of all short ones, and the time of the server's
application between them, which the timeline has, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Held, Shown

HERE = Path(__file__).parent

WITHIN = {"P50": 0.15, "P99": 0.30}
"""Chosen before the run."""

SERVER_US = 0.682
"""From when a server's application has a request until it sends the answer (item 33)."""
ROUND_TRIP_US = {"Homa": 15.770, "TCP": 23.3}
"""A round trip of 100 B alone: item 33, of which `linux_xl170` is made, and item 47."""
NETWORK_US = 6.361
"""Of both, from NIC to NIC and back (item 33)."""
SOFTWARE_US, WAKE_UP_US, READ_US = 4.366, 2.0, 0.605
"""Of `linux_xl170`: all stages of a message without that, a thread's wake-up, and what it takes for a message."""

# Bytes of messages that a host sends and receives, each way, in Gbps: cp_vs_tcp's own.
LOADS: Mapping[str, tuple[float, str]] = {"W2": (3.2, "3ms"), "W4": (20.0, "20ms")}

# Threads of TCP sleep in epoll. Beside that, TCP's round trip takes longer than Homa's by its threads' time: they make
# three system calls for Homa's one.
_TCP_READ_US = READ_US + (ROUND_TRIP_US["TCP"] - NETWORK_US - SERVER_US) / 2 - SOFTWARE_US - WAKE_UP_US

# A server has a thread for each of 8 ports, a client one for each of its 4, with connections to all ports of all
# servers. A socket hands the NIC 64 KB at a time.
_TCP = {
    "host.cpu": {
        "like": "linux_xl170",
        "threads": 12,
        "ports": 12,
        "polling": "0s",
        "per_message_receive": f"{round(_TCP_READ_US * 1e3)}ns",
        "tso": "64KB",
        "nic_queue": "128KB",
    },
}
# Connections last for the whole run, and so do their windows, while a message here begins with a window of its own. The
# largest messages have 1 MB, for which slow start goes up to 340 packets; marks leave DCTCP what fits into a round trip
# and the switch's 70 KB (its paper's section 3.3).
_SEGMENT = 2_940
_WINDOWS = {"TCP": round(1e6 / _SEGMENT), "DCTCP": round((25e3 / 8 * ROUND_TRIP_US["TCP"] + 70e3) / _SEGMENT)}
_LINUX = {"rack": True, "tail_loss_probe": True, "prr": True, "rto_min": "200ms"}
_ACKS = {"delayed_ack": {"packets": 2}}
SCHEMES: Mapping[str, figures.Keys] = {
    "Homa": {},
    "DCTCP": {**_TCP, "transport": {"dctcp": {**_LINUX, **_ACKS, "initial_window": _WINDOWS["DCTCP"]}}},
    "TCP": {**_TCP, "transport": {"linux": {**_ACKS, "initial_window": _WINDOWS["TCP"]}}},
}


def scenario(workload: str, protocol: str) -> cw.Scenario:
    """The cluster under a workload and a protocol."""
    gbps, duration = LOADS[workload]
    table = {"cdf_file": {"path": f"{workload.lower()}.txt", "unit": "bytes", "probability": "fraction"}}
    return cw.Scenario.load(HERE / "hosts.toml").with_(
        {
            "name": f"{workload} {protocol}",
            "traffic.0.sizes": table,
            "traffic.0.arrivals": {"poisson": {"load": gbps / 25}},
            "traffic.0.duration": duration,
            **SCHEMES[protocol],
        }
    )


def round_trips(result: cw.Result, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Round trips of short messages in us: of the shortest tenth, which are below 1,500 B, as cp_vs_tcp has it."""
    flows = pd.DataFrame(
        {name: pd.Series(result.flows[name]).astype(float) for name in ("bytes", "start_ps", "fct_ps")}
    )
    # Before that queues have not filled yet.
    flows = flows[flows["start_ps"] >= flows["start_ps"].max() / 4]
    short = flows.loc[flows["bytes"] <= min(flows["bytes"].quantile(0.1, interpolation="higher"), 1_499), "fct_ps"]
    # A message that never came is late.
    us = short.fillna(np.inf).to_numpy() / 1e6
    there, back = np.random.default_rng(seed).choice(us, (2, 200_000))
    return np.asarray(there + back + SERVER_US, dtype=np.float64)


def measured() -> pd.DataFrame:
    """The published latencies."""
    return pd.read_csv(HERE / "hosts.csv").set_index(["workload", "protocol", "statistic"])


def hosts() -> Shown:
    """Latencies of short messages on 40 hosts whose software costs what lone messages showed: Homa, DCTCP and TCP."""
    rows, held = [], []
    for protocol in SCHEMES:
        of = []
        for workload in LOADS:
            us = round_trips(figures.simulated(scenario(workload, protocol)))
            for statistic, within in WITHIN.items():
                theirs = figures.cell(measured(), (workload, protocol, statistic), "us")
                ours = float(np.percentile(us, float(statistic[1:])))
                of.append((workload, f"{statistic} of short messages, us", ours, theirs, within))
                rows.append((protocol, workload, statistic, ours, theirs, ours / theirs - 1, within))
        table = pd.DataFrame(of, columns=list(Held.COLUMNS))
        held.append(Held(protocol, "40 xl170 hosts, Homa/Linux's notes, item 31", "hosts", table))
    columns = ["protocol", "workload", "statistic", "ours, us", "measured, us", "error", "allowed"]
    return Shown(pd.DataFrame(rows, columns=columns).set_index(columns[:3]), held=held)
