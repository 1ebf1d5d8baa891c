"""A page in a headless Chromium or Firefox, without network: what its console says, and what it answers to a script."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

# Keys that tests press: Chromium's code and number, and what they write.
KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "End": ("End", 35, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    " ": ("Space", 32, " "),
}
# As WebDriver names them (https://w3c.github.io/webdriver/#keyboard-actions).
_FIREFOX_KEYS = {"Tab": "\ue004", "Enter": "\ue006", "End": "\ue010", "ArrowDown": "\ue015"}
_CONTROL = "\ue009"

FIREFOX = next((found for name in ("firefox-esr", "firefox") if (found := shutil.which(name))), None)
# Nothing of its own to ask for, and no way to ask.
_FIREFOX_SET = {"network.proxy.type": 1, "network.proxy.socks": "127.0.0.1", "network.proxy.socks_port": 9}


class Page:
    """An open page, asked by Chromium's debugging protocol."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self._socket, self._number = socket, 0
        self.complaints: list[str] = []
        # The addresses that the page has loaded or tried to load.
        self.asked: list[str] = []

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command; what the page complained of until then is kept."""
        self._number += 1
        await self._socket.write_message(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            said = json.loads(await self._socket.read_message() or "null")
            if said is None:
                raise RuntimeError("the browser is gone")
            if said.get("id") == self._number:
                assert "error" not in said, said
                answer: dict[str, Any] = said["result"]
                return answer
            self._note(said)

    def _note(self, said: dict[str, Any]) -> None:
        if said.get("method") == "Network.requestWillBeSent":
            self.asked.append(said["params"]["request"]["url"])
        if said.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["params"]["exceptionDetails"])[:500])
        if said.get("method") == "Runtime.consoleAPICalled" and said["params"]["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(said["params"]["args"])[:500])
        if said.get("method") == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
            self.complaints.append(said["params"]["entry"]["text"])

    async def evaluate(self, script: str) -> Any:
        """The value of a script, which may await."""
        answer = await self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, script: str, seconds: float = 60) -> Any:
        """The value of a script as soon as it is true."""
        for _ in range(int(seconds * 10)):
            if value := await self.evaluate(script):
                return value
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{script} did not become true in {seconds} s; the page says {self.complaints}")

    async def settled(self, script: str) -> Any:
        """The value of a script once it stays the same: a chart that fits its range anew moves its points."""
        value = await self.until(script)
        while (later := await self._later(script)) != value:
            value = later
        return value

    async def _later(self, script: str) -> Any:
        await asyncio.sleep(0.3)
        return await self.until(script)

    async def press(self, key: str, control: bool = False) -> None:
        """Presses a key of `KEYS`, with Control if asked to."""
        code, number, text = KEYS[key]
        more: dict[str, Any] = {"code": code, "windowsVirtualKeyCode": number, "modifiers": 2 if control else 0}
        if text and not control:
            more["text"] = text
        for kind in ("keyDown" if "text" in more else "rawKeyDown", "keyUp"):
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, **more)

    async def write(self, text: str) -> None:
        """Writes a text where the focus is."""
        await self.ask("Input.insertText", text=text)

    async def small(self, width: int, height: int) -> None:
        """A phone with a screen of that size, in CSS pixels; the page is loaded again."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=True
        )
        await self.reload()

    async def reload(self) -> None:
        """Loads the page again."""
        await self.ask("Page.reload")
        await self._loaded()

    async def go(self, address: str) -> None:
        """Goes to another page."""
        await self.ask("Page.navigate", url=address)
        await self._loaded()

    async def _loaded(self) -> None:
        while True:
            said = json.loads(await self._socket.read_message() or "{}")
            self._note(said)
            if not said or said.get("method") == "Page.loadEventFired":
                return

    async def mouse(self, x: float, y: float, click: bool = False) -> None:
        """Moves the mouse, and clicks if asked to."""
        await self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def heap_bytes(self) -> int:
        """The memory of the page's scripts, nodes and arrays, after all that nothing refers to is gone."""
        # A page drops the layout of what it has shown between two frames, and its memory only then.
        for _ in range(8):
            for _ in range(2):
                await self.ask("HeapProfiler.collectGarbage")
            await self.ask("Runtime.getHeapUsage")
            await asyncio.sleep(0.4)
        used = await self.ask("Runtime.getHeapUsage")
        return int(used["usedSize"] + used["embedderHeapUsedSize"] + used["backingStorageSize"])

    async def printed(self) -> bytes:
        """The page as it prints, in PDF."""
        return base64.b64decode((await self.ask("Page.printToPDF", printBackground=True))["data"])

    async def picture(self, path: Path) -> None:
        """Writes what is to be seen as a PNG."""
        path.write_bytes(base64.b64decode((await self.ask("Page.captureScreenshot"))["data"]))


