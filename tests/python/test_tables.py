"""Tables as other libraries read them, and how they join; many results as one frame."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, get_args

import clearway as cw
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from clearway.results.tables import TABLES

ASKED: dict[str, Any] = {
    "measure.interval": "1us",
    "measure.arrivals": ["host0"],
    "measure.packets": {},
    "measure.flows": {},
    "measure.events": ["link_control"],
    "measure.ports": ["switch0:0"],
    "flow_control": "pfc",
    "transport": "rdma",
    "job": [{"steps": [{"all_reduce": {"bytes": "8KB"}}]}],
}
IDS = {"flow", "link", "root_link", "src", "dst", "host", "rank", "to_rank"}
NAMED = {"src": "source", "dst": "destination", "host": "host_name", "link": "from_node"}


@pytest.fixture(scope="module")
def result() -> cw.Result:
    return cw.run(cw.Scenario.load("examples/tiny.toml").with_(ASKED), progress=False)


def test_other_libraries_take_a_table_as_it_is(result: cw.Result) -> None:
    flows = result.flows
    arrow = pa.table(flows)
    assert arrow.equals(flows.to_arrow()) and arrow.schema.field("bytes").metadata[b"unit"] == b"B"
    assert pl.DataFrame(flows).select("flow", "bytes", "source").rows() == [
        (row["flow"], row["bytes"], row["source"]) for row in flows
    ]
    frame = pd.DataFrame(flows)
    assert frame.columns.tolist() == flows.columns and frame["bytes"].tolist() == flows["bytes"].tolist()
    packets = result.packets
    joined = duckdb.sql("SELECT count(*), sum(f.bytes) FROM packets JOIN flows f USING (flow)").fetchall()
    number = np.isin(packets["flow"], flows["flow"])
    assert joined[0][0] == number.sum() > 0


def test_tables_by_name_are_those_by_attribute(result: cw.Result) -> None:
    assert set(result.tables) == set(result.__dir__()) & set(TABLES)
    for name, table in result.tables.items():
        assert isinstance(table, cw.Table) and table.to_arrow() is getattr(result, name).to_arrow()
    again = cw.Result("again", result.tables, result.info, result.scenario_toml)
    assert again.flows.to_arrow() is result.flows.to_arrow()


def test_rows_slices_and_lists_of_columns_work_and_others_say_what_does(result: cw.Result) -> None:
    flows = result.flows
    assert [row["flow"] for row in flows[2:5]] == [2, 3, 4] == flows["flow"][2:5].tolist()
    assert flows[::-3]["flow"].tolist() == flows["flow"][::-3].tolist()
    assert flows[-1] == list(flows)[-1] and flows[np.int64(1)]["flow"] == 1
    assert flows[["bytes", "flow"]].columns == ["bytes", "flow"] and "bytes" in flows and "byte" not in flows
    with pytest.raises(IndexError, match=rf"no row 999; the table has {len(flows)}"):
        flows[999]
    with pytest.raises(KeyError, match="no column 'byte'; the columns are flow"):
        flows[["flow", "byte"]]
    with pytest.raises(TypeError, match=r"a table has columns by name.*to_pandas\(\)"):
        flows[1.5]  # type: ignore[call-overload]
    with pytest.raises(KeyError, match="the column 'from' is called 'from_node'"):
        result.links["from"]


def test_no_column_is_a_reserved_word_of_sql() -> None:
    rows = duckdb.sql("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'").fetchall()
    reserved = {str(row[0]) for row in rows}
    assert "from" in reserved and "offset" in reserved
    assert {(name, column) for name, columns in TABLES.items() for column in columns if column in reserved} == set()


def test_numbers_of_things_have_one_type_and_names_beside_them(result: cw.Result) -> None:
    for name, table in result.tables.items():
        schema = table.to_arrow().schema
        for column in IDS & set(table.columns):
            assert schema.field(column).type == pa.uint32(), (name, column)
            if column in NAMED and name not in ("packets", "events"):
                assert NAMED[column] in table.columns, (name, column)
    names = dict(zip(result.flows["src"], result.flows["source"]))
    hosts = {int(row["host"]): row["host_name"] for row in result.arrivals}
    assert hosts == {0: "host0"} and names[0] == "host0"
    ends = {row["link"]: (row["from_node"], row["to_node"]) for row in result.links}
    for table in (result.ports, result.congestion):
        assert all(ends[row["link"]] == (row["from_node"], row["to_node"]) for row in table)
    # polars joins equal types alone.
    joined = (
        pl.DataFrame(result.packets)
        .join(pl.DataFrame(result.flows), on="flow")
        .join(pl.DataFrame(result.links), on="link")
    )
    assert len(joined) > 0


def test_what_a_level_does_not_know_is_null_where_runs_stand_together(tmp_path: Path) -> None:
    tiny = cw.Scenario.load("examples/tiny.toml")
    cw.run(tiny, progress=False).save(tmp_path / "packet")
    cw.run(tiny, level="flow", progress=False).save(tmp_path / "flow")
    scan = cw.scan(tmp_path)
    assert sorted(scan.runs["level"]) == ["flow", "packet"]
    sent = scan.flows.select("run", "sent_packets").collect()
    assert sent["sent_packets"].null_count() == sum(1 for _ in range(len(sent) // 2))
    assert len(scan.where(level="flow").flows.collect()) == len(sent) // 2


def test_many_results_are_one_frame_with_their_settings(tmp_path: Path) -> None:
    tiny = cw.Scenario.load("examples/tiny.toml")
    varied = {"transport": [{"dcpim": {"rounds": 3}}, {"dcpim": {"rounds": 4}}, "dctcp"], "fabric.star.hosts": [4, 8]}
    cw.sweep(tiny, varied, tmp_path / "s", progress=False)
    scan = cw.scan(tmp_path)
    assert len(scan) == 6 and {"transport", "rounds", "hosts"} <= set(scan.settings)
    runs = scan.runs
    assert runs["hosts"].to_list().count(8) == 3 and runs.filter(transport="dctcp")["rounds"].to_list() == [None, None]
    assert runs["hosts"].dtype == pl.Int64 and runs["rounds"].dtype == pl.Int64
    counted = scan.flows.group_by("run", "hosts").len().collect()
    assert sorted(zip(counted["hosts"], counted["len"])) == [(4, 4)] * 3 + [(8, 8)] * 3
    # Only what is asked for is read.
    assert "PROJECT 1/" in scan.links.select("rate_bps").explain()
    three = scan.where(rounds=3, hosts=8)
    assert [result.info["hosts"] for result in three.results()] == [8]
    table = scan.where(hosts=4).comparison().table()
    assert len(table) == 3 and (table["unfinished"] == 0).all()
    assert "dctcp" in scan.where(hosts=4).report(tmp_path / "page.html").read_text()
    frame = scan.flows.collect()  # noqa: F841
    assert duckdb.sql("SELECT count(DISTINCT run) FROM frame").fetchall() == [(6,)]
    by_glob = cw.scan(str(tmp_path / "s" / "store" / "runs" / "*"))
    assert len(by_glob) == 6
    with pytest.raises(KeyError, match="runs do not differ in 'loadd', but in transport"):
        scan.where(loadd=0.5)
    with pytest.raises(KeyError, match="no run has a table 'packets'"):
        scan["packets"]
    with pytest.raises(cw.Error, match="no result of a run is there"):
        cw.scan(tmp_path / "nothing")
    place = Path(str(runs["folder"][0]))
    (place / "run.json").write_text("{}")
    with pytest.raises(cw.ResultError, match=r"is damaged: run\.json"):
        cw.scan(tmp_path)


def test_scenarios_are_equal_and_pickled_by_what_they_say(tmp_path: Path) -> None:
    tiny = cw.Scenario.load("examples/tiny.toml")
    assert tiny == cw.Scenario.load("examples/tiny.toml") and len({tiny, tiny.with_(seed=1), tiny.with_(seed=2)}) == 2
    assert tiny != "tiny" and tiny.with_(seed=2) != tiny
    (tmp_path / "t.csv").write_text("start_ps,src,dst,bytes\n0,0,1,1000\n")
    (tmp_path / "s.toml").write_text(
        'transport = "udp"\nfabric.star.hosts = 2\n[[traffic]]\ntrace.csv.path = "t.csv"\n'
    )
    traced = cw.Scenario.load(tmp_path / "s.toml").with_({"fabric.star.rate": "10Gbps"})
    again = pickle.loads(pickle.dumps(traced))
    assert again == traced and again.name == traced.name and cw.run(again).digest == cw.run(traced).digest

    class Mine(cw.Control):
        """A control of one's own."""

    with pytest.raises(TypeError, match="can't be pickled; pickle it without"):
        pickle.dumps(tiny.with_(transport=Mine()))


def test_old_names_say_the_new_one_and_errors_have_one_base() -> None:
    with pytest.raises(AttributeError, match=r"clearway\.Estimate is called clearway\.Forecast"):
        cw.Estimate  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"estimate\(\) is called forecast\(\)"):
        cw.Scenario.load("examples/tiny.toml").estimate()
    for error in (cw.ScenarioError, cw.ResultError, cw.Undelivered, cw.Rejected, cw.MazeOver, cw.RpcError):
        assert issubclass(error, cw.Error)
    assert set(get_args(cw.Level)) == {"packet", "flow", "links"}
