"""The figures of Harmony's evaluation (NSDI 2024, section 5), the paper's numbers beside ours.

A load counts payload; a search for the maximum sustainable load says how long messages arrive and of what seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import clearway as cw
from clearway import harmony
from clearway.papers import figures
from clearway.papers.figures import Shown, cell, draw, part, row

from . import setting
from .setting import DELTA_US, SPREAD, K, lasting, reserving, run, spread, sustain, table_of

# Of virtual links, and of delta_admission in us: 63 us of a link have room for six RPCs of 128 KB.
LINKS = (2, 4, 8, 16)

DELTAS: Sequence[float] = (63, 126, 252)

LONGER_US = 126

# The loads that a search chooses from.
SEARCH: dict[str, Any] = {"low": 0.05, "high": 0.95, "resolution": 0.05}

LOADS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def parameters_of(k: int, delta_us: float, scheme: str = "harmony", **more: Any) -> tuple[str, dict[str, Any]]:
    """A run's name and keys; K = 1 is the catalogue's `rsvp`."""
    name = " ".join(
        [
            f"{scheme} K {k} delta {delta_us:g}" if scheme == "harmony" else f"{scheme} delta {delta_us:g}",
            *map(str, more.values()),
        ]
    )
    if scheme == "harmony" and k == 1:
        keys = reserving("rsvp", delta_us=delta_us, **more)
    else:
        keys = reserving(scheme, k=k, delta_us=delta_us, **more)
    return name, keys


def region(
    scenario: str, grid: Sequence[tuple[str, int, float]], us: float, **search: Any
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """The maximum sustainable load of each scheme, K and delta_admission, and each scheme's feasibility region: its
    edge over all runs in which no message was rejected."""
    rows, points = [], []
    for scheme, k, delta_us in grid:
        name, keys = parameters_of(k, delta_us, scheme)
        found = sustain(scenario, name, {**keys, **lasting(us)}, **search)
        runs = found.runs[found.runs["holds"].astype(bool)].assign(scheme=scheme, K=k, delta=delta_us)
        points.append(runs)
        best = runs[runs["load"] == found.load]
        rows.append(
            {
                "scheme": scheme,
                "K": k if scheme == "harmony" else "",
                "delta us": delta_us,
                "load": found.load,
                "delay max us": best["delay max us"].max(),
                "slowdown max": best["slowdown max"].max(),
                "messages": int(best["flows"].sum()),
            }
        )
    held = pd.concat(points).astype({"load": float, "slowdown max": float, "delay max us": float})
    schemes = list(dict.fromkeys(scheme for scheme, _, _ in grid))
    target = "delay max us" if scenario == "testbed" else "slowdown max"
    edges = {scheme: setting.envelope(held[held["scheme"] == scheme], target) for scheme in schemes}
    return pd.DataFrame(rows).set_index(["scheme", "K", "delta us"]), edges


def message_bound_us(
    result: cw.Result, k: int, delta_us: float, rate_gbps: float, switches: int, size: int = 128_000
) -> float:
    """The most from a message's arrival to its delivery, with one slot all along: its request's way,
    delta_admission, and from rsvp to complete."""
    rtt_us = float(result.info["data_rtt_ps"]) / 1e6
    wire = size + 40 * -(-size // 1460)
    sending = harmony.message_delay_max_us(
        wire, k=k, switches=switches, rate_gbps=rate_gbps, unloaded_rtt_us=rtt_us, service=setting.service
    )
    return rtt_us + delta_us + sending


def figure_5b() -> Shown:
    """Testbed: maximum sustainable load and worst observed delay, by K and delta_admission."""
    grid = [("harmony", k, delta) for k in (1, *LINKS) for delta in (630, 1260, 2520)]
    table, edges = region("testbed", grid, 50_000, **SEARCH)
    default = run(
        "testbed", "at 0.8", {**parameters_of(K, 630)[1], "traffic.0.arrivals.poisson.load": 0.8, **lasting(50_000)}
    )
    bound = message_bound_us(default, K, 630, 10, 3)
    at = row(table, ("harmony", K, 630))
    loads = pd.DataFrame(table["load"].unstack("delta us")).droplevel("scheme")
    checks = {
        f"the worst delay at K = 8 is within its bound: {at['delay max us']:.0f} of {bound:.0f} us": at["delay max us"]
        <= bound,
        "a larger delta_admission sustains more, or as much": bool(
            (loads.diff(axis=1).iloc[:, 1:] >= -0.051).all(axis=None)
        ),
        "more virtual links sustain more, from 1 to 8": bool(row(loads, 8).mean() > row(loads, 1).mean()),
    }
    panel = setting.regions("Testbed, 128 KB RPCs", edges, "delay max us", "worst delay (us)", bound)
    return Shown(table, checks, draw([panel]), note="The paper prints regions and no number.")


def figure_5c() -> Shown:
    """Testbed: delays of messages and longest waits in switches by load, beside their bounds."""
    rows = {}
    for load in LOADS:
        result = run(
            "testbed",
            f"at {load:g}",
            {**parameters_of(K, 630)[1], "traffic.0.arrivals.poisson.load": load, **lasting(50_000)},
        )
        rows[load] = pd.concat(
            [
                spread(result, column="fct_ps") / 1e6,
                setting.waits_us(result),
                pd.Series({"rejected": setting.rejected(result)}),
            ]
        )
    table = table_of(rows, "load")
    bound = message_bound_us(result, K, 630, 10, 3)
    table["bound"] = bound
    checks = {
        f"no delay above the bound: at most {table['max'].max():.0f} of {bound:.0f} us": bool(
            (table["max"] <= bound).all()
        ),
        f"no wait above what is proven: at most {table['wait max'].max():.1f} "
        f"of {table['wait bound'].max():.1f} us": bool((table["wait max"] <= table["wait bound"]).all()),
    }
    spreads = {f"{load:g}": row[SPREAD] for load, row in table.iterrows()}
    waits = table[["wait max", "wait bound"]]
    panels = [
        setting.whiskers("Delays over load", spreads, "us", bound),
        setting.lines("Longest wait in switches", waits, "load", "us"),
    ]
    note = "The paper prints spreads and no number: delays and waits are held against what is proven of them."
    return Shown(table, checks, draw(panels), note=note)


SIZES_5D = (2, 4, 8, 16, 32, 64, 128)
SHOWN_5D = (0.4, 0.65, 0.9)
# Section 5.1: "as high as 0.9 load for 128KB RPCs, and 0.65 load for 8KB RPCs".
SUSTAINED_5D = {8: 0.65, 128: 0.9}
STEP_5D = 0.05


def figure_5d() -> Shown:
    """Testbed with one bound on delay for all RPC sizes: messages that Harmony and ideal matching (Fastpass) reject,
    and the highest load, in steps of 0.05, at which Harmony rejects none."""
    rows = {}
    # The values of 128 KB with delta_admission 630 us.
    most = 630 + sending_us(128)
    for kb in SIZES_5D:
        for scheme in ("harmony", "fastpass"):
            for load in SHOWN_5D:
                rows[(kb, scheme, load)] = _rejected_5d(kb, scheme, load, most)
    for kb in SUSTAINED_5D:
        for load in np.round(np.arange(SHOWN_5D[0] + STEP_5D, 1.0, STEP_5D), 2):
            if load not in SHOWN_5D:
                rows[(kb, "harmony", float(load))] = _rejected_5d(kb, "harmony", float(load), most)
    table = table_of(rows, ["KB", "scheme", "load"])
    of_shown = table[table.index.get_level_values("load").isin(SHOWN_5D)]
    share = of_shown["share %"].unstack(["scheme", "load"])
    ours = pd.DataFrame(table.xs("harmony", level="scheme"))
    highest = [_sustained_5d(part(ours, kb).loc[list(SHOWN_5D)]) for kb in SIZES_5D]
    checks = {
        f"no delay above {most:.0f} us: at most {ours['worst us'].max():.0f}": bool((ours["worst us"] <= most).all()),
        "larger RPCs sustain more": highest == sorted(highest),
    }
    rows_held = pd.DataFrame(
        [
            (f"{kb} KB, delay up to {most:.0f} us", "sustained load", _sustained_5d(part(ours, kb)), theirs, 0.1)
            for kb, theirs in SUSTAINED_5D.items()
        ],
        columns=list(figures.Held.COLUMNS),
    )
    held = [figures.Held("harmony", "Figure 5d: sustained loads on the testbed", "paper", rows_held, "1 to 3")]
    columns = share.drop(columns=0.4, level="load")
    pairs = zip(columns.columns.get_level_values("scheme"), columns.columns.get_level_values("load"))
    columns.columns = [f"{'Harmony' if scheme == 'harmony' else 'ideal'}, {load:g}" for scheme, load in pairs]
    return Shown(
        table,
        checks,
        draw([setting.lines(f"Testbed, delay bound {most:.0f} us", columns, "RPC (KB)", "% rejected", log_x=True)]),
        held,
    )


def _sustained_5d(by_load: pd.DataFrame) -> float:
    """The highest load up to which none is rejected; 0 if the lowest has some."""
    held = 0.0
    for load, rejected in by_load["rejected"].sort_index().items():
        if rejected:
            break
        held = float(str(load))
    return held


def _rejected_5d(kb: int, scheme: str, load: float, most: float) -> pd.Series[float]:
    """The share of RPCs of one size that a scheme rejects at a load, over three seeds."""
    # The rest of the bound, beside the time of the message in one slot, is delta_admission's.
    delta = round(most - sending_us(kb))
    rejected = of = 0
    worst = 0.0
    for seed in (1, 2, 3):
        name, keys = parameters_of(K, delta, scheme)
        more = {"traffic.0.sizes.constant": f"{kb}KB", "traffic.0.arrivals.poisson.load": load, "seed": seed}
        # As many messages of each size, but enough arrivals that delta_admission is not most of them.
        us = min(max(20_000, 400 * kb), 50_000)
        result = run("testbed", f"{name} {kb} KB at {load:g} seed {seed}", {**keys, **lasting(us), **more})
        rejected, of = rejected + setting.rejected(result), of + len(result.flows)
        worst = max(worst, spread(result, column="fct_ps")["max"] / 1e6)
    low, high = setting.interval(rejected, of)
    return pd.Series(
        {
            "delta us": delta,
            "rejected": rejected,
            "of": of,
            "share %": 100 * rejected / of,
            "from %": 100 * low,
            "to %": 100 * high,
            "worst us": worst,
        }
    )


def sending_us(kb: float) -> float:
    """The testbed's bound but for delta_admission: the request's way, and from rsvp to complete in one slot."""
    size = round(kb * 1000)
    wire = size + 40 * -(-size // 1460)
    rtt_us = 4 * (1500 + 40) * 8e-3 / 10 + 2 * (4 * 0.2 + 3 * 0.45)
    return rtt_us + harmony.message_delay_max_us(
        wire, k=K, switches=3, rate_gbps=10, unloaded_rtt_us=rtt_us, service=setting.service
    )


def grid_6a() -> list[tuple[str, int, float]]:
    """Scheme, K and delta_admission of each point of figure 6a."""
    return [("harmony", k, delta) for k in LINKS for delta in DELTAS] + [("fastpass", 0, delta) for delta in DELTAS]


def figure_6a() -> Shown:
    """Feasibility regions of Harmony and Fastpass: sustained load and worst slowdown, by K and delta_admission."""
    table, edges = region("leaf-spine", grid_6a(), 1_000, **SEARCH)
    checks = {}
    for limit in (6, 9, 12, 15, 20):
        ours, theirs = (setting.reached(edges[name], "slowdown max", limit) for name in ("harmony", "fastpass"))
        # "Closely matches": a tenth, or one step of the search where that is more, either way.
        near = max(0.1 * theirs, SEARCH["resolution"]) + 1e-9
        said = (
            f"worst slowdown up to {limit}: Harmony {ours:.2f} and Fastpass {theirs:.2f} match, a tenth or a step apart"
        )
        checks[said] = bool(theirs > 0 and abs(ours - theirs) <= near)
    picture = draw([setting.regions("144 hosts, 128 KB RPCs", edges, "slowdown max", "worst slowdown")])
    note = "The paper prints no number: Harmony's region \"closely matches\" Fastpass's, from both sides."
    return Shown(table, checks, picture, note=note)


def at_load(load: float, us: float = 2_000) -> dict[str, cw.Result]:
    """Harmony and Fastpass with the paper's parameters at a load."""
    results = {}
    for label, scheme, k in (("Harmony", "harmony", K), ("Harmony, K = 4", "harmony", 4), ("Fastpass", "fastpass", K)):
        name, keys = parameters_of(k, DELTA_US, scheme)
        results[label] = run(
            "leaf-spine", f"{name} at {load:g}", {**keys, **lasting(us), "traffic.0.arrivals.poisson.load": load}
        )
    return results


