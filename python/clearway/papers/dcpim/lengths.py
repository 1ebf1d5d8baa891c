"""Why two figures are off: figure 5a's data mining with more and fewer flows, and IMC10 by single departures of the
authors' program."""

from __future__ import annotations

import pandas as pd

from clearway.papers.figures import Keys, Shown, cell, row

from . import setting
from .default_setup import DEPARTURES
from .published import PACKETS, by_class, by_their_program, published, published_for
from .setting import KEYS, PAPER, SIZES, by_size, run

# Of data mining with 2:1 oversubscription; the last are figure 5a's runs.
FLOWS = (1_250, 2_500, 5_000)
ROWS = ("dcPIM", "HPCC")


def figure_5ab_length() -> Shown:
    """Data mining on the leaf-spine with 2:1 oversubscription at load 0.5: slowdown of dcPIM and HPCC by the number of
    flows of a run, beside the paper's."""
    rows = {}
    for scheme in ROWS:
        for flows in FLOWS:
            keys, name = PAPER[scheme], scheme
            if flows != FLOWS[-1]:
                keys, name = {**keys, "traffic.all.flows": round(flows * setting.scale)}, f"{scheme} {flows} flows"
            # Without a number of its own a run has as many flows as `--scale` says.
            result = run("figure-5-oversubscribed-datamining", name, keys, flows=flows == FLOWS[-1])
            rows[scheme, f"{flows:,}"] = by_size(result)
        theirs = row(published_for(published("oversubscribed"), "datamining", 0.5, KEYS[scheme]), "all")
        rows[scheme, "paper"] = {"all mean": float(theirs["mean"]), "all p99": float(theirs["p99"])}
    table = pd.DataFrame(rows).T.rename_axis(["scheme", "flows"])
    checks = {}
    for scheme in ROWS:
        short, long = (cell(table, (scheme, f"{flows:,}"), "all mean") for flows in (FLOWS[0], FLOWS[-1]))
        theirs_mean = cell(table, (scheme, "paper"), "all mean")
        said_so = f"{scheme}: more flows come nearer to the paper's mean: {short:.2f}, {long:.2f} of {theirs_mean:.2f}"
        checks[said_so] = abs(long - theirs_mean) < abs(short - theirs_mean)
    return Shown(table, checks, note="No figure of the paper: figure 5ab's runs, longer.")


# Those whose effect `departures` shows on medium or long flows.
PHASE, WINDOW = "even_phase", "loose_window, retoken_at_end"
SEEDS = (1, 2, 3)


def departures_imc10() -> Shown:
    """10,000 IMC10 flows at load 0.8 by departures of the authors' program from the paper, for three draws of flows:
    slowdown by their program's ideal."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for name in ("none", PHASE, WINDOW, "authors_2022"):
        chosen = DEPARTURES[name]
        for seed in SEEDS:
            keys: Keys = {
                "transport": {"dcpim": {"departures": chosen or "paper"}},
                "traffic.all.arrivals.poisson.load": 0.8,
                "traffic.all.flows": 10_000,
                "seed": seed,
            }
            result = run("figure-3-imc10", f"0.8, departures {name}, seed {seed}", keys)
            ours = by_class(by_their_program(result), PACKETS, SIZES)
            rows[name, str(seed)] = {
                f"{size} {statistic}": cell(ours, size, statistic)
                for size in ours.index
                for statistic in ("mean", "p99")
            }
    table = pd.DataFrame(rows).T.rename_axis(["departures", "seed"])
    checks = {}
    for name, size, which, sign in ((PHASE, "medium", "lower", -1), (WINDOW, "long", "higher", 1)):
        column = table[f"{size} mean"]
        off = [float(column[name, str(seed)] / column["none", str(seed)] - 1) for seed in SEEDS]
        said = ", ".join(f"{each:+.1%}" for each in off)
        checks[f"{name}: {size} flows' mean is {which} in every draw: {said}"] = all(sign * each > 0 for each in off)
    return Shown(table, checks)
