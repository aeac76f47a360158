import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { get, getPage, type Page } from "../api/client";
import type { JobRow, SessionRow } from "../api/types";
import { sessionPath, type Family, type SessionDocument } from "./documents";

const PAGE = 50;
export const SESSION_FILTER_KEYS = [
  "agent",
  "status",
  "mode",
  "cost",
  "since",
  "until",
  "schedule",
  "channel",
] as const;

/** Sessions that fit a filter, newest first, page by page. */
export function useSessions(q: string) {
  return useInfiniteQuery({
    queryKey: ["sessions", q],
    queryFn: ({ pageParam, signal }) =>
      getPage<SessionRow>("/sessions", { q, limit: PAGE, before: pageParam }, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page: Page<SessionRow>) => page.next_before as number | null,
    meta: { live: ["session"] },
  });
}

/** One session, as it is now. */
export function useSession(reference: string) {
  return useQuery({
    queryKey: ["session", reference],
    queryFn: ({ signal }) => get<SessionDocument>(sessionPath(reference), undefined, signal),
    meta: { live: ["session"] },
  });
}

/** The job that works in a session now; null when none does. */
export function useWorkingJob(session: SessionDocument): string | null {
  const jobs = useQuery({
    queryKey: ["session-job", session.id],
    queryFn: ({ signal }) =>
      get<JobRow[]>("/jobs", { q: `session:${session.id} status:running`, limit: 1 }, signal),
    enabled: session.status === "active",
    meta: { live: ["job"] },
  });
  return session.status === "active" ? (jobs.data?.[0]?.id ?? null) : null;
}

/** The family of a session: what it was forked from, and what was forked from it. */
export function useFamily(session: string, limit: number) {
  return useQuery({
    queryKey: ["session-tree", session, limit],
    queryFn: ({ signal }) => get<Family>(`${sessionPath(session)}/tree`, { limit }, signal),
    meta: { live: ["session", "job"] },
    // What was there stays while more of it is loaded.
    placeholderData: (before) => before,
  });
}
