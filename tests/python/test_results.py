from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import clearway as cw
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

PARTS = ["wait_ps", "queued_up_ps", "queued_down_ps", "queued_last_ps", "serialised_ps", "propagation_ps", "return_ps"]


def test_parts_of_a_flows_time_sum_to_its_completion_time(result: cw.Result) -> None:
    flows = result.flows.to_pandas()
    assert len(flows) == 200
    assert (flows[PARTS].sum(axis=1) == flows["fct_ps"]).all()
    assert np.allclose(flows["slowdown"], flows["fct_ps"].astype(float) / flows["ideal_ps"].astype(float))


def test_threads_change_nothing(scenario: cw.Scenario, result: cw.Result) -> None:
    two = cw.run(scenario, threads=2)
    assert two.digest == result.digest
    assert two.flows.to_arrow().equals(result.flows.to_arrow())
    assert cw.run(scenario.with_(seed=2)).digest != result.digest


def test_a_result_comes_back_from_its_folder(result: cw.Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "r")
    again = cw.load(folder)
    assert sorted(again.tables) == sorted(result.tables)
    for name, table in result._tables.items():
        # As frames: in Arrow a NaN is unequal to itself.
        assert again.tables[name].to_arrow().to_pandas().equals(table.to_pandas()), name
        assert again._tables[name].schema.types == table.schema.types, name
        for field in again._tables[name].schema:
            assert field.metadata == table.schema.field(field.name).metadata
    assert (again.name, again.info, again.scenario_toml) == (result.name, result.info, result.scenario_toml)
    assert again.digest == result.digest


def test_run_json_has_what_the_documentation_says(result: cw.Result, tmp_path: Path) -> None:
    info = json.loads((result.save(tmp_path / "r") / "run.json").read_text())
    page = Path("docs/results.md").read_text()
    assert {key for key in info if f"| `{key}` |" not in page} == set()
    assert info["cpu_seconds"] > 0 and info["peak_memory_bytes"] > 1_000_000 and info["packet_hops"] > 0


def test_files_are_readable_without_us(result: cw.Result, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    folder = result.save(tmp_path / "r")
    total = int(result.flows["bytes"].sum())
    assert int(pq.read_table(folder / "flows.parquet")["bytes"].to_numpy().sum()) == total
    assert int(pd.read_parquet(folder / "flows.parquet")["bytes"].sum()) == total
    assert int(polars.read_parquet(folder / "flows.parquet")["bytes"].sum()) == total
    assert result.flows.to_polars().height == result.flows.to_pandas().shape[0] == len(result.flows)


def test_saving_again_replaces_a_result_and_nothing_else(result: cw.Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "r")
    result.save(folder)
    assert os.listdir(tmp_path) == ["r"]
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="mine"):
        result.save(other)
    assert os.listdir(other) == ["thesis.txt"]


def test_what_is_no_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the result"):
        cw.load(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="not the result"):
        cw.load(tmp_path)


def test_slowdown_by_size_counts_every_flow_once(result: cw.Result) -> None:
    flows = result.flows
    for by in ("size", "class", "transport"):
        assert result.slowdown(by=by)["flows"].sum() == len(flows)
    one = result.slowdown(by="size", bins=[10_000]).iloc[0]
    small = flows["slowdown"][flows["bytes"] <= 10_000]
    assert one["flows"] == len(small)
    assert one["mean"] == pytest.approx(small.mean())
    assert one["p99"] == pytest.approx(np.quantile(small, 0.99))
    with pytest.raises(ValueError, match="by='colour'"):
        result.slowdown(by="colour")


def test_goodput_is_bytes_over_time(result: cw.Result) -> None:
    flows = result.flows
    span = flows["delivered_ps"].max() - flows["start_ps"].min()
    assert result.goodput() == pytest.approx(flows["bytes"].sum() * 8 / (span * 1e-12))


def test_totals_do_not_depend_on_how_many_rows_are_kept(tmp_path: Path) -> None:
    text = (
        'transport = "dctcp"\nswitch.buffer.per_port = { bytes = "10KB" }\n[fabric.star]\nhosts = 9\n'
        '[measure]\ninterval = "0s"\n[[job]]\nname = "train"\nranks_per_host = 2\niterations = 2\n'
        'steps = [{ compute = "5us" }, { all_to_all = { bytes = "2MB" } }]\n'
    )
    whole = cw.Scenario.from_toml(text)
    every, few = (cw.run(whole.with_({"measure.rows_max": rows})) for rows in (10_000, 40))
    assert len(few.flows) == 40 < len(every.flows) and few.digest == every.digest
    few.save(tmp_path / "few")
    for result in (few, cw.load(tmp_path / "few")):
        assert result.goodput() == pytest.approx(every.goodput(), rel=1e-12)
        assert result.resent == every.resent > 0
    estimated = [cw.run(whole.with_({"measure.rows_max": rows}), level="flow").goodput() for rows in (10_000, 40)]
    assert estimated[0] == pytest.approx(estimated[1], rel=1e-12)


