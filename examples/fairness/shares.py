"""How equally equal flows share a port: writes the tables of `docs/fairness.md`.

    python examples/fairness/shares.py

2, 4, 8 and 16 endless flows go from hosts of their own to one host, over each transport, with equal and with different
starts, several seeds, and both settings of `timing`. Results in `out/fairness` are not run again. The column of ns-3 is
from `ns3.csv`, which `ns3_shares.py` writes.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import clearway as cw
import numpy as np
from clearway.reports import marked

PAGE = Path("docs/fairness.md")
KEPT = Path("out/fairness")
NS3 = Path(__file__).with_name("ns3.csv")
TRANSPORTS = ("dctcp", "cubic", "newreno", "swift", "bbr", "dcqcn", "timely", "hpcc")
COUNTS = (2, 4, 8, 16)
TIMINGS = ("ideal", "real")
# Between the starts of one flow and the next.
GAPS = {"equal": 0, "37 us apart": 37_000}
LINKS: dict[str, dict[str, Any]] = {
    "100 Gbps": {"rate": "100Gbps", "end_ms": 100, "buffer": "500KB"},
    "1 Gbps": {"rate": "1Gbps", "end_ms": 10_000, "buffer": "300KB"},
}
# Of the run, which is not counted.
WARM_UP = 0.1


class Case(NamedTuple):
    """One run."""

    links: str
    transport: str
    flows: int
    starts: str
    timing: str
    seed: int

    def scenario(self, end_ms: float) -> cw.Scenario:
        """Up to then."""
        links = LINKS[self.links]
        classes = "".join(
            f'[[traffic]]\nname = "flow{flow}"\nsizes.constant = "100GiB"\nsenders = "{flow}"\n'
            f'receivers = "{self.flows}"\narrivals = "all_at_once"\nflows = 1\n'
            f'start = "{flow * GAPS[self.starts]}ns"\n'
            for flow in range(self.flows)
        )
        return cw.Scenario.from_toml(
            f'transport = "{self.transport}"\ntiming = "{self.timing}"\nseed = {self.seed}\n'
            f'measure.end = "{end_ms}ms"\nmeasure.interval = "0s"\n'
            f'switch.buffer.per_port.bytes = "{links["buffer"]}"\n'
            f'fabric.star = {{ hosts = {self.flows + 1}, rate = "{links["rate"]}" }}\n{classes}'
        )

    def sent(self, end_ms: float) -> np.ndarray[Any, Any]:
        """Bytes that each sender's link has carried by then."""
        links = cw.run(self.scenario(end_ms), threads=1, progress=False).links.to_pandas()
        rows = links[links["tier"] == "from_host"].set_index("from_node")["sent_bytes"]
        return np.array([rows[f"host{flow}"] for flow in range(self.flows)], dtype=float)

    def shares(self) -> list[float]:
        """Of each flow, after the start; kept."""
        kept = KEPT / ("-".join(str(part) for part in self).replace(" ", "_") + ".json")
        if not kept.exists():
            end = LINKS[self.links]["end_ms"]
            sent = self.sent(end) - self.sent(end * WARM_UP)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps((sent / sent.sum()).tolist()))
        return list(json.loads(kept.read_text()))


def cases(links: str, transports: tuple[str, ...], counts: tuple[int, ...], seeds: int) -> Iterator[Case]:
    """All runs of a table."""
    for transport in transports:
        for count in counts:
            for starts in GAPS:
                for timing in TIMINGS:
                    # Without a random number seeds give the same run; some transports have one of their own.
                    yield from (Case(links, transport, count, starts, timing, 1 + seed) for seed in range(seeds))


def jain(shares: list[float]) -> float:
    """Jain's index of fairness: 1 if all are equal, 1 / n if one has everything."""
    values = np.array(shares)
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))


def cell(runs: list[list[float]]) -> str:
    """Jain's index of the least equal run, and the smallest and the largest share of any."""
    fair = 1 / len(runs[0])
    low, high = min(min(run) for run in runs) / fair, max(max(run) for run in runs) / fair
    return f"{min(jain(run) for run in runs):.3f} ({low:.2f}..{high:.2f})"


def of_ns3(links: str) -> dict[tuple[str, int, str], str]:
    """The same of ns-3."""
    with NS3.open() as file:
        rows = [row for row in csv.DictReader(file) if row["links"] == links]
    return {
        (row["transport"], int(row["flows"]), row["starts"]): cell([[float(one) for one in row["shares"].split()]])
        for row in rows
    }


def table(done: dict[Case, list[float]], ns3: dict[tuple[str, int, str], str]) -> str:
    """By transport, number of flows and timing: Jain's index, and the smallest and the largest share."""
    keys = sorted({case[:5] for case in done}, key=[case[:5] for case in done].index)
    groups: dict[tuple[str, int, str], dict[str, str]] = {}
    for key in keys:
        runs = [shares for case, shares in done.items() if case[:5] == key]
        _, transport, count, starts, timing = key
        groups.setdefault((transport, count, starts), {})[timing] = cell(runs)
    rows = [
        [of[0], str(of[1]), of[2], *(cells.get(timing, "") for timing in TIMINGS), *([ns3.get(of, "")] if ns3 else [])]
        for of, cells in groups.items()
    ]
    return "\n".join(marked.table(["transport", "flows", "starts", *TIMINGS, *(["ns-3"] if ns3 else [])], rows)) + "\n"


def main() -> None:
    """Runs what is missing, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--links", choices=LINKS, action="append")
    parser.add_argument("--transports", default=",".join(TRANSPORTS))
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--print", action="store_true", help="print the tables instead of writing the page")
    given = parser.parse_args()
    counts = tuple(int(count) for count in given.counts.split(","))
    for links in given.links or LINKS:
        todo = list(cases(links, tuple(given.transports.split(",")), counts, given.seeds))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = dict(zip(todo, pool.map(Case.shares, todo), strict=True))
        if given.print:
            print(links, table(done, of_ns3(links)), sep="\n")
        else:
            marked.put(PAGE, f"shares at {links}", table(done, of_ns3(links)))


if __name__ == "__main__":
    main()
