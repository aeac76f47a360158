"""What every page has to fulfil: no violation that axe finds, in light and dark, and no sideways scrolling on a phone."""

from __future__ import annotations

from playwright.async_api import Page, expect

from browser.accessibility import axe_violations

COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe that look at colours."""


async def is_within(page: Page) -> bool:
    """Whether neither the page nor its main part is wider than the window."""
    return bool(
        await page.evaluate(
            "() => [document.documentElement, document.querySelector('main')]"
            ".every((element) => element.scrollWidth <= Math.ceil(element.clientWidth))"
        )
    )


async def violations(page: Page, paths: dict[str, str]) -> dict[str, list[str]]:
    """By path and colours, what axe finds wrong with each page that has this heading, or that it is too wide."""
    found: dict[str, list[str]] = {}
    for path, heading in paths.items():
        if page.url != path:
            await page.goto(path)
        await expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
        await expect(page.get_by_text("loading …")).to_have_count(0)
        if wrong := await axe_violations(page):
            found[path] = wrong
        # The rest of the page is the same in the other colours.
        is_dark = await page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
        await page.emulate_media(color_scheme="light" if is_dark else "dark")
        if wrong := await axe_violations(page, rules=COLOURS):
            found[f"{path} in other colours"] = wrong
        if not await is_within(page):
            found[f"{path} width"] = ["it scrolls sideways"]
    return found
