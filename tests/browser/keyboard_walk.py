"""A walk through a page with the keyboard: what it comes to, what is wrong there, and what only a mouse reaches."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Locator, Page, expect

from browser.accessibility import AXE

MOST_STOPS = 300
"""A page that has more is none that a test made: the keyboard is trapped."""
SPARE = 10
"""More steps than forward: rows of a long list are made on the way back."""
ARROWS = ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "Home", "End")
SCRIPT = """
() => {
  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0'], " +
    "[role=button], [role=link], [role=checkbox], [role=option], [role=treeitem]";
  const POINTER = ["onClick", "onDoubleClick", "onMouseDown", "onPointerDown"];
  const state = { stops: [], reached: new Set(), round: new Set(), heard: new Set(), before: null };
  window.keyboardWalk = state;
  addEventListener("focusin", (event) => state.heard.add(event.target));

  // React keeps the handlers of an element beside it: also what is clicked and looks like no control is known.
  const propsOf = (element) => element[Object.keys(element).find((key) => key.startsWith("__reactProps$"))] ?? {};
  const isClicked = (element) => POINTER.some((name) => typeof propsOf(element)[name] === "function");
  const area = () => [...document.querySelectorAll("dialog:modal")].at(-1) ?? document.body;
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const nameOf = (element) => {
    const text = element.getAttribute("aria-label") ?? element.innerText ?? element.value ?? "";
    return `${element.tagName.toLowerCase()} "${text.trim().replaceAll(/\\s+/g, " ").slice(0, 40)}"`;
  };

  /** The part of the window in which the element could be seen: what its scroll areas and clips leave of it. */
  const clipOf = (element) => {
    let clip = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    for (let up = element.parentElement; up !== null; up = up.parentElement) {
      if (up.matches("dialog")) return clip;
      if (getComputedStyle(up).overflow === "visible" || up === document.body) continue;
      const box = up.getBoundingClientRect();
      clip = {
        left: Math.max(clip.left, box.left), top: Math.max(clip.top, box.top),
        right: Math.min(clip.right, box.right), bottom: Math.min(clip.bottom, box.bottom),
      };
    }
    return clip;
  };
  /** How many of the four sides of its ring are seen. */
  const sidesSeen = (element) => {
    const style = getComputedStyle(element);
    const width = parseFloat(style.outlineWidth);
    if (style.outlineStyle === "none" || width === 0) return 0;
    const out = parseFloat(style.outlineOffset), box = element.getBoundingClientRect(), clip = clipOf(element);
    const reaches = (from, to, low, high) => Math.min(to, high) - Math.max(from, low) >= 1;
    const isAcross = reaches(box.left, box.right, clip.left, clip.right);
    const isAlong = reaches(box.top, box.bottom, clip.top, clip.bottom);
    return [
      isAcross && reaches(box.top - out - width, box.top - out, clip.top, clip.bottom),
      isAcross && reaches(box.bottom + out, box.bottom + out + width, clip.top, clip.bottom),
      isAlong && reaches(box.left - out - width, box.left - out, clip.left, clip.right),
      isAlong && reaches(box.right + out, box.right + out + width, clip.left, clip.right),
    ].filter(Boolean).length;
  };
  const opacityOf = (element) => {
    let product = 1;
    for (let up = element; up !== null; up = up.parentElement) product *= Number(getComputedStyle(up).opacity);
    return product;
  };
  const isCovered = (element) => {
    const box = element.getBoundingClientRect(), clip = clipOf(element);
    const x = (Math.max(box.left, clip.left) + Math.min(box.right, clip.right)) / 2;
    const y = (Math.max(box.top, clip.top) + Math.min(box.bottom, clip.bottom)) / 2;
    const top = document.elementFromPoint(x, y);
    return top === null || !(element.contains(top) || top.contains(element) || top.closest("label")?.contains(element));
  };

  /** Rows of a long list are made anew each time they are seen: there, what an element is called is what it is. */
  const keyOf = (element) => {
    const row = element.closest("[role=log] article");
    return row === null ? element : `${row.id} ${nameOf(element)}`;
  };
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

  /** What is wrong with the element that has the focus, once for each. */
  state.look = async (isMoved) => {
    // They are made when the view has moved, and rows get the focus then: in less than a person sees.
    if (isMoved || document.activeElement?.closest("[role=log] article")) await frame();
    const element = document.activeElement;
    if (element === null || element === document.body || !area().contains(element)) {
      state.before = null;
      return { isNew: false, isAgain: false, problems: [] };
    }
    const isNew = !state.reached.has(keyOf(element));
    const isAgain = state.round.has(keyOf(element)) && element !== state.before;
    state.round.add(keyOf(element));
    state.before = element;
    const problems = [];
    if (isNew) {
      state.stops.push(element);
      state.reached.add(keyOf(element));
      if (sidesSeen(element) < 2) problems.push(`${nameOf(element)} shows no focus`);
      if (opacityOf(element) < 0.5) problems.push(`${nameOf(element)} has the focus and is not seen`);
      if (isCovered(element)) problems.push(`${nameOf(element)} has the focus and is covered`);
    }
    return { isNew, isAgain, problems };
  };

  /** What a mouse can use and the walk has not come to. Tabs are one stop: arrow keys go from one to the next. */
  state.missing = () => {
    const stands = (element) =>
      // A frame around what is reached, and a mark in a row that is: the same is done there. With a line of a graph
      // nothing is done, but its library listens.
      element.matches(".react-flow__edge") || state.stops.some((stop) => element.contains(stop)) ||
      (element.closest("[aria-hidden=true]") !== null && state.stops.some((stop) => stop.contains(element)));
    return [...area().querySelectorAll("*")].filter(
      (element) =>
        (element.matches(CONTROLS) || isClicked(element)) &&
        isShown(element) && !element.matches(":disabled, [role=tab], [role=option]") &&
        element.closest("[inert]") === null && !state.reached.has(keyOf(element)) && !stands(element),
    );
  };
  state.missingNames = () => state.missing().map(nameOf);

  /** The stops from which arrow keys may lead to what is missing: those beside it. */
  state.beside = () => {
    const starts = new Set();
    for (const element of state.missing()) {
      // There, arrow keys scroll; each row is a stop.
      if (element.closest("[role=log]") !== null) continue;
      for (let up = element.parentElement; up !== null && up !== area(); up = up.parentElement) {
        const inside = state.stops.findIndex((stop) => up.contains(stop));
        if (inside >= 0) { starts.add(inside); break; }
      }
    }
    return [...starts];
  };

  state.nameless = () => {
    axe.setup(document.documentElement);
    try {
      return state.stops
        .filter((stop) => stop.isConnected && axe.commons.text.accessibleText(stop).trim() === "")
        .map((stop) => `${nameOf(stop)} has no name: ${stop.outerHTML.slice(0, 80)}`);
    } finally {
      axe.teardown();
    }
  };
}
"""


async def check_by_keyboard(page: Page) -> None:
    """Go through the page, or the window that is open over it, and back: `AssertionError` for what is wrong."""
    problems = await _walk(page)
    assert problems == [], "\n".join(["by keyboard:", *problems])


async def _walk(page: Page) -> list[str]:
    await page.evaluate(SCRIPT)
    problems, count = await _tab_through(page)
    if not await _comes_back(page, count):
        problems.append("Shift+Tab does not come back to the beginning")
    problems += await _move_within(page)
    # What came to the page meanwhile is reached by going through it once more.
    known = 0
    while known < (known := await page.evaluate("() => keyboardWalk.stops.length")):
        if not await page.evaluate("() => keyboardWalk.missing().length"):
            break
        problems += (await _tab_through(page))[0]
        problems += await _move_within(page)
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(AXE)
    problems += await page.evaluate("() => keyboardWalk.nameless()")
    missing = await page.evaluate("() => keyboardWalk.missingNames()")
    return [*problems, *(f"{name} is not reached" for name in missing)]


async def _tab_through(page: Page) -> tuple[list[str], int]:
    """Go round once; what is wrong, and how many steps it took."""
    problems: list[str] = []
    await page.evaluate("() => keyboardWalk.round.clear()")
    for count in range(1, MOST_STOPS):
        await page.keyboard.press("Tab")
        seen = await _look(page)
        problems += seen["problems"]
        if seen["isAgain"]:
            return problems, count
    return [*problems, "the Tab key is trapped"], 0


async def _comes_back(page: Page, count: int) -> bool:
    """Whether the way back, which is about as long, leads to where the walk began."""
    await page.evaluate("() => keyboardWalk.heard.clear()")
    for _ in range(3):
        for _ in range(count + SPARE):
            await page.keyboard.press("Shift+Tab")
        if await page.evaluate("() => keyboardWalk.heard.has(keyboardWalk.stops[0])"):
            return True
    return False


async def _move_within(page: Page) -> list[str]:
    """Where one of several is a stop, arrow keys lead to the others."""
    problems: list[str] = []
    tried: set[int] = set()
    while starts := set(await page.evaluate("() => keyboardWalk.beside()")) - tried:
        for start in starts:
            tried.add(start)
            for key in ARROWS:
                await page.evaluate("(at) => keyboardWalk.stops[at].focus()", start)
                seen: dict[str, Any] = {"isNew": True}
                while seen["isNew"]:
                    await page.keyboard.press(key)
                    seen = await _look(page, is_moved=True)
                    problems += seen["problems"]
                    if seen["isNew"]:
                        problems += await _look_before(page)
    return problems


async def _look_before(page: Page) -> list[str]:
    """What belongs to it may stand before it, as the box that selects a row."""
    await page.keyboard.press("Shift+Tab")
    problems: list[str] = (await _look(page))["problems"]
    await page.keyboard.press("Tab")
    return problems


async def _look(page: Page, *, is_moved: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = await page.evaluate("(moved) => keyboardWalk.look(moved)", is_moved)
    return found


async def tab_to(page: Page, control: Locator) -> None:
    """Press the Tab key until the control has the focus."""
    await expect(control).to_be_enabled()
    for _ in range(MOST_STOPS):
        if await control.evaluate("(element) => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError("the Tab key does not come to it")


async def press(page: Page, control: Locator, key: str = "Enter") -> None:
    """Go to a control with the Tab key and use it."""
    await tab_to(page, control)
    await page.keyboard.press(key)