def figure_6b() -> Shown:
    """Slowdown spread of Harmony and Fastpass, and number of rejected messages."""
    rows = {
        (load, name): pd.concat(
            [spread(result), pd.Series({"rejected": setting.rejected(result), "of": len(result.flows)})]
        )
        for load in (0.3, 0.4, 0.5, 0.6, 0.8)
        for name, result in at_load(load).items()
    }
    table = table_of(rows, ["load", "scheme"])
    ratios = pd.DataFrame(table.xs("Harmony", level=1) / table.xs("Fastpass", level=1))
    # The paper does not say at which load, so that it must hold at each.
    said = [
        (f"load {load:g}", f"{column} slowdown / Fastpass's", cell(ratios, load, column), theirs, 0.25)
        for load in ratios.index
        for column, theirs in (("mean", 2.0), ("p99", 1.3))
    ]
    rows_held = pd.DataFrame(said, columns=list(figures.Held.COLUMNS))
    held = [figures.Held("harmony", "section 5.2: beside Fastpass", "paper", rows_held)]
    panels = [
        setting.whiskers(
            f"load {load:g}",
            {name: row(table, (load, name)) for name in dict.fromkeys(table.index.get_level_values(1))},
            "slowdown",
        )
        for load in (0.4, 0.6)
    ]
    return Shown(table, {}, draw(panels, sharey=True), held)


