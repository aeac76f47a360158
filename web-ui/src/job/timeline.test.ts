import { expect, it } from "vitest";

import type { Outline } from "./documents";
import { outlineRows } from "./outline_rows";
import { timelineOf } from "./timeline";

const at = (second: number) => new Date(Date.UTC(2026, 0, 2) + second * 1000).toISOString();

const outline: Outline = {
  job_id: "job-1",
  agent: "coder",
  status: "running",
  first_seq: 1,
  last_seq: 9,
  span: 1,
  first_at: at(0),
  last_at: at(50),
  counts: {
    events: 9,
    turns: 2,
    messages: 4,
    tool_calls: 1,
    errors: 1,
    gaps: 2,
    executions: 2,
    children: 1,
    tools: {},
    answers: 2,
    checkpoints: 0,
    denied: 0,
    prompts: 1,
  },
  segments: [
    {
      first_seq: 1,
      last_seq: 4,
      start: at(0),
      end: at(10),
      kind: "turn",
      label: "Bash",
      turn: 1,
      last_turn: 1,
      steps: 2,
      tools: 1,
      errors: 0,
      is_nested: false,
    },
    {
      first_seq: 6,
      last_seq: 9,
      start: at(40),
      end: at(50),
      kind: "turn",
      label: "",
      turn: 2,
      last_turn: 2,
      steps: 1,
      tools: 0,
      errors: 1,
      is_nested: false,
    },
  ],
  errors: [],
  executions: [],
  gaps: [
    {
      reason: "crash",
      start: at(10),
      end: at(40),
      after_seq: 4,
      before_seq: 5,
      text: "its worker is gone",
      code: null,
      until: null,
      no_worker_until: null,
    },
    {
      reason: "approval",
      start: at(50),
      end: null,
      after_seq: 9,
      before_seq: null,
      text: "",
      code: null,
      until: null,
      no_worker_until: null,
    },
  ],
  children: [
    {
      id: "job-2",
      agent: "helper",
      status: "completed",
      created_at: at(0),
      started_at: at(5),
      finished_at: at(10),
      cost_usd: 0,
    },
  ],
  checkpoints: [{ number: 1, seq: 4, at: at(10), trigger: "turn", turn: 1, cost_usd: 0 }],
};

it("places work, dead time with its reason, children and checkpoints on one line of time", () => {
  const line = timelineOf(outline, Date.parse(at(100)));
  expect(line?.work.map((bar) => [bar.from, bar.length, bar.kind])).toEqual([
    [0, 0.1, "tool"],
    [0.4, 0.1, "error"],
  ]);
  expect(line?.gaps[0]).toMatchObject({
    from: 0.1,
    length: 0.3,
    label: "worker lost: its worker is gone",
    seq: 5,
  });
  expect(line?.children[0]).toMatchObject({ from: 0.05, length: 0.05, job: "job-2" });
  expect(line?.checkpoints[0]).toMatchObject({ at: 0.1, seq: 4 });
});

it("lets an open gap grow until now", () => {
  const line = timelineOf(outline, Date.parse(at(100)));
  expect(line?.gaps[1]).toMatchObject({
    from: 0.5,
    length: 0.5,
    label: "waits for a person",
    seconds: 50,
  });
});

it("has nothing to show before the first event", () => {
  expect(timelineOf({ ...outline, first_at: null }, 0)).toBeNull();
});

it("lists work, dead time and children in the order of time", () => {
  const rows = outlineRows(outline, Date.parse(at(100)));
  expect(rows.map(({ kind, name, seconds, errors }) => [kind, name, seconds, errors])).toEqual([
    ["work", "Turn 1", 10, 0],
    ["child", "helper", 5, 0],
    ["gap", "worker lost: its worker is gone", 30, 0],
    ["work", "Turn 2", 10, 1],
    ["gap", "waits for a person", 50, 0],
  ]);
});

it("names several turns of one row", () => {
  const merged = {
    ...outline,
    gaps: [],
    children: [],
    segments: outline.segments.slice(0, 1).map((row) => ({ ...row, last_turn: 8 })),
  };
  expect(outlineRows(merged, 0)[0]?.name).toBe("Turns 1 to 8");
});

