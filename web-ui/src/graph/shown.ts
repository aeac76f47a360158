/** Which items and iterations the graph draws: it has room for a few, the list has all. */

import type { Phase } from "./phase";

/** Items without phases inside that are drawn at most. */
export const MOST_DRAWN = 6;

/** What is drawn of a group, and what is not. */
export interface Shown {
  drawn: Phase[];
  /** The place of the one item or iteration that is drawn, from 0; null where several are. */
  place: number | null;
  /** How many can be chosen from, or are left out. */
  count: number;
}

/** Return what is drawn inside a phase. `chosen` are places by the path of their group. */
export function shownOf(phase: Phase, chosen: ReadonlyMap<string, number>): Shown {
  const { inside } = phase;
  const instances = inside.filter(({ path }) => path.startsWith(`${phase.path}[`));
  if (instances.length === 0) return { drawn: inside, place: null, count: 0 };
  if (instances.some((one) => one.inside.length > 0)) {
    const place = Math.min(chosen.get(phase.path) ?? telling(instances), instances.length - 1);
    const one = instances[place];
    if (one === undefined) return { drawn: [], place, count: instances.length };
    const isNested = one.inside.some(({ path }) => path.startsWith(`${one.path}[`));
    return { drawn: isNested ? [one] : one.inside, place, count: instances.length };
  }
  const first = Math.max(0, Math.min(telling(instances), inside.length - MOST_DRAWN));
  const drawn = inside.slice(first, first + MOST_DRAWN);
  return { drawn, place: null, count: inside.length - drawn.length };
}

const TELLING = ["running", "paused", "failed", "waiting"];

/** The place of what says most: what is worked on, what waits or failed, else the last. */
function telling(phases: readonly Phase[]): number {
  for (const status of TELLING) {
    const place = phases.findIndex((phase) => phase.status === status);
    if (place >= 0) return place;
  }
  return phases.length - 1;
}
