// @vitest-environment jsdom
import { act, createElement, useEffect } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, it } from "vitest";

import { useKeyboard, useRegisteredShortcuts, useShortcuts, type Shortcut } from "./shortcuts";

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

let root: Root;
let done: string[];
let listed: string[];

function shortcut(keys: string, label = keys): Shortcut {
  return { keys, label, group: "Test", run: () => done.push(label) };
}

function Keys({ keys }: { keys: readonly Shortcut[] }) {
  useShortcuts(keys);
  return null;
}

function Page() {
  useKeyboard();
  const labels = useRegisteredShortcuts().map(({ label }) => label);
  useEffect(() => {
    listed = labels;
  });
  return null;
}

function show(...groups: Shortcut[][]): void {
  const keys = groups.map((group, place) => createElement(Keys, { key: place, keys: group }));
  act(() => root.render([createElement(Page, { key: "page" }), ...keys]));
}

function press(key: string, target: EventTarget = document.body, more: KeyboardEventInit = {}) {
  target.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }),
  );
}

beforeEach(() => {
  document.body.innerHTML = "<div></div><input><dialog><button>in</button></dialog>";
  root = createRoot(document.querySelector("div") ?? document.body);
  done = [];
});
afterEach(() => act(() => root.unmount()));

it("runs single keys and sequences; a sequence comes before a key of its own", () => {
  show([shortcut("g h"), shortcut("g c"), shortcut("c"), shortcut("?")]);
  for (const key of ["c", "g", "c", "g", "h", "?", "g", "x", "c"]) press(key);
  expect(done).toEqual(["c", "g c", "g h", "?", "c"]);
});

it("leaves keys to fields and windows, but not those with Control or Command", () => {
  show([shortcut("c"), shortcut("mod+k")]);
  const [field, dialog] = [document.querySelector("input"), document.querySelector("dialog")];
  if (field === null || dialog === null) throw new Error("they are there");
  const pressAll = (target: EventTarget) => {
    press("c", target);
    press("K", target, { ctrlKey: true });
    press("k", target, { metaKey: true });
  };
  pressAll(field);
  press("c", document.body, { altKey: true });
  dialog.open = true;
  pressAll(dialog.querySelector("button") ?? dialog);
  expect(done).toEqual(["mod+k", "mod+k", "mod+k", "mod+k"]);
});

it("leaves keys to a window also while the focus is nowhere", () => {
  show([shortcut("Escape"), shortcut("c")]);
  document.querySelector("dialog")?.setAttribute("open", "");
  press("c");
  press("Escape");
  expect(done).toEqual([]);
});

it("lets later components come first and gives keys back when they leave", () => {
  show([shortcut("j", "page")], [shortcut("j", "list")]);
  press("j");
  show([shortcut("j", "page")]);
  press("j");
  expect(done).toEqual(["list", "page"]);
  expect(listed).toEqual(["page"]);
});

it("runs what a key means now", () => {
  show([shortcut("j", "before")]);
  show([shortcut("j", "after")]);
  press("j");
  expect(done).toEqual(["after"]);
});
