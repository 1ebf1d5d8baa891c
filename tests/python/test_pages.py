"""Pages of many runs in a browser: the report on a sweep, and the page of `compare --all`."""

from __future__ import annotations

import itertools
from pathlib import Path

import browser
import clearway as cw
import numpy as np
import pandas as pd
import pytest
from clearway.comparisons import all_schemes as all_
from test_report import TEXTS, Links

in_browser = pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
MEASURED = ("short mean", "short p99", "medium mean", "medium p99", "long mean", "long p99", "all mean")
OTHERS = ("longest queue KB", "overhead", "dropped", "undelivered", "refused", "kept up", "cpu us a packet")
# Where the first point of a panel is that is shown, in pixels of the window; the panel is scrolled to.
POINT = """(name) => {
  const model = (one) => Bokeh.documents[0].get_model_by_name(one), of = model(`${name}-of-points`).data;
  const at = model(`${name}-points`).indices[0];
  const roots = [...document.querySelectorAll("[data-root-id]")], source = model(`${name}-of-points`);
  const views = roots.map((root) => Bokeh.index.get_by_id(root.dataset.rootId));
  const view = views.find((one) => one.model.renderers.some((drawn) => drawn.data_source === source));
  view.el.scrollIntoView({ block: "center", behavior: "instant" });
  const box = view.canvas_view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(of.x[at]), box.y + view.frame.y_scale.compute(of.y[at])];
}"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> cw.SweepResult:
    base = cw.Scenario.load("examples/tiny.toml").with_(
        {"traffic.ring.arrivals": {"poisson": {"load": 0.5}}, "traffic.ring.flows": 12, "measure.interval": "0s"}
    )
    sizes = [{"constant": "10KB"}, {"constant": "200KB"}]
    vary = {"transport": ["udp", "dcpim"], "load": [0.3, 0.6], "traffic.ring.sizes": sizes, "seed": [1, 2]}
    return cw.sweep(base, vary, tmp_path_factory.mktemp("swept"), workers=2)


def everything(grounds: int) -> all_.SchemeComparison:
    """A comparison with numbers that nothing has measured, on this number of fabrics and workloads."""
    rows = []
    who = all_.contenders()
    points = itertools.product(enumerate(who), all_.FABRICS[:grounds], list(all_.WORKLOADS)[:grounds], (0.4, 0.6))
    for (place, one), fabric, workload, load in points:
        row = dict.fromkeys(MEASURED, 1 + place * load) | dict.fromkeys(OTHERS, 0.0) | {"audit": 1.0}
        row |= {f"{name} {end}": row[name] for name in MEASURED for end in ("low", "high")}
        rows.append({"scheme": one.name, "fabric": fabric, "workload": workload, "load": load, **row})
    frame = pd.DataFrame(rows)
    # There are no short flows there: one chart less.
    frame.loc[frame["fabric"] == all_.FABRICS[1], "short mean"] = np.nan
    fairness = pd.Series({one.name: 1.0 for one in who})
    return all_.SchemeComparison(frame, pd.Series(dtype=float), fairness, who, {}, "made up")


def test_the_page_of_all_schemes_needs_no_network_and_names_each_line(tmp_path: Path) -> None:
    text = everything(2).report(tmp_path / "all.html").read_text()
    links = Links()
    links.feed(text)
    assert links.external == [] and "<nav aria-label=Contents>" in text
    names = ", ".join(one.name for one in all_.contenders())
    assert text.count("role=img") == 6 and text.count(f"Lines: {names}.") == 6
    assert text.count("<div class=chart id=") == 6 * 4 - 2, "each kind of flows on each ground where there are some"


@in_browser
@pytest.mark.parametrize("how", ["light", "dark"])
def test_a_browser_shows_a_sweep_and_the_runs_of_a_point(how: str, swept: cw.SweepResult, tmp_path: Path) -> None:
    path = swept.report(tmp_path / "sweep.html")

    async def then(page: browser.Page) -> None:
        await page.until("!!window.Bokeh && document.querySelectorAll('[data-series]').length === 4")
        shown = "[...document.querySelectorAll('[data-series]')].filter((one) => !one.hidden).length"
        assert await page.evaluate(shown) == 4
        choose = """(() => { const one = document.querySelector("[data-axis]");
            one.value = one.options[1].value; one.onchange(); })()"""
        await page.evaluate(choose)
        assert await page.evaluate(shown) == 2
        at = await page.settled(f"({POINT})('sweep-0')")
        await page.mouse(*at)
        await page.until(f"({TEXTS})(document).includes('every flow done')")
        await page.mouse(*at, click=True)
        await page.until("!!document.querySelector('[data-runs] tbody')")
        rows = await page.evaluate("[...document.querySelectorAll('[data-runs] tbody tr')].map((one) => one.innerText)")
        assert len(rows) == 2 and all("load 0." in row for row in rows), rows
        digests = [digest for digest in swept.table()["digest"] if any(digest in row for row in rows)]
        assert len(digests) == 2, "one run per seed"
        back = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == ("rgb(22, 24, 28)" if how == "dark" else "rgb(255, 255, 255)")
        # Without any line charts are empty, and that is no error.
        await page.evaluate("document.querySelector(\"[data-all='']\").click()")
        assert page.complaints == []

    browser.look_at(path, then, dark=how == "dark")


@in_browser
def test_a_browser_filters_all_schemes_by_family(tmp_path: Path) -> None:
    found = everything(1)
    path, lines = found.report(tmp_path / "all.html"), len(found.contenders)
    first = sum(one.family == found.contenders[0].family for one in found.contenders)

    async def then(page: browser.Page) -> None:
        await page.until(f"!!window.Bokeh && document.querySelectorAll('[data-series]').length === {lines}")
        model = "Bokeh.documents[0].get_model_by_name('all-0-lines').indices.length"
        assert await page.until(model) == first, "with this many lines it begins with the first family"
        await page.evaluate(
            "(() => { const one = document.querySelector('select'); one.value = ''; one.onchange(); })()"
        )
        assert await page.until(f"{model} === {lines}")
        await page.evaluate("document.querySelector('[data-series] input').click()")
        assert await page.until(f"{model} === {lines - 1}"), "a click in the legend hides a line"
        at = await page.settled(f"({POINT})('all-0')")
        await page.mouse(*at, click=True)
        words = await page.until("document.querySelector('[data-runs]').innerText")
        assert "phost" in words and "leaf-spine" in words
        assert page.complaints == []

    browser.look_at(path, then)
