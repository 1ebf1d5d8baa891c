"""`clearway view`: what it writes, what it says where nothing is recorded, and, in a headless Chromium, that the page
draws what the tables say: time moves, a click on a packet tells its story, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import browser
import clearway as cw
import numpy as np
import pandas as pd
import pytest
from called import call
from clearway.reports import view as _view
from clearway.results import packets

ROOT = Path(__file__).resolve().parents[2]
PYRRHA = ROOT / "crates/web/scenes/pyrrha.toml"
MARKUP = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'
VIEWER = "document.querySelector('.cw-view').viewer"
READY = f"Boolean({VIEWER.replace(').', ')?.')})"

seen = pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def result() -> cw.Result:
    """Pyrrha's scene: queues, pauses that name roots, samples of congestion."""
    return cw.run(cw.Scenario.load(PYRRHA).with_({"measure.packets": {}}), progress=False)


def unpacked(view: bytes) -> dict[str, Any]:
    """A view as its format says, with columns as arrays."""
    (length,) = struct.unpack_from("<I", view)
    head: dict[str, Any] = json.loads(view[4 : 4 + length])
    at = 4 + length
    for table in head["tables"].values():
        for column in table["columns"].values():
            kind = np.dtype("<f8" if column["kind"] == "numbers" else "<u4")
            column["values"] = np.frombuffer(view, kind, table["rows"], at)
            at += table["rows"] * kind.itemsize
    assert at == len(view)
    return head


def test_a_view_has_what_the_tables_have(result: cw.Result) -> None:
    view = unpacked(_view.packed(result))
    assert list(view["tables"]) == ["links", "flows", "packets", "congestion"]
    assert (view["dims"], view["partial"], view["notes"]) == ([], False, [])
    for name, table in view["tables"].items():
        frame = getattr(result, name).to_pandas()
        assert table["rows"] == len(frame)
        for column, of in table["columns"].items():
            if of["kind"] == "numbers":
                expected = frame[column].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
                np.testing.assert_array_equal(of["values"], expected)
            else:
                assert [of["names"][at] for at in of["values"]] == frame[column].astype(str).tolist()


def test_what_is_cut_is_said(result: cw.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_view, "ROWS_MAX", 100)
    view = unpacked(_view.packed(result))
    assert view["tables"]["packets"]["rows"] == 100
    first, second = view["notes"]
    assert first == f"Only the first 100 of {len(result.packets):,} recorded packets are drawn."
    samples = view["tables"]["congestion"]
    every, some = np.unique(result.congestion["time_ps"]), np.unique(samples["columns"]["time_ps"]["values"])
    stride = int(second.removeprefix("Of the samples of congestion one in ").removesuffix(" is drawn."))
    assert 0 < samples["rows"] <= 100 and some.tolist() == every[::stride].tolist()


def test_a_grid_has_its_lengths() -> None:
    scene = cw.Scenario.load(ROOT / "crates/web/scenes/r2c2.toml")
    some = cw.run(scene.with_({"measure.packets": {"flows": [2]}}), progress=False)
    view = unpacked(_view.packed(some))
    assert view["dims"] == [4, 4] and view["partial"]


