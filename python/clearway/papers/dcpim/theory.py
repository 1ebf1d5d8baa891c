"""Theorem 1 (section 3.1) beside matchings of random demands: how many hosts a few rounds match."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from clearway import _core
from clearway.papers import slices
from clearway.papers.figures import Held, Shown, cell, draw

from . import pictures

ROUNDS = 8
DEGREES = (1.0, 2.0, 5.0, 20.0)
HOSTS = (144, 1_024, 100_000)
# The paper's example: "a one-million server datacenter" with an average degree of 5.
MILLION = 1_000_000


def _matchings(case: tuple[int, float]) -> list[tuple[int, float, int, float, float, float, float]]:
    return _core.dcpim_matchings(*case, ROUNDS, 1)


def theorem_1() -> Shown:
    """Theorem 1: the share of hosts that dcPIM matches after r rounds, beside its lower bound, by the average degree of
    a random demand and the number of hosts."""
    cases = [*((hosts, degree) for degree in DEGREES for hosts in HOSTS), (MILLION, 5.0)]
    found = [row for rows in slices.mapped(_matchings, cases, ThreadPoolExecutor()) for row in rows]
    names = ["hosts", "degree", "r", "matched", "bound", "maximal", "rounds to maximal"]
    table = pd.DataFrame(found, columns=names)
    table["degree"] = [degree for _, degree in cases for _ in range(ROUNDS)]
    table = table.set_index(["degree", "hosts", "r"])
    tight = (table["maximal"] - table["matched"]) / (table["maximal"] - table["bound"])
    checks = {
        f"nowhere less than the theorem's bound, {len(table)} cases": bool((table["matched"] >= table["bound"]).all()),
        "nowhere more than a maximal matching": bool((table["matched"] <= table["maximal"]).all()),
        # The proof's bound on unmatched channels is an upper bound of it: the measured share of that is said.
        f"after 4 rounds at most {tight.xs(4, level='r').max():.1%} of what the theorem allows is left": bool(
            (tight.xs(4, level="r") <= 1).all()
        ),
    }
    held = [
        # Of many hosts, degrees are Poisson: a request is granted with probability (1 - e^-d) / d, and a host with d
        # requests on average has at least one grant with probability 1 - e^-(1 - e^-d).
        (
            f"degree {degree:g}, {HOSTS[-1]:,} hosts",
            "matched after one round",
            cell(table, (degree, HOSTS[-1], 1), "matched"),
            1 - math.exp(math.exp(-degree) - 1),
            0.01,
        )
        for degree in DEGREES
    ]
    share = cell(table, (5.0, MILLION, 4), "matched") / cell(table, (5.0, MILLION, 4), "maximal")
    bound = cell(table, (5.0, MILLION, 4), "bound") / cell(table, (5.0, MILLION, 4), "maximal")
    # 1 - 5 / 0.8 / 4^4 of 80%: "dcPIM will match > 78%".
    example = [
        ("a million hosts, degree 5, four rounds", "the bound, of what PIM matches", bound, 78.05 / 80, 0.01),
        ("a million hosts, degree 5, four rounds", "matched, of what PIM matches", share, 1.0, 1 - 78.05 / 80),
    ]
    panels = [
        lambda axes, degree=degree: pictures.matched(axes, table.loc[degree], f"average degree {degree:g}")
        for degree in DEGREES
    ]
    columns = list(Held.COLUMNS)
    return Shown(
        table,
        checks,
        draw(panels, 2, sharey=True),
        [
            Held("dcpim", "one round of matching among many hosts", "closed form", pd.DataFrame(held, columns=columns)),
            Held("dcpim", "the example of section 3.1", "paper", pd.DataFrame(example, columns=columns)),
        ],
    )