def where(result: cw.Result) -> pd.Series[float]:
    """Where the mean RPC's time goes, in us; the wait until it begins is that of probes."""
    times = pd.DataFrame({column: result.flows[column].astype(float) / 1e6 for column in SPENT})
    mean = times.groupby(np.asarray(result.flows["class"])).mean()
    rpcs, begins = row(mean, "rpcs"), cell(mean, "probes", "wait_ps")
    return pd.Series(
        {
            "until it begins": begins,
            "until the last packet leaves": rpcs["wait_ps"] - begins,
            "queueing": rpcs[["queued_up_ps", "queued_down_ps", "queued_last_ps"]].sum(),
            "unloaded path": rpcs[["serialised_ps", "propagation_ps"]].sum(),
        }
    )


SPENT = ["wait_ps", "queued_up_ps", "queued_down_ps", "queued_last_ps", "serialised_ps", "propagation_ps"]


def figure_6c() -> Shown:
    """Mean completion time of an RPC, in us, split into waiting for admission, sending, queueing and the unloaded
    path."""
    rows = {}
    for load in (0.5, 0.6, 0.7, 0.8):
        for label, scheme in (("Harmony", "harmony"), ("Fastpass", "fastpass")):
            name, keys = parameters_of(K, DELTA_US, scheme)
            both = {f"traffic.{index}.duration": f"{2_000 * setting.scale:g}us" for index in (0, 1)}
            result = run("probes", f"{name} at {load:g}", {**keys, **both, "traffic.0.arrivals.poisson.load": load})
            rows[(load, label)] = where(result)
    table = table_of(rows, ["load", "scheme"])
    ours, theirs = (pd.DataFrame(table.xs(name, level=1)) for name in ("Harmony", "Fastpass"))
    checks = {
        "Fastpass queues nowhere": bool((theirs["queueing"] < 0.05).all()),
        f"Harmony queues a little: at most {ours['queueing'].max():.2f} us, a twentieth of the mean completion": bool(
            (ours["queueing"] < 0.05 * ours.sum(axis=1)).all()
        ),
        "a message begins earlier with Harmony": bool((ours["until it begins"] < theirs["until it begins"]).all()),
    }
    panels = [
        setting.bars(f"load {load:g}", pd.DataFrame(table.xs(load, level=0)), "mean completion (us)", stacked=True)
        for load in (0.6, 0.8)
    ]
    note = "The paper prints bars and no number; what it says of them has bounds of ours."
    return Shown(table, checks, draw(panels, sharey=True), note=note)


