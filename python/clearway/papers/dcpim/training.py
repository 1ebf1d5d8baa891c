"""A training job over dcPIM: the worst case of section 4.1, messages little longer than a bandwidth-delay product, and
the settings that its operator has."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from clearway.comparisons import training as _compare_training
from clearway.papers import figures
from clearway.papers.figures import Held, Keys, Shown

from . import setting

RANKS, BYTES = 128, 16_000_000

SETTINGS: Mapping[str, Keys] = {
    "default": {},
    'short_flow = "200KB"': {"transport.dcpim.short_flow": "200KB"},
    "sizes_known = false": {"transport.dcpim.sizes_known": False},
    "channels = 1": {"transport.dcpim.channels": 1},
    'departures = "authors_2022"': {"transport.dcpim.departures": "authors_2022"},
    'departures = "authors_2023"': {"transport.dcpim.departures": "authors_2023"},
}


def training() -> Shown:
    """A ring all-reduce of 16 MB among 128 ranks over dcPIM, by the setting that is changed."""
    job = {"name": "all-reduce", **_compare_training.works(RANKS, setting.scale)["all-reduce"]}
    rows = {}
    for name, keys in SETTINGS.items():
        fixed: Keys = {"transport": {"dcpim": {}}, "job": [job], "measure.interval": "0s"}
        result = figures.run(_compare_training.FOLDER / "training.toml", name, {**fixed, **keys}, setting.OUT)
        again = result.flows["resent_packets"].sum() / result.flows["sent_packets"].sum()
        rows[name] = {"ms": result.jobs.to_pandas()["time_ps"].max() / 1e9, "sent again (%)": again * 100}
    table = pd.DataFrame(rows).T.rename_axis("setting")
    arithmetic = ring_ms(round(BYTES * setting.scale))
    held = {
        "bucket": "ring all-reduce, 128 ranks, short_flow = 200KB",
        "statistic": "time, ms",
        "ours": table.loc['short_flow = "200KB"', "ms"],
        "theirs": arithmetic,
        "within": 0.01,
    }
    against = Held("dcpim", "arithmetic: each message at line rate", "closed form", pd.DataFrame([held]))
    return Shown(table, {}, None, [against])


def ring_ms(buffer: int) -> float:
    """How long a ring all-reduce takes whose messages leave at once and fill their links: a message waits for that of
    the step before, which came over the link before, so that the last has passed all links twice, less two.

    >>> round(ring_ms(16_000_000), 2)
    2.99
    """
    payload, header, delay_us, hop_us = 1_460, 40, 0.225, 0.65
    full_us = 0.12
    whole, rest = divmod(buffer // RANKS, payload)
    sent_us = (header + whole * (payload + header) + (rest + header if rest else 0)) * 8e-5
    # The switch forwards the last packet when it has sent the one before. The last link has no switch behind it.
    near_us = sent_us + 2 * delay_us + hop_us + full_us + 0.2
    far_us = near_us + 2 * (hop_us + full_us / 4)
    steps, racks = 2 * (RANKS - 1), RANKS // _compare_training.HOSTS_PER_RACK
    across = 2 * racks
    return ((steps - across) * near_us + across * far_us) / 1_000
