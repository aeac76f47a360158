import { expect, it } from "vitest";

import { lineOf, type RunEvent } from "./run_events";

const at = "2026-01-02T00:00:00Z";

function event(type: RunEvent["type"], data: object): RunEvent {
  return { id: "7", type, data } as unknown as RunEvent;
}

it("says what became of a phase and why", () => {
  const data = { at, path: "build[2]/test", attempt: 2, job_id: "job-1", message: null };
  const line = lineOf(event("node", { ...data, status: "failed", error: "exit code 3" }));
  expect(line).toMatchObject({
    phase: "build[2]/test",
    text: "failed, attempt 2: exit code 3",
    tone: "bad",
    job: { id: "job-1" },
  });
});

it("says what was asked and who answered", () => {
  const asked = { at, phase: "ask", title: "Publish?", decided_at: null };
  expect(lineOf(event("inbox", asked)).text).toBe("asks: Publish?");
  const answered = { ...asked, decided_at: at, decided_by: "ada", verdict: "approve" };
  expect(lineOf(event("inbox", answered)).text).toBe("approve by ada");
});

it("says how the run is", () => {
  const line = lineOf(event("run", { at, status: "failed", error: "test failed" }));
  expect(line).toMatchObject({ phase: "", text: "the run is failed: test failed", tone: "bad" });
});

it("shows an event of a job on one short line", () => {
  const said = { seq: 9, v: 1, timestamp: at, type: "assistant", content: `a\n${"b".repeat(500)}` };
  const line = lineOf(event("job", { job_id: "job-1", phase: "plan", event: said }));
  expect(line.job).toEqual({ id: "job-1", seq: 9 });
  expect(line.text.startsWith("a b")).toBe(true);
  expect(line.text).toHaveLength(200);
  const failed = { seq: 9, v: 1, type: "error", message: "No luck." };
  expect(lineOf(event("job", { job_id: "job-1", phase: "plan", event: failed }))).toMatchObject({
    text: "No luck.",
    tone: "bad",
    at: null,
  });
});
