import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import {
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useRef,
  useState,
  type RefObject,
} from "react";

import { seqAt, spacers } from "./geometry";
import { WINDOW } from "./source";
import { indexOfSeq, type Snapshot, type TranscriptStore } from "./store";

/** How long the scroll bar rests before the part it points at is loaded. */
const REST_MS = 120;
/** Loading starts so many heights of the view before the end of what is loaded. */
const AHEAD = 1.5;
const BOTTOM_PX = 48;
const TYPICAL_PX = 56;

export interface Windows {
  virtual: Virtualizer<HTMLDivElement, Element>;
  isFollowing: boolean;
  setFollowing: (on: boolean) => void;
  /** Show an event at the top of the view; loads the part around it when needed. */
  jump: (seq: number) => void;
}

/**
 * Shows a part of a journal in a scroll area that stands for all of it. Near the view places are exact; far from
 * it they are proportional. What is read stays where it is while windows come and go around it.
 */
export function useWindows(
  store: TranscriptStore,
  snapshot: Snapshot,
  area: RefObject<HTMLDivElement | null>,
): Windows {
  const { items } = snapshot;
  const { before, after } = spacers(snapshot);
  // eslint-disable-next-line react-hooks/incompatible-library -- rows are memoised by their revision
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => area.current,
    estimateSize: () => TYPICAL_PX,
    getItemKey: (index) => items[index]?.key ?? index,
    overscan: 6,
    paddingStart: before,
    paddingEnd: after,
  });
  const [isFollowing, setState] = useState(true);
  const [jumps, setJumps] = useState(0);
  const anchor = useRef<{ seq: number; key: string; offset: number } | null>(null);
  const target = useRef<number | null>(null);
  const ours = useRef(-1);
  const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  // The virtualizer moves the view for rows above it that turn out higher than estimated. At the end that would end
  // there too, short of the end, and look like a person who scrolled.
  const isAtEnd = isFollowing && !snapshot.hasAfter;
  useLayoutEffect(() => {
    virtual.shouldAdjustScrollPositionOnItemSizeChange = isAtEnd ? () => false : undefined;
  }, [virtual, isAtEnd]);

  const setFollowing = (on: boolean) => {
    store.isFollowing = on;
    setState(on);
    if (!on) return;
    anchor.current = null;
    target.current = null;
    if (snapshot.hasAfter) void store.open("end");
  };

  const scrollTo = (top: number) => {
    const element = area.current;
    if (element === null) return;
    element.scrollTop = top;
    ours.current = element.scrollTop;
  };

  const jump = (seq: number) => {
    store.isFollowing = false;
    setState(false);
    target.current = seq;
    const isLoaded = seq >= snapshot.firstSeq && seq <= snapshot.lastSeq;
    if (isLoaded) setJumps(jumps + 1);
    else void store.open(seq);
  };

  /** Put the view where it belongs after the items have changed: at the target, the end, or what was read. */
  const place = useEffectEvent(() => {
    const element = area.current;
    if (element === null || items.length === 0) return;
    if (target.current !== null) {
      const index = indexOfSeq(items, target.current);
      if (index < 0) return;
      anchor.current = null;
      virtual.scrollToIndex(index, { align: "start" });
      ours.current = element.scrollTop;
      return;
    }
    if (isFollowing && !snapshot.hasAfter) {
      scrollTo(element.scrollHeight);
      return;
    }
    const known = anchor.current;
    if (known === null) return;
    const same = items.findIndex((item) => item.key === known.key);
    const index = same >= 0 ? same : indexOfSeq(items, known.seq);
    const start = virtual.measurementsCache[index]?.start;
    if (start !== undefined && Math.abs(start - known.offset - element.scrollTop) > 1) {
      scrollTo(start - known.offset);
    }
  });

  /** Remember what is read, load what comes next, and follow or stop following. */
  const see = useEffectEvent(() => {
    const element = area.current;
    if (element === null || items.length === 0) return;
    const top = element.scrollTop;
    const first = virtual.getVirtualItemForOffset(top);
    const item = first === undefined ? undefined : items[first.index];
    const bottom = top + element.clientHeight;
    const isOurs = Math.abs(top - ours.current) <= 2;
    if (first !== undefined && item !== undefined && top >= before) {
      anchor.current = { seq: item.seq, key: item.key, offset: first.start - top };
    }
    if (!isOurs) {
      target.current = null;
      const end = virtual.getTotalSize() - after;
      // Events that have just come are loaded in a moment: whoever was at the end still is.
      const isAtEnd = bottom >= end - BOTTOM_PX && snapshot.total - snapshot.lastSeq < WINDOW;
      if (isAtEnd !== isFollowing) {
        store.isFollowing = isAtEnd;
        setState(isAtEnd);
      }
    }
    clearTimeout(rest.current);
    const height = virtual.getTotalSize() - before - after;
    const outside = bottom < before || top > before + height;
    const wanted = outside ? seqAt(Math.max(top, 0), height, snapshot) : null;
    if (wanted !== null) {
      rest.current = setTimeout(() => {
        target.current = wanted;
        void store.open(wanted);
      }, REST_MS);
      return;
    }
    const ahead = element.clientHeight * AHEAD;
    if (snapshot.hasBefore && top < before + ahead) void store.loadBefore();
    else if (snapshot.hasAfter && bottom > before + height - ahead) void store.loadAfter();
  });

  useLayoutEffect(() => {
    place();
  }, [items, before, after, jumps]);

  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    const scrolled = () => see();
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      element.removeEventListener("scroll", scrolled);
      clearTimeout(rest.current);
    };
  }, [area]);

  // A window may be shorter than the view, and events may have come before the stream followed the job: look again.
  useEffect(() => {
    const frame = requestAnimationFrame(() => see());
    return () => cancelAnimationFrame(frame);
  }, [items, snapshot.hasAfter]);

  /** A view that follows stays at the end. */
  const stay = useEffectEvent(() => {
    const element = area.current;
    if (!isFollowing || target.current !== null || element === null || snapshot.hasAfter) return;
    scrollTo(element.scrollHeight);
  });

  // Rows are measured after they are shown.
  const size = virtual.getTotalSize();
  useLayoutEffect(() => {
    stay();
  }, [size, isFollowing, snapshot.hasAfter]);

  // What comes above or below the view, as the timeline does, makes it lower.
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => stay());
    observer.observe(element);
    return () => observer.disconnect();
  }, [area]);

  return { virtual, isFollowing, setFollowing, jump };
}
