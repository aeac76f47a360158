import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { ItemDocument, ItemRow, Schemas } from "../api/types";
import type { JobDocument } from "../job/documents";
import { JobSource, jobPath } from "../job/job_source";
import { lastWords } from "./last_words";

/** The job that an item is about. */
export function useJobOf(item: Pick<ItemRow, "job_id">) {
  const id = item.job_id;
  return useQuery({
    queryKey: ["job", id],
    queryFn: ({ signal }) => get<JobDocument>(jobPath(id ?? ""), undefined, signal),
    enabled: id !== null,
    meta: { live: ["job"] },
  });
}

const NONE: readonly Schemas["LimitRow"][] = [];

/** The limits of the job that asks to raise one. */
export function useLimitsOf(item: ItemDocument): readonly Schemas["LimitRow"][] {
  return useJobOf(item).data?.limits ?? NONE;
}

/** Beyond every event: a page before it is the last one. */
const END = 2 ** 53;

/** What the agent said last, and where in the transcript. */
export function useLastWords(item: ItemRow) {
  const id = item.job_id;
  return useQuery({
    queryKey: ["last-words", item.id],
    queryFn: async () => {
      const { events } = await new JobSource(id ?? "").page({ before: END });
      return lastWords(events, item.tool_use_id);
    },
    enabled: id !== null,
    staleTime: Infinity,
  });
}
