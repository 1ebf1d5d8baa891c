"""Harmony's evaluation under both orders of service, and with additional slots for the oldest message or for the one
that has the fewest slots, at a point or two of each figure; and small messages over longer and longer arrivals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers.figures import Held, Shown, cell

from . import evaluation, setting
from .evaluation import LONGER_US, RTT_US, SEARCH, SPINES, message_bound_us, parameters_of, where
from .setting import DELTA_US, K, lasting, run, spread, sustain

# Section 3.1 gives the oldest request a slot, and says nothing of additional ones.
ADDITIONAL: dict[str, Literal["oldest", "fewest"]] = {"the oldest message": "oldest", "the fewest slots": "fewest"}
SERVICES: dict[str, Literal["fifo", "round_robin"]] = {"order of arrival": "fifo", "in turn": "round_robin"}
LOAD = "traffic.0.arrivals.poisson.load"

# By figure, and what it is.
Numbers = dict[tuple[str, str], float]


@contextlib.contextmanager
def under(name: Literal["service", "additional_to"], value: str) -> Iterator[None]:
    """Runs in this context have this value of a setting."""
    kept = getattr(setting, name)
    setattr(setting, name, value)
    try:
        yield
    finally:
        setattr(setting, name, kept)


def of_testbed() -> Numbers:
    """Figures 5b to 5d at K = 8, delta_admission 630 us."""
    name, keys = parameters_of(K, 630)
    found = sustain("testbed", name, {**keys, **lasting(50_000)}, **SEARCH)
    best = found.runs[found.runs["holds"].astype(bool) & (found.runs["load"] == found.load)]
    loaded = run("testbed", "at 0.6", {**keys, LOAD: 0.6, **lasting(50_000)})
    waits = setting.waits_us(loaded)
    numbers = {
        ("5b", "sustained load"): found.load or 0.0,
        ("5b", "worst delay there, us"): float(best["delay max us"].max()),
        ("5b", "its bound, us"): message_bound_us(loaded, K, 630, 10, 3),
        ("5c", "load 0.6: longest wait, us"): float(waits["wait max"]),
        ("5c", "load 0.6: its bound, us"): float(waits["wait bound"]),
    }
    most = 630 + evaluation.sending_us(128)
    for kb, load in ((8, 0.65), (128, 0.9)):
        name, keys = parameters_of(K, round(most - evaluation.sending_us(kb)))
        sets = {
            "traffic.0.sizes.constant": f"{kb}KB",
            LOAD: load,
            "seed": 1,
            **lasting(max(20_000, min(400 * kb, 50_000))),
        }
        result = run("testbed", f"{name} {kb} KB at {load:g} seed 1", {**keys, **sets})
        share = 100 * setting.rejected(result) / len(result.flows)
        numbers["5d", f"{kb} KB at load {load:g}: rejected, %"] = share
    return numbers


def of_leaf_spine(rivals: Numbers) -> Numbers:
    """Figures 6a to 8a: `rivals` has Fastpass's numbers, HPCC's and dcPIM's."""
    name, keys = parameters_of(K, LONGER_US)
    found = sustain("leaf-spine", name, {**keys, **lasting(1_000)}, **SEARCH)
    best = found.runs[found.runs["holds"].astype(bool) & (found.runs["load"] == found.load)]
    name, keys = parameters_of(K, DELTA_US)
    ours = spread(run("leaf-spine", f"{name} at 0.6", {**keys, **lasting(2_000), LOAD: 0.6}))
    both = {f"traffic.{index}.duration": f"{2_000 * setting.scale:g}us" for index in (0, 1)}
    times = where(run("probes", f"{name} at 0.6", {**keys, **both, LOAD: 0.6}))
    beside = run("beside", *evaluation.beside(evaluation.BENEATH, 0.3, 0.3))
    rpcs, web = spread(beside), spread(beside, "web search")
    small = small_run(K, 252, 500)
    return {
        ("6a", "delta_admission 126 us: sustained load"): found.load or 0.0,
        ("6a", "worst slowdown there"): float(best["slowdown max"].max()),
        ("6b", "load 0.6: mean slowdown / Fastpass's"): float(ours["mean"]) / rivals["6b", "mean"],
        ("6b", "load 0.6: p99 slowdown / Fastpass's"): float(ours["p99"]) / rivals["6b", "p99"],
        ("6c", "load 0.6: until it begins, us"): float(times["until it begins"]),
        ("6c", "load 0.6: queueing, us"): float(times["queueing"]),
        ("7", "0.3 + 0.3: RPCs' p99.9 / HPCC's"): float(rpcs["p99.9"]) / rivals["7", "HPCC"],
        ("7", "0.3 + 0.3: RPCs' p99.9 / dcPIM's"): float(rpcs["p99.9"]) / rivals["7", "dcPIM"],
        ("7", "0.3 + 0.3: web search's mean slowdown"): float(web["mean"]),
        ("7", "0.3 + 0.3: web search's p99 slowdown"): float(web["p99"]),
        ("8a", "4 KB at load 0.5: worst delay / unloaded RTT"): worst_of(small),
        ("8a", "4 KB at load 0.5: rejected, %"): 100 * setting.rejected(small) / len(small.flows),
    }


