import { useEffect, useMemo, useRef } from "react";

import { useActing } from "../shell/acting";
import { LongText } from "../transcript/LongText";
import { Button } from "../ui/Button";
import { Empty, Failure, Loading } from "../ui/Page";
import { entriesOf } from "./conversation";
import type { SessionDocument } from "./documents";
import { MessageView } from "./MessageView";
import type { useMessages } from "./use_messages";

/** What was said in a session, a page at a time, with a fork at every message. */
export function Conversation({
  session,
  messages,
  at,
  onFork,
}: {
  session: SessionDocument;
  messages: ReturnType<typeof useMessages>;
  /** The message that the address names. */
  at: number | null;
  onFork: (message: number) => void;
}) {
  const acting = useActing();
  const { pages, expand } = messages;
  const entries = useMemo(() => entriesOf(pages.flatMap((page) => page.data)), [pages]);
  const shown = useRef<number | null>(null);
  const isThere = entries.some(({ message }) => message.message === at);
  useEffect(() => {
    if (at === null || !isThere || shown.current === at) return;
    shown.current = at;
    document.getElementById(`message-${at}`)?.scrollIntoView({ block: "center" });
  }, [at, isThere]);
  if (messages.isPending) return <Loading />;
  if (messages.isError && pages.length === 0) {
    return <Failure error={messages.error} retry={() => void messages.refetch()} />;
  }
  const total = pages.at(-1)?.total ?? 0;
  const unreadable = pages.flatMap((page) => page.unreadable);
  const cutOff = messages.isAtEnd ? pages.findLast((page) => page.cut_off !== null)?.cut_off : null;
  const action = (number: number) => (
    <button
      type="button"
      {...acting}
      onClick={() => onFork(number)}
      className="min-h-11 text-accent underline disabled:text-faint md:min-h-0"
    >
      Fork here<span className="sr-only">, after message {number}</span>
    </button>
  );
  return (
    <div className="flex flex-col gap-2">
      {messages.hasPreviousPage && (
        <Button
          className="self-center"
          disabled={messages.isFetchingPreviousPage}
          onClick={() => void messages.fetchPreviousPage()}
        >
          Show earlier messages
        </Button>
      )}
      {total === 0 && <Empty>Nothing was said yet.</Empty>}
      <ol aria-label="Messages" className="flex flex-col gap-2">
        {entries.map((entry) => (
          <MessageView
            key={entry.message.message}
            entry={entry}
            isInherited={entry.message.message <= session.base_messages}
            isNamed={entry.message.message === at}
            to={`/sessions/${session.id}`}
            onExpand={expand}
            action={action}
          />
        ))}
      </ol>
      {cutOff != null && (
        <div className="rounded-md border border-wait px-3 py-2">
          <p className="text-xs text-wait">
            An answer was cut off here; the agent did not finish it.
          </p>
          <LongText id={`cut-off:${session.id}`} text={cutOff} />
        </div>
      )}
      {unreadable.map((part) => (
        <p key={part.job_id} className="text-sm text-bad">
          {part.is_gone
            ? `The journal of ${part.job_id} is gone.`
            : `Parts of the journal of ${part.job_id} cannot be read: ${part.bytes.length} bad lines, ${part.missing} events missing.`}
        </p>
      ))}
      {messages.hasLater && (
        <Button
          className="self-center"
          disabled={messages.isFetchingNextPage}
          onClick={() => void messages.fetchNextPage()}
        >
          Show later messages
        </Button>
      )}
    </div>
  );
}
