import { expect, it } from "vitest";

import type { Schemas } from "../api/types";
import { withDeclared } from "./declared_rest";
import { findDeclared, phasesOfDefinition } from "./from_definition";
import { phasesOfRun as phasesAsOf, type NodeRow } from "./from_run";
import { listMove, MOST_LISTED, rowsOf, type Opened } from "./list_rows";
import { countsText, findPhase, type Phase } from "./phase";
import { MOST_DRAWN, shownOf } from "./shown";

function node(path: string, given: Partial<NodeRow> = {}): NodeRow {
  return {
    path,
    status: "succeeded",
    kind: "agent",
    does: "writer",
    label: null,
    total: null,
    depends_on: [],
    iteration: null,
    item: null,
    attempt: 1,
    began_at: null,
    ended_at: null,
    duration_seconds: null,
    cost_usd: 0,
    job_id: null,
    job_status: null,
    lost: null,
    child_run_id: null,
    inbox_item_id: null,
    exit_code: null,
    error: null,
    skip_cause: null,
    message: null,
    kept_from: null,
    waits_for: null,
    attempts: [],
    nodes: [],
    ...given,
  };
}

type Action = Schemas["Phase"]["action"];

function declared(name: string, action: Action, given: Partial<Schemas["Phase"]> = {}) {
  return {
    name,
    action,
    label: null,
    depends_on: [],
    for_each: null,
    loop: null,
    messages: { on_start: null, on_success: null, on_failure: null },
    on_failure: "fail",
    retries: 0,
    timeout: null,
    trigger_rule: "all_success",
    untrusted: false,
    when: null,
    ...given,
  } satisfies Schemas["Phase"];
}

const WAIT: Action = { kind: "wait", duration: "5m", until: null, event: null };
const AS_OF = 5_000;
const phasesOfRun = (nodes: NodeRow[]) => phasesAsOf(nodes, AS_OF);
const NOTHING: Opened = { open: new Map(), limits: new Map() };

it("names what phases wait for by their paths", () => {
  const [, loop] = phasesOfRun([
    node("guard"),
    node("build", {
      kind: "block",
      total: 3,
      depends_on: ["guard"],
      nodes: [
        node("build[1]", {
          iteration: 1,
          depends_on: ["guard"],
          kind: "block",
          nodes: [node("build[1]/plan"), node("build[1]/ask", { depends_on: ["plan"] })],
        }),
        node("build:until[1]", { kind: "until", iteration: 1 }),
        node("build[2]", { iteration: 2, depends_on: ["guard"], kind: "block" }),
      ],
    }),
  ]);
  expect(loop?.dependsOn).toEqual(["guard"]);
  expect(loop?.inside.map(({ dependsOn }) => dependsOn)).toEqual([
    [],
    ["build[1]"],
    ["build:until[1]"],
  ]);
  expect(loop?.inside[0]?.inside[1]?.dependsOn).toEqual(["build[1]/plan"]);
});

it("counts the items and iterations of a group", () => {
  const statuses = ["succeeded", "skipped", "failed", "running"];
  const items = statuses.map((status, item) => node(`each[${item}]`, { status, item }));
  const [each] = phasesOfRun([node("each", { total: 9, nodes: items })]);
  expect(each?.counts).toEqual({ noun: "item", total: 9, done: 2, failed: 1, open: 1 });
  expect(countsText(each?.counts ?? fail())).toBe("2 of 9 done, 1 failed, 1 open");

  const turns = [1, 2].map((iteration) => node(`loop[${iteration}]`, { iteration }));
  const [loop] = phasesOfRun([node("loop", { total: 3, nodes: turns })]);
  expect(countsText(loop?.counts ?? fail())).toBe("iteration 2 of at most 3");
  const [pending] = phasesOfRun([node("loop", { total: 3 })]);
  expect(countsText(pending?.counts ?? fail())).toBe("at most 3 iterations");
});

it("says why a phase waits, failed or was skipped", () => {
  const wait = { for: "person", what: "the plan", until: null, item_id: null, next: null };
  const notes = phasesOfRun([
    node("a", { waits_for: wait }),
    node("a", { waits_for: { ...wait, item_id: "ask-1" } }),
    node("a", { waits_for: { ...wait, for: "event" } }),
    node("b", { error: "exit code 3" }),
    node("c", { skip_cause: "condition" }),
    node("d", { lost: { since: "", next: "", exact: true } as unknown as NodeRow["lost"] }),
  ]).map(({ note }) => note);
  expect(notes).toEqual([
    "the plan",
    "asks: the plan",
    "waits for the plan",
    "exit code 3",
    "its condition is false",
    "its worker is gone",
  ]);
});

it("lets the time of a phase grow while it is worked on", () => {
  const grows = phasesOfRun([
    node("a", { status: "running", job_status: "running" }),
    node("b", { status: "paused" }),
    node("c", { status: "running", job_status: "suspended" }),
    node("d", { status: "succeeded", job_status: "completed" }),
  ]).map(({ growsFrom }) => growsFrom);
  expect(grows).toEqual([AS_OF, AS_OF, null, null]);
});

