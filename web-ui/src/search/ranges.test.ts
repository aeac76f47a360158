import { expect, it } from "vitest";

import { piecesOf } from "./ranges";

it("marks what matched and keeps the rest", () => {
  expect(piecesOf("the gate is open", [[4, 8]])).toEqual([
    { text: "the ", isHit: false },
    { text: "gate", isHit: true },
    { text: " is open", isHit: false },
  ]);
});

it("counts signs beyond the basic plane as one", () => {
  expect(piecesOf("🐄🐄 herd", [[3, 7]])).toEqual([
    { text: "🐄🐄 ", isHit: false },
    { text: "herd", isHit: true },
  ]);
});

it("never loses or doubles text where ranges overlap or reach too far", () => {
  const pieces = piecesOf("abcdef", [
    [1, 4],
    [2, 99],
  ]);
  expect(pieces.map((piece) => piece.text).join("")).toBe("abcdef");
});