# Figure 7: what carries both, or what is beneath Harmony.
DCPIM = {"dcpim": {"departures": "paper"}}

BESIDE: dict[str, dict[str, Any]] = {
    "HPCC": {"transport": "hpcc", "traffic.1.transport": "hpcc"},
    "dcPIM": {"transport": DCPIM, "traffic.1.transport": DCPIM},
    "Harmony, dcPIM": {"traffic.1.transport": DCPIM},
    "Harmony, DCTCP": {"traffic.1.transport": "dctcp"},
    "Harmony, HPCC": {"traffic.1.transport": "hpcc"},
}

# The subject of the checks: web search beneath Harmony in the scenario's own transport, whichever metric is looked at.
BENEATH = "Harmony, dcPIM"
# "Significantly better" is a tenth at least.
SIGNIFICANT = 0.9
MIXES = ((0.3, 0.3), (0.4, 0.2), (0.5, 0.1))


def beside(scheme: str, rpcs: float, web: float) -> tuple[str, dict[str, Any]]:
    """The name and keys of a run of RPCs above web search, at these loads."""
    us = 2_000 * setting.scale
    both: dict[str, Any] = {f"traffic.{index}.duration": f"{us:g}us" for index in (0, 1)}
    loads = {"traffic.0.arrivals.poisson.load": rpcs, "traffic.1.arrivals.poisson.load": web}
    if scheme.startswith("Harmony") and setting.in_service():
        both["transport"] = {"harmony": setting.in_service()}
    return f"{scheme} {rpcs:g} and {web:g}", {**both, **loads, **BESIDE[scheme]}


