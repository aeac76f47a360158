import { expect, it } from "vitest";

import type { JobRow } from "../api/types";
import { costText, isQuiet, liveRows, sizeText, doneText, unnamed, type Home } from "./live_rows";

const NOW = Date.parse("2026-01-02T03:00:00Z");
const job = (id: string) =>
  ({ id, turns: 12, cost_usd: 0.83, started_at: "2026-01-02T02:00:00Z" }) as JobRow;
const live = (id: string, at: string | null) => ({
  job: job(id),
  last_event:
    at === null ? null : { at, seq: 1, age_seconds: 0, type: "tool_use", subtype: null, label: "" },
  max_turns: 40,
  max_cost_usd: 5,
});
const none = { count: 0, rows: [] };
const home = {
  suspended: { count: 1, rows: [job("waits")] },
  lost: { count: 1, rows: [job("lost")] },
  running: {
    count: 5,
    rows: [
      live("busy", "2026-01-02T02:59:56Z"),
      live("silent", "2026-01-02T02:50:00Z"),
      live("nothing yet", null),
    ],
  },
};

it("puts what waits for a person first, then what is lost or silent, then what runs", () => {
  expect(liveRows(home, NOW).map(({ kind, job: row }) => [kind, row.id])).toEqual([
    ["waits", "waits"],
    ["lost", "lost"],
    ["silent", "silent"],
    ["silent", "nothing yet"],
    ["running", "busy"],
  ]);
});

it("says how far a job is and what it has cost, with its limits", () => {
  const row = live("busy", null);
  expect(doneText(row)).toBe("12 of 40 turns");
  expect(doneText({ ...row, max_turns: null })).toBe("12 turns");
  expect(costText(row.job, 5)).toBe("$0.83 of $5.00");
  expect(costText(row.job, null)).toBe("$0.83");
});

it("counts the jobs that are not named", () => {
  expect(unnamed(home)).toBe(2);
});

it("knows a fleet in which nothing happened", () => {
  const quiet = {
    suspended: none,
    lost: none,
    running: none,
    waiting: 0,
    inbox: { waiting: 0 },
    jobs: { completed: none, failed: none, cancelled: none },
    runs: { succeeded: none, failed: none, cancelled: none },
  } as unknown as Home;
  expect(isQuiet(quiet)).toBe(true);
  expect(isQuiet({ ...quiet, waiting: 1 })).toBe(false);
  expect(isQuiet({ ...quiet, jobs: { ...quiet.jobs, failed: { count: 1, rows: [] } } })).toBe(
    false,
  );
});

it("writes sizes with their unit", () => {
  expect([sizeText(512), sizeText(1536), sizeText(200 * 1024 ** 3)]).toEqual([
    "512 B",
    "1.5 KiB",
    "200 GiB",
  ]);
});
