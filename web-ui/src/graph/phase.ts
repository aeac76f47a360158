/** Phases as the graph and the list show them: of a run with what happened, of a workflow as it is declared. */

export interface Phase {
  /** Names it in its run: `plan`, `build[2]/review`. */
  path: string;
  name: string;
  /** `agent`, `command`, `workflow`, `gate`, `wait`, `block` or `until`. */
  kind: string;
  /** The agent, the language, the workflow or the event. */
  does: string | null;
  /** Null in a workflow that does not run. */
  status: string | null;
  /** Whether its worker is gone. */
  isLost: boolean;
  /** What it waits for, why it failed, or what it was declared with: one line. */
  note: string | null;
  seconds: number | null;
  /** Since when the seconds grow, in milliseconds; null when they do not. */
  growsFrom: number | null;
  cost: number | null;
  /** The paths of the phases beside it that it waits for. */
  dependsOn: string[];
  /** Whether it holds others: a block, a loop or a phase for each item. */
  isGroup: boolean;
  /** How often it runs: of a loop or of `for_each`; null for a phase that runs once. */
  counts: Counts | null;
  inside: Phase[];
}

export interface Counts {
  noun: "iteration" | "item";
  /** Items, or iterations at most; null when that is not known yet. */
  total: number | null;
  done: number;
  failed: number;
  /** Those that have begun and not ended. */
  open: number;
}

/** Yield the phases and those inside them, in order. */
export function* everyPhase(phases: readonly Phase[]): Generator<Phase> {
  for (const phase of phases) {
    yield phase;
    yield* everyPhase(phase.inside);
  }
}

/** Return a phase by its path; null when there is none. */
export function findPhase(phases: readonly Phase[], path: string): Phase | null {
  for (const phase of everyPhase(phases)) if (phase.path === path) return phase;
  return null;
}

/** Return the name of a phase in its path, with its item and iteration: `review[2]` of `build/review[2]`. */
export function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Return how a path begins for everything beside the phase: `build[2]/` of `build[2]/review`. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

/** Say how far a loop or a phase for each item is. */
export function countsText({ noun, total, done, failed, open }: Counts): string {
  const begun = done + failed + open;
  if (noun === "iteration") {
    const most = total === null ? "" : `at most ${total}`;
    if (begun === 0) return most ? `${most} iterations` : "a loop";
    return most ? `iteration ${begun} of ${most}` : `iteration ${begun}`;
  }
  if (begun === 0 && total === null) return "for each item";
  const parts = [total === null ? `${done} done` : `${done} of ${total} done`];
  if (failed > 0) parts.push(`${failed} failed`);
  if (open > 0) parts.push(`${open} open`);
  return parts.join(", ");
}

/** The same in few letters, for the heading of a group. */
export function shortCountsText(counts: Counts): string {
  const { noun, total, done, failed, open } = counts;
  const begun = done + failed + open;
  if (noun === "item") return countsText(counts);
  if (begun === 0) return total === null ? "loop" : `loop, at most ${total}`;
  return total === null ? `loop ${begun}` : `loop ${begun}/${total}`;
}
