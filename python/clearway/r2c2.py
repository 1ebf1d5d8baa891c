"""The computations of R2C2 (SIGCOMM 2015): the load that each routing protocol puts on links, the resulting rates, and
the selection of protocols.

A fabric is given as in a scenario: `{"torus": {"dims": [8, 8]}}`. The default is the paper's rack, a torus of 8 x 8 x 8
nodes.

    >>> from clearway import r2c2
    >>> r2c2.rates([(0, 1), (0, 2)], fabric={"mesh": {"dims": [3]}}, headroom=0.05)  # both leave node 0 by one link
    [4.75, 4.75]
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from clearway import _core
from clearway.programs import outside
from clearway.scenarios.scenario import Scenario

__all__ = [
    "Flow",
    "Selection",
    "link_weights",
    "rates",
    "recompute_times",
    "select_routing",
    "start_times",
    "throughput",
    "water_filling",
]

Link = TypeVar("Link", bound=Hashable)
Fabric = Mapping[str, Any]

RACK: Fabric = {"torus": {}}
ROUTINGS = ("rps", "destination_tag", "vlb", "wlb")
PATTERNS = ("nearest_neighbor", "uniform", "bit_complement", "transpose", "tornado", "worst_case")


@dataclass(frozen=True)
class Flow:
    """A flow between two hosts, and the parameters of its rate (section 3.3.2)."""

    src: int
    dst: int
    routing: str = "rps"
    weight: float = 1.0
    """Its allocation weight."""
    priority: int = 0
    """Smaller goes first."""
    demand_gbps: float = math.inf
    """The most that its host can send."""


def throughput(
    fabric: Fabric | None = None, algorithms: Sequence[str] = ROUTINGS, patterns: Sequence[str] = PATTERNS
) -> pd.DataFrame:
    """Figure 2: the throughput of routing algorithms for traffic patterns, as a fraction of capacity. The default
    `fabric` is a torus of 8 x 8 nodes.

    Capacity is what uniform traffic reaches with balanced minimal routing. Besides the protocols that flows can have,
    `algorithms` may be `romm` and `fixed_ties`. The pattern `worst_case` is the permutation with the least throughput
    of an algorithm.

    >>> throughput(algorithms=["vlb", "wlb"], patterns=["uniform", "tornado"]).round(2)
             vlb   wlb
    pattern
    uniform  0.5  0.76
    tornado  0.5  0.53
    """
    spec = json.dumps(fabric or {"torus": {"dims": [8, 8]}})
    columns = {
        algorithm: [
            _core.r2c2_throughput(spec, algorithm, None if pattern == "worst_case" else pattern) for pattern in patterns
        ]
        for algorithm in algorithms
    }
    return pd.DataFrame(columns, index=pd.Index(patterns, name="pattern"))


def link_weights(src: int, dst: int, routing: str = "rps", *, fabric: Fabric = RACK) -> pd.DataFrame:
    """The links between switches that packets from one host to another cross, with the expected number of crossings.

    >>> link_weights(0, 3, fabric={"mesh": {"dims": [2, 2]}})  # Figure 3
      from_node  to_node  weight
    0   switch0  switch1     0.5
    1   switch0  switch2     0.5
    2   switch1  switch3     0.5
    3   switch2  switch3     0.5
    """
    weights = _core.r2c2_link_weights(json.dumps(fabric), routing, src, dst)
    return pd.DataFrame(weights, columns=["from_node", "to_node", "weight"])


def water_filling(
    capacities_gbps: Mapping[Link, float],
    flows: Sequence[Mapping[Link, float]],
    *,
    weights: Sequence[float] | None = None,
    priorities: Sequence[int] | None = None,
    demands_gbps: Sequence[float] | None = None,
) -> list[float]:
    """Weighted max-min fair rates in Gbps (sections 3.3.1 and 3.3.2). Flows are given as the share of their packets on
    each link.

    >>> capacity = {"1-4": 1, "1-3": 1, "2-3": 1, "3-4": 1}  # Figure 4
    >>> f1, f2 = {"1-4": 0.5, "1-3": 0.5, "3-4": 0.5}, {"2-3": 1, "3-4": 1}
    >>> [round(rate, 3) for rate in water_filling(capacity, [f1, f2])]
    [0.667, 0.667]
    >>> water_filling(capacity, [{"1-4": 1}, f2])  # f1's routing adapted
    [1.0, 1.0]
    """
    number = {link: index for index, link in enumerate(capacities_gbps)}
    for index, flow in enumerate(flows):
        for link in flow:
            if link not in number:
                raise ValueError(f"flows[{index}]: there is no link {link!r}")
    terms = zip(
        flows,
        weights if weights is not None else [1.0] * len(flows),
        priorities if priorities is not None else [0] * len(flows),
        demands_gbps if demands_gbps is not None else [math.inf] * len(flows),
        strict=True,
    )
    numbered = [
        ([(number[link], share) for link, share in flow.items()], weight, priority, demand)
        for flow, weight, priority, demand in terms
    ]
    return _core.r2c2_water_filling(list(capacities_gbps.values()), numbered)


def rates(
    flows: Sequence[Flow | tuple[int, int] | tuple[int, int, str]], *, fabric: Fabric = RACK, headroom: float = 0.05
) -> list[float]:
    """The rates of flows between hosts in Gbps. A share of each link is left free as headroom.

    Links of hosts limit flows too. In the paper's rack they are as fast as all other links of a node together.

    >>> pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> rates(pairs, fabric={"torus": {"dims": [4]}}, headroom=0)
    [10.0, 10.0, 10.0, 10.0]
    >>> rates([(src, dst, "vlb") for src, dst in pairs], fabric={"torus": {"dims": [4]}}, headroom=0)
    [10.0, 10.0, 10.0, 10.0]
    """
    full = [flow if isinstance(flow, Flow) else Flow(*flow) for flow in flows]
    plain = [(flow.src, flow.dst, flow.routing, flow.weight, flow.priority, flow.demand_gbps) for flow in full]
    return _core.r2c2_rates(json.dumps(fabric), headroom, plain)


@dataclass(frozen=True)
class Selection:
    """The result of a search for flows' routing protocols."""

    routings: list[str]
    """Each flow's protocol."""
    gbps: float
    """The utility under them."""
    before_gbps: float
    """The utility under the flows' protocols before."""
    generations: int
    evaluations: int
    """Assignments of which the rates were computed."""


