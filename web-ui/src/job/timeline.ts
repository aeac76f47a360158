/** The outline of a job as bars on a line of time. */

import type { Gap, Outline, Segment } from "./documents";

export interface Bar {
  key: string;
  kind: "work" | "tool" | "error" | "gap" | "child";
  label: string;
  /** Place and length as parts of the whole, from 0 to 1. */
  from: number;
  length: number;
  seq: number | null;
  job: string | null;
  seconds: number;
}

export interface Timeline {
  start: number;
  end: number;
  work: Bar[];
  gaps: Bar[];
  children: Bar[];
  checkpoints: { number: number; at: number; seq: number; trigger: string }[];
}

export const GAP_REASONS: Record<string, string> = {
  queued: "queued",
  crash: "worker lost",
  restart: "handed over",
  retry: "before the next try",
  child: "waits for a child job",
  approval: "waits for a person",
  rate_limit: "rate limit",
  limit: "limit reached",
  budget: "budget reached",
  error: "after an error",
};

/** Return the timeline of a job; null before its first event. `now` ends what has no end yet. */
export function timelineOf(outline: Outline, now: number): Timeline | null {
  if (outline.first_at === null || outline.last_at === null) return null;
  const start = Date.parse(outline.first_at);
  const ends = [Date.parse(outline.last_at), ...outline.gaps.map((gap) => endOf(gap, now))];
  const end = Math.max(...ends, start + 1);
  const span = end - start;
  const place = (from: number, to: number) => ({
    from: clamp((from - start) / span),
    length: clamp((Math.max(to, from) - from) / span),
    seconds: Math.max(0, to - from) / 1000,
  });
  return {
    start,
    end,
    work: outline.segments.map((segment) => ({
      key: `segment:${segment.first_seq}`,
      kind: segment.errors > 0 ? "error" : segment.tools > 0 ? "tool" : "work",
      label: segment.label || segment.kind,
      seq: segment.first_seq,
      job: null,
      ...place(Date.parse(segment.start), workedUntil(segment, outline.gaps)),
    })),
    gaps: outline.gaps.map((gap) => ({
      key: `gap:${gap.after_seq}:${gap.start}`,
      kind: "gap",
      label: gapLabel(gap),
      seq: gap.before_seq ?? gap.after_seq,
      job: null,
      ...place(Date.parse(gap.start), endOf(gap, now)),
    })),
    children: outline.children.map((child) => ({
      key: child.id,
      kind: "child",
      label: `${child.agent} (${child.status})`,
      seq: null,
      job: child.id,
      ...place(
        Date.parse(child.started_at ?? child.created_at),
        child.finished_at === null ? now : Date.parse(child.finished_at),
      ),
    })),
    checkpoints: outline.checkpoints.map((checkpoint) => ({
      number: checkpoint.number,
      seq: checkpoint.seq,
      trigger: checkpoint.trigger,
      at: clamp((Date.parse(checkpoint.at) - start) / span),
    })),
  };
}

/**
 * Return when work on a segment ended. The outcome of a call that was cut off is recorded after the dead time: nothing
 * worked on it meanwhile.
 */
function workedUntil(segment: Segment, gaps: readonly Gap[]): number {
  const [begin, end] = [Date.parse(segment.start), Date.parse(segment.end)];
  const cuts = gaps.map((gap) => Date.parse(gap.start)).filter((at) => at >= begin && at < end);
  return Math.min(end, ...cuts);
}

/** Say why nothing worked on the job. */
export function gapLabel(gap: Gap): string {
  const reason = GAP_REASONS[gap.reason] ?? gap.reason.replaceAll("_", " ");
  return gap.text ? `${reason}: ${gap.text}` : reason;
}

function endOf(gap: Gap, now: number): number {
  return gap.end === null ? now : Date.parse(gap.end);
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}
