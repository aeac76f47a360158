/** The live stream in React: who is told what, and which queries are fetched again. */

import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import {
  createContext,
  use,
  useEffect,
  useEffectEvent,
  useSyncExternalStore,
  type ReactNode,
} from "react";

import type { LiveHub } from "./hub";
import { refetcherOf } from "./refetch";

/** Null in pages without a daemon, such as exports. */
const HubContext = createContext<LiveHub | null>(null);
/** Lists whose changes every page hears of. */
const LISTS = ["jobs", "inbox", "runs", "sessions", "schedules", "agents"];

/** Keeps the stream open while the page is shown, and queries with `meta.live` current. */
export function LiveProvider({ hub, children }: { hub: LiveHub; children: ReactNode }) {
  const client = useQueryClient();
  useEffect(() => {
    const stopRefetching = keepCurrent(hub, client);
    const unfollow = LISTS.map((topic) => hub.follow(topic));
    const online = () => hub.reconnect();
    window.addEventListener("online", online);
    hub.start();
    return () => {
      window.removeEventListener("online", online);
      unfollow.forEach((stop) => stop());
      stopRefetching();
    };
  }, [hub, client]);
  return <HubContext value={hub}>{children}</HubContext>;
}

/** Fetch queries again when rows change that they show. */
function keepCurrent(hub: LiveHub, client: QueryClient): () => void {
  const refetcher = refetcherOf(client);
  let wasOnline = true;
  const unlisten = hub.listen({
    event: ({ type, data }) => {
      if (type === "fresh" || type === "reset") refetcher.all();
      else if (type !== "ready" && type !== "event" && type !== "text_delta") {
        refetcher.changed(type, data);
      }
    },
    state: ({ isOnline }) => {
      if (isOnline && !wasOnline) refetcher.all();
      wasOnline = isOnline;
    },
  });
  return () => {
    unlisten();
    refetcher.stop();
  };
}

/** Follow a topic while the component is shown, such as `job:JOB`. */
export function useTopic(topic: string | null): void {
  const hub = use(HubContext);
  useEffect(() => (topic === null ? undefined : hub?.follow(topic)), [hub, topic]);
}

/** Call `handler` for every event of a type. */
export function useLiveEvents<T>(type: string, handler: (data: T) => void): void {
  const hub = use(HubContext);
  const handle = useEffectEvent(handler);
  useEffect(
    () =>
      hub?.listen({
        event: (event) => {
          if (event.type === type) handle(event.data as T);
        },
      }),
    [hub, type],
  );
}

const NOTHING = () => () => undefined;

/** Whether the daemon answers: without it, nothing can be changed. */
export function useIsOnline(): boolean {
  const hub = use(HubContext);
  return useSyncExternalStore(hub?.onState ?? NOTHING, () => hub?.state.isOnline ?? true);
}

/** When the daemon last gave a sign of life, in milliseconds. */
export function useAliveAt(): number {
  const hub = use(HubContext);
  return useSyncExternalStore(hub?.onState ?? NOTHING, () => hub?.state.aliveAt ?? 0);
}