def select_routing(
    pairs: Sequence[tuple[int, int]],
    routings: Sequence[str] = ("rps", "vlb"),
    *,
    current: Sequence[str] | None = None,
    utility: str | Mapping[str, Any] = "aggregate",
    fabric: Fabric = RACK,
    headroom: float = 0.05,
    seed: int = 1,
    **settings: float,
) -> Selection:
    """Section 3.4: the protocol of each flow, found by the genetic algorithm, that maximises a utility of the rack.

    `utility` is `aggregate`, `{"tail": {"percentile": 1}}`, or `{"tenants": {"hosts": [[0, 1], [2, 3]]}}`, the least
    throughput of a tenant. Flows have `current` protocols, or all the first of `routings`; the result is never worse.
    `settings` are `population`, `mutation`, `elite`, `patience` and `evaluations`.

    >>> found = select_routing([(0, 1), (8, 9)], fabric={"torus": {"dims": [4, 4]}}, headroom=0)
    >>> found.routings, found.before_gbps, found.gbps > 35
    (['vlb', 'vlb'], 20.0, True)
    """
    current = current if current is not None else [routings[0]] * len(pairs)
    unknown = [routing for routing in current if routing not in routings]
    if unknown:
        raise ValueError(f"current: {unknown[0]!r} is not one of the routings {', '.join(routings)}")
    found, gbps, before_gbps, generations, evaluations = _core.r2c2_select(
        json.dumps(fabric),
        headroom,
        list(pairs),
        list(routings),
        bytes(list(routings).index(routing) for routing in current),
        json.dumps(utility),
        json.dumps(settings),
        seed,
    )
    return Selection([routings[index] for index in found], gbps, before_gbps, generations, evaluations)


def recompute_times(
    scenario: Scenario,
    rhos_us: Sequence[float],
    *,
    routing: str = "rps",
    headroom: float = 0.05,
    step_us: float = 10.0,
) -> pd.DataFrame:
    """Figure 8: the time that a core of this machine takes whenever a node has to compute the rates of a scenario's
    flows.

    Each node computes every `rho` for the flows that have lasted longer than that. The ends of flows follow from fair
    rates, which are updated every `step_us`.

    >>> import clearway as cw
    >>> arrivals = {"traffic.0.arrivals": {"poisson": {"every": "9us"}}, "traffic.0.flows": 50}
    >>> ring = cw.Scenario.load("examples/tiny.toml").with_({"fabric": {"torus": {"dims": [8]}}, **arrivals})
    >>> times = recompute_times(ring, [20, 50], step_us=1)
    >>> times.groupby("rho_us")["overhead"].median() < 1
    rho_us
    20    True
    50    True
    Name: overhead, dtype: bool
    """
    rhos_ps = [round(rho_us * 1e6) for rho_us in rhos_us]
    taken, _ = _core.r2c2_recompute_times(
        outside.native(scenario._core, "R2C2's times"), routing, headroom, rhos_ps, round(step_us * 1e6), 0
    )
    rows = [(rho_us, at / 1e6, flows, took / 1e3) for rho_us, of in zip(rhos_us, taken) for at, flows, took in of]
    times = pd.DataFrame(rows, columns=["rho_us", "at_us", "flows", "took_us"])
    times["overhead"] = times["took_us"] / times["rho_us"]
    return times


def start_times(
    scenario: Scenario, *, routing: str = "rps", headroom: float = 0.05, step_us: float = 10.0, each: int = 1
) -> pd.DataFrame:
    """The computations that `recompute_times` leaves out: if a flow begins with its fair rate (section 3.1), its node
    computes the rates of all present flows at its start. A row for every `each`-th flow.

    >>> import clearway as cw
    >>> arrivals = {"traffic.0.arrivals": {"poisson": {"every": "9us"}}, "traffic.0.flows": 50}
    >>> ring = cw.Scenario.load("examples/tiny.toml").with_({"fabric": {"torus": {"dims": [8]}}, **arrivals})
    >>> len(start_times(ring, step_us=1)), list(start_times(ring, step_us=1, each=25).columns)
    (50, ['host', 'at_us', 'flows', 'took_us'])
    """
    _, taken = _core.r2c2_recompute_times(
        outside.native(scenario._core, "R2C2's times"), routing, headroom, [], round(step_us * 1e6), max(each, 1)
    )
    rows = [(host, at / 1e6, flows, took / 1e3) for host, at, flows, took in taken]
    return pd.DataFrame(rows, columns=["host", "at_us", "flows", "took_us"])
