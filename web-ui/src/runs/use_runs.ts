import { useInfiniteQuery } from "@tanstack/react-query";

import { getPage, type Page } from "../api/client";
import type { RunRow } from "../api/types";

const PAGE = 50;
export const RUN_FILTER_KEYS = [
  "workflow",
  "status",
  "cost",
  "since",
  "until",
  "schedule",
  "trigger",
] as const;

/** Runs that fit a filter, newest first, page by page. */
export function useRuns(q: string) {
  return useInfiniteQuery({
    queryKey: ["runs", q],
    queryFn: ({ pageParam, signal }) =>
      getPage<RunRow>("/runs", { q, limit: PAGE, before: pageParam }, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page: Page<RunRow>) => page.next_before as number | null,
    meta: { live: ["run"] },
  });
}
