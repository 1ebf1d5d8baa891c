"""Which scheme is compared with which law."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from clearway.papers.figures import Held, Shown

from . import links, rdma, setting, sharing, tcp, transports

HERE = Path(__file__).parent


def _shown(found: list[Held]) -> Shown:
    parts = [one.rows.assign(scheme=one.scheme, error=one.error) for one in found]
    return Shown(pd.concat(parts).set_index(["scheme", "bucket", "statistic"]), held=found)


def all_transports() -> Shown:
    """Every transport: one packet alone, one message alone, eight messages over one link, and one packet from each of
    16 hosts."""
    return _shown([transports.transport(name) for name in setting.names("transport")])


def loss() -> Shown:
    """Windows under random loss: NewReno, CUBIC in both of its regions, Illinois, BBR."""
    return _shown([tcp.newreno(), tcp.cubic_lossy(), tcp.cubic_friendly(), tcp.illinois(), tcp.bbr()])


def congestion() -> Shown:
    """Queues and rates in steady state: DCTCP's sawtooth, Swift's target, DCQCN's fluid model, TIMELY's recovery,
    HPCC's utilisation."""
    return _shown([tcp.dctcp(), tcp.swift(), rdma.dcqcn(), rdma.timely(), rdma.hpcc()])


def flow_control() -> Shown:
    """Flow control between neighbours: PFC's threshold and headroom, shares of per-flow queues, BFC's threshold, CBFC's
    credits, which flows are not held back."""
    return _shown(
        [
            links.pfc(),
            links.per_flow_queues(),
            links.bfc(),
            links.bfc_full(),
            links.cbfc(),
            links.congestion_isolation(),
        ]
    )


def shares() -> Shown:
    """Sharing: UDP on an overloaded link, token buckets, guarantees, weighted shares."""
    return _shown([sharing.udp(), sharing.rate_limiter(), sharing.elastic_switch(), sharing.aq()])
