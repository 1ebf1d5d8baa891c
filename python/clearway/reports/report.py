"""A report: one HTML file on one or more results that opens anywhere, without network, and prints.

Charts are drawn by Bokeh, whose script is in the page itself. Captions say how the numbers were made, so that the page
explains itself.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clearway.comparisons.unchanged import of_results
from clearway.reports import explorer, html
from clearway.reports.charts import Failure
from clearway.reports.looks import looks_of
from clearway.reports.report_charts import ReportCharts
from clearway.reports.spec import SAID, SPEC, TABLES
from clearway.results import points, statistics
from clearway.results.advice import lines_of
from clearway.results.points import SPENT, Floats
from clearway.results.times import time_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway.results.result import Result


def write(results: Sequence[Result], path: Path, notes: Sequence[str] = ()) -> Path:
    """Writes a report on `results`, with notes at its head: the whole file or nothing."""
    results = _told_apart(results)
    title = " · ".join(dict.fromkeys(_scenario_name(result) for result in results))
    charts, (trees, css) = ReportCharts(results, failures(results)), _trees(results)
    parts = [
        f"<h1>{escape(title)}</h1>",
        _subtitle(results),
        _warnings(results, notes),
        html.section("Summary", _summary(results) + _by_kind(results)),
        html.section(
            "Tenants over time", charts.row(tenants, SAID["entities"]) if (tenants := charts.entities()) else ""
        ),
        _jobs(results, charts),
        _completions(results, charts),
        html.section("Flow by flow", explorer.section(results, charts, failures(results))),
        _where_time_went(results, charts),
        _guarantees(results, charts),
        _over_time(results, charts),
        html.section("Congestion trees", trees),
        html.section("Not finished", _unfinished(results)),
        html.section("Lost and marked packets", _lost(_packets(results)) if _packets(results) else ""),
        html.section("Audit", _audit(results)),
        html.section("What the transports counted", _counters(_packets(results))),
        html.section("How it was run", _runs(results)),
        html.section("Scenario", _scenarios(results)),
        charts.script(),
    ]
    return html.write(title, parts, path, css)


def _completions(results: Sequence[Result], charts: ReportCharts) -> str:
    """Empty charts would stand where no flow completed."""
    if not any(result.info["flows_completed"] for result in results):
        return ""
    by_size = html.section("Slowdown by flow size", charts.row(charts.slowdown(), SAID["slowdown"]))
    return by_size + html.section("Completion times", charts.row(charts.distributions(), SAID["distributions"]))


def _jobs(results: Sequence[Result], charts: ReportCharts) -> str:
    if not any("jobs" in result.tables for result in results):
        return ""
    from clearway.reports import job_charts

    return job_charts.section(results, charts)


def _trees(results: Sequence[Result]) -> tuple[str, str]:
    """Congestion trees, and their style; both empty without any."""
    if not any("congestion" in result.tables for result in results):
        return "", ""
    from clearway.reports import trees

    section = trees.section(results)
    return section, trees.CSS if section else ""


def _told_apart(results: Sequence[Result]) -> list[Result]:
    """The results, each under a name of its own, since charts have an axis of names: the second `web` is `web (2)`."""
    found: list[Result] = []
    for result in results:
        name, number, taken = result.name, 1, {one.name for one in found}
        while name in taken:
            number += 1
            name = f"{result.name} ({number})"
        same = name == result.name
        found.append(result if same else type(result)(name, result.tables, result.info, result.scenario_toml))
    return found


_WORSE = {"rate": "rate", "loss": "loss", "bit_error_rate": "bit error rate"}
"""Keys that make a link worse without a failure."""


def failures(results: Sequence[Result]) -> list[Failure]:
    """When something fails or gets worse and when it ends, by the scenarios: each instant once."""
    found: dict[Failure, None] = {}
    for result in results:
        for failure in tomllib.loads(result.scenario_toml).get("failure", []):
            where = failure.get("switch") or " – ".join(failure.get("link", ()))
            worse = [f"{words} {failure[key]}" for key, words in _WORSE.items() if key in failure]
            how = ", ".join(worse) or ("flaps" if "flap" in failure else "down")
            found[Failure(_milliseconds(failure["at"]), f"{where}: {how}")] = None
            if "until" in failure:
                found[Failure(_milliseconds(failure["until"]), f"{where}: as before")] = None
    return list(found)


def _milliseconds(time: str) -> float:
    """A time as a result's own scenario has it."""
    return time_of(time) / 1e9


