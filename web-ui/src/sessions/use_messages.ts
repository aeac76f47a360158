import { useInfiniteQuery, useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { useEffect } from "react";

import { get, request } from "../api/client";
import type { Answer } from "../api/types";
import { useLiveEvents, useTopic } from "../live/live";
import { sessionPath, type Message } from "./documents";

const PAGE = 50;
/** Messages before the one that the address names. */
const CONTEXT = 5;

type MessagePage = Answer<"/v1/sessions/{session}/messages">;
interface Place {
  before?: number;
  after?: number;
}

/**
 * The conversation of a session, page by page: from its end, or around the message `at`. `job` is one that works in
 * the session now: what is said in it is added. `asOf` is when the session was last looked at.
 */
export function useMessages(session: string, at: number | null, job: string | null, asOf: number) {
  const key = ["session-messages", session, at];
  const client = useQueryClient();
  const messages = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => fetchPage(session, pageParam, signal),
    initialPageParam: firstPlace(at),
    getPreviousPageParam: ({ next_before: before }): Place | null =>
      before === null ? null : { before },
    getNextPageParam: (_, pages): Place => ({ after: lastOf(pages) }),
    staleTime: Infinity,
  });
  const { fetchNextPage } = messages;
  const pages = messages.data?.pages ?? [];
  const newest = pages.findLast(({ last }) => last !== null) ?? pages[0];
  const hasLater = newest !== undefined && newest.next_after !== null;
  const isAtEnd = newest !== undefined && !hasLater;

  const look = () => {
    if (isAtEnd) void fetchNextPage({ cancelRefetch: false });
  };
  useTopic(job === null ? null : `job:${job}`);
  useLiveEvents<{ job_id: string; event: { end?: boolean } }>("event", (data) => {
    if (data.job_id === job && data.event.end === true) look();
  });
  useEffect(() => {
    if (isAtEnd) void fetchNextPage({ cancelRefetch: false });
  }, [asOf, isAtEnd, fetchNextPage]);

  /** Replace a message that was cut by the whole one. */
  const expand = async (number: number) => {
    const whole = await get<Message>(`${sessionPath(session)}/messages/${number}`);
    client.setQueryData<InfiniteData<MessagePage>>(
      key,
      (data) =>
        data && {
          ...data,
          pages: data.pages.map((page) => ({
            ...page,
            data: page.data.map((one) => (one.message === number ? whole : one)),
          })),
        },
    );
  };
  return { ...messages, pages, hasLater, isAtEnd, expand };
}

/** The end of the conversation, or a little before the message that the address names. */
function firstPlace(at: number | null): Place {
  return at === null ? {} : { after: Math.max(0, at - CONTEXT - 1) };
}

function fetchPage(session: string, place: Place, signal: AbortSignal): Promise<MessagePage> {
  const query = { ...place, limit: PAGE };
  return request<MessagePage>(`${sessionPath(session)}/messages`, { query, signal });
}

function lastOf(pages: readonly MessagePage[]): number {
  return pages.findLast(({ last }) => last !== null)?.last ?? 0;
}
