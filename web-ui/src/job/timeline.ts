/** The outline of a job as bars on a line of time. */

import type { Gap, Outline, Segment } from "./documents";

export interface Bar {
  key: string;
  /** `open` lasts: a worker has the job, and nothing is recorded yet of what it does. */
  kind: "work" | "tool" | "error" | "gap" | "child" | "open";
  label: string;
  /** Place and length as parts of the whole, from 0 to 1. */
  from: number;
  length: number;
  seq: number | null;
  job: string | null;
  seconds: number;
  /** How many of its steps failed. */
  errors: number;
}

/** What is known of a job that runs. */
export interface Progress {
  /** When it recorded something last. */
  lastAt: string | null;
  /** Since when its worker is gone; null while that is alive. */
  lostSince: string | null;
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

/** Return the timeline of a job; null before its first event. `now` ends what has no end yet, `progress` is of a job that runs. */
export function timelineOf(
  outline: Outline,
  now: number,
  progress: Progress | null = null,
): Timeline | null {
  if (outline.first_at === null || outline.last_at === null) return null;
  // A job that waited in the queue did so before its first event.
  const starts = outline.gaps.map((gap) => Date.parse(gap.start));
  const start = Math.min(Date.parse(outline.first_at), ...starts);
  const open = openSpan(outline, now, progress);
  const ends = [
    Date.parse(outline.last_at),
    ...outline.gaps.map((gap) => endOf(gap, now)),
    ...(open === null ? [] : [now]),
  ];
  const end = Math.max(...ends, start + 1);
  const span = end - start;
  const place = (from: number, to: number) => ({
    from: clamp((from - start) / span),
    length: clamp((Math.max(to, from) - from) / span),
    seconds: Math.max(0, to - from) / 1000,
  });
  const barOf = (span: OpenSpan): Bar => ({
    key: "open",
    kind: span.kind,
    label: span.label,
    seq: outline.last_seq,
    job: null,
    errors: 0,
    ...place(span.start, now),
    seconds: span.seconds,
  });
  const begins = workStarts(outline);
  return {
    start,
    end,
    work: [
      ...outline.segments.map((segment): Bar => ({
        key: `segment:${segment.first_seq}`,
        kind: segmentKind(segment),
        label: segment.label || segment.kind,
        seq: segment.first_seq,
        job: null,
        errors: segment.errors,
        ...place(begins.get(segment.first_seq) ?? 0, workedUntil(segment, outline.gaps)),
      })),
      ...(open?.kind === "open" ? [barOf(open)] : []),
    ],
    gaps: [
      ...outline.gaps.map((gap): Bar => ({
        key: `gap:${gap.after_seq}:${gap.start}`,
        kind: "gap",
        label: gapLabel(gap),
        seq: gap.before_seq ?? gap.after_seq,
        job: null,
        errors: 0,
        ...place(Date.parse(gap.start), endOf(gap, now)),
      })),
      ...(open?.kind === "gap" ? [barOf(open)] : []),
    ],
    children: outline.children.map((child) => ({
      key: child.id,
      kind: "child",
      label: `${child.agent} (${child.status})`,
      seq: null,
      job: child.id,
      errors: 0,
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

export interface OpenSpan {
  kind: "open" | "gap";
  label: string;
  start: number;
  /** Since the last event, or since the worker was lost. */
  seconds: number;
}

/** Return what a running job does now; null for one that waits, and for one that has ended. */
export function openSpan(
  outline: Pick<Outline, "gaps" | "last_at">,
  now: number,
  progress: Progress | null,
): OpenSpan | null {
  if (progress === null || outline.last_at === null) return null;
  if (outline.gaps.some((gap) => gap.end === null)) return null;
  const { lastAt, lostSince } = progress;
  const start = Date.parse(lostSince ?? outline.last_at);
  const since = lostSince === null ? Date.parse(lastAt ?? outline.last_at) : start;
  const seconds = Math.max(0, now - since) / 1_000;
  return lostSince === null
    ? { kind: "open", label: "at work since the last event", start, seconds }
    : { kind: "gap", label: GAP_REASONS.crash ?? "", start, seconds };
}

/** A stretch of many steps is not an error because a few of them failed. */
function segmentKind(segment: Segment): Bar["kind"] {
  if (segment.errors >= Math.max(1, segment.steps)) return "error";
  return segment.tools > 0 ? "tool" : "work";
}

/** Kinds of segments that no agent worked on. */
const NOT_MADE: ReadonlySet<string> = new Set(["system", "prompt"]);

/**
 * Return when work on each segment began, by its first event. An event is recorded when it is complete: what was said
 * took the time since what is before it, but for dead time.
 */
export function workStarts({ segments, gaps }: Pick<Outline, "segments" | "gaps">) {
  const starts = new Map<number, number>();
  let before: number | null = null;
  for (const segment of segments) {
    const start = Date.parse(segment.start);
    let begin = start;
    if (!NOT_MADE.has(segment.kind) && before !== null && before < start) {
      const since: number = before;
      const dead = gaps
        .map((gap) => [Date.parse(gap.start), endOf(gap, start)] as const)
        .filter(([from, to]) => from < start && to > since);
      begin = Math.min(start, Math.max(since, ...dead.map(([, to]) => to)));
    }
    starts.set(segment.first_seq, begin);
    before = Math.max(before ?? 0, Date.parse(segment.end));
  }
  return starts;
}

/**
 * Return when work on a segment ended. The outcome of a call that was cut off is recorded after the dead time: nothing
 * worked on it meanwhile.
 */
export function workedUntil(segment: Segment, gaps: readonly Gap[]): number {
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
