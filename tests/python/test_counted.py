"""Scenarios that can't fit are counted and refused before anything of them is made; errors name the bounds."""

from __future__ import annotations

import time
from pathlib import Path

import clearway as cw
import pytest
from called import call

JOB = 'transport = "udp"\n[fabric.star]\nhosts = 64\n[[job]]\n'
TINY = (
    "fabric = { leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 2 } }\n[[traffic]]\n"
    'sizes = { constant = "20KB" }\narrivals = "all_at_once"\nflows = 12\n'
)
FOUR_GB = 4e9

TOO_LARGE = {
    "all-to-all of 65,536 ranks": (
        f'{JOB}ranks_per_host = 1024\nsteps = [{{ all_to_all = {{ bytes = "1GB" }} }}]\n',
        "job[0].ranks_per_host",
        "4,294,901,760 messages",
    ),
    "iterations": (
        f'{JOB}iterations = 4000000000\nsteps = [{{ compute = "1ns" }}]\n',
        "job[0].iterations",
        "256,000,000,000 steps",
    ),
    "fewer iterations": (
        f'{JOB}iterations = 5000000\nsteps = [{{ compute = "1ns" }}]\n',
        "job[0].iterations",
        "would fit",
    ),
    "flows": (
        'transport = "udp"\n[fabric.star]\nhosts = 4\n[[traffic]]\nsizes = { constant = "1KB" }\n'
        'arrivals = "all_at_once"\nflows = 90000000\n',
        "traffic[0].flows",
        "90,000,000",
    ),
    "a duration": (
        'transport = "udp"\n[fabric.star]\nhosts = 4\n[[traffic]]\nsizes = { constant = "1B" }\n'
        'arrivals = { poisson = { load = 0.9 } }\nduration = "1ms"\n',
        "traffic[0].duration",
        "write fewer",
    ),
    "a fabric": (
        'transport = "udp"\n[fabric.fat_tree]\nk = 150\n[[traffic]]\nsizes = { constant = "1KB" }\n'
        'arrivals = "all_at_once"\nflows = 10\n',
        "fabric.fat_tree.k",
        "would fit",
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_can_t_fit_is_refused_at_once_with_what_would(name: str) -> None:
    text, key, words = TOO_LARGE[name]
    scenario = cw.Scenario.from_toml(text)
    for refuse in (
        lambda: scenario.check(memory_limit=FOUR_GB),
        lambda: scenario.forecast(memory_limit=FOUR_GB),
        lambda: cw.run(scenario, memory_limit=FOUR_GB),
        lambda: cw.run(scenario, level="flow", memory_limit=FOUR_GB / 8),
    ):
        began = time.process_time()
        with pytest.raises(cw.ScenarioError) as refused:
            refuse()
        assert time.process_time() - began < 2, "it is counted, not made"
        assert refused.value.key == key and words in str(refused.value), refused.value


def test_a_trace_of_thousands_of_accelerators_is_counted_before_a_graph_is_made(tmp_path: Path) -> None:
    """As SimAI's own example for 9,216 accelerators is, whose graph took more memory than there was."""
    layers = "".join(f"layer{i} -1 1000 ALLREDUCE 400000000 700 ALLREDUCE 400000000 0 NONE 0 100\n" for i in range(90))
    (tmp_path / "gpt.txt").write_text(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 9216 "
        f"checkpoints: 0 checkpoint_initiates: 0\n91\n{layers}"
        "embedding -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4000000000 100\n"
    )
    (tmp_path / "simai.toml").write_text(
        'transport = "udp"\n[fabric.leaf_spine]\nracks = 36\nhosts_per_rack = 32\nspines = 4\n[[job]]\n'
        'ranks_per_host = 8\ntrace = { simai = { path = "gpt.txt" } }\n'
    )
    began = time.process_time()
    scenario = cw.Scenario.load(tmp_path / "simai.toml")
    with pytest.raises(cw.ScenarioError, match=r"job\[0\].trace: has [0-9,]+ steps and [0-9,]+ messages"):
        scenario.check(memory_limit=2e9)
    assert time.process_time() - began < 2


def test_a_timer_and_a_count_have_bounds(tmp_path: Path) -> None:
    cases = {
        "transport = { r2c2 = { refresh = '1ps' } }": "transport.r2c2.refresh: 1ps is out of its bounds; write a time",
        "transport = { r2c2 = { recompute = '1ps' } }": "transport.r2c2.recompute: 1ps is out of its bounds; write 0",
        "transport = 'dctcp'\nswitch = { balancing = { drill = { samples = 0, memory = 1 } } }": "from 1 to 255",
    }
    for keys, words in cases.items():
        (tmp_path / "bad.toml").write_text(f"{keys}\n{TINY}")
        done = call("run", tmp_path / "bad.toml", "--out", tmp_path / "out")
        assert done.code == 2 and words in done.err, done.err


def test_a_short_interval_at_flow_level_grows_as_at_packet_level() -> None:
    text = f'transport = "dctcp"\nmeasure = {{ interval = "7ps", end = "500us", rows_max = 3000 }}\n{TINY}'
    scenario = cw.Scenario.from_toml(text)
    for level in ("packet", "flow"):
        result = cw.run(scenario, level=level)
        table = result.tables["utilisation"]
        assert 100 < len(table) <= 3000, (level, len(table))
