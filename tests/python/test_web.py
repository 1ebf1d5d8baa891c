"""The playground, where `make web` has built it: the engine in node gives the native digests, and the page, in a
headless Chromium, runs each scene to its end, loads nothing from elsewhere, and takes no markup from a scenario.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import browser
import clearway as cw
import pytest
import test_digests as digests

ROOT = Path(__file__).resolve().parents[2]
ENGINE, PAGE = ROOT / "target/playground/engine", ROOT / "target/playground/page/index.html"
COUNTEREXAMPLE = ROOT / "python/clearway/papers/harmony/counterexample.toml"
SCENES = {path.stem: path for path in [*(ROOT / "crates/web/scenes").glob("*.toml"), COUNTEREXAMPLE]}
MARKUP = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'

built = pytest.mark.skipif(not PAGE.exists(), reason="the playground is not built: make web")
seen = pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium is installed")


@built
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_engine_in_node_gives_the_native_digests() -> None:
    kept, now = digests.kept(), digests.scenarios()
    names = [name for name in kept if name.startswith(("examples/", "crates/web/"))]
    names.append(COUNTEREXAMPLE.relative_to(ROOT).as_posix())
    assert len(names) >= 9 + len(SCENES)
    asked = {
        "files": {"counterexample.csv": COUNTEREXAMPLE.with_suffix(".csv").read_text()},
        # With paths as in the file: the page has files by these names.
        "scenarios": {name: _cut(name, now[name], kept[name][0]) for name in names},
    }
    command = ["node", str(Path(__file__).with_name("web_engine.mjs")), str(ENGINE)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = {name: run["digest"] for name, run in json.loads(done.stdout).items()}
    assert found == {name: kept[name][1] for name in names}


def _cut(name: str, scenario: cw.Scenario, us: int) -> str:
    text = digests.cut(scenario, us).to_toml()
    return re.sub(r'(path = )"[^"]*/', r'\1"', text)


def packed(text: str) -> str:
    """The fragment of a link that holds a scenario."""
    deflate = zlib.compressobj(wbits=-15)
    return "#s=" + base64.urlsafe_b64encode(deflate.compress(text.encode()) + deflate.flush()).decode().rstrip("=")


DONE = "document.querySelector('#status').textContent.startsWith('Done')"


@built
@seen
def test_each_scene_runs_to_its_end_with_the_native_digest() -> None:
    expected = {}
    for name, path in SCENES.items():
        expected[name] = cw.run(cw.Scenario.load(path), progress=False).info["digest"]
    found, page = browser.look_at(PAGE, _each_scene)
    assert {name: said["digest"] for name, said in found.items()} == expected
    for name, said in found.items():
        # Every number of the text is the run's own.
        assert re.search(r"\d", said["steps"]) and not re.search(r"\{[a-z_.]+\}|[…–]|NaN|undefined", said["steps"]), (
            said["steps"]
        )
        assert said["charts"] >= 3 and said["rows"] >= 1, name
        assert "checks hold" in said["facts"], said
    assert page.complaints == []
    assert all(address.startswith(("file:", "data:", "blob:")) for address in page.asked), page.asked


async def _each_scene(page: browser.Page) -> tuple[dict[str, Any], browser.Page]:
    await page.until(DONE)
    found = {}
    for name in SCENES:
        await page.evaluate(f"document.querySelector('[data-id=\"{name}\"]').click()")
        await page.until("!document.querySelector('#run').disabled")
        await page.evaluate("document.querySelector('#run').click()")
        await page.until(DONE)
        found[name] = await page.evaluate("""({
            digest: document.querySelector('#digest').textContent,
            steps: document.querySelector('#steps').textContent,
            facts: document.querySelector('#facts').textContent,
            charts: document.querySelectorAll('#charts figure').length,
            rows: document.querySelectorAll('#slowdowns tr').length,
        })""")
    return found, page


@built
@seen
def test_a_link_brings_a_scenario_its_error_and_nothing_else() -> None:
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
        "too large": packed(" " * 2_000_000),
        "no scene": "#scene=none",
    }
    said = browser.look_at(PAGE, lambda page: _each_link(page, links))
    assert "scenario.toml:2" in said["wrong key"] and "transprt" in said["wrong key"]
    assert "scenario.toml:1" in said["no TOML"]
    assert "more than 1,000,000 bytes" in said["too large"]
    assert "the link holds no scenario" in said["damaged"]
    assert "not here" in said["no scene"]
    assert "<script>" in said["markup in an error"]
    assert MARKUP in said["markup run"]


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
            said["markup run"] = await page.evaluate("document.querySelector('#results').textContent")
        else:
            await page.until("document.querySelector('#status').className === 'wrong'")
            said[name] = await page.evaluate("document.querySelector('#status').textContent")
        hurt = "window.hurt || document.querySelectorAll('main img, main script, main b').length"
        assert not await page.evaluate(hurt), name
        await page.evaluate("document.querySelector('[data-id=\"dcpim\"]').click()")
    assert page.complaints == []
    return said