def figure_7() -> Shown:
    """RPCs above web search of lower priority: web search's maximum sustainable load, RPCs' slowdown spread, web
    search's mean and tail slowdown."""
    rows = {}
    for rpcs, web in MIXES:
        for scheme in BESIDE:
            name, sets = beside(scheme, rpcs, web)
            result = run("beside", name, sets)
            ours = spread(result).add_prefix("rpcs ")
            theirs = spread(result, "web search")[["mean", "p99"]].add_prefix("web ")
            found = sustain(
                "beside",
                f"{scheme} {rpcs:g}",
                sets,
                traffic="web search",
                seeds=(1,),
                low=0.1,
                high=0.7,
                resolution=0.1,
            )
            more = {"web sustained": found.load or 0.0, "rejected": setting.rejected(result)}
            rows[(f"{rpcs:g}+{web:g}", scheme)] = pd.concat([ours, theirs, pd.Series(more)])
    table = table_of(rows, ["load", "scheme"])
    checks = {}
    for mix in dict.fromkeys(table.index.get_level_values(0)):
        of = table.loc[mix]
        ours = of.loc[BENEATH]
        for rival in ("HPCC", "dcPIM"):
            theirs = of.loc[rival]
            for column, words in (
                ("rpcs p99.9", "RPCs' 99.9th percentile"),
                ("web mean", "web search's mean"),
                ("web p99", "web search's 99th percentile"),
            ):
                numbers = f"{ours[column]:.2f} to {theirs[column]:.2f}"
                said = f"{mix}: {words} is a tenth or more below {rival}'s: {numbers}"
                checks[said] = bool(ours[column] <= SIGNIFICANT * theirs[column])
            sustained = f"{ours['web sustained']:.1f} and {theirs['web sustained']:.1f}"
            said = f"{mix}: web search sustains as much beneath Harmony as with {rival}: {sustained}"
            checks[said] = bool(ours["web sustained"] >= theirs["web sustained"])
    names = list(BESIDE)
    by_mix = {column: table[column].unstack("scheme")[names] for column in ("web sustained", "web mean", "web p99")}
    mixes = list(by_mix["web mean"].index)
    panels = [setting.bars("Web search, sustained load", by_mix["web sustained"], "load")]
    panels += [
        setting.whiskers(
            f"RPCs, {mix}",
            {name: row(table, (mix, name)).filter(like="rpcs ").rename(lambda key: key[5:]) for name in names},
            "slowdown",
        )
        for mix in mixes
    ]
    panels += [setting.bars(f"Web search, {column}", by_mix[f"web {column}"], "slowdown") for column in ("mean", "p99")]
    note = "The paper prints bars and no number, only which of them is lower."
    return Shown(table, checks, draw(panels, 3), note=note)


