import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import { request } from "../api/client";
import type { Answer } from "../api/types";
import { useActing } from "../shell/acting";
import { Markdown } from "../transcript/Markdown";
import { Button } from "../ui/Button";
import { usdText } from "../ui/money";
import { Empty, Failure, Loading } from "../ui/Page";
import { State } from "../ui/Status";
import { ShowMore } from "../ui/ShowMore";
import { Ago } from "../ui/time";
import { entriesOf } from "./conversation";
import { messagesText, sessionPath, titleOf, whyNotUsable, type Side } from "./documents";
import { MessageView } from "./MessageView";
import { useSessionActs } from "./use_session_acts";

const PAGE = 20;
type MessagePage = Answer<"/v1/sessions/{session}/messages">;

/** How one of two sessions came out, and what it cost since they part. */
export function CompareSide({ side, name }: { side: Side; name: string }) {
  const acts = useSessionActs(side);
  const acting = useActing();
  const reason = whyNotUsable(side);
  const { outcome } = side;
  return (
    <section
      aria-label={`${name}: ${titleOf(side)}`}
      className="flex min-w-0 flex-col gap-2 rounded-lg border border-line bg-panel p-3 text-sm"
    >
      <h2 className="flex flex-wrap items-center gap-2">
        <Link
          to={`/sessions/${side.id}`}
          className="font-semibold [overflow-wrap:anywhere] hover:underline"
        >
          {titleOf(side)}
        </Link>
        <State status={side.status} />
        <span className="text-xs font-normal text-faint">{side.agent}</span>
      </h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5">
        <dt className="text-faint">Since</dt>
        <dd>
          {messagesText(side.messages_since)}, {jobsText(side.jobs_since.length)},{" "}
          {usdText(side.cost_usd_since)}
        </dd>
        <dt className="text-faint">In all</dt>
        <dd>
          {messagesText(side.message_count)}, {side.turn_count} turns, {usdText(side.cost_usd)}
        </dd>
        <dt className="text-faint">Used</dt>
        <dd>
          <Ago at={side.last_active_at} />
        </dd>
      </dl>
      {outcome === null ? (
        <p className="text-faint">No job since they part.</p>
      ) : (
        <div className="flex flex-col gap-1">
          <p className="flex flex-wrap items-center gap-2">
            <State status={outcome.status} />
            <Link to={`/jobs/${outcome.job_id}`} className="text-accent underline">
              {outcome.job_id}
            </Link>
          </p>
          {outcome.error !== null && (
            <p className="[overflow-wrap:anywhere] text-bad">{outcome.error}</p>
          )}
          {outcome.summary !== null && <Markdown text={outcome.summary} />}
        </div>
      )}
      <Button
        className="mt-auto self-start"
        disabled={acting.disabled || reason !== null || acts.use.isPending}
        title={acting.title ?? reason ?? "The next job of its agent continues here"}
        onClick={() => acts.use.mutate()}
      >
        Use this one
      </Button>
    </section>
  );
}

function jobsText(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}

/** What was said in a session after a message. */
export function SaidSince({ side, after, name }: { side: Side; after: number; name: string }) {
  const messages = useInfiniteQuery({
    queryKey: ["session-messages", side.id, "since", after],
    queryFn: ({ pageParam, signal }) =>
      request<MessagePage>(`${sessionPath(side.id)}/messages`, {
        query: { after: pageParam, limit: PAGE },
        signal,
      }),
    initialPageParam: after,
    getNextPageParam: ({ next_after: next }) => next,
    meta: { live: ["session"] },
  });
  const entries = useMemo(
    () => entriesOf(messages.data?.pages.flatMap(({ data }) => data) ?? []),
    [messages.data],
  );
  return (
    <section aria-label={`Said in ${name}`} className="flex min-w-0 flex-col gap-2">
      <h3 className="text-xs font-semibold tracking-wide text-faint uppercase">
        {titleOf(side)}, since they part
      </h3>
      {messages.isPending && <Loading />}
      {messages.isError && entries.length === 0 && (
        <Failure error={messages.error} retry={() => void messages.refetch()} />
      )}
      {messages.isSuccess && entries.length === 0 && <Empty>Nothing more was said.</Empty>}
      <ol aria-label={`Messages of ${name}`} className="flex flex-col gap-2">
        {entries.map((entry) => (
          <MessageView
            key={entry.message.message}
            entry={entry}
            isInherited={false}
            id={`${name}-${entry.message.message}`}
            to={`/sessions/${side.id}`}
          />
        ))}
      </ol>
      <ShowMore pages={messages} />
    </section>
  );
}
