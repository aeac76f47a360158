import { expect, it } from "vitest";

import { concurrencyText, durationText, ruleText, secondsOf, triggersText } from "./triggers";

it("reads spans of ISO 8601", () => {
  expect(secondsOf("PT7200S")).toBe(7_200);
  expect(secondsOf("P1DT2H30M")).toBe(95_400);
  expect(durationText("PT90S")).toBe("1 min 30 s");
});

it("says what starts a workflow", () => {
  const row = { schedules: ["nightly"], webhooks: ["issues"], chat: true, api: false };
  expect(triggersText(row)).toBe("schedule nightly, webhook issues, chat, not by hand");
});

it("says when a schedule is due", () => {
  const rule = { timezone: "UTC", inputs: {} };
  expect(ruleText({ ...rule, cron: "0 2 * * *", interval: null })).toBe("0 2 * * * (UTC)");
  expect(ruleText({ ...rule, cron: null, interval: "PT1800S" })).toBe("every 30 min");
});

it("says how many runs there may be", () => {
  const text = concurrencyText({ max_runs: 2, key: "${inputs.repo}", when_busy: "drop" });
  expect(text).toBe("2 runs at once with the same ${inputs.repo}; a further one is not started");
});
