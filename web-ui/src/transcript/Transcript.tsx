import "./transcript.css";

import {
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from "react";

import { messageOf } from "../api/problem";
import { useShortcuts } from "../shell/shortcuts";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { ActionsContext } from "./context";
import { FindBar } from "./FindBar";
import type { Item } from "./items";
import { ItemView } from "./ItemView";
import { findIn } from "./search_text";
import { indexOfSeq, type TranscriptStore } from "./store";
import { Toggles, TogglesContext } from "./toggles";
import { useWindows } from "./use_windows";

export interface TranscriptProps {
  store: TranscriptStore;
  /** The event to show; null for the end. Changing it jumps there. */
  at: { seq: number } | null;
  linkTo: (seq: number) => string;
  /** Numbers of failed events that are known beyond the loaded part. */
  errors?: readonly number[];
  isLive?: boolean;
  extra?: (item: Item) => ReactNode;
  /** Search beyond the loaded part: gives the number of an event, or null. */
  searchAll?: (words: string) => Promise<number | null>;
  toolbar?: ReactNode;
  onSeen?: (seq: number) => void;
}

/** A job's record as a conversation. */
export function Transcript(props: TranscriptProps) {
  const { store, at, linkTo, errors = [], isLive = false, extra, searchAll, toolbar } = props;
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot);
  const area = useRef<HTMLDivElement>(null);
  const { virtual, isFollowing, setFollowing, jump } = useWindows(store, snapshot, area);
  const [toggles] = useState(() => new Toggles());
  const [find, setFind] = useState<string | null>(null);
  const [current, setCurrent] = useState<number | null>(null);
  const { items } = snapshot;
  const itemAt = (seq: number) =>
    seq >= snapshot.firstSeq && seq <= snapshot.lastSeq
      ? items[indexOfSeq(items, seq)]?.seq
      : undefined;
  const marked = current === null ? undefined : itemAt(current);
  /** The event whose item gets the focus as soon as it is shown. */
  const wanted = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const item = area.current?.querySelector<HTMLElement>(`#event-${itemAt(wanted.current) ?? 0}`);
    if (item == null) return;
    wanted.current = null;
    item.focus({ preventScroll: true });
  });

  const go = (seq: number) => {
    setCurrent(seq);
    jump(seq);
  };

  const open = useEffectEvent(() => {
    if (at === null) void store.open("end");
    else go(at.seq);
  });
  useEffect(() => {
    // eslint-disable-next-line react-hooks/set-state-in-effect -- the address says where to look
    open();
  }, [store, at]);

  /** The places of the first and the last item that are seen. */
  const view = () => {
    const top = area.current?.scrollTop ?? 0;
    const bottom = top + (area.current?.clientHeight ?? 0);
    const at = (offset: number) => virtual.getVirtualItemForOffset(offset)?.index ?? 0;
    return [at(top + 2), at(bottom - 2)] as const;
  };

  /** Go to the next item of a kind, from the last one that was gone to or the top of the view; loads windows until there is one. */
  const step = async (
    isWanted: (item: Item) => boolean,
    direction: 1 | -1,
    known: readonly number[],
  ) => {
    const [first, last] = view();
    const place = current === null ? -1 : indexOfSeq(items, current);
    // From what was gone to last, unless it was scrolled away.
    const from = items[place >= first - 1 && place <= last ? place : first]?.seq ?? 0;
    for (let tries = 0; tries < 8; tries += 1) {
      const now = store.getSnapshot();
      const list = direction === 1 ? now.items : now.items.toReversed();
      const next = list.find((item) => isWanted(item) && (item.seq - from) * direction > 0);
      const isLoaded = (seq: number) => seq >= now.firstSeq && seq <= now.lastSeq;
      const far = (direction === 1 ? known : known.toReversed()).find(
        (seq) => (seq - from) * direction > 0 && !isLoaded(seq),
      );
      const found = next?.seq ?? far;
      if (found !== undefined) {
        go(found);
        // What can be done with it is then one Tab away.
        wanted.current = found;
        return;
      }
      if (!(direction === 1 ? now.hasAfter : now.hasBefore)) return;
      await (direction === 1 ? store.loadAfter() : store.loadBefore());
    }
  };

  const isTurn = (item: Item) => item.startsTurn || item.kind === "prompt";
  const isError = (item: Item) => item.isError;
  const group = "Transcript";
  useShortcuts([
    { keys: "j", label: "Next turn", group, run: () => void step(isTurn, 1, []) },
    { keys: "k", label: "Previous turn", group, run: () => void step(isTurn, -1, []) },
    { keys: "n", label: "Next error", group, run: () => void step(isError, 1, errors) },
    { keys: "p", label: "Previous error", group, run: () => void step(isError, -1, errors) },
    {
      keys: "f",
      label: "Find in the transcript",
      group,
      run: () => setFind((words) => words ?? ""),
    },
    { keys: "G", label: "Follow the end", group, run: () => setFollowing(true) },
    { keys: "g g", label: "Go to the beginning", group, run: () => go(1) },
  ]);

  const matches = useMemo(() => (find === null ? [] : findIn(items, find)), [items, find]);
  const actions = useMemo(
    () => ({
      source: store.source,
      expand: (seq: number) => store.expand(seq),
      linkTo,
      extra: extra ?? null,
      find: find ?? "",
    }),
    [store, linkTo, extra, find],
  );
  const found = useMemo(() => new Set(matches), [matches]);

  return (
    <ActionsContext value={actions}>
      <TogglesContext value={toggles}>
        <div className="flex min-h-0 flex-1 flex-col">
          <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-1.5 text-xs text-faint">
            <span data-testid="position">
              {snapshot.total === 0
                ? "no events"
                : `events ${snapshot.firstSeq.toLocaleString("en")} to ${snapshot.lastSeq.toLocaleString("en")} of ${snapshot.total.toLocaleString("en")}`}
            </span>
            {snapshot.isLoading && <span role="status">loading …</span>}
            {snapshot.error !== null && (
              <span role="alert" className="text-bad">
                {messageOf(snapshot.error)}
              </span>
            )}
            <span className="ml-auto" />
            {toolbar}
            <Button look="ghost" hint="f" onClick={() => setFind(find === null ? "" : null)}>
              Find
            </Button>
            <Button
              look="ghost"
              hint="G"
              aria-pressed={isFollowing}
              onClick={() => setFollowing(!isFollowing)}
            >
              {isLive ? (isFollowing ? "Following" : "Follow") : "End"}
            </Button>
          </div>
          {find !== null && (
            <FindBar
              words={find}
              matches={matches}
              current={current}
              onWords={setFind}
              onGo={go}
              onClose={() => setFind(null)}
              {...(searchAll && { searchAll })}
            />
          )}
          <div
            ref={area}
            data-testid="transcript"
            tabIndex={0}
            role="log"
            aria-label="Transcript"
            aria-live="off"
            className="relative min-h-0 flex-1 overflow-y-auto px-4 [overflow-anchor:none]"
          >
            <div className="relative mx-auto max-w-4xl" style={{ height: virtual.getTotalSize() }}>
              {virtual.getVirtualItems().map((row) => {
                const item = items[row.index];
                if (item === undefined) return null;
                return (
                  <div
                    key={row.key}
                    ref={virtual.measureElement}
                    data-index={row.index}
                    className={classes(
                      "absolute inset-x-0 top-0 rounded-md",
                      item.seq === marked && "outline-2 outline-accent",
                      found.has(item.seq) && "bg-wait-soft",
                    )}
                    style={{ transform: `translateY(${row.start}px)` }}
                  >
                    <ItemView item={item} />
                  </div>
                );
              })}
            </div>
          </div>
        </div>
      </TogglesContext>
    </ActionsContext>
  );
}
