"""The scripts around `make bench`: pairs with another commit, and the region of docs/speed.md."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def fake(folder: Path, name: str, cpu_seconds: list[float], digest: str = "d1") -> Path:
    """A bench whose runs take these times in turn."""
    program, count = folder / name, folder / f"{name}.count"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        f"assert sys.argv[1:3] == ['--one', 'tiny/udp'] and '--quick' in sys.argv, sys.argv\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "run = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(run + 1))\n"
        f"print(json.dumps(dict(hops=1_000_000, cpu_s={cpu_seconds!r}[run], digest={digest!r})))\n"
    )
    program.chmod(0o755)
    return program


def against(folder: Path, here: list[float], there: list[float], digest: str = "d1") -> int:
    pairs = script("bench_against")
    words = ["HEAD", "tiny/udp", "--pairs", str(len(here))]
    programs = ["--here", str(fake(folder, "here", here, digest)), "--there", str(fake(folder, "there", there))]
    status: int = pairs.main([*words, *programs])
    return status


def test_a_slower_tree_fails_and_says_by_how_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert against(tmp_path, [1.05, 1.06, 1.04, 1.05, 1.07], [1.0] * 5) == 1
    said = capsys.readouterr().out
    assert "tiny/udp" in said and " 0.952 (0.935 - 0.962)  slower" in said, said


def test_a_little_slower_is_not_slower(tmp_path: Path) -> None:
    assert against(tmp_path, [1.02] * 5, [1.0] * 5) == 0


def test_noise_is_not_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The median is 5% slower, and yet a fair coin would fall so: three of five."""
    assert against(tmp_path, [1.05, 0.8, 1.4, 0.7, 1.3], [1.0] * 5) == 0
    assert "0.952" in capsys.readouterr().out


def test_neighbours_that_come_and_go_are_no_difference(tmp_path: Path) -> None:
    """Both programs take twice the time in the second half: pairs compare what ran side by side."""
    assert against(tmp_path, [1.0, 1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 1.0, 2.0, 2.0]) == 0


def test_another_history_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert against(tmp_path, [1.0] * 5, [1.0] * 5, digest="d2") == 0
    assert "another history" in capsys.readouterr().out


def test_a_bench_that_fails_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert against(tmp_path, [1.0], []) == 2
    assert "bench-against: " in capsys.readouterr().err


def test_another_manifest_gets_what_the_bench_needs() -> None:
    theirs = '[dependencies]\na = "1"\n\n[dev-dependencies]\nold = "1"\n\n[lints]\nworkspace = true\n'
    ours = '[dev-dependencies]\nold = "1"\nnew = "2"\n\n[lints]\nworkspace = true\n'
    merged = script("bench_against").with_dependencies(theirs, ours)
    assert (
        merged == '[dependencies]\na = "1"\n\n[dev-dependencies]\nold = "1"\nnew = "2"\n\n[lints]\nworkspace = true\n'
    )


LINE = {
    "name": "tiny/udp",
    "title": "2 hosts, udp",
    "threads": 1,
    "hops": 20_000_000,
    "hops_per_cpu_s": 4_000_000.0,
    "ratio": 0.5,
    "events_per_hop": 1.75,
    "peak_bytes": 40_000_000,
    "bytes_a_host": 20_000_000.0,
    "bytes_a_flow": 549.0,
}
RECORD: dict[str, Any] = {
    "commit": "abc1234",
    "date": "2026-11-23 01:00",
    "machine": {"cpu": "A CPU", "cores": 2, "caches": "32K, 512K", "memory_bytes": 8 * 2**30, "kernel": "6.1"},
    "quick": False,
    "lines": [LINE],
    "conclusions": ["Two threads are faster."],
}


def test_the_page_shows_the_record() -> None:
    page = script("bench_page")
    shown = page.filled("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n", RECORD)
    assert shown.startswith(
        "before\n<!-- bench: begin -->\nMeasured at commit abc1234 on 2026-11-23, on 2 cores of A CPU"
    )
    assert "| 2 hosts, udp | 1 | 20.0 M | 4.00 M | 0.50 | 1.75 | 40 MB | 20000 KB | 0.549 KB |\n" in shown
    assert "old" not in shown and "- Two threads are faster.\n<!-- bench: end -->\nafter\n" in shown


def test_the_page_says_which_goals_were_missed() -> None:
    page = script("bench_page")
    lines = [
        LINE | {"name": "poisson-1024/dcpim", "wall_s": 17.0},
        LINE | {"name": "permutation-1024/ndp", "cpu_s": 5.0},
    ]
    lines += [LINE | {"name": "poisson-1024/dcpim/2-threads", "wall_s": 9.0}]
    peers = [{"name": "permutation-1024/ndp", "cpu_s": 65.0, "finished": 1024, "flows": 1024}]
    shown = page.render(RECORD | {"lines": lines, "peers": peers})
    assert "| 2 hosts, udp, of the 144-host line | 0.65 | 0.8 | 0.50 **missed** |\n" in shown
    assert "| 2 hosts, udp, of the 144-host line | 0.45 | 0.6 | 0.50 |\n" in shown
    assert "| a second thread, 1,024 hosts | 1.8 | 1.9 | 1.89 |\n" in shown
    assert "| 2 hosts, udp: CPU time of htsim's | 12 | 20 | 13.00 |\n" in shown


