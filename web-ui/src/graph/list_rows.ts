/** The rows of the list of phases: a tree as one list, with what is open. */

import type { Phase } from "./phase";

/** Items or iterations that are listed before a person asks for more. */
export const MOST_LISTED = 100;
/** Groups with more than this inside are closed at first. */
const MANY = 20;

export interface ListRow {
  /** The path of the phase; of the row that lists more, that of its group with ` …`. */
  id: string;
  /** Null in the row that lists more. */
  phase: Phase | null;
  level: number;
  /** Its place among those beside it, from 1, and how many these are. */
  place: number;
  size: number;
  parent: string | null;
  /** Null where there is nothing inside. */
  isOpen: boolean | null;
}

/** What a person opened, closed, and asked more of, by path. */
export interface Opened {
  open: ReadonlyMap<string, boolean>;
  limits: ReadonlyMap<string, number>;
}

/** Return the rows that are to be seen, in order. */
export function rowsOf(phases: readonly Phase[], opened: Opened): ListRow[] {
  return [...walk(phases, opened, 1, null)];
}

function* walk(
  phases: readonly Phase[],
  opened: Opened,
  level: number,
  parent: string | null,
): Generator<ListRow> {
  const limit = opened.limits.get(parent ?? "") ?? MOST_LISTED;
  const size = Math.min(phases.length, limit + 1);
  for (const [at, phase] of phases.slice(0, limit).entries()) {
    const isOpen = phase.inside.length === 0 ? null : isPhaseOpen(phase, opened);
    yield { id: phase.path, phase, level, place: at + 1, size, parent, isOpen };
    if (isOpen === true) yield* walk(phase.inside, opened, level + 1, phase.path);
  }
  if (phases.length > limit) {
    const id = `${parent ?? ""} …`;
    yield { id, phase: null, level, place: size, size, parent, isOpen: null };
  }
}

function isPhaseOpen(phase: Phase, { open }: Opened): boolean {
  return open.get(phase.path) ?? phase.inside.length <= MANY;
}

/** What a key does to the row that has the focus. */
export type ListMove = { focus: string } | { open: string; isOpen: boolean } | null;

/** Return what a key does, as in every tree: up and down, right opens or goes in, left closes or goes out. */
export function listMove(rows: readonly ListRow[], from: string, key: string): ListMove {
  const at = rows.findIndex(({ id }) => id === from);
  const row = rows[at];
  if (row === undefined) return null;
  const focus = (to: ListRow | undefined) => (to === undefined ? null : { focus: to.id });
  switch (key) {
    case "ArrowDown":
      return focus(rows[at + 1]);
    case "ArrowUp":
      return focus(rows[at - 1]);
    case "Home":
      return focus(rows[0]);
    case "End":
      return focus(rows.at(-1));
    case "ArrowRight":
      if (row.isOpen === false) return { open: from, isOpen: true };
      return row.isOpen === true ? focus(rows[at + 1]) : null;
    case "ArrowLeft":
      if (row.isOpen === true) return { open: from, isOpen: false };
      return row.parent === null ? null : { focus: row.parent };
    default:
      return null;
  }
}
