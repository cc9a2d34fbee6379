"""Headless Chromium, controlled through the DevTools protocol, for tests of the visible content of pages and of the
effect of keys."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
)
MAX_START_SECONDS = 60.0
"""Maximum time in seconds for the start of a browser, even on a busy machine."""

LOW_CONTRAST_TEXTS = """(() => {
  const numbers = color => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = color => color.slice(0, 3).map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const ground = node => {
    if (!node) return [255, 255, 255, 1];
    const color = numbers(getComputedStyle(node).backgroundColor);
    return color[3] === 1 ? color : over(color, ground(node.parentElement)); };
  const found = new Set();
  for (const node of document.querySelectorAll("body *")) {
    if (!node.offsetParent || getComputedStyle(node).opacity === '0') continue;
    if (![...node.childNodes].some(c => c.nodeType === 3 && c.data.trim())) continue;
    const below = ground(node), ink = over(numbers(getComputedStyle(node).color), below);
    const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.add(`${node.tagName}.${node.className} ${node.textContent.slice(0, 30)}`);
  }
  return [...found];
})()"""
"""JavaScript that returns the visible texts whose contrast is below 4.5, the minimum of WCAG 2 AA."""


class Page:
    """An open page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self.errors: list[str] = []
        """Errors that the browser has reported since the page was opened, such as uncaught exceptions and requests that
        the page's Content-Security-Policy forbids."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json()
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(message["params"]["exceptionDetails"]))
            if message.get("method") == "Log.entryAdded":
                self.errors.append(message["params"]["entry"]["text"])
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    async def open(self, path: Path, fragment: str = "", width: int = 1280, height: int = 900) -> None:
        """Open a file in a window of the given size in CSS pixels."""
        self.errors.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.call("Emulation.setDeviceMetricsOverride", **size)
        await self.call("Page.navigate", url="about:blank")
        await self.call("Page.navigate", url=path.as_uri() + fragment)
        await self.value(
            "new Promise(done => document.readyState == 'complete' ? done() : addEventListener('load', done))"
        )

    async def value(self, expression: str) -> Any:
        """Evaluate a JavaScript expression, await its result if it is a promise, and return the value."""
        reply = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def press(self, *keys: str) -> None:
        """Press keys one after the other: `Enter`, `Escape`, or characters."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if key not in codes else "")
            event = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)} | ({"text": text} if text else {})
            await self.call("Input.dispatchKeyEvent", type="keyDown", **event)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def scheme(self, name: str) -> None:
        """Emulate a user who prefers a color scheme: `light` or `dark`."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    async def picture(self) -> bytes:
        """Return a PNG screenshot of the window."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Start a browser with an empty profile and yield its page. Kill the browser at the end of the block."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            *(PROGRAM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            port = await asyncio.wait_for(_read_port(process), MAX_START_SECONDS)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    [target] = [candidate for candidate in await answer.json() if candidate["type"] == "page"]
                async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Page", "Runtime", "Log"):
                        await page.call(f"{domain}.enable")
                    yield page
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _read_port(process: asyncio.subprocess.Process) -> int:
    """Return the DevTools port that a browser reports on standard error."""
    assert process.stderr is not None
    async for line in process.stderr:
        if match := re.search(rb"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            return int(match[1])
    raise RuntimeError("the browser has ended")
