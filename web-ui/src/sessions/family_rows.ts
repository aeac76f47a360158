/** The family of a session as rows of a graph, as `git log --graph` has commits: a lane for each session. */

import type { Family, FamilyEdge, FamilyJob, FamilyNode } from "./documents";

interface Base {
  key: string;
  node: FamilyNode;
  /** The lane of the session, from 0. */
  lane: number;
  /** Lanes whose line comes from above, and those whose line goes on below. */
  above: number[];
  below: number[];
}

/** Where a session begins: its name, and what it was forked from. */
export interface SessionRowOfTree extends Base {
  kind: "session";
  edge: FamilyEdge | null;
  /** The lane that it leaves; null for the first session. */
  from: number | null;
}

/** A job in a session. */
export interface JobRowOfTree extends Base {
  kind: "job";
  job: FamilyJob;
}

/** What is left out: earlier jobs, or further forks. */
export interface RestRowOfTree extends Base {
  kind: "rest";
  text: string;
}

export type TreeRow = SessionRowOfTree | JobRowOfTree | RestRowOfTree;

export interface Tree {
  rows: TreeRow[];
  lanes: number;
}

/** Deeper than this, a fork continues the lane of a session that has ended, so that trees stay narrow. */
const DEEP = 8;

type Draft = { row: TreeRow; parent: FamilyNode | null };

/** Return the rows of a family: each session followed by its jobs, each fork below the job that it leaves. */
export function treeOf(family: Family, hasJobs = true): Tree {
  const edges = new Map(family.edges.map((edge) => [edge.session, edge]));
  const forks = Map.groupBy(family.nodes, (node) => edges.get(node.id)?.parent ?? "");
  const drafts: Draft[] = [];
  const emit = (row: TreeRow, parent: FamilyNode | null = null) => drafts.push({ row, parent });

  const walk = (node: FamilyNode, lane: number, parent: FamilyNode | null, from: number | null) => {
    const base = { node, lane, above: [], below: [] };
    const edge = edges.get(node.id) ?? null;
    emit({ ...base, kind: "session", key: node.id, edge, from }, parent);
    const jobs = hasJobs ? node.jobs : [];
    const waiting = (forks.get(node.id) ?? []).map((fork) => ({
      fork,
      after: placeOf(jobs, edges.get(fork.id)?.message ?? 0),
    }));
    const place = (after: number) => {
      const here = waiting.filter((one) => one.after === after);
      here.forEach(({ fork }, at) => {
        const isLast =
          at === here.length - 1 &&
          after === jobs.length - 1 &&
          node.forks_left_out === 0 &&
          waiting.every((one) => one.after <= after);
        walk(fork, isLast && lane >= DEEP ? lane : lane + 1, node, lane);
      });
    };
    if (hasJobs && node.jobs_left_out > 0) {
      emit({
        ...base,
        kind: "rest",
        key: `${node.id} jobs`,
        text: restText(node.jobs_left_out, "earlier job"),
      });
    }
    place(-1);
    jobs.forEach((job, at) => {
      emit({ ...base, kind: "job", key: job.id, job });
      place(at);
    });
    if (node.forks_left_out > 0) {
      emit({
        ...base,
        kind: "rest",
        key: `${node.id} forks`,
        text: restText(node.forks_left_out, "further fork"),
      });
    }
  };
  for (const root of forks.get("") ?? []) walk(root, 0, null, null);
  return { rows: withLines(drafts), lanes: 1 + Math.max(0, ...drafts.map(({ row }) => row.lane)) };
}

/** The place of the job after which a fork leaves; -1 when it leaves before all that are shown. */
function placeOf(jobs: readonly FamilyJob[], message: number): number {
  return jobs.findLastIndex((job) => job.first_message <= message);
}

function restText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"} not shown`;
}

/** A session's line goes from its first row to its last, or to the last fork that leaves it. */
function withLines(drafts: readonly Draft[]): TreeRow[] {
  const first = new Map<string, number>();
  const last = new Map<string, number>();
  drafts.forEach(({ row, parent }, at) => {
    if (!first.has(row.node.id)) first.set(row.node.id, at);
    last.set(row.node.id, at);
    if (parent !== null) last.set(parent.id, at);
  });
  const open = new Map<string, number>();
  return drafts.map(({ row }, at): TreeRow => {
    const id = row.node.id;
    const above = [...open.values()];
    if (first.get(id) === at) open.set(id, row.lane);
    for (const other of [...open.keys()]) if (last.get(other) === at) open.delete(other);
    return { ...row, above, below: [...open.values()] };
  });
}
