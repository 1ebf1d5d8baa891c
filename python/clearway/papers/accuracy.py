"""The page docs/accuracy.md: every scheme beside the numbers from outside that it is compared with.

A figure leaves what it compared in `papers/accuracy/PAPER-FIGURE.csv` of the repository; this puts all of that on one
page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from clearway import _core
from clearway.files.whole import replace
from clearway.papers import records as figures
from clearway.papers.figures import Held
from clearway.reports.plots import STYLE, Picture
from clearway.scenarios.listings import schemes

FOLDER = Path("papers") / "accuracy"
PAGE = Path("docs") / "accuracy.md"
PICTURE = Path("docs") / "accuracy-hardware.png"
LINE = "time by a line, us"
"""The statistic of what a user would do without a simulator."""

# Names for the lack of a mechanism, and for one that its user brings.
ABSENT = ("none", "physical_queue", "custom")

INTRODUCTION = """# How accurate it is

This page compares each scheme with numbers from outside Clearway: results of the authors' own programs on the same
flows, numbers that their papers print, closed forms, and optima of linear programs. Each line of the first table is one
comparison. The column "numbers" links to its values, ours beside theirs, by size of flow or by case; "command" repeats
it. The tolerance (`allowed`) was chosen before the run. Each comparison is also a test: in `make test`, or in `make
test-slow` if it takes long.

`clearway paper --write` writes this page from the records that the commands of the table leave in `papers/accuracy`.
Nothing in it is typed. Records of an "older protocol" have not been made anew by today's code yet.
"""

HARDWARE = """### Hardware

