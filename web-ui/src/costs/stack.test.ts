import { expect, it } from "vitest";

import { dayIn, daysBetween, MOST_GROUPS, OTHERS, stackOf, tableOf, type CostRow } from "./stack";

const row = (day: string, agent: string | null, cost: number): CostRow => ({
  day,
  agent,
  model: null,
  model_source: null,
  schedule: null,
  workflow: null,
  cost_usd: cost,
  tokens: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  turns: 0,
  jobs: 1,
});

it("has a column for each day, also where nothing was spent", () => {
  const days = daysBetween("2026-02-27", "2026-03-02");
  expect(days).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
  const stack = stackOf([row("2026-02-28", "coder", 2)], "agent", days);
  expect(stack.columns.map(({ total }) => total)).toEqual([0, 2, 0, 0]);
});

it("keeps every cent when small groups are joined", () => {
  const rows = Array.from({ length: 12 }, (_, place) => row("2026-01-01", `a${place}`, place + 1));
  const stack = stackOf(rows, "agent", ["2026-01-01"]);
  expect(stack.groups).toHaveLength(MOST_GROUPS + 1);
  expect(stack.groups.at(-1)).toBe(OTHERS);
  const [column] = stack.columns;
  expect(column?.parts.reduce((sum, part) => sum + part, 0)).toBe(78);
  expect(stack.highest).toBe(78);
});

it("names what has no group", () => {
  expect(stackOf([row("2026-01-01", null, 1)], "agent", ["2026-01-01"]).groups).toEqual([
    "no agent",
  ]);
});

it("shows days as columns of one part, and in a table from the newest", () => {
  const rows = [row("2026-01-01", null, 3), row("2026-01-02", null, 1)];
  const stack = stackOf(rows, "day", ["2026-01-01", "2026-01-02"]);
  expect(stack.groups).toEqual(["all"]);
  expect(stack.columns.map(({ parts }) => parts)).toEqual([[3], [1]]);
  expect(tableOf(rows, "day").map(({ day }) => day)).toEqual(["2026-01-02", "2026-01-01"]);
  expect(tableOf(rows, "agent")).toEqual(rows);
});

it("counts days in the time zone of the answer", () => {
  expect(dayIn("2026-11-17T23:30:00Z", "Europe/Berlin")).toBe("2026-11-18");
});
