"""How far estimates at flow level are from packet level: writes the tables of `docs/flow-level-measured.md`.

    python examples/flow-level/error.py

Each scenario is run at both levels with those transports that come nearest to sharing links fairly at once, and some
that do not. Results in `out/flow-level` are not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clearway as cw
import pandas as pd
from clearway.files.places import slug

PAGE = Path("docs/flow-level-measured.md")
BEGIN, END = "<!-- error: begin -->\n", "<!-- error: end -->\n"

# The estimates have no jitter.
IDEAL = 'timing = "ideal"\n'
LEAF_SPINE = IDEAL + "[fabric.leaf_spine]\n"
FAT_TREE = IDEAL + "[fabric.fat_tree]\nk = 8\n"
TORUS = IDEAL + "[fabric.torus]\ndims = [4, 4, 4]\n"
HALF = IDEAL + "[fabric.leaf_spine]\noversubscription = 2.0\n"

# A gigabyte or two each.
FLOWS = {"websearch": 1_000, "datamining": 400, "imc10": 8_000}

FAIR: dict[str, dict[str, Any]] = {
    "line rate over fair queues": {"transport": "rdma", "flow_control": "per_flow_queues"},
    "hpcc": {"transport": "hpcc"},
    "dcpim": {"transport": "dcpim"},
}
ALL = FAIR | {"dctcp": {"transport": "dctcp"}, "newreno": {"transport": "newreno"}}
# Its own kind of fabric, where packets of a flow take many paths.
R2C2 = {"r2c2": {"transport": "r2c2", "switch.balancing": "spray"}}


def poisson(sizes: str, load: float) -> str:
    """A class of traffic that arrives as a Poisson process."""
    return f'[[traffic]]\nsizes = "{sizes}"\narrivals.poisson.load = {load}\nflows = {FLOWS[sizes]}\n'


def scenarios() -> Iterator[tuple[str, str, dict[str, dict[str, Any]]]]:
    """Name, TOML, and what to run it with."""
    for sizes in FLOWS:
        for load in (0.3, 0.5, 0.8):
            everything = sizes == "websearch" and load == 0.5
            yield f"leaf-spine, {sizes} at {load}", LEAF_SPINE + poisson(sizes, load), ALL if everything else FAIR
    yield "fat-tree, websearch at 0.5", FAT_TREE + poisson("websearch", 0.5), FAIR
    yield "2:1 leaf-spine, websearch at 0.3", HALF + poisson("websearch", 0.3), FAIR
    yield "torus of 64, imc10 at 0.3", TORUS + poisson("imc10", 0.3), R2C2
    dense = (
        '[[traffic]]\nsizes.constant = "200KB"\npattern = "dense"\narrivals = "all_at_once"\nsenders = "0-35"\n'
        'receivers = "36-71"\n'
    )
    yield "leaf-spine, dense (36 to 36, 200 KB each)", LEAF_SPINE + dense, ALL
    incast = (
        '[[traffic]]\nsizes.constant = "100KB"\narrivals = "all_at_once"\nflows = 50\nsenders = "16-65"\n'
        'receivers = "0"\n'
    )
    yield "leaf-spine, incast (50 to 1, 100 KB each)", LEAF_SPINE + incast, ALL


def compared() -> pd.DataFrame:
    """One row a scenario, transport and size class."""
    rows = []
    for title, toml, with_what in scenarios():
        for transport, settings in with_what.items():
            scenario = cw.Scenario.from_toml(toml).with_(settings, name=f"{title}, {transport}")
            folder = Path("out/flow-level") / slug(scenario.name)
            packet, flow = cw.compare(scenario, levels=["packet", "flow"], folder=folder, keep=True).results
            seconds = {"packet s": packet.info["cpu_seconds"], "flow s": flow.info["cpu_seconds"]}
            statistics = [pd.concat([result.slowdown(), result.slowdown(by="size")]) for result in (packet, flow)]
            for size in ("all", "short", "medium", "long"):
                of_packet, of_flow = (table.loc[size] for table in statistics)
                if not of_packet["flows"]:
                    continue
                key = {"scenario": title, "transport": transport, "size": size, "flows": int(of_packet["flows"])}
                values = {
                    f"{level} {what}": of[what]
                    for level, of in (("packet", of_packet), ("flow", of_flow))
                    for what in ("mean", "p99")
                }
                rows.append(key | values | seconds)
    return pd.DataFrame(rows)


def table(frame: pd.DataFrame, what: str) -> list[str]:
    """A table of slowdowns by size at both levels, and how far the flow level is off."""
    lines = [f"| scenario | transport | {' | '.join(SIZES)} |", f"| --- | --- |{' ---: |' * len(SIZES)}"]
    for (scenario, transport), group in frame.groupby(["scenario", "transport"], sort=False):
        by_size = group.set_index("size")
        cells = []
        for size in SIZES:
            if size not in by_size.index:
                cells.append("")
                continue
            packet, flow = (float(by_size.loc[size, f"{level} {what}"]) for level in ("packet", "flow"))
            cells.append(f"{packet:.2f} / {flow:.2f} ({flow / packet - 1:+.0%})")
        lines.append(f"| {scenario} | {transport} | {' | '.join(cells)} |")
    return lines


SIZES = ("all", "short", "medium", "long")


def speed(frame: pd.DataFrame) -> list[str]:
    """A table of the CPU time that each level takes."""
    once = frame[frame["size"] == "all"]
    lines = ["| scenario | packet level, s | flow level, s | ratio |", "| --- | ---: | ---: | ---: |"]
    for scenario, group in once.groupby("scenario", sort=False):
        packet, flow = group["packet s"].median(), group["flow s"].median()
        lines.append(f"| {scenario} | {packet:.1f} | {flow:.3f} | {packet / flow:,.0f} |")
    return lines


def main() -> None:
    """Runs what has not been run, and writes the tables into the page."""
    frame = compared()
    lines = ["Mean slowdown, packet level / flow level (error of flow level):", "", *table(frame, "mean"), ""]
    lines += ["99th percentile:", "", *table(frame, "p99"), ""]
    lines += ["CPU seconds, of the transport in the middle:", "", *speed(frame), ""]
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(lines) + END + after)


if __name__ == "__main__":
    main()
