import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { get, getPage, type Page } from "../api/client";
import type { ItemDocument, ItemRow } from "../api/types";
import { itemPath } from "./use_answer";

const PAGE = 50;

export interface InboxFilter {
  status: "pending" | "decided";
  kind: string;
  agent: string;
}

/** Items, newest first, page by page. */
export function useInbox({ status, kind, agent }: InboxFilter) {
  return useInfiniteQuery({
    queryKey: ["inbox", status, kind, agent],
    queryFn: ({ pageParam, signal }) =>
      getPage<ItemRow>("/inbox", { status, kind, agent, limit: PAGE, before: pageParam }, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page: Page<ItemRow>) => page.next_before as number | null,
    meta: { live: ["inbox"] },
  });
}

/** One item with everything that is needed to decide. */
export function useItem(id: string) {
  return useQuery({
    queryKey: ["inbox-item", id],
    queryFn: ({ signal }) => get<ItemDocument>(itemPath(id), undefined, signal),
    enabled: id !== "",
    meta: { live: ["inbox", "job"] },
  });
}

/** What waits for a person about one job or run. */
export function useItemsAbout(subject: string | null, isWaiting = true) {
  return useQuery({
    queryKey: ["inbox", "about", subject],
    queryFn: ({ signal }) =>
      getPage<ItemRow>("/inbox", { about: subject, limit: PAGE }, signal).then(({ data }) => data),
    enabled: subject !== null && isWaiting,
    meta: { live: ["inbox"] },
  });
}
