"""`clearway live`: a scenario by the machine's clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway import _core
from clearway._cli_options import Json, Load, Out, Seed, Sets, read_scenarios
from clearway._cli_said import Said, finish
from clearway._part import PART
from clearway._pcap import places
from clearway._places import check_result, held, slug


def live(
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario in TOML.", metavar="SCENARIO.toml", show_default=False)
    ] = None,
    set_: Sets = None,
    seed: Seed = None,
    load: Load = None,
    out: Out = None,
    bench: Annotated[bool, typer.Option("--bench", help="Measure how fast this machine does that, instead.")] = False,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="Processes that share the nodes, each with live.workers threads; no more than the fabric has racks. "
            "One that ends in the middle is a failure of its nodes.",
        ),
    ] = 1,
    attach: Annotated[
        list[str] | None,
        typer.Option(
            help="Let a host be a TUN or TAP device (host3=tap0) or a network namespace (host3=netns:red) of this "
            "machine, until the scenario's end, Ctrl-C or SIGTERM (repeatable). Needs CAP_NET_ADMIN.",
            metavar="HOST=DEVICE",
        ),
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            help="Write what a link carries to a file in the format pcapng, such as spine0-leaf2:out.pcapng "
            "(repeatable).",
            metavar="LINK:FILE",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Run a scenario by the machine's clock, and in the simulator for comparison, unless hosts are attached."""
    if bench == (scenario is not None):
        raise typer.BadParameter("give a scenario, or --bench, which needs none", param_hint="SCENARIO.toml")
    if scenario is None:
        _bench(Said(json_))
        return
    captured = [f"live.capture.{link}={json.dumps(file)}" for link, file in places("--capture", capture).items()]
    read, said = read_scenarios([scenario], [*(set_ or []), *_attached(attach), *captured], seed, load)[0], Said(json_)
    folder = out or Path("out") / f"{slug(scenario.stem)}-live"
    with held(folder):
        for name in ("simulated", "live"):
            check_result(folder / name)
        attached = bool(read.to_dict().get("live", {}).get("attach"))
        results = []
        if not attached:
            results.append(cw.run(read, name="simulated", progress=True))
            results[0].save(folder / "simulated")
        if not any(result.interrupted for result in results):
            results.append(cw.live(read, name="live", progress=True, processes=processes))
            results[-1].save(folder / "live")
        import pandas as pd

        tables = [result.fct().rename(index={"all": result.name}) for result in results]
        if read.to_dict().get("traffic"):
            said.table(pd.concat(tables).rename_axis("FCT, us"))
        if attached:
            devices = results[-1].attached.to_pandas()
            said.table(devices.set_index("host"), "attached")
        if results[-1].name == "live":
            info = results[-1].info
            late = (
                f"events handled late by {info['late_us_median']:,.3f} us (median), {info['late_us_p99']:,.3f} us "
                f"(99%), in the network's time; {info['machine_s']:,.2f} s by the machine's clock"
            )
            facts = {key: info[key] for key in ("late_us_median", "late_us_p99", "machine_s", "refused_datagrams")}
            said.line(late, facts)
        said.place("results", folder)
    finish(results, said, endless=attached)


def _attached(given: list[str] | None) -> list[str]:
    """What `live.attach` is set to."""
    sets = []
    for text in given or []:
        host, found, device = text.partition("=")
        if not (host and found and device):
            raise typer.BadParameter(f"{text!r} is not as in host3=tap0 or host3=netns:red", param_hint="--attach")
        sets.append(f"live.attach.{host}={json.dumps(device)}")
    return sets


def _bench(said: Said) -> None:
    """The micro-benchmarks of Maze (R2C2, section 4.1) on this machine."""
    import pandas as pd

    report = json.loads(_core.live_bench(PART))
    titles = {
        "throughput": "one flow over two hops: Gbps",
        "latency": "from a small packet's departure until the next node sees it",
        "sharing": "flows over links of their own, on one worker",
        "hops": "packet-hops a second, 1,500 B",
    }
    said.facts({"cores": report["cores"]})
    for name, title in titles.items():
        said.line(title, {})
        frame = pd.DataFrame(report[name])
        said.table(frame.set_index(frame.columns[0]), name)
    said.end()