def figure_8a() -> Shown:
    """RPC sizes from 0.5 to 512 KB: sustained load, and worst delay in unloaded round trips, by K and
    delta_admission."""
    rows = {}
    # So long do messages arrive. A slot is idle for a round trip between two messages, so small ones need more of them.
    for kb, us, links in (
        (0.5, 300, (K, 32)),
        (1, 300, (K, 32)),
        (4, 500, (K, 32)),
        (16, 1_000, (K,)),
        (64, 1_000, (K,)),
        (128, 1_000, (K,)),
        (512, 3_000, (K,)),
    ):
        for k, delta in ((k, delta) for k in links for delta in (32, 63, 126, 252)):
            # A delta_admission has room for two, and arrivals last for two.
            if kb * 8e3 / 1e5 * 2 > delta or delta * 1.9 > us:
                continue
            name, keys = parameters_of(k, delta)
            sets = {**keys, **lasting(us), "traffic.0.sizes.constant": f"{kb * 1000:g}B"}
            found = sustain("leaf-spine", f"{name} {kb:g} KB", sets, **SEARCH)
            sustained = found.runs[found.runs["holds"].astype(bool)].sort_values("load")
            at_half = sustained[sustained["load"] >= 0.5]["delay max us"]
            rows[(kb, k, delta)] = pd.Series(
                {
                    "load": found.load or 0.0,
                    "worst / RTT": sustained["delay max us"].iloc[-1] / RTT_US if len(sustained) else np.nan,
                    "worst / RTT at 0.5": at_half.min() / RTT_US if len(at_half) else np.nan,
                }
            ).astype(float)
    table = table_of(rows, ["KB", "K", "delta us"])
    targets = table["worst / RTT at 0.5"].groupby(["KB", "K"]).min()
    loads = table["load"].groupby(["KB", "K"]).max()
    checks = {
        f"4 KB at load 0.5 take {targets[4.0].loc[K]:.0f} unloaded round trips at worst, "
        f"and fewer with K = 32: {targets[4.0].loc[32]:.0f}": bool(targets[4.0].loc[32] < targets[4.0].loc[K]),
        "K = 8: small RPCs sustain less": bool(loads[0.5].loc[K] <= loads[4.0].loc[K] <= loads[128.0].loc[K]),
    }
    edges = {
        f"{kb:g} KB": setting.envelope(frame.reset_index().dropna(subset=["worst / RTT"]), "worst / RTT")
        for kb, frame in table.groupby("KB")
        if frame["load"].max() > 0
    }
    said = [("4 KB, load 0.5, K = 8", "worst delay / unloaded RTT", targets[4.0].loc[K], 20.0, 0.25)]
    held = [
        figures.Held(
            "harmony",
            "Figure 8a: the delay that 4 KB need at load 0.5",
            "paper",
            pd.DataFrame(said, columns=list(figures.Held.COLUMNS)),
            "1, 2",
        )
    ]
    return Shown(
        table,
        checks,
        draw([setting.regions("RPC sizes", edges, "worst / RTT", "worst delay / unloaded round trip")]),
        held,
    )


# The leaf-spine's, a full packet one way and a control packet back.
RTT_US = 4.6

SPINES = {
    "4 x 400G": {},
    "16 x 100G": {"fabric.leaf_spine.spines": 16, "fabric.leaf_spine.spine_rate": "100Gbps"},
}


