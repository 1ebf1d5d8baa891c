from __future__ import annotations

from typing import Any

import clearway as cw
import pytest
from clearway import r2c2

SQUARE = {"torus": {"dims": [4, 4]}}
RING = {"torus": {"dims": [8]}}


def test_weights_add_up_to_the_hops_of_a_packet() -> None:
    for routing, hops in {"rps": 4.0, "destination_tag": 4.0, "vlb": 4.0, "wlb": 4.0}.items():
        # From a corner to the opposite one, and over a waypoint on average 2 hops from each.
        assert r2c2.link_weights(0, 10, routing, fabric=SQUARE)["weight"].sum() == pytest.approx(hops)
    near = {"rps": 1.0, "destination_tag": 1.0, "vlb": 4.0, "wlb": 0.75 * 1 + 0.25 * 3}
    for routing, hops in near.items():
        assert r2c2.link_weights(0, 1, routing, fabric=SQUARE)["weight"].sum() == pytest.approx(hops)


def test_between_hosts_of_one_switch_no_link_is_passed() -> None:
    fabric = {"torus": {"dims": [4], "hosts_per_node": 2}}
    assert r2c2.link_weights(0, 1, fabric=fabric).empty
    assert r2c2.rates([r2c2.Flow(0, 1, demand_gbps=3)], fabric=fabric) == [3]


def test_links_of_hosts_limit_flows_too() -> None:
    slow_hosts = {"torus": {"dims": [4], "host_rate": "6Gbps"}}
    assert r2c2.rates([(0, 1), (2, 1), (3, 2)], fabric=slow_hosts, headroom=0) == [3, 3, 6]
    assert r2c2.select_routing([(0, 1)], fabric=slow_hosts, headroom=0).gbps == pytest.approx(6)


def test_rates_share_a_link_by_weight_priority_and_demand() -> None:
    line = {"mesh": {"dims": [2], "hosts_per_node": 3}}

    def rates(*flows: r2c2.Flow) -> Any:
        return pytest.approx(r2c2.rates(flows, fabric=line, headroom=0.1))

    assert rates(r2c2.Flow(0, 3), r2c2.Flow(1, 4, weight=2)) == [3, 6]
    assert rates(r2c2.Flow(0, 3), r2c2.Flow(1, 4, priority=1)) == [9, 0]
    assert rates(r2c2.Flow(0, 3, demand_gbps=1), r2c2.Flow(1, 4)) == [1, 8]


def test_given_links_are_filled_as_those_of_a_fabric() -> None:
    pairs = [(0, 5), (1, 5), (4, 2), (10, 0)]
    links: dict[tuple[str, str], float] = {}
    flows = []
    for src, dst in pairs:
        weights = r2c2.link_weights(src, dst, "wlb", fabric=SQUARE)
        flows.append({(row["from_node"], row["to_node"]): row["weight"] for _, row in weights.iterrows()})
        links |= dict.fromkeys(flows[-1], 10.0)
    on_fabric = r2c2.rates([(*pair, "wlb") for pair in pairs], fabric=SQUARE, headroom=0)
    assert r2c2.water_filling(links, flows) == pytest.approx(on_fabric)


def test_a_search_is_never_worse_than_one_protocol_for_all() -> None:
    pairs = [(node, (node + 3) % 8) for node in range(8)]  # tornado
    found = r2c2.select_routing(pairs, ["rps", "vlb", "wlb"], fabric=RING, headroom=0)
    for routing in ("rps", "vlb", "wlb"):
        alone = sum(r2c2.rates([(*pair, routing) for pair in pairs], fabric=RING, headroom=0))
        assert found.gbps >= alone * (1 - 1e-6)
    chosen = [(*pair, routing) for pair, routing in zip(pairs, found.routings)]
    assert sum(r2c2.rates(chosen, fabric=RING, headroom=0)) == pytest.approx(found.gbps)


def test_a_search_starts_from_what_flows_have_and_is_a_function_of_its_seed() -> None:
    def search(seed: int) -> r2c2.Selection:
        return r2c2.select_routing([(0, 3), (1, 6)], current=["vlb", "rps"], fabric=RING, headroom=0, seed=seed)

    before = sum(r2c2.rates([(0, 3, "vlb"), (1, 6, "rps")], fabric=RING, headroom=0))
    assert search(1) == search(1)
    assert search(1).before_gbps == pytest.approx(before)


