"""Lessons in the playground: two runs beside each other, edits and links that last, predictions that
the tables judge, its pace, its places on the screen, and colours that are told apart. Where `make web` has built it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

import browser
import clearway as cw
import pytest
from test_web import DONE, PAGE, REPORTED, ROOT, SCENES, VIEWER, LookAt, built, in_both, native, seen
from test_web import _seen as picture

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["native"]

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
    await picture(page, "changed")
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
    # Of the lesson there is its slider.
    assert said["before"] == [False, 32, True, ["view", "lesson"]], said
    assert said["after"] == [9e6, True] and digest in said["status"] and said["complaints"] == [], said


async def _embedded(page: browser.Page, query: str) -> dict[str, Any]:
    await page.go(PAGE.resolve().as_uri() + query)
    await page.until("document.querySelector('.embedded #poster')?.offsetHeight")
    found = {
        "before": await page.evaluate(f"""[
        Boolean(document.querySelector("script[src='engine.js']")), {VIEWER}.history.fabric.names.length,
        document.querySelector("#poster").textContent.includes("R2C2"),
        ["view", "scenario", "results", "lesson", "controls"].filter((id) => document.getElementById(id).offsetHeight),
    ]""")
    }
    await picture(page, "embedded")
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
        await picture(page, f"{name}-lesson")
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
    await picture(page, f"together-{size[0]}")
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
