"""Congestion trees: the table, and their picture in the report, which the viewer draws."""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path
from typing import Any

import browser
import clearway as cw
import numpy as np
import pytest
from clearway.reports import trees
from clearway.reports import view as reports_view
from test_view import unpacked

# Three hosts of one rack and two of the other send to one, and a sixth flow only shares the way of three of them.
INCAST = """
timing = "ideal"
name = "incast"
transport = "udp"
measure.interval = "2us"
switch.buffer.shared = { bytes = "600KB" }

[fabric.leaf_spine]
racks = 2
hosts_per_rack = 4
spines = 1

[[traffic]]
name = "incast"
sizes = { constant = "800KB" }
arrivals = "all_at_once"
senders = "0,1,3,5,6"
receivers = "4"

[[traffic]]
name = "victim"
sizes = { constant = "800KB" }
arrivals = "all_at_once"
senders = "2"
receivers = "7"
"""


@pytest.fixture(scope="module")
def comparison() -> cw.Comparison:
    return cw.compare(cw.Scenario.from_toml(INCAST), flow_controls=["none", "pfc", "pyrrha"])


@pytest.fixture(scope="module")
def page(comparison: cw.Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return comparison.report(tmp_path_factory.mktemp("report") / "report.html").read_text()


def data_of(page: str) -> list[dict[str, Any]]:
    """The views in a page."""
    found = re.findall(r"<script type=text/plain class=trees-data>(.*?)</script>", page)
    return [unpacked(gzip.decompress(base64.b64decode(words))) for words in found]


def test_the_table_tells_who_is_held_and_who_is_innocent(comparison: cw.Comparison, tmp_path: Path) -> None:
    none, pfc, pyrrha = comparison.results
    assert "congestion" not in none.tables
    with pytest.raises(AttributeError, match="congestion"):
        _ = none.congestion
    frame = pfc.congestion.to_pandas()
    assert frame["paused"].dtype == bool and frame["root_link"].isna().all()
    names = dict(zip(pfc.links["link"], zip(pfc.links["from_node"], pfc.links["to_node"])))
    assert {names[link] for link in frame[frame["role"] == "root"]["link"]} == {("leaf1", "host4")}
    assert frame["innocent_bytes"].sum() > 0
    frame = pyrrha.congestion.to_pandas()
    assert frame["innocent_bytes"].sum() == 0
    held = frame[frame["paused"]]
    assert {names[link] for link in held["root_link"]} == {("leaf1", "host4")}
    assert set(held["cause"]) == {f"leaf1:{pyrrha_port(pyrrha)}"}
    assert pfc.congestion.to_polars().height == pfc.congestion.to_arrow().num_rows == len(pfc.congestion)
    loaded = cw.load(pfc.save(tmp_path / "pfc"))
    assert loaded.congestion.to_arrow() == pfc.congestion.to_arrow()


def pyrrha_port(result: cw.Result) -> int:
    """Which of leaf 1's ports leads to host 4: ports are in the order of links."""
    of_leaf = [
        target for source, target in zip(result.links["from_node"], result.links["to_node"]) if source == "leaf1"
    ]
    return of_leaf.index("host4")


def test_the_audit_holds_pyrrha_to_its_theorem(comparison: cw.Comparison, page: str) -> None:
    name = "flows are held only by roots on their own onward path"
    said = [[finding for finding in result.info["audit"] if finding["name"] == name] for result in comparison.results]
    assert [len(findings) for findings in said] == [0, 0, 1]
    assert said[2][0]["ok"] and name in page


def test_the_page_moves_without_network(page: str, comparison: cw.Comparison) -> None:
    assert "<h2>Congestion trees</h2>" in page and "never holds an innocent packet" in page
    # The links in the page itself; the library of its charts could load maps, and is not asked to.
    assert not re.search(r"""<[a-z][^<>]*\s(src|href)=(?!['"]?#)""", page)
    views = data_of(page)
    assert [view["name"] for view in views] == ["pfc", "pyrrha"], "no flow control, nothing to show"
    for view, result in zip(views, comparison.results[1:]):
        assert set(view["tables"]) == {"links", "flows", "congestion"} and view["notes"] == []
        table, told = view["tables"]["congestion"], result.congestion.to_pandas()
        assert table["rows"] == len(told)
        for column, of in table["columns"].items():
            if of["kind"] == "numbers":
                np.testing.assert_array_equal(of["values"], told[column].to_numpy(dtype=float))
            else:
                assert [of["names"][at] for at in of["values"]] == told[column].astype(str).tolist()


def test_names_in_the_data_end_no_script(comparison: cw.Comparison, tmp_path: Path) -> None:
    pfc = comparison.results[1]
    odd = cw.Result("</script><b>", pfc.tables, pfc.info, pfc.scenario_toml)
    text = odd.report(tmp_path / "odd.html").read_text()
    assert "</script><b>" not in text
    assert data_of(text)[0]["name"] == "</script><b>"


def test_a_long_run_keeps_to_its_room(comparison: cw.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    def words(page: str) -> int:
        return sum(map(len, re.findall(r"<script type=text/plain class=trees-data>(.*?)</script>", page)))

    full = trees.section(comparison.results)
    room = words(full) * 2 // 3
    monkeypatch.setattr(trees, "BYTES_MAX", room)
    thinned = trees.section(comparison.results)
    assert words(thinned) <= room
    # To pack all that is there takes seconds: not once more for each sample that is left out.
    tried: list[int] = []
    packed = reports_view.packed
    monkeypatch.setattr(reports_view, "packed", lambda *of, **how: (tried.append(how["stride"]), packed(*of, **how))[1])
    monkeypatch.setattr(trees, "BYTES_MAX", words(full) // 7)
    trees.section(comparison.results)
    assert max(tried) > 5 and len(set(tried)) <= 4, tried
    few, every = (
        set(data_of(page)[0]["tables"]["congestion"]["columns"]["time_ps"]["values"]) for page in (thinned, full)
    )
    assert few < every and min(few) == min(every), "whole samples, from the first on"
    assert "one in" in data_of(thinned)[0]["notes"][0]


def test_samples_alone_have_a_page(comparison: cw.Comparison, tmp_path: Path) -> None:
    text = comparison.results[2].view(tmp_path / "view.html").read_text()
    assert "Samples of queues, pauses and roots" in text
    with pytest.raises(ValueError, match="without recorded packets"):
        comparison.results[0].view(tmp_path / "none.html")


VIEWER = "document.querySelector('.cw-view').viewer"


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_draws_all_runs_on_one_clock(comparison: cw.Comparison, tmp_path: Path) -> None:
    found = browser.look_at(comparison.report(tmp_path / "report.html"), _looked)
    pfc, pyrrha = (result.congestion.to_pandas() for result in comparison.results[1:])
    for frame, curves in zip((pfc, pyrrha), found["curves"]):
        held = frame["bytes"].where(frame["paused"], 0).groupby(frame["time_ps"]).sum()
        innocent = frame.groupby("time_ps")["innocent_bytes"].sum()
        assert curves == [held.index.tolist(), held.tolist(), innocent.tolist()]
    innocent = pfc.groupby("time_ps")["innocent_bytes"].sum()
    assert found["at"] == innocent.idxmax(), "the moment with the most innocent bytes"
    now = pfc[pfc["time_ps"] == found["at"]]
    assert found["links"] == sorted(now["link"].unique())
    assert found["roots"] == sorted(now[now["role"] == "root"]["link"].unique())
    waiting, held_then = int(now["bytes"].sum()), int(now["bytes"][now["paused"]].sum())
    share = round(100 * int(now["innocent_bytes"].sum()) / held_then)
    assert f"{waiting:,} B in queues" in found["now"][0]
    assert f"{held_then:,} B held, {share}% innocent" in found["now"][0] and ", 0% innocent" in found["now"][1]
    assert found["names"] == ["pfc", "pyrrha"]
    # The address says when, a click on a curve leads there, a link says what waits for it, and time goes on.
    assert found["asked"] == 20e6 and found["clicked"] > 20e6 and "leaf1 → host4" in found["said"]
    assert found["moved"] and found["complaints"] == []


async def _looked(page: browser.Page) -> dict[str, Any]:
    await page.until("document.querySelector('.cw-view')?.viewer !== undefined")
    found: dict[str, Any] = await page.evaluate(f"""(() => {{
        const {{ panels, time }} = {VIEWER}, at = panels[0].history.congestedAt(time), links = [...at.keys()];
        const sorted = (some) => some.sort((a, b) => a - b);
        return {{
            curves: panels.map(({{ history }}) => history.curves())
                .map(({{ times, held, innocent }}) => [[...times], [...held], [...innocent]]),
            at: time, links: sorted(links), roots: sorted(links.filter((link) => at.get(link).root)),
            now: panels.map(({{ now }}) => now.textContent),
            names: [...document.querySelectorAll(".cw-panel h3")].map((title) => title.textContent),
        }};
    }})()""")
    await page.evaluate("location.hash = 't=20'")
    found["asked"] = await page.until(f"{VIEWER}.time === 20e6 && {VIEWER}.time")
    found["clicked"] = await page.evaluate(f"""(() => {{
        const canvas = document.querySelector(".cw-curves canvas"), box = canvas.getBoundingClientRect();
        const at = {{ clientX: box.left + 0.7 * box.width, clientY: box.top + 50, bubbles: true }};
        canvas.dispatchEvent(new MouseEvent("click", at));
        return {VIEWER}.time;
    }})()""")
    found["said"] = await page.evaluate(f"""(() => {{
        const {{ panels: [{{ canvas, picture, history }}], time }} = {VIEWER}, at = [...history.congestedAt(time)];
        const [x, y] = picture.layout.lanes[at.find(([, of]) => of.root)[0]], box = canvas.getBoundingClientRect();
        const where = {{ clientX: box.left + canvas.clientLeft + x, clientY: box.top + canvas.clientTop + y }};
        canvas.dispatchEvent(new MouseEvent("mousemove", where));
        return canvas.title;
    }})()""")
    await page.evaluate("document.querySelector('.cw-bar button[aria-label=Play]').click()")
    found["moved"] = await page.until(f"{VIEWER}.time !== {found['clicked']}")
    return found | {"complaints": page.complaints}


FABRICS = [
    "leaf_spine = { racks = 10, hosts_per_rack = 16, spines = 4 }",
    "fat_tree = { k = 4 }",
    "star = { hosts = 6 }",
    "dumbbell = {}",
    "torus = { dims = [4, 3] }",
    "torus = { dims = [3, 3, 4] }",
    "mesh = { dims = [5] }",
]


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
def test_every_fabric_has_its_place(tmp_path: Path) -> None:
    pages = []
    for number, fabric in enumerate(FABRICS):
        text = f"""
            fabric.{fabric}
            measure.packets = {{}}
            [[traffic]]
            sizes = {{ constant = "1KB" }}
            arrivals = "all_at_once"
            pattern = {{ stride = {{ by = 1 }} }}
        """
        pages.append(cw.run(cw.Scenario.from_toml(text)).view(tmp_path / f"{number}.html"))
    for fabric, placed in zip(FABRICS, browser.look_at(pages[0], lambda page: _placed(page, pages))):
        lanes, boxes = np.array(placed["lanes"]), np.array(placed["boxes"])
        assert np.isfinite(lanes).all() and len(lanes) == placed["links"], fabric
        # A lane may lie beside its cable.
        assert (lanes >= -3).all() and (lanes[:, ::2] <= placed["width"] + 3).all(), fabric
        assert (lanes[:, 1::2] <= placed["height"] + 3).all(), fabric
        assert len({(x, y) for x, y, *_ in boxes.tolist()}) == len(boxes), f"{fabric}: no two nodes at one place"


async def _placed(page: browser.Page, pages: list[Path]) -> list[dict[str, Any]]:
    found = []
    for path in pages:
        await page.ask("Page.navigate", url=path.resolve().as_uri())
        await page.until(
            f"location.href.endsWith('{path.name}') && document.querySelector('.cw-view')?.viewer !== undefined"
        )
        found.append(
            await page.evaluate(f"""(() => {{
                const {{ layout: {{ lanes, boxes, width, height }} }} = {VIEWER}.picture;
                return {{ lanes, boxes, width, height, links: {VIEWER}.history.fabric.ends.length }};
            }})()""")
        )
    return found


def test_compare_multiplies_transports_and_flow_controls(scenario: cw.Scenario) -> None:
    runs = cw.compare(scenario.with_({"traffic.0.flows": 5}), ["udp", "dcpim"], ["none", "pfc"]).results
    assert [run.name for run in runs] == ["udp over none", "udp over pfc", "dcpim over none", "dcpim over pfc"]
    assert cw.Scenario.from_toml(runs[0].scenario_toml).to_dict()["flow_control"] == "none"
