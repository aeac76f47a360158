/** The phases of a run, from its document. */

import type { Schemas } from "../api/types";
import { folderOf, lastPart, type Counts, type Phase } from "./phase";

export type NodeRow = Schemas["NodeRow"];

const DONE = ["succeeded", "skipped"];
const FAILED = ["failed", "cancelled"];

/** Return the phases of a run, as they were `asOf` a moment in milliseconds. */
export function phasesOfRun(nodes: readonly NodeRow[], asOf: number): Phase[] {
  return nodes.map((node) => phaseOf(node, dependencies(node), asOf));
}

function phaseOf(node: NodeRow, dependsOn: string[], asOf: number): Phase {
  const instances = node.nodes.filter((inner) => inner.path.startsWith(`${node.path}[`));
  const inside =
    instances.length > 0
      ? node.nodes.map((inner, place) => phaseOf(inner, before(node.nodes, place), asOf))
      : phasesOfRun(node.nodes, asOf);
  return {
    path: node.path,
    name: node.label ?? lastPart(node.path),
    kind: node.kind,
    does: node.does,
    status: node.status,
    isLost: node.lost !== null,
    note: noteOf(node),
    seconds: node.duration_seconds,
    growsFrom: isWorking(node) ? asOf : null,
    cost: node.cost_usd,
    dependsOn,
    isGroup: inside.length > 0 || node.kind === "block" || node.total !== null,
    counts: countsOf(node, instances),
    inside,
  };
}

/** Whether its time passes: what waits for a worker or is lost is not worked on. */
function isWorking(node: NodeRow): boolean {
  const isOpen = ["running", "paused"].includes(node.status) && node.lost === null;
  return isOpen && (node.job_status === null || node.job_status === "running");
}

/** Items stand beside each other; an iteration, and the command that ends a loop, follow what was before. */
function before(beside: readonly NodeRow[], place: number): string[] {
  const [node, last] = [beside[place], beside[place - 1]];
  if (node === undefined || last === undefined) return [];
  return node.iteration === null || last.iteration === null ? [] : [last.path];
}

function dependencies(node: NodeRow): string[] {
  return node.depends_on.map((name) => folderOf(node.path) + name);
}

function countsOf(node: NodeRow, instances: readonly NodeRow[]): Counts | null {
  if (node.total === null && instances.length === 0) return null;
  const having = (statuses: readonly string[]) =>
    instances.filter(({ status }) => statuses.includes(status)).length;
  const [done, failed] = [having(DONE), having(FAILED)];
  return {
    noun: instances.every(({ iteration }) => iteration !== null) ? "iteration" : "item",
    total: node.total,
    done,
    failed,
    open: instances.length - done - failed,
  };
}

function noteOf(node: NodeRow): string | null {
  if (node.lost !== null) return "its worker is gone";
  if (node.waits_for !== null) return waitText(node.waits_for);
  if (node.error !== null) return node.error;
  if (node.skip_cause !== null) return SKIPPED[node.skip_cause];
  if (node.kept_from !== null) return `kept from ${node.kept_from}`;
  return null;
}

/** Say what is waited for: what a person is asked, or the event, time or job. */
export function waitText(wait: Pick<Schemas["WaitRow"], "for" | "what" | "item_id">): string {
  if (wait.for === "person") return wait.item_id === null ? wait.what : `asks: ${wait.what}`;
  return wait.for === "job" ? wait.what : `waits for ${wait.what}`;
}

const SKIPPED: Record<NonNullable<NodeRow["skip_cause"]>, string> = {
  condition: "its condition is false",
  skipped: "what it waits for was skipped",
  failed: "what it waits for failed",
};

/** Yield the nodes of a run and those inside them, in order. */
export function* everyNode(nodes: readonly NodeRow[]): Generator<NodeRow> {
  for (const node of nodes) {
    yield node;
    yield* everyNode(node.nodes);
  }
}
