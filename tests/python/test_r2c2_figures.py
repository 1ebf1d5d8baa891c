"""R2C2's figures: their arithmetic, and those that take a second or two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from clearway.papers.r2c2 import evaluation, rack


@pytest.fixture
def reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setattr(rack, "OUT", tmp_path)
    monkeypatch.setattr(rack, "scale", 0.02)
    monkeypatch.setattr(rack, "SEEDS", (1,))
    rack.forget()
    yield evaluation
    rack.forget()


def test_broadcasts_cost_what_sections_3_2_5_1_and_6_say(reproduce: ModuleType) -> None:
    shown = reproduce.arithmetic()
    assert all(shown.checks.values()), shown.checks
    overhead = reproduce.overhead
    # Section 3.2: 511 edges of 16 bytes.
    assert overhead.broadcast_bytes(512) == 511 * 16
    # With the paper's 8 KB and 6 hops: 2 x 8 to 60 KB, and 262 thousand broadcasts over 3,072 links.
    assert pytest.approx(0.2666, abs=1e-4) == 2 * 8 / 60
    assert pytest.approx(681e3, rel=1e-3) == 512 * 511 * 8_000 / 3_072
    # Section 6: the sender's leaf and 15 other hosts there, a spine, its 31 other leaves with 16 hosts each.
    edges = 1 + 15 + 1 + 31 + 31 * 16
    assert overhead.clos_broadcast_bytes(512, 32) == edges * 16 == 8_704


@pytest.mark.parametrize("wraps", [True, False])
@pytest.mark.parametrize("dims", [(4, 4), (3, 5), (2, 3, 4)])
def test_mean_hops_and_links_are_those_of_the_graph(reproduce: ModuleType, dims: tuple[int, ...], wraps: bool) -> None:
    nodes = list(product(*(range(length) for length in dims)))

    def apart(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        steps = [abs(x - y) for x, y in zip(a, b)]
        return sum(min(step, length - step) if wraps else step for step, length in zip(steps, dims))

    distances = [apart(a, b) for a, b in product(nodes, nodes) if a != b]
    assert reproduce.overhead.mean_hops(dims, wraps=wraps) == pytest.approx(np.mean(distances))
    assert reproduce.overhead.links(dims, wraps=wraps) == distances.count(1)


def test_a_node_s_re_order_buffer_is_that_of_the_worst_of_its_flows(reproduce: ModuleType) -> None:
    packets = reproduce.reordered("R2C2")
    [result] = reproduce.runs("R2C2").results
    receivers = result.flows.to_pandas()["dst"]
    each, node = packets["a flow's"], packets["a node's"]
    assert (len(each), len(node)) == (200, receivers.nunique())
    assert len(packets["a flow's from 100 KB"]) < len(node) < len(each)
    assert node.max() == each.max() and node.mean() > each.mean()


def test_flows_at_once_are_counted_at_their_starts(reproduce: ModuleType) -> None:
    flows = pd.DataFrame({"start_us": [0.0, 1.0, 2.0, 10.0], "fct_us": [2.0, 5.0, np.nan, 1.0]})
    # At 2 us the first has gone; the third never goes.
    assert reproduce.rack.at_once(flows) == 2
    assert reproduce.rack.at_once(flows.iloc[:2]) == 2
    assert reproduce.rack.at_once(flows.assign(fct_us=100.0)) == 4


def test_tcp_pfq_and_r2c2_carry_the_rack_s_flows(reproduce: ModuleType) -> None:
    table = reproduce.numbers()
    assert (table["unfinished"] == 0).all()
    assert (table["lost"].drop("TCP") == 0).all()
    # One path against all shortest ones.
    assert table.loc["TCP", "short p99 us"] > 1.5 * table.loc["PFQ", "short p99 us"]
    for reading in reproduce.READINGS:
        assert table.loc[reading, "short p50 us"] < 1.1 * table.loc["PFQ", "short p50 us"]


def test_what_links_carry_of_broadcasts_is_what_arithmetic_says(reproduce: ModuleType) -> None:
    measured = reproduce.broadcast_share("3D torus", "torus", (8, 8, 8), 1.0)
    hops = reproduce.overhead.mean_hops((8, 8, 8), wraps=True)
    assert measured == pytest.approx(reproduce.overhead.relative(10_000, 512, hops), rel=1e-9)


def test_every_scenario_of_the_paper_is_sound() -> None:
    for path in sorted(rack.HERE.glob("*.toml")):
        assert cw.Scenario.load(path).check()[1] > 0, path
