"""`clearway against`: a scenario in another program, beside ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

import clearway as cw
from clearway.cli.options import Json, ScenarioFile, SeedCount, Seeds, Sets, Threads, pairs, seeds_of
from clearway.cli.said import Said
from clearway.files.whole import replace
from clearway.results.pcap import places


def against(
    program: Annotated[
        Literal["ns3", "kernel"], typer.Argument(help="The other program: ns3, or kernel.", metavar="PROGRAM")
    ],
    scenario: ScenarioFile,
    interpreter: Annotated[
        Path | None,
        typer.Option(help="The Python that has ns-3. Default: CLEARWAY_NS3, or this one.", metavar="FILE"),
    ] = None,
    set_: Sets = None,
    seed: Seeds = None,
    seeds: SeedCount = None,
    threads: Threads = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            help="With kernel, write the packets of a link or of all links of a node: switch0:trace makes "
            "trace.here.pcapng and trace.there.pcapng (repeatable).",
            metavar="LINK|NODE:FILE",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write each flow's times to this CSV file.", metavar="FILE")] = None,
    json_: Json = False,
) -> None:
    """Run the same flows on the same links in another program, and show both results.

    ns3 is ns-3 3.44, for TCP: python -m venv ns3 && ns3/bin/pip install ns3==3.44.post0

    kernel is the TCP of this machine's kernel, between network namespaces over a live fabric, as root and in real time.
    """
    from clearway.peers.opinion import NAMES

    said = Said(json_)
    given = cw.Scenario.load(scenario).with_text(pairs(set_))
    single, several = seeds_of(seed, seeds)
    which = several or [int(given.to_dict()["seed"]) if single is None else single]
    looks = sys.stderr.isatty()

    def progress(label: str, now: float, done: int) -> None:
        typer.echo(f"\r{label}: {done:,} flows, {now * 1e3:.1f} ms\x1b[K", err=True, nl=False)

    found = cw.against(
        given,
        program,
        seeds=which,
        interpreter=interpreter,
        captures=places("--capture", capture),
        threads=threads,
        progress=progress if looks else None,
    )
    if looks:
        typer.echo("\r\x1b[K", err=True, nl=False)
    numbers = (
        f"here: Clearway; there: {NAMES[program]}; mean, p99: slowdown of flows that completed in both; differs: how "
        "much longer they take there; least, greatest: the mean's differences among seeds"
    )
    said.table(found.sizes(), "sizes", numbers)
    said.table(found.ports(), "ports", "of switches' ports, means over seeds")
    if len(senders := found.senders()):
        said.table(senders, "senders", "packets with content, means over seeds")
    if len(shares := found.shares()):
        said.table(shares.set_index("program"), "shares", "of flows that completed in neither")
    here, there = found.unfinished()
    if here or there:
        facts = {"unfinished_here": here, "unfinished_there": there}
        said.line(f"not completed: {here:,} flows here, {there:,} there", facts)
    said.lines([f"differs: {one}" for one in found.differences], "differences")
    counted = {name: value for pair in found.pairs for name, value in pair.theirs.facts.items()}
    said.facts({"version": found.version} | counted)
    if out is not None:
        flows = found.flows()
        replace(out, lambda part: flows.to_csv(part, index=False))
        said.place("written", out)
    said.end()