def test_utilities_are_of_flows_and_of_tenants() -> None:
    pairs = [(0, 1), (0, 2), (4, 5)]

    def found(utility: Any) -> float:
        return r2c2.select_routing(pairs, ["rps"], utility=utility, fabric=RING, headroom=0).gbps

    assert found("aggregate") == pytest.approx(20)
    assert found({"tail": {"percentile": 0}}) == pytest.approx(5)
    assert found({"tenants": {"hosts": [[0], [4]]}}) == pytest.approx(10)


def test_recomputations_are_of_flows_that_lasted() -> None:
    scenario = cw.Scenario.from_toml("""
    timing = "ideal"
    transport = "udp"
    fabric.torus.dims = [3, 3]
    [[traffic]]
    sizes = { constant = "100KB" }
    arrivals = { poisson = { every = "10us" } }
    flows = 100
    """)
    times = r2c2.recompute_times(scenario, [20, 500], step_us=1)
    every = times[times["rho_us"] == 20]["at_us"].diff().dropna()
    assert every.tolist() == pytest.approx([20] * len(every))
    # 100 KB over at most four links of 10 Gbps take at least 20 us.
    assert times[times["rho_us"] == 20]["flows"].max() > 0
    assert (times["took_us"] >= 0).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: r2c2.throughput(algorithms=["ecmp"]), "algorithm 'ecmp' is not one of rps, .*romm"),
        (lambda: r2c2.throughput(patterns=["incast"]), "pattern 'incast' is not one of nearest_neighbor"),
        (lambda: r2c2.throughput({"leaf_spine": {}}), "torus or a mesh"),
        (lambda: r2c2.throughput({"torus": {"dims": [4, 5]}}, patterns=["transpose"]), "the same length"),
        (lambda: r2c2.link_weights(0, 16, fabric=SQUARE), "no host 16: 16 hosts"),
        (lambda: r2c2.link_weights(0, 1, "wlb", fabric={"mesh": {"dims": [4]}}), "needs a torus"),
        (lambda: r2c2.link_weights(0, 1, fabric={"torus": {"dims": [1]}}), r"fabric.torus.dims\[0\]: "),
        (lambda: r2c2.link_weights(0, 1, fabric={"torus": {"dim": [4]}}), "fabric: unknown field `dim`"),
        (lambda: r2c2.rates([(0, 1), (0, 99)], fabric=SQUARE), r"flows\[1\]: there is no host 99"),
        (lambda: r2c2.rates([(0, 1)], fabric=SQUARE, headroom=1), "headroom=1"),
        (lambda: r2c2.water_filling({"a": 1}, [{"b": 1}]), r"flows\[0\]: there is no link 'b'"),
        (
            lambda: r2c2.select_routing([(0, 1)], current=["wlb"], fabric=SQUARE),
            "'wlb' is not one of the routings rps, vlb",
        ),
        (lambda: r2c2.select_routing([(0, 1)], fabric=SQUARE, elite=100), "settings.elite: is 100"),
        (lambda: r2c2.select_routing([(0, 1)], fabric=SQUARE, size=3), "settings: unknown field `size`"),
        (lambda: r2c2.select_routing([(0, 1)], fabric=SQUARE, utility="fame"), "utility: unknown variant `fame`"),
        (
            lambda: r2c2.select_routing([(0, 1)], fabric=SQUARE, utility={"tenants": {"hosts": [[16]]}}),
            r"utility.tenants.hosts\[0\]\[0\]: is host 16",
        ),
    ],
)
def test_what_can_not_be_computed_is_refused(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_no_flow_and_one_protocol_are_no_trouble() -> None:
    assert r2c2.select_routing([], fabric=SQUARE).routings == []
    assert r2c2.select_routing([(0, 1)], ["vlb"], fabric=SQUARE).routings == ["vlb"]
    assert r2c2.rates([], fabric=SQUARE) == []
    assert r2c2.water_filling({}, [{}], demands_gbps=[2]) == [2]
