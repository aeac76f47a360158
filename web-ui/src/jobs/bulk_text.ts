import type { Schemas } from "../api/types";

type BulkDocument = Schemas["BulkDocument"];

export function jobsText(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "job" : "jobs"}`;
}

export function plannedIds(document: Pick<BulkDocument, "jobs">): string[] {
  return document.jobs.filter(({ outcome }) => outcome === "planned").map((row) => row.job_id);
}

const MOST_REASONS = 6;
const JOB = /job-\d{4}-\d{2}-\d{2}-[a-z0-9]+/g;

/** Why jobs were refused, each reason once, the most frequent first. */
export function groupedRefusals(
  document: Pick<BulkDocument, "jobs">,
): { reason: string; count: number }[] {
  const refused = document.jobs.filter(({ outcome }) => outcome === "refused");
  const groups = Map.groupBy(refused, ({ problem }) =>
    (problem?.message ?? "no reason is known").replace(JOB, "the job"),
  );
  return [...groups]
    .map(([reason, rows]) => ({ reason, count: rows.length }))
    .sort((left, right) => right.count - left.count)
    .slice(0, MOST_REASONS);
}