def figure_8b() -> Shown:
    """Oversubscription 1:1, 2:1 and 4:1: maximum sustainable load as a share of the core's rate, slowdowns, and the
    bound on waits in switches."""
    rows = {}
    name, keys = parameters_of(K, DELTA_US)
    for spines, more in SPINES.items():
        for ratio in (1, 2, 4):
            sets = {**keys, **lasting(1_000), **more, "fabric.leaf_spine.oversubscription": float(ratio)}
            label = f"{name} {spines} {ratio} to 1"
            found = sustain("leaf-spine", label, sets, low=0.05 / ratio, high=1.0 / ratio, resolution=0.05 / ratio)
            load = 0.6 / ratio
            result = run("leaf-spine", f"{label} at 0.6", {**sets, "traffic.0.arrivals.poisson.load": load})
            rows[(spines, f"{ratio}:1")] = pd.concat(
                [pd.Series({"sustained": (found.load or 0.0) * ratio}), spread(result), setting.waits_us(result)]
            )
    table = table_of(rows, ["spines", "oversubscription"])
    checks = {}
    for spines in SPINES:
        of = table.loc[spines]
        checks[
            f"{spines}: bounds on waits are near-identical, within 10%: "
            f"{', '.join(f'{bound:.1f}' for bound in of['wait bound'])} us"
        ] = bool(of["wait bound"].max() < 1.1 * of["wait bound"].min())
        checks[
            f"{spines}: a slower core sustains as large a share of its rate: "
            f"{', '.join(f'{load:.2f}' for load in of['sustained'])}"
        ] = bool(of["sustained"].min() >= of.loc["1:1", "sustained"])
    panels = [
        setting.whiskers(
            f"{spines}, load 0.6 of the core",
            {str(ratio): row[SPREAD] for ratio, row in table.loc[spines].iterrows()},
            "slowdown",
        )
        for spines in SPINES
    ]
    panels.append(setting.bars("Bound on waits", table["wait bound"].unstack("spines"), "us"))
    note = 'The paper prints no number: bounds are "near-identical", loads "similar".'
    return Shown(table, checks, draw(panels), note=note)


def figure_8c() -> Shown:
    """Leaf-spine with 144 hosts and fat-tree with 1,024 hosts: maximum sustainable load and slowdowns."""
    rows = {}
    name, keys = parameters_of(K, DELTA_US)
    for fabric in ("leaf-spine", "fat-tree"):
        sets = {**keys, **lasting(300)}
        found = sustain(fabric, f"{name} 300 us", sets, **SEARCH)
        result = run(fabric, f"{name} 300 us at 0.6", {**sets, "traffic.0.arrivals.poisson.load": 0.6})
        more = {
            "sustained": found.load or 0.0,
            "rejected at 0.6": setting.rejected(result),
            "messages": len(result.flows),
        }
        rows[fabric] = pd.concat([pd.Series(more), spread(result), setting.waits_us(result)])
    table = table_of(rows, "fabric")
    large, small = row(table, "fat-tree"), row(table, "leaf-spine")
    checks = {
        f"none rejected on 1,024 hosts at load 0.6, of {large['messages']:,.0f}": bool(large["rejected at 0.6"] == 0),
        f"the fat-tree sustains {large['sustained']:.2f}, the leaf-spine {small['sustained']:.2f}": bool(
            large["sustained"] >= 0.8 * small["sustained"]
        ),
        f"p99 slowdown within 10%: {large['p99']:.2f} and {small['p99']:.2f}": bool(
            abs(large["p99"] / small["p99"] - 1) < 0.1
        ),
    }
    return Shown(
        table,
        checks,
        draw(
            [setting.whiskers("load 0.6", {str(fabric): row[SPREAD] for fabric, row in table.iterrows()}, "slowdown")]
        ),
        note="The paper prints no number: the fat-tree performs as the leaf-spine does.",
    )


