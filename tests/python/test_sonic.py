"""SONiC's configurations as scenarios."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from called import call
from clearway.scenarios import sonic, switch_check

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG = Path("examples/switch/config_db.json")
LOOKUP = Path("examples/switch/pg_profile_lookup.ini")


def _mmu(found: sonic.Imported) -> dict[str, Any]:
    """The tables, of a scenario that can be read."""
    cw.Scenario.from_toml(found.toml)
    mmu: dict[str, Any] = tomllib.loads(found.toml)["flow_control"]["mmu"]
    return mmu


def _changed(tmp_path: Path, **tables: Any) -> Path:
    config = json.loads(CONFIG.read_text())
    for name, table in tables.items():
        if table is None:
            del config[name]
        else:
            config[name] = config.get(name, {}) | table
    file = tmp_path / "config_db.json"
    file.write_text(json.dumps(config))
    return file


def test_every_table_is_in_the_scenario() -> None:
    found = sonic.read([CONFIG], LOOKUP)
    mmu = _mmu(found)
    assert mmu["lossless"] == [3, 4]
    pools = {pool["name"]: pool for pool in mmu["pool"]}
    assert pools["ingress_lossless_pool"] == {
        "name": "ingress_lossless_pool",
        "side": "ingress",
        "bytes": "12000000B",
        "headroom": "1600000B",
    }
    lossless, lossy = (next(of for of in mmu["group"] if group in of["groups"]) for group in (3, 0))
    assert (lossy["alpha"], len(lossless["lookup"])) == (8.0, 5)
    assert lossless["lookup"][2] == {
        "rate": "100000Mbps",
        "cable_m": 5.0,
        "reserved": "2048B",
        "headroom": "78848B",
        "xon": "0B",
        "xon_offset": "3072B",
        "alpha": 0.5,
    }
    queue = next(of for of in mmu["queue"] if 3 in of["queues"])
    assert queue["queues"] == [3, 4]
    # Yellow packets are as green ones; red ones are marked as all are, and dropped by no profile.
    green = {"min": "250000B", "max": "1000000B", "probability_max": 0.05, "drop": True}
    assert queue["ecn"] == {**green, "red": {**green, "drop": False}}
    # Strict first, the rest by weight.
    assert mmu["schedule"][0] == {"queues": [6]}
    weights = dict(zip(mmu["schedule"][1]["queues"], mmu["schedule"][1]["weights"], strict=True))
    assert weights == {7: 10, 5: 10, 4: 30, 3: 30, 2: 10, 1: 10, 0: 10}
    # Class 0, which has acknowledgements, is in the class of DSCP 48.
    assert mmu["maps"]["dscp"][0] == 48
    assert mmu["maps"]["tc_to_group"] == [0, 0, 0, 3, 4, 0, 0, 0]
    assert mmu["watchdog"] == {"detection": "200ms", "restoration": "400ms", "action": "drop"}
    assert len(found.ports) == 8


def test_what_is_not_modelled_is_named_key_by_key() -> None:
    notes = sonic.read([CONFIG], LOOKUP).notes
    assert not any("WRED_PROFILE" in note for note in notes)
    assert "PORT_QOS_MAP|*|pfcwd_sw_enable: is not modelled" in notes
    assert not any("DEVICE_METADATA" in note or "alias" in note for note in notes)


def test_a_profile_that_holds_its_xoff_leaves_the_pool_that_much_smaller(tmp_path: Path) -> None:
    profile = {"pool": "ingress_lossless_pool", "size": "60000", "xon": "20000", "xoff": "40000", "dynamic_th": "0"}
    groups = {f"Ethernet{4 * port}|3-4": {"profile": "own"} for port in range(8)}
    pools = json.loads(CONFIG.read_text())["BUFFER_POOL"]
    del pools["ingress_lossless_pool"]["xoff"]
    mmu = _mmu(sonic.read([_changed(tmp_path, BUFFER_PROFILE={"own": profile}, BUFFER_PG=groups, BUFFER_POOL=pools)]))
    assert mmu["pool"][0]["bytes"] == f"{12_000_000 - 8 * 2 * 40_000}B"
    own = next(of for of in mmu["group"] if 3 in of["groups"])
    assert (own["reserved"], own["headroom"]) == ("20000B", "40000B")


def test_each_colour_has_its_own_profile_and_a_port_its_own_rate(tmp_path: Path) -> None:
    wred = {
        "ecn": "ecn_green_red",
        "wred_yellow_enable": "true",
        **{f"green_{key}": value for key, value in (("min_threshold", "100"), ("max_threshold", "900"))},
        **{f"yellow_{key}": value for key, value in (("min_threshold", "50"), ("max_threshold", "60"))},
        "yellow_drop_probability": "100",
    }
    maps = json.loads(CONFIG.read_text())["PORT_QOS_MAP"]
    ports = {name: {**of, "scheduler": "port"} for name, of in maps.items()}
    scheduler = {"port": {"type": "STRICT", "meter_type": "bytes", "pir": "5000000000", "pbs": "8192", "cir": "1"}}
    found = sonic.read(
        [_changed(tmp_path, WRED_PROFILE={"RDMA": wred}, PORT_QOS_MAP=ports, SCHEDULER=scheduler)], LOOKUP
    )
    mmu = _mmu(found)
    ecn = next(of for of in mmu["queue"] if 3 in of["queues"])["ecn"]
    assert ecn == {
        "min": "100B",
        "max": "900B",
        "probability_max": 0.0,
        "drop": False,
        "yellow": {"min": "50B", "max": "60B", "probability_max": 1.0, "drop": True, "mark": False},
    }
    assert (mmu["max_rate"], mmu["burst"]) == ("40000000000bps", "8192B")
    assert "SCHEDULER|port|cir: is not modelled for a whole port; left out" in found.notes


def test_ports_that_differ_are_named_and_can_be_chosen(tmp_path: Path) -> None:
    file = _changed(tmp_path, QUEUE={"Ethernet0|1": {"scheduler": "lossless"}})
    found = sonic.read([file], LOOKUP)
    assert len(found.ports) == 7
    assert any("1 ports are set in another way (Ethernet0)" in note for note in found.notes)
    schedule = _mmu(sonic.read([file], LOOKUP, ["Ethernet0"]))["schedule"][1]
    assert schedule["weights"][schedule["queues"].index(1)] == 30


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress"}}}, "BUFFER_POOL|ingress_lossless_pool|size"),
        ({"BUFFER_POOL": {"ingress_lossless_pool": {"type": "in"}}}, "BUFFER_POOL|ingress_lossless_pool|type"),
        ({"BUFFER_PROFILE": {"in_lossy": {"pool": "none", "size": "0"}}}, "BUFFER_PROFILE|in_lossy|pool"),
        ({"BUFFER_PROFILE": {"in_lossy": {"size": "x", "pool": "p"}}}, "BUFFER_PROFILE|in_lossy"),
        ({"WRED_PROFILE": None}, "WRED_PROFILE|RDMA"),
        ({"SCHEDULER": {"rest": {"type": "FAIR"}}}, "SCHEDULER|rest|type"),
        ({"SCHEDULER": {"rest": {"type": "DWRR", "weight": "0"}}}, "SCHEDULER|rest|weight"),
        ({"TC_TO_QUEUE_MAP": {"DC": {"0": "zero"}}}, "TC_TO_QUEUE_MAP|DC|0"),
        ({"CABLE_LENGTH": {"AZURE": {"Ethernet8": "long"}}}, "CABLE_LENGTH|*|Ethernet8"),
        ({"QUEUE": {"Ethernet0|a-b": {}}}, "QUEUE|Ethernet0|a-b"),
        (
            {"BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "size": "6000000000"}}},
            "BUFFER_POOL|ingress_lossless_pool|size",
        ),
    ],
)
def test_an_error_names_the_key(tmp_path: Path, tables: dict[str, Any], key: str) -> None:
    with pytest.raises(sonic.SonicError, match=key.replace("|", r"\|").replace("*", r"\*")):
        sonic.read([_changed(tmp_path, **tables)], LOOKUP)


def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path) -> None:
    for text, words in (("[1]", "table of tables"), ("{", "not JSON"), ("[" * 100_000, "not JSON")):
        file = tmp_path / "config_db.json"
        file.write_text(text)
        with pytest.raises(sonic.SonicError, match=words):
            sonic.read([file])
    lookup = tmp_path / "lookup.ini"
    lookup.write_text("100000 5m 1 2\n")
    with pytest.raises(sonic.SonicError, match=r"lookup.ini:1"):
        sonic.read([CONFIG], lookup)


def _doubts(found: sonic.Imported) -> list[str]:
    checked = switch_check.check(cw.Scenario.from_toml(found.toml))
    return [f"{finding.key}: {finding.said}" for finding in checked if not finding.fine]


def test_arithmetic_finds_what_is_wrong(tmp_path: Path) -> None:
    # Strict queue 6 goes before the lossless ones; all else is right.
    said = _doubts(sonic.read([CONFIG], LOOKUP))
    assert len(said) == 2 and all("queues [6] go first" in line for line in said)

    pools = json.loads(CONFIG.read_text())["BUFFER_POOL"]
    pools["ingress_lossless_pool"]["xoff"] = str(8 * 78_848)
    said = _doubts(sonic.read([_changed(tmp_path, BUFFER_POOL=pools)], LOOKUP))
    assert any("it holds 50% of them" in line for line in said)

    # 2 km of cable at 100 Gbps have 252,525 bytes in both directions; the longest row has 116,736.
    cables = {"AZURE": {f"Ethernet{4 * port}": "2000m" for port in range(8)}}
    said = _doubts(sonic.read([_changed(tmp_path, CABLE_LENGTH=cables)], LOOKUP))
    assert any("headroom 116,736 B" in line and "are lost" in line for line in said)

    # Marks from 5 MB on: a group alone pauses at a third of 12 MB less what is reserved.
    wred = {"RDMA": {"ecn": "ecn_all", "green_min_threshold": "5000000", "green_max_threshold": "6000000"}}
    said = _doubts(sonic.read([_changed(tmp_path, WRED_PROFILE=wred)], LOOKUP))
    assert any("pauses come first" in line for line in said)


def test_the_commands_write_and_check(tmp_path: Path) -> None:
    out = tmp_path / "switch.toml"
    said = call("import", "sonic", CONFIG, "--lookup", LOOKUP, "-o", out)
    assert said.code == 0 and "PFC_WD|*|POLL_INTERVAL" in said.out, said.err
    by_scenario, by_config = (call("switch", "check", file) for file in (out, CONFIG))
    assert by_scenario.code == by_config.code == 0, by_scenario.err + by_config.err
    assert "doubt queue 3" in by_scenario.out and "doubt queue 3" in by_config.out
    refused = call("import", "sonic", CONFIG, "--size", "x", "-o", out)
    assert refused.code == 2 and "--size x" in refused.err
