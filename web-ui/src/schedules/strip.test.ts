import { expect, it } from "vitest";

import { daysOf, marksOf, placeOf, stripBegin } from "./strip";

const now = new Date(2026, 10, 18, 15, 30).getTime();
const begin = stripBegin(now, 7);
const at = (day: number, hour = 0) => new Date(2026, 10, day, hour).toISOString();

it("begins at a midnight of the reader", () => {
  expect(new Date(begin).getHours()).toBe(0);
  expect(new Date(begin).getDate()).toBe(11);
});

it("marks today, and only today", () => {
  const days = daysOf(begin, 14, now);
  expect(days.map((day) => day.isToday).indexOf(true)).toBe(7);
  expect(days.filter((day) => day.isToday)).toHaveLength(1);
});

it("places a time, and nothing outside", () => {
  expect(placeOf(at(18), begin, 14)).toBeCloseTo(0.5);
  expect(placeOf(at(1), begin, 14)).toBeNull();
  expect(placeOf(at(30), begin, 14)).toBeNull();
});

it("joins what stands close, and shows the worst of it", () => {
  const slot = (day: number, tone: string) => ({ due_at: at(day, 1), tone });
  const marks = marksOf(
    [slot(12, "completed"), slot(12, "failed"), slot(14, "completed"), slot(1, "missed")],
    begin,
    14,
    14,
  );
  expect(marks.map(({ tone, slots }) => [tone, slots.length])).toEqual([
    ["failed", 2],
    ["completed", 1],
  ]);
});

it("shows what happened before what is planned", () => {
  const slots = [
    { due_at: at(18, 1), tone: "completed" },
    { due_at: at(18, 2), tone: "planned" },
  ];
  expect(marksOf(slots, begin, 14, 14).map(({ tone }) => tone)).toEqual(["completed"]);
});
