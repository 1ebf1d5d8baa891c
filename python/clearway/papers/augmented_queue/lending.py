"""Questions beyond the paper's evaluation, on limits and on shares that other entities leave: sparse tenants, traffic
without an AQ, several hops, Swift at low rates."""

from __future__ import annotations

from typing import Any

import pandas as pd

from clearway.papers.figures import Keys, Shown, cell

from . import evaluation
from .beyond import PAYLOAD
from .evaluation import gbps, run

# A limit of four packets at least, as section 6's division alone would have it.
LIMITS: dict[str, Any] = {
    "default": {},
    "queue": {"limit": "queue"},
    "divided, 6 KB at least": {"limit": {"divided": {"min": "6KB"}}},
}
LENDING: dict[str, Any] = {
    "none": {"idle_after": "0s"},
    "default": {},
    "reallocate": {"work_conserving": {"reallocate": {"period": "1ms", "headroom": 0.1}}},
}
MESSAGES_KB = (60, 100)
LONG = "long"


def tenants(kb: int, aq: Keys) -> dict[str, Any]:
    """Keys of fifteen tenants that send a message each 4 ms on average, beside one with an endless flow of CUBIC, all
    of weight 1 on 10 Gbps. The last message comes before 120 ms."""
    names = [LONG, *(f"sparse {n}" for n in range(15))]
    request = [{"share": {"weight": 1}, "link": ["left", "right"], "position": "ingress"}]
    short = {"sizes": {"constant": f"{kb}KB"}, "arrivals": {"poisson": {"every": "4ms"}}, "flows": 20}
    endless = {"sizes": {"constant": "10GB"}, "arrivals": "all_at_once"}
    return {
        "sharing": {"aq": dict(aq)},
        "entity": [{"name": name, "traffic": [name], "request": request} for name in names],
        "traffic": [
            {
                "name": name,
                "transport": "cubic",
                "senders": str(host),
                "pattern": {"stride": {"by": 20}},
                **(short if host else endless),
            }
            for host, name in enumerate(names)
        ],
        "fabric.dumbbell.hosts_per_side": 20,
        "measure": {"end": "160ms", "interval": "10ms"},
    }


def sparse_row(kb: int, limit: str, lending: str) -> dict[str, float]:
    """Gbps of the endless flow while all tenants send, times of the messages in us, and packets sent again."""
    aq = {**LIMITS[limit], **LENDING[lending]}
    result = run("figure-8", f"sparse {kb} KB, {limit}, {lending}", tenants(kb, aq))
    flows = result.flows.to_pandas()
    flows = flows[flows["class"] != LONG]
    assert flows["fct_ps"].notna().all(), f"{result.name}: not all messages were delivered"
    times = flows["fct_ps"].astype(float) / 1e6
    rates = result.entity_rates()[LONG] / 1e9
    return {
        "endless flow, Gbps": float(rates[(rates.index > 0.02) & (rates.index < 0.0601)].mean()),
        "p50, us": float(times.median()),
        "p99, us": float(times.quantile(0.99)),
        "sent again": float(flows["resent_packets"].sum()),
    }


def sparse() -> Shown:
    """Beyond the paper: times of messages of fifteen sparse tenants beside an endless flow, by the limit of AQs and by
    how shares are lent."""
    rows = {
        (kb, limit, lending): sparse_row(kb, limit, lending)
        for kb in MESSAGES_KB
        for limit in LIMITS
        for lending in LENDING
    }
    table = pd.DataFrame(rows).T.rename_axis(["KB", "limit", "lending"])
    alone, lent = (cell(table, (60, "default", lending), "p50, us") for lending in ("none", "reallocate"))
    checks = {
        f"messages of 60 KB: reallocation leaves the median within a quarter: {lent:.0f} and {alone:.0f} us": lent
        < 1.25 * alone
    }
    for kb in MESSAGES_KB:
        off = [
            cell(table, (kb, "default", lending), "p50, us") / cell(table, (kb, "queue", lending), "p50, us") - 1
            for lending in LENDING
        ]
        said = ", ".join(f"{one:+.1%}" for one in off)
        checks[f"messages of {kb} KB: the default limit has the median of the whole queue's, within 5%: {said}"] = (
            max(map(abs, off)) < 0.05
        )
    low, queue = (cell(table, (100, limit, "none"), "p50, us") for limit in ("divided, 6 KB at least", "queue"))
    checks[f"messages longer than a divided limit: {low:.0f} us for {queue:.0f}, three times and more"] = (
        low > 3 * queue
    )
    return Shown(table, checks)


