import { expect, it } from "vitest";

import { hasTerm, quoted, toggleTerm } from "./filter_text";

it("finds a value among several of its key", () => {
  expect(hasTerm("agent:coder status:failed,running words", "status", "running")).toBe(true);
  expect(hasTerm('STATUS:failed agent:"two words"', "agent", "two words")).toBe(true);
  expect(hasTerm("status:failed", "status", "fail")).toBe(false);
  expect(hasTerm("running", "status", "running")).toBe(false);
});

it("adds values to a key and takes them out again", () => {
  expect(toggleTerm("", "status", "failed")).toBe("status:failed");
  const two = toggleTerm("status:failed some words", "status", "running");
  expect(two).toBe("some words status:failed,running");
  expect(toggleTerm(two, "status", "failed")).toBe("some words status:running");
  expect(toggleTerm("status:failed", "status", "failed")).toBe("");
});

it("replaces the value of a key that takes one", () => {
  expect(toggleTerm("since:7d agent:a", "since", "1d", true)).toBe("agent:a since:1d");
});

it("keeps what is in quotes, and quotes what needs it", () => {
  expect(quoted("coder")).toBe("coder");
  expect(quoted('a "b" c')).toBe('"a \\"b\\" c"');
  expect(toggleTerm('"two words" agent:"a,b"', "agent", "c d")).toBe(
    '"two words" agent:"a,b","c d"',
  );
});