it("draws the iteration that says most, or the chosen one, without a frame of its own", () => {
  const iterations = ["succeeded", "running", "pending"].map((status, at) =>
    node(`loop[${at + 1}]`, {
      status,
      iteration: at + 1,
      nodes: [node(`loop[${at + 1}]/plan`)],
    }),
  );
  const [loop] = phasesOfRun([node("loop", { total: 3, kind: "block", nodes: iterations })]);
  if (loop === undefined) throw new Error("no loop");
  expect(shownOf(loop, new Map())).toMatchObject({ place: 1, count: 3 });
  expect(shownOf(loop, new Map()).drawn.map(({ path }) => path)).toEqual(["loop[2]/plan"]);
  const chosen = shownOf(loop, new Map([["loop", 0]]));
  expect(chosen.drawn.map(({ path }) => path)).toEqual(["loop[1]/plan"]);
});

it("draws a few of many items, those that are worked on among them", () => {
  const items = Array.from({ length: 40 }, (_, item) =>
    node(`each[${item}]`, { item, status: item === 20 ? "running" : "succeeded" }),
  );
  const [each] = phasesOfRun([node("each", { total: 40, nodes: items })]);
  const { drawn, place, count } = shownOf(each ?? fail(), new Map());
  expect(drawn).toHaveLength(MOST_DRAWN);
  expect(drawn.map(({ path }) => path)).toContain("each[20]");
  expect(place).toBeNull();
  expect(count).toBe(40 - MOST_DRAWN);
});

it("shows a definition with its groups", () => {
  const block = declared(
    "build",
    {
      kind: "block",
      phases: [declared("plan", WAIT), declared("ask", WAIT, { depends_on: ["plan"] })],
    },
    {
      loop: {
        max_iterations: 3,
        until: "x",
        until_command: null,
        fresh_context: false,
        on_exhausted: "fail",
      },
    },
  );
  const phases = phasesOfDefinition([block]);
  expect(findPhase(phases, "build/ask")?.dependsOn).toEqual(["build/plan"]);
  expect(phases[0]?.counts).toMatchObject({ noun: "iteration", total: 3 });
  expect(findDeclared([block], "build/ask")?.name).toBe("ask");
  expect(findDeclared([block], "build/nobody")).toBeNull();
});

it("adds what is inside of groups that have not begun", () => {
  const plan = phasesOfDefinition([
    declared("outer", {
      kind: "block",
      phases: [
        declared("first", WAIT),
        declared(
          "inner",
          { kind: "block", phases: [declared("leaf", WAIT)] },
          { depends_on: ["first"] },
        ),
      ],
    }),
  ]);
  const run = phasesOfRun([
    node("outer", {
      kind: "block",
      total: 2,
      nodes: [
        node("outer[1]", {
          kind: "block",
          iteration: 1,
          nodes: [
            node("outer[1]/first"),
            node("outer[1]/inner", { kind: "block", status: "pending", depends_on: ["first"] }),
          ],
        }),
      ],
    }),
  ]);
  const leaf = findPhase(withDeclared(run, plan), "outer[1]/inner/leaf");
  expect(leaf).toMatchObject({ status: "pending", kind: "wait" });
});

it("lists phases as a tree whose groups open and close", () => {
  const [group] = phasesOfRun([
    node("each", { total: 2, nodes: [node("each[0]", { item: 0 }), node("each[1]", { item: 1 })] }),
  ]);
  const phases: Phase[] = [group ?? fail(), ...phasesOfRun([node("after")])];
  const ids = (opened: Opened) => rowsOf(phases, opened).map(({ id, level }) => `${id} ${level}`);
  expect(ids(NOTHING)).toEqual(["each 1", "each[0] 2", "each[1] 2", "after 1"]);
  expect(ids({ ...NOTHING, open: new Map([["each", false]]) })).toEqual(["each 1", "after 1"]);

  const rows = rowsOf(phases, NOTHING);
  expect(listMove(rows, "each", "ArrowRight")).toEqual({ focus: "each[0]" });
  expect(listMove(rows, "each[1]", "ArrowDown")).toEqual({ focus: "after" });
  expect(listMove(rows, "each[1]", "ArrowLeft")).toEqual({ focus: "each" });
  expect(listMove(rows, "each", "ArrowLeft")).toEqual({ open: "each", isOpen: false });
  expect(listMove(rows, "after", "ArrowDown")).toBeNull();
  expect(listMove(rows, "after", "Home")).toEqual({ focus: "each" });
});

it("lists many items on demand", () => {
  const items = Array.from({ length: 250 }, (_, item) => node(`each[${item}]`, { item }));
  const phases = phasesOfRun([node("each", { total: 250, nodes: items })]);
  expect(rowsOf(phases, NOTHING)).toHaveLength(1);
  const open = new Map([["each", true]]);
  expect(rowsOf(phases, { ...NOTHING, open })).toHaveLength(1 + MOST_LISTED + 1);
  const limits = new Map([["each", 300]]);
  expect(rowsOf(phases, { open, limits })).toHaveLength(251);
});

function fail(): never {
  throw new Error("it is missing");
}
