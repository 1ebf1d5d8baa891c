"""What the runners of all papers share: a run that is not made twice, and how a figure or table is shown.

Not part of the package: a runner puts this folder on its path.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import clearway as cw
import matplotlib as mpl
import pandas as pd
import typer
from clearway import _core
from clearway._plots import STYLE, Picture
from matplotlib.axes import Axes

Keys = Mapping[str, Any]
Kind = Literal["authors' run", "paper", "closed form", "linear program"]


@dataclass
class Held:
    """A scheme held against numbers that are not ours.

    `rows` has a row a number: `bucket` (which flows: "vulnerable, up to 1 KB"; "all"), `statistic` ("mean FCT, us"), `ours`, `theirs`,
    and `within`, how far ours may be off either way as a share of theirs, chosen before the run. Each row is a check of the figure.
    """

    scheme: str
    """As the catalogue has it, its flow control and sharing behind it where they matter: "dcqcn over pfc"."""
    against: str
    """What brought the numbers forth: "its authors' ns-3, 50,095 flows of web server sizes"."""
    kind: Kind
    rows: pd.DataFrame
    seeds: str = "1"
    """Of our runs: "1", "1 to 3"."""

    COLUMNS = ("bucket", "statistic", "ours", "theirs", "within")

    @property
    def error(self) -> pd.Series[float]:
        """How far ours is off, as a share of theirs: negative where ours is less."""
        return self.rows["ours"].astype(float) / self.rows["theirs"].astype(float) - 1

    @property
    def checks(self) -> dict[str, bool]:
        """A check a row."""
        return {
            f"{self.scheme}, {row.bucket}, {row.statistic}: {row.ours:.4g} for {row.theirs:.4g} ({off:+.1%}, within {row.within:.0%})": bool(
                abs(off) <= row.within
            )
            for row, off in zip(self.rows.itertuples(), self.error)
        }


@dataclass
class Shown:
    """What a figure or table comes to."""

    table: pd.DataFrame
    checks: dict[str, bool] = field(default_factory=dict)
    picture: Picture | None = None
    held: list[Held] = field(default_factory=list)
    """What becomes part of docs/accuracy.md."""

    def __post_init__(self) -> None:
        for held in self.held:
            self.checks |= held.checks


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


def by_size(
    ours: pd.Series[float],
    theirs: pd.Series[float],
    packets: pd.Series[int],
    buckets: Mapping[str, tuple[float, float]],
    mean: float,
    tail: float,
) -> pd.DataFrame:
    """Rows of `Held`: mean and 99th percentile of the slowdowns of the same flows, by how many packets they have."""
    rows = []
    for bucket, (low, high) in buckets.items():
        chosen = packets.between(low, high)
        a, b = ours[chosen], theirs[chosen]
        rows.append((bucket, "mean slowdown", a.mean(), b.mean(), mean))
        rows.append((bucket, "p99 slowdown", a.quantile(0.99), b.quantile(0.99), tail))
    return pd.DataFrame(rows, columns=list(Held.COLUMNS))


def of_flows(result: cw.Result) -> pd.DataFrame:
    """Number, completion time and ideal of each flow, in us, in the order of the list that it is from."""
    flows = pd.DataFrame({name: pd.Series(result.flows[name]).astype(float) for name in ("flow", "fct_ps", "ideal_ps")})
    flows = flows.sort_values("flow").reset_index(drop=True)
    return flows.assign(fct_us=flows["fct_ps"] / 1e6, ideal_us=flows["ideal_ps"] / 1e6)


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
    if shown.held:
        _record(name, shown.held)
    if shown.picture is not None:
        shown.picture.savefig(out / f"{name}.png", dpi=150)
        typer.echo(f"  {out / name}.png")
    return all(shown.checks.values())


RECORDS = Path(__file__).parent / "accuracy"


def _record(name: str, held: Sequence[Held]) -> None:
    """Leaves what was compared beside the papers, with the command, the commit and the seeds: `accuracy.py` makes a page of it."""
    runner = Path(sys.argv[0]).resolve()
    # `all` and other figures' names are not part of what repeats this one.
    words = sys.argv[1:]
    first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    options = words[first:]
    command = shlex.join([str(runner.relative_to(RECORDS.parent.parent)), name, *options])
    rows = pd.concat(
        [
            one.rows[list(Held.COLUMNS)].assign(
                scheme=one.scheme, against=one.against, kind=one.kind, seeds=one.seeds, error=one.error
            )
            for one in held
        ]
    )
    RECORDS.mkdir(exist_ok=True)
    # A runner is `papers/PAPER/reproduce.py`, or one file for many papers.
    paper = runner.stem.replace("_", "-") if runner.parent == RECORDS.parent else runner.parent.name
    path = RECORDS / f"{paper}-{name}.csv"
    rows.assign(command=f"python {command}", commit=_core.COMMIT).to_csv(path, index=False, float_format="%.6g")
    typer.echo(f"  {path}")
