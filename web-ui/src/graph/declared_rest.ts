/** What a run has not come to yet, as its workflow declares it. */

import { lastPart, type Phase } from "./phase";

/**
 * Return the phases of a run with those inside blocks and loops that have not begun. `declared` are the phases of the
 * definition that the run has.
 */
export function withDeclared(phases: readonly Phase[], declared: readonly Phase[]): Phase[] {
  const byName = new Map(declared.map((phase) => [lastPart(phase.path), phase]));
  return phases.map((phase) => {
    const plan = byName.get(lastPart(phase.path).replace(/(\[\d+\])+$/, ""));
    if (plan === undefined) return phase;
    const counts = phase.counts ?? plan.counts;
    return {
      ...phase,
      counts,
      isGroup: phase.isGroup || plan.isGroup,
      inside: inside(phase, plan),
    };
  });
}

function inside(phase: Phase, plan: Phase): Phase[] {
  if (phase.inside.length === 0) {
    return phase.status === "pending" ? pending(plan.inside, `${phase.path}/`) : [];
  }
  if (phase.inside.some(({ path }) => path.startsWith(`${phase.path}[`))) {
    // Each item or iteration has the phases of the block.
    return phase.inside.map((one) => ({ ...one, inside: withDeclared(one.inside, plan.inside) }));
  }
  return withDeclared(phase.inside, plan.inside);
}

function pending(declared: readonly Phase[], folder: string): Phase[] {
  return declared.map((phase) => {
    const path = folder + lastPart(phase.path);
    return {
      ...phase,
      path,
      status: "pending",
      note: null,
      dependsOn: phase.dependsOn.map((name) => folder + lastPart(name)),
      inside: pending(phase.inside, `${path}/`),
    };
  });
}
