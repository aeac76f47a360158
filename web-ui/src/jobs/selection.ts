/** Which jobs of a list are chosen: some of those shown, or all that the filter finds. */

export interface Selection {
  ids: ReadonlySet<string>;
  /** Also those that are not loaded. */
  isEverything: boolean;
}

export const NOTHING: Selection = { ids: new Set(), isEverything: false };

export function toggled(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, isEverything: false };
}

/** Choose all that are shown, or nothing when they are chosen already. */
export function toggledAll(selection: Selection, shown: readonly string[]): Selection {
  return isAllChosen(selection, shown) ? NOTHING : { ids: new Set(shown), isEverything: false };
}

export function isAllChosen(selection: Selection, shown: readonly string[]): boolean {
  return shown.length > 0 && shown.every((id) => selection.ids.has(id));
}

/** Jobs of a request for many: by their ids, or by a filter. */
export type BulkTarget = { jobs: string[] } | { q: string };

export function targetOf(selection: Selection, q: string): BulkTarget {
  return selection.isEverything ? { q } : { jobs: [...selection.ids] };
}
