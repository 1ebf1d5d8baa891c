"""Measures the playground on this machine and writes what came out into docs/playground.md.

`python tests/playground_page.py` wants what `make web` and `make .venv/.release` build; `make bench-web` sees to both.
The measurements are in docs/playground.json; the region of the page between `<!-- playground: begin -->` and
`<!-- playground: end -->` is written from that and never by hand.

- Speed: `SCENARIO` in the browsers and natively on one thread, in turn, by the clock on the wall. The best of `ROUNDS`
  counts, which other programs disturb least.
- The first scene: from the beginning of the navigation to the first result, and to its report, the best of `ROUNDS`
  fresh browsers, which load the page from this machine's disk.
- Weight: all files that the page loads, by brotli.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "docs" / "playground.json", ROOT / "docs" / "playground.md"
BUILT = ROOT / "target" / "playground" / "page"
REGION = re.compile(r"(<!-- playground: begin -->\n).*?(<!-- playground: end -->\n)", re.DOTALL)
SCENARIO, ROUNDS = "dcpim-vs-tcp", 5
# Chosen before anything was measured: issue 26.
SPEED_LEAST, FIRST_MOST_S, WEIGHT_MOST = 0.5, 3.0, 5_000_000
LOADED = ("index.html", "style.css", "app.js", "engine.js", "bokeh.js")
BROTLI = (
    "const zlib = require('zlib'), fs = require('fs');"
    "for (const path of process.argv.slice(1)) console.log(zlib.brotliCompressSync(fs.readFileSync(path)).length)"
)


def filled(page: str, record: Mapping[str, Any]) -> str:
    """The page with its region as the record has it; ValueError if it has none."""
    if len(REGION.findall(page)) != 1:
        raise ValueError("the page needs one region, from <!-- playground: begin --> to <!-- playground: end -->")
    return REGION.sub(lambda marks: marks[1] + render(record) + marks[2], page)


def render(record: Mapping[str, Any]) -> str:
    """The region's text."""
    if not record:
        return "Not yet measured: `make bench-web`.\n"
    rows = [["", "measured", "asked", ""]]
    native = record["native_hops"] / 1e6
    for name, of in record["browsers"].items():
        for recording, what in (("plain", ""), ("recording", ", recording packets")):
            share = of[recording] / record["native_hops"]
            speed = f"{of[recording] / 1e6:.2f} of {native:.2f} M packet-hops a second: {share:.0%}"
            rows.append([f"speed in {name}{what}", speed, f"at least {SPEED_LEAST:.0%}", _holds(share >= SPEED_LEAST)])
    for name, of in record["browsers"].items():
        first = f"{of['first_s']:.2f} s, with its report {of['report_s']:.2f} s"
        fast = _holds(of["first_s"] <= FIRST_MOST_S)
        rows.append([f"first scene in {name}", first, f"at most {FIRST_MOST_S:.0f} s", fast])
    weight = sum(record["weight"].values())
    light = _holds(weight <= WEIGHT_MOST)
    rows.append(["weight by brotli", f"{weight / 1e6:.2f} MB", f"at most {WEIGHT_MOST / 1e6:.0f} MB", light])
    table = "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * 4, *rows[1:]])
    parts = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in record["weight"].items())
    about = (
        f"`make bench-web` at commit {record['commit']} on {record['date']}, on {record['cores']} cores of "
        f"{record['cpu']}, while {record['load']:.1f} other programs wanted them. Speed: examples/{SCENARIO}.toml "
        f"({record['packet_hops']:,} packet-hops, digest {record['digest']} everywhere) on one thread, the best of "
        f"{ROUNDS} runs in turn. First scene: from the beginning of the navigation, the best of {ROUNDS}; the page "
        f"comes from disk. Weight: {parts}. Browsers: {', '.join(of['version'] for of in record['browsers'].values())}."
    )
    return f"{table}\n\n{textwrap.fill(about, 120, break_long_words=False, break_on_hyphens=False)}\n"


def _holds(it_does: bool) -> str:
    return "holds" if it_does else "missed"


def measured() -> dict[str, Any]:
    """All numbers, with where they come from."""
    if not (ROOT / ".venv" / ".release").exists() or not (BUILT / "index.html").exists():
        sys.exit("the optimised module or the page is not built: make bench-web")
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import browser

    load = os.getloadavg()[0]
    native, digests, hops = 0.0, set(), 0
    kinds = {"Chromium": (browser.CHROMIUM, browser.look_at), "Firefox": (browser.FIREFOX, browser.look_at_in_firefox)}
    browsers: dict[str, dict[str, Any]] = {}
    for _ in range(ROUNDS):
        ran = _native()
        native, hops = max(native, ran["packet_hops"] / ran["wall_seconds"]), ran["packet_hops"]
        digests.add(ran["digest"])
        for name, (program, look_at) in kinds.items():
            if program is None:
                sys.exit(f"{name} is not installed; on Debian: apt install chromium firefox-esr")
            found = look_at(BUILT / "index.html", _in_browser)
            digests |= set(found.pop("digests"))
            best = browsers.setdefault(name, {"version": _version(program), **found})
            for key, value in found.items():
                best[key] = min(best[key], value) if key.endswith("_s") else max(best[key], value)
    if len(digests) != 1:
        sys.exit(f"the digests differ: {', '.join(sorted(digests))}")
    return {
        "commit": _said("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"),
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "load": load,
        "packet_hops": hops,
        "digest": digests.pop(),
        "native_hops": native,
        "browsers": browsers,
        "weight": _weight(),
    }


def _native() -> dict[str, Any]:
    script = (
        "import json, sys, clearway as cw; "
        "info = cw.run(cw.Scenario.load(sys.argv[1]), threads=1, progress=False).info; "
        "print(json.dumps({key: info[key] for key in ('packet_hops', 'wall_seconds', 'digest')}))"
    )
    said = _said(sys.executable, "-c", script, str(ROOT / "examples" / f"{SCENARIO}.toml"))
    found: dict[str, Any] = json.loads(said)
    return found


async def _in_browser(page: Any) -> dict[str, Any]:
    """When the first scene was done, and the packet-hops a second of the scenario."""
    mark = "(performance.getEntriesByName('{}')[0]?.startTime ?? 0)"
    drawn = await page.until(mark.format("clearway-report"))
    found = {"first_s": await page.evaluate(mark.format("clearway-result")) / 1e3, "report_s": drawn / 1e3}
    digests = []
    for record in ("false", "true"):
        await page.evaluate(f"document.querySelector('[data-id=\"{SCENARIO}\"]').click()")
        await page.evaluate(f"document.querySelector('#record').checked = {record}")
        await page.until("!document.querySelector('#run').disabled")
        await page.evaluate("document.querySelector('#run').click()")
        await page.until("document.querySelector('#status').textContent.startsWith('Done')")
        digests.append(await page.evaluate("document.querySelector('#digest').textContent"))
        hops = await page.evaluate("document.querySelector('#status').dataset.hops")
        found["recording" if record == "true" else "plain"] = float(hops)
    return found | {"digests": digests}


def _weight() -> dict[str, int]:
    sizes = _said("node", "-e", BROTLI, *(str(BUILT / name) for name in LOADED)).split()
    return dict(zip(LOADED, map(int, sizes), strict=True))


def _version(program: str) -> str:
    return re.sub(r" built on.*", "", _said(program, "--version"))


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _cpu() -> str:
    said = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return said[1] if said else platform.processor()


def main() -> int:
    record = measured()
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
