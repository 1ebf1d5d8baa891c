"""Efficient failure detectors (section 6): a host is probed by a request; no rsvp by the bound means a failure.

*False positives.* The host is alive, and each of the prober's tries has met a dead link between switches before routes
are mended. A request goes by the switches' tables, a random spine each time. A rsvp is sent by switches that know their
own ports: the receiver's leaf takes a spine that it reaches, and that spine, if it can't reach the sender, refuses at
once, and the receiver tries again while delta_admission lasts. So a try fails with the share of spines that do not
reach the receiver's leaf from the sender's (a rsvp has tries enough), or, at the worst, if either packet meets a dead
link (it has one). Runs lie between the two. All tries of a probe meet the same dead links: the expectation is of the
power, not the power of the expectation.

*Detection time.* The time that Harmony takes to report that a dead host does not answer, against how long a detector
over best
effort must wait, on the same traffic, for no more of its probes of living hosts to be late than a rate that is asked
for.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

import clearway as cw
from clearway.papers.figures import Shown
from clearway.reports.looks import COLOURS

from . import network
from .network import HOST_US, Bound, draw, log_scale, run, slots

RACKS, HOSTS_PER_RACK = 16, 2
SPINES, TRIES = [1, 2, 4, 8, 16], [1, 2, 3, 4]
# The time for which a link is dead each time, and the share of the time: far more than in any network, so that some
# thousand probes tell, and for longer than all tries take. The analysis is for any share.
MEND_US, DEAD = 2_000.0, 0.1
SPAN_US = 40_000.0


def _binomial(n: int, p: float) -> npt.NDArray[np.float64]:
    return np.array([comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)])


def false_positives(spines: int, dead: float, tries: int) -> float:
    """That all requests of a probe meet a dead link, each link being dead with this probability: rsvps get through.

    With G of S spines on a working path, E[(1 - G/S)^tries] for G binomial.
    """
    good = _binomial(spines, (1 - dead) ** 2)
    return float(sum(p * (1 - g / spines) ** tries for g, p in enumerate(good)))


def false_positives_both(spines: int, dead: float, tries: int) -> float:
    """The same if a rsvp has one try, too: by one of the N spines that the receiver's leaf reaches, E[(1 - G/S ·
    G/N)^tries]."""
    total = 0.0
    for reached, p in enumerate(_binomial(spines, 1 - dead)):
        for good, q in enumerate(_binomial(reached, 1 - dead)):
            both = good / spines * good / reached if reached else 0.0
            total += p * q * (1 - both) ** tries
    return float(total)


def failures(spines: int, seed: int) -> list[dict[str, Any]]:
    """Links between switches that fail at random, each time for as long as routes take to be mended."""
    random = np.random.default_rng([seed, spines])
    found: list[dict[str, Any]] = []
    for rack in range(RACKS):
        for spine in range(spines):
            # A link in its steady state is dead at first with the same probability, for the rest of its outage.
            at = (
                -MEND_US * random.random()
                if random.random() < DEAD
                else random.exponential(MEND_US * (1 - DEAD) / DEAD)
            )
            while at < SPAN_US:
                link = [f"leaf{rack}", f"spine{spine}"]
                # Outages shorter than a hop can't be told.
                until = max(at + MEND_US, 5.0)
                found.append({"at": f"{max(at, 0.0):.3f}us", "until": f"{until:.3f}us", "link": link})
                at = until + random.exponential(MEND_US * (1 - DEAD) / DEAD)
    return found


def probes_of(result: cw.Result) -> pd.DataFrame:
    """Probes of other racks' hosts: from and to which rack, when, and whether the host was accused."""
    flows = result.flows.to_pandas()
    found = pd.DataFrame(
        {
            "from": flows["src"].astype(int) // HOSTS_PER_RACK,
            "to": flows["dst"].astype(int) // HOSTS_PER_RACK,
            "us": flows["start_ps"].astype(float) / 1e6,
            "accused": flows["status"] == "failed",
        }
    )
    return found[found["from"] != found["to"]]


