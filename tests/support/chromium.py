"""Headless Chromium for tests that press keys and wait: its debugging protocol over two pipes, without a library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 300.0  # seconds for anything to happen
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}


class Browser:
    """One page. `complaints` are what it wrote to its console and what it threw."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._rest, self._number = read, write, b"", 0
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser, all its processes."""
        self._session = None
        self.call("Browser.close")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._read], [], [], PATIENCE)[0], "Chromium says nothing"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "Chromium has ended"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, content: Mapping[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(str([each.get("value") for each in content["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(content["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{content['entry']['text']} {content['entry'].get('url', '')}")

    def size(self, width: int, height: int = 900, *, dark: bool = False, still: bool = True) -> None:
        """Give the page a window of this size, and the reader's preferences."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        preferences = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if still else "no-preference",
        }
        features = [{"name": name, "value": value} for name, value in preferences.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def go(self, address: str) -> None:
        """Open an address."""
        self.call("Page.navigate", url=address)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until the expression is true in the page."""
        last = time.monotonic() + PATIENCE
        while not self.value(f"Boolean(document.body && ({expression}))"):
            assert time.monotonic() < last, f"never true: {expression}\n{self.text()}"
            time.sleep(0.05)

    def text(self) -> str:
        """The text that a reader sees."""
        return str(self.value("document.body.innerText"))

    def press(self, key: str, times: int = 1) -> None:
        """Press a key."""
        typed = {"text": "\r"} if key == "Enter" else {}
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                what = typed if kind == "keyDown" else {}
                self.call(
                    "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key], **what
                )

    def names(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader meets."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"] and "role" in node
        ]

    def shoot(self, picture: Path) -> None:
        """A picture of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        picture.write_bytes(base64.b64decode(data))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile lies in the folder."""
    here_in, there_out = os.pipe()
    there_in, here_out = os.pipe()
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe"]
    pipes = f'exec "$0" "$@" 3<&{there_in} 4>&{there_out}'  # the protocol's numbers
    process = subprocess.Popen(
        ["bash", "-c", pipes, *command], pass_fds=(there_in, there_out), stderr=subprocess.DEVNULL
    )
    os.close(there_in)
    os.close(there_out)
    try:
        it = Browser(here_in, here_out)
        yield it
        it.close()
    finally:
        process.terminate()
        process.wait()
        os.close(here_in)
        os.close(here_out)
