/** What goes on now, as one list: what waits for a person, what is lost or says nothing, what runs. */

import type { JobRow, Schemas } from "../api/types";
import { turnsText } from "../jobs/job_text";
import { countText, usdText } from "../ui/money";

export type Home = Schemas["HomeDocument"];
type LiveJob = Schemas["LiveJobRow"];

/** A running job that recorded nothing for so long is worth a look. */
export const SILENT_S = 300;

export interface LiveRow {
  kind: "waits" | "lost" | "silent" | "running";
  job: JobRow;
  live: LiveJob | null;
}

/** Return the rows in the order in which they need a person. */
export function liveRows(
  home: Pick<Home, "suspended" | "lost" | "running">,
  now: number,
): LiveRow[] {
  const running = home.running.rows.map((live): LiveRow => ({
    kind: silentSeconds(live, now) > SILENT_S ? "silent" : "running",
    job: live.job,
    live,
  }));
  return [
    ...home.suspended.rows.map((job): LiveRow => ({ kind: "waits", job, live: null })),
    ...home.lost.rows.map((job): LiveRow => ({ kind: "lost", job, live: null })),
    ...running.filter(({ kind }) => kind === "silent"),
    ...running.filter(({ kind }) => kind === "running"),
  ];
}

/** For how long the job has recorded nothing. */
function silentSeconds({ last_event: last, job }: LiveJob, now: number): number {
  const at = last?.at ?? job.started_at ?? job.created_at;
  return (now - Date.parse(at)) / 1_000;
}

/** How far a job is: `12 of 40 turns`. */
export function doneText({ job, max_turns: most }: LiveJob): string {
  return most === null ? turnsText(job.turns) : `${countText(job.turns)} of ${turnsText(most)}`;
}

/** What a job has cost: `$0.83 of $5.00`. */
export function costText(job: JobRow, most: number | null): string {
  const cost = usdText(job.cost_usd);
  return most === null ? cost : `${cost} of ${usdText(most)}`;
}

/** How many jobs there are that the list does not name. */
export function unnamed(home: Pick<Home, "suspended" | "lost" | "running">): number {
  const groups = [home.suspended, home.lost, home.running];
  return groups.reduce((sum, { count, rows }) => sum + Math.max(0, count - rows.length), 0);
}

/** Whether nothing has happened since then, and nothing goes on. */
export function isQuiet(home: Home): boolean {
  const ended = [...Object.values(home.jobs), ...Object.values(home.runs)];
  const open = [home.suspended, home.lost, home.running];
  return (
    [...ended, ...open].every(({ count }) => count === 0) &&
    home.waiting === 0 &&
    home.inbox.waiting === 0
  );
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A number of bytes, such as `12 GiB`. */
export function sizeText(bytes: number): string {
  let [size, unit] = [bytes, 0];
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit] ?? ""}`;
}
