"""Hosts whose software costs time: the page's cluster alone, and what its numbers are made of."""

from __future__ import annotations

from pathlib import Path

import clearway as cw
import numpy as np
import pandas as pd
import pytest
from clearway.papers import accuracy
from clearway.papers.figures import Held
from clearway.papers.hardware import software


def lone(protocol: str, size: int) -> float:
    """A round trip of messages alone in the page's cluster, in us."""
    # Homa's threads poll for 50 us from the beginning on.
    traffic = {"sizes": {"constant": f"{size}B"}, "arrivals": "all_at_once", "flows": 1, "senders": "0"}
    keys = {"traffic": [traffic | {"receivers": "1", "start": "1us"}], "timing": "ideal"}
    result = cw.run(software.scenario("W2", protocol).with_(keys), progress=False)
    return 2 * float(pd.Series(result.flows["fct_ps"]).iloc[0]) / 1e6 + software.SERVER_US


@pytest.mark.parametrize("protocol", software.SCHEMES)
def test_a_round_trip_alone_is_the_measured_one(protocol: str) -> None:
    measured = software.ROUND_TRIP_US["Homa" if protocol == "Homa" else "TCP"]
    assert lone(protocol, 100) == pytest.approx(measured, rel=0.01)


def test_round_trips_are_of_the_shortest_tenth_after_the_beginning() -> None:
    class Ran:
        flows = pd.DataFrame(
            {
                "bytes": [8, *range(10, 29)] * 2,
                "start_ps": [*[9e5] * 20, *[4e6] * 20],
                "fct_ps": [1e9] * 20 + [5e6] * 20,
            }
        )

    # Of 20 different sizes the three shortest; all that started later took 5 us.
    us = software.round_trips(Ran())  # type: ignore[arg-type]
    assert np.percentile(us, [1, 99]) == pytest.approx([10.682, 10.682])
    Ran.flows.loc[20, "fct_ps"] = np.nan
    us = software.round_trips(Ran())  # type: ignore[arg-type]
    assert np.isinf(us).mean() == pytest.approx(1 - (2 / 3) ** 2, abs=0.01)


def test_the_page_says_which_numbers_of_hosts_are_outside(tmp_path: Path) -> None:
    rows = [("W2", "P50 of short messages, us", 30.0, 30.9, 0.15), ("W2", "P99 of short messages, us", 90.0, 57.7, 0.3)]
    held = Held("Homa", "notes", "hosts", pd.DataFrame(rows, columns=list(Held.COLUMNS)))
    command = "clearway paper hardware hosts"
    accuracy.record("hardware", "hosts", [held], command, tmp_path)
    text = accuracy.page(accuracy.records(tmp_path), [])
    assert "| Homa | W2 | P50 of short messages, us | 30.9 | 30 | -2.9% | 15% |" in text
    assert "+56.0% **outside**" in text
    assert f"`{command}` makes this table" in text


def test_software_that_costs_time_is_refused_where_it_cannot_be() -> None:
    scenario = software.scenario("W2", "Homa")
    for level in ("flow", "links"):
        with pytest.raises(cw.ScenarioError, match=r"host\.cpu"):
            cw.run(scenario, level=level, progress=False)
    with pytest.raises(cw.ScenarioError, match=r"host\.cpu.*this machine's own cores"):
        cw.live(scenario)
