import { expect, it } from "vitest";

import { diffLines, parseUnified } from "./diff";

const text = (lines: string[]) => lines.map((line) => `${line}\n`).join("");
const shown = (before: string[], after: string[], context?: number) =>
  diffLines(text(before), text(after), context).hunks.map((hunk) =>
    hunk.lines.map((line) => ({ same: " ", added: "+", removed: "-" })[line.kind] + line.text),
  );

it("finds the fewest changed lines", () => {
  expect(shown(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"])).toEqual([
    [" a", "-b", "+x", " c", " d", "+e"],
  ]);
});

it("numbers lines in both texts", () => {
  const lines = diffLines("a\nb\nc\n", "a\nc\nd\n").hunks[0]?.lines;
  expect(lines?.map((line) => [line.text, line.before, line.after])).toEqual([
    ["a", 1, 1],
    ["b", 2, null],
    ["c", 3, 2],
    ["d", null, 3],
  ]);
});

it("splits changes that are far apart into hunks with context", () => {
  const before = Array.from({ length: 40 }, (_, place) => `line ${place}`);
  const after = before.with(5, "changed 5").with(30, "changed 30");
  const hunks = shown(before, after);
  expect(hunks).toHaveLength(2);
  expect(hunks[0]).toHaveLength(8);
});

it("gives both texts back for random edits", () => {
  let seed = 7;
  const random = (most: number) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 200; round += 1) {
    const before = Array.from({ length: random(12) }, () => "abc"[random(3)] ?? "");
    const after = Array.from({ length: random(12) }, () => "abc"[random(3)] ?? "");
    const lines = diffLines(text(before), text(after), 100).hunks.flatMap((hunk) => hunk.lines);
    if (before.join() === after.join()) continue;
    expect(lines.filter((line) => line.kind !== "added").map((line) => line.text)).toEqual(before);
    expect(lines.filter((line) => line.kind !== "removed").map((line) => line.text)).toEqual(after);
  }
});

it("shows a new file as added and an equal one as nothing", () => {
  expect(diffLines("", "a\nb\n")).toMatchObject({ added: 2, removed: 0 });
  expect(diffLines("a\n", "a\n").hunks).toEqual([]);
});

it("bounds the work for texts that have nothing in common", () => {
  const many = (word: string) => Array.from({ length: 5_000 }, (_, place) => `${word} ${place}`);
  const diff = diffLines(text(many("old")), text(many("new")));
  expect([diff.added, diff.removed]).toEqual([5_000, 5_000]);
});

it("reads the lines of a unified diff", () => {
  const lines = parseUnified("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n");
  expect(lines.map((line) => line.kind)).toEqual(["same", "same", "same", "removed", "added"]);
});
