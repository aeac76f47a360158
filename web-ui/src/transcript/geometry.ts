/**
 * Where events are in a scroll area that is higher than what is loaded. The loaded part has its real height; the
 * events before and after it take the same height each. Browsers allow an element about 33 million pixels, so in
 * a huge journal each event that is not loaded takes less.
 */

export const EVENT_PX = 36;
/** Well below what browsers allow, together with the loaded part. */
export const MOST_PX = 8_000_000;

export interface Loaded {
  firstSeq: number;
  lastSeq: number;
  total: number;
}

/** How high an event is that is not loaded. */
export function eventHeight(total: number): number {
  return total * EVENT_PX <= MOST_PX ? EVENT_PX : MOST_PX / total;
}

/** The heights that stand for the events before and after the loaded part. */
export function spacers({ firstSeq, lastSeq, total }: Loaded): { before: number; after: number } {
  const height = eventHeight(total);
  return {
    before: Math.round(Math.max(0, firstSeq - 1) * height),
    after: Math.round(Math.max(0, total - lastSeq) * height),
  };
}

/** The event that a place outside the loaded part stands for; null when the place is inside. */
export function seqAt(offset: number, loadedHeight: number, loaded: Loaded): number | null {
  const { before } = spacers(loaded);
  const height = eventHeight(loaded.total);
  if (offset < before) return clamp(1 + Math.floor(offset / height), loaded.total);
  const beyond = offset - before - loadedHeight;
  if (beyond < 0 || loaded.lastSeq >= loaded.total) return null;
  return clamp(loaded.lastSeq + 1 + Math.floor(beyond / height), loaded.total);
}

function clamp(seq: number, total: number): number {
  return Math.min(Math.max(seq, 1), Math.max(total, 1));
}