def _packets(results: Sequence[Result]) -> list[Result]:
    """The results with packets."""
    return [result for result in results if result.level == "packet"]


def _by_kind(results: Sequence[Result]) -> str:
    """Slowdown by class and transport, where there is more than one."""
    rows = []
    for result in results:
        for line in points.split([result]):
            slowdown = line.floats("slowdown")
            done = slowdown[~np.isnan(slowdown)]
            numbers = [done.mean(), *np.quantile(done, [0.5, 0.99])] if len(done) else [np.nan] * 3
            counts = f"{len(slowdown):,}", f"{len(slowdown) - len(done):,}"
            rows.append([result.name, line.name, *counts, *map(html.number, numbers)])
    if len(rows) == len(results):
        return ""
    return f"<h3>By class and transport</h3>{html.table(TABLES['by_kind'], rows, text=2)}"


def _where_time_went(results: Sequence[Result], charts: ReportCharts) -> str:
    known = _packets(results)
    if not known:
        return ""
    caption = SAID["spent"].format(sizes=_size_legend(known))
    parts = "".join(
        f'<span><span class=dot style="background:{colour}"></span>{words}</span>' for _, words, colour in SPENT
    )
    return html.section(
        "Where time went", f"<div class=legend>{parts}</div>{charts.row(charts.where_time_went(known), caption)}"
    )


def _scenario_name(result: Result) -> str:
    for line in result.scenario_toml.splitlines():
        if line.startswith("name = ") and (name := line.partition(" = ")[2].strip("\"'")):
            return name
    return result.name


def _subtitle(results: Sequence[Result]) -> str:
    facts = list(dict.fromkeys(fact for result in results for fact in _setting(result)))
    for key, unit in (("hosts", "hosts"), ("flows", "flows")):
        values = sorted({result.info[key] for result in results})
        facts.append(" and ".join(f"{value:,}" for value in values) + f" {unit}")
    bdp = sorted({result.info["bdp_bytes"] for result in results})
    facts.append("bandwidth-delay product " + " and ".join(f"{value:,} B" for value in bdp))
    return f"<p class=subtitle>{escape(', '.join(facts))}</p>"


def _setting(result: Result) -> list[str]:
    """The kind of fabric, and the requested loads."""
    scenario = tomllib.loads(result.scenario_toml)
    facts = [str(kind).replace("_", "-") for kind in scenario.get("fabric", {})]
    for traffic in scenario.get("traffic", []):
        arrivals = traffic.get("arrivals")
        for process in arrivals.values() if isinstance(arrivals, dict) else ():
            if isinstance(process, dict) and "load" in process:
                facts.append(f"{traffic.get('name', 'traffic')} at load {process['load']:g}")
    return facts


def _warnings(results: Sequence[Result], notes: Sequence[str]) -> str:
    said = [escape(note) for note in notes]
    warnings: dict[str, list[str]] = {}
    for result in results:
        if result.level == "flow":
            said.append(SAID["flow_level"].format(name=escape(result.name)))
        if result.level == "links":
            said.append(SAID["links_level"].format(name=escape(result.name)))
        if result.approximate:
            said.append(SAID["approximate"].format(name=escape(result.name)))
        if not len(result.flows):
            said.append(SAID["no_flows"].format(name=escape(result.name)))
        if result.interrupted:
            said.append(SAID["interrupted"].format(name=escape(result.name)))
        for warning in result.info.get("warnings", []):
            warnings.setdefault(warning, []).append(result.name)
        said += [
            SAID["failed"].format(name=escape(result.name), finding=escape(f"{finding['name']}: {finding['detail']}"))
            for finding in result.info["audit"]
            if not finding["ok"]
        ]
    # Once each, however many runs say it.
    said += [escape(line) for line in lines_of(warnings, len(results))]
    said += [escape(str(one)) for one in of_results(results)]
    return f"<div class=warning>{'<br>'.join(said)}</div>" if said else ""


