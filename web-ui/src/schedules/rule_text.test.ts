import { expect, it } from "vitest";

import { editableRule } from "./rule_text";

it("gives a rule as the API takes it", () => {
  expect(editableRule("30 4 * * * (Europe/Vienna)")).toBe("30 4 * * *");
  expect(editableRule("every 30m")).toBe("30m");
  expect(editableRule(null)).toBe("");
});
