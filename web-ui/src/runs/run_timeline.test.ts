import { expect, it } from "vitest";

import type { Gap } from "../job/documents";
import type { NodeRow } from "./documents";
import { jobsOfRun, timelineOfRun } from "./run_timeline";

const START = Date.UTC(2026, 0, 2);
const at = (second: number) => new Date(START + second * 1000).toISOString();

function node(path: string, began: number | null, ended: number | null, more: Partial<NodeRow>) {
  return {
    path,
    status: ended === null ? "running" : "succeeded",
    kind: "agent",
    does: "writer",
    began_at: began === null ? null : at(began),
    ended_at: ended === null ? null : at(ended),
    job_id: `job-${path}`,
    kept_from: null,
    attempts: [],
    nodes: [],
    ...more,
  } as unknown as NodeRow;
}

function gap(reason: Gap["reason"], start: number, end: number | null): Gap {
  return {
    reason,
    start: at(start),
    end: end === null ? null : at(end),
    after_seq: 1,
    before_seq: null,
    text: "",
    code: null,
    until: null,
    no_worker_until: null,
  };
}

const nodes = [
  node("plan", 5, 15, {}),
  node("approve", 15, 75, { kind: "gate", does: "approve", job_id: null }),
  node("code", 75, null, {}),
  node("later", null, null, { job_id: null }),
];
const run = { nodes, started_at: at(0), finished_at: null, status: "running" as const };
const text = (spans: readonly { label: string; from: number; to: number }[]) =>
  spans.map(({ label, from, to }) => `${label} ${(from - START) / 1000}-${(to - START) / 1000}`);

it("says when nothing worked and why", () => {
  const { dead, rows } = timelineOfRun(run, new Map(), START + 90_000);
  expect(rows.map(({ path }) => path)).toEqual(["plan", "approve", "code"]);
  expect(text(dead)).toEqual(["queued 0-5", "approve: waits for a person 15-75"]);
});

it("takes the dead time of jobs out of their work", () => {
  const gaps = new Map([["job-code", [gap("crash", 80, 85)]]]);
  const { dead, rows } = timelineOfRun(run, gaps, START + 90_000);
  expect(text(rows[2]?.spans ?? [])).toEqual(["works 75-90", "worker lost 80-85"]);
  expect(text(dead)).toContain("code: worker lost 80-85");
});

it("does not call it dead while another phase works", () => {
  const both = [...nodes, node("docs", 10, 80, {})];
  const gaps = new Map([["job-code", [gap("crash", 76, 79)]]]);
  const { dead } = timelineOfRun({ ...run, nodes: both }, gaps, START + 90_000);
  expect(text(dead)).toEqual(["queued 0-5"]);
});

it("lets an open gap grow until now, and ends with the run", () => {
  const gaps = new Map([["job-code", [gap("approval", 80, null)]]]);
  const open = timelineOfRun(run, gaps, START + 120_000);
  expect(text(open.dead).at(-1)).toBe("code: waits for a person 80-120");
  const over = timelineOfRun({ ...run, finished_at: at(100) }, gaps, START + 120_000);
  expect(over.end).toBe(START + 100_000);
});

it("shows every attempt of a phase, and leaves out what an earlier run did", () => {
  const attempt = (number: number, began: number, ended: number, status: string) => ({
    attempt: number,
    status,
    job_id: `job-${number}`,
    child_run_id: null,
    began_at: at(began),
    ended_at: at(ended),
    error: null,
  });
  const tried = node("bad", 4, 6, {
    attempts: [attempt(1, 1, 3, "failed"), attempt(2, 4, 6, "succeeded")] as NodeRow["attempts"],
  });
  const kept = node("kept", 0, 1, { kept_from: "run-1" });
  const line = timelineOfRun({ ...run, nodes: [tried, kept] }, new Map(), START + 7_000);
  expect(line.rows).toHaveLength(1);
  expect(line.rows[0]?.spans.map(({ kind }) => kind)).toEqual(["failed", "work"]);
  expect(jobsOfRun([tried, kept])).toEqual(["job-bad", "job-1", "job-2"]);
});
