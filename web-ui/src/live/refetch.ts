/** Which queries are fetched again when something changed: those whose `meta.live` names it. */

import type { Query, QueryClient } from "@tanstack/react-query";

/** At most one fetch of a query in this time, however often its rows change. */
const PAUSE_MS = 1_000;

export interface Refetcher {
  changed: (kind: string, data: unknown) => void;
  all: () => void;
  stop: () => void;
}

/** A name is a kind of rows, such as `job`, or one row of it, such as `job:JOB`. */
export function refetcherOf(client: QueryClient): Refetcher {
  const pending = new Set<string>();
  /** Queries whose rows changed while they were fetched. */
  const late = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | null = null;
  const flush = () => {
    timer = null;
    if (pending.size === 0 && late.size === 0) return;
    const isDue = (query: Query) =>
      late.has(query.queryHash) || liveOf(query).some((name) => pending.has(name));
    const due = client.getQueryCache().findAll({ predicate: isDue });
    pending.clear();
    late.clear();
    // A fetch under way is not stopped, or one that takes long would never end; its query comes next time.
    const isFetching = (query: Query) => query.state.fetchStatus !== "idle";
    for (const query of due.filter(isFetching)) late.add(query.queryHash);
    const idle = new Set(due.filter((query) => !isFetching(query)));
    if (idle.size > 0) void client.invalidateQueries({ predicate: (query) => idle.has(query) });
    timer = setTimeout(flush, PAUSE_MS);
  };
  return {
    changed: (event, data) => {
      // That a worker is gone is on record nowhere: it is news about its job.
      const kind = event === "lost" ? "job" : event;
      pending.add(kind);
      const id = idOf(data);
      if (id !== null) pending.add(`${kind}:${id}`);
      // The first change shows at once; those that follow wait together.
      if (timer === null) queueMicrotask(() => timer === null && flush());
    },
    all: () => void client.invalidateQueries({ predicate: (query) => liveOf(query).length > 0 }),
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

function liveOf(query: Query): readonly string[] {
  const live = query.meta?.["live"];
  return Array.isArray(live) ? (live as string[]) : [];
}

function idOf(data: unknown): string | null {
  if (typeof data !== "object" || data === null) return null;
  const { id, job_id: job } = data as { id?: unknown; job_id?: unknown };
  const named = id ?? job;
  return typeof named === "string" ? named : null;
}
