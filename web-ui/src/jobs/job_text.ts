/** What a list says about a job. */

import type { JobRow } from "../api/types";
import { spanText } from "../ui/time";

/** The end of an id: what differs between the jobs of a day. */
export function shortId(id: string): string {
  return id.split("-").at(-1) ?? id;
}

/** One line about what became of the job: its error, its last words, or what it waits for. */
export function outcomeText(job: JobRow): string {
  if (job.lost !== null) return `its worker is gone; ${job.lost.next}`;
  if (job.waits_behind !== null) {
    const { job_id: ahead, status } = job.waits_behind;
    return `waits behind ${shortId(ahead)}, which is ${status}`;
  }
  if (job.status === "pending" && job.started_at === null) return "waits for a worker";
  if (job.error !== null && job.status !== "completed") return job.error.message;
  return job.summary ?? "";
}

/** Who or what started the job. */
export function startText(job: JobRow): string {
  if (job.schedule !== null) return `schedule ${job.schedule}`;
  if (job.phase !== null) return `phase ${job.phase}`;
  return job.trigger_type;
}

/** How long the job took, or has been going on; null before its start. */
export function durationText(job: JobRow, now: number): string | null {
  if (job.duration_seconds !== null) return spanText(job.duration_seconds);
  if (job.started_at === null) return null;
  return spanText((now - Date.parse(job.started_at)) / 1_000);
}

export function turnsText(turns: number): string {
  return `${turns.toLocaleString("en")} ${turns === 1 ? "turn" : "turns"}`;
}
