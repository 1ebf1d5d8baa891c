"""How far a run's numbers depend on phases: on where within a packet's time things happen, and on what is drawn.

In a simulation of few flows a nanosecond can decide who finds the queue full, again and again (Floyd and Jacobson, "On
traffic phase effects in packet-switched gateways", 1992). No real network repeats itself that exactly. So a scenario is
run again with other timing, with starts that are a part of a packet later, and with other paths. A number that moves by
more than [`SHARE`] is an effect of phases: it says little about the schemes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearway.results.result import Result
    from clearway.scenarios.scenario import Scenario

SHARE = 0.05
"""A number that moves by more than this share of itself is an effect of phases."""

FEW = 16
"""Up to so many flows, each is a number of its own, and comparisons offer to look for effects of phases."""


def variants(scenario: Scenario, result: Result) -> dict[str, Scenario]:
    """The runs to compare with, by their difference in words."""
    settings = scenario.to_dict()
    packet_ps = _packet_ps(settings, result)
    if _differs(settings):
        timing, said = {"timing": "ideal", "host.jitter": "0s", "link.clock_tolerance": "0ppm"}, "ideal timing"
    else:
        timing = {"timing": "real", "host.jitter": f"{packet_ps}ps", "link.clock_tolerance": "100ppm"}
        said = "real timing"
    return {
        said: scenario.with_(timing),
        "starts up to a packet later": scenario.with_({"host.start_jitter": f"{packet_ps}ps"}),
        "other paths": scenario.with_({"switch.path_seed": _other(settings)}),
    }


def _differs(settings: Mapping[str, Any]) -> bool:
    """Whether hosts take random times, or clocks differ."""
    real = settings.get("timing", "real") == "real"
    jitter = settings.get("host", {}).get("jitter", "1ns" if real else "0s")
    tolerance = settings.get("link", {}).get("clock_tolerance", "100ppm" if real else "0ppm")
    return not (str(jitter).startswith("0") and str(tolerance).startswith("0"))


def _other(settings: Mapping[str, Any]) -> int:
    """A seed of paths that the scenario does not have."""
    return int(settings.get("switch", {}).get("path_seed", settings.get("seed", 1))) % (2**32) + 1


def _packet_ps(settings: Mapping[str, Any], result: Result) -> int:
    """The time of a full packet on the slowest link of a host."""
    links = result.links.to_pandas()
    slowest = int(links.loc[links["tier"] == "from_host", "rate_bps"].min())
    text = str(settings["host"]["mtu"])
    number = float(text.rstrip("kKMGiB"))
    mtu = number * {"k": 1e3, "K": 1e3, "M": 1e6}.get(text.rstrip("B").rstrip("i")[-1:], 1)
    return max(1, round(mtu * 8e12 / slowest))


def numbers(result: Result) -> dict[str, float]:
    """The numbers of a run that are compared: those of its row of a table, and those of a few flows and their hosts."""
    from clearway.comparisons.comparison import Comparison, without_ends

    [row] = [row for _, row in without_ends(Comparison([result]).table()).iterrows()]
    found = {str(name): float(value) for name, value in row.items() if isinstance(value, int | float)}
    flows = result.flows.to_pandas()
    if len(flows) <= FEW:
        took = zip(flows["flow"], flows["fct_ps"].astype(float))
        found |= {f"flow {flow} us": float(fct) / 1e6 for flow, fct in took}
        # Of flows that have not ended, there is only what their hosts have sent.
        links = result.links.to_pandas()
        senders = links[(links["tier"] == "from_host") & (links["sent_bytes"] > 0)]
        found |= {
            f"{host} sent MB": float(sent) / 1e6 for host, sent in zip(senders["from_node"], senders["sent_bytes"])
        }
    return {name: value for name, value in found.items() if not math.isnan(value)}


def compared(base: Result, others: Mapping[str, Result]) -> dict[str, Any]:
    """The entry of `run.json`: the digest of each run, and each number with how far it moves, and where most."""
    ours = numbers(base)
    theirs = {said: numbers(other) for said, other in others.items()}
    found: dict[str, Any] = {}
    for name, value in ours.items():
        moved = {said: _moved(value, of[name]) for said, of in theirs.items() if name in of}
        if not moved:
            continue
        most = max(moved, key=lambda said: abs(moved[said]))
        found[name] = {
            "value": value,
            "other": theirs[most][name],
            "moves": min(abs(moved[most]), 1e9),
            "with": most,
            "phase_effect": abs(moved[most]) > SHARE,
        }
    return {"share": SHARE, "digests": {said: of.digest for said, of in others.items()}, "numbers": found}


def _moved(value: float, other: float) -> float:
    if value == other:
        return 0.0
    return (other - value) / abs(value) if value else math.inf


def lines(found: Mapping[str, Any] | None) -> list[str]:
    """The terminal's lines; none without `--sensitivity`."""
    if found is None:
        return []
    marked = {name: of for name, of in found["numbers"].items() if of["phase_effect"]}
    count, share = len(found["numbers"]), f"{100 * found['share']:g}%"
    runs = ", ".join(found["digests"])
    if not marked:
        return [f"no phase effects: none of {count} numbers moves by more than {share} with {runs}"]
    said = [f"phase effects: {len(marked)} of {count} numbers move by more than {share} with {runs}:"]
    for name, of in marked.items():
        said.append(f"  phase effect: {name} {of['value']:.4g} becomes {of['other']:.4g} with {of['with']}")
    return said


def offers(results: list[Result]) -> str:
    """A line of advice for a comparison of few flows; empty where there are more, or where it was done."""
    few = [
        result
        for result in results
        if result.level == "packet" and "sensitivity" not in result.info and 1 < len(result.flows) <= FEW
    ]
    if not few:
        return ""
    return (
        f"with {max(len(result.flows) for result in few)} flows a nanosecond may decide a result: `clearway run "
        "SCENARIO --sensitivity` says which numbers are effects of phases"
    )
