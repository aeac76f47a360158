import { Link, useLocation } from "@tanstack/react-router";
import { useState } from "react";

import { useActing } from "../shell/acting";
import { useAddressPart } from "../shell/address";
import { Button } from "../ui/Button";
import { Failure, Loading, Page } from "../ui/Page";
import { useRowKeys } from "../ui/row_keys";
import { State } from "../ui/Status";
import { CompareBar } from "./CompareBar";
import { Conversation } from "./Conversation";
import { resumeCommand, titleOf, whyNotUsable, type SessionDocument } from "./documents";
import { FamilySection } from "./FamilySection";
import { SessionChat } from "./SessionChat";
import { EndDialog, ForkDialog, RenameDialog } from "./SessionDialogs";
import { SessionFacts } from "./SessionFacts";
import { TakeoverDialog } from "./TakeoverDialog";
import { useMessages } from "./use_messages";
import { usePicked } from "./use_picked";
import { useSessionActs } from "./use_session_acts";
import { useSession, useWorkingJob } from "./use_sessions";

/** One session: its family, what was said, and how to continue it. */
export default function SessionPage() {
  const session = useSession(useAddressPart("session"));
  if (session.isPending) return <Loading />;
  if (session.data === undefined) {
    return <Failure error={session.error} retry={() => void session.refetch()} />;
  }
  return <Shown key={session.data.id} session={session.data} asOf={session.dataUpdatedAt} />;
}

type Open = { name: "fork"; at: number } | { name: "rename" | "end" | "takeover" };

function Shown({ session, asOf }: { session: SessionDocument; asOf: number }) {
  const at = messageOf(useLocation().hash);
  const [anchor, setAnchor] = useState(at);
  const [open, setOpen] = useState<Open | null>(null);
  const picks = usePicked();
  const acts = useSessionActs(session);
  const working = useWorkingJob(session);
  const messages = useMessages(session.id, anchor, working, asOf);
  // A message that is not on the page begins another page; one that is there is only looked at.
  const isFar = messages.isSuccess && at !== null && !hasMessage(messages.pages, at);
  if (isFar && anchor !== at) setAnchor(at);

  const fork = (message: number) => setOpen({ name: "fork", at: message });
  const close = () => setOpen(null);
  const group = "Session";
  useRowKeys(group, "message", [
    {
      keys: "r",
      label: "Write a message",
      group,
      run: () => document.getElementById("say")?.focus(),
    },
    {
      keys: "F",
      label: "Fork after the message that has the focus",
      group,
      run: () => {
        const row = document.activeElement?.closest("[id^=message-]");
        const number = Number(row?.getAttribute("data-row") ?? session.message_count);
        fork(number);
      },
    },
  ]);
  return (
    <Page
      title={titleOf(session)}
      aside={<Actions session={session} acts={acts} onOpen={setOpen} />}
    >
      <p className="flex flex-wrap items-center gap-2 text-sm text-soft">
        <State status={session.lost === null ? session.status : "lost"} />
        {session.removed_at !== null && <State status="cleaned up" />}
        <span className="font-mono text-xs text-faint">{session.id}</span>
        {working !== null && (
          <span>
            in use by{" "}
            <Link to={`/jobs/${working}`} className="text-accent underline">
              {working}
            </Link>
          </span>
        )}
        {session.lost !== null && (
          <span className="text-lost">
            no live worker since <time dateTime={session.lost.since}>{session.lost.since}</time>
          </span>
        )}
      </p>
      <SessionFacts session={session} />
      <FamilySection session={session} picks={picks} />
      <CompareBar picks={picks} />
      <section aria-label="Conversation" className="flex flex-col gap-2">
        <h2 className="text-xs font-semibold tracking-wide text-faint uppercase">Conversation</h2>
        <Conversation session={session} messages={messages} at={at} onFork={fork} />
      </section>
      <SessionChat session={session} acts={acts} />
      {open?.name === "fork" && (
        <ForkDialog session={session} at={open.at} acts={acts} onClose={close} />
      )}
      {open?.name === "rename" && <RenameDialog session={session} acts={acts} onClose={close} />}
      {open?.name === "end" && <EndDialog acts={acts} onClose={close} />}
      {open?.name === "takeover" && <TakeoverDialog acts={acts} onClose={close} />}
    </Page>
  );
}

function Actions({
  session,
  acts,
  onOpen,
}: {
  session: SessionDocument;
  acts: ReturnType<typeof useSessionActs>;
  onOpen: (open: Open) => void;
}) {
  const acting = useActing();
  const ending = useActing("admin");
  const reason = whyNotUsable(session);
  return (
    <>
      <Button
        disabled={acting.disabled || reason !== null || acts.use.isPending}
        title={acting.title ?? reason ?? "The next job of its agent continues here"}
        onClick={() => acts.use.mutate()}
      >
        Use
      </Button>
      <Button {...acting} onClick={() => onOpen({ name: "fork", at: session.message_count })}>
        Fork
      </Button>
      <Button {...acting} onClick={() => onOpen({ name: "rename" })}>
        Rename
      </Button>
      {resumeCommand(session) !== null && (
        <Button {...acting} onClick={() => onOpen({ name: "takeover" })}>
          By hand
        </Button>
      )}
      {session.removed_at === null && (
        <Button look="danger" {...ending} onClick={() => onOpen({ name: "end" })}>
          End
        </Button>
      )}
    </>
  );
}

/** The message that the address names: `#7`. */
function messageOf(hash: string): number | null {
  const number = Number(hash.replace(/^#/, ""));
  return Number.isInteger(number) && number > 0 ? number : null;
}

function hasMessage(pages: ReturnType<typeof useMessages>["pages"], number: number): boolean {
  return pages.some((page) => page.data.some(({ message }) => message === number));
}