def _summary(results: Sequence[Result]) -> str:
    sizes = ("all", "short", "medium", "long")
    head = (
        "<tr><th rowspan=2>"
        + "".join(f"<th colspan=2 class=group>{size} flows" for size in sizes)
        + "<th rowspan=2>goodput<br><small>Gbit/s</small><th rowspan=2>unfinished<br><small>flows</small>"
        "<th rowspan=2>dropped<br><small>packets</small><th rowspan=2>sent again<br><small>packets</small>"
        "<th rowspan=2>hops<br><small>million/s</small></tr>"
        + f"<tr>{'<th><small>mean</small><th><small>99%</small>' * len(sizes)}</tr>"
    )
    slowdowns = [statistics.slowdowns(result) for result in results]
    values = np.array([_headline(result, of, sizes) for result, of in zip(results, slowdowns)])
    spans = np.array(
        [
            [[of[size][f"{name} {end}"] for end in ("low", "high")] for size in sizes for name in ("mean", "p99")]
            for of in slowdowns
        ],
        dtype=float,
    )
    best = _best(values, np.array([result.unfinished for result in results]))
    rows = []
    for row, result, look in zip(range(len(results)), results, looks_of(results)):
        name = f"<th class=run>{html.swatch(look)}{escape(result.name)}"
        cells = []
        for column, value in enumerate(values[row]):
            text = f"{value:,.0f}" if column in _COUNTS and not np.isnan(value) else html.number(value)
            low, high = spans[row, column] if column < 2 * len(sizes) else (np.nan, np.nan)
            text += "" if np.isnan(low) else f"<br><small class=span>{html.number(low)}–{html.number(high)}</small>"
            cells.append(f"<td class=best>{text}" if best[row, column] else f"<td>{text}")
        rows.append(f"<tr>{name}{''.join(cells)}</tr>")
    note = SAID["summary"].format(intervals=SAID["intervals"], sizes=_size_legend(results))
    if best.any():
        note += " The best value of a column is bold."
        if len({bool(result.unfinished) for result in results}) > 1:
            note += (
                " Runs with unfinished flows are compared only by goodput and by the number of these flows: their "
                "worst flows have no slowdown."
            )
    return (
        f"<table class=summary><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p class=note>{escape(note)}</p>"
    )


# Columns of the summary after the eight of slowdown: goodput, unfinished, dropped, sent again, hops.
_COUNTS = (9, 10, 11)


def _headline(result: Result, slowdowns: dict[str, dict[str, float]], sizes: Sequence[str]) -> list[float]:
    slowdown = [slowdowns[size][name] for size in sizes for name in ("mean", "p99")]
    if result.estimated:
        return [*slowdown, result.goodput() / 1e9, result.unfinished, np.nan, np.nan, np.nan]
    wall = result.info["wall_seconds"]
    hops = result.info["packet_hops"] / wall / 1e6 if wall else np.nan
    return [*slowdown, result.goodput() / 1e9, result.unfinished, result.dropped, result.resent, hops]