def test_the_command_writes_a_page_in_the_result(tmp_path: Path) -> None:
    tiny = ROOT / "examples/tiny.toml"
    call("run", tiny, "--set", "measure.packets={}", "--out", tmp_path / "r")
    said = call("view", tmp_path / "r", "--no-open")
    assert said.code == 0 and str(tmp_path / "r/view.html") in said.out, said
    page = (tmp_path / "r/view.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page
    # It goes with the result that it was made of.
    again = call("run", tiny, "--out", tmp_path / "r")
    assert again.code == 0 and not (tmp_path / "r/view.html").exists(), again


def test_what_is_missing_is_said_with_the_command(tmp_path: Path) -> None:
    tiny = ROOT / "examples/tiny.toml"
    for more, word in (((), "without recorded packets"), (("--level", "flow"), "at flow level")):
        call("run", tiny, *more, "--out", tmp_path / "r")
        said = call("view", tmp_path / "r", "--no-open")
        assert said.code == 2 and word in said.err, said
        assert 'clearway run RESULT/scenario.toml --set "measure.packets={}" --out OUT' in said.err
    call("run", tiny, "--set", 'measure.packets={ from = "1s" }', "--out", tmp_path / "r")
    said = call("view", tmp_path / "r", "--no-open")
    assert said.code == 2 and "ask for other flows, links or times" in said.err, said
    (tmp_path / "notes.txt").write_text("mine")
    call("run", tiny, "--set", "measure.packets={}", "--out", tmp_path / "r")
    said = call("view", tmp_path / "r", "--no-open", "--out", tmp_path / "notes.txt")
    assert said.code == 2 and (tmp_path / "notes.txt").read_text() == "mine", said


def us(ps: float) -> str:
    """Microseconds with all their digits."""
    whole, rest = divmod(int(ps), 1_000_000)
    return f"{whole:,}{f'.{rest:06d}'.rstrip('0') if rest else ''} µs"


def way(result: cw.Result, frame: pd.DataFrame, flow: int, offset: int) -> list[tuple[str, str]]:
    """When a data packet was where, as the table says, and how the story should begin to say it."""
    mine = frame[(frame["flow"] == flow) & (frame["payload_bytes"] > 0) & (frame["offset_bytes"] == offset)]
    delays = result.links["delay_ps"]
    lines = []
    for hop, row in enumerate(mine.to_dict("records")):
        node, to, left = row["node"], row["to_node"], row["time_ps"]
        wait = left - row["came_ps"]
        if hop and wait:
            lines.append(
                (us(row["came_ps"]), f"Comes to {node} and waits {us(wait)} for {to}; meanwhile the link sends ")
            )
        elif hop:
            lines.append((us(row["came_ps"]), f"Comes to {node}, which sends it on to {to} at once."))
        if not hop or wait:
            lines.append((us(left), f"Leaves {node} for {to}."))
    arrived = row["last_ps"] + int(delays[int(row["link"])])
    return [*lines, (us(arrived), f"Its last bit has come to {to}.")]


@seen
def test_a_click_on_a_packet_tells_its_story(result: cw.Result, tmp_path: Path) -> None:
    frame = packets.packets(result)
    data = frame[(frame["payload_bytes"] > 0) & (frame["node"].astype(str) == frame["source"].astype(str))]
    first: Any = data[data["flow"] == 5].iloc[40]
    flow, offset, row = int(first["flow"]), int(first["offset_bytes"]), int(first.name)
    expected = way(result, frame, flow, offset)
    assert len(expected) >= 6 and any("waits" in text for _, text in expected)
    found = browser.look_at(result.view(tmp_path / "view.html"), lambda page: _story(page, row))
    assert [time for time, _ in found["lines"]] == [time for time, _ in expected]
    for (_, said), (_, words) in zip(found["lines"], expected):
        assert said.startswith(words), (said, words)
    assert found["title"] == f"Data packet of flow {flow}"
    total = frame[(frame["flow"] == flow) & (frame["offset_bytes"] == offset) & (frame["payload_bytes"] > 0)]
    queued = us((total["time_ps"] - total["came_ps"]).sum())
    assert f"{queued} of them in queues" in found["text"]
    assert found["complaints"] == []
    assert all(address.startswith(("file:", "data:")) for address in found["asked"]), found["asked"]


async def _story(page: browser.Page, row: int) -> dict[str, Any]:
    await page.until(READY)
    where = await page.evaluate(f"""(() => {{
        const viewer = {VIEWER}, {{ history, picture, canvas }} = viewer;
        viewer.pause();
        viewer.seek((history.time_ps[{row}] + history.arrive[{row}]) / 2);
        canvas.scrollIntoView();
        const [x, y] = picture.marks.find((mark) => mark[2] === {row}), box = canvas.getBoundingClientRect();
        // Inside its border.
        return [box.left + canvas.clientLeft + x, box.top + canvas.clientTop + y];
    }})()""")
    assert await page.evaluate("document.querySelectorAll('.cw-story h3').length") == 0
    await page.mouse(*where, click=True)
    await page.until("document.querySelectorAll('.cw-story h3').length")
    found: dict[str, Any] = await page.evaluate("""({
        title: document.querySelector('.cw-story h3').textContent,
        text: document.querySelector('.cw-story').textContent,
        lines: [...document.querySelectorAll('.cw-story li')].map((line) => [
            line.querySelector('button').textContent, line.querySelector('span').textContent]),
    })""")
    return found | {"complaints": page.complaints, "asked": page.asked}


@seen
def test_time_moves_by_play_by_steps_and_by_keys(result: cw.Result, tmp_path: Path) -> None:
    frame = packets.packets(result)
    delays = result.links["delay_ps"].astype(float)
    sent = frame[frame["link"].notna()]
    times = np.unique(
        np.concatenate([frame["time_ps"], sent["came_ps"], sent["last_ps"] + delays[sent["link"].astype(int)]])
    )
    found = browser.look_at(result.view(tmp_path / "view.html"), _moves)
    # It plays by itself, stops, and goes on by the button and by the space bar.
    assert found["began"] == times[0]
    assert found["began"] < found["moving"] <= found["still"] == found["after"] < found["button"] < found["space"]
    at = np.searchsorted(times, 20e6, side="right")
    assert found["steps"] == [times[at], times[at + 1], times[at]]
    assert found["speed"][1] < found["speed"][0] / 1.5
    # Zoom by the list and back by Escape; then a packet by the keyboard alone.
    assert found["zoomed"] == [True, False] and found["chosen"] >= 0
    assert found["complaints"] == []


async def _moves(page: browser.Page) -> dict[str, Any]:
    await page.until(READY)
    found: dict[str, Any] = {"began": await page.evaluate(f"{VIEWER}.history.begin")}
    found["moving"] = await page.until(f"{VIEWER}.time > {VIEWER}.history.begin && {VIEWER}.time")
    button = "document.querySelector('.cw-bar button:nth-of-type(2)')"
    await page.evaluate(f"{button}.click()")
    found["still"] = await page.evaluate(f"{VIEWER}.time")
    found["after"] = await page.evaluate(
        f"new Promise((done) => setTimeout(() => done({VIEWER}.time), 300))",
    )
    await page.evaluate(f"{button}.click()")
    found["button"] = await page.until(f"{VIEWER}.time > {found['after']} && {VIEWER}.time")
    await page.evaluate(f"{button}.click()")
    await page.evaluate(f"{VIEWER}.canvas.focus()")
    now = found["button"] = await page.evaluate(f"{VIEWER}.time")
    await _key(page, " ", "Space")
    found["space"] = await page.until(f"{VIEWER}.time > {now} && {VIEWER}.time")
    await _key(page, " ", "Space")
    await page.evaluate(f"{VIEWER}.seek(20e6)")
    found["steps"] = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        await _key(page, key, key)
        found["steps"].append(await page.evaluate(f"{VIEWER}.time"))
    speeds = [await page.evaluate(f"{VIEWER}.speed")]
    await _key(page, "-", "Minus")
    found["speed"] = [*speeds, await page.evaluate(f"{VIEWER}.speed")]
    choose = "(() => { const list = document.querySelector('.cw-bar select'); list.value = list.options[1].value; "
    await page.evaluate(choose + "list.dispatchEvent(new Event('change')); })()")
    zoomed = [await page.evaluate(f"{VIEWER}.node >= 0")]
    await page.evaluate(f"{VIEWER}.canvas.focus()")
    await _key(page, "Escape", "Escape")
    found["zoomed"] = [*zoomed, await page.evaluate(f"{VIEWER}.node >= 0")]
    await _key(page, "n", "KeyN")
    found["chosen"] = await page.evaluate(f"{VIEWER}.chosen")
    return found | {"complaints": page.complaints}


async def _key(page: browser.Page, key: str, code: str) -> None:
    text = {"text": key} if len(key) == 1 else {}
    await page.ask("Input.dispatchKeyEvent", type="keyDown", key=key, code=code, **text)
    await page.ask("Input.dispatchKeyEvent", type="keyUp", key=key, code=code)


@seen
def test_queues_pauses_and_roots_are_those_of_the_tables(result: cw.Result, tmp_path: Path) -> None:
    links = [f"{a}-{b}" for a, b in zip(result.links["from_node"], result.links["to_node"])]
    sums = packets.packets(result).groupby("link")["bytes"].sum()
    link = int(next(one for one in sums.sort_values(ascending=False).index if links[int(one)].startswith("leaf")))
    queue = result.queue(links[link])
    held = packets.pauses(result)
    named, delays = packets.roots(result), dict(zip(links, result.links["delay_ps"].astype(float)))
    # Told when the frame has arrived; the table `pauses` says when its last bit has left.
    late = [delays[f"{by}-{node}"] for node, by in zip(held["node"], held["by"])]
    said = [named(str(says)).removeprefix("Pause ").partition(", distance")[0] for says in held["says"]]
    ports = [links.index(f"{node}-{by}") for node, by in zip(held["node"], held["by"])]
    expected = sorted(zip(ports, said, held["from_ps"] + late))
    congested = result.congestion.to_pandas()
    at = int(congested.loc[congested["role"] == "root", "time_ps"].iloc[0])
    roots = sorted(set(congested.loc[(congested["time_ps"] == at) & (congested["role"] == "root"), "link"]))
    found = browser.look_at(
        result.view(tmp_path / "view.html"), lambda page: _states(page, link, (queue["time_us"] * 1e6).tolist(), at)
    )
    assert found["queue"] == queue["bytes"].tolist()
    assert found["roots"] == roots
    assert [tuple(one) for one in sorted(found["held"])] == [(port, what, begin) for port, what, begin in expected]
    assert len(expected) > 20


async def _states(page: browser.Page, link: int, times: list[float], at: int) -> dict[str, Any]:
    await page.until(READY)
    found: dict[str, Any] = await page.evaluate(f"""({{
        queue: {json.dumps(times)}.map((time) => {VIEWER}.history.waiting({link}, Math.round(time))),
        held: {VIEWER}.history.held.map(({{ link, what, from }}) => [link, what, from]),
        roots: [...{VIEWER}.history.congestedAt({at})].filter(([, {{ root }}]) => root).map(([link]) => link).sort(
            (a, b) => a - b),
    }})""")
    return found


@seen
def test_no_markup_of_a_scenario_reaches_the_page(tmp_path: Path) -> None:
    tiny = (ROOT / "examples/tiny.toml").read_text()
    name = json.dumps(MARKUP)
    text = tiny.replace('name = "tiny"', f"name = {name}").replace('name = "ring"', f"name = {name}")
    assert text.count("onerror") == 2
    result = cw.run(cw.Scenario.from_toml(text).with_({"measure.packets": {}}), progress=False)
    found = browser.look_at(result.view(tmp_path / "view.html"), _markup)
    assert found["complaints"] == [] and not found["hurt"]
    # It is there, as text: the name above, the class in the story.
    assert MARKUP in found["title"] and MARKUP in found["story"]


async def _markup(page: browser.Page) -> dict[str, Any]:
    await page.until(READY)
    await page.evaluate(f"{VIEWER}.choose(0)")
    found: dict[str, Any] = await page.evaluate("""({
        hurt: Boolean(window.hurt) || document.querySelectorAll('img').length > 0,
        title: document.querySelector('h1').textContent,
        story: document.querySelector('.cw-story').textContent,
    })""")
    return found | {"complaints": page.complaints}
