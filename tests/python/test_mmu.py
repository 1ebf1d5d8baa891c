"""Switches with random pools, thresholds, cells and weights: lossless where arithmetic says so."""

from __future__ import annotations

import random
from typing import Any

import clearway as cw

MTU = 1_500
# For a pause: both ways of the link, the packet that asks for it, two that have begun, the frame; 12.5 bytes per ns.
FABRICS: list[tuple[dict[str, Any], int]] = [
    ({"star": {"hosts": 6, "propagation": "200ns"}}, int(12.5 * 850) + 3 * MTU + 64),
    ({"star": {"hosts": 6, "propagation": "3us"}}, int(12.5 * 6_450) + 3 * MTU + 64),
    (
        {"leaf_spine": {"racks": 2, "hosts_per_rack": 3, "spines": 2, "host_rate": "25Gbps", "spine_rate": "100Gbps"}},
        int(12.5 * 1_300) + 3 * MTU + 64,
    ),
]


def _in_cells(count: int, cell: int | None) -> int:
    """Memory for these bytes in packets of any size."""
    if cell is None:
        return count
    return count * cell // 64 if cell > 128 else count * 2 * cell // (1 + cell)


def _traffic(draw: random.Random, number: int, label: int) -> dict[str, Any]:
    transport = draw.choice([{"rdma": {"class": label, "window": "unlimited"}}, {"udp": {"class": label}}])
    return {
        "name": f"t{number}",
        "transport": transport,
        "sizes": {"constant": draw.choice(["3KB", "200KB", "1MB"])},
        "arrivals": "all_at_once",
        "pattern": {"incast": {"degree": draw.randint(1, 4)}},
        "receivers": str(draw.randint(0, 5)),
        "flows": draw.randint(2, 8),
    }


def _counts(seed: int, share: float) -> tuple[int, int]:
    """Pauses and lossless losses of a random switch with this share of the headroom that suffices."""
    draw = random.Random(seed)
    lossless = sorted(draw.sample(range(1, 8), draw.randint(1, 4)))
    lossy = [label for label in range(8) if label not in lossless]
    fabric, headroom = draw.choice(FABRICS)
    cell = draw.choice([None, 80, 208, 256])
    limit = draw.choice([{"alpha": 2.0 ** draw.randint(-6, 3)}, {"threshold": draw.choice(["10KB", "60KB"])}])
    offset = draw.choice(["0B", "3KB", "20KB"])
    kept = int(_in_cells(headroom, cell) * share)
    mmu: dict[str, Any] = {
        "lossless": lossless,
        "pool": [
            {"name": "in", "side": "ingress", "bytes": draw.choice(["150KB", "300KB", "600KB"])},
            {"name": "out", "side": "egress", "bytes": "4MB"},
        ],
        "group": [
            {"groups": lossless, "pool": "in", "headroom": f"{kept}B", "xon_offset": offset, **limit},
            {"groups": lossy, "pool": "in", "alpha": 2.0 ** draw.randint(-6, 3)},
        ],
    }
    if cell is not None:
        mmu["cell"] = f"{cell}B"
    if draw.random() < 0.6:
        weights = [draw.randint(1, 30) for _ in range(8)]
        order = draw.sample(range(8), 8)
        mmu["schedule"] = [{"queues": order, "weights": weights, "by": draw.choice(["bytes", "packets"])}]
    labels = [draw.choice(lossless), draw.choice(lossless), draw.choice(lossy[1:] or lossless)]
    scenario = cw.Scenario.load("examples/tiny.toml").with_(
        {
            "seed": seed,
            "fabric": fabric,
            "flow_control": {"mmu": mmu},
            "switch": {"buffer": {"shared": {"bytes": "16MB"}}},
            "traffic": [_traffic(draw, number, label) for number, label in enumerate(labels)],
            "measure": {"interval": "0s", "end": "1ms"},
        }
    )
    one, two = (cw.run(scenario, threads=threads, progress=False) for threads in (1, 2))
    assert one.info["digest"] == two.info["digest"]
    counted = dict(zip(one.counters["counter"], one.counters["value"], strict=True))
    return int(counted["pfc_pauses"]), int(counted["lossless_losses"])


def test_lossless_classes_lose_nothing_with_enough_headroom_and_something_with_a_fifth() -> None:
    enough = [_counts(seed, 1.0) for seed in range(24)]
    assert sum(pauses for pauses, _ in enough) > 500
    assert all(losses == 0 for _, losses in enough), enough
    little = [_counts(seed, 0.2) for seed in range(24)]
    assert any(losses > 0 for _, losses in little)