def test_an_unknown_table_is_an_attribute_error(result: cw.Result) -> None:
    with pytest.raises(AttributeError, match="flows, links"):
        result.flow  # noqa: B018


def test_progress_is_told_and_its_errors_end_the_run() -> None:
    scenario = cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_(transport="udp")
    seen: list[cw.Progress] = []
    result = cw.run(scenario.with_({"traffic.0.flows": 600}), progress=seen.append)
    assert result.ok
    assert all(a.now_ps <= b.now_ps and a.flows_done <= b.flows_done for a, b in itertools.pairwise(seen))

    def fail(_: cw.Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        cw.run(scenario, progress=fail)


def test_docs_say_of_each_column_what_the_engine_says(result: cw.Result) -> None:
    """The engine's own words are the only source; `python tests/python/column_docs.py` writes them into the page."""
    from column_docs import BEGIN_CODE, END_CODE, between_marks, code, tables

    assert between_marks(Path("docs/results.md").read_text()) == tables()
    assert between_marks(Path("python/clearway/results/tables.py").read_text(), BEGIN_CODE, END_CODE) == code()


def test_rates_of_entities_are_what_arrived_over_time() -> None:
    scenario = cw.Scenario.from_toml(TWO_ENTITIES)
    result = cw.run(scenario)
    rates = result.entity_rates()
    assert list(rates.columns) == ["sends", "receives"] and len(rates) == 4
    # The last interval is half as long: 3.5 intervals of 100 us.
    assert rates.index.to_numpy() == pytest.approx([100e-6, 200e-6, 300e-6, 350e-6])
    lengths = np.diff(rates.index, prepend=0.0)
    delivered = result.entities.to_pandas().groupby("entity", observed=True)["delivered_bytes"].sum()
    assert (rates["sends"] * lengths).sum() / 8 == pytest.approx(delivered["sends"])
    assert (result.entity_rates(received=True)["receives"] * lengths).sum() / 8 == pytest.approx(delivered["sends"])
    # A link of 10 Gbps, of which 1,460 of 1,500 bytes are payload.
    assert rates["sends"].iloc[2] == pytest.approx(10e9 * 1460 / 1500, rel=0.02)


def test_what_aqs_drop_is_dropped() -> None:
    # 10 Gbps of UDP into 1 Gbps with 10 KB of limit: in 350 us 9 of 10 packets of some 290 are too much, less the
    # limit.
    request = {"share": {"absolute": "1Gbps"}, "position": "ingress"}
    limited: dict[str, Any] = {
        "sharing": {"aq": {"limit": {"fixed": {"bytes": "10KB"}}}},
        "entity.0.request": [request],
    }
    result = cw.run(cw.Scenario.from_toml(TWO_ENTITIES).with_(limited))
    assert result.links["overflow_packets"].sum() == 0
    assert result.dropped == pytest.approx(290 * 0.9 - 10_000 / 1500, rel=0.03)


def test_without_entities_there_are_no_rates_of_them(result: cw.Result) -> None:
    with pytest.raises(ValueError, match="has no entities"):
        result.entity_rates()


TWO_ENTITIES = """
timing = "ideal"
transport = "udp"
measure = { end = "350us", interval = "100us" }

[fabric.star]
hosts = 2
rate = "10Gbps"

[[entity]]
name = "sends"
hosts = "0"

[[entity]]
name = "receives"
hosts = "1"

[[traffic]]
sizes = { constant = "10MB" }
arrivals = "all_at_once"
senders = "0"
"""


def test_counters_of_one_scheme_with_different_settings_can_be_read() -> None:
    text = "fabric.star.hosts = 4\n"
    for name, rto in (("fast", "1ms"), ("slow", "2ms")):
        text += (
            f'[[traffic]]\nname = "{name}"\ntransport.newreno.rto_min = "{rto}"\nsizes.constant = "20KB"\n'
            'arrivals = "all_at_once"\n'
        )
        text += "pattern.stride.by = 1\n"
    result = cw.run(cw.Scenario.from_toml(text), threads=1, progress=False)
    counters = result.tables["counters"].to_arrow().to_pandas()
    assert (counters.loc[counters["counter"] == "acks", "transport"] == "newreno").sum() == 2
    assert (result.flows.to_pandas()["transport"] == "newreno").all()