def test_the_page_shows_what_other_machines_reached() -> None:
    page = script("bench_page")
    here = RECORD | {"lines": [LINE | {"name": "poisson-1024/dcpim", "ratio": 0.7}]}
    there = RECORD | {"lines": [LINE | {"name": "poisson-1024/dcpim", "ratio": 0.6}], "commit": "def5678"}
    shown = page.render(here, [there | {"machine": RECORD["machine"] | {"cpu": "Another CPU"}}, RECORD])
    assert "| goal | at least | at best | reached | Another CPU, commit def5678 | A CPU, commit abc1234 |\n" in shown
    assert "| 2 hosts, udp, of the 144-host line | 0.65 | 0.8 | 0.70 | 0.60 **missed** |  |\n" in shown


def test_a_page_without_a_region_is_refused() -> None:
    with pytest.raises(ValueError, match="needs one region"):
        script("bench_page").filled("nothing\n", RECORD)


def test_the_page_is_as_the_record_has_it() -> None:
    page = script("bench_page")
    text = page.PAGE.read_text()
    assert page.filled(text, *page.read()) == text, "`python tests/bench_page.py` writes it"


def test_the_table_of_large_scenarios_is_as_its_record_has_it() -> None:
    page = script("scale_page")
    text = page.PAGE.read_text()
    assert page.filled(text, page.read()) == text, "`make bench-scale` writes it"
    shown = page.render({"machine": "Here.", "ring-10000/check": {"wall_s": 1.234, "peak_bytes": 290_000_000}})
    assert shown.endswith("| all-reduce of 1 GB among 10,000 ranks | `clearway check` | 1.23 s | 290 MB |\n")


def test_the_page_of_live_runs_is_as_its_record_has_it() -> None:
    page = script("live_page")
    record = json.loads(page.RECORD.read_text()) if page.RECORD.is_file() else {}
    text = page.PAGE.read_text()
    assert page.filled(text, record) == text, "`python tests/live_page.py` writes it"


def test_the_playground_s_page_is_as_its_record_has_it() -> None:
    page = script("playground_page")
    record = json.loads(page.RECORD.read_text()) if page.RECORD.is_file() else {}
    text = page.PAGE.read_text()
    assert page.filled(text, record) == text, "`make bench-web` writes it"
    with pytest.raises(ValueError, match="needs one region"):
        page.filled("nothing\n", record)


def test_the_playground_s_page_says_what_was_missed() -> None:
    page = script("playground_page")
    fine = {"plain": 4e6, "recording": 3.9e6, "first_s": 1.0, "report_s": 1.5, "version": "a browser 1"}
    record = {
        "commit": "0a1b2c", "date": "2026-11-24", "cores": 2, "cpu": "some", "load": 0.1, "packet_hops": 1_000_000,
        "digest": "00ff", "native_hops": 6e6, "browsers": {"Chromium": fine, "Firefox": fine},
        "weight": {"app.js": 3_000_000},
    }  # fmt: skip
    said = page.render(record)
    assert said.count("holds") == 7 and "missed" not in said and "4.00 of 6.00 M packet-hops a second: 67%" in said
    slow = fine | {"plain": 2e6, "first_s": 3.1}
    said = page.render(record | {"browsers": {"Chromium": slow, "Firefox": fine}, "weight": {"app.js": 5_000_001}})
    assert said.count("missed") == 3 and ": 33% |" in said, said


def test_the_page_of_live_runs_shows_what_was_measured() -> None:
    page = script("live_page")
    away = {"away_percent": 3.0}
    shapes = [{"workers": 1, "processes": 1}, {"workers": 2, "processes": 1}, {"workers": 2, "processes": 2}]
    report = {
        "throughput": [{"packet_bytes": 8192, "most_gbps": 55.6, "at_40_gbps": 40.0, "in_time": True} | away],
        "latency": [
            shape
            | {"median_ns": 540.0, "p99_ns": 2100.0, "machine_p99_ns": 1900.0, "machine_stopped_percent": 0.75}
            | away
            for shape in shapes
        ],
        "sharing": [{"flows": 4, "gbps": 32.0, "least": 0.998, "in_time": False} | away],
        "hops": [
            shape | {"million_per_second": 4.0 - at, "word_ns": 49.6 if at else None} | away
            for at, shape in enumerate(shapes)
        ],
        "trunk": [{"packet_bytes": 1500, "gbps": 5.25, "sent_again_percent": 0.125} | away],
    }
    place = {"commit": "abc", "date": "2026-11-24", "cores": 2, "cpu": "A CPU", "load": 0.5, "command": "it"}
    record = {"bench": place | {"report": report}}
    record["attached"] = place | {"rows": [{"packets": "1,500 B", "gbps": 4.25, "lost_percent": 2.7}]}
    shown = page.render(record)
    assert "| 8,192 B | 55.6 Gbps | 40.0 Gbps | yes | 38 Gbps | 3% |\n" in shown
    assert "| 2 processes | 540 ns | 2,100 ns | 1,900 ns | 0.8% | 3 us | 2.00 M | 50 ns |" in shown
    assert "| 1,500 B | 5.2 Gbps | 0.12% | 3% |" in shown
    assert "| 4 | 32.0 Gbps | 99.8% | no | 3% |" in shown
    assert "Two processes of one worker each move 0.67 times" in shown
    assert "| 1,500 B | 4.2 Gbps | 3% |" in shown
