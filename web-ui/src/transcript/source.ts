/** Where a transcript gets its events from: the API, or a file that was opened in the page. */

import type { JournalEvent } from "./journal";

/** How many events are loaded at once. */
export const WINDOW = 200;

export type Place = { after: number } | { before: number } | { around: number };

/** Events in order without gaps, and whether the journal has others around them. */
export interface EventPage {
  events: JournalEvent[];
  hasBefore: boolean;
  hasAfter: boolean;
}

export interface Source {
  /** Return up to `WINDOW` events at a place. A `before` beyond the end gives the last ones. */
  page(place: Place): Promise<EventPage>;
  /** Return an event with every text of it whole. */
  whole(seq: number): Promise<JournalEvent>;
  /** Return a body that is stored beside the journal. */
  blob(sha256: string): Promise<Blob>;
}

/** A journal that is all in memory. */
export class LocalSource implements Source {
  private readonly events: readonly JournalEvent[];

  constructor(events: readonly JournalEvent[]) {
    this.events = events;
  }

  page(place: Place): Promise<EventPage> {
    const start = this.startOf(place);
    const end = Math.min(start + WINDOW, this.endOf(place));
    return Promise.resolve({
      events: this.events.slice(start, end),
      hasBefore: start > 0,
      hasAfter: end < this.events.length,
    });
  }

  whole(seq: number): Promise<JournalEvent> {
    const event = this.events[this.indexAfter(seq - 1)];
    return event?.seq === seq
      ? Promise.resolve(event)
      : Promise.reject(new Error(`event ${seq} is not in the file`));
  }

  blob(sha256: string): Promise<Blob> {
    return Promise.reject(new Error(`the file does not contain the body ${sha256}`));
  }

  private startOf(place: Place): number {
    if ("after" in place) return this.indexAfter(place.after);
    if ("before" in place) return Math.max(0, this.indexAfter(place.before - 1) - WINDOW);
    const latest = Math.max(0, this.events.length - WINDOW);
    return Math.min(Math.max(0, this.indexAfter(place.around - 1) - WINDOW / 2), latest);
  }

  private endOf(place: Place): number {
    return "before" in place ? this.indexAfter(place.before - 1) : this.events.length;
  }

  /** The index of the first event whose number is above `seq`. */
  private indexAfter(seq: number): number {
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.events[middle]?.seq ?? 0) > seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
