from __future__ import annotations

import pickle
from pathlib import Path

import clearway as cw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def test_with_sets_keys_by_name_and_by_path(scenario: cw.Scenario) -> None:
    changed = scenario.with_({"fabric.leaf_spine.racks": 3}, load=0.25, seed=9, transport={"dcpim": {"rounds": 3}})
    values = changed.to_dict()
    assert values["fabric"]["leaf_spine"]["racks"] == 3
    assert values["traffic"][0]["arrivals"]["poisson"]["load"] == 0.25
    assert (values["seed"], values["transport"]["dcpim"]["rounds"]) == (9, 3)
    assert changed.check() == (12, 200)
    assert scenario.to_dict()["seed"] == 1, "the scenario itself is never changed"


def test_what_is_written_back_is_the_same_scenario(scenario: cw.Scenario) -> None:
    again = cw.Scenario.from_toml(scenario.to_toml())
    assert again.to_toml() == scenario.to_toml()
    assert cw.run(again).digest == cw.run(scenario).digest


def test_errors_tell_place_key_and_remedy() -> None:
    with pytest.raises(cw.ScenarioError) as caught:
        cw.Scenario.from_toml('transport = "udp"\n[fabric.star]\nhots = 3\n', name="a.toml")
    error = caught.value
    assert (error.file, error.line, error.key) == ("a.toml", 3, "fabric.star.hots")
    assert 'did you mean "hosts"' in error.message
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_only_a_run_finds_out_has_a_line_too(scenario: cw.Scenario) -> None:
    text = scenario.to_toml().replace("load = 0.5", "load = -0.5")
    line = 1 + text.split("\n").index("load = -0.5")
    with pytest.raises(cw.ScenarioError) as caught:
        cw.run(cw.Scenario.from_toml(text, name="b.toml"))
    assert (caught.value.file, caught.value.line) == ("b.toml", line)


def test_load_of_what_has_none_is_an_error() -> None:
    at_once = cw.Scenario.load("examples/tiny.toml")
    with pytest.raises(ValueError, match="load"):
        at_once.with_(load=0.5)


def test_files_are_looked_up_in_the_scenarios_folder(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("src,dst,size_bytes,start_us\n0,1,1000,0\n2,3,5000,1.5\n")
    (tmp_path / "t.toml").write_text(
        'transport = "udp"\n[fabric.star]\nhosts = 4\n[[traffic]]\ntrace = { csv = { path = "flows.csv" } }\n'
    )
    result = cw.run(cw.Scenario.load(tmp_path / "t.toml"))
    assert result.flows["bytes"].tolist() == [1000, 5000]
    assert result.flows["start_ps"].tolist() == [0, 1_500_000]


def test_flows_of_a_result_are_sent_again(result: cw.Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "first")
    text = """
transport = "dcpim"
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 2
[[traffic]]
name = "web"
trace = { parquet = { path = "flows.parquet", class = "web" } }
"""
    again = cw.run(cw.Scenario.from_toml(text, folder=folder), threads=1)
    for column in ("src", "dst", "bytes", "start_ps"):
        assert again.flows[column].tolist() == result.flows[column].tolist(), column
    with pytest.raises(cw.ScenarioError, match="columns with one src"):
        cw.Scenario.from_toml(text.replace("flows.parquet", "links.parquet"), folder=folder)


def test_a_flipped_bit_in_a_trace_is_found_by_its_checksum(tmp_path: Path) -> None:
    table = pa.table({"src": [0, 1], "dst": [2, 3], "size_bytes": [12_345, 2_000], "start_ps": [5, 7]})
    path = tmp_path / "flows.parquet"
    pq.write_table(
        table, path, compression="none", use_dictionary=False, write_statistics=False, write_page_checksum=True
    )
    text = """
transport = "dcpim"
[fabric.star]
hosts = 4
[[traffic]]
trace = { parquet = { path = "flows.parquet" } }
"""
    assert cw.Scenario.from_toml(text, folder=tmp_path).check() == (4, 2)
    content = bytearray(path.read_bytes())
    content[content.index((12_345).to_bytes(8, "little"))] ^= 1
    path.write_bytes(content)
    with pytest.raises(cw.ScenarioError, match=r"flows\.parquet"):
        cw.Scenario.from_toml(text, folder=tmp_path).check()


def test_the_schema_knows_every_key_of_a_scenario(scenario: cw.Scenario) -> None:
    assert set(scenario.to_dict()) <= set(cw.schema()["properties"])


SWEEPS = [Path("examples/sweep.toml")]


@pytest.mark.parametrize(
    "path",
    sorted(set(Path("examples").glob("*.toml")).difference(SWEEPS))
    + sorted(Path("python/clearway/papers").rglob("*.toml")),
)
def test_every_scenario_in_the_tree_is_sound(path: Path) -> None:
    hosts, flows = cw.Scenario.load(path).check()
    assert hosts > 0 and flows > 0


@pytest.mark.parametrize("path", SWEEPS)
def test_every_sweep_in_the_tree_is_sound(path: Path) -> None:
    cw.Sweep.load(path).check()


def test_an_earlier_name_of_a_key_works_and_is_a_line_of_advice(tmp_path: Path) -> None:
    tiny = cw.Scenario.load("examples/tiny.toml")
    named = tiny.with_({"transport": {"dcqcn": {"control": {"rate_min": "50Mbps"}}}})
    for earlier in (
        tiny.with_({"transport.dcqcn.control.min_rate": "50Mbps"}),
        cw.Scenario.from_toml(Path("examples/tiny.toml").read_text()).with_(
            transport={"dcqcn": {"control": {"min_rate": "50Mbps"}}}
        ),
    ):
        assert earlier.to_dict()["transport"] == named.to_dict()["transport"]
        said = [line for line in earlier.forecast(probe_seconds=0).warnings if "rate_min" in line]
        assert len(said) == 1 and "min_rate: is called rate_min" in said[0]
    assert not [line for line in named.forecast(probe_seconds=0).warnings if "rate_min" in line]
    file = tmp_path / "t.toml"
    file.write_text(
        "transport.timely.control.min_rate = '1Gbps'\nfabric.star.hosts = 2\n"
        "[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\n"
    )
    assert "transport.timely.control.min_rate: is called rate_min" in " ".join(cw.run(file).info["warnings"])


def test_values_of_numpy_and_paths_are_values_of_a_scenario() -> None:
    tiny = cw.Scenario.load("examples/tiny.toml")
    assert tiny.with_(seed=np.int64(3)).to_toml() == tiny.with_(seed=3).to_toml()
    assert tiny.with_({"switch.levels": np.array([[1, 2]])}).to_toml().count("levels") == 1
    module = Path("examples/wasm/dctcp-c.wasm").resolve()
    assert str(module) in tiny.with_(transport={"custom": {"module": module, "ecn": "proportional"}}).to_toml()


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (cw.Control, r"Control is a class, and a scenario takes an object of it: Control\(\)"),
        (object(), "no value of a scenario"),
    ],
)
def test_what_is_no_value_of_a_scenario_is_refused_with_advice(value: object, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        cw.Scenario.load("examples/tiny.toml").with_(transport=value)
