"""What axe-core finds wrong with a page for people who see, hear or move otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from playwright.async_api import Page

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
# A page loads no film or sound, and its style sheets are read where they are.
OPTIONS = {"resultTypes": ["violations"], "preload": False, "iframes": False}


async def axe_violations(
    page: Page, within: str = "html", *, rules: Sequence[str] = ()
) -> list[str]:
    """Each violation as one line: its rule, how grave it is, and the elements. Of these rules, or of all."""
    options = {**OPTIONS, **({"runOnly": list(rules)} if rules else {})}
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(AXE)
    answer: dict[str, Any] = await page.evaluate(
        "([within, options]) => axe.run(within, options)", [within, options]
    )
    return [
        f"{one['id']} ({one['impact']}): {one['help']}; {_elements(one)}"
        for one in answer["violations"]
    ]


def _elements(violation: dict[str, Any]) -> str:
    return " | ".join(f"{' '.join(map(str, node['target']))}" for node in violation["nodes"])
