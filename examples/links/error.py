"""How far estimates by single links and at flow level are from packet level: writes the tables and the picture of
`docs/links-measured.md`.

    python examples/links/error.py

Each of twenty scenarios is run at packet level, at flow level, and by single links, with every link simulated and as by
default. Then one scenario is run over many transports. Results in `out/links` are not run again.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clearway as cw
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from clearway import _core
from clearway.files.places import slug
from clearway.reports import marked
from clearway.reports.spec import SPEC

GREY, BLUE, ORANGE, RED, GREEN = (SPEC["looks"]["colours"][name] for name in ("grey", "blue", "orange", "red", "green"))
PAGE, PICTURE = Path("docs/links-measured.md"), Path("docs/links.png")
BEGIN, END = marked.marks("error")
SIZES = ("all", "short", "medium", "long")

# The estimates have no jitter.
IDEAL = 'timing = "ideal"\n'
LEAF_SPINE = IDEAL + "[fabric.leaf_spine]\nracks = 4\n"
FAT_TREE = IDEAL + "[fabric.fat_tree]\nk = 6\n"
# About a gigabyte or two each.
FLOWS = {"websearch": 1_000, "datamining": 400, "imc10": 6_000}
WAYS: dict[str, dict[str, Any]] = {
    "every link": {"decomposition.sample": 1_000_000},
    "eight of a kind": {},
}
FLOW = "flow level"
LARGE = IDEAL + "[fabric.leaf_spine]\nracks = 32\nhosts_per_rack = 32\nspines = 16\noversubscription = 2.0\n"
LARGE_FLOWS = {"websearch": 8_000, "datamining": 3_000, "imc10": 60_000}
TRANSPORTS = (
    "dctcp", "newreno", "cubic", "swift", "hpcc", "dcqcn", "timely", "rdma", "udp", "dcpim", "phost", "homa", "pfabric",
)  # fmt: skip


def scenarios() -> Iterator[tuple[str, str]]:
    """Name and TOML of the twenty."""
    for sizes in FLOWS:
        for load in (0.3, 0.5, 0.7):
            yield f"leaf-spine, {sizes} at {load}", LEAF_SPINE + poisson(sizes, load)
    for sizes, load in (("websearch", 0.2), ("websearch", 0.35), ("datamining", 0.35), ("imc10", 0.35)):
        yield f"2:1 leaf-spine, {sizes} at {load}", LEAF_SPINE + "oversubscription = 2.0\n" + poisson(sizes, load)
    for sizes in ("websearch", "imc10"):
        yield f"4:1 leaf-spine, {sizes} at 0.15", LEAF_SPINE + "oversubscription = 4.0\n" + poisson(sizes, 0.15)
    for sizes, load in (("websearch", 0.3), ("websearch", 0.5), ("datamining", 0.5), ("imc10", 0.3), ("imc10", 0.5)):
        yield f"fat-tree, {sizes} at {load}", FAT_TREE + poisson(sizes, load)


def large() -> Iterator[tuple[str, str]]:
    """Name and TOML of those on 1,024 hosts."""
    for sizes, flows in LARGE_FLOWS.items():
        yield f"1,024 hosts, {sizes} at 0.5", LARGE + poisson(sizes, 0.5, flows)


def poisson(sizes: str, load: float, flows: int | None = None) -> str:
    """A class of traffic that arrives as a Poisson process."""
    return f'[[traffic]]\nsizes = "{sizes}"\narrivals.poisson.load = {load}\nflows = {flows or FLOWS[sizes]}\n'


def of(scenario: cw.Scenario, level: str) -> cw.Result:
    """A run, kept in `out/links`."""
    folder = Path("out/links") / slug(scenario.name)
    return cw.compare(scenario, levels=[level], folder=folder, keep=True, threads=1, progress=False).results[0]


def errors(title: str, way: str, packet: cw.Result, links: cw.Result) -> list[dict[str, Any]]:
    """One row a size class."""
    rows = []
    tables = [pd.concat([result.slowdown(), result.slowdown(by="size")]) for result in (packet, links)]
    for size in SIZES:
        of_packet, of_links = (table.loc[size] for table in tables)
        if of_packet["flows"]:
            values = {f"packet {what}": of_packet[what] for what in ("mean", "p99")}
            values |= {f"links {what}": of_links[what] for what in ("mean", "p99")}
            rows.append({"scenario": title, "way": way, "size": size, **values, **cost(packet, links)})
    return rows


def cost(packet: cw.Result, estimate: cw.Result) -> dict[str, float]:
    """The cost of both. Flow level has no packets."""
    return {
        "packet s": packet.info["cpu_seconds"],
        "links s": estimate.info["cpu_seconds"],
        "packet hops": packet.info["packet_hops"],
        "links hops": estimate.info.get("packet_hops", 0),
        "simulated": estimate.info.get("links_simulated", 0),
        "like them": estimate.info.get("links_alike", 0),
    }


def compared(all_of: Iterator[tuple[str, str]], ways: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Scenarios over DCTCP: one row per scenario, way and size class."""
    rows = []
    for title, toml in all_of:
        base = cw.Scenario.from_toml(toml).with_({"transport": "dctcp"}, name=title)
        packet = of(base, "packet")
        for way, settings in ways.items():
            scenario = base.with_(settings, name=f"{title}, {way}")
            rows += errors(title, way, packet, of(scenario, "links"))
        rows += errors(title, FLOW, packet, of(base, "flow"))
    return pd.DataFrame(rows)


