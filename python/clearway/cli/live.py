"""`clearway live`: a scenario in real time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.options import Json, Load, Out, Seed, Sets, read_scenarios
from clearway.cli.said import Said, finish
from clearway.files.places import check_result, held, slug
from clearway.results.pcap import pairs, places
from clearway.running.machines import TOKEN, the_token

ScenarioOrNone = Annotated[
    Path | None, typer.Argument(help="A scenario in TOML.", metavar="SCENARIO.toml", show_default=False)
]
Bench = Annotated[bool, typer.Option("--bench", help="Measure how fast this machine does that, and draw it, instead.")]
Processes = Annotated[
    int,
    typer.Option(
        min=1,
        max=64,
        help="Processes that share the nodes, each with live.workers threads; no more than the fabric has racks. "
        "One that ends in the middle is a failure of its nodes.",
    ),
]
Attach = Annotated[
    list[str] | None,
    typer.Option(
        help="Let a host be a TUN or TAP device (host3=tap0) or a network namespace (host3=netns:red) of this "
        "machine, until the scenario's end, Ctrl-C or SIGTERM (repeatable). Needs CAP_NET_ADMIN.",
        metavar="HOST=DEVICE",
    ),
]
Capture = Annotated[
    list[str] | None,
    typer.Option(
        help="Write what a link carries, or all links of a node, to a file in the format pcapng, such as "
        "spine0-leaf2:out.pcapng or host3:out.pcapng (repeatable).",
        metavar="LINK|NODE:FILE",
    ),
]
Machines = Annotated[
    int,
    typer.Option(
        min=1,
        max=64,
        help="Machines that share the nodes, this one included; the others join with --join. Needs --listen.",
    ),
]
Listen = Annotated[
    str | None,
    typer.Option(
        help="Where this machine waits for the others, by TCP, and by UDP for packets, such as 0.0.0.0:7770.",
        metavar="ADDRESS:PORT",
    ),
]
Join = Annotated[
    str | None,
    typer.Option(
        help="Take part in the run of another machine, which listens there and writes the results. A scenario that "
        "is given has to be that machine's.",
        metavar="HOST:PORT",
    ),
]
Sockets = Annotated[
    Path | None,
    typer.Option(
        help="Let other programs send messages over the network, until the scenario's end, Ctrl-C or SIGTERM: they "
        "join by the Unix socket that is made at this path, with `cw.Maze.connect`. Only this user may open it.",
        metavar="PATH",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with the token that all machines of a run share; without it, the environment variable "
        f"{TOKEN} has it.",
        metavar="FILE",
    ),
]


def live(
    scenario: ScenarioOrNone = None,
    set_: Sets = None,
    seed: Seed = None,
    load: Load = None,
    out: Out = None,
    bench: Bench = False,
    processes: Processes = 1,
    attach: Attach = None,
    capture: Capture = None,
    machines: Machines = 1,
    listen: Listen = None,
    join: Join = None,
    token_file: TokenFile = None,
    sockets: Sockets = None,
    json_: Json = False,
) -> None:
    """Run a scenario in real time, and in the simulator for comparison, unless hosts are attached or programs join."""
    devices = pairs("--attach", attach, "=", "host3=tap0 or host3=netns:red")
    sets = [("attach", host, device) for host, device in devices.items()]
    sets += [("capture", link, file) for link, file in places("--capture", capture).items()]
    named = [f"live.{table}.{name}={json.dumps(value)}" for table, name, value in sets]
    if join is not None:
        others = bool(listen) or bool(out) or bool(named) or sockets is not None
        _refuse_with_join(bench or processes > 1 or machines > 1 or others)
        given = read_scenarios([scenario], set_, seed, load)[0] if scenario is not None else None
        _join(join, _token(token_file), given, Said(json_))
        return
    if (machines > 1) != (listen is not None):
        raise typer.BadParameter(
            "machines and listen go together: --machines 2 --listen 0.0.0.0:7770", param_hint="--machines"
        )
    if bench == (scenario is not None):
        raise typer.BadParameter("give a scenario, or --bench, which needs none", param_hint="SCENARIO.toml")
    if scenario is None:
        from clearway.running.live_bench import bench as measure

        measure(Said(json_), out or Path("out") / "live-bench")
        return
    read = read_scenarios([scenario], [*(set_ or []), *named], seed, load)[0]
    folder = out or Path("out") / f"{slug(scenario.stem)}-live"
    token = _token(token_file) if machines > 1 else None

    def run() -> cw.Result:
        return cw.live(
            read,
            name="live",
            progress=True,
            processes=processes,
            machines=machines,
            listen=listen,
            token=token,
            sockets=sockets,
            folder=folder,
        )

    _run(read, folder, run, Said(json_), first=machines > 1, joined=sockets is not None)


def _run(
    read: cw.Scenario, folder: Path, run: Callable[[], cw.Result], said: Said, *, first: bool, joined: bool
) -> None:
    """Runs a scenario live and in the simulator: live `first` where other machines wait for it, and not simulated where
    programs have `joined`, or hosts are attached.
    """
    with held(folder):
        for name in ("simulated", "live"):
            check_result(folder / name)
        attached = bool(read.to_dict().get("live", {}).get("attach"))
        results: list[cw.Result] = []
        for name in ("live", "simulated") if first else ("simulated", "live"):
            if ((attached or joined) and name == "simulated") or any(result.interrupted for result in results):
                continue
            result = run() if name == "live" else cw.run(read, name=name, progress=True)
            result.save(folder / name)
            results.append(result)
        results.sort(key=lambda result: result.name, reverse=True)
        import pandas as pd

        tables = [result.fct().rename(index={"all": result.name}) for result in results]
        if read.to_dict().get("traffic"):
            said.table(pd.concat(tables).rename_axis("FCT, us"))
        if attached:
            devices = results[-1].attached.to_pandas()
            said.table(devices.set_index("host"), "attached")
        if joined:
            said.table(results[-1].clients.to_pandas().set_index("pid"), "clients")
        if first:
            said.table(results[-1].machines.to_pandas().set_index("machine"), "machines")
        if results[-1].name == "live":
            info = results[-1].info
            late = (
                f"events handled late by {info['late_us_median']:,.3f} us (median), {info['late_us_p99']:,.3f} us "
                f"(99%), in the network's time; {info['machine_s']:,.2f} s by the machine's clock"
            )
            facts = {key: info[key] for key in ("late_us_median", "late_us_p99", "machine_s", "refused_datagrams")}
            said.line(late, facts)
        said.place("results", folder)
    finish(results, said, endless=attached or joined)


def _token(file: Path | None) -> str:
    return the_token(file.read_text(encoding="utf-8") if file is not None else None)


def _refuse_with_join(others: bool) -> None:
    if others:
        raise typer.BadParameter(
            "how a run is run and where its results go is said where it listens; here go a scenario and its keys, "
            "--token-file and --json",
            param_hint="--join",
        )


def _join(address: str, token: str, scenario: cw.Scenario | None, said: Said) -> None:
    """Takes part in another machine's run."""
    joined = cw.join(address, token=token, scenario=scenario)
    end = f"{joined.end_ps / 1e9:,.3f} ms"
    said.line(
        f"machine {joined.machine} of 0 to {joined.machines - 1}, with {joined.nodes} nodes, lived until {end}; the "
        f"results are where {address} is",
        asdict(joined),
    )
    said.end()
