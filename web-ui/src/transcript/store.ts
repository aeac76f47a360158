/** The loaded part of a journal: a few windows without a gap between them, in bounded memory, with live events. */

import { fold, LiveText } from "./fold";
import type { Item } from "./items";
import type { JournalEvent, TextDelta } from "./journal";
import { WINDOW, type EventPage, type Place, type Source } from "./source";

/** The most events that are kept; windows at the far end are dropped, and loaded again when needed. */
export const MOST_EVENTS = 6 * WINDOW;

export interface Snapshot {
  items: readonly Item[];
  /** The numbers of the first and last loaded event; 0 when there is none. */
  firstSeq: number;
  lastSeq: number;
  /** The number of the last event that is known to exist. */
  total: number;
  hasBefore: boolean;
  hasAfter: boolean;
  isLoading: boolean;
  error: unknown;
}

const EMPTY: Snapshot = {
  items: [],
  firstSeq: 0,
  lastSeq: 0,
  total: 0,
  hasBefore: false,
  hasAfter: false,
  isLoading: true,
  error: null,
};

export class TranscriptStore {
  readonly source: Source;
  private events: JournalEvent[] = [];
  private readonly live = new LiveText();
  private state: Snapshot = EMPTY;
  private readonly listeners = new Set<() => void>();
  private loading: Promise<void> | null = null;
  private opened = 0;
  private planned = false;
  /** Whether the newest events are being watched: then the oldest are dropped for them, else they wait. */
  isFollowing = true;

  constructor(source: Source) {
    this.source = source;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  getSnapshot = (): Snapshot => this.state;

  /** Load the part around an event, or the end, in place of what is loaded. */
  async open(at: number | "end"): Promise<void> {
    const place: Place = at === "end" ? { before: Number.MAX_SAFE_INTEGER } : { around: at };
    this.opened += 1;
    const mine = this.opened;
    const known = this.state.total;
    this.loading = null;
    this.become({ isLoading: true, error: null });
    try {
      const page = await this.source.page(place);
      if (mine !== this.opened) return;
      this.events = page.events;
      this.settle({ hasBefore: page.hasBefore, hasAfter: page.hasAfter });
    } catch (error) {
      if (mine === this.opened) this.become({ isLoading: false, error });
      return;
    }
    // The job has begun meanwhile.
    if (this.events.length === 0 && this.state.total > known) await this.open(at);
  }

  /** Load what there is of a journal that was empty: windows continue only what is loaded. */
  private begin(): void {
    if (this.events.length === 0 && this.state.total > 0 && !this.state.isLoading) {
      void this.open("end");
    }
  }

  /** Load the window before what is loaded; does nothing while another one is loaded. */
  loadBefore(): Promise<void> {
    const first = this.events[0];
    if (first === undefined || !this.state.hasBefore) return Promise.resolve();
    return this.load({ before: first.seq }, (page) => {
      const joined = [...page.events, ...this.events];
      this.events = joined.slice(0, MOST_EVENTS);
      const hasDropped = joined.length > MOST_EVENTS;
      this.settle({ hasBefore: page.hasBefore, hasAfter: this.state.hasAfter || hasDropped });
    });
  }

  loadAfter(): Promise<void> {
    const last = this.events.at(-1);
    if (last === undefined || !this.state.hasAfter) return Promise.resolve();
    return this.load({ after: last.seq }, (page) => {
      const joined = [...this.events, ...page.events];
      this.events = joined.slice(-MOST_EVENTS);
      const hasDropped = joined.length > MOST_EVENTS;
      this.settle({ hasAfter: page.hasAfter, hasBefore: this.state.hasBefore || hasDropped });
    });
  }

  /** Take an event as it is recorded. */
  add(event: JournalEvent): void {
    this.live.see(event);
    const last = this.events.at(-1)?.seq ?? 0;
    if (event.seq <= last) return;
    const isNext = event.seq === last + 1 && !this.state.hasAfter && !this.state.isLoading;
    const hasRoom = this.isFollowing || this.events.length < MOST_EVENTS;
    if (isNext && hasRoom) this.events.push(event);
    this.state = { ...this.state, total: Math.max(this.state.total, event.seq) };
    this.begin();
    this.plan();
  }

  /** Take a piece of an answer that is arriving. */
  addText(delta: TextDelta): void {
    this.live.add(delta);
    this.plan();
  }

  /** Say how many events there are, when that is known from elsewhere. */
  note(total: number): void {
    if (total <= this.state.total) return;
    this.become({ total, hasAfter: total > this.state.lastSeq });
    this.begin();
  }

  /** Replace an event whose texts were cut by the whole one. */
  async expand(seq: number): Promise<void> {
    const whole = await this.source.whole(seq);
    const index = this.events.findIndex((event) => event.seq === seq);
    if (index < 0) return;
    this.events = this.events.with(index, { ...whole, cut: null });
    this.settle({}, `+${seq}`);
  }

  /** Show what has come, once for many events: with the next frame, or soon in a hidden tab. */
  private plan(): void {
    if (this.planned) return;
    this.planned = true;
    setTimeout(() => {
      this.planned = false;
      this.settle({});
    }, 16);
  }

  private load(place: Place, take: (page: EventPage) => void): Promise<void> {
    if (this.loading !== null) return this.loading;
    const mine = this.opened;
    const loading = this.source
      .page(place)
      .then((page) => {
        if (mine === this.opened) take(page);
      })
      .catch((error: unknown) => {
        if (mine === this.opened) this.become({ error });
      })
      .finally(() => {
        if (this.loading === loading) this.loading = null;
      });
    this.loading = loading;
    return loading;
  }

  private settle(known: Partial<Snapshot>, revision = ""): void {
    let { hasBefore, hasAfter } = { ...this.state, ...known };
    if (this.events.length > MOST_EVENTS) {
      this.events = this.events.slice(-MOST_EVENTS);
      hasBefore = true;
    }
    const [firstSeq, lastSeq] = [this.events[0]?.seq ?? 0, this.events.at(-1)?.seq ?? 0];
    const total = Math.max(this.state.total, lastSeq);
    hasAfter ||= total > lastSeq;
    const items = fold(this.events);
    if (revision) for (const item of items) item.revision += revision;
    const live = hasAfter ? null : this.live.item();
    if (live !== null) items.push(live);
    const isLoading = false;
    this.become({ items, firstSeq, lastSeq, total, hasBefore, hasAfter, isLoading, error: null });
  }

  private become(change: Partial<Snapshot>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }
}

/** The index of the item that shows an event; -1 when it is not loaded. */
export function indexOfSeq(items: readonly Item[], seq: number): number {
  const exact = items.findIndex((item) => item.seq === seq);
  if (exact >= 0) return exact;
  const inside = items.findIndex((item) => item.seq < seq && seq <= item.lastSeq);
  if (inside >= 0) return inside;
  // An event that shows nothing by itself: what comes after it.
  return items.findIndex((item) => item.seq > seq);
}