def of_others() -> Numbers:
    """The rivals of figures 6a to 7, which have no order of service."""
    name, keys = parameters_of(K, LONGER_US, "fastpass")
    found = sustain("leaf-spine", name, {**keys, **lasting(1_000)}, **SEARCH)
    name, keys = parameters_of(K, DELTA_US, "fastpass")
    theirs = spread(run("leaf-spine", f"{name} at 0.6", {**keys, **lasting(2_000), LOAD: 0.6}))
    numbers = {
        ("6a", "load"): found.load or 0.0,
        ("6b", "mean"): float(theirs["mean"]),
        ("6b", "p99"): float(theirs["p99"]),
    }
    for rival in ("HPCC", "dcPIM"):
        numbers["7", rival] = float(spread(run("beside", *evaluation.beside(rival, 0.3, 0.3)))["p99.9"])
    return numbers


def of_fabrics() -> Numbers:
    """Figures 8b and 8c."""
    name, keys = parameters_of(K, DELTA_US)
    numbers: Numbers = {}
    for ratio in (1, 4):
        sets = {**keys, **lasting(1_000), **SPINES["4 x 400G"], "fabric.leaf_spine.oversubscription": float(ratio)}
        result = run("leaf-spine", f"{name} 4 x 400G {ratio} to 1 at 0.6", {**sets, LOAD: 0.6 / ratio})
        numbers["8b", f"{ratio}:1: bound on waits, us"] = float(setting.waits_us(result)["wait bound"])
        numbers["8b", f"{ratio}:1: p99 slowdown at 0.6 of the core"] = float(spread(result)["p99"])
    for fabric in ("leaf-spine", "fat-tree"):
        result = run(fabric, f"{name} 300 us at 0.6", {**keys, **lasting(300), LOAD: 0.6})
        numbers["8c", f"{fabric} at 0.6: p99 slowdown"] = float(spread(result)["p99"])
        numbers["8c", f"{fabric} at 0.6: rejected, %"] = 100 * setting.rejected(result) / len(result.flows)
    return numbers


# The paper's numbers, and how far ours may be off.
PAPER: dict[tuple[str, str], tuple[float, float]] = {
    ("6b", "load 0.6: mean slowdown / Fastpass's"): (2.0, 0.25),
    ("6b", "load 0.6: p99 slowdown / Fastpass's"): (1.3, 0.25),
    ("8a", "4 KB at load 0.5: worst delay / unloaded RTT"): (20.0, 0.25),
}


def both_services() -> Shown:
    """Figures 5b to 8c at a point or two of each, with links that serve packets in the order of arrival, and virtual
    links in turn."""
    with under("service", "fifo"):
        rivals = of_others()
    columns = {}
    for name, service in SERVICES.items():
        with under("service", service):
            columns[name] = {**of_testbed(), **of_leaf_spine(rivals), **of_fabrics()}
    table, checks, held = side_by_side(columns, rivals, "section 5 under both orders of service")
    fifo, in_turn = (table[name] for name in SERVICES)
    wait = fifo["5c", "load 0.6: its bound, us"], in_turn["5c", "load 0.6: its bound, us"]
    checks[f"in turn bounds on waits are lower: {wait[1]:.1f} of {wait[0]:.1f} us"] = bool(wait[1] < wait[0])
    return Shown(table, checks, held=held)


def additional_slots() -> Shown:
    """Figures 5b to 8c at a point or two of each, with additional slots for the oldest message, and for the one that
    has the fewest slots."""
    rivals = of_others()
    columns = {}
    for name, additional_to in ADDITIONAL.items():
        with under("additional_to", additional_to):
            columns[name] = {**of_testbed(), **of_leaf_spine(rivals), **of_fabrics()}
    table, checks, held = side_by_side(columns, rivals, "section 5, by the message that gets additional slots")
    return Shown(table, checks, held=held)