def _best(values: Floats, unfinished: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The best cells of each column.

    Flows that a run left unfinished have no slowdown and may have cost few packets. So such a run is compared only by
    goodput and unfinished flows. Simulation speed depends on the machine and has no best.
    """
    best = np.zeros(values.shape, dtype=bool)
    whole = unfinished == 0
    for column in range(values.shape[1] - 1):
        fair = np.full(len(values), True) if column in (8, 9) else whole
        known = values[fair & ~np.isnan(values[:, column]), column]
        if len(known) and known.min() < known.max():
            wanted = known.max() if column == 8 else known.min()
            best[:, column] = fair & (values[:, column] == wanted)
    return best


def _size_legend(results: Sequence[Result]) -> str:
    bdp = sorted({result.info["bdp_bytes"] for result in results})
    if len(bdp) > 1:
        return SAID["sizes_differ"]
    return SAID["sizes"].format(bdp=f"{bdp[0]:,}", eight=f"{8 * bdp[0]:,}")


def _guarantees(results: Sequence[Result], charts: ReportCharts) -> str:
    if not any("guarantees" in result.tables for result in results):
        return ""
    return html.section("Guarantees", charts.row(charts.guarantees(), SAID["guarantees"]))


def _over_time(results: Sequence[Result], charts: ReportCharts) -> str:
    pictures = []
    if any("utilisation" in result.tables and len(result.utilisation) for result in results):
        pictures.append(charts.row(charts.utilisation(), SAID["utilisation"]))
    if any("queues" in result.tables and len(result.queues) for result in results):
        pictures.append(charts.row(charts.queues(), SAID["queues"]))
    if not pictures:
        return html.section("Network over time", f"<p>{SAID['no_samples']}</p>")
    return html.section("Network over time", "".join(pictures))


def _unfinished(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        flows = result.flows
        left = np.flatnonzero(flows["status"] != "completed")
        status, reason, size = (flows[name][left] for name in ("status", "reason", "bytes"))
        flow, src, dst = (flows[name][left] for name in ("flow", "src", "dst"))
        for how, why in sorted(set(zip(status.tolist(), reason.tolist()))):
            of = np.flatnonzero((status == how) & (reason == why))
            examples = ", ".join(f"{flow[one]} ({src[one]} → {dst[one]})" for one in of[:3])
            rows.append([result.name, how, why, examples, f"{len(of):,}", f"{int(size[of].sum()):,}"])
    if not rows:
        return f"<p>{SAID['unfinished']}</p>"
    return html.table(TABLES["unfinished"], rows, text=4)


def _lost(results: Sequence[Result]) -> str:
    """Losses by cause and tier of the link, with packets that were trimmed, marked, or damaged and went on."""
    rows = []
    for result in results:
        links = result.links
        if "aqs" in result.tables and (dropped := int(result.aqs["dropped_packets"].sum())):
            # Of all that came to an AQ, which is at no link.
            came = dropped + int(result.aqs["passed_packets"].sum())
            rows.append([result.name, "dropped by an AQ", "-", f"{dropped:,}", f"{dropped / came:.3%}"])
        for counter, packets in result.lost_in_hosts().items():
            # Of all that links from hosts or to hosts carried.
            tier = "to_host" if counter == "intake_lost_packets" else "from_host"
            carried = int(links["sent_packets"][links["tier"] == tier].sum())
            words = SPEC["lost_in_hosts"][counter]
            rows.append([result.name, words, "-", f"{packets:,}", f"{packets / max(1, carried):.3%}"])
        for cause, words in SPEC["lost"].items():
            for tier in ("from_host", "up", "down", "to_host"):
                of_tier = links["tier"] == tier
                packets = int(links[f"{cause}_packets"][of_tier].sum())
                if packets:
                    sent = packets / max(1, int(links["sent_packets"][of_tier].sum()))
                    rows.append([result.name, words, tier.replace("_", " "), f"{packets:,}", f"{sent:.3%}"])
    if not rows:
        return f"<p>{SAID['lost']}</p>"
    return html.table(TABLES["lost"], rows, text=3)


def _audit(results: Sequence[Result]) -> str:
    rows = [
        [result.name, "✓" if finding["ok"] else "✗ failed", finding["name"], finding["detail"]]
        for result in results
        for finding in result.info["audit"]
    ]
    return html.table(TABLES["audit"], rows, text=4)


def _counters(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        counters = result.counters
        for transport, counter, value in zip(counters["transport"], counters["counter"], counters["value"]):
            if value:
                rows.append([result.name, transport, counter.replace("_", " "), f"{int(value):,}"])
    return html.table(TABLES["counters"], rows, text=3) if rows else ""


def _runs(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        info = result.info
        rows.append(
            [
                result.name,
                str(info.get("digest", "-")),
                str(info["seed"]),
                str(info["ended"]),
                f"{info['end_ps'] / 1e9:,.3f} ms",
                f"{info['packet_hops']:,}" if result.level == "packet" else "-",
                str(info.get("threads", "-")),
                f"{info['wall_seconds']:,.1f} s",
                f"{info['cpu_seconds']:,.1f} s",
                f"{info['peak_memory_bytes'] / 1e6:,.0f} MB",
            ]
        )
    again = (
        "To repeat a run, save its scenario as scenario.toml and run <code>clearway run scenario.toml</code> with the "
        f"same version: {SAID['again']}"
    )
    # A live run has no digest, since it does not repeat exactly.
    note = f"<p class=note>{again}</p>" if all(result.digest and not result.interrupted for result in results) else ""
    return f"{html.table(TABLES['runs'], rows, text=4)}{note}"


def _scenarios(results: Sequence[Result]) -> str:
    """The first scenario in full, and the differences of the others."""
    first = results[0].scenario_toml
    full = f"<summary>{escape(results[0].name)}, every default filled in</summary><pre>{escape(first)}</pre>"
    parts = [f"<details open>{full}</details>"]
    for result in results[1:]:
        lines = list(difflib.unified_diff(first.splitlines(), result.scenario_toml.splitlines(), lineterm="", n=0))
        changed = [escape(line[0] + " " + line[1:]) for line in lines[2:] if not line.startswith("@@") and line[1:]]
        what = f"<pre>{chr(10).join(changed)}</pre>" if changed else "<p>The same.</p>"
        parts.append(f"<h3>{escape(result.name)}: differences</h3>{what}")
    return "\n".join(parts)
