"""A fleet whose dashboard is a page of the test: for what the policies of the server do to any page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nightherd.model.access.role import Role
from nightherd.web.page import UI
from web.browser import named_token, new_code, on_port, origin_of
from web.web_world import World

PAGE = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>probe</title>
<link rel="icon" href="data:,"><script src="./assets/probe.js"></script></head><body>
{body}
</body></html>
"""


class ProbeSite:
    """The fleet, in this process, and its page."""

    def __init__(self, world: World, ui: Path) -> None:
        self.world = world
        self.origin = origin_of(world)
        self.url = self.origin
        self.shows_dashboard = ui == UI
        self._ui = ui

    def put(self, body: str = "", script: str = "") -> None:
        """From now on this is the page, at every path, and the script that it loads from the server."""
        (self._ui / "index.html").write_text(PAGE.format(body=body))
        (self._ui / "assets/probe.js").write_text(script)

    async def new_link(self, path: str = "/") -> str:
        """A page with a one-time login code in its fragment."""
        return f"{self.url}{path}#code={await new_code(self.world)}"

    async def new_token(self, name: str, role: Role) -> str:
        """A named token."""
        return await named_token(self.world, name, role)


@asynccontextmanager
async def serving_probe(directory: Path, **options: Any) -> AsyncIterator[ProbeSite]:
    """The site; `options` are those of `on_port`."""
    ui = directory / "ui"
    (ui / "assets").mkdir(parents=True)
    async with on_port(directory, ui=ui, **options) as world:
        site = ProbeSite(world, ui)
        site.put()
        yield site
