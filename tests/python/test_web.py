"""The playground, where `make web` has built it: the engine in node gives the native digests, and the page, in a
headless Chromium and Firefox, runs each scene to its end, draws the packets of a native run, loads nothing from
elsewhere, takes no markup from a scenario and no more memory than it may.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
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
