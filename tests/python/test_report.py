from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import bokeh
import browser
import clearway as cw
import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from clearway.comparisons import all_schemes
from clearway.reports import explorer, lines, report
from clearway.reports.charts import Charts
from clearway.reports.looks import LOOKS, Look, look, looks, looks_of
from clearway.results import points


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> cw.Comparison:
    scenario = cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_({"traffic.0.flows": 150, "measure.end": "1ms"})
    return cw.compare(scenario, ["dcpim", "udp"], folder=tmp_path_factory.mktemp("compared"))


@pytest.fixture(scope="session")
def page(comparison: cw.Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return comparison.report(tmp_path_factory.mktemp("report") / "report.html").read_text()


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.external: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in ("link", "iframe", "img", "object", "embed"), tag
        for name, value in attributes:
            if name in ("href", "src", "xlink:href", "srcset", "data") and not (value or "").startswith("#"):
                self.external.append(f"{name}={value}")


def test_the_page_needs_no_network(page: str) -> None:
    links = Links()
    links.feed(page)
    assert links.external == []
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert style and "@import" not in style and not re.search(r"url\((?!['\"]?#)", style)


def read_by_bokeh(page: str) -> Document:
    """The charts of a page, by Bokeh's own package, which refuses unknown models, properties and kinds of values."""
    text = page.partition("<script type=application/json id=charts>")[2]
    drawn = json.JSONDecoder().raw_decode(text)[0]["document"]
    config = {"type": "object", "name": "DocumentConfig", "id": "config"}
    return Document.from_json(drawn | {"version": bokeh.__version__, "config": config})


def test_bokeh_reads_the_charts_of_a_page(page: str, comparison: cw.Comparison, tmp_path: Path) -> None:
    charts = read_by_bokeh(page).roots
    assert [chart.title.text for chart in charts][:2] == ["mean", "99th percentile"]
    mean = charts[0]
    columns = points.by_size(points.every(comparison.results))[0]
    line = mean.renderers[0]
    np.testing.assert_array_equal(line.data_source.data["y"], columns["mean"])
    assert (line.name, line.glyph.x.field, line.glyph.y.field) == ("dcpim", "x", "y")
    assert [item.label["value"] for item in mean.legend[0].items] == [one.name for one in comparison.results]
    flows = next(one for chart in charts for one in chart.renderers if one.data_source.name == "flows").data_source
    assert len(flows.data["flow"]) == sum(len(one.flows) for one in comparison.results)
    job = '[[job]]\nname = "train"\nsteps = [{ compute = "5us" }, { all_reduce = { bytes = "300KB" } }]\n'
    down = '[[failure]]\nlink = ["switch0", "host3"]\nat = "20us"\nuntil = "40us"\n'
    star = 'transport = "dctcp"\n[fabric.star]\nhosts = 8\n'
    bound = cw.Scenario.load("examples/tiny.toml").with_(transport="harmony")
    for scenario in (cw.Scenario.from_toml(star + job + down), bound):
        assert read_by_bokeh(cw.run(scenario).report(tmp_path / "page.html").read_text()).roots


def test_bokeh_reads_lines_over_many_runs() -> None:
    runs = pd.DataFrame({"load": [0.1, 0.5, 0.1, 0.5], "over": ["udp", "udp", "dcpim", "dcpim"], "unfinished": 0})
    runs["all p99"] = [1.0, 2.0, 1.5, 4.0]
    for x in ("load", "over"):
        charts = Charts()
        axes = lines.Axes(x, "over" if x == "load" else None)
        lines.Lines(charts, runs, axes, "web").row([lines.Panel("all", "all p99", line=2.0)], "caption")
        (chart,) = read_by_bokeh(charts.script()).roots
        assert {type(one.glyph).__name__ for one in chart.renderers} >= {"Patches", "Scatter"}


def test_the_page_shows_all_there_is_to_a_comparison(page: str, comparison: cw.Comparison) -> None:
    for heading in ("Summary", "Slowdown by flow size", "Completion times", "Where time went", "Network over time"):
        assert f"<h2>{heading}</h2>" in page
    for result in comparison.results:
        assert result.digest is not None and result.digest in page
    pictures = re.findall(r'<div class=charts role=img aria-label="([^"]*)"', page)
    assert len(pictures) == 7 and all("dcpim, udp" in said for said in pictures if "Lines:" in said)
    assert "not delivered" in page, "1 ms is too short for all, and the page says so"
    assert "[transport.dcpim]" in page and "+ [transport.udp]" in page


def test_the_summary_has_the_numbers_of_the_tables(page: str, comparison: cw.Comparison) -> None:
    rows = re.findall(r"<th class=run>.*?</tr>", page)
    assert len(rows) == len(comparison.results)
    for row, result in zip(rows, comparison.results):
        cells = [float(cell.replace(",", "").replace("–", "nan")) for cell in re.findall(r"<td[^>]*>([^<]*)", row)]
        flows, links, bdp = list(result.flows), result.links, result.info["bdp_bytes"]
        expected: list[float] = []
        for least, most in ((0, np.inf), (0, bdp), (bdp, 8 * bdp), (8 * bdp, np.inf)):
            of_size = [f["slowdown"] for f in flows if least < f["bytes"] <= most and f["fct_ps"] is not None]
            expected += [sum(of_size) / len(of_size), np.percentile(of_size, 99)] if of_size else [np.nan, np.nan]
        done = [f for f in flows if f["delivered_ps"] is not None]
        began = min(f["start_ps"] for f in flows if f["start_ps"] is not None)
        span = max(f["delivered_ps"] for f in done) - began
        expected.append(sum(f["bytes"] for f in done) * 8 * 1e3 / span)
        expected.append(sum(f["status"] != "completed" for f in flows))
        expected.append(int(links["overflow_packets"].sum() + links["dead_packets"].sum()))
        expected.append(sum(f["resent_packets"] for f in flows))
        expected.append(result.info["packet_hops"] / result.info["wall_seconds"] / 1e6)
        np.testing.assert_allclose(cells, expected, rtol=0.006, atol=0.006)


def test_best_is_said_only_of_what_can_be_compared() -> None:
    from clearway.reports.report import _best

    fast_but_failing = [1.0] * 8 + [50.0, 9, 4, 0, 3]
    slow = [2.0] * 8 + [40.0, 0, 5, 7, 1]
    slower = [3.0] * 8 + [30.0, 0, 6, 8, 2]
    best = _best(np.array([fast_but_failing, slow, slower]), np.array([9, 0, 0]))
    assert best[:, 0].tolist() == [False, True, False], "what did not complete has no slowdown"
    assert best[:, 8].tolist() == [True, False, False], "goodput: more is better"
    assert best[:, 10].tolist() == [False, True, False], "who gives up loses less"
    assert best[:, 9].tolist() == [False, True, True], "unfinished"
    assert best[:, 11].tolist() == [False, True, False], "sent again"
    assert not best[:, 12].any(), "speed is the machine's"
    assert not _best(np.array([slow]), np.array([0])).any(), "one run alone is not the best of anything"


def test_a_loss_has_its_cause_and_an_unfinished_flow_is_named(page: str, comparison: cw.Comparison) -> None:
    for result in comparison.results:
        left = next((f for f in list(result.flows) if f["status"] != "completed"), None)
        if left is not None:
            assert f"{left['flow']} ({left['src']} → {left['dst']})" in page
    lost = page.partition("<h2>Lost and marked packets</h2>")[2].partition("</section>")[0]
    assert ("buffer full" in lost) == any(r.links["overflow_packets"].any() for r in comparison.results)


def test_names_are_text_and_not_markup(result: cw.Result, tmp_path: Path) -> None:
    odd = cw.Result("<script>alert(1)</script>", result.tables, result.info, result.scenario_toml)
    text = odd.report(tmp_path / "odd.html").read_text()
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


ODD = ["_hidden", "costs $5 and $6", r"$\frac$", "a & b < c", "</script>"]


@pytest.mark.parametrize("name", ODD)
def test_a_name_is_drawn_as_it_is(name: str, result: cw.Result) -> None:
    runs = [cw.Result(name, result.tables, result.info, result.scenario_toml), result]
    drawn = cw.Comparison(runs).plot.slowdown().svg()
    assert name in [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", drawn)]


def test_a_run_without_a_single_completed_flow_has_a_page(tmp_path: Path, scenario: cw.Scenario) -> None:
    result = cw.run(scenario.with_({"measure.end": "1ns", "measure.interval": "0s"}))
    assert result.unfinished == 200
    text = result.report(tmp_path / "none.html").read_text()
    assert "not started" in text and "No samples were taken" in text
    assert result.goodput() == 0


def test_a_scheme_keeps_its_colour(comparison: cw.Comparison) -> None:
    assert looks_of(comparison.results) == [LOOKS["dcpim"], LOOKS["udp"]]
    assert looks_of(comparison.results[::-1]) == [LOOKS["udp"], LOOKS["dcpim"]]
    for result in comparison.results:
        assert looks_of([result]) == [LOOKS[result.name]]


def test_the_table_has_a_row_a_run(comparison: cw.Comparison) -> None:
    table = comparison.table()
    assert list(table.index) == ["dcpim", "udp"]
    assert table.loc["dcpim", "short mean"] >= 1
    assert table.loc["udp", "unfinished"] == comparison.results[1].unfinished


def test_pictures_are_figures(result: cw.Result, tmp_path: Path) -> None:
    pictures = (
        result.plot.slowdown(),
        result.plot.fct_cdf(),
        result.plot.utilisation(),
        result.plot.queues(),
        result.plot.where_time_went(),
    )
    for picture in pictures:
        assert picture.svg().startswith("<svg")
    pictures[0].savefig(tmp_path / "slowdown.png")


def test_kept_runs_are_not_run_again(tmp_path: Path, scenario: cw.Scenario) -> None:
    first = cw.compare(scenario, ["udp"], folder=tmp_path)
    kept = cw.compare(scenario, ["udp"], folder=tmp_path, keep=True)
    assert kept.results[0].info == first.results[0].info
    other = cw.compare(scenario.with_(seed=2), ["udp"], folder=tmp_path, keep=True)
    assert other.results[0].digest != first.results[0].digest


def test_runs_of_one_name_are_kept_apart(tmp_path: Path, scenario: cw.Scenario) -> None:
    comparison = cw.compare([scenario, scenario.with_(seed=2)], folder=tmp_path)
    assert [result.name for result in comparison.results] == ["tiny", "tiny 2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny", "tiny-2"]


def test_what_is_guaranteed_is_shown_beside_what_came_of_it(scenario: cw.Scenario, tmp_path: Path) -> None:
    result = cw.run(scenario.with_({"transport": "harmony"}), threads=1)
    assert result.ok and 0 < result.guarantees["share"].max() <= 1
    assert result.guaranteed_waits["quantile"][-1] == 1 and result.guaranteed_waits["share"][-1] <= 1
    assert result.plot.guarantees().svg().startswith("<svg")
    assert "<h2>Guarantees</h2>" in result.report(tmp_path / "report.html").read_text()


def test_a_page_holds_the_slowest_flows_and_says_how_many_each_other_stands_for(
    result: cw.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = explorer._flows(result, 1)
    assert len(every["flow"]) == len(result.flows) and (every["weight"] == 1).all()
    monkeypatch.setattr(explorer, "FLOWS_MAX", 60)
    some = explorer._flows(result, 1)
    assert len(some["flow"]) <= 60 and some["weight"].sum() == pytest.approx(len(result.flows))
    assert set(every["flow"][:4]) <= set(some["flow"]), "the slowest"
    mean = np.average(some["slowdown"], weights=some["weight"])
    assert mean == pytest.approx(every["slowdown"].mean(), rel=0.05)


def test_lines_are_told_apart() -> None:
    assert len(set(looks([f"line {number}" for number in range(32)]))) == 32
    assert len({one.colour for one in looks(["dcpim", "dcpim rounds 2", "mine"])}) == 3
    few = looks(["mine", "dcpim", "dcpim"])
    assert few[1] == LOOKS["dcpim"] and len(set(few)) == 3, "who has a look of its own keeps it"


def test_every_scheme_has_a_look_of_its_own() -> None:
    names = set(cw.schemes().index)
    assert set(LOOKS) == names, "of each scheme of the catalogue, and of no other"
    assert len(set(LOOKS.values())) == len(LOOKS)
    contenders = all_schemes.contenders()
    assert len({look(one.name) for one in contenders}) == len(contenders) >= 16
    for family in all_schemes.FAMILIES:
        of = [look(one.name) for one in contenders if one.family == family]
        assert len({(one.colour, one.dash) for one in of if one}) == len(of), "told apart without their markers"
    assert LOOKS["dcpim"].colour != LOOKS["dctcp"].colour
    assert look("dctcp over pfc") == LOOKS["dctcp"] and look("dctcp over pyrrha") is None
    assert isinstance(look("rdma over pyrrha"), Look)


def test_one_run_of_several_classes_has_a_line_for_each(tmp_path: Path) -> None:
    text = """
name = "two"
transport = "udp"
[fabric.star]
hosts = 4
[[traffic]]
name = "rpc"
sizes = { constant = "10KB" }
pattern = { stride = { by = 1 } }
arrivals = "all_at_once"
[[traffic]]
name = "storage"
sizes = { constant = "1MB" }
pattern = { stride = { by = 2 } }
arrivals = "all_at_once"
"""
    page = cw.run(cw.Scenario.from_toml(text)).report(tmp_path / "two.html").read_text()
    assert "<h3>By class and transport</h3>" in page and "Lines: rpc, storage." in page


def test_a_failure_is_a_line_in_time() -> None:
    faults = cw.run(cw.Scenario.load("examples/faults.toml"))
    marks = {(round(one.at_ms, 6), one.what) for one in report.failures([faults, faults])}
    assert (0.2, "leaf0 – spine0: rate 20Gbps") in marks and (1.0, "leaf0 – spine0: as before") in marks
    assert (1.0, "spine3: down") in marks and (1.5, "spine3: as before") in marks
    assert len(marks) == len(report.failures([faults, faults]))


def test_what_is_worse_and_what_it_costs_have_their_names() -> None:
    between = {"at": "0s", "link": ["switch0", "host4"]}
    lossy = cw.Scenario.load("examples/tiny.toml").with_({"failure": [{**between, "loss": 0.02}]})
    noisy = lossy.with_({"failure": [{**between, "bit_error_rate": 1e-6}]})
    results = [cw.run(lossy), cw.run(noisy)]
    assert [one.what for one in report.failures(results)] == [
        "switch0 – host4: loss 0.02",
        "switch0 – host4: bit error rate 1e-06",
    ]
    said = report._lost(results)
    of_both = [int(result.links[f"{cause}_packets"].sum()) for result, cause in zip(results, ("lossy", "corrupted"))]
    assert all(of_both) and "No packet was lost" not in said
    for words, packets in zip(("lost on a lossy link", "bit error"), of_both):
        assert f"<td class=text>{words}<" in said and f">{packets:,}<" in said


# Where a flow of a run is in the first chart, in pixels of the window.
POINT = """(name, flow) => {
  const source = Bokeh.documents[0].get_model_by_name("flows"), of = source.data;
  const at = [...of.flow.keys()].find((at) => of.name[at] === name && of.flow[at] === flow);
  const root = document.querySelector("#flow-by-flow .chart [data-root-id]");
  const view = Bokeh.index.get_by_id(root.dataset.rootId), box = view.canvas_view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(of.bytes[at]), box.y + view.frame.y_scale.compute(of.slowdown[at])];
}"""
# The text of Bokeh's own elements, which are out of reach of the page's: the words of a tooltip.
TEXTS = """(node) => {
  const walk = (node) => [...node.querySelectorAll("*")].flatMap((one) => one.shadowRoot ? words(one.shadowRoot) : []);
  const words = (root) => [root.textContent, ...walk(root)];
  return walk(node).join(" ");
}"""


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("how", ["light", "dark"])
def test_a_browser_shows_the_page_and_explains_a_flow(how: str, comparison: cw.Comparison, tmp_path: Path) -> None:
    odd = [
        cw.Result(name, result.tables, result.info, result.scenario_toml)
        for name, result in zip(ODD[-2:], comparison.results)
    ]
    path = cw.Comparison(odd).report(tmp_path / "page.html")
    worst = comparison.results[1].flows.to_pandas().query("status == 'completed'").nlargest(1, "slowdown").iloc[0]

    async def then(page: browser.Page) -> None:
        await page.until("document.querySelectorAll('#slowest tbody tr').length === 10")
        filters = "[...document.querySelectorAll('#filters select')]"
        for column, value in (("name", odd[1].name), ("size", "")):
            one = f"{filters}.find((one) => one.dataset.column === '{column}')"
            await page.evaluate(f"(() => {{ const one = {one}; one.value = {value!r}; one.onchange(); }})()")
        said = await page.evaluate("document.getElementById('counted').innerText")
        assert said.startswith(f"{len(odd[1].flows)} flows, mean slowdown"), said
        # The slowest completed flow of this run, by its point in the first chart.
        await page.evaluate("document.getElementById('flow-by-flow').scrollIntoView()")
        at = await page.until(f"({POINT})({odd[1].name!r}, {worst['flow']})")
        await page.mouse(*at)
        await page.until(f"({TEXTS})(document).includes('class')")
        await page.mouse(*at, click=True)
        await page.until("!!document.querySelector('#flow table')")
        words = await page.evaluate("document.getElementById('flow').innerText")
        assert "times the" in words and "at the sender" in words and odd[1].name in words
        back = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == ("rgb(22, 24, 28)" if how == "dark" else "rgb(255, 255, 255)")
        await page.picture(tmp_path / "page.png")
        assert page.complaints == []

    browser.look_at(path, then, dark=how == "dark")


# Where the first point of a line of a chart is, in pixels of the window.
OF_LINE = """(name) => {
  const of = Bokeh.documents[0].get_model_by_name(name);
  for (const view of Bokeh.index) {
    if (!view.model.renderers.some((one) => one.data_source === of)) continue;
    view.el.scrollIntoView({ block: "center" });
    const box = view.canvas_view.el.getBoundingClientRect();
    return [box.x + view.frame.x_scale.compute(of.data.x[0]), box.y + view.frame.y_scale.compute(of.data.y[0])];
  }
}"""


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_a_click_on_a_size_shows_its_flows_and_filters_act_on_charts_by_flow(
    tmp_path: Path,
) -> None:
    scenario = cw.Scenario.load("examples/dcpim-vs-tcp.toml").with_({"traffic.0.flows": 420, "measure.end": "300us"})
    comparison = cw.compare(scenario, ["dcpim", "udp"], folder=tmp_path / "compared")
    path = comparison.report(tmp_path / "page.html")
    second = comparison.results[1]
    groups = points.by_size(points.every(comparison.results))[1]
    one = {column: values[0] for column, values in groups.items()}
    sizes, slowdown = second.flows["bytes"], second.flows["slowdown"].astype(float)
    within = [(sizes > low) & (sizes <= high) & ~np.isnan(slowdown) for low, high in zip(groups["low"], groups["high"])]
    done = np.count_nonzero(~np.isnan(slowdown))
    # Of flows that there are, and not between two of them.
    tails = [np.quantile(slowdown[some], 0.99, method="inverted_cdf") for some in within]
    started = [~np.isnan(points.floats(result, "start_ps")) for result in comparison.results]
    expected = int(((sizes > one["low"]) & (sizes <= one["high"]) & started[1]).sum())
    assert 0 < expected < len(sizes)

    async def then(page: browser.Page) -> None:
        await page.until("document.querySelectorAll('#slowest tbody tr').length === 10")
        at = await page.settled(f"({OF_LINE})('size mean 1')")
        await page.mouse(*at, click=True)
        await page.until("!!document.querySelector('#group button')")
        said = await page.evaluate("document.getElementById('group').innerText")
        assert said.startswith(f"Only flows of {second.name} of 1 to {int(one['high']):,} B"), said
        counted = "document.getElementById('counted').innerText"
        assert (await page.evaluate(counted)).startswith(f"{expected} flows")
        await page.evaluate("document.querySelector('#group button').click()")
        both = sum(map(np.count_nonzero, started))
        assert (await page.evaluate(counted)).startswith(f"{both} flows")
        # A filter on one run leaves its lines as they were, and empties the others.
        data = "Bokeh.documents[0].get_model_by_name('{}').data.y"
        names = [f"{kind} {line}" for kind in ("size mean", "size p99", "share fct_ps") for line in (0, 1)]
        before = [list(await page.evaluate(f"[...{data.format(name)}]")) for name in names]
        choose = "(() => { const one = document.querySelector('#filters select[data-column=name]'); one.value = %r; "
        await page.evaluate(choose % second.name + "one.onchange(); })()")
        after = [list(await page.evaluate(f"[...{data.format(name)}]")) for name in names]
        assert [after[place] for place in (0, 2, 4)] == [[], [], []]
        assert after[1] == pytest.approx(before[1]), "all flows are in the page, so means are the same"
        assert after[3] == pytest.approx(tails) and max(after[5]) == pytest.approx(done / started[1].sum())
        await page.evaluate(choose % "" + "one.onchange(); })()")
        assert [list(await page.evaluate(f"[...{data.format(name)}]")) for name in names] == before
        assert page.complaints == []

    browser.look_at(path, then)


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_a_page_saves_its_charts_and_tables(comparison: cw.Comparison, tmp_path: Path) -> None:
    path = comparison.report(tmp_path / "page.html")
    keep = """(() => {
      window.kept = {};
      URL.createObjectURL = (blob) => { window.blob = blob; return "#"; };
      HTMLAnchorElement.prototype.click = function () { const name = this.download;
        window.blob.arrayBuffer().then((of) => {
          window.kept[name.split(".").at(-1)] = String.fromCharCode(...new Uint8Array(of).slice(0, 2e4));
        });
      };
      for (const of of ["figure", "table"])
        for (const one of document.querySelector(`${of} + p.save`).querySelectorAll("button")) one.click();
    })()"""

    async def then(page: browser.Page) -> dict[str, str]:
        await page.until("document.querySelectorAll('p.save').length > 3 && Bokeh.index.roots.length > 3")
        await page.evaluate(keep)
        await page.until("Object.keys(kept).length === 5")
        kept: dict[str, str] = await page.evaluate("kept")
        return kept

    kept = browser.look_at(path, then)
    assert kept["svg"].startswith("<svg") and kept["png"][1:4] == "PNG" and kept["pdf"].startswith("%PDF-")
    assert kept["tex"].startswith("\\begin{tabular}") and "\\toprule" in kept["tex"]
    rows = [line.split("\t") for line in kept["tsv"].splitlines()]
    assert len({len(row) for row in rows}) == 1 and any(comparison.results[0].name in row[0] for row in rows)


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_a_page_prints_with_everything_in_it(comparison: cw.Comparison, tmp_path: Path) -> None:
    path = comparison.report(tmp_path / "page.html")

    async def then(page: browser.Page) -> None:
        await page.until("document.querySelectorAll('#slowest tbody tr').length === 10")
        folded = "[...document.querySelectorAll('details')].filter((one) => !one.open).length"
        await page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = false)")
        printed = await page.printed()
        pages = len(re.findall(rb"/Type ?/Page\b", printed))
        # A4's height has no more than one heading and its charts.
        assert printed.startswith(b"%PDF") and pages >= 3, pages
        assert await page.evaluate(folded) == 0, "what is folded up would not be printed"
        await page.ask("Emulation.setEmulatedMedia", media="print")
        await page.ask("Emulation.setDeviceMetricsOverride", width=688, height=1000, deviceScaleFactor=1, mobile=False)
        shown = await page.evaluate(
            "[...document.querySelectorAll('section h2')].filter((one) => one.checkVisibility()).length"
        )
        assert shown == await page.evaluate("document.querySelectorAll('section h2').length") > 8
        assert not await page.evaluate("document.getElementById('filters').checkVisibility()")
        wide = (
            "[...document.querySelectorAll('.charts, pre, table')].filter((one) => "
            "one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map((one) => one.className + one.tagName + Math.round(one.getBoundingClientRect().right))"
        )
        assert await page.evaluate(wide) == [], "nothing is cut off at the edge of the paper"
        assert page.complaints == []

    browser.look_at(path, then)


def test_results_of_one_name_are_told_apart(
    result: cw.Result, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page = cw.Comparison([result, result, result]).report(tmp_path / "report.html").read_text()
    assert re.findall(r"<th class=run><svg.*?</svg>([^<]*)<", page) == ["tiny", "tiny (2)", "tiny (3)"]
    assert caplog.records == [], "Bokeh complains of axes on which a name is twice"
