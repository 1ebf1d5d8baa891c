"""The playground, where `make web` has built it: the engine in node gives the native digests, and the page, in a
headless Chromium and Firefox, runs each scene to its end, draws the packets of a native run, loads nothing from
elsewhere, takes no markup from a scenario and no more memory than it may.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import browser
import clearway as cw
import pytest
import test_digests as digests
from clearway.reports import view as _view
from test_report import OF_LINE, TEXTS
from test_view import unpacked

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
ENGINE, PAGE = ROOT / "target/playground/engine", ROOT / "target/playground/page/index.html"
COUNTEREXAMPLE = ROOT / "python/clearway/papers/harmony/counterexample.toml"
SCENES = {path.stem: path for path in [*(ROOT / "crates/web/scenes").glob("*.toml"), COUNTEREXAMPLE]}
# With examples of what no scene has: failures, jobs of many ranks.
SHOWN = SCENES | {name: ROOT / f"examples/{name}.toml" for name in ("faults", "training")}
# It needs more memory than a browser gives.
TOO_LARGE = {"examples/all-reduce-1024.toml"}
MARKUP = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'

built = pytest.mark.skipif(not PAGE.exists(), reason="the playground is not built: make web")
seen = pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")
seen_in_firefox = pytest.mark.skipif(browser.FIREFOX is None, reason="no Firefox is installed")
in_both = pytest.mark.parametrize(
    "look_at",
    [
        pytest.param(browser.look_at, id="chromium", marks=seen),
        pytest.param(browser.look_at_in_firefox, id="firefox", marks=seen_in_firefox),
    ],
)
LookAt = Callable[..., Any]
# Pictures from tests, for people to look at.
PICTURES = ROOT / "target/playground/pictures"


@pytest.fixture(scope="module")
def shortened() -> dict[str, tuple[str, str]]:
    """Every example and scene, as long as `digests.csv` has it: the scenario, with paths as in its file, and the
    digest."""
    kept, now = digests.kept(), digests.scenarios()
    names = [name for name in kept if name.startswith(("examples/", "crates/web/"))]
    names.append(COUNTEREXAMPLE.relative_to(ROOT).as_posix())
    assert len(names) >= 9 + len(SCENES)
    return {name: (_cut(now[name], kept[name][0]), kept[name][1]) for name in names}


@built
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_engine_in_node_gives_the_native_digests(shortened: dict[str, tuple[str, str]]) -> None:
    asked = {
        # The page has files by these names.
        "files": {"counterexample.csv": COUNTEREXAMPLE.with_suffix(".csv").read_text()},
        "scenarios": {name: text for name, (text, _) in shortened.items()},
    }
    command = ["node", str(Path(__file__).with_name("web_engine.mjs")), str(ENGINE)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    ran = json.loads(done.stdout)
    refused = {name: run["refused"] for name, run in ran.items() if "refused" in run}
    assert set(refused) == TOO_LARGE and all("the run will need about" in why for why in refused.values()), refused
    found = {name: run["digest"] for name, run in ran.items() if "digest" in run}
    assert found == {name: digest for name, (_, digest) in shortened.items() if name not in TOO_LARGE}


@built
@in_both
def test_a_page_runs_every_example_and_gives_the_native_digest(
    look_at: LookAt, shortened: dict[str, tuple[str, str]]
) -> None:
    said = look_at(PAGE, lambda page: _each_example(page, {name: text for name, (text, _) in shortened.items()}))
    refused = {name for name, (status, _) in said.items() if "the run will need about" in status}
    assert refused == TOO_LARGE, said
    found = {name: digest for name, (_, digest) in said.items() if name not in TOO_LARGE}
    assert found == {name: digest for name, (_, digest) in shortened.items() if name not in TOO_LARGE}


async def _each_example(page: browser.Page, texts: dict[str, str]) -> dict[str, tuple[str, str]]:
    await page.until(DONE)
    said = {}
    for name, text in texts.items():
        await page.evaluate(f"location.hash = {json.dumps(packed(text))}")
        await page.until("document.querySelector('#title').textContent.includes('link')")
        await page.until("!document.querySelector('#run').disabled")
        # A page that records draws each run, which takes longer than the run.
        await page.evaluate("document.querySelector('#record').checked = false")
        await page.evaluate("document.querySelector('#run').click()")
        ended = await page.until(f"{DONE} || document.querySelector('#status').className === 'wrong'")
        assert ended
        said[name] = (
            await page.evaluate("document.querySelector('#status').textContent"),
            await page.evaluate("document.querySelector('#digest').textContent"),
        )
        await page.evaluate("document.querySelector('[data-id=\"dcpim\"]').click()")
    assert page.complaints == []
    return said


LESSONS = {path.stem: path for path in (ROOT / "crates/web/scenes").glob("*.md")}


def lesson(name: str) -> tuple[dict[str, Any], str]:
    """The head of a lesson and its text."""
    _, head, body = re.split(r"^\+\+\+$", LESSONS[name].read_text(), flags=re.M)
    return tomllib.loads(head), body


def test_there_are_seven_lessons_and_each_number_of_a_text_is_its_runs_own() -> None:
    assert set(LESSONS) == set(SCENES) and len(LESSONS) == 7
    for name in LESSONS:
        head, body = lesson(name)
        assert ROOT / head["scenario"] == SCENES[name] and head["prediction"], name
        assert SCENES[name].read_text().count(head["change"][0]) == 1, f"{name}: where is the change?"
        said = body + "".join(one["ask"] + one["verdict"] for one in head["prediction"])
        assert "{" in body and re.search("{now[.]", said), name
        plain = re.sub(r"`[^`]*`|{[^}]*}|R2C2|^## .*$", "", said, flags=re.M)
        assert not re.search(r"\d", plain), f"{name}: {plain}"


def test_the_page_draws_with_the_version_that_reports_draw_with() -> None:
    asked = json.loads((ROOT / "crates/web/page/package.json").read_text())["dependencies"]["@bokeh/bokehjs"]
    assert asked in re.findall(r"^bokeh==([\d.]+)", (ROOT / "requirements.txt").read_text(), re.M)


def _cut(scenario: cw.Scenario, us: int) -> str:
    text = digests.cut(scenario, us).to_toml()
    return re.sub(r'(path = )"[^"]*/', r'\1"', text)


def packed(text: str | bytes) -> str:
    """The fragment of a link that holds a scenario."""
    deflate, content = zlib.compressobj(wbits=-15), text.encode() if isinstance(text, str) else text
    return "#s=" + base64.urlsafe_b64encode(deflate.compress(content) + deflate.flush()).decode().rstrip("=")


DONE = "document.querySelector('#status').textContent.startsWith('Done')"


VIEWER = "document.querySelector('.cw-view').viewer"
# A view without the run's name: of each column its values as a digest, and its names.
EVENTS = """(async () => {
    const of = async ({ kind, values, names }) => {
        const found = new Uint8Array(await crypto.subtle.digest("SHA-256", values));
        return [kind, names ?? null, Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("")];
    };
    const view = VIEWER.view, tables = {};
    for (const [name, { rows, columns }] of Object.entries(view.tables)) {
        tables[name] = { rows };
        for (const column in columns) tables[name][column] = await of(columns[column]);
    }
    return { dims: view.dims, partial: view.partial, notes: view.notes, end_ps: view.end_ps, tables };
})()""".replace("VIEWER", VIEWER)


# The words and charts of a report, in the playground's `#report` or in a page of its own: the words of its sections,
# what its charts are, and their points. Without what a run takes, and the intervals that a playground leaves out.
REPORT = """(() => {
    const plain = (values) => Array.from(values, (of) => (typeof of === "number" && !Number.isFinite(of) ? null : of));
    const dash = { solid: [], dashed: [6], dotted: [2, 4], dotdash: [2, 4, 6, 4], dashdot: [6, 4, 2, 4] };
    const within = document.querySelector("#report") ?? document, sections = {};
    for (const section of within.querySelectorAll("section[id]")) {
        const copy = section.cloneNode(true), not = "script, .save, .charts, .span, .summary tbody td:last-child";
        for (const part of copy.querySelectorAll(not)) part.remove();
        sections[section.id] = copy.textContent.replace(/, and below each.*?run's flows/, "").replace(/\\s+/g, "");
    }
    const charts = Bokeh.documents.flatMap((one) => one.roots()).map((chart) => ({
        title: chart.title.text,
        axes: [...chart.below, ...chart.left].filter((one) => one.axis_label !== undefined).map((one) => [
            one.type, one.axis_label ?? "",
            [0.5, 20, 3000, 2e6].map((tick) => one.formatter.doFormat([tick], { loc: 0 })[0]),
        ]),
        tips: chart.toolbar.tools.filter((tool) => tool.tooltips).map((tool) => tool.tooltips),
        taps: chart.toolbar.tools.filter((tool) => tool.type === "TapTool").length,
        legend: chart.below.flatMap((one) => one.items ?? []).map((item) => item.label.value),
        lines: chart.renderers.map(({ glyph, name, data_source: { data } }) => [
            name, glyph.type, glyph.line_color?.value ?? null,
            dash[glyph.line_dash?.value] ?? glyph.line_dash?.value ?? null,
            Object.fromEntries(Object.entries(data).map(([column, values]) => [column, plain(values)])),
        ]),
    }));
    const labels = [...within.querySelectorAll(".charts")].map((one) => one.getAttribute("aria-label"));
    return { sections, charts, labels };
})()"""
# Sections that the playground has elsewhere.
ELSEWHERE = {"congestion-trees", "how-it-was-run"}


@pytest.fixture(scope="module")
def reports(native: dict[str, cw.Result], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The words and charts of each scene's report."""

    async def said(page: browser.Page) -> Any:
        await page.until("document.querySelector('#slowest tbody tr') !== null")
        return await page.evaluate(REPORT)

    folder, found = tmp_path_factory.mktemp("reports"), {}
    for name, result in native.items():
        found[name] = browser.look_at(result.report(folder / f"{name}.html"), said)
        for section in ELSEWHERE:
            found[name]["sections"].pop(section, None)
    return found


def assert_alike(found: Any, expected: Any, where: str) -> None:
    """Equal, numbers to nine digits: sums are added in another order."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), f"{where}: {list(found)} and not {list(expected)}"
        for key, one in expected.items():
            assert_alike(found[key], one, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), f"{where}: {len(found)} and not {len(expected)}: {found}, {expected}"
        for place, one in enumerate(expected):
            assert_alike(found[place], one, f"{where}[{place}]")
    elif isinstance(expected, int | float) and isinstance(found, int | float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), where
    else:
        assert found == expected, f"{where}: {found!r} and not {expected!r}"


@pytest.fixture(scope="module")
def native() -> dict[str, cw.Result]:
    """Each scene, with the packets recorded that the page records."""
    asked = {"measure.packets": {"rows_max": _view.ROWS_MAX}}
    return {name: cw.run(cw.Scenario.load(path).with_(asked), progress=False) for name, path in SHOWN.items()}


def events(result: cw.Result) -> dict[str, Any]:
    """The result of `EVENTS` for the same run."""
    view = unpacked(_view.packed(result))
    tables: dict[str, Any] = {}
    for name, table in view["tables"].items():
        tables[name] = {"rows": table["rows"]}
        for column, of in table["columns"].items():
            digest = hashlib.sha256(of["values"].tobytes()).hexdigest()
            tables[name][column] = [of["kind"], of.get("names"), digest]
    return {key: view[key] for key in ("dims", "partial", "notes", "end_ps")} | {"tables": tables}


@built
@in_both
def test_each_scene_runs_to_its_end_and_gives_the_native_report(
    look_at: LookAt, native: dict[str, cw.Result], reports: dict[str, Any]
) -> None:
    found, page = look_at(PAGE, _each_scene)
    assert {name: said["digest"] for name, said in found.items()} == {name: of.digest for name, of in native.items()}
    for name, said in found.items():
        # Every number of the text is the run's own.
        blank = re.search(r"\{[a-z_.]+\}|[…–]|NaN|undefined", said["steps"])
        assert bool(re.search(r"\d", said["steps"])) == (name in SCENES) and not blank, said["steps"]
        assert_alike(said["report"], reports[name], name)
        assert "checks hold" in said["facts"], said
        assert said["events"] == events(native[name]), name
        assert said["moved"], name
        assert said["command"] == f"clearway run {SHOWN[name].relative_to(ROOT)}", said["command"]
    assert page.complaints == []
    assert all(address.startswith(("file:", "data:", "blob:")) for address in page.asked), page.asked


async def _each_scene(page: browser.Page) -> tuple[dict[str, Any], browser.Page]:
    await page.until(DONE)
    found = {}
    for name in SHOWN:
        await page.evaluate(f"document.querySelector('[data-id=\"{name}\"]').click()")
        await page.until("!document.querySelector('#run').disabled")
        await page.evaluate("document.querySelector('#run').click()")
        await page.until(DONE)
        found[name] = await page.evaluate("""({
            digest: document.querySelector('#digest').textContent,
            steps: document.querySelector('#lesson > div')?.textContent ?? '',
            facts: document.querySelector('#facts').textContent,
            command: document.querySelector('#command').textContent,
        })""")
        await page.until("document.querySelector('#report #slowest tbody tr') !== null")
        found[name]["report"] = await page.evaluate(REPORT)
        found[name]["moved"] = await page.until(f"{VIEWER}.time > {VIEWER}.history.begin")
        found[name]["events"] = await page.evaluate(EVENTS)
        await page.evaluate("scrollTo(0, 0)")
        await _seen(page, name)
    return found, page


async def _seen(page: browser.Page, name: str) -> None:
    """Takes a picture."""
    PICTURES.mkdir(exist_ok=True)
    kind = "firefox" if isinstance(page, browser.FirefoxPage) else "chromium"
    path = PICTURES / f"{name}-{kind}.png"
    await page.picture(path)
    assert path.stat().st_size > 20_000, f"{path} shows nothing"


@built
@seen
def test_a_run_that_needs_more_memory_than_it_may_stops_and_says_so() -> None:
    tiny = (ROOT / "examples/tiny.toml").read_text()
    # Some ten million packet-hops, each to be recorded: 4 GB by the estimate.
    large = tiny.replace('"100KB"', '"1GB"') + "\n[measure.packets]\nrows_max = 100_000_000\n"
    said = browser.look_at(PAGE, lambda page: _too_large(page, packed(large)))
    assert "the run will need about" in said["refused"] and "1.1 GB" in said["refused"], said
    assert said["stopped"].startswith("Stopped: the run needs more memory than a page may have"), said
    assert said["digest"] == "none, since the run was stopped" and said["after"].startswith("Done"), said


async def _too_large(page: browser.Page, fragment: str) -> dict[str, str]:
    await page.until(DONE)
    status = "document.querySelector('#status').textContent"
    run = "document.querySelector('#run').click()"
    await page.evaluate(f"location.hash = {json.dumps(fragment)}")
    await page.until("document.querySelector('#title').textContent.includes('link')")
    await page.until("!document.querySelector('#run').disabled")
    await page.evaluate(run)
    await page.until("document.querySelector('#status').className === 'wrong'")
    said = {"refused": await page.evaluate(status)}
    # The next engine but one has a ballast of 100 MB, and 64 MB are allowed.
    await page.evaluate("""(() => {
        const post = Worker.prototype.postMessage;
        globalThis.loaded = true;
        Worker.prototype.postMessage = function (message, ...more) {
            if (message.kind === "run") message.memoryMax = globalThis.loaded ? 2 ** 26 : 2 ** 30;
            const isHeavy = message.kind === "engine" && globalThis.loaded;
            if (isHeavy) message.files = { ballast: "x".repeat(1e8), ...message.files };
            return post.call(this, message, ...more);
        };
    })()""")
    await page.evaluate("document.querySelector('[data-id=\"tiny\"]').click()")
    for word in ("Done", "Stopped"):
        await page.until("!document.querySelector('#run').disabled")
        await page.evaluate(run)
        await page.until(f"{status}.startswith('{word}')".replace("startswith", "startsWith"))
    said |= {"stopped": await page.evaluate(status)}
    said |= {"digest": await page.evaluate("document.querySelector('#digest').textContent")}
    # The engine after that one has all its memory again.
    await page.evaluate("globalThis.loaded = false")
    await page.until("!document.querySelector('#run').disabled")
    await page.evaluate(run)
    await page.until(f"!{status}.startsWith('Stopped')")
    await page.until(f"{status}.startsWith('Stopped') || {status}.startsWith('Done')")
    await page.until("!document.querySelector('#run').disabled")
    await page.evaluate(run)
    await page.until(DONE)
    return said | {"after": await page.evaluate(status)}


@built
@in_both
def test_a_link_brings_a_scenario_its_error_and_nothing_else(look_at: LookAt) -> None:
    tiny = (ROOT / "examples/tiny.toml").read_text()
    name = json.dumps(MARKUP)
    # Two classes, so that tables and charts name them.
    second = tiny[tiny.index("[[traffic]]") :]
    marked = re.sub(r"^name = .*$", f"name = {name}", tiny, flags=re.M) + "\n" + second
    links = {
        "markup": packed(marked),
        "markup in an error": packed(re.sub(r'transport = ".*"', f"transport = {json.dumps(MARKUP)}", tiny)),
        "wrong key": packed("\ntransprt = 'udp'\n"),
        "no TOML": packed("]]] <b>"),
        "damaged": "#s=%%%",
        "cut": packed(tiny)[:-40],
        "no text": packed(b"\xff\xfe"),
        "too large": packed(" " * 2_000_000),
        "no scene": "#scene=none",
    }
    said = look_at(PAGE, lambda page: _each_link(page, links))
    assert "scenario.toml:2" in said["wrong key"] and "transprt" in said["wrong key"]
    assert "scenario.toml:1" in said["no TOML"]
    assert "more than 1,000,000 bytes" in said["too large"]
    for name in ("damaged", "cut", "no text", "too large"):
        assert "the link holds no scenario" in said[name], name
    assert "not here" in said["no scene"]
    assert "<script>" in said["markup in an error"]
    assert MARKUP in said["markup run"] and MARKUP in said["markup's packet"]
    assert "clearway run scenario.toml" in said["markup run"], "what is shipped in no file is saved first"


async def _each_link(page: browser.Page, links: dict[str, str]) -> dict[str, str]:
    await page.until(DONE)
    said = {}
    for name, fragment in links.items():
        await page.evaluate(f"location.hash = {json.dumps(fragment)}")
        if name == "markup":
            await page.until("document.querySelector('#title').textContent.includes('link')")
            await page.until("!document.querySelector('#run').disabled")
            await page.evaluate("document.querySelector('#run').click()")
            await page.until(DONE)
            await page.until("document.querySelector('#report').textContent.includes('onerror')")
            await page.evaluate(f"{VIEWER}.choose(0)")
            said["markup run"] = await page.evaluate("document.querySelector('#results').textContent")
            said["markup's packet"] = await page.evaluate("document.querySelector('.cw-story').textContent")
        else:
            await page.until("document.querySelector('#status').className === 'wrong'")
            said[name] = await page.evaluate("document.querySelector('#status').textContent")
        hurt = "window.hurt || document.querySelectorAll('main img, main script, main b').length"
        assert not await page.evaluate(hurt), name
        await page.evaluate("document.querySelector('[data-id=\"dcpim\"]').click()")
    assert page.complaints == []
    return said


REPORTED = "performance.getEntriesByName('clearway-report').length"


@built
@in_both
def test_a_point_says_its_values_and_a_click_explains_a_flow(look_at: LookAt, native: dict[str, cw.Result]) -> None:
    said = look_at(PAGE, _pointed)
    of = native["dcpim"].slowdown()
    assert f"{of.loc['all', 'mean']:.2f}" in said["tip"] and "flows of" in said["tip"] and "36" in said["tip"], said
    worst = native["dcpim"].flows.to_pandas().nlargest(1, "slowdown").iloc[0]
    assert f"Flow {worst['flow']} of dcpim" in said["flow"] and "at the sender" in said["flow"], said
    assert said["left"].startswith("12 flows") or re.match(r"\d+ flows", said["left"]), said
    assert said["complaints"] == []


async def _pointed(page: browser.Page) -> dict[str, Any]:
    await page.until(REPORTED)
    at = await page.settled(f"({OF_LINE})('size mean 0')")
    await page.mouse(*at)
    await page.until(f"({TEXTS})(document).includes('flows of')")
    found = {"tip": await page.evaluate(f"({TEXTS})(document)")}
    await page.evaluate("document.querySelector('#slowest button').click()")
    found["flow"] = await page.until("document.querySelector('#flow').textContent")
    choose = "(() => { const one = document.querySelector('#filters select'); one.value = one.options[1].value; "
    await page.evaluate(choose + "one.onchange(); })()")
    found["left"] = await page.evaluate("document.querySelector('#counted').textContent")
    return found | {"complaints": page.complaints}


@built
@in_both
def test_all_is_reached_by_the_keyboard_alone(look_at: LookAt) -> None:
    said = look_at(PAGE, _typed)
    order = ("Harmony's slots", "Play", "canvas", "Time", "Scenario, in TOML", "Run", "Copy link", "flow")
    places = [next(place for place, one in enumerate(said["order"]) if one.startswith(word)) for word in order]
    assert places == sorted(places), said["order"]
    assert said["title"] == "Harmony's slots" and said["ran"].startswith("Done"), said
    assert said["completed"] and said["complaints"] == []


async def _typed(page: browser.Page) -> dict[str, Any]:
    async def tab() -> str:
        await page.press("Tab")
        name: str = await page.evaluate("""(() => {
            const at = document.activeElement, label = at.closest("label")?.textContent;
            return at.getAttribute("aria-label")?.replace("Pause", "Play")?.replace(/^The fabric.*/, "canvas")
                ?? (document.hasFocus() ? (label || at.textContent || at.tagName).trim() : "the browser");
        })()""")
        return name

    await page.until(REPORTED)
    order: list[str] = []
    # Nothing keeps the focus: it leaves the page, or comes to the first scene again.
    while order.count("dcPIM asks before it sends") < 2 and "the browser" not in order and len(order) < 300:
        order.append(await tab())
    assert len(order) < 300, order

    async def reach(name: str) -> None:
        for _ in order:
            if await tab() == name:
                return
        raise AssertionError(f"{name} is not reached")

    if "the browser" in order:  # back into the page
        await tab()
    await page.evaluate("document.querySelector('[data-id=dcpim]').focus()")
    await reach("Harmony's slots")
    await page.press("Enter")
    await page.until("document.querySelector('#title').textContent !== \"dcPIM asks before it sends\"")
    found: dict[str, Any] = {
        "order": order,
        "title": await page.evaluate("document.querySelector('#title').textContent"),
    }
    await reach("Scenario, in TOML")
    await page.until("!document.querySelector('#run').disabled")
    await page.press("Enter", control=True)
    await page.until(DONE)
    found["ran"] = await page.evaluate("document.querySelector('#status').textContent")
    # Completion: at the end of the text, from a new line on.
    await page.press("End", control=True)
    await page.write("\n[fabric.")
    await page.press(" ", control=True)
    found["completed"] = await page.until("document.querySelectorAll('.cm-tooltip-autocomplete li').length")
    return found | {"complaints": page.complaints}


@built
@in_both
@pytest.mark.parametrize("how", ["light", "dark"])
def test_it_fits_a_phone(look_at: LookAt, how: str) -> None:
    said = look_at(PAGE, lambda page: _narrow(page, how), dark=how == "dark")
    assert said["ground"] == ("rgb(20, 25, 27)" if how == "dark" else "rgb(255, 255, 255)")
    assert said["wide"] <= 420 and said["charts"] and max(said["charts"]) <= 420, said
    assert min(said["targets"]) >= 28, "fingers are wide"
    assert said["complaints"] == []


async def _narrow(page: browser.Page, how: str) -> dict[str, Any]:
    await page.small(420, 850)
    await page.until(f"document.readyState === 'complete' && {REPORTED}")
    found: dict[str, Any] = await page.evaluate("""({
        ground: getComputedStyle(document.body).backgroundColor,
        wide: document.documentElement.scrollWidth,
        charts: [...document.querySelectorAll(".chart, .cw-view canvas")]
            .map((one) => one.getBoundingClientRect().right),
        targets: [...document.querySelectorAll("main button, main select")]
            .map((one) => one.offsetHeight).filter(Boolean),
    })""")
    await _seen(page, f"phone-{how}")
    return found | {"complaints": page.complaints}


@built
@in_both
def test_a_long_run_is_drawn_while_it_goes_on(look_at: LookAt) -> None:
    text = (ROOT / "examples/dcpim-vs-tcp.toml").read_text()
    longer = re.sub(r"^flows = \d+", "flows = 20_000", text, flags=re.M)
    assert longer != text
    said = look_at(PAGE, lambda page: _long(page, packed(longer)))
    assert said["rows"] == _view.ROWS_MAX and said["playing"] and said["report"] == 0, said
    # It stays where the reader was, and the digest is of no whole run.
    assert said["then"] == said["now"] and said["digest"] == "none, since the run was stopped", said
    assert said["complaints"] == []


async def _long(page: browser.Page, fragment: str) -> dict[str, Any]:
    await page.until(REPORTED)
    await page.evaluate("performance.clearMarks()")
    await page.evaluate(f"location.hash = {json.dumps(fragment)}")
    await page.until("document.querySelector('#title').textContent.includes('link')")
    await page.until("!document.querySelector('#run').disabled")
    await page.evaluate("document.querySelector('#run').click()")
    await page.until("document.querySelector('.cw-view') !== null")
    found: dict[str, Any] = await page.evaluate(f"""({{
        rows: {VIEWER}.history.rows, playing: document.querySelector("#run").disabled && {VIEWER}.playing > 0,
        report: {REPORTED},
    }})""")
    state = f"[{VIEWER}.time, {VIEWER}.chosen, {VIEWER}.node, {VIEWER}.playing > 0]"
    await page.evaluate(f"(() => {{ const at = {VIEWER}; at.pause(); at.seek(at.begin + 1e6); at.choose(7); }})()")
    found["now"] = await page.evaluate(state)
    await page.evaluate("document.querySelector('#stop').click()")
    await page.until(REPORTED)
    found["then"] = await page.evaluate(state)
    found["digest"] = await page.evaluate("document.querySelector('#digest').textContent")
    return found | {"complaints": page.complaints}


@built
@seen
def test_fifty_runs_take_no_more_memory_than_ten() -> None:
    heap = browser.look_at(PAGE, _again_and_again)
    assert max(heap) <= 1.2 * heap[0] and min(heap) >= 0.8 * heap[0], [round(bytes / 1e6, 1) for bytes in heap]


async def _again_and_again(page: browser.Page) -> list[int]:
    """The memory after each ten runs; a browser keeps the last few pictures and reports for a while."""
    await page.until(REPORTED)
    heap = []
    for run in range(50):
        await page.evaluate("performance.clearMarks()")
        await page.until("!document.querySelector('#run').disabled")
        await page.evaluate("document.querySelector('#run').click()")
        await page.until(REPORTED)
        if run % 10 == 9:
            heap.append(await page.heap_bytes())
    return heap


TYPED = """((was, is) => {
    const { view } = document.querySelector(".cm-content").cmView, from = view.state.doc.toString().indexOf(was);
    if (from < 0) throw new Error(`there is no ${was}`);
    view.dispatch({ changes: { from, to: from + was.length, insert: is } });
})"""
READY = "!document.querySelector('#run').disabled"


async def _edited(page: browser.Page, was: str, new: str) -> None:
    """Changes the text in the editor and runs it."""
    await page.evaluate(f"{TYPED}({json.dumps(was)}, {json.dumps(new)})")
    await page.until(READY)
    await page.evaluate("document.querySelector('#run').click()")
    await page.until(f"{READY} && {DONE}")


@built
@in_both
def test_a_changed_run_stands_beside_the_first_on_one_clock(look_at: LookAt, native: dict[str, cw.Result]) -> None:
    said = look_at(PAGE, _changed)
    before = native["dcpim"]
    after = cw.run(cw.Scenario.load(SCENES["dcpim"]).with_({"transport": "dctcp"}), progress=False)
    assert said["panels"] == ["the pinned run", "this run"] and said["time"][0] == said["time"][1], said
    assert said["digests"] == [before.digest, after.digest]
    queue = [of.links.to_pandas()["queued_bytes_max"].max() for of in (before, after)]
    rows = {words: cells for words, *cells in said["differences"]}
    shown = rows["longest queue of a port"]
    assert [float(one.split()[0]) for one in shown[:2]] == pytest.approx([bytes / 1e3 for bytes in queue], rel=0.01)
    assert shown[2].startswith("+" if queue[1] > queue[0] else "\N{MINUS SIGN}") and "%" in shown[2], shown
    assert said["lines"] == ['transport = "dctcp"'] and said["parting"].startswith(
        "The runs differ from their first"
    ), said
    # The scene speaks of its own run, whatever is run after it.
    assert said["steps"] == said["first steps"] and not re.search("[–…]", said["steps"]), said["steps"]
    assert said["same"] == [False, 1] and said["complaints"] == []


async def _changed(page: browser.Page) -> dict[str, Any]:
    own = "[...document.querySelectorAll('#lesson > div > *')].map((one) => one.textContent).join()"
    await page.until(DONE)
    digest = "document.querySelector('#digest').textContent"
    found = {"first steps": await page.evaluate(own), "digests": [await page.evaluate(digest)]}
    await _edited(page, 'transport = "dcpim"', 'transport = "dctcp"')
    found["digests"].append(await page.evaluate(digest))
    found |= await page.evaluate(f"""(() => {{
        const at = {VIEWER}, text = (one) => one.textContent, all = (what) => [...document.querySelectorAll(what)];
        at.pause();
        at.seek(at.begin + (at.end - at.begin) / 2);
        return {{
            panels: at.panels.map(({{ view }}) => view.name),
            time: at.panels.map(({{ picture }}) => picture.state.time),
            differences: all("#differences tbody tr").map((row) => [...row.children].map(text)),
            parting: text(document.querySelector("#parting")),
            lines: all(".cm-changedLine").map(text),
            steps: {own},
        }};
    }})()""")
    await _seen(page, "changed")
    # A pinned run is what the next ones are compared with.
    await page.evaluate("document.querySelector('#pin').click()")
    shown = f"[!document.querySelector('#compared').hidden, {VIEWER}.panels.length]"
    found["same"] = await page.evaluate(shown)
    return found | {"complaints": page.complaints}


TEXT = "document.querySelector('.cm-content').cmView.view.state.doc.toString()"
STATUS = "document.querySelector('#status').textContent"


@built
@in_both
def test_edits_outlive_another_scene_a_reload_and_back(look_at: LookAt) -> None:
    said = look_at(PAGE, _left_and_came_back)
    assert all("190KB" in text for text in said["texts"]), said["texts"]
    assert said["back"] == "#scene=dcpim" and "190KB" not in said["undone"] and said["complaints"] == []


async def _left_and_came_back(page: browser.Page) -> dict[str, Any]:
    await page.until(DONE)
    await page.evaluate(f"{TYPED}('200KB', '190KB')")
    choose = "document.querySelector('[data-id=\"{}\"]').click()"
    texts = []
    for name in ("harmony", "dcpim"):
        await page.evaluate(choose.format(name))
    texts.append(await page.evaluate(TEXT))
    await page.evaluate(choose.format("harmony"))
    await page.evaluate("history.back()")
    await page.until(f"{TEXT}.includes('190KB')")
    back = await page.evaluate("location.hash")
    texts.append(await page.evaluate(TEXT))
    await page.reload()
    await page.until(DONE)
    texts.append(await page.evaluate(TEXT))
    await page.evaluate("document.querySelector('#reset').click()")
    return {"texts": texts, "back": back, "undone": await page.evaluate(TEXT), "complaints": page.complaints}


@built
@in_both
def test_a_damaged_link_keeps_its_address(look_at: LookAt) -> None:
    async def followed(page: browser.Page) -> list[str]:
        await page.until(DONE)
        said = []
        for fragment in ("#s=%%%", "#scene=none"):
            await page.evaluate(f"location.hash = {json.dumps(fragment)}")
            await page.until("document.querySelector('#title').textContent === 'A damaged link'")
            said += [await page.evaluate("location.hash"), await page.evaluate(STATUS)]
        return said

    said = look_at(PAGE, followed)
    assert said[0] == "#s=%%%" and "holds no scenario" in said[1], said
    assert said[2] == "#scene=none" and "not here" in said[3], said


@built
@in_both
def test_a_link_brings_moment_packet_and_pinned_run(look_at: LookAt) -> None:
    said = look_at(PAGE, _linked)
    assert said["then"] == said["now"] and said["now"][3] == "dcPIM asks before it sends", said
    assert said["confirmed"] and "190KB" in said["text"] and said["complaints"] == [], said


async def _linked(page: browser.Page) -> dict[str, Any]:
    await page.until(DONE)
    # The pinned run is another than the scene's.
    await _edited(page, '"200KB"', '"190KB"')
    await page.evaluate("document.querySelector('#pin').click()")
    await _edited(page, 'transport = "dcpim"', 'transport = "dctcp"')
    at = f"""(({{ time, chosen, chosenIn, panels }}) => [
        time, chosen, panels.indexOf(chosenIn), document.querySelector("#title").textContent,
        ...panels.map(({{ history }}) => history.rows), document.querySelectorAll(".cm-changedLine").length,
    ])({VIEWER})"""
    await page.evaluate(
        f"(({{ panels }}) => {{ const at = {VIEWER}; at.pause(); at.seek(at.begin + 4e7);"
        f"at.choose(99, panels[1]); }})({VIEWER})"
    )
    now = await page.evaluate(at)
    await page.evaluate("document.querySelector('#link').click()")
    await page.until(f"{STATUS}.includes('link')")
    link = await page.evaluate("location.hash")
    await page.evaluate("document.querySelector('[data-id=\"harmony\"]').click()")
    await page.until(DONE)
    await page.evaluate(f"location.hash = {json.dumps(link)}")
    await page.until(f"{TEXT}.includes('dctcp')")
    await page.until(READY)
    await page.evaluate("document.querySelector('#run').click()")
    await page.until(f"{READY} && {STATUS}.includes('digest')")
    confirmed = await page.evaluate(f"{STATUS}.includes('is that of the link')")
    then, text = await page.evaluate(at), await page.evaluate(TEXT)
    return {"now": now, "then": then, "confirmed": confirmed, "text": text, "complaints": page.complaints}


@built
@in_both
def test_a_page_within_another_waits_for_its_reader(look_at: LookAt, native: dict[str, cw.Result]) -> None:
    digest = native["r2c2"].digest
    said = look_at(PAGE, lambda page: _embedded(page, f"?embed#scene=r2c2&t=9000000&digest={digest}"))
    assert said["before"] == [False, 32, True, ["view"]], said
    assert said["after"] == [9e6, True] and digest in said["status"] and said["complaints"] == [], said


async def _embedded(page: browser.Page, query: str) -> dict[str, Any]:
    await page.evaluate(f"location.href = location.pathname + {json.dumps(query)}")
    await page.until("document.querySelector('.embedded #poster')?.offsetHeight")
    found = {
        "before": await page.evaluate(f"""[
        Boolean(document.querySelector("script[src='engine.js']")), {VIEWER}.history.fabric.names.length,
        document.querySelector("#poster").textContent.includes("R2C2"),
        ["view", "scenario", "results", "lesson"].filter((id) => document.getElementById(id).offsetHeight),
    ]""")
    }
    await _seen(page, "embedded")
    await page.evaluate("document.querySelector('#poster').click()")
    await page.until(f"{STATUS}.includes('is that of the link')")
    sliders = "document.querySelectorAll('#view input[type=range]').length >= 2"
    found |= {"after": await page.evaluate(f"[{VIEWER}.time, {sliders}]"), "status": await page.evaluate(STATUS)}
    return found | {"complaints": page.complaints}


@built
@in_both
def test_predictions_are_judged_by_the_tables(look_at: LookAt) -> None:
    said = look_at(PAGE, _predicted)
    assert said["complaints"] == []
    for name in LESSONS:
        head, _ = lesson(name)
        of, text = said[name], SCENES[name].read_text()
        # Each phrase leads to a moment and, but for pauses, to a packet.
        assert of["phrases"] and all(
            time > 0 and (row >= 0 or where == "held") for where, time, row in of["phrases"]
        ), of
        assert len(of["verdicts"]) == len(head["prediction"]) and not re.search("[–…]|{", "".join(of["verdicts"])), of
        assert of["before"] == [] and of["text"] == text.replace(*head["change"]), name
    # Held against the tables of native runs.
    head, _ = lesson("dcpim")
    runs = [cw.Scenario.load(SCENES["dcpim"]).with_({"transport": name}) for name in ("dcpim", "dctcp")]
    asks, sends = (cw.run(one, progress=False) for one in runs)
    queues = [of.links.to_pandas()["queued_bytes_max"].max() for of in (asks, sends)]
    slow = [of.flows.to_pandas().groupby("class")["slowdown"] for of in (asks, sends)]
    worst, mean = [of.max()["requests"] for of in slow], [of.mean()["bulk"] for of in slow]
    # The first answer was given to each question.
    right = [before > after for before, after in (queues, worst, mean)]
    assert [one.startswith("✓") for one in said["dcpim"]["verdicts"]] == right, said["dcpim"]
    assert right == [False, False, True], "dcPIM is for short messages, at the price of long ones"


async def _predicted(page: browser.Page) -> dict[str, Any]:
    await page.until(DONE)
    found: dict[str, Any] = {}
    verdicts = "[...document.querySelectorAll('.verdict')].map((one) => one.textContent)"
    for name in LESSONS:
        await page.evaluate(f"document.querySelector('[data-id=\"{name}\"]').click()")
        await page.until(f"{READY} && {DONE}")
        found[name] = {"before": await page.evaluate(verdicts)}
        found[name]["phrases"] = await page.evaluate(f"""[...document.querySelectorAll(".phrase")].map((one) => {{
            {VIEWER}.seek(0);
            one.click();
            const row = {VIEWER}.chosen, {{ time }} = {VIEWER};
            {VIEWER}.choose(-1);
            return [one.dataset.where, time, row];
        }})""")
        await page.evaluate("""[...document.querySelectorAll("#lesson fieldset")].forEach((one) => {
            one.querySelector("input").click();
        })""")
        await page.evaluate("document.querySelector('#lesson [type=submit]').click()")
        await page.until("document.querySelector('.verdict') !== null")
        await page.until(READY)
        found[name] |= {"verdicts": await page.evaluate(verdicts), "text": await page.evaluate(TEXT)}
        await page.evaluate("scrollTo(0, 0)")
        await _seen(page, f"{name}-lesson")
    return found | {"complaints": page.complaints}


@built
@in_both
@pytest.mark.parametrize("size", [(1280, 900), (390, 844), (1920, 1080)], ids=str)
def test_picture_story_and_run_are_visible_together(look_at: LookAt, size: tuple[int, int]) -> None:
    said = look_at(PAGE, lambda page: _together(page, size))
    wide, high = size
    for name, (left, top, right, bottom) in said["places"].items():
        assert left >= 0 and top >= 0 and right <= wide and bottom <= high, (name, said["places"])
    # Wide screens are used.
    assert said["used"] >= 0.9 and said["complaints"] == [], said


async def _together(page: browser.Page, size: tuple[int, int]) -> dict[str, Any]:
    await page.small(*size)
    await page.until(DONE)
    await page.evaluate(f"(() => {{ const at = {VIEWER}; at.pause(); at.seek(at.begin + 8e7); at.nextPacket(); }})()")
    await page.evaluate("scrollTo(0, 0)")
    await _seen(page, f"together-{size[0]}")
    found: dict[str, Any] = await page.evaluate("""(() => {
        const place = (what) => {
            const { left, top, right, bottom } = document.querySelector(what).getBoundingClientRect();
            return [left, top, right, bottom];
        };
        const story = [".cw-story h3", ".cw-story p"], run = ["#run", "#status"];
        const shown = [...document.querySelectorAll("main > *")].filter((one) => one.offsetWidth)
            .map((one) => one.getBoundingClientRect());
        return {
            places: Object.fromEntries([".cw-panel canvas", ...story, ...run].map((what) => [what, place(what)])),
            used: (Math.max(...shown.map(({ right }) => right)) - Math.min(...shown.map(({ left }) => left)))
                / document.documentElement.clientWidth,
        };
    })()""")
    return found | {"complaints": page.complaints}


@built
@in_both
def test_data_move_soon_and_a_scene_is_short(look_at: LookAt) -> None:
    said = look_at(PAGE, _paces)
    assert set(said) == set(SCENES)
    for name, (boxes, until_data, whole) in said.items():
        # Its fabric is there with the click, and not only with its run.
        assert boxes > 4 and 0 <= until_data <= 3 and 5 <= whole <= 60, (name, boxes, until_data, whole)


async def _paces(page: browser.Page) -> dict[str, Any]:
    await page.until(DONE)
    found = {}
    for name in SCENES:
        boxes = await page.evaluate(f"""(() => {{
            document.querySelector('[data-id="{name}"]').click();
            return {VIEWER}.history.isBare ? {VIEWER}.picture.places.length : 0;
        }})()""")
        await page.until(f"{READY} && {DONE}")
        found[name] = [
            boxes,
            *await page.evaluate(f"""(({{ history, begin, end, speed }}) => [
            (history.firstData - begin) / speed, (end - begin) / speed,
        ])({VIEWER})"""),
        ]
    return found


@built
@in_both
@pytest.mark.parametrize("how", ["light", "dark"])
def test_flows_kinds_sizes_and_tenants_are_told_apart(look_at: LookAt, how: str) -> None:
    said = look_at(PAGE, _drawn, dark=how == "dark")
    flows, kinds = said["flows"], said["kinds"]
    assert len({*flows, *kinds}) == len(flows) + len(kinds) == 16, said
    assert said["hosts"] == [f"host{host}" for host in range(12)], said
    # An acknowledgement is smaller than the data that it is for, and large enough to be seen.
    assert 0.5 <= said["small"] < 0.8 and said["large"] == 1, said
    assert said["tenants"] == [3, 3] and said["legend"] == ["one flow", "four flows", "cubic"], said
    first, second, third, again = said["picked"]
    assert len({first, second, third}) >= 2 and again == first, said["picked"]
    assert said["names"] == [] and said["complaints"] == []


async def _drawn(page: browser.Page) -> dict[str, Any]:
    await page.until(DONE)
    found: dict[str, Any] = {}
    choose = "document.querySelector('[data-id=\"{}\"]').click()"
    await page.evaluate(choose.format("pyrrha"))
    await page.until(f"{READY} && {DONE}")
    found |= await page.evaluate(f"""(({{ picture, history }}) => {{
        {VIEWER}.pause();
        {VIEWER}.seek(5e7);
        const ack = history.kindNames.indexOf("Ack"), data = history.kind.indexOf(0);
        return {{
            flows: picture.colours, kinds: picture.kindColours, hosts: picture.names,
            small: picture.radius(history.kind.indexOf(ack), 1), large: picture.radius(data, 1),
        }};
    }})({VIEWER})""")
    # Three that lie on each other, and what a fourth click gives.
    found["picked"] = await page.evaluate(f"""((viewer) => {{
        const {{ picture, panels: [panel] }} = viewer, at = ({{ marks }}) => marks.find(([x, y]) => (
            picture.rowsAt(x, y).length > 1));
        while (!at(picture)) viewer.step(1);
        const [offsetX, offsetY] = at(picture), count = picture.rowsAt(offsetX, offsetY).length;
        const pick = () => (viewer.click({{ offsetX, offsetY }}, panel), viewer.chosen);
        const rows = Array.from({{ length: count }}, pick);
        return [rows[0], rows[1], rows.at(-1), pick()];
    }})({VIEWER})""")
    found["names"] = await page.evaluate("""[...document.querySelectorAll("button[aria-label], input[aria-label]")]
        .filter((one) => /[a-z]/i.test(one.textContent))
        .filter((one) => !one.getAttribute("aria-label").includes(one.textContent.trim()))
        .map((one) => one.textContent)""")
    await page.evaluate(choose.format("tenants"))
    await page.until(f"{READY} && {DONE}")
    found["tenants"] = await page.evaluate(f"""(({{ picture, history }}) => {{
        const of = [...history.kind.keys()].filter((row) => history.kind[row] === 0);
        const tenants = new Set(of.map((row) => history.tenantOf(row)));
        return [tenants.size, new Set(of.map((row) => picture.colour(row))).size];
    }})({VIEWER})""")
    legend = "[...document.querySelectorAll('.cw-legend li')].filter((one) => one.querySelector('.cw-tenant'))"
    found["legend"] = await page.evaluate(f"{legend}.map((one) => one.textContent)")
    return found | {"complaints": page.complaints}


@built
@in_both
def test_completion_describes_what_it_offers_and_closes_with_a_run(look_at: LookAt) -> None:
    said = look_at(PAGE, _completing)
    assert len(said["offered"]) > 20 and all(said["offered"].values()), said["offered"]
    assert said["open"] == [1, 0], said


async def _completing(page: browser.Page) -> dict[str, Any]:
    await page.until(DONE)
    await page.evaluate("document.querySelector('.cm-content').focus()")
    await page.press("End", control=True)
    await page.write("\n[switch.")
    await page.press(" ", control=True)
    box = "document.querySelectorAll('.cm-tooltip-autocomplete').length"
    await page.until(box)
    found: dict[str, Any] = {"open": [await page.evaluate(box)]}
    await page.evaluate("document.querySelector('#run').click()")
    await page.until(f"!{box}")
    found["open"].append(await page.evaluate(box))
    await page.until(f"{READY} && {STATUS}.includes('scenario.toml')")
    # Of each transport that may be the value.
    await page.evaluate(f"{TYPED}('transport = \"dcpim\"', 'transport = ')")
    offered = """(async () => {
        const found = {}, { view } = document.querySelector(".cm-content").cmView;
        view.focus();
        view.dispatch({ selection: { anchor: view.state.doc.toString().indexOf("transport = ") + 12 } });
        return found;
    })()"""
    await page.evaluate(offered)
    await page.press(" ", control=True)
    await page.until("document.querySelectorAll('.cm-tooltip-autocomplete li').length")
    found["offered"] = {}
    for _ in range(30):
        name = await page.until("document.querySelector('.cm-tooltip-autocomplete li[aria-selected]')?.textContent", 5)
        if name in found["offered"]:
            break
        info = "document.querySelector('.cm-completionInfo')?.textContent"
        found["offered"][name] = await page.until(f"{info} || 'none'", 3)
        # CodeMirror takes no key for an answer to what has only just appeared.
        await asyncio.sleep(0.2)
        await page.press("ArrowDown")
    return found
