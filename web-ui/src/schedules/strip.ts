/** Where slots stand on a strip of days. */

export interface Day {
  /** The day in the reader's time zone. */
  label: string;
  title: string;
  isToday: boolean;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Return the begin of the strip, in milliseconds: midnight of the reader, so many days ago. */
export function stripBegin(now: number, daysBack: number): number {
  const midnight = new Date(now);
  midnight.setHours(0, 0, 0, 0);
  midnight.setDate(midnight.getDate() - daysBack);
  return midnight.getTime();
}

/** Return the days of a strip. Days of a change of the clock have other lengths, so each is counted by the calendar. */
export function daysOf(begin: number, count: number, now: number): Day[] {
  const today = new Date(now).toDateString();
  return Array.from({ length: count }, (_, place) => {
    const day = new Date(begin);
    day.setDate(day.getDate() + place);
    return {
      label: day.toLocaleDateString(undefined, { weekday: "narrow", day: "numeric" }),
      title: day.toLocaleDateString(undefined, { dateStyle: "full" }),
      isToday: day.toDateString() === today,
    };
  });
}

/** Return where a time stands on a strip, from 0 to 1; null when it is outside. */
export function placeOf(at: string, begin: number, days: number): number | null {
  const place = (Date.parse(at) - begin) / (days * DAY_MS);
  return place >= 0 && place <= 1 ? place : null;
}

export interface Marked {
  due_at: string;
  tone: string;
}
/** Slots that stand too close to be told apart, as one mark. */
export interface Mark<T extends Marked> {
  at: number;
  slots: T[];
  tone: string;
}

/** The worst of several is what a mark shows. */
const WORST = ["missed", "failed", "lost", "running", "skipped", "completed", "planned"];

/** Join slots of one cell of the strip. */
export function marksOf<T extends Marked>(
  slots: readonly T[],
  begin: number,
  days: number,
  cells: number,
): Mark<T>[] {
  const marks = new Map<number, T[]>();
  for (const slot of slots) {
    const place = placeOf(slot.due_at, begin, days);
    if (place === null) continue;
    const cell = Math.min(cells - 1, Math.floor(place * cells));
    marks.set(cell, [...(marks.get(cell) ?? []), slot]);
  }
  return [...marks].map(([cell, found]) => ({
    at: (cell + 0.5) / cells,
    slots: found,
    tone: WORST.find((tone) => found.some((slot) => slot.tone === tone)) ?? "completed",
  }));
}