def expected(
    probes: pd.DataFrame, outages: list[dict[str, Any]], spines: int, tries: int, answer_us: float
) -> tuple[float, float]:
    """Expected values of the analysis, given which links were dead at each try: requests alone, and requests and
    rsvps."""
    alone, both = np.ones(len(probes)), np.ones(len(probes))
    rows = np.arange(len(probes))
    for attempt in range(tries):
        at = probes["us"].to_numpy() + attempt * answer_us
        dead = np.zeros((len(probes), RACKS, spines), bool)
        for outage in outages:
            rack, spine = (int("".join(filter(str.isdigit, name))) for name in outage["link"])
            began, ended = (float(outage[key].removesuffix("us")) for key in ("at", "until"))
            dead[(at >= began) & (at < ended), rack, spine] = True
        there, back = ~dead[rows, probes["from"]], ~dead[rows, probes["to"]]
        good, reached = (there & back).sum(axis=1), back.sum(axis=1)
        alone *= 1 - good / spines
        both *= 1 - good / spines * good / np.maximum(reached, 1)
    return float(alone.mean()), float(both.mean())


def interval(count: int, of: int) -> tuple[float, float]:
    """Wilson's interval at 99.9%."""
    z, share = 3.29, count / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * np.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return middle - half, middle + half


def detector_false() -> Shown:
    """Detector: how often a live host is reported dead, by path diversity and number of tries; simulation beside
    analysis."""
    rows = {}
    for spines in SPINES:
        dead = failures(spines, 1)
        for tries in TRIES:
            sets = {
                "fabric.leaf_spine.spines": spines,
                "failure": dead,
                "reroute_delay": "10s",
                "traffic.0.flows": round(20_000 * network.scale),
                "transport": slots(8, 63, attempts=tries),
            }
            result = run("detector", f"{spines} spines {tries} tries", sets)
            probes, answer_us = probes_of(result), Bound(result, 8, 63).answer
            wrong = int(probes["accused"].sum())
            low, high = interval(wrong, len(probes))
            alone, both = expected(probes, dead, spines, tries, answer_us)
            rows[spines, tries] = {
                "probes": len(probes),
                "accused": wrong,
                "runs": wrong / len(probes),
                "low": low,
                "high": high,
                "requests alone, these links": alone,
                "and rsvps, these links": both,
                "requests alone": false_positives(spines, DEAD, tries),
                "and rsvps": false_positives_both(spines, DEAD, tries),
                "at 1e-4 dead": false_positives(spines, 1e-4, tries),
                "at 1e-6 dead": false_positives(spines, 1e-6, tries),
            }
    table = pd.DataFrame(rows).T.rename_axis(["spines", "tries"])
    share = table["runs"].unstack("tries")
    within = (table["high"] >= table["requests alone, these links"]) & (table["low"] <= table["and rsvps, these links"])
    checks = {
        "runs are between the two analyses given the links that were dead, at 99.9%": bool(within.all()),
        "falls with tries, where there are two spines or more": bool(
            (share.loc[2:].diff(axis=1).iloc[:, 1:] <= 0).all(axis=None)
        ),
        "falls with path diversity from two tries on, from 1 spine to 4 to 16": bool(
            (share.loc[[1, 4, 16], TRIES[1:]].diff().iloc[1:] < 0).all(axis=None)
        ),
    }
    return Shown(table, checks, draw([_by_tries(table)]))


def _by_tries(table: pd.DataFrame) -> Callable[[Axes], None]:
    def panel(axes: Axes) -> None:
        for index, spines in enumerate(SPINES):
            of = table.loc[spines]
            between = [of["runs"] - of["low"].clip(lower=1e-6), of["high"] - of["runs"]]
            axes.errorbar(of.index, of["runs"], yerr=between, fmt="o", color=COLOURS[index], label=f"{spines} spines")
            axes.plot(of.index, of["requests alone"], "-", color=COLOURS[index])
            axes.plot(of.index, of["and rsvps"], ":", color=COLOURS[index])
        axes.set(yscale="log", xlabel="tries", ylabel="live hosts reported dead, share of probes")
        axes.set(ylim=(1e-5, 1), title=f"{DEAD:.0%} of links dead; analysis of requests, and with rsvps (dotted)")
        axes.set_xticks(TRIES)
        axes.legend(fontsize=7)

    return panel


