"""Measures what a control of one's own costs and how fast an environment steps, and writes both into
docs/own-protocol.md.

`python tests/own_page.py` measures both, `python tests/own_page.py cost` or `gym` one of them; use the optimised module
(`make .venv/.release`). The measurements are in docs/own-protocol.json; the regions of the page between
`<!-- own-NAME: begin -->` and `<!-- own-NAME: end -->` are written from that and never by hand.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs" / "own-protocol.json", ROOT / "docs" / "own-protocol.md"
ROUNDS = 5
SCENE = """
fabric.leaf_spine = { racks = 9, hosts_per_rack = 16, spines = 4, host_rate = "100Gbps", spine_rate = "400Gbps" }
measure.interval = "0s"

[[traffic]]
sizes = "websearch"
arrivals = { poisson = { load = 0.6 } }
flows = 3000
"""
LONE = """
[fabric.star]
hosts = 4

[[traffic]]
sizes = { constant = "300MB" }
arrivals = "all_at_once"
pattern = { incast = { degree = 1 } }
flows = 1
"""
# Most that each may cost over the one in Rust, in percent: chosen before it was measured.
CONTROLS = {"module": ("a WebAssembly module (Rust)", 5), "class": ("a Python class", 15)}
# Cycles to the agent and back, the means of their six seeds: docs/benchmarking/gym-interface-data.m of ns3-ai, which
# draws the figures of its page "Gym interface vs. ns3-gym".
TO_AGENT = {"ns3-ai": [6288, 7584, 5645, 6129, 6550, 6911], "ns3-gym": [115605, 116412, 116335, 113930, 125322, 114498]}
FROM_AGENT = {
    "ns3-ai": [7665, 7599, 7235, 7470, 7723, 7810],
    "ns3-gym": [126076, 126901, 127789, 122230, 133081, 126814],
}


def filled(page: str, record: Mapping[str, Any]) -> str:
    """The page with its regions as the record has them; ValueError if it lacks one."""
    for name, render in (("cost", cost_table), ("gym", gym_table)):
        region = re.compile(rf"(<!-- own-{name}: begin -->\n).*?(<!-- own-{name}: end -->\n)", re.DOTALL)
        if len(region.findall(page)) != 1:
            raise ValueError(f"the page needs one region from <!-- own-{name}: begin --> to <!-- own-{name}: end -->")
        text = render(record.get(name))
        page = region.sub(lambda marks, text=text: marks[1] + text + marks[2], page)  # type: ignore[misc]
    return page


def cost_table(record: Mapping[str, Any] | None) -> str:
    """The cost of a control."""
    if record is None:
        return "Not yet measured.\n"
    lines = ["| DCTCP as | CPU time over the one in Rust | of all | to be at most | |", "|---|---|---|---|---|"]
    for name, (title, most) in CONTROLS.items():
        ratios = record[name]
        over = 100 * (statistics.median(ratios) - 1)
        spread = f"{100 * (min(ratios) - 1):+.1f}% to {100 * (max(ratios) - 1):+.1f}%"
        lines.append(f"| {title} | {over:+.1f}% | {spread} | +{most}% | {'holds' if over <= most else 'missed'} |")
    about = (
        f"\nThe median of {len(record['module'])} rounds of all three in turn; {record['packet_hops'] / 1e6:,.1f} M "
        f"packet-hops, all of digest {record['digest']}; commit {record['commit']}.\n"
    )
    return "\n".join(lines) + "\n" + about


def gym_table(record: Mapping[str, Any] | None) -> str:
    """How fast environments step."""
    if record is None:
        return "Not yet measured.\n"
    lines = ["| | cycles a step, beside the simulation | steps a second |", "|---|---|---|"]
    ours = f"{record['cycles_a_step']:,.0f}"
    lines.append(f"| Clearway, at {record['ghz']:.1f} GHz | {ours} | {record['steps_a_second']:,.0f} |")
    for name in TO_AGENT:
        cycles = statistics.mean(TO_AGENT[name]) + statistics.mean(FROM_AGENT[name])
        lines.append(f"| {name}, published | {cycles:,.0f} | |")
    about = f"\n{record['steps']:,} steps of one flow, with random actions; commit {record['commit']}.\n"
    return "\n".join(lines) + "\n" + about


def once(*arguments: str) -> dict[str, Any]:
    """One measurement, in a process of its own."""
    command = [sys.executable, __file__, "--once", *arguments]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    read: dict[str, Any] = json.loads(out.splitlines()[-1])
    return read


def measure(name: str) -> dict[str, Any]:
    """The sentences on a run, or on steps."""
    import math
    import time

    import clearway as cw

    if name == "gym":
        return steps(cw)
    scenario = cw.Scenario.from_toml(SCENE, folder=ROOT)
    transport: Any = "dctcp"
    if name == "module":
        transport = {"custom": {"module": "examples/wasm/dctcp-rust.wasm", "ecn": "proportional"}}
    elif name == "class":
        sys.path.insert(0, str(ROOT / "examples"))
        from own_dctcp import Dctcp  # type: ignore[import-not-found]

        transport = Dctcp()
    scenario = scenario.with_(transport=transport)
    began = time.process_time()
    info = cw.run(scenario, threads=1, progress=False, memory_limit=math.inf).info
    seconds = time.process_time() - began
    return {"cpu_seconds": seconds} | {key: info[key] for key in ("packet_hops", "digest", "commit")}


def steps(cw: Any) -> dict[str, Any]:
    """Steps of a lone flow, and what its packets take without an agent."""
    import time

    import numpy as np
    from clearway import gym

    scenario = cw.Scenario.from_toml(LONE)
    env = gym.ControlEnv(scenario, interval_us=20, reward=lambda seen: 0.0)
    actions = np.random.default_rng(1).uniform(-1, 1, (100_000, 1)).astype(np.float32)

    env.reset(seed=1)
    over, count = False, 0
    clocks = [(time.perf_counter(), time.process_time())]
    while not over:
        _, _, over, _, _ = env.step(actions[count])
        count += 1
        clocks.append((time.perf_counter(), time.process_time()))
    # Without the last, which makes the tables of the result.
    count, (wall, cpu) = count - 1, (clocks[-2][place] - clocks[0][place] for place in (0, 1))
    info = env.result.info
    # The cost of the simulation itself: as many packet-hops of a flow without a control.
    began = time.process_time()
    alone = cw.run(scenario.with_(seed=1, transport="newreno"), threads=1, progress=False).info
    alone_seconds = (time.process_time() - began) * info["packet_hops"] / alone["packet_hops"]
    clock = re.search(r"cpu MHz\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text())
    if clock is None:
        raise SystemExit("/proc/cpuinfo does not say the clock's rate")
    ghz = float(clock[1]) / 1e3
    said = {"steps": count, "steps_a_second": count / wall, "cycles_a_step": (cpu - alone_seconds) / count * ghz * 1e9}
    return said | {"ghz": ghz, "digest": info["digest"], "commit": info["commit"]}


def main() -> None:
    """Measures what is asked for and writes the page."""
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    asked = sys.argv[1:] or ["cost", "gym"]
    if unknown := set(asked) - {"cost", "gym"}:
        raise SystemExit(f"{' '.join(unknown)}: measured are cost, gym")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if "gym" in asked:
        record["gym"] = once("gym")
    if "cost" in asked:
        found: dict[str, Any] = {name: [] for name in CONTROLS}
        for _ in range(ROUNDS):
            built_in = once("dctcp")
            for name in CONTROLS:
                own = once(name)
                if own["digest"] != built_in["digest"]:
                    raise SystemExit(f"{name} did other work: {own['digest']} for {built_in['digest']}")
                found[name].append(own["cpu_seconds"] / built_in["cpu_seconds"])
                print(name, f"{found[name][-1]:.3f}", flush=True)
            found |= {key: built_in[key] for key in ("packet_hops", "digest", "commit")}
        record["cost"] = found
    RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), record))


if __name__ == "__main__":
    main()