def parameters() -> Shown:
    """Maximum sustainable load and messages rejected at load 0.6, by K and delta_admission: where a refused request
    waits, and where its message is rejected."""
    rows = {}
    for k in (1, *LINKS):
        for delta in DELTAS:
            if k != K and delta != LONGER_US:
                continue
            for refused in ("wait", "give_up"):
                name, keys = parameters_of(k, delta, **({} if refused == "wait" else {"refused": refused}))
                found = sustain("leaf-spine", name, {**keys, **lasting(1_000)}, **SEARCH)
                held = found.runs[found.runs["holds"].astype(bool)].sort_values("load")
                at = run(
                    "leaf-spine", f"{name} at 0.6", {**keys, **lasting(1_000), "traffic.0.arrivals.poisson.load": 0.6}
                )
                rows[(k, delta, refused)] = pd.Series(
                    {
                        "load": found.load or 0.0,
                        "slowdown max": held["slowdown max"].iloc[-1] if len(held) else np.nan,
                        "rejected at 0.6 (%)": 100 * setting.rejected(at) / len(at.flows),
                        "mean at 0.6": spread(at)["mean"],
                        "max at 0.6": spread(at)["max"],
                    }
                ).astype(float)
    table = table_of(rows, ["K", "delta us", "refused"])
    wait, give_up = (pd.DataFrame(table.xs(refused, level="refused")) for refused in ("wait", "give_up"))
    over_k = pd.DataFrame(wait.xs(LONGER_US, level="delta us"))
    over_delta = pd.DataFrame(wait.xs(K, level="K"))
    plain, default = cell(over_k, 1, "load"), cell(over_k, K, "load")
    checks = {
        "larger K rejects less": bool((over_k["rejected at 0.6 (%)"].diff().dropna() <= 0.01).all()),
        "larger delta_admission sustains more": bool((over_delta["load"].diff().dropna() >= -0.051).all()),
        "larger K delays more": bool(over_k["max at 0.6"].loc[2:].is_monotonic_increasing),
        f"plain RSVP sustains less: {plain:.2f} to {default:.2f}": plain < default,
        "giving up at the first refusal sustains less": bool((give_up["load"] <= wait["load"]).all()),
    }
    both = table["load"].unstack("refused")
    panels = [
        setting.lines(
            f"delta_admission {LONGER_US} us",
            pd.DataFrame(both.xs(LONGER_US, level="delta us")),
            "K",
            "sustained load",
            log_x=True,
            top=1,
        ),
        setting.lines("K = 8", pd.DataFrame(both.xs(K, level="K")), "delta_admission (us)", "sustained load", top=1),
        setting.lines("Slowdown at load 0.6", over_k[["mean at 0.6", "max at 0.6"]], "K", "slowdown", log_x=True),
    ]
    return Shown(table, checks, draw(panels))


def retry() -> Shown:
    """A refused request is tried again after a round trip of control packets, or at once, as section 3.1 literally
    says."""
    rows = {}
    settings: dict[str, dict[str, Any]] = {"a round trip": {}, "at once": {"retry_after": "0s"}}
    for load in (0.6, 0.8):
        for label, more in settings.items():
            keys = reserving("harmony", **more)
            # The name of the first is that of `services`, whose run it is.
            name = " ".join([parameters_of(K, DELTA_US)[0], "1 ms", *more.values()])
            sets = {**keys, **lasting(1_000), "traffic.0.arrivals.poisson.load": load}
            result = run("leaf-spine", f"{name} at {load:g}", sets)
            counts = {"rejected": setting.rejected(result), "of": len(result.flows)}
            rows[(load, label)] = pd.concat([spread(result), pd.Series(counts)])
    return Shown(table_of(rows, ["load", "tried again"]))


def services() -> Shown:
    """Links that serve packets in the order of arrival, and virtual links in turn: slowdowns, rejections, and waits
    beside the proven bounds."""
    rows = {}
    kept = setting.service
    for load in (0.5, 0.6, 0.8):
        for service in ("fifo", "round_robin"):
            setting.service = service
            name, keys = parameters_of(K, DELTA_US)
            result = run(
                "leaf-spine",
                f"{name} 1 ms at {load:g}",
                {**keys, **lasting(1_000), "traffic.0.arrivals.poisson.load": load},
            )
            more = {"rejected": setting.rejected(result), "of": len(result.flows)}
            rows[(load, service)] = pd.concat([spread(result), setting.waits_us(result), pd.Series(more)])
    setting.service = kept
    table = table_of(rows, ["load", "service"])
    fifo, in_turn = (pd.DataFrame(table.xs(service, level="service")) for service in ("fifo", "round_robin"))
    checks = {
        f"in turn the bound on waits is a third: {in_turn['wait bound'].iloc[0]:.2f} "
        f"of {fifo['wait bound'].iloc[0]:.2f} us": bool((in_turn["wait bound"] < 0.34 * fifo["wait bound"]).all()),
        "both keep their bounds": bool((table["wait max"] <= table["wait bound"]).all()),
        "slowdowns are within 5%, mean and p99": bool(
            ((in_turn[["mean", "p99"]] / fifo[["mean", "p99"]] - 1).abs() < 0.05).all(axis=None)
        ),
    }
    return Shown(table, checks)