it("shows no work in dead time, also where the outcome of a cut off call is recorded after it", () => {
  const [segment] = outline.segments;
  if (segment === undefined) throw new Error("the outline has a segment");
  const cutOff = { ...segment, start: at(5), end: at(41), errors: 1 };
  const line = timelineOf({ ...outline, segments: [cutOff] }, Date.parse(at(50)));
  expect(line?.work.map(({ seconds }) => seconds)).toEqual([5]);
  const rows = outlineRows({ ...outline, segments: [cutOff] }, Date.parse(at(50)));
  expect(rows.find(({ kind }) => kind === "work")?.seconds).toBe(5);
  const silent = { ...cutOff, start: at(10) };
  const other = timelineOf({ ...outline, segments: [silent] }, Date.parse(at(50)));
  expect(other?.work.map(({ seconds }) => seconds)).toEqual([0]);
});

it("shows a running job until now, with the time since its last event", () => {
  const progress = { lastAt: at(60), lostSince: null };
  const done = { ...outline, gaps: [] };
  const line = timelineOf(done, Date.parse(at(100)), progress);
  expect(line?.end).toBe(Date.parse(at(100)));
  expect(line?.work.at(-1)).toMatchObject({ kind: "open", from: 0.5, length: 0.5, seconds: 40 });
  expect(outlineRows(done, Date.parse(at(100)), progress).at(-1)).toMatchObject({
    kind: "open",
    name: "at work since the last event",
    seconds: 40,
  });
});

it("shows a lost worker as dead time, and nothing more of a job that waits", () => {
  const now = Date.parse(at(100));
  const done = { ...outline, gaps: [] };
  const lost = { lastAt: at(60), lostSince: at(70) };
  const line = timelineOf(done, now, lost);
  expect(line?.gaps).toMatchObject([{ label: "worker lost", from: 0.7, seconds: 30 }]);
  expect(line?.work).toHaveLength(2);
  expect(timelineOf(done, now, null)?.end).toBe(Date.parse(at(50)));
  const gap = { reason: "approval", start: at(50), end: null, after_seq: 9, before_seq: null };
  const waiting = {
    ...outline,
    gaps: [{ ...gap, text: "", code: null, until: null, no_worker_until: null }],
  };
  expect(timelineOf(waiting, now, { lastAt: at(50), lostSince: null })?.work).toHaveLength(2);
});

it("marks a stretch in which some steps failed, and calls one an error only if all did", () => {
  const [first] = outline.segments;
  if (first === undefined) throw new Error("no segment");
  const many = { ...first, steps: 128, tools: 60, errors: 2 };
  const one = { ...first, first_seq: 5, steps: 1, tools: 1, errors: 1 };
  const line = timelineOf({ ...outline, segments: [many, one] }, 0);
  expect(line?.work).toMatchObject([
    { kind: "tool", errors: 2 },
    { kind: "error", errors: 1 },
  ]);
});

it("begins where the job was queued, before its first event", () => {
  const gap = { reason: "queued", end: at(0), after_seq: 0, before_seq: 1 };
  const start = new Date(Date.parse(at(0)) - 50_000).toISOString();
  const queued = {
    ...outline,
    gaps: [{ ...gap, start, text: "", code: null, until: null, no_worker_until: null }],
  };
  const line = timelineOf(queued, 0);
  expect(line?.start).toBe(Date.parse(start));
  expect(line?.gaps).toMatchObject([{ label: "queued", from: 0, length: 0.5, seconds: 50 }]);
  expect(line?.work[0]?.from).toBeGreaterThanOrEqual(0.5);
});

it("counts the time until something was said as work, but for dead time and notes of the run", () => {
  const [first] = outline.segments;
  if (first === undefined) throw new Error("no segment");
  const said = { ...first, first_seq: 5, start: at(10), end: at(10), tools: 0 };
  const note = { ...said, first_seq: 1, kind: "system", start: at(0), end: at(2) };
  const gap = { reason: "approval", text: "", code: null, until: null, no_worker_until: null };
  const between = { ...gap, start: at(3), end: at(6), after_seq: 1, before_seq: 5 };
  const plain = { ...outline, gaps: [], segments: [note, said] };
  const dead = { ...plain, gaps: [between] };
  expect(timelineOf(plain, 0)?.work.map(({ seconds }) => seconds)).toEqual([2, 8]);
  expect(timelineOf(dead, 0)?.work.map(({ seconds }) => seconds)).toEqual([2, 4]);
  expect(outlineRows(plain, 0).find(({ kind }) => kind === "work")?.seconds).toBe(8);
});
