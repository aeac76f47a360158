/** The phases of a workflow, from its definition. */

import type { Schemas } from "../api/types";
import type { Counts, Phase } from "./phase";

export type Declared = Schemas["Phase"];

/** Return the phases that a workflow declares. */
export function phasesOfDefinition(declared: readonly Declared[], folder = ""): Phase[] {
  return declared.map((phase) => {
    const path = folder + phase.name;
    const { action } = phase;
    const inside = action.kind === "block" ? phasesOfDefinition(action.phases, `${path}/`) : [];
    return {
      path,
      name: phase.label ?? phase.name,
      kind: action.kind,
      does: doesOf(action),
      status: null,
      isLost: false,
      note: phase.when === null ? null : `when ${phase.when}`,
      seconds: null,
      growsFrom: null,
      cost: null,
      dependsOn: phase.depends_on.map((name) => folder + name),
      isGroup: inside.length > 0 || phase.loop !== null || phase.for_each !== null,
      counts: countsOf(phase),
      inside,
    };
  });
}

/** Return a declared phase by its path; null when there is none. */
export function findDeclared(declared: readonly Declared[], path: string): Declared | null {
  const [name, ...rest] = path.split("/");
  const phase = declared.find((one) => one.name === name);
  if (phase === undefined || rest.length === 0) return phase ?? null;
  return phase.action.kind === "block" ? findDeclared(phase.action.phases, rest.join("/")) : null;
}

function countsOf(phase: Declared): Counts | null {
  const none = { done: 0, failed: 0, open: 0 };
  if (phase.for_each !== null) return { noun: "item", total: null, ...none };
  if (phase.loop !== null) return { noun: "iteration", total: phase.loop.max_iterations, ...none };
  return null;
}

function doesOf(action: Declared["action"]): string | null {
  switch (action.kind) {
    case "agent":
      return action.agent;
    case "command":
      return action.language;
    case "workflow":
      return action.workflow;
    case "gate":
      return action.gate;
    case "wait":
      return action.event ?? action.duration ?? action.until;
    case "block":
      return null;
  }
}
