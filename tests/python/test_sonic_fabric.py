"""Fabrics of switches that SONiC configures, and SONiC's tables of headroom beside the formula."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from called import call
from clearway.scenarios import sonic, sonic_fabric, sonic_tables, switch_check

CONFIG = json.loads(Path("examples/switch/config_db.json").read_text())
LOOKUP = Path("examples/switch/pg_profile_lookup.ini")


def _switch(links: dict[str, tuple[str, str]], **tables: Any) -> dict[str, Any]:
    neighbours = {port: {"name": name, "port": there} for port, (name, there) in links.items()}
    return CONFIG | {"DEVICE_NEIGHBOR": neighbours} | tables


def _pools(size: int) -> dict[str, Any]:
    pools = json.loads(json.dumps(CONFIG["BUFFER_POOL"]))
    pools["ingress_lossless_pool"]["size"] = str(size)
    return {"BUFFER_POOL": pools}


def _fabric(tmp_path: Path, **changed: Any) -> list[str]:
    """Two leaves with two servers each below one spine with a smaller pool, as NAME=FILE."""
    configs = {
        "rack-a": _switch(
            {
                "Ethernet0": ("spine.1", "Ethernet0"),
                "Ethernet8": ("server1", "eth0"),
                "Ethernet12": ("server2", "eth0"),
            }
        ),
        "rack-b": _switch(
            {
                "Ethernet0": ("spine.1", "Ethernet4"),
                "Ethernet8": ("server3", "eth0"),
                "Ethernet12": ("server4", "eth0"),
            }
        ),
        "spine.1": _switch(
            {"Ethernet0": ("rack-a", "Ethernet0"), "Ethernet4": ("rack-b", "Ethernet0")}, **_pools(6_000_000)
        ),
    }
    configs |= changed
    for name, config in configs.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    return [f"{name}={tmp_path / name}.json" for name in configs]


def test_a_fabric_has_the_switches_links_and_names_of_its_configurations(tmp_path: Path) -> None:
    out = tmp_path / "fabric.toml"
    said = call("import", "sonic", *_fabric(tmp_path), "--lookup", LOOKUP, "-o", out)
    assert said.code == 0, said.err
    graph = (tmp_path / "fabric.txt").read_text()
    # 40 m there, 5 m here, at 198,000 km/s; ports at both ends.
    assert "link rack-a spine.1 100000Mbps 202ns  # Ethernet0 Ethernet0" in graph
    assert "link rack-b server3 100000Mbps 25ns  # Ethernet8 eth0" in graph
    assert graph.count("\nlink ") == 6
    scenario = cw.Scenario.load(out)
    hosts, _ = scenario.check()
    assert hosts == 4
    roles = {tuple(role["switches"]): role for role in scenario.to_dict()["flow_control"]["mmu"]["role"]}
    assert set(roles) == {("rack-a", "rack-b"), ("spine.1",)}
    pools = {names: role["pool"][0]["bytes"] for names, role in roles.items()}
    assert pools == {("rack-a", "rack-b"): "12MB", ("spine.1",): "6MB"}
    ports = cw._core.headroom(scenario._core)  # type: ignore[attr-defined]
    shared = {port["switch"]: port["shared_bytes"] for port in ports}
    assert shared["rack-a"] > 11_000_000 and shared["spine.1"] < 6_000_000
    # The row of the table for 40 m at the spine, for 5 m at servers.
    given = {(port["switch"], port["neighbour"]): port["headroom"] for port in ports}
    assert given["spine.1", "rack-a"] == 84_992 and given["rack-a", "server1"] == 78_848
    result = cw.run(scenario.with_({"traffic.incast.sizes.constant": "100KB"}), progress=False)
    assert result.ok and result.unfinished == 0


def test_lldp_says_which_ports_are_linked(tmp_path: Path) -> None:
    bare = {name: _switch({}) for name in ("rack-a", "rack-b", "spine.1")}
    files = _fabric(tmp_path, **bare)
    entry = {"lldp_rem_sys_name": "spine.1", "lldp_rem_port_id": "Ethernet0"}
    (tmp_path / "a.json").write_text(
        json.dumps(
            {
                "LLDP_ENTRY_TABLE:Ethernet0": {"value": entry},
                "LLDP_ENTRY_TABLE": {"Ethernet8": {**entry, "lldp_rem_sys_name": "server1"}},
            }
        )
    )
    server = {"Ethernet8": {"chassis": {"server2": {}}, "port": {"id": {"value": "eth0"}}}}
    interface = {"Ethernet0": {"chassis": {"spine.1": {}}, "port": {"id": {"value": "Ethernet4"}}}}
    (tmp_path / "b.json").write_text(
        json.dumps({"lldp": {"interface": [interface, server, {"eth0": {"chassis": {"oob": {}}}}]}})
    )
    out = tmp_path / "fabric.toml"
    lldp = [f"rack-a={tmp_path}/a.json", f"rack-b={tmp_path}/b.json"]
    said = call("import", "sonic", *files, *lldp, "-o", out)
    assert said.code == 0, said.err
    graph = (tmp_path / "fabric.txt").read_text()
    assert "# Ethernet0 Ethernet4" in graph and "host server1" in graph and "oob" not in graph


def test_roles_by_asterisk_stand_on_a_topology(tmp_path: Path) -> None:
    leaf, spine = tmp_path / "leaf.json", tmp_path / "spine.json"
    leaf.write_text(json.dumps(CONFIG))
    spine.write_text(json.dumps(CONFIG | _pools(6_000_000)))
    topology = tmp_path / "two.txt"
    topology.write_text(
        "switch leaf0\nswitch leaf1\nswitch spine0\nhost a b\nlink a leaf0 100Gbps 25ns\nlink b leaf1 100Gbps 25ns\n"
        "link leaf0 spine0 100Gbps 200ns\nlink leaf1 spine0 100Gbps 200ns\n"
    )
    out = tmp_path / "roles.toml"
    files = [f"leaf*={leaf}", f"spine*={spine}"]
    said = call("import", "sonic", *files, "--lookup", LOOKUP, "--topology", topology, "-o", out)
    assert said.code == 0, said.err
    roles = cw.Scenario.load(out).to_dict()["flow_control"]["mmu"]["role"]
    assert [role["switches"] for role in roles] == [["leaf0", "leaf1"], ["spine0"]]
    assert any(finding.key.startswith("spine0: ") for finding in switch_check.check(cw.Scenario.load(out)))
    missing = call("import", "sonic", f"leaf*={leaf}", "--topology", topology, "-o", out)
    assert missing.code == 2 and "spine0: " in missing.err and "give spine0=FILE" in missing.err


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"spine.1": _switch({"Ethernet0": ("rack-b", "Ethernet0")})}, "which says that it is linked to"),
        (
            {"rack-b": _switch({"Ethernet0": ("spine.1", "Ethernet4")}, PORT={"Ethernet0": {"speed": "25000"}})},
            "rack-b|Ethernet0 25000 Mbps",
        ),
        ({"rack-b": _switch({"Ethernet0": ("spine.1", "Ethernet4")}, BUFFER_POOL={})}, "rack-b: BUFFER_PROFILE|"),
        ({"rack-b": _switch({"Ethernet0": ("spine.1", "Ethernet4"), "Ethernet8": ("a b", "x")})}, "'a b': is no name"),
        (
            {
                "rack-b": _switch(
                    {"Ethernet0": ("core1", "Ethernet4")}, DEVICE_NEIGHBOR_METADATA={"core1": {"type": "SpineRouter"}}
                )
            },
            "core1: rack-b says that it is a SpineRouter",
        ),
        ({"other": _switch({})}, "other: no switch has this name"),
        ({"rack*": _switch({"Ethernet0": ("spine.1", "Ethernet0")})}, "rack*: its tables say which ports are linked"),
        ({"rack-b": _switch({"Ethernet3": ("server9", "eth0")})}, "PORT|Ethernet3|speed: is not there"),
        (
            {"rack-b": _switch({}, LLDP_ENTRY_TABLE={"Ethernet0": {"lldp_rem_port_id": "x"}})},
            "rack-b: LLDP_ENTRY_TABLE|Ethernet0|lldp_rem_sys_name: is not there",
        ),
        (
            {name: _switch({}) for name in ("rack-a", "rack-b", "spine.1")},
            "no configuration says which ports are linked",
        ),
    ],
)
def test_what_is_no_fabric_is_refused_with_the_switch(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    said = call("import", "sonic", *_fabric(tmp_path, **changed), "--lookup", LOOKUP, "-o", tmp_path / "fabric.toml")
    assert said.code == 2 and words in said.err, said.err
    assert not (tmp_path / "fabric.toml").exists() and not (tmp_path / "fabric.txt").exists()


def test_names_are_for_all_files_or_none(tmp_path: Path) -> None:
    file = "examples/switch/config_db.json"
    for arguments, words in (
        ([f"leaf0={file}", file], "has no name before it"),
        ([f"leaf0={file}", "--ports", "Ethernet0"], "--ports: is of one switch"),
        ([file, "--topology", "x.txt"], "--topology: needs the names of switches"),
    ):
        said = call("import", "sonic", *arguments, "-o", tmp_path / "x.toml")
        assert said.code == 2 and words in said.err, said.err


def _role(**more: Any) -> dict[str, Any]:
    return {"flow_control": {"mmu": {"role": [{"switches": ["switch0"], **more}]}}}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (_role(switches=["spine*"]), '"spine*" is the name of no switch; the first of them is switch0'),
        (_role(switches=[]), "names no switch"),
        (_role(buffer="1KB"), "is not between 10KB and 4GB"),
        (_role(pool=[{"name": "in", "side": "ingress", "bytes": "9MB"}]), "pools and headroom of switch0 need"),
        (_role(group=[{"groups": [3], "pool": "none"}]), '"none" is the name of no ingress pool'),
        (
            {"flow_control": {"mmu": {"role": [{"switches": ["switch0"]}, {"switches": ["sw*"]}]}}},
            "names switch0, and so does role[0]",
        ),
    ],
)
def test_roles_are_refused_with_the_key_and_the_switch(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(cw.ScenarioError) as error:
        cw.Scenario.load("examples/tiny.toml").with_(keys).check()
    assert words in str(error.value) and "flow_control.mmu.role[" in str(error.value)


def test_memory_may_be_named_by_a_chip() -> None:
    tiny = cw.Scenario.load("examples/tiny.toml")
    for name, size in (("tomahawk3", 66_394_076), ("spectrum4", 158_229_504)):
        found = tiny.with_({"switch.buffer": name}).to_dict()["switch"]["buffer"]
        assert found == {"shared": {"bytes": found["shared"]["bytes"]}}
        assert cw.Scenario.from_toml(tiny.to_toml()).with_({"switch.buffer": name}).check()
        assert abs(_bytes(found["shared"]["bytes"]) - size) < 1
    with pytest.raises(cw.ScenarioError, match="tomahawk9"):
        tiny.with_({"switch.buffer": "tomahawk9"})


def _bytes(text: str) -> float:
    from clearway.scenarios.quantity import amount

    return amount(text)


def test_tables_are_held_against_the_formula_by_term(tmp_path: Path) -> None:
    """A table made by the formula with a factor of 2 for cells has twice of each term."""
    box = tmp_path / "vendor" / "box"
    box.mkdir(parents=True)
    (box / "platform_asic").write_text("chip-x\n")
    lines = [
        f"{gbps * 1000} {metres}m 2048 0 {2 * sonic_tables.formula(gbps, metres)} 0 3072"
        for gbps in (25, 100, 400)
        for metres in (5, 40, 300)
    ]
    (box / sonic_tables.NAME).write_text("# speed cable size xon xoff threshold xon_offset\n" + "\n".join(lines) + "\n")
    (tmp_path / sonic_tables.NAME).write_text("# none\n")
    found = sonic_tables.tables([tmp_path])
    assert [table.chip for table in found] == ["not said", "chip-x"]
    rows = sonic_tables.rows(found)
    assert len(rows) == 9 and (rows["error"] == 1.0).all()
    terms = sonic_tables.terms(rows)
    assert terms["cable"].to_numpy() == pytest.approx(2.0, rel=1e-3)
    assert terms["rest"].to_numpy() == pytest.approx(2.0, rel=1e-3)
    page = tmp_path / "page.md"
    page.write_text(f"<!-- {sonic_tables.MARK}: begin -->\n<!-- {sonic_tables.MARK}: end -->\n")
    said = call("switch", "headroom", tmp_path, "--write", page, "-o", tmp_path / "rows.csv")
    assert said.code == 0 and "chip-x" in said.out, said.err
    assert "| chip-x | 1 | 9 | +100% | 100% |" in page.read_text()
    assert "2 tables, 2 of them different and 1 without a row; 9 rows in all." in page.read_text()
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 10


def test_folders_without_tables_and_bad_rows_are_refused(tmp_path: Path) -> None:
    said = call("switch", "headroom", tmp_path)
    assert said.code == 2 and "no pg_profile_lookup.ini is in there" in said.err
    (tmp_path / sonic_tables.NAME).write_text("100000 5m 1 2\n")
    said = call("switch", "headroom", tmp_path)
    assert said.code == 2 and "pg_profile_lookup.ini:1: " in said.err
    with pytest.raises(sonic.SonicError, match="no switch has this name"):
        sonic_fabric.read([("x", Path("examples/switch/config_db.json"))], "x.txt", _topology(tmp_path))


def _topology(tmp_path: Path) -> Path:
    file = tmp_path / "t.txt"
    file.write_text("switch s\nhost a b\nlink a s 1Gbps 1us\nlink b s 1Gbps 1us\n")
    return file
