"""Parameters of NICs, as tools print them, as scenarios."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import clearway as cw
import pytest
from called import call
from clearway.scenarios import nic

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SYSFS = Path("examples/nic/roce.txt")
MLXCONFIG = Path("examples/nic/mlxconfig.txt")


def _transport(found: nic.Imported, name: str = "dcqcn") -> dict[str, Any]:
    cw.Scenario.from_toml(found.toml)
    transport: dict[str, Any] = tomllib.loads(found.toml)["transport"][name]
    return transport


def test_every_parameter_of_sysfs_is_in_the_scenario() -> None:
    found = nic.read([SYSFS])
    assert _transport(found) == {
        "class": 3,
        "cnp_class": 0,
        "window": "unlimited",
        "control": {
            "nvidia": {
                "dce_tcp_g": 1019,
                "dce_tcp_rtt": 1,
                "initial_alpha_value": 1023,
                "rate_to_set_on_first_cnp": 0,
                "rpg_min_dec_fac": 50,
                "rpg_min_rate": 1,
                "rpg_max_rate": 0,
                "rpg_gd": 11,
                "rate_reduce_monitor_period": 4,
                "rpg_time_reset": 300,
                "rpg_byte_reset": 32767,
                "rpg_threshold": 1,
                "rpg_ai_rate": 20,
                "rpg_hai_rate": 200,
                "min_time_between_cnps": 4,
                "clamp_tgt_rate": False,
                "clamp_tgt_rate_after_time_inc": True,
            }
        },
    }
    assert tomllib.loads(found.toml)["flow_control"] == {"pfc": {"classes": [3]}}
    assert found.notes == ["cnp_dscp: 48 is not modelled in hosts; flow_control.mmu.maps.dscp says it to switches"]


def test_mlxconfig_says_the_same_of_each_port_and_what_is_unknown_is_named() -> None:
    one, two = (nic.read([MLXCONFIG], port) for port in (1, 2))
    assert _transport(one)["control"]["nvidia"]["rpg_ai_rate"] == 5
    # Of default, current and next, the second counts.
    assert _transport(two)["control"]["nvidia"]["rpg_ai_rate"] == 40
    assert "ROCE_CC_STEERING_EXT: is not modelled" in one.notes
    assert not any("SRIOV" in note or "CNP_MODERATION" in note for note in one.notes)


def test_later_files_go_before_earlier_ones_and_libraries_say_timeouts(tmp_path: Path) -> None:
    file = tmp_path / "more.txt"
    file.write_text(
        "export NCCL_IB_TIMEOUT=14\nNCCL_IB_RETRY_CNT=3\nnet/eth2/ecn/roce_rp/rpg_ai_rate:7\nNCCL_IB_TC=106\n"
    )
    found = nic.read([SYSFS, file])
    transport = _transport(found)
    assert transport["control"]["nvidia"]["rpg_ai_rate"] == 7
    assert transport["recovery"] == {"go_back_n": {"ack_timeout": 14, "retry_cnt": 3}}
    assert "NCCL_IB_TC: is not modelled" in found.notes


def test_a_priority_without_a_reaction_point_has_no_rate_control(tmp_path: Path) -> None:
    file = tmp_path / "off.txt"
    file.write_text("ecn/roce_rp/enable/3:0\n")
    found = nic.read([SYSFS, file])
    assert "control" not in _transport(found, "rdma")
    assert any("DCQCN is off" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ecn/roce_rp/rpg_gd:much\n", "nic.txt:1: 'much' is not a whole number"),
        ("\necn/roce_np/cnp_802p_prio:9\n", "nic.txt:2: cnp_802p_prio: 9 is not 0 to 7"),
        ("RPG_AI_RATE_P1    -5\n", "nic.txt:1: '-5' is below 0"),
        ("nothing here\n", "no line is a parameter of RoCE"),
        ("", "no line is a parameter of RoCE"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "nic.txt"
    file.write_text(text)
    with pytest.raises(nic.NicError, match=words.replace("(", r"\(")):
        nic.read([file])


def test_a_value_that_no_nic_has_is_refused_with_its_key(tmp_path: Path) -> None:
    file = tmp_path / "nic.txt"
    file.write_text("ecn/roce_rp/rpg_gd:99\n")
    refused = call("import", "nic", file, "-o", tmp_path / "out.toml")
    assert refused.code == 2 and "nvidia.rpg_gd: 99 is not between 1 and 15" in refused.err
    refused = call("import", "nic", SYSFS, "--size", "pool=5", "-o", tmp_path / "out.toml")
    assert refused.code == 2 and "go with sonic" in refused.err


def test_the_command_writes_a_scenario_that_runs(tmp_path: Path) -> None:
    out = tmp_path / "nic.toml"
    said = call("import", "nic", SYSFS, "-o", out)
    assert said.code == 0 and "cnp_dscp" in said.out, said.err
    result = cw.run(cw.Scenario.load(out), progress=False)
    assert result.info["flows_completed"] == 8
    counted = dict(zip(result.counters["counter"], result.counters["value"], strict=True))
    assert counted["cnps"] > 0
