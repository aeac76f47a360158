/** Documents about one job: docs/formats/outline.md and docs/formats/cli-json.md. */

import type { JobRow } from "../api/types";

export interface Segment {
  first_seq: number;
  last_seq: number;
  start: string;
  end: string;
  kind: string;
  label: string;
  turn: number | null;
  last_turn: number | null;
  steps: number;
  tools: number;
  errors: number;
  is_nested: boolean;
}

export interface Gap {
  reason: string;
  start: string;
  end: string | null;
  after_seq: number;
  before_seq: number | null;
  text: string;
  code: string | null;
  until: string | null;
}

export interface Outline {
  job_id: string;
  status: string;
  last_seq: number;
  first_at: string | null;
  last_at: string | null;
  counts: {
    events: number;
    turns: number;
    messages: number;
    tool_calls: number;
    errors: number;
    gaps: number;
    executions: number;
    children: number;
    tools: Record<string, number>;
  };
  segments: Segment[];
  errors: { seq: number; at: string; kind: string; turn: number | null; text: string }[];
  executions: {
    epoch: number;
    worker: string;
    first_seq: number;
    last_seq: number;
    start: string;
    end: string;
    outcome: string | null;
  }[];
  gaps: Gap[];
  children: {
    id: string;
    agent: string;
    status: string;
    created_at: string;
    started_at: string | null;
    finished_at: string | null;
    cost_usd: number;
  }[];
  checkpoints: {
    number: number;
    seq: number;
    at: string;
    trigger: string;
    turn: number;
    cost_usd: number;
  }[];
}

export interface LimitRow {
  scope: string;
  owner: string | null;
  limit: string;
  per_day: boolean;
  maximum: number | null;
  used: number | null;
  left: number | null;
  on_reached: string;
}

export interface ExecutionRow {
  id: string;
  epoch: number;
  worker: string;
  status: string;
  started_at: string | null;
  finished_at: string | null;
  turns: number;
  cost_usd: number;
  error: string | null;
  container_id?: string | null;
}

export interface JobDocument extends JobRow {
  prompt: string | null;
  inputs: Record<string, unknown>;
  waits_for: string | null;
  worked_seconds: number | null;
  waited_seconds: number | null;
  tree: { jobs: number; cost_usd: number };
  workspace: { id: string; directory?: string; root?: string; branch?: string | null } | null;
  executions: ExecutionRow[];
  limits: LimitRow[];
  usage: Record<string, number>;
}

export interface JobDiff {
  files: { path: string; status?: string; change?: string }[];
  patch?: string | null;
  is_patch_left_out?: boolean;
}

/** Whether a job may still change by itself. */
export function isOpen(job: { status: string }): boolean {
  return !["completed", "failed", "cancelled"].includes(job.status);
}
