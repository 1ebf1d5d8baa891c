"""`clearway calibrate`: constants of a collective library from logs of its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.options import Json
from clearway.cli.said import Said
from clearway.files.whole import replace


def calibrate(
    logs: Annotated[
        list[Path], typer.Argument(help="Logs of nccl-tests, rccl-tests or OSU's benchmarks.", metavar="LOG...")
    ],
    fabric: Annotated[
        Path,
        typer.Option(help="A scenario with the hosts' links, and a job that says what a host has.", metavar="SCENARIO"),
    ],
    collective: Annotated[
        str | None,
        typer.Option(
            help="The collective of logs that do not name it: all_reduce, all_gather, reduce_scatter or send_recv.",
            metavar="NAME",
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(help="Number of ranks, if the logs do not say it, as OSU's do not.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Take what a run that was cut off has left.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the table [library] to this file.", metavar="FILE")] = None,
    json_: Json = False,
) -> None:
    """Read a collective library's constants from logs of its tests."""
    import pandas as pd

    from clearway.calibration.fit import SHOWN

    found, said = cw.calibrate(logs, fabric, collective=collective, ranks=ranks, partial=partial), Said(json_)
    constants = [
        {
            "constant": of.key,
            "value": of.value * SHOWN[of.key][0],
            "from": of.low * SHOWN[of.key][0],
            "to": of.high * SHOWN[of.key][0],
            "unit": "Gbps a channel" if of.key == "copy" else SHOWN[of.key][1],
            "determined": "yes" if of.determined else "no",
            "physical": "yes" if of.physical else "no",
        }
        for of in found.constants
    ]
    said.table(pd.DataFrame(constants), "constants", "from, to: the interval of 95%")
    cells = found.cells[["collective", "bytes", "measured_us", "ours_us", "error", "algorithm", "protocol"]]
    said.table(cells, "sizes", "error: of ours, by constants from all sizes")
    errors = {
        "held_out_sizes": len(found.held_out),
        "mean_error": float(found.held_out.abs().mean()),
        "p90_error": float(found.held_out.abs().quantile(0.9)),
        "mean_error_of_a_line": float(found.line.abs().mean()),
    }
    text = "sizes held out: mean error {mean_error:.1%}, 90% within {p90_error:.1%}; a line {mean_error_of_a_line:.1%}"
    said.line(text.format(**errors), errors)
    said.line("not explained: " + "; ".join(found.unexplained), {"unexplained": found.unexplained})
    if out is not None:
        replace(out, lambda part: part.write_text(found.library))
        said.place("written", out)
    else:
        said.line(found.library.rstrip(), {"library": found.library})
    said.end()