Collectives on clusters whose owners have published tables of nccl-tests. The constants of a cluster's library (launch,
latency of a step, efficiency of NICs and of links within hosts, rate of copies, start of Simple: six at most) are
fitted to every second size of its tables, as [`clearway calibrate`](training.md#a-library-as-it-was-measured) does; a
job with these constants then runs at flow level. The errors are those on the other sizes. A line is what a user would
do without a simulator: time = a + b x bytes for each table, through the same half of its sizes. A mean of at most 7%
and 15% at the 90th percentile were chosen before the run, and 5% for SparkRing.

"""

SINGLE = """### Single measurements

Numbers that were measured once, on a switch and for expert parallelism. What their owner does not say (weights, a pool,
the time until kernels run) is inferred from the rows that say so; the others are compared.

"""

HOSTS = """### Hosts

Round trips of the shortest tenth of all messages on 40 hosts under high load, measured by the authors of Homa/Linux.
The [costs of software](concepts.md#software-that-costs-time) come from the timeline of lone messages of 100 B. The
model is a [second attempt](software-measured.md#two-attempts), which was chosen with these numbers in view.
15% for the median and 30% for the 99th percentile were chosen before the run.

"""

SIMULATED = """### Authors' programs, papers, closed forms
"""


def record(paper: str, figure: str, held: Sequence[Held], command: str, at: Path) -> Path:
    """Records a figure's comparisons in a checkout, with the command, the commit and the seeds."""
    rows = pd.concat(
        [
            one.rows[list(Held.COLUMNS)].assign(
                scheme=one.scheme, against=one.against, kind=one.kind, seeds=one.seeds, error=one.error
            )
            for one in held
        ]
    )
    path = at / FOLDER / f"{paper}-{figure}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows.assign(command=command, commit=_core.COMMIT)
    replace(path, lambda part: table.to_csv(part, index=False, float_format="%.6g"))
    return path


def records(at: Path) -> pd.DataFrame:
    """All comparisons, one row for each number."""
    parts = [_read(path) for path in sorted((at / FOLDER).glob("*.csv"))]
    if not parts:
        raise ValueError(
            f"{at / FOLDER} holds no record; first run a figure that compares, such as `clearway paper pyrrha "
            "reference`"
        )
    rows = pd.concat(parts, ignore_index=True)
    older = {figures.command(record) for record in figures.load(at).values() if record.get("older")}
    return rows.assign(older=rows["command"].isin(older))


_OF_ALL = ("scheme", "against", "kind", "seeds", "error", "command", "commit")


def _read(path: Path) -> pd.DataFrame:
    """A record; `ValueError` says what of it is wrong."""
    try:
        rows = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: is no record of comparisons: {error}") from None
    missing = [name for name in (*Held.COLUMNS, *_OF_ALL) if name not in rows]
    missing += [name for name in ("ours", "theirs", "within", "error") if name in rows and rows[name].dtype == object]
    if missing:
        raise ValueError(f"{path}: the column {missing[0]} is missing or has no numbers")
    return rows


def page(rows: pd.DataFrame, known: Sequence[str]) -> str:
    """The page: one line for each comparison, the schemes without one, then the numbers of each comparison."""
    text = [INTRODUCTION]
    kinds = {"hardware": hardware, "measurement": single, "hosts": hosts}
    measured = rows[rows["kind"] == "hardware"]
    text += [made(rows[rows["kind"] == kind]) for kind, made in kinds.items() if (rows["kind"] == kind).any()]
    rows = rows[~rows["kind"].isin(list(kinds))]
    text += [SIMULATED] if len(text) > 1 else []
    groups = list(rows.groupby(["scheme", "against", "kind", "seeds", "command", "commit"], sort=False))
    lines = [
        "| scheme | held against | kind | command | numbers | median error | worst error | outside what is allowed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, ((scheme, against, kind, _, command, _), group) in enumerate(groups, 1):
        worst = max(group["error"], key=abs)
        outside = int((group["error"].abs() > group["within"]).sum())
        median = group["error"].abs().median()
        errors = f"{median:.1%} | {worst:+.1%} | {outside or 'none'}"
        buckets = f"[{len(group)}](#{anchor(number)})"
        older = ", older protocol" if group["older"].any() else ""
        lines.append(f"| {scheme} | {against} | {kind} | `{command}`{older} | {buckets} | {errors} |")
    text.append("\n".join(lines) + "\n")
    named = {word for scheme in rows["scheme"] for word in scheme.replace(",", " ").split()}
    without = [name for name in known if name not in named]
    if without:
        text.append(f"**No outside number yet:** {', '.join(f'`{name}`' for name in without)}.\n")
    for number, ((scheme, against, kind, seeds, command, commit), group) in enumerate(groups, 1):
        said = f"{kind}; `{command}`, commit {commit}, seeds {seeds}."
        text.append(f'<a id="{anchor(number)}"></a>\n\n## {scheme}: {against}\n\n{said}\n')
        table = ["| flows | statistic | ours | theirs | error | allowed |", "|---|---|---|---|---|---|"]
        row: Any
        for row in group.itertuples():
            mark = "" if abs(row.error) <= row.within else " **outside**"
            numbers = f"{row.ours:.4g} | {row.theirs:.4g} | {row.error:+.1%}{mark} | {row.within:.0%}"
            table.append(f"| {row.bucket} | {row.statistic} | {numbers} |")
        text.append("\n".join(table) + "\n")
    if len(measured):
        text.append(hardware_cells(measured))
    return "\n".join(text)


def hardware(rows: pd.DataFrame) -> str:
    """The opening: clusters whose tables have been published, with ours and a line's error on sizes held out."""
    lines = [
        "| system | held against | sizes | mean error | 90% within | worst | a line's mean error |",
        "|---|---|---|---|---|---|---|",
    ]
    everything = []
    for (system, against), group in rows.groupby(["scheme", "against"], sort=False):
        out = group[group["within"] < 1]
        ours = out.loc[out["statistic"] != LINE, "error"].abs()
        line = out.loc[out["statistic"] == LINE, "error"].abs()
        everything.append((ours, line))
        numbers = f"{ours.mean():.1%} | {ours.quantile(0.9):.1%} | {ours.max():.1%} | {line.mean():.1%}"
        lines.append(f"| {system} | {against} | {len(ours)} | {numbers} |")
    ours, line = (pd.concat(parts) for parts in zip(*everything))
    numbers = f"{ours.mean():.1%} | {ours.quantile(0.9):.1%} | {ours.max():.1%} | {line.mean():.1%}"
    lines.append(f"| **all** | | {len(ours)} | {numbers} |")
    picture = "![Predicted beside measured times](accuracy-hardware.png)"
    return HARDWARE + "\n".join(lines) + f"\n\n[Every size](#hardware-sizes).\n\n{picture}\n"


def single(rows: pd.DataFrame) -> str:
    """Measurements of other things than collectives, ours beside them."""
    lines = [
        "| system | source | of | quantity | measured | ours | error | allowed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    row: Any
    for row in rows.itertuples():
        mark = "" if abs(row.error) <= row.within else " **outside**"
        allowed = f"{row.within:.0%}" if row.within < 1 else "inferred from it"
        numbers = f"{row.theirs:.4g} | {row.ours:.4g} | {row.error:+.1%}{mark} | {allowed}"
        lines.append(f"| {row.scheme} | {row.against} | {row.bucket} | {row.statistic} | {numbers} |")
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(rows["command"]))
    return SINGLE + "\n".join(lines) + f"\n\nBy {commands}.\n"


def hosts(rows: pd.DataFrame) -> str:
    """Hosts whose software costs time: every number."""
    lines = ["| protocol | workload | statistic | measured | ours | error | allowed |", "|---|---|---|---|---|---|---|"]
    row: Any
    for row in rows.itertuples():
        outside = "" if abs(row.error) <= row.within else " **outside**"
        numbers = f"{row.theirs:.4g} | {row.ours:.4g} | {row.error:+.1%}{outside} | {row.within:.0%}"
        lines.append(f"| {row.scheme} | {row.bucket} | {row.statistic} | {numbers} |")
    [command] = rows["command"].unique()
    made = f"`{command}` makes this table. [How, and why some of it is outside](software-measured.md).\n"
    return HOSTS + "\n".join(lines) + "\n\n" + made


def hardware_cells(rows: pd.DataFrame) -> str:
    """Every size of the clusters."""
    text = ['<a id="hardware-sizes"></a>\n\n### Every size of the clusters\n']
    for system, group in rows.groupby("scheme", sort=False):
        table = [f"#### {system}\n", "| size | measured, us | ours, us | error | a line, us |", "|---|---|---|---|---|"]
        lines = group[group["statistic"] == LINE].set_index("bucket")["ours"]
        row: Any
        for row in group[group["statistic"] != LINE].itertuples():
            line = f"{lines[row.bucket]:.4g}" if row.bucket in lines.index else ""
            table.append(f"| {row.bucket} | {row.theirs:.4g} | {row.ours:.4g} | {row.error:+.1%} | {line} |")
        text.append("\n".join(table) + "\n")
    return "\n".join(text)


def beside_measured(axes: Axes, groups: Iterable[tuple[Any, pd.DataFrame]], measured: str, ours: str) -> None:
    """Draws our times over the measured ones, in us, with a mark for each group, and the line on which both agree."""
    ends = (math.inf, 0.0)
    for (name, group), marker in zip(groups, "osD^v<>pPXh*" * 9):
        axes.plot(group[measured], group[ours], marker, markersize=5, label=str(name))
        ends = (min(ends[0], float(group[measured].min())), max(ends[1], float(group[measured].max())))
    ends = (ends[0] / 1.5, ends[1] * 1.5)
    axes.plot(ends, ends, color="0.6", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured, us", ylabel="ours, us", xlim=ends, ylim=ends)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.legend(fontsize="x-small", loc="upper left")


def draw(rows: pd.DataFrame, file: Path) -> None:
    """Predicted times beside measured ones, of sizes held out."""
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(7.2, 5.6), layout="constrained")
        out = rows[(rows["within"] < 1) & (rows["statistic"] != LINE)]
        beside_measured(picture.subplots(), out.groupby("scheme", sort=False), "theirs", "ours")
        replace(file, lambda part: picture.savefig(part, format="png", dpi=110, metadata={"Software": None}))


def anchor(number: int) -> str:
    """Where the page has the numbers of a comparison. Headings do not tell all of them apart."""
    return f"comparison-{number}"


def schemes_known() -> list[str]:
    """The schemes that need a comparison."""
    return [str(name) for name in schemes().index if name not in ABSENT]


def write(at: Path) -> Path:
    """Writes the page of a checkout."""
    rows = records(at)
    text = page(rows, schemes_known())
    measured = rows[rows["kind"] == "hardware"]
    if len(measured):
        draw(measured, at / PICTURE)
    replace(at / PAGE, lambda part: part.write_text(text))
    return at / PAGE
