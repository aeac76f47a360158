import { expect, it } from "vitest";

import { eventHeight, MOST_PX, seqAt, spacers } from "./geometry";
import type { JournalEvent } from "./journal";
import { LocalSource, WINDOW, type Place } from "./source";
import { indexOfSeq, MOST_EVENTS, TranscriptStore } from "./store";

function said(seq: number): JournalEvent {
  return { type: "assistant", seq, epoch: 1, content: `text ${seq}`, turn: seq };
}

function journal(length: number): JournalEvent[] {
  return Array.from({ length }, (_, place) => said(place + 1));
}

/** A journal whose pages arrive when the test says so. */
class SlowSource extends LocalSource {
  waiting: (() => void)[] = [];
  override async page(place: Place) {
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    return super.page(place);
  }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

it("opens at the end, and around any event", async () => {
  const store = new TranscriptStore(new LocalSource(journal(100_000)));
  await store.open("end");
  expect(store.getSnapshot()).toMatchObject({
    firstSeq: 99_801,
    lastSeq: 100_000,
    hasAfter: false,
  });
  await store.open(50_000);
  const { items, firstSeq, lastSeq, hasBefore, hasAfter, total } = store.getSnapshot();
  expect(lastSeq - firstSeq + 1).toBe(WINDOW);
  expect(indexOfSeq(items, 50_000)).toBeGreaterThan(0);
  expect({ hasBefore, hasAfter, total }).toEqual({
    hasBefore: true,
    hasAfter: true,
    total: 100_000,
  });
});

it("loads what came before the stream followed a job that had no events yet", async () => {
  const events: JournalEvent[] = [];
  const store = new TranscriptStore(new LocalSource(events));
  await store.open("end");
  events.push(...journal(7));
  store.note(7);
  await settled();
  expect(store.getSnapshot()).toMatchObject({ firstSeq: 1, lastSeq: 7, hasAfter: false });
});

it("loads them too where the stream is heard before the first page, which has nothing", async () => {
  const events: JournalEvent[] = [];
  const source = new SlowSource(events);
  const store = new TranscriptStore(source);
  const opening = store.open("end");
  source.page = () => Promise.resolve({ events: [...events], hasBefore: false, hasAfter: false });
  const empty = source.waiting.shift();
  store.note(3);
  empty?.();
  await opening;
  events.push(...journal(3));
  store.add(said(4));
  await settled();
  expect(store.getSnapshot()).toMatchObject({ firstSeq: 1, lastSeq: 3, total: 4, hasAfter: true });
});

it("joins windows without a gap and drops far ones", async () => {
  const store = new TranscriptStore(new LocalSource(journal(5_000)));
  await store.open("end");
  for (let round = 0; round < 10; round += 1) await store.loadBefore();
  const { items, firstSeq, lastSeq, hasAfter } = store.getSnapshot();
  expect(items).toHaveLength(MOST_EVENTS);
  expect(items.map((item) => item.seq)).toEqual(
    Array.from({ length: MOST_EVENTS }, (_, place) => firstSeq + place),
  );
  expect(lastSeq).toBeLessThan(5_000);
  expect(hasAfter).toBe(true);
  while (store.getSnapshot().hasAfter) await store.loadAfter();
  expect(store.getSnapshot()).toMatchObject({ lastSeq: 5_000, hasBefore: true });
});

it("appends live events once and in order", async () => {
  const store = new TranscriptStore(new LocalSource(journal(10)));
  await store.open("end");
  for (const seq of [11, 11, 12, 5]) store.add(said(seq));
  await settled();
  expect(store.getSnapshot().items.map((item) => item.seq)).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
  ]);
});

it("loads what it missed instead of leaving a hole", async () => {
  const behind = new TranscriptStore(new LocalSource(journal(15)));
  await behind.open("end");
  behind.add(said(18));
  await settled();
  expect(behind.getSnapshot()).toMatchObject({ lastSeq: 15, total: 18, hasAfter: true });
});

it("counts events that arrive while a window is loading", async () => {
  const source = new SlowSource(journal(10));
  const store = new TranscriptStore(source);
  const opening = store.open("end");
  store.add(said(11));
  source.waiting[0]?.();
  await opening;
  await settled();
  expect(store.getSnapshot()).toMatchObject({ lastSeq: 10, total: 11, hasAfter: true });
});

it("shows the place that was asked for last when answers overtake each other", async () => {
  const source = new SlowSource(journal(5_000));
  const store = new TranscriptStore(source);
  const first = store.open(100);
  const second = store.open(4_000);
  source.waiting[1]?.();
  await second;
  source.waiting[0]?.();
  await first;
  expect(indexOfSeq(store.getSnapshot().items, 4_000)).toBeGreaterThan(0);
});

it("keeps what is read when live events come and nobody follows", async () => {
  const store = new TranscriptStore(new LocalSource(journal(MOST_EVENTS)));
  await store.open("end");
  while (store.getSnapshot().hasBefore) await store.loadBefore();
  store.isFollowing = false;
  store.add(said(MOST_EVENTS + 1));
  await settled();
  expect(store.getSnapshot()).toMatchObject({
    firstSeq: 1,
    hasAfter: true,
    total: MOST_EVENTS + 1,
  });
});

it("replaces a cut event by the whole one", async () => {
  const cut = { ...said(2), cut: [{ field: "content", size: 9_000, url: "" }] };
  const store = new TranscriptStore(new LocalSource([said(1), cut, said(3)]));
  await store.open("end");
  const before = store.getSnapshot().items[1]?.revision;
  await store.expand(2);
  const item = store.getSnapshot().items[1];
  expect(item?.kind === "answer" && item.event.cut).toBeNull();
  expect(item?.revision).not.toBe(before);
});

it("never makes the page higher than browsers allow, and maps every place to an event", () => {
  for (const total of [100, 100_000, 50_000_000]) {
    const loaded = { firstSeq: Math.ceil(total / 2), lastSeq: Math.ceil(total / 2) + 9, total };
    const { before, after } = spacers(loaded);
    expect(before + after).toBeLessThanOrEqual(MOST_PX);
    expect(seqAt(0, 400, loaded)).toBe(1);
    expect(seqAt(before + 10, 400, loaded)).toBeNull();
    expect(seqAt(before + 400 + after, 400, loaded)).toBe(total);
    expect(eventHeight(total)).toBeGreaterThan(0);
  }
});
