/** A run on a line of time: when each phase worked, waited, and why nothing happened. */

import { everyNode } from "../graph/from_run";
import type { Gap } from "../job/documents";
import { gapLabel } from "../job/timeline";
import { hasEnded, type NodeRow, type RunDocument } from "./documents";

export interface Span {
  kind: "work" | "wait" | "failed" | "gap";
  label: string;
  /** In milliseconds. */
  from: number;
  to: number;
}

export interface TimelineRow {
  path: string;
  job: string | null;
  spans: Span[];
}

export interface RunTimeline {
  start: number;
  end: number;
  rows: TimelineRow[];
  /** Time in which nothing worked, and why, in order. */
  dead: Span[];
}

/** The times of a run. `gaps` are what is known of its jobs, by id; `now` ends what has no end yet. */
export function timelineOfRun(
  run: Pick<RunDocument, "nodes" | "started_at" | "finished_at" | "status">,
  gaps: ReadonlyMap<string, readonly Gap[]>,
  now: number,
): RunTimeline {
  const start = Date.parse(run.started_at);
  const end = Math.max(run.finished_at === null ? now : Date.parse(run.finished_at), start + 1);
  const rows = [...everyNode(run.nodes)]
    .filter((node) => node.nodes.length === 0 && node.began_at !== null && node.kept_from === null)
    .map((node) => rowOf(node, gaps, end))
    .sort((one, other) => (one.spans[0]?.from ?? 0) - (other.spans[0]?.from ?? 0));
  return { start, end, rows, dead: deadTime(rows, start, end, run.status === "queued") };
}

/** The jobs of a run whose gaps belong on its line of time, in the order in which they began. */
export function jobsOfRun(nodes: readonly NodeRow[]): string[] {
  return [...everyNode(nodes)]
    .filter((node) => node.began_at !== null && node.kept_from === null)
    .flatMap((node) => [node.job_id, ...node.attempts.map((attempt) => attempt.job_id)])
    .filter((job, at, all): job is string => job !== null && all.indexOf(job) === at);
}

function rowOf(node: NodeRow, gaps: ReadonlyMap<string, readonly Gap[]>, end: number): TimelineRow {
  const attempts = node.attempts.length > 0 ? node.attempts : [node];
  const spans = attempts.flatMap((attempt): Span[] => {
    if (attempt.began_at === null) return [];
    const from = Date.parse(attempt.began_at);
    const to = attempt.ended_at === null ? end : Date.parse(attempt.ended_at);
    const own = { ...kindOf(node, attempt.status), from, to };
    const inside = (attempt.job_id === null ? undefined : gaps.get(attempt.job_id)) ?? [];
    return [own, ...inside.map((gap) => gapSpan(gap, from, to))];
  });
  return { path: node.path, job: node.job_id, spans };
}

function kindOf(node: NodeRow, status: string): Pick<Span, "kind" | "label"> {
  if (node.kind === "gate") return { kind: "wait", label: "waits for a person" };
  if (node.kind === "wait") {
    return { kind: "wait", label: node.does ? `waits for the event ${node.does}` : "waits" };
  }
  if (status === "failed") return { kind: "failed", label: "failed" };
  return { kind: "work", label: hasEnded({ status }) ? status : "works" };
}

function gapSpan(gap: Gap, from: number, to: number): Span {
  const begin = Math.max(from, Date.parse(gap.start));
  const end = gap.end === null ? to : Math.min(to, Date.parse(gap.end));
  return { kind: "gap", label: gapLabel(gap), from: begin, to: Math.max(begin, end) };
}

/** Shorter stretches without work are only the step from one phase to the next. */
const LEAST_MS = 1_000;

function deadTime(
  rows: readonly TimelineRow[],
  start: number,
  end: number,
  isQueued: boolean,
): Span[] {
  const dead: Span[] = [];
  let at = start;
  const close = (to: number) => {
    if (to - at >= LEAST_MS) {
      const label = reasonOf(rows, at, to) ?? (at === start || isQueued ? "queued" : "no worker");
      dead.push({ kind: "gap", label, from: at, to });
    }
  };
  for (const { from, to } of workedOf(rows)) {
    if (from > at) close(from);
    at = Math.max(at, to);
  }
  close(end);
  return dead;
}

/** When anything worked: work without its gaps, in order. */
function workedOf(rows: readonly TimelineRow[]): { from: number; to: number }[] {
  const spans = rows.flatMap((row) => {
    const gaps = row.spans.filter(({ kind }) => kind === "gap");
    return row.spans
      .filter(({ kind }) => kind === "work" || kind === "failed")
      .flatMap((span) => without(span, gaps));
  });
  return spans.sort((one, other) => one.from - other.from);
}

function without(span: Span, gaps: readonly Span[]): { from: number; to: number }[] {
  const parts: { from: number; to: number }[] = [];
  let from = span.from;
  for (const gap of gaps.toSorted((one, other) => one.from - other.from)) {
    if (gap.to <= from || gap.from >= span.to) continue;
    if (gap.from > from) parts.push({ from, to: gap.from });
    from = Math.max(from, gap.to);
  }
  if (from < span.to) parts.push({ from, to: span.to });
  return parts;
}

/** What was waited for in a stretch of time: of several reasons the one that took longest. */
function reasonOf(rows: readonly TimelineRow[], from: number, to: number): string | null {
  let best: { label: string; length: number } | null = null;
  for (const row of rows) {
    for (const span of row.spans) {
      if (span.kind !== "wait" && span.kind !== "gap") continue;
      const length = Math.min(to, span.to) - Math.max(from, span.from);
      if (length > 0 && length > (best?.length ?? 0)) {
        best = { label: `${row.path}: ${span.label}`, length };
      }
    }
  }
  return best?.label ?? null;
}
