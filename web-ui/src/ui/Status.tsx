/** States of jobs, runs and others: a sign and a word, never a colour alone. */

import type { JobRow } from "../api/types";
import { classes } from "./classes";

export type Tone = "good" | "busy" | "wait" | "bad" | "lost" | "quiet";

export const TONES: Record<Tone, string> = {
  good: "bg-good-soft text-good",
  busy: "bg-busy-soft text-busy",
  wait: "bg-wait-soft text-wait",
  bad: "bg-bad-soft text-bad",
  lost: "bg-lost-soft text-lost",
  quiet: "bg-raised text-soft",
};
export const SIGNS: Record<Tone, string> = {
  good: "✓",
  busy: "●",
  wait: "◐",
  bad: "✕",
  lost: "?",
  quiet: "○",
};

/** A word on a colour; `title` says more. */
export function Badge({ tone, text, title }: { tone: Tone; text: string; title?: string }) {
  return (
    <span
      title={title}
      className={classes(
        "inline-flex items-center gap-1 rounded px-1.5 text-xs font-medium whitespace-nowrap",
        TONES[tone],
      )}
    >
      <span aria-hidden>{SIGNS[tone]}</span>
      {text}
    </span>
  );
}

/** Words for states that several nouns share. */
const STATES: Record<string, Tone> = {
  completed: "good",
  succeeded: "good",
  enabled: "good",
  idle: "quiet",
  running: "busy",
  active: "busy",
  pending: "quiet",
  paused: "wait",
  suspended: "wait",
  waiting: "wait",
  skipped: "quiet",
  disabled: "quiet",
  cancelled: "quiet",
  failed: "bad",
  error: "bad",
  missed: "bad",
  lost: "lost",
  interrupted: "lost",
};

/** Return what a state means to people. */
export function toneOf(status: string): Tone {
  return STATES[status] ?? "quiet";
}

export function State({ status, title }: { status: string; title?: string }) {
  const tone = toneOf(status);
  const text = status.replaceAll("_", " ");
  return title === undefined ? (
    <Badge tone={tone} text={text} />
  ) : (
    <Badge tone={tone} text={text} title={title} />
  );
}

type Stateful = Pick<JobRow, "status" | "suspend_reason" | "lost" | "waits_behind">;

/** What a job is doing, with why it waits. */
export function JobState({ job }: { job: Stateful }) {
  if (job.lost !== null) {
    return <Badge tone="lost" text="lost" title={`no live worker since ${job.lost.since}`} />;
  }
  if (job.status === "suspended" && job.suspend_reason !== null) {
    return <Badge tone="wait" text={`waits: ${job.suspend_reason.replaceAll("_", " ")}`} />;
  }
  return <State status={job.status} />;
}
