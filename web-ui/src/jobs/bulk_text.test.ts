import { expect, it } from "vitest";

import type { Schemas } from "../api/types";
import { groupedRefusals, jobsText, plannedIds } from "./bulk_text";

type Row = Schemas["BulkDocument"]["jobs"][number];
const row = (id: string, outcome: Row["outcome"], message = ""): Row => ({
  job_id: id,
  outcome,
  job: null,
  new_job_id: null,
  problem: message === "" ? null : { code: "refused", message, hint: null },
});

const jobs = [
  row("job-2026-01-02-aaaaaa", "refused", "job-2026-01-02-aaaaaa has ended"),
  row("job-2026-01-02-bbbbbb", "planned"),
  row("job-2026-01-02-cccccc", "refused", "no such agent"),
  row("job-2026-01-02-dddddd", "refused", "job-2026-01-02-dddddd has ended"),
];

it("names each reason once, the most frequent first", () => {
  expect(groupedRefusals({ jobs })).toEqual([
    { reason: "the job has ended", count: 2 },
    { reason: "no such agent", count: 1 },
  ]);
});

it("acts on the planned jobs only", () => {
  expect(plannedIds({ jobs })).toEqual(["job-2026-01-02-bbbbbb"]);
});

it("counts jobs in words", () => {
  expect([jobsText(1), jobsText(1200)]).toEqual(["1 job", "1,200 jobs"]);
});
