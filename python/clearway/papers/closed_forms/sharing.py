"""Laws of sharing: an overloaded link, token buckets, guarantees, weighted shares."""

from __future__ import annotations

from typing import Any

from clearway.papers.figures import Held

from . import setting
from .setting import PACKET, PAYLOAD, Row

OVERLOAD = """
transport = { udp = { patience = "1ms" } }
measure.interval = "0s"
fabric.star = { hosts = 5 }
switch.buffer.per_port.bytes = "150KB"
[[traffic]]
sizes = { constant = "14600KB" }
arrivals = "all_at_once"
senders = "1-4"
receivers = "0"
"""


def udp() -> Held:
    """Four hosts send 10,000 packets each at the rate of the link that they share: it carries 10,000 meanwhile and
    then what the buffer holds."""
    result = setting.run(OVERLOAD)
    link = setting.link(result, "switch0", "host0")
    carried = 10_000 + 150e3 / PACKET
    rows: list[Row] = [
        ("four times too much", "packets through", float(link["sent_packets"]), carried, 0.01),
        ("four times too much", "share lost", float(link["overflow_packets"]) / 40_000, 1 - carried / 40_000, 0.01),
    ]
    return setting.held("udp", "an overloaded link by arithmetic", rows)


# Ten hosts a side, 10 Gbps, 10 us a link, endless flows: the dumbbell of Augmented Queue (SIGCOMM 2023, section 5.1).
DUMBBELL = """
sharing = {sharing}
measure = {{ end = "{end}", interval = "{interval}" }}
host = {{ mtu = "1500B", header = "40B" }}
switch.buffer.per_port.bytes = "1MB"
fabric.dumbbell.hosts_per_side = 10
fabric.dumbbell.host_rate = "10Gbps"
fabric.dumbbell.bottleneck_rate = "10Gbps"
fabric.dumbbell.propagation = "10us"
fabric.dumbbell.switch_delay = "0s"
"""
TENANT = """
[[entity]]
name = "{name}"
traffic = ["{name}"]
request = [{{ share = {share}, link = ["left", "right"], position = "ingress" }}]
[[traffic]]
name = "{name}"
transport = {transport}
sizes = {{ constant = "100GB" }}
pattern = {{ stride = {{ by = 10 }} }}
arrivals = "all_at_once"
senders = "{senders}"
"""


def rates_gbps(result: Any, from_ms: float) -> dict[str, float]:
    """Payload delivered for each entity from a time on, on the wire."""
    rows = result.tables["entities"].to_arrow().to_pandas()
    rows = rows[rows["time_ps"] > from_ms * 1e9]
    seconds = float(result.info["end_ps"]) / 1e12 - from_ms / 1e3
    return {
        str(name): float(bytes_) * 8 * PACKET / PAYLOAD / seconds / 1e9
        for name, bytes_ in rows.groupby("entity", observed=True)["delivered_bytes"].sum().items()
    }


def shared(
    sharing: str, tenants: dict[str, tuple[str, str, str]], from_ms: float = 20.0, end: str = "60ms"
) -> dict[str, float]:
    """Rates of tenants named, each with share, transport and senders."""
    text = DUMBBELL.format(sharing=sharing, end=end, interval="5ms")
    text += "".join(
        TENANT.format(name=name, share=share, transport=transport, senders=senders)
        for name, (share, transport, senders) in tenants.items()
    )
    return rates_gbps(setting.run(text), from_ms)


def rate_limiter() -> Held:
    """A token bucket passes a burst and then its rate (Turner 1986): r t + b in any time, of a host that has always
    more to send.

    Two tenants of equal weight, one of a host and one of four: what a host may have of the half is a quarter less for
    each host more.
    """
    rows: list[Row] = []
    for burst in (3_000, 300_000):
        text = DUMBBELL.format(sharing=f'{{ rate_limiter = {{ burst = "{burst}B" }} }}', end="1ms", interval="1ms")
        text += TENANT.format(name="a", share='{ absolute = "1Gbps" }', transport='"udp"', senders="0")
        sent = float(setting.link(setting.run(text), "host0", "left")["sent_bytes"])
        rows.append(
            (f"burst {burst // 1000} KB", "bytes in 1 ms, KB", sent / 1e3, (burst + 1e9 / 8 * 1e-3) / 1e3, 0.01)
        )
    got = shared('"rate_limiter"', {"a": ("{ weight = 1 }", '"udp"', "0"), "b": ("{ weight = 1 }", '"udp"', "1-4")})
    rows += [(f"tenant {name}, half of 10 Gbps", "Gbps", rate, 5.0, 0.01) for name, rate in got.items()]
    return setting.held("rate_limiter", "a token bucket's rate and burst", rows)


def elastic_switch() -> Held:
    """ElasticSwitch keeps guarantees of its hose model (Popa et al., SIGCOMM 2013, section 3): of weights 1 and 3, a
    quarter and the rest."""
    sharing = '{ elastic_switch = { rate_allocation = "guarantees_only", period = "2ms" } }'
    got = shared(sharing, {"a": ("{ weight = 1 }", '"udp"', "0"), "b": ("{ weight = 3 }", '"udp"', "1-4")})
    return setting.held(
        "elastic_switch",
        "guarantees of the hose model",
        [(f"tenant {name}", "Gbps", got[name], due, 0.01) for name, due in (("a", 2.5), ("b", 7.5))],
    )


def aq() -> Held:
    """Weighted shares of a link that is full, as of generalised processor sharing (Parekh and Gallager 1993), whatever
    a tenant's control; and a cap.

    Each tenant's hosts send more than its share, or turn at the losses of its AQ.
    """
    tenants = {
        "a": ("{ weight = 1 }", '"udp"', "0"),
        "b": ("{ weight = 2 }", '"cubic"', "1-3"),
        "c": ("{ weight = 5 }", '"dctcp"', "4-7"),
    }
    got = shared('"aq"', tenants, 100.0, "300ms")
    rows: list[Row] = [
        (f"weight {weight} of 8", "Gbps", got[name], 10 * weight / 8, 0.03)
        for name, weight in (("a", 1), ("b", 2), ("c", 5))
    ]
    got = shared(
        '"aq"', {"a": ('{ absolute = "2Gbps" }', '"udp"', "0"), "b": ('{ absolute = "5Gbps" }', '"udp"', "1-4")}
    )
    rows += [(f"{due} Gbps asked for", "Gbps", got[name], due, 0.01) for name, due in (("a", 2.0), ("b", 5.0))]
    return setting.held("aq", "weighted shares of a full link", rows)
