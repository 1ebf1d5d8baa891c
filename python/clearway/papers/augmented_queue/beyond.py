"""Questions beyond the paper's evaluation: many weights, unequal round trips, headroom, DCTCP's threshold, dcPIM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from clearway.papers.figures import Keys, Shown

from .evaluation import gbps, run, within

# Of the bytes on the wire, those that are payload.
PAYLOAD = 1460 / 1500
PQ: Keys = {"sharing": "physical_queue"}
CONTROLS = ("newreno", "cubic", "illinois", "dctcp", "swift", "bbr")
HEADROOMS = (0.0, 0.01, 0.02)
THRESHOLDS_KB = (25, 50, 100, 180, 300, 500, 750)
# Gbps of the links and of the AQ, and the number of flows.
GOVERNED = ((10, 5, 1), (10, 5, 4), (100, 25, 1), (100, 25, 4), (100, 50, 4))
LOADS = (0.1, 0.3, 0.6)


def jain(shares: Iterable[float]) -> float:
    """Jain's fairness index: 1 if all shares are equal."""
    values = list(shares)
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def weights() -> Shown:
    """Beyond the paper: 100 entities with weights 1 to 100 and seven congestion controls: each entity's rate as a share
    of what its weight entitles it to."""
    ways: dict[str, tuple[float, Keys]] = {
        "physical queue, 100 Gbps": (100, {**PQ, "measure.end": "200ms"}),
        "AQ, 100 Gbps": (100, {"measure.end": "200ms"}),
        "AQ, 10 Gbps": (10, {"fabric.dumbbell.bottleneck_rate": "10Gbps"}),
    }
    rows = {}
    for name, (link, keys) in ways.items():
        rates = pd.Series(gbps(run("beyond-weights", name, keys)))
        weight = pd.Series({who: float(who.rpartition("-")[2]) for who in rates.index})
        shares = rates / (link * PAYLOAD * weight / weight.sum())
        found = [jain(shares), float(shares.min()), float(shares.max()), float(rates.sum())]
        rows[name] = dict(zip(["Jain's index", "least share", "greatest share", "Gbps, all"], found))
    table = pd.DataFrame(rows).T.rename_axis("way")
    index = table["Jain's index"].to_dict()
    checks = {f"{name}: Jain's index is at least 0.99": index[name] >= 0.99 for name in ways if name.startswith("AQ")}
    checks["physical queue: Jain's index is below 0.5"] = index["physical queue, 100 Gbps"] < 0.5
    return Shown(table, checks)


def round_trips() -> Shown:
    """Beyond the paper: rates in Gbps of eight entities with equal weights on a link of 10 Gbps and with round trips of
    20 us to 2 ms."""
    ways: dict[str, Keys] = {
        "newreno, physical queue": PQ,
        "dctcp, physical queue": {**PQ, "transport": "dctcp", "switch.marking": {"step": {"threshold": "100KB"}}},
        "bbr, physical queue": {**PQ, "transport": "bbr"},
        **{f"{control}, AQ": {"transport": control} for control in CONTROLS},
    }
    rows = {name: gbps(run("beyond-round-trips", name, keys), 0.3) for name, keys in ways.items()}
    table = pd.DataFrame(rows).T.rename_axis("way")
    fair = 10 / 8 * PAYLOAD
    checks = {}
    for name, rates in rows.items():
        short = [rates[trip] for trip in ("20us", "40us", "80us", "160us", "320us")]
        if name.endswith("AQ"):
            checks[f"{name}: up to 320 us each has its share within 4%"] = all(within(rate, fair) for rate in short)
        else:
            checks[f"{name}: rates differ by a factor of 20 and more"] = max(rates.values()) > 20 * min(rates.values())
    return Shown(table.assign(all=table.sum(axis=1)), checks)