def untagged() -> Shown:
    """Beyond the paper: rates in Gbps of four flows that have 5 of 10 Gbps granted and of six flows without an AQ, with
    and without an AQ for untagged traffic."""
    endless = {"sizes": {"constant": "100GB"}, "pattern": {"stride": {"by": 10}}, "arrivals": "all_at_once"}
    request = [{"share": {"absolute": "5Gbps"}, "link": ["left", "right"], "position": "ingress"}]
    scene = {
        "transport": "cubic",
        "host": {"mtu": "1538B", "header": "90B"},
        "switch.buffer": {"per_port": {"bytes": "1MB"}},
        "entity": [{"name": "granted", "traffic": ["granted"], "request": request}],
        "traffic": [{"name": "granted", "senders": "0-3", **endless}, {"name": "other", "senders": "4-9", **endless}],
        "measure": {"end": "150ms", "interval": "10ms"},
    }
    rows = {}
    for name, aq in (("without", {}), ("with", {"untagged": {"weight": 1}})):
        result = run("beyond-least-limit", f"{name} an AQ for untagged packets", {**scene, "sharing": {"aq": aq}})
        links = result.links.to_pandas()
        through = links[(links["from_node"] == "left") & (links["to_node"] == "right")]["sent_bytes"].iloc[0]
        rows[name] = {"granted": gbps(result, 0.05)["granted"], "the link": float(through) * 8 / 0.15 / 1e9}
    table = pd.DataFrame(rows).T.rename_axis("an AQ for untagged traffic")
    # Of the bytes on the wire with these headers, those that are payload.
    share = 5 * evaluation.PAYLOAD
    kept, voided = (cell(table, name, "granted") for name in ("with", "without"))
    return Shown(
        table,
        {
            f"with it the granted rate is had, within 2%: {kept:.2f} of {share:.2f} Gbps": abs(kept / share - 1) < 0.02,
            f"without it more than 4% is missing: {voided:.2f} Gbps": voided < 0.96 * share,
        },
    )


def several_hops() -> Shown:
    """Beyond the paper: an entity with AQs of 8, 2, 4 and 8 Gbps on its path through a fat-tree, and two VMs that may
    send and receive 5 Gbps each."""
    result = run("beyond-fat-tree", "all", {})
    # A packet that is alone in all AQs: 12,000 bits at each of the rates.
    alone = {"traffic.0.transport": {"udp": {"rate": "100Mbps"}}, "measure.end": "10ms"}
    waits = run("beyond-fat-tree", "alone", alone).tables["waits"].to_arrow().to_pandas()
    wait = waits.loc[(waits["entity"] == "path") & (waits["queue"] == "virtual"), "p50_ns"].iloc[0]
    received = result.entity_rates(received=True)["vm"]
    # Acknowledgements of the other direction take 40 of 1,500 bytes.
    vms = 2 * 5 * PAYLOAD * (1 - 40 / 1500)
    rows = [
        ("four AQs on a path, Gbps", gbps(result, 0.02)["path"], 2 * PAYLOAD, 0.03),
        ("two VMs send, Gbps", gbps(result, 0.02)["vm"], vms, 0.03),
        ("two VMs receive, Gbps", float(received[received.index > 0.02 + 1e-9].mean()) / 1e9, vms, 0.03),
        ("virtual delay of a packet alone, us", float(wait) / 1e3, 1.5 + 6 + 3 + 1.5, 0.001),
    ]
    table = pd.DataFrame(rows, columns=["what", "ours", "by arithmetic", "allowed"]).set_index("what")
    within = (table["ours"] / table["by arithmetic"] - 1).abs() <= table["allowed"]
    return Shown(table, {f"{what}: as by arithmetic": bool(ok) for what, ok in within.items()})


RATES_MBPS = (2, 4, 10, 20, 60, 198)
FLOWS = (1, 4, 10)


def low_rates() -> Shown:
    """Beyond the paper: the share of its AQ's rate that Swift gets alone on a link of 10 Gbps, by rate and number of
    flows."""
    rows: dict[int, dict[str, float]] = {}
    for flows in FLOWS:
        rows[flows] = {}
        for rate in RATES_MBPS:
            keys = {
                "transport": "swift",
                "sharing": "aq",
                "entity.0.request.0.share.absolute": f"{rate}Mbps",
                "traffic.0.senders": f"0-{flows - 1}",
                "measure": {"end": "2s", "interval": "200ms"},
            }
            result = run("beyond-least-limit", f"swift, {flows} flows at {rate} Mbps", keys)
            rows[flows][f"{rate} Mbps"] = gbps(result, 0.2)["A"] * 1e3 / (rate * PAYLOAD)
    table = pd.DataFrame(rows).T.rename_axis("flows")
    return Shown(table, {"each gets 95% and more of its rate": bool((table >= 0.95).all(axis=None))})


FIGURES = {
    "sparse": sparse,
    "untagged": untagged,
    "several-hops": several_hops,
    "low-rates": low_rates,
}
