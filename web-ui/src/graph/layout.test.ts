import { expect, it } from "vitest";

import { layersOf } from "./layers";
import { layoutOf, type Box, type Layout } from "./layout";
import { nextBox } from "./moves";
import type { Phase } from "./phase";

function phase(path: string, dependsOn: string[] = [], inside: Phase[] = []): Phase {
  return {
    path,
    name: path,
    kind: "agent",
    does: null,
    status: "pending",
    isLost: false,
    note: null,
    seconds: null,
    growsFrom: null,
    cost: null,
    dependsOn,
    isGroup: inside.length > 0,
    counts: null,
    inside,
  };
}

function box(layout: Layout, path: string): Box {
  const found = layout.boxes.find((one) => one.phase.path === path);
  if (found === undefined) throw new Error(`no box for ${path}`);
  return found;
}

const overlap = (one: Box, other: Box) =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

it("puts a phase below everything that it waits for", () => {
  const layout = layoutOf([
    phase("plan"),
    phase("code", ["plan"]),
    phase("docs", ["plan"]),
    phase("merge", ["code", "docs"]),
  ]);
  const y = (path: string) => box(layout, path).y;
  expect(y("plan")).toBeLessThan(y("code"));
  expect(y("code")).toBe(y("docs"));
  expect(y("docs")).toBeLessThan(y("merge"));
  expect(box(layout, "code").x).not.toBe(box(layout, "docs").x);
});

it("puts phases that wait for nothing beside each other", () => {
  const layout = layoutOf([phase("one"), phase("other")]);
  expect(box(layout, "one").y).toBe(box(layout, "other").y);
  expect(overlap(box(layout, "one"), box(layout, "other"))).toBe(false);
});

it("leads a way over several layers past what stands between", () => {
  const layout = layoutOf([phase("a"), phase("b", ["a"]), phase("c", ["a", "b"])]);
  const way = layout.lines.find(({ from, to }) => from === "a" && to === "c");
  const between = box(layout, "b");
  const passed = way?.points.slice(1, -1) ?? [];
  expect(passed).toHaveLength(2);
  for (const { x } of passed) {
    expect(x < between.x || x > between.x + between.width).toBe(true);
  }
});

it("draws no box over another, whatever is in groups", () => {
  const inner = ["g/x", "g/y", "g/z"].map((path, at) => phase(path, at > 0 ? ["g/x"] : []));
  const layout = layoutOf([phase("a"), phase("g", ["a"], inner), phase("b", ["a"])]);
  const group = box(layout, "g");
  for (const path of ["g/x", "g/y", "g/z"]) {
    const one = box(layout, path);
    expect(one.parent).toBe("g");
    expect(one.x).toBeGreaterThanOrEqual(group.x);
    expect(one.x + one.width).toBeLessThanOrEqual(group.x + group.width);
    expect(one.y + one.height).toBeLessThanOrEqual(group.y + group.height);
  }
  expect(overlap(group, box(layout, "b"))).toBe(false);
  expect(layout.width).toBeGreaterThanOrEqual(group.width);
});

it("survives phases that wait for each other, and names that do not exist", () => {
  const layout = layoutOf([phase("a", ["b", "nobody"]), phase("b", ["a"])]);
  expect(layout.boxes).toHaveLength(2);
  expect(overlap(box(layout, "a"), box(layout, "b"))).toBe(false);
});

it("orders a layer so that ways do not cross", () => {
  const ids = ["a", "b", "of b", "of a"];
  const { layers } = layersOf(ids, [
    { from: "a", to: "of a" },
    { from: "b", to: "of b" },
  ]);
  expect(layers.map((layer) => layer.map(({ id }) => id))).toEqual([
    ["a", "b"],
    ["of a", "of b"],
  ]);
});

it("lays out 500 phases", () => {
  const phases = Array.from({ length: 500 }, (_, at) =>
    phase(`p${at}`, at < 5 ? [] : [`p${at - 5}`, `p${at - 3}`]),
  );
  const { boxes, lines } = layoutOf(phases);
  expect(boxes).toHaveLength(500);
  expect(lines).toHaveLength(990);
});

it("moves to the box that lies in the direction of the key", () => {
  const layout = layoutOf([
    phase("top"),
    phase("left", ["top"]),
    phase("right", ["top"]),
    phase("end", ["left", "right"]),
  ]);
  const go = (from: string, direction: "up" | "down" | "left" | "right") =>
    nextBox(layout.boxes, from, direction);
  expect(go("left", "right")).toBe("right");
  expect(go("right", "left")).toBe("left");
  expect(go("left", "down")).toBe("end");
  expect(go("end", "down")).toBeNull();
  expect(go("left", "up")).toBe("top");
});
