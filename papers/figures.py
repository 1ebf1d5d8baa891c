"""What the runners of all papers share: a run that is not made twice, and how a figure or table is shown.

Not part of the package: a runner puts this folder on its path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import typer
from matplotlib.axes import Axes

import clearway as cw
from clearway._plots import STYLE, Picture

Keys = Mapping[str, Any]


@dataclass
class Shown:
    """What a figure or table comes to."""

    table: pd.DataFrame
    checks: dict[str, bool] = field(default_factory=dict)
    picture: Picture | None = None


Figures = Mapping[str, Callable[[], Shown]]


def run(scenario: Path, name: str, keys: Keys, out: Path, threads: int | None = None) -> cw.Result:
    """A scenario with some keys set; what this build has run before into `out` is not run again."""
    wanted = cw.Scenario.load(scenario).with_({"name": f"{scenario.stem} {name}", **keys})
    [result] = cw.compare(wanted, threads=threads, folder=out / "runs", keep=True).results
    if result.interrupted:
        raise KeyboardInterrupt
    for finding in result.info["audit"]:
        if not finding["ok"]:
            raise typer.BadParameter(f"{result.name}: audit: {finding['name']}: {finding['detail']}")
    return result


def show(figures: Figures, which: list[str] | None, out: Path, digits: int | None = None) -> None:
    """Those asked for, or all, or with nothing asked a list of them; exits with 0 if they show what the paper says."""
    if not which:
        for name, figure in figures.items():
            typer.echo(f"{name:10} {figure.__doc__}")
        return
    names = list(figures) if which == ["all"] else which
    for name in names:
        if name not in figures:
            raise typer.BadParameter(f"{name} is none of {', '.join(figures)}, all")
    raise typer.Exit(0 if all([_show(name, figures[name], out, digits) for name in names]) else 1)


def draw(panels: Sequence[Callable[[Axes], object]], columns: int = 3, **shared: Any) -> Picture:
    """Panels in rows in the style of the package."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(4.6 * columns, 2.9 * rows), layout="constrained")
        places = picture.subplots(rows, columns, squeeze=False, **shared).flat
        for axes, panel in zip(places, panels):
            panel(axes)
        for axes in list(places):
            axes.set_axis_off()
        return picture


def _show(name: str, figure: Callable[[], Shown], out: Path, digits: int | None) -> bool:
    """One figure or table; whether it shows what the paper says."""
    typer.secho(f"\n{name}: {figure.__doc__}", bold=True)
    shown = figure()
    typer.echo((shown.table if digits is None else shown.table.round(digits)).to_string())
    for check, ok in shown.checks.items():
        typer.secho(f"  {'pass' if ok else 'FAIL'}  {check}", fg=None if ok else typer.colors.RED)
    out.mkdir(parents=True, exist_ok=True)
    shown.table.to_csv(out / f"{name}.csv")
    if shown.picture is not None:
        shown.picture.savefig(out / f"{name}.png", dpi=150)
        typer.echo(f"  {out / name}.png")
    return all(shown.checks.values())