RATES = [1e-2, 1e-3, 1e-4]
# With a smaller delta_admission a request has its reject sooner, which is an answer too; and RPCs are rejected sooner.
K, DELTAS = 8, [63.0, 16.0]


def detector_time() -> Shown:
    """Detector: time to detect a dead host under load, at equal rates of false positives."""
    sets = {f"traffic.{index}.duration": f"{3 * network.scale:g}ms" for index in range(4)}
    rows: dict[str, dict[str, float]] = {}
    waits, detections, checks = {}, {}, {}
    for name, transport in network.BEST_EFFORT.items():
        waits[name] = _answers(run("detector-load", f"load {name}", {**sets, "transport": transport}))
        rows[name] = {f"{rate:g}": float(np.quantile(waits[name], 1 - rate)) for rate in RATES} | {
            "none seen": waits[name].max()
        }
    for delta in DELTAS:
        harmony = slots(K, delta)
        ours = run(
            "detector-load",
            f"load {delta:g}us",
            {**sets, "traffic.0.transport": harmony, "traffic.1.transport": harmony},
        )
        flows = ours.flows.to_pandas()
        probes = flows[flows["class"] == "probes"]["status"]
        rpcs = flows[flows["class"] == "rpcs"]["status"]
        checks[f"delta_admission {delta:g} us: without failures no host is accused, of {len(probes)} probes"] = bool(
            (probes != "failed").all()
        )
        bound = Bound(ours, K, delta)
        for tries in TRIES[:3]:
            dead = run(
                "detector-dead", f"dead {delta:g}us {tries} tries", {"transport": slots(K, delta, attempts=tries)}
            )
            name = f"Harmony, {delta:g}us, {tries} tries"
            # The probe was sent at 1 us.
            detections[name] = took = dead.info["end_ps"] / 1e6 - 1 + HOST_US
            rows[name] = {f"{rate:g}": took for rate in RATES} | {
                "none seen": took,
                "bound": tries * bound.answer + HOST_US,
            }
            rows[name]["RPCs rejected"] = float((rpcs == "rejected").mean())
        waits[f"Harmony, {delta:g}us"] = _answers(ours)
    table = pd.DataFrame(rows).T.rename_axis("wait us, for a rate of false positives of")
    # A run ends with a window, up to a hop's delay after the last event; the request takes its transmission.
    checks["a dead host is detected by the bound of all tries"] = bool(
        all(rows[name]["none seen"] <= rows[name]["bound"] + 1 for name in detections)
    )
    for delta in DELTAS:
        one = detections[f"Harmony, {delta:g}us, 1 tries"]
        for name in network.BEST_EFFORT:
            times = float(table.loc[name, "0.0001"] / one)
            checks[
                f"delta_admission {delta:g} us: one try is {times:.2f} times as fast as {name} at a rate of 1e-4"
            ] = times > 1
    return Shown(table, checks, draw([_late(waits, detections)]))


def _answers(result: cw.Result) -> npt.NDArray[np.float64]:
    """How long each answered probe took, in us."""
    flows = result.flows.to_pandas()
    us = flows[flows["class"] == "probes"]["fct_ps"].astype(float) / 1e6
    return np.asarray(us.dropna(), dtype=np.float64)


def _late(waits: dict[str, npt.NDArray[np.float64]], detections: dict[str, float]) -> Callable[[Axes], None]:
    def panel(axes: Axes) -> None:
        for index, (name, us) in enumerate(waits.items()):
            ordered = np.sort(us)
            label = name if name in network.BEST_EFFORT else f"{name}: a probe's whole message"
            axes.plot(ordered, 1 - np.arange(len(ordered)) / len(ordered), color=COLOURS[index], label=label)
        for index, delta in enumerate(DELTAS):
            name = f"Harmony, {delta:g}us, 1 tries"
            color = COLOURS[len(network.BEST_EFFORT) + index]
            axes.axvline(detections[name], color=color, linestyle="--", label=f"Harmony, {delta:g}us, decides, 1 try")
        axes.set(xlabel="since the probe (us)", ylabel="living hosts that have not answered", yscale="log")
        axes.set_title("RPCs and web search at 0.3 each, incasts")
        log_scale(axes, "x")
        axes.legend(fontsize=7, loc="lower left")

    return panel