def headroom() -> Shown:
    """Beyond the paper: rates of two entities and queueing delay in the physical queue, by the share of the link's rate
    that AQs leave free."""
    rows = {}
    for share in HEADROOMS:
        result = run("beyond-headroom", f"headroom {share:g}", {"sharing": {"aq": {"headroom": share}}})
        waits = result.tables["waits"].to_arrow().to_pandas()
        median = waits.loc[(waits["entity"] == "one") & (waits["queue"] == "physical"), "p50_ns"].iloc[0]
        rows[share] = {**gbps(result, 0.05), "median wait, us": float(median) / 1e3}
    table = pd.DataFrame(rows).T.rename_axis("headroom")
    waits = table["median wait, us"].to_dict()
    return Shown(table, {"2% of headroom cut the median wait to a quarter": waits[0.02] < waits[0.0] / 4})


def threshold() -> Shown:
    """Beyond the paper: the share of its AQ's rate that DCTCP gets, by its marking threshold."""
    rows = {}
    for link, rate, flows in GOVERNED:
        case = f"link {link}, AQ {rate} Gbps, flows {flows}"
        keys = {
            "transport": "dctcp",
            "fabric.dumbbell.host_rate": f"{link}Gbps",
            "fabric.dumbbell.bottleneck_rate": f"{link}Gbps",
            "entity.0.request.0.share.absolute": f"{rate}Gbps",
            "traffic.0.senders": f"0-{flows - 1}",
            "sharing.aq.limit.fixed.bytes": "1MB",
            "measure": {"end": "120ms", "interval": "10ms"},
        }
        marked = {f"{kb} KB": {"ecn": {"step": {"threshold": f"{kb}KB"}}} for kb in THRESHOLDS_KB}
        settings: dict[str, Keys] = {
            **{name: {**keys, "entity.0.feedback": feedback} for name, feedback in marked.items()},
            "derived": keys,
        }
        rows[case] = {
            name: gbps(run("beyond-least-limit", f"{case}, {name}", setting), 0.03)["A"] / (rate * PAYLOAD)
            for name, setting in settings.items()
        }
    table = pd.DataFrame(rows).T.rename_axis("case")
    return Shown(table, {"the derived threshold gives 85% and more": bool((table["derived"] >= 0.85).all())})


def dcpim() -> Shown:
    """Beyond the paper: hosts that may use 4 of their links' 10 Gbps in each direction: mean slowdown, and packets sent
    again for each packet of data, by transport and load."""
    ways: dict[str, Keys] = {
        "dcpim, physical queue": PQ,
        "dcpim, AQ": {},
        **{f"{transport}, AQ": {"transport": transport} for transport in ("dctcp", "cubic")},
    }
    rows: dict[str, dict[str, float]] = {}
    others: dict[str, list[Any]] = {}
    for name, keys in ways.items():
        rows[name] = {}
        for load in LOADS:
            result = run("beyond-dcpim", f"{name}, load {load:g}", {**keys, "traffic.0.arrivals.poisson.load": load})
            flows = result.flows.to_pandas()
            a, b = flows[flows["class"] == "a"], flows[flows["class"] == "b"]
            sent, again = float(a["sent_packets"].sum()), float(a["resent_packets"].sum())
            rows[name][f"load {load:g}, slowdown"] = float(a["slowdown"].astype(float).mean())
            rows[name][f"load {load:g}, sent again"] = again / (sent - again)
            others.setdefault(f"{name.partition(',')[0]}, {load:g}", []).append(b["fct_ps"].tolist())
    alike = all(times[0] == times[1] for case, times in others.items() if case.startswith("dcpim"))
    table = pd.DataFrame(rows).T.rename_axis("way")
    return Shown(table, {"hosts without an AQ take as long beside AQs as beside none, to the picosecond": alike})


FIGURES = {
    "weights": weights,
    "round-trips": round_trips,
    "headroom": headroom,
    "threshold": threshold,
    "dcpim": dcpim,
}
