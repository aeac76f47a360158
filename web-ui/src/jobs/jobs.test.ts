import { expect, it } from "vitest";

import type { JobRow } from "../api/types";
import { durationText, outcomeText, shortId, startText } from "./job_text";
import { isAllChosen, NOTHING, targetOf, toggled, toggledAll } from "./selection";

const row = (change: Partial<JobRow>): JobRow =>
  ({
    status: "completed",
    lost: null,
    waits_behind: null,
    error: null,
    summary: null,
    schedule: null,
    phase: null,
    trigger_type: "manual",
    started_at: null,
    duration_seconds: null,
    ...change,
  }) as JobRow;

it("says why a job does not run before what it said", () => {
  expect(outcomeText(row({ summary: "done" }))).toBe("done");
  expect(outcomeText(row({ status: "pending" }))).toBe("waits for a worker");
  const waits = { job_id: "job-2026-01-02-abc123", status: "suspended" as const };
  expect(
    outcomeText(
      row({
        status: "pending",
        waits_behind: { ...waits, resumes_at: null, suspend_reason: null },
      }),
    ),
  ).toBe("waits behind abc123, which is suspended");
  expect(
    outcomeText(
      row({ status: "running", lost: { since: "", next: "the next worker resumes it" } }),
    ),
  ).toBe("its worker is gone; the next worker resumes it");
  const error = { code: "bad_luck", message: "no luck" };
  expect(outcomeText(row({ status: "failed", error, summary: "last words" }))).toBe("no luck");
});

it("names what started a job", () => {
  expect(startText(row({ schedule: "nightly" }))).toBe("schedule nightly");
  expect(startText(row({ phase: "draft" }))).toBe("phase draft");
  expect(startText(row({ trigger_type: "webhook" }))).toBe("webhook");
});

it("counts the time of a job that runs until now", () => {
  const now = Date.parse("2026-01-02T00:01:00Z");
  expect(durationText(row({}), now)).toBeNull();
  expect(durationText(row({ started_at: "2026-01-02T00:00:00Z" }), now)).toBe("1 min");
  expect(durationText(row({ duration_seconds: 5 }), now)).toBe("5 s");
});

it("shortens an id to its end", () => {
  expect(shortId("job-2026-01-02-abc123")).toBe("abc123");
});

it("chooses jobs one by one and all that are shown", () => {
  const one = toggled(NOTHING, "a");
  expect(isAllChosen(one, ["a", "b"])).toBe(false);
  const all = toggledAll(one, ["a", "b"]);
  expect(isAllChosen(all, ["a", "b"])).toBe(true);
  expect(toggledAll(all, ["a", "b"])).toEqual(NOTHING);
  expect(isAllChosen(NOTHING, [])).toBe(false);
});

it("asks for the chosen jobs, or for all that the filter finds", () => {
  const some = toggled(toggled(NOTHING, "a"), "b");
  expect(targetOf(some, "status:failed")).toEqual({ jobs: ["a", "b"] });
  expect(targetOf({ ...some, isEverything: true }, "status:failed")).toEqual({
    q: "status:failed",
  });
});