def side_by_side(
    columns: dict[str, Numbers], rivals: Numbers, against: str
) -> tuple[pd.DataFrame, dict[str, bool], list[Held]]:
    """The table of numbers in each setting, with the paper's, and each setting's checks."""
    table = pd.DataFrame(columns).rename_axis(["figure", "number"])
    table["paper"] = pd.Series({at: theirs for at, (theirs, _) in PAPER.items()})
    checks: dict[str, bool] = {}
    held = []
    for name in columns:
        checks |= statements(name, table[name], rivals["6a", "load"])
        rows = [(f"figure {at[0]}", at[1], float(table[name][at]), *PAPER[at]) for at in PAPER]
        frame = pd.DataFrame(rows, columns=list(Held.COLUMNS))
        held.append(Held(f"harmony, {name}", against, "paper", frame))
    return table, checks, held


def statements(name: str, of: pd.Series[float], fastpass: float) -> dict[str, bool]:
    """Statements of the paper without a number, on one order of service."""
    worst, bound = of["5b", "worst delay there, us"], of["5b", "its bound, us"]
    sustained = of["6a", "delta_admission 126 us: sustained load"]
    narrow, wide = (of["8b", f"{ratio}:1: bound on waits, us"] for ratio in (4, 1))
    small, large = (of["8c", f"{fabric} at 0.6: p99 slowdown"] for fabric in ("leaf-spine", "fat-tree"))
    rivals = [of["7", f"0.3 + 0.3: RPCs' p99.9 / {rival}'s"] for rival in ("HPCC", "dcPIM")]
    found = {
        f"5b: the worst delay is within its bound: {worst:.0f} of {bound:.0f} us": worst <= bound,
        f"6a: as large a load as Fastpass, or a larger one: {sustained:.2f} and {fastpass:.2f}": sustained >= fastpass,
        f"7: RPCs' tail is a tenth or more below HPCC's and dcPIM's: {rivals[0]:.2f} and {rivals[1]:.2f} of it": max(
            rivals
        )
        <= evaluation.SIGNIFICANT,
        f"8b: bounds on waits near-identical at 1:1 and 4:1, within 10%: {wide:.2f} and {narrow:.2f} us": abs(
            narrow / wide - 1
        )
        < 0.1,
        f"8c: 1,024 hosts have the tail of 144, within 10%: {large:.2f} and {small:.2f}": abs(large / small - 1) < 0.1,
    }
    return {f"{name}: {said}": bool(ok) for said, ok in found.items()}


# Messages of figure 8a's target.
SMALL: dict[str, Any] = {"traffic.0.sizes.constant": "4000B", LOAD: 0.5}


def small_run(k: int, delta_us: float, us: float) -> cw.Result:
    """Such messages, arriving for the given time."""
    name, keys = parameters_of(k, delta_us)
    return run("leaf-spine", f"{name} 4 KB at 0.5 for {us:g} us", {**keys, **lasting(us), **SMALL})


def worst_of(result: cw.Result) -> float:
    """The worst delay in unloaded round trips."""
    return float(spread(result, column="fct_ps")["max"]) / 1e6 / RTT_US


def small_messages() -> Shown:
    """4 KB messages at load 0.5, by how long they arrive: delays in unloaded round trips, at figure 8a's largest
    delta_admission for K = 8 and at half of it for K = 32."""
    rows = {}
    for k, delta in ((K, 252), (32, 126)):
        for us in (250, 500, 1_000):
            result = small_run(k, delta, us)
            flows = result.flows.to_pandas()[["start_ps", "fct_ps"]].astype(float)
            quarter = np.minimum(flows["start_ps"] * 4 // (us * setting.scale * 1e6), 3)
            delays = flows["fct_ps"].groupby(quarter).mean() / 1e6 / RTT_US
            rows[(k, us)] = {
                "mean, first quarter": float(delays.iloc[0]),
                "mean, last quarter": float(delays.iloc[-1]),
                "worst": worst_of(result),
                "rejected": setting.rejected(result),
                "of": len(result.flows),
            }
    table = pd.DataFrame(rows).T.rename_axis(["K", "arrivals, us"])
    grown = {k: [cell(table, (k, us), "mean, last quarter") for us in (250, 500, 1_000)] for k in (K, 32)}
    said = {k: ", ".join(f"{delay:.1f}" for delay in delays) for k, delays in grown.items()}
    checks = {
        f"K = 8 cannot carry this load: the last quarter's mean grows with the time of arrivals, {said[K]}": bool(
            grown[K][2] > 1.5 * grown[K][1] > 2.25 * grown[K][0]
        ),
        f"K = 32 carries it: the last quarter's mean stays, within 5%: {said[32]}": max(grown[32])
        < 1.05 * min(grown[32]),
    }
    return Shown(table, checks)


FIGURES = {"both-services": both_services, "additional-slots": additional_slots, "small-messages": small_messages}