def transports() -> pd.DataFrame:
    """One of them over other transports."""
    rows = []
    for transport in TRANSPORTS:
        base = cw.Scenario.from_toml(LEAF_SPINE + poisson("websearch", 0.5))
        scenario = base.with_({"transport": transport}, name=f"websearch at 0.5, {transport}")
        rows += errors(transport, "eight of a kind", of(scenario, "packet"), of(scenario, "links"))
    return pd.DataFrame(rows)


def table(frame: pd.DataFrame, what: str, head: str) -> list[str]:
    """A table of slowdowns by size, at packet level and by an estimate, and how far that is off."""
    lines = [f"| {head} | {' | '.join(SIZES)} |", f"| --- |{' ---: |' * len(SIZES)}"]
    for name, group in frame.groupby("scenario", sort=False):
        by_size = group.set_index("size")
        cells = []
        for size in SIZES:
            if size not in by_size.index:
                cells.append("")
                continue
            packet, links = (float(by_size.loc[size, f"{level} {what}"]) for level in ("packet", "links"))
            cells.append(f"{packet:.2f} / {links:.2f} ({links / packet - 1:+.1%})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def off(frame: pd.DataFrame, what: str) -> pd.Series[float]:
    """Signed errors."""
    return frame[f"links {what}"] / frame[f"packet {what}"] - 1


def summary(frame: pd.DataFrame) -> list[str]:
    """How far the estimates are off over all scenarios."""
    head = ("estimate", "size", "median error of the 99th percentile", "signed", "lowest", "highest", "within 9%")
    lines = [f"| {' | '.join(head)} | median error of the mean |", "| --- | --- |" + " ---: |" * 6]
    for way in (*WAYS, FLOW):
        for size in SIZES:
            rows = frame[(frame["way"] == way) & (frame["size"] == size)]
            tails, means = off(rows, "p99"), off(rows, "mean")
            within = f"{int((tails.abs() <= 0.09).sum())} of {len(rows)}"
            lines.append(
                f"| {way} | {size} | {tails.abs().median():.1%} | {tails.median():+.1%} | {tails.min():+.1%} | "
                f"{tails.max():+.1%} | {within} | {means.abs().median():.1%} |"
            )
    return lines


def speed(frame: pd.DataFrame) -> list[str]:
    """CPU time, and packets over links."""
    lines = [
        "| scenario | packet level, s | every link, s | eight of a kind, s | flow level, s | links simulated | "
        "packet-hops |"
    ]
    lines += ["| --- |" + " ---: |" * 6]
    for name, group in frame[frame["size"] == "all"].groupby("scenario", sort=False):
        by_way = group.set_index("way")
        own, alike, flow = (by_way.loc[way] for way in ("every link", "eight of a kind", FLOW))
        lines.append(
            f"| {name} | {own['packet s']:.1f} | {own['links s']:.1f} | {alike['links s']:.1f} | "
            f"{flow['links s']:.3f} | "
            f"{own['simulated']:.0f}, {alike['simulated']:.0f} | "
            f"{own['packet hops'] / 1e6:.0f} M, {own['links hops'] / 1e6:.0f} M, {alike['links hops'] / 1e6:.0f} M |"
        )
    return lines


def costs(frame: pd.DataFrame) -> list[str]:
    """As [`speed`], where not every link is simulated."""
    lines = []
    for name, group in frame[frame["size"] == "all"].groupby("scenario", sort=False):
        by_way = group.set_index("way")
        row, flow = by_way.loc["eight of a kind"], by_way.loc[FLOW]
        lines.append(
            f"| {name} | {row['packet s']:.1f} | | {row['links s']:.1f} | {flow['links s']:.3f} | "
            f"{row['simulated']:.0f} | {row['packet hops'] / 1e6:.0f} M, {row['links hops'] / 1e6:.0f} M |"
        )
    return lines


def picture(frame: pd.DataFrame) -> None:
    """Errors and what they cost, scenario by scenario."""
    titles = list(frame["scenario"].unique())
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6.4), sharey=True, width_ratios=(3, 2))
    looks = {
        "all": (GREY, "o"),
        "short": (BLUE, "s"),
        "medium": (ORANGE, "^"),
        "long": (RED, "D"),
    }
    own = frame[frame["way"] == "eight of a kind"]
    left.axvspan(-9, 9, color="0.92", zorder=0, label="9%: Parsimon's authors, against ns-3")
    for size, (colour, marker) in looks.items():
        rows = own[own["size"] == size]
        at = [titles.index(title) for title in rows["scenario"]]
        left.plot(off(rows, "p99") * 100, at, marker, color=colour, label=f"{size} flows", markersize=5)
    left.axvline(0, color="0.4", linewidth=0.8)
    left.set_xlabel("error of the 99th percentile of slowdown, %")
    left.set_yticks(range(len(titles)), titles)
    left.invert_yaxis()
    left.grid(axis="y", color="0.9")
    left.legend(loc="upper center", bbox_to_anchor=(0.3, 1.12), ncols=3, frameon=False, fontsize=8)
    for way, colour in (("every link", BLUE), ("eight of a kind", GREEN)):
        rows = frame[(frame["way"] == way) & (frame["size"] == "all")]
        ratio = rows["packet s"] / rows["links s"]
        right.plot(ratio, range(len(titles)), "o", color=colour, label=way, markersize=5)
    right.axvline(1, color="0.4", linewidth=0.8)
    right.set_xscale("log")
    right.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    right.minorticks_off()
    right.set_xlabel("times as fast as packet level, CPU time")
    right.grid(axis="y", color="0.9")
    right.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=2, frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Runs what has not been run, and writes the tables into the page."""
    frame, others = compared(scenarios(), WAYS), transports()
    larger = compared(large(), {"eight of a kind": {}})
    own, big = (of[of["way"] == "eight of a kind"] for of in (frame, larger))
    flow = pd.concat([of[of["way"] == FLOW] for of in (frame, larger)])
    lines = ["![Error and speed of estimates by single links](links.png)", ""]
    lines += [*summary(frame), "", "99th percentile of slowdown, packet level / by links (error):", ""]
    lines += [*table(own, "p99", "scenario"), *table(big, "p99", "scenario")[2:], ""]
    lines += ["Mean slowdown:", "", *table(own, "mean", "scenario"), *table(big, "mean", "scenario")[2:], ""]
    lines += [
        "99th percentile of slowdown, packet level / flow level (error):",
        "",
        *table(flow, "p99", "scenario"),
        "",
    ]
    lines += ["Mean slowdown:", "", *table(flow, "mean", "scenario"), ""]
    lines += ["99th percentile over other transports, leaf-spine, websearch at 0.5:", ""]
    lines += [*table(others, "p99", "transport"), "", "Mean:", "", *table(others, "mean", "transport"), ""]
    lines += ["CPU seconds, links simulated, and packets over links:", ""]
    lines += [*speed(frame), *costs(larger), ""]
    commit = f"commit {_core.COMMIT}, seed 1, one thread, {platform.machine()}"
    lines += [f"`python examples/links/error.py` at {commit}.", ""]
    marked.put(PAGE, "error", "\n".join(lines))
    picture(frame)
    print(f"p99 of all flows: {np.median(off(own[own['size'] == 'all'], 'p99').abs()):.1%} off in the median")


if __name__ == "__main__":
    main()
