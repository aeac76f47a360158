/** Slots of a strip: what became of each, as one word. */

import type { Schemas } from "../api/types";
import type { Marked } from "./strip";

export type StripRow = Schemas["StripRow"];
export type PastSlot = Schemas["PastSlotRow"];

export interface Slot extends Marked {
  id: string;
  /** The job or run that it became. */
  to: string | null;
  text: string;
}

const TONES: Record<string, string> = {
  succeeded: "completed",
  completed: "completed",
  failed: "failed",
  cancelled: "skipped",
  suspended: "lost",
  paused: "lost",
};

/** Return the past and planned slots of a schedule in the order of time. */
export function slotsOf(row: StripRow): Slot[] {
  const past = row.past.map((slot): Slot => {
    const status = slot.job_status ?? slot.run_status;
    const tone = slot.kind === "ran" ? (TONES[status ?? "completed"] ?? "running") : slot.kind;
    const words = slot.kind === "ran" ? (status ?? "ran") : `${slot.kind}: ${slot.reason ?? ""}`;
    return {
      id: slot.id,
      due_at: slot.due_at,
      tone,
      text: slot.error === null ? words : `${words}: ${slot.error}`,
      to: placeOfSlot(slot),
    };
  });
  const planned = row.planned.map((slot): Slot => ({
    id: slot.due_at,
    due_at: slot.due_at,
    tone: "planned",
    text: "planned",
    to: null,
  }));
  return [...past, ...planned];
}

function placeOfSlot(slot: PastSlot): string | null {
  if (slot.run_id !== null) return `/runs/${slot.run_id}`;
  return slot.job_id === null ? null : `/jobs/${slot.job_id}`;
}

/** Return counts in words, such as `12 completed, 1 missed, 3 planned`. */
export function summaryOf(slots: readonly Slot[]): string {
  const counts = new Map<string, number>();
  for (const { tone } of slots) counts.set(tone, (counts.get(tone) ?? 0) + 1);
  const words = [...counts].map(([tone, count]) => `${count} ${tone}`);
  return words.length === 0 ? "no slots" : words.join(", ");
}
