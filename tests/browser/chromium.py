"""Chromium: the one that is installed, without a network of its own and with nothing kept from run to run."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Error, async_playwright

from components import Components

HEADED = "NIGHTHERD_HEADED"
"""Set and not empty: the browser has a window, and takes its time."""
SLOWER_MS = 250
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    # No test reaches another machine, and `rebound` is a name that somebody pointed here.
    "--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


@asynccontextmanager
async def running_chromium(components: Components) -> AsyncIterator[Browser]:
    """The browser, with a new profile; absent, or unable to start, it ends the test by the rule for components."""
    program, is_headed = components.program("chromium"), bool(os.environ.get(HEADED))
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=program,
                args=FLAGS,
                chromium_sandbox=os.geteuid() != 0,
                headless=not is_headed,
                slow_mo=SLOWER_MS if is_headed else 0,
            )
        except Error as error:
            components.absent("a Chromium that starts", error.message.splitlines()[0])
        try:
            yield browser
        finally:
            await browser.close()
