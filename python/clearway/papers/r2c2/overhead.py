"""The cost of R2C2's control traffic by arithmetic: sections 3.2, 5.1, 5.2 and 6."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

# Section 4.2.
BROADCAST_BYTES = 16
# Section 5.1.
SMALL_BYTES, LONG_BYTES = 10_000, 35_000_000


def mean_hops(dims: Sequence[int], *, wraps: bool) -> float:
    """Links on a shortest path in a torus, or a mesh, over all pairs of different nodes."""
    nodes = prod(dims)
    total = 0.0
    for length in dims:
        steps = [abs(a - b) for a in range(length) for b in range(length)]
        total += sum(min(step, length - step) if wraps else step for step in steps) / length**2
    return total * nodes / (nodes - 1)


def hops_between(dims: Sequence[int], one: int, other: int) -> int:
    """Links on a shortest path between two nodes of a torus, numbered with the last dimension fastest."""
    hops = 0
    for length in reversed(dims):
        step = abs(one % length - other % length)
        hops += min(step, length - step)
        one, other = one // length, other // length
    return hops


def links(dims: Sequence[int], *, wraps: bool) -> int:
    """Directed links between nodes; a ring of two is one cable."""
    nodes = prod(dims)
    return sum(2 * (nodes if wraps and length > 2 else nodes // length * (length - 1)) for length in dims)


def broadcast_bytes(nodes: int) -> int:
    """On the wire for one event: a tree over all nodes."""
    return (nodes - 1) * BROADCAST_BYTES


def all_pairs_bytes(dims: Sequence[int]) -> float:
    """A link's share of the broadcasts of one flow between each pair of nodes of a torus."""
    nodes = prod(dims)
    return nodes * (nodes - 1) * broadcast_bytes(nodes) / links(dims, wraps=True)


def clos_broadcast_bytes(hosts: int, ports: int) -> int:
    """The same in a two-level folded Clos of switches with the given number of ports, half of a leaf's to hosts. The
    tree has
    each host's link, and one link of each leaf to the spine that it goes by."""
    leaves = hosts // (ports // 2)
    return (hosts + leaves) * BROADCAST_BYTES


def relative(flow_bytes: float, nodes: int, hops: float) -> float:
    """Broadcasts of a flow's start and finish, to what the flow itself makes links carry, headers not counted."""
    return 2 * broadcast_bytes(nodes) / (flow_bytes * hops)


def relative_of_mix(small_share: float, nodes: int, hops: float) -> float:
    """The same where so large a share of the bytes is in small flows, the rest in long ones (Figure 9)."""
    return small_share * relative(SMALL_BYTES, nodes, hops) + (1 - small_share) * relative(LONG_BYTES, nodes, hops)


def rate_message_bytes(flows: int) -> int:
    """Of the centralised design to a node with so many flows. The paper does not give its format: 12 B of a
    broadcast's fields that it needs, and 4 B a flow, as much as its demand has in a broadcast."""
    return 12 + 4 * flows


def centralised_bytes(flows_per_node: int, nodes: int, hops: float) -> float:
    """On the wire for one event: one message to the controller, and its answer to every node that sources a flow."""
    sources = nodes if flows_per_node else 1
    return hops * (BROADCAST_BYTES + sources * rate_message_bytes(max(flows_per_node, 1)))
