"""Constants of libraries from logs: what is read, what is refused, and that known constants are found again."""

from pathlib import Path

import clearway as cw
import pytest
from clearway.calibration import logs
from clearway.calibration.fit import Machine, _times, calibrate_cells
from clearway.calibration.logs import Cell
from clearway.papers.hardware import cells, machine, scenario, systems

RANKS = "\n".join(
    f"#  Rank {rank:2} Group  0 Pid 7{rank} on node{rank // 4} device  {rank % 4} [0x1b] NVIDIA H100"
    for rank in range(8)
)
HEAD = f"""# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
{RANKS}
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 61.5\n#\n"


def row(size: int, us: float, factor: float = 1.75, redop: str = "sum") -> str:
    speed = size / us / 1e3
    numbers = f"{us:8.2f} {speed:7.2f} {speed * factor:7.2f}      0"
    return f"{size:12} {size // 4:13}     float {redop:>7}      -1 {numbers} {numbers}\n"


SIZES = [1 << power for power in range(10, 31, 2)]
WHOLE = HEAD + "".join(row(size, 30 + size / 2e5) for size in SIZES) + END


def test_a_log_of_nccl_tests_is_read() -> None:
    read = logs.parse(WHOLE, "x.log")
    assert (read.tool, read.hosts, len(read.cells)) == ("nccl-tests", 2, len(SIZES))
    assert read.cells[0] == Cell("all_reduce", 8, 1024, 30.01)


@pytest.mark.parametrize(
    ("factor", "redop", "kind"),
    [(0.875, "sum", "reduce_scatter"), (0.875, "none", "all_gather"), (1.0, "none", "send_recv")],
)
def test_the_bus_bandwidth_tells_the_collective(factor: float, redop: str, kind: str) -> None:
    text = HEAD + "".join(row(size, 30 + size / 2e5, factor, redop) for size in SIZES) + END
    assert logs.parse(text, "x.log").cells[0].kind == kind


def test_an_older_version_has_no_root() -> None:
    text = WHOLE.replace("   redop    root ", "   redop ").replace("      -1 ", " ").replace("#wrong", " error")
    read = logs.parse(text, "x.log")
    assert [cell.us for cell in read.cells] == [cell.us for cell in logs.parse(WHOLE, "x.log").cells]


def test_a_log_of_osu_is_read() -> None:
    head = "# OSU MPI-CUDA Allgather Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
    text = head + "1024   12.5\n4096   13.75\n"
    read = logs.parse(text, "x.log", ranks=16)
    assert read.cells == (Cell("all_gather", 16, 16384, 12.5), Cell("all_gather", 16, 65536, 13.75))
    with pytest.raises(ValueError, match="say it with --ranks"):
        logs.parse(text, "x.log")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no log of nccl-tests"),
        ("#bytes  #iterations  BW peak[Gb/sec]\n65536 1000 96.1 96.0 0.18\n", "is no log of nccl-tests"),
        (HEAD, "the run ended before its first"),
        (HEAD.replace("busbw", "bw"), "no column 'busbw', so it is of a version that is not known"),
        (WHOLE[: -len(END)], "so the run was cut off"),
        (WHOLE[: -len(END) - 40], "line 26: has 8 columns of 13"),
        (
            WHOLE.replace(END, "node1: Test NCCL failure common.cu:958 'unhandled system error'\n"),
            "line 27: the run failed",
        ),
        (WHOLE.replace("   30.01 ", "   -1.00 ", 1), "line 16: -1.00 is no time in us"),
        (WHOLE.replace(RANKS, ""), "say it with --ranks"),
        (WHOLE.replace("nThread", "alltoall_perf nThread"), "is about alltoall"),
        ("# OSU MPI Multi Bandwidth Test\n1 2\n", "for which there is no model"),
    ],
)
def test_other_logs_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        logs.parse(text, "x.log")


def test_wrong_values_are_refused_and_what_is_there_can_be_taken() -> None:
    wrong = row(1 << 20, 40.0).replace("      0 ", "     17 ", 1)
    with pytest.raises(ValueError, match="17 wrong values"):
        logs.parse(HEAD + wrong + END, "x.log")
    assert len(logs.parse(WHOLE[: -len(END)], "x.log", partial=True).cells) == len(SIZES)
    assert len(logs.parse(WHOLE[: -len(END) - 40], "x.log", partial=True).cells) == len(SIZES) - 1


TRUE = {
    "launch": 21e-6,
    "step_latency": 1.4,
    "nic_efficiency": 0.83,
    "local_efficiency": 0.66,
    "copy": 210e9,
    "simple": 14e-6,
}


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_known_constants_are_found_again(noise: float) -> None:
    of = Machine(8, 1_600_000_000_000, multicast=False)
    measured = []
    for kind in ("all_reduce", "all_gather"):
        times = _times(of, TRUE, kind, 24, SIZES)
        off = [1 + noise * (-1) ** place for place in range(len(times))]
        measured += [Cell(kind, 24, size, 1e6 * time[0] * by) for size, time, by in zip(SIZES, times, off)]
    found = calibrate_cells(of, measured)
    assert found.held_out.abs().max() < 0.02 + 3 * noise
    for constant in found.constants:
        true = TRUE[constant.key]
        if constant.determined:
            assert constant.low <= true <= constant.high, constant
            assert abs(constant.value / true - 1) < 0.05 + 10 * noise, constant
    assert {one.key for one in found.constants if one.determined} >= {"launch", "nic_efficiency"}


def test_what_no_constant_explains_is_said() -> None:
    of = Machine(8, 1_600_000_000_000)
    times = _times(of, TRUE, "all_gather", 16, SIZES)
    measured = [Cell("all_gather", 16, size, 1e6 * time[0]) for size, time in zip(SIZES, times)]
    assert calibrate_cells(of, measured).unexplained == ["nothing beyond the spread of measurements"]
    measured[-2] = Cell("all_gather", 16, SIZES[-2], 2.5 * measured[-2].us)
    said = calibrate_cells(of, measured).unexplained
    assert any(f"{SIZES[-2]:,} B took" in one and "longer" in one for one in said)
    assert any("moves fewer bytes a second" in one for one in said)


FABRIC = """
fabric.star = { hosts = 2, rate = "1600Gbps" }
[[job]]
ranks_per_host = 4
local = { rate = "3.6Tbps", multicast = true }
steps = [{ all_reduce = { bytes = "1MB" } }]
"""


def test_the_table_goes_into_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(WHOLE)
    (tmp_path / "f.toml").write_text(FABRIC)
    found = cw.calibrate([tmp_path / "x.log"], tmp_path / "f.toml")
    assert len(found.constants) <= 6
    text = FABRIC + "[job.library]\n" + found.library.split("\n", 1)[1]
    result = cw.run(cw.Scenario.from_toml(text), level="flow", progress=False)
    [us] = found.predict("all_reduce", 8, [1_000_000])
    assert float(result.collectives["time_ps"][0]) / 1e6 == pytest.approx(us, rel=0.05)
    (tmp_path / "g.toml").write_text(FABRIC.replace("ranks_per_host = 4", "ranks_per_host = 2"))
    with pytest.raises(ValueError, match="write 4"):
        cw.calibrate([tmp_path / "x.log"], tmp_path / "g.toml")


@pytest.mark.parametrize("system", list(systems().index))
def test_flow_level_takes_as_long_as_the_formula(system: str) -> None:
    found = calibrate_cells(machine(system), cells(system), half=True)
    for _, one in found.cells.iloc[:: max(len(found.cells) // 3, 1)].iterrows():
        kind, ranks, size = str(one["collective"]), int(one["ranks"]), int(one["bytes"])
        result = cw.run(scenario(system, found, kind, ranks, size), level="flow", progress=False)
        us = float(result.collectives["time_ps"][0]) / 1e6
        assert us == pytest.approx(float(one["ours_us"]), rel=0.04), (kind, size)
