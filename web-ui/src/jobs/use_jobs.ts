import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";

import { getPage, type Page } from "../api/client";
import type { JobRow } from "../api/types";

const PAGE = 50;
export const FILTER_KEYS = [
  "agent",
  "status",
  "cost",
  "since",
  "until",
  "schedule",
  "session",
  "trigger",
  "run",
] as const;

/** Jobs that a filter finds, newest first, page by page. */
export function useJobs(q: string) {
  return useInfiniteQuery({
    queryKey: ["jobs", "list", q],
    queryFn: ({ pageParam, signal }) =>
      getPage<JobRow>("/jobs", { q, limit: PAGE, before: pageParam }, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page: Page<JobRow>) => page.next_before as number | null,
    placeholderData: keepPreviousData,
    meta: { live: ["job"] },
  });
}