class FirefoxPage(Page):
    """The same, asked by WebDriver BiDi (https://w3c.github.io/webdriver-bidi), which Firefox speaks by itself."""

    context = ""

    def _note(self, said: dict[str, Any]) -> None:
        told = said.get("params", {})
        if said.get("method") == "network.beforeRequestSent":
            self.asked.append(told["request"]["url"])
        if said.get("method") == "log.entryAdded" and told["level"] in ("error", "warn"):
            self.complaints.append(str(told["text"])[:500])

    async def open(self, address: str) -> None:
        """Begins, and goes to an address."""
        await self.ask("session.new", capabilities={})
        await self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        # Not the first tab, which has no focus: keys would press no button there.
        self.context = (await self.ask("browsingContext.create", type="tab"))["context"]
        await self.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    async def evaluate(self, script: str) -> Any:
        """The value of an expression, which may be a promise."""
        answer = await self.ask(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({script})) ?? 'null')()",
            target={"context": self.context},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])

    async def _act(self, kind: str, *actions: dict[str, Any], **more: Any) -> None:
        sources = [{"type": kind, "id": kind, "actions": list(actions), **more}]
        await self.ask("input.performActions", context=self.context, actions=sources)

    async def press(self, key: str, control: bool = False) -> None:
        """Presses a key of `KEYS`, with Control if asked to."""
        held = [_CONTROL] if control else []
        pressed = [*held, _FIREFOX_KEYS.get(key, key)]
        down = [{"type": "keyDown", "value": one} for one in pressed]
        await self._act("key", *down, *({"type": "keyUp", "value": one} for one in reversed(pressed)))

    async def write(self, text: str) -> None:
        """Writes a text where the focus is."""
        for one in text:
            value = _FIREFOX_KEYS["Enter"] if one == "\n" else one
            await self._act("key", {"type": "keyDown", "value": value}, {"type": "keyUp", "value": value})

    async def small(self, width: int, height: int) -> None:
        """A screen of that size, in CSS pixels; the page is loaded again."""
        size = {"width": width, "height": height}
        await self.ask("browsingContext.setViewport", context=self.context, viewport=size, devicePixelRatio=2)
        await self.reload()

    async def reload(self) -> None:
        """Loads the page again."""
        await self.ask("browsingContext.reload", context=self.context, wait="complete")

    async def go(self, address: str) -> None:
        """Goes to another page."""
        await self.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    async def mouse(self, x: float, y: float, click: bool = False) -> None:
        """Moves the mouse, and clicks if asked to."""
        actions: list[dict[str, Any]] = [{"type": "pointerMove", "x": int(x), "y": int(y)}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self._act("pointer", *actions, parameters={"pointerType": "mouse"})

    async def picture(self, path: Path) -> None:
        """Writes what is to be seen as a PNG."""
        answer = await self.ask("browsingContext.captureScreenshot", context=self.context)
        path.write_bytes(base64.b64decode(answer["data"]))


def look_at_in_firefox(path: Path, then: Callable[[FirefoxPage], Awaitable[Any]], dark: bool = False) -> Any:
    """Opens a file in Firefox, where the reader prefers dark pages or light ones, and gives the page to `then`; what
    that returns."""
    assert FIREFOX is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        settings = {**_FIREFOX_SET, "layout.css.prefers-color-scheme.content-override": 0 if dark else 1}
        given = "".join(f"user_pref({json.dumps(key)}, {json.dumps(value)});\n" for key, value in settings.items())
        Path(profile, "user.js").write_text(given)
        words = [FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"]
        words.append("about:blank")
        firefox = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            assert firefox.stderr is not None
            lines = iter(firefox.stderr)
            address = next(found[0] for line in lines if (found := re.search(r"ws://[a-z0-9.]+:\d+", line)))
            return asyncio.run(_with_firefox(f"{address}/session", path, then))
        finally:
            firefox.kill()
            firefox.communicate()


async def _with_firefox(address: str, path: Path, then: Callable[[FirefoxPage], Awaitable[Any]]) -> Any:
    socket = await websocket_connect(address, max_message_size=2**27)
    try:
        page = FirefoxPage(socket)
        await page.open(path.resolve().as_uri())
        return await then(page)
    finally:
        socket.close()
        while await socket.read_message() is not None:
            pass


def look_at(path: Path, then: Callable[[Page], Awaitable[Any]], dark: bool = False) -> Any:
    """Opens a file in Chromium, where the reader prefers dark pages or light ones, and gives the page to `then`; what
    that returns."""
    assert CHROMIUM is not None
    options = [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", *options]
        words += [f"--user-data-dir={profile}", "--window-size=1200,1000", "--host-resolver-rules=MAP * ~NOTFOUND"]
        chromium = subprocess.Popen([*words, "about:blank"], stderr=subprocess.PIPE, text=True)
        try:
            assert chromium.stderr is not None
            lines = iter(chromium.stderr)
            port = next(found[1] for line in lines if (found := re.search(r"ws://127\.0\.0\.1:(\d+)/", line)))
            return asyncio.run(_with_page(int(port), path, then))
        finally:
            chromium.kill()
            chromium.communicate()


async def _with_page(port: int, path: Path, then: Callable[[Page], Awaitable[Any]]) -> Any:
    listed = f"http://127.0.0.1:{port}/json/list"
    pages = json.loads(urllib.request.urlopen(listed, timeout=30).read())
    address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
    socket = await websocket_connect(address, max_message_size=2**27)
    try:
        page = Page(socket)
        for domain in ("Runtime", "Log", "Page", "Network"):
            await page.ask(f"{domain}.enable")
        await page.ask("Page.navigate", url=path.resolve().as_uri())
        await page.until("document.readyState === 'complete'")
        return await then(page)
    finally:
        socket.close()
        while await socket.read_message() is not None:
            pass
