/** Documents about runs of workflows: docs/formats/cli-json.md. */

import type { Schemas } from "../api/types";
import type { NodeRow } from "../graph/from_run";
import { everyNode } from "../graph/from_run";
import { countText, usdText } from "../ui/money";
import { spanText } from "../ui/time";

export type RunDocument = Schemas["RunDocument"];
export type RunLimit = Schemas["RunLimitRow"];
export type { NodeRow };

/** The path of a run in the API. */
export function runPath(run: string): string {
  return `/runs/${encodeURIComponent(run)}`;
}

/** Whether a run may still change by itself. */
export function isRunOpen(run: { status: string }): boolean {
  return !["succeeded", "failed", "cancelled"].includes(run.status);
}

/** Whether a phase has its outcome. */
export function hasEnded(node: Pick<NodeRow, "status">): boolean {
  return ["succeeded", "failed", "skipped", "cancelled"].includes(node.status);
}

/** Return a node by its path; null when there is none. */
export function findNode(nodes: readonly NodeRow[], path: string): NodeRow | null {
  for (const node of everyNode(nodes)) if (node.path === path) return node;
  return null;
}

/** Limits of runs are whole numbers: micro-dollars, milliseconds and counts. */
export function runLimitText(name: string, amount: number): string {
  if (name === "spend") return usdText(amount / 1_000_000);
  if (name === "duration") return spanText(amount / 1_000);
  return countText(amount);
}

/** The events that phases of the run wait for now, then those that others of its phases may wait for. */
export function eventsOfRun(run: Pick<RunDocument, "nodes">): string[] {
  const waits = [...everyNode(run.nodes)].filter(({ kind, does }) => kind === "wait" && does);
  const [open, others] = [waits.filter((node) => !hasEnded(node)), waits.filter(hasEnded)];
  const names = [...open, ...others].map(({ does }) => does ?? "");
  return [...new Set(names)];
}
