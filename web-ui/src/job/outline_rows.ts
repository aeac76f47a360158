/** The outline of a job as a list in the order of time: what it did, when nothing worked on it, and who worked for it. */

import { gapLabel, openSpan, workedUntil, workStarts, type Progress } from "./timeline";
import type { Outline, Segment } from "./documents";

export interface OutlineRow {
  key: string;
  kind: "work" | "gap" | "child" | "open";
  name: string;
  detail: string;
  at: string;
  seconds: number;
  errors: number;
  /** Where it begins in the journal; null for another job. */
  seq: number | null;
  job: string | null;
}

/** Return the rows; `now` ends what has no end yet, `progress` is of a job that runs. */
export function outlineRows(
  outline: Outline,
  now: number,
  progress: Progress | null = null,
): OutlineRow[] {
  const seconds = (start: string, end: string | null) =>
    Math.max(0, (end === null ? now : Date.parse(end)) - Date.parse(start)) / 1_000;
  const begins = workStarts(outline);
  const worked = (segment: Segment) => {
    const begin = begins.get(segment.first_seq) ?? 0;
    return Math.max(0, workedUntil(segment, outline.gaps) - begin) / 1_000;
  };
  const rows: OutlineRow[] = [
    // What nightherd notes about the run itself is in the transcript.
    ...outline.segments
      .filter(({ kind }) => kind !== "system")
      .map((segment): OutlineRow => ({
        key: `segment ${segment.first_seq}`,
        kind: "work",
        name: turnsRange(segment.turn, segment.last_turn) || segment.kind,
        detail: segment.label,
        at: segment.start,
        seconds: worked(segment),
        errors: segment.errors,
        seq: segment.first_seq,
        job: null,
      })),
    ...outline.gaps.map((gap): OutlineRow => ({
      key: `gap ${gap.after_seq} ${gap.start}`,
      kind: "gap",
      name: gapLabel(gap),
      detail: "",
      at: gap.start,
      seconds: seconds(gap.start, gap.end),
      errors: 0,
      seq: gap.before_seq ?? gap.after_seq,
      job: null,
    })),
    ...outline.children.map((child): OutlineRow => ({
      key: child.id,
      kind: "child",
      name: child.agent,
      detail: child.status,
      at: child.started_at ?? child.created_at,
      seconds: seconds(child.started_at ?? child.created_at, child.finished_at),
      errors: child.status === "failed" ? 1 : 0,
      seq: null,
      job: child.id,
    })),
  ];
  rows.sort((left, right) => Date.parse(left.at) - Date.parse(right.at));
  const open = openSpan(outline, now, progress);
  if (open !== null) {
    rows.push({
      key: "open",
      kind: open.kind,
      name: open.label,
      detail: "",
      at: new Date(open.start).toISOString(),
      seconds: open.seconds,
      errors: 0,
      seq: outline.last_seq,
      job: null,
    });
  }
  return rows;
}

/** Name turns: `Turn 3`, `Turns 3 to 8`; nothing for what is before the first turn. */
export function turnsRange(first: number | null, last: number | null): string {
  if (first === null) return "";
  return last === null || last === first ? `Turn ${first}` : `Turns ${first} to ${last}`;
}
