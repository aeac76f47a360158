import { expect, it } from "vitest";

import { givenLimits, usedText } from "./limits";

it("sends only the limits that were typed", () => {
  expect(givenLimits({ spend: " 2.50 ", turns: "", tokens: "  " })).toEqual({ spend: "2.50" });
});

it("says what is used of the job's own limit, not of its agent's", () => {
  const row = {
    limit: "spend",
    owner: null,
    per_day: false,
    left: 4,
    on_reached: "suspend",
  } as const;
  const limits = [
    { ...row, scope: "agent" as const, maximum: 100, used: 50 },
    { ...row, scope: "job" as const, maximum: 5, used: 0.83 },
    { ...row, limit: "duration" as const, scope: "job" as const, maximum: 3600, used: 60 },
  ];
  expect(usedText(limits, "spend")).toBe("$0.83 of $5.00");
  expect(usedText(limits, "duration")).toBe("1 min of 1 h");
  expect(usedText(limits, "turns")).toBeNull();
});
