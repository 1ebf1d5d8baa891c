"""Pyrrha's thresholds, and its use of a switch's memory (NSDI 2025, figures 27 to 31 and tables 4 to 7)."""

from __future__ import annotations

import pandas as pd

from clearway import _core
from clearway.papers.figures import Shown, draw

from .evaluation import SIZES, eight
from .held import against_paper
from .scenes import by_size, fct, keys, lines, mix, queueing

K_PAUSE = (1, 2, 5, 10, 20, 35, 50, 100)

K_RESUME = (0.5, 1, 2, 5, 10)


def sweep(parameter: str, values: tuple[float, ...], label: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Completion times and queueing by hop of vulnerable Memcached flows over a parameter."""
    # False roots there are only while the incast begins; "30 us later" is 30 us after that.
    early = {} if label == "30 us later" else {f"traffic.{index}.start": "1us" for index in (1, 2, 3)}
    rows, hops = {}, {}
    for value in values:
        k_pause, k_resume = (float(value), 1.0) if parameter == "K_pause" else (10.0, float(value))
        pyrrha = {"k_pause": k_pause, "k_resume": k_resume, "merging": label != "no merging"}
        result = mix(
            "Memcached", "Pyrrha", f"{parameter} {value:g} {label}", {**early, "flow_control": {"pyrrha": pyrrha}}
        )
        rows[value], hops[value] = fct(result).loc["vulnerable"], queueing(result).loc["vulnerable"]
    return pd.DataFrame(rows).T, pd.DataFrame(hops).T


def figure_27() -> Shown:
    """99th percentile in us of the completion times of vulnerable Memcached flows, by K_pause and K_resume."""
    swept = (("K_pause", K_PAUSE), ("K_resume", K_RESUME))
    tables = {
        parameter: pd.DataFrame(
            {label: sweep(parameter, values, label)[0]["p99"] for label in ("merging", "no merging", "30 us later")}
        )
        for parameter, values in swept
    }
    pause, resume = tables["K_pause"], tables["K_resume"]
    flat = pause.loc[2:35, "30 us later"]
    checks = {
        "flat for K_pause from 2 to 35, 30 us after the incast's start: "
        f"within {flat.max() / flat.min():.2f} times": bool(flat.max() < 1.25 * flat.min()),
        "higher at K_pause 100": bool(pause.loc[100, "30 us later"] > 1.25 * flat.min()),
        "without merging higher between 2 and 35": bool(
            (pause.loc[2:35, "no merging"] > 1.05 * pause.loc[2:35, "merging"]).any()
        ),
        f"with merging flat over K_resume: within {resume['merging'].max() / resume['merging'].min():.2f} times": bool(
            resume["merging"].max() < 1.25 * resume["merging"].min()
        ),
    }
    panels = [
        lines(f"Vulnerable flows, {parameter}", table, f"{parameter} (one-hop BDP)", "99th percentile (us)", log_x=True)
        for parameter, table in tables.items()
    ]
    note = (
        "The paper prints curves and no number: where they are flat and where they rise has bounds of ours, both ways."
    )
    return Shown(pd.concat(tables), checks, draw(panels, sharey=True), note=note)


def figure_28() -> Shown:
    """Mean queueing time in us of vulnerable Memcached flows at each hop, by K_pause and K_resume."""
    swept = (("K_pause", K_PAUSE), ("K_resume", K_RESUME))
    waits = {
        (parameter, label): sweep(parameter, values, label)[1]
        for parameter, values in swept
        for label in ("no merging", "merging")
    }
    resume = {label: waits["K_resume", label].sum(axis=1) for label in ("no merging", "merging")}
    source = {label: waits["K_pause", label]["SrcToR"] for label in ("no merging", "merging")}
    checks = {
        "without merging queueing grows as K_resume falls": bool(
            waits["K_resume", "no merging"]["SrcToR"].is_monotonic_decreasing
        ),
        "with merging K_resume changes nothing, within 5%": bool(
            resume["merging"].max() < 1.05 * resume["merging"].min()
        ),
        "without merging flows queue behind false roots at the source's ToR": bool(
            (source["no merging"].loc[1:10] > 5 * source["merging"].loc[1:10]).all()
        ),
    }
    panels = [
        lines(f"{parameter}, {label}", frame, f"{parameter} (one-hop BDP)", "queueing (us)", log_y=False, log_x=True)
        for (parameter, label), frame in waits.items()
    ]
    note = "The paper prints curves and no number; what it says of them has bounds of ours."
    return Shown(pd.concat(waits), checks, draw(panels, 2, sharey=True), note=note)


def figure_29() -> Shown:
    """Pyrrha for downstream roots only, as in the paper and as in the authors' program, on a fat-tree with k = 8:
    completion times in us by flow size."""
    downstream = {"flow_control": {"pyrrha": {"roots": "downstream", "tiers": "single"}}}
    # Their program for this figure: ports down alone are roots, in a hierarchy of queues.
    published = {"flow_control": {"pyrrha": {"departures": "published"}}}
    published_down = {"flow_control": {"pyrrha": {"departures": "published", "roots": "down"}}}
    above_mean = {"departures": ["uplinks_above_mean", "merge_at_down_ports", "pause_by_ingress"]}
    ours = keys("DCQCN + Pyrrha")
    results = {
        "DCQCN + PFC": eight("DCQCN PFC", keys("DCQCN + PFC")),
        "DCQCN + Pyrrha": eight("DCQCN Pyrrha", ours),
        "DCQCN + Pyrrha (downstream)": eight("DCQCN Pyrrha downstream", {**ours, **downstream}),
        "published": eight("DCQCN Pyrrha published", {**ours, **published}),
        "published (down)": eight("DCQCN Pyrrha published down", {**ours, **published_down}),
        "published, uplinks above mean": eight(
            "DCQCN Pyrrha above mean", {**ours, "flow_control": {"pyrrha": above_mean}}
        ),
    }
    tables = {name: by_size(result, ["poisson"], SIZES) for name, result in results.items()}
    means, tails = (pd.DataFrame({name: table[column] for name, table in tables.items()}) for column in ("mean", "p99"))
    checks = {}
    for less, all_of_it in (("DCQCN + Pyrrha (downstream)", "DCQCN + Pyrrha"), ("published (down)", "published")):
        small = tails.iloc[:3]
        checks[f"{less}: higher 99th percentiles than {all_of_it} up to 100 KB"] = bool(
            (small[less] >= small[all_of_it]).all()
        )
        checks[f"{less}: lower ones than DCQCN over PFC"] = bool((small[less] < small["DCQCN + PFC"]).all())
    return Shown(
        pd.concat({"mean": means, "p99": tails}),
        checks,
        draw(
            [lines("Mean", means, "size up to", "FCT (us)"), lines("99th percentile", tails, "size up to", "FCT (us)")]
        ),
        note="The paper prints curves and no number, only which of them is higher, up to 100 KB.",
    )


# Part, k, name, and the paper's MB of 2^20 bytes; tables give blocks of 16 KB.
RESOURCES = [
    ("path calculation, full optimization", 36, "path_full", 0.44),
    ("path calculation, full optimization", 128, "path_full", 8.7),
    ("congestion root table", 36, "root_table", 176 / 1024),
    ("queue assignment, single tier", 36, "queues_single_tier", 8.64),
    ("queue assignment, hierarchical", 128, "queues_hierarchical", 2.2),
    ("Table 4: all of the prototype", 36, "total_full_single_tier", 712 / 64),
    ("Table 5: all, hierarchical, regular addresses", 128, "total_regular_hierarchical", 294 / 64),
    ("Table 6: all, hierarchical, irregular", 96, "total_full_hierarchical", 450 / 64),
    ("Table 7: all, hierarchical, irregular", 128, "total_full_hierarchical", 845 / 64),
]


def tables_4_to_7() -> Shown:
    """SRAM on Tofino2, in MB of 2^20 bytes."""
    rows = {
        f"{part}, k = {k}": {"paper": paper, "ours": _core.pyrrha_resources(k)[name] / 2**20}
        for part, k, name, paper in RESOURCES
    }
    table = pd.DataFrame(rows).T
    rows_held = [(str(part), "MB of SRAM", row["ours"], row["paper"], 0.1) for part, row in table.iterrows()]
    return Shown(table, held=[against_paper("pyrrha", "tables 4 to 7", rows_held)])


CURVES = {
    "path": ("path_no_optimization", "path_up_down", "path_equal_path", "path_full"),
    "roots": ("root_table",),
    "queues": ("queues_single_tier", "queues_hierarchical"),
}

# The text's numbers on figure 31: k, curve, and MB of 2^20 bytes (appendix E.1 to E.3).
ON_CURVES = [
    (24, "path_no_optimization", 12.6),
    (28, "path_up_down", 14.1),
    (36, "path_equal_path", 2.56),
    (36, "path_full", 0.44),
    (128, "path_full", 8.7),
    (36, "root_table", 176 / 1024),
    (128, "root_table", 0.44),
    (36, "queues_single_tier", 8.64),
    (128, "queues_hierarchical", 2.2),
]


def figure_31() -> Shown:
    """SRAM in MB of 2^20 bytes, by the size of a fat-tree: path calculation, congestion root table, queue
    assignment."""
    ks = range(8, 129, 4)
    names = [name for curve in CURVES.values() for name in curve]
    sizes = {k: _core.pyrrha_resources(k) for k in ks}
    table = pd.DataFrame({name: {k**3 // 4: sizes[k][name] / 2**20 for k in ks} for name in names}).rename_axis("hosts")
    rows = [(f"k = {k}", name, sizes[k][name] / 2**20, paper, 0.1) for k, name, paper in ON_CURVES]
    panels = [lines(title, table[list(curve)], "hosts", "MB", log_x=True) for title, curve in CURVES.items()]
    return Shown(table, {}, draw(panels), [against_paper("pyrrha", "appendix E, MB of SRAM", rows)])
