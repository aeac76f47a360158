import { expect, it } from "vitest";

import type { Family, FamilyJob, FamilyNode } from "./documents";
import { treeOf, type TreeRow } from "./family_rows";

function job(id: string, first: number, messages = 2): FamilyJob {
  return { id, first_message: first, messages, status: "completed" } as unknown as FamilyJob;
}

function node(id: string, jobs: FamilyJob[], more: Partial<FamilyNode> = {}): FamilyNode {
  return { id, jobs, jobs_left_out: 0, forks_left_out: 0, ...more } as unknown as FamilyNode;
}

function family(nodes: FamilyNode[], edges: [session: string, parent: string, message: number][]) {
  return {
    root: nodes[0]?.id ?? "",
    session: nodes[0]?.id ?? "",
    is_whole: true,
    nodes,
    edges: edges.map(([session, parent, message]) => ({
      session,
      parent,
      message,
      job_id: null,
      seq: null,
    })),
  } satisfies Family;
}

const drawn = ({ rows }: { rows: TreeRow[] }) =>
  rows.map((row) => `${"  ".repeat(row.lane)}${row.key}`);

it("puts a fork below the job that it leaves, beside the jobs that follow", () => {
  const tree = treeOf(
    family([node("a", [job("a1", 1), job("a2", 3)]), node("b", [job("b1", 3)])], [["b", "a", 2]]),
  );
  expect(drawn(tree)).toEqual(["a", "a1", "  b", "  b1", "a2"]);
  expect(tree.lanes).toBe(2);
  expect(tree.rows.map(({ above, below }) => [above, below])).toEqual([
    [[], [0]],
    [[0], [0]],
    [[0], [0, 1]],
    [[0, 1], [0]],
    [[0], []],
  ]);
  expect(tree.rows[2]).toMatchObject({ kind: "session", from: 0, edge: { message: 2 } });
});

it("leads the line of a session on to its last fork", () => {
  const tree = treeOf(
    family(
      [node("a", [job("a1", 1)]), node("b", []), node("c", [])],
      [
        ["b", "a", 2],
        ["c", "a", 2],
      ],
    ),
  );
  expect(drawn(tree)).toEqual(["a", "a1", "  b", "  c"]);
  expect(tree.rows.map(({ below }) => below)).toEqual([[0], [0], [0], []]);
  expect(tree.rows[3]?.above).toEqual([0]);
});

it("puts a fork of nothing, or of what is left out, before the jobs", () => {
  const left = node("a", [job("a9", 17)], { jobs_left_out: 8 });
  const tree = treeOf(family([left, node("b", [])], [["b", "a", 0]]));
  expect(drawn(tree)).toEqual(["a", "a jobs", "  b", "a9"]);
  expect(tree.rows[1]).toMatchObject({ kind: "rest", text: "8 earlier jobs not shown" });
});

it("shows sessions alone on demand", () => {
  const nodes = [node("a", [job("a1", 1), job("a2", 3)]), node("b", [job("b1", 3)])];
  expect(drawn(treeOf(family(nodes, [["b", "a", 2]]), false))).toEqual(["a", "  b"]);
});

it("keeps a long chain of forks narrow", () => {
  const nodes = Array.from({ length: 100 }, (_, at) => node(`n${at}`, [job(`j${at}`, 1 + 2 * at)]));
  const edges = nodes
    .slice(1)
    .map(({ id }, at) => [id, `n${at}`, 2 * at + 2] as [string, string, number]);
  const tree = treeOf(family(nodes, edges));
  expect(tree.rows).toHaveLength(200);
  expect(tree.lanes).toBeLessThan(12);
});

it("lays out 500 sessions with their jobs", () => {
  const nodes = Array.from({ length: 500 }, (_, at) =>
    node(
      `n${at}`,
      Array.from({ length: 10 }, (_, place) => job(`j${at}-${place}`, 1 + 2 * place)),
    ),
  );
  const edges = nodes
    .slice(1)
    .map(({ id }, at) => [id, `n${at >> 1}`, 6] as [string, string, number]);
  const { rows } = treeOf(family(nodes, edges));
  expect(rows).toHaveLength(5_500);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(5_500);
});
