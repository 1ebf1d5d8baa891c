"""The figures of the Augmented Queue paper, on a short row of its Table 2."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import clearway as cw
import pytest
from clearway.papers.augmented_queue import evaluation

PAPER = evaluation.HERE


@pytest.fixture
def reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(evaluation, "OUT", tmp_path)
    return evaluation


def test_a_row_of_table_2(reproduce: ModuleType) -> None:
    pair = (5, "cubic"), (5, "dctcp")
    share = 10 * reproduce.PAYLOAD / 2
    assert reproduce.two_by_two(*pair, reproduce.AQ) == pytest.approx([share, share], rel=0.04)
    cubic, dctcp = reproduce.two_by_two(*pair, reproduce.PQ)
    assert dctcp >= 5 * cubic


def test_what_has_run_is_not_run_again(reproduce: ModuleType, tmp_path: Path) -> None:
    keys = {**reproduce.AQ, "measure.end": "20ms", "measure.interval": "5ms"}
    first = reproduce.run("figure-8", "short", keys)
    [run] = tmp_path.glob("runs/*/run.json")
    written = run.stat().st_mtime_ns
    assert reproduce.run("figure-8", "short", keys).digest == first.digest
    assert run.stat().st_mtime_ns == written


def test_every_scenario_of_the_paper_is_sound() -> None:
    for path in sorted(PAPER.glob("*.toml")):
        assert cw.Scenario.load(path).check()[1] > 0, path


def sparse_tenants(work_conserving: object) -> tuple[float, float]:
    """Fifteen tenants with 60 KB each 4 ms in the mean, beside one with a flow without end, all of weight 1 on 10 Gbps:
    the median of their flows' times in us, and the other's Gbps."""
    names = ["long", *(f"sparse {n}" for n in range(15))]
    request = [{"share": {"weight": 1}, "link": ["left", "right"], "position": "ingress"}]
    short = {"sizes": {"constant": "60KB"}, "arrivals": {"poisson": {"every": "4ms"}}, "flows": 20}
    traffic = [
        {
            "name": name,
            "transport": "cubic",
            "senders": str(host),
            "pattern": {"stride": {"by": 20}},
            **(short if host else {"sizes": {"constant": "10GB"}, "arrivals": "all_at_once"}),
        }
        for host, name in enumerate(names)
    ]
    keys = {
        "sharing": {"aq": {"work_conserving": work_conserving} if work_conserving else {"idle_after": "0s"}},
        "entity": [{"name": name, "traffic": [name], "request": request} for name in names],
        "traffic": traffic,
        "fabric.dumbbell.hosts_per_side": 20,
        "measure": {"end": "80ms", "interval": "10ms"},
    }
    result = cw.run(cw.Scenario.load(PAPER / "figure-8.toml").with_(keys), threads=1, progress=False)
    flows = result.flows.to_pandas()
    rates = result.entity_rates()["long"] / 1e9
    return float(flows.loc[flows["class"] != "long", "fct_ps"].median()) / 1e6, float(rates[rates.index > 0.02].mean())


def test_reallocation_leaves_sparse_tenants_their_latency_and_lends_what_they_leave() -> None:
    alone, guaranteed = sparse_tenants(None)
    lent, rate = sparse_tenants({"reallocate": {"period": "1ms", "headroom": 0.1}})
    # A sixteenth of 10 Gbps is guaranteed, and the fifteen use 1.8 with headers. Rates below guarantees made it 1,434
    # us and 0.0 Gbps.
    assert guaranteed == pytest.approx(0.59, rel=0.02) and rate > 5
    assert lent < 1.25 * alone
