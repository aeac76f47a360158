import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { SaveLinks } from "../shell/SaveLinks";
import { notifyError } from "../shell/toasts";
import { copyText } from "../ui/copy";
import { countText, usdText } from "../ui/money";
import { Ago } from "../ui/time";
import {
  keyText,
  messagesText,
  resumeCommand,
  sessionPath,
  type SessionDocument,
} from "./documents";

/** What is known about a session besides what was said. */
export function SessionFacts({ session }: { session: SessionDocument }) {
  const resume = resumeCommand(session);
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 text-sm md:grid-cols-[auto_1fr_auto_1fr]">
      <Fact name="Agent">
        <Link to={`/agents/${encodeURIComponent(session.agent)}`} className="text-accent underline">
          {session.agent}
        </Link>
        {session.imported_from !== null && ` · imported from ${session.imported_from}`}
      </Fact>
      <Fact name="Continued by">{keyText(session)}</Fact>
      <Fact name="Directory">
        <span className="font-mono text-xs">{session.working_directory}</span>
        {session.workspace_id !== null && " (a workspace)"}
        {session.docker_enabled && " (in a container)"}
      </Fact>
      <Fact name="Size">
        {messagesText(session.message_count)}, {session.turn_count} turns, about{" "}
        {countText(session.token_estimate)} tokens
      </Fact>
      <Fact name="Cost">
        {usdText(session.cost_usd)} in{" "}
        <Link to="/jobs" search={{ q: `session:${session.id}` }} className="text-accent underline">
          {session.job_count === 1 ? "1 job" : `${session.job_count} jobs`}
        </Link>
      </Fact>
      <Fact name="Used">
        <Ago at={session.last_active_at} />, begun <Ago at={session.created_at} />
        {session.expires_at !== null && (
          <>
            , expires <Ago at={session.expires_at} />
          </>
        )}
      </Fact>
      {session.parent_session_id !== null && (
        <Fact name="Fork of">
          <Link
            to={`/sessions/${session.parent_session_id}`}
            hash={String(session.base_messages)}
            className="text-accent underline"
          >
            {session.parent_session_id}
          </Link>{" "}
          after message {session.base_messages}
        </Fact>
      )}
      {resume !== null && (
        <Fact name="By hand">
          <Copy text={resume} />
        </Fact>
      )}
      <Fact name="Export">
        <Exports session={session} />
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-faint">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
    </>
  );
}

const FORMATS = [
  ["html", "page"],
  ["markdown", "markdown"],
  ["json", "full record"],
] as const;

/** The session as a file to keep or to send. */
function Exports({ session }: { session: SessionDocument }) {
  const isClaude = resumeCommand(session) !== null;
  const formats = isClaude ? [...FORMATS, ["claude", "transcript for claude"] as const] : FORMATS;
  return (
    <SaveLinks path={`${sessionPath(session.id)}/export`} name={session.id} formats={formats} />
  );
}

/** A command, and a button that copies it. */
function Copy({ text }: { text: string }) {
  return (
    <>
      <code className="font-mono text-xs">{text}</code>{" "}
      <button
        type="button"
        onClick={() => void copyText(text).catch(notifyError)}
        className="inline-flex min-h-11 items-center text-xs text-accent underline md:min-h-0"
      >
        copy<span className="sr-only"> {text}</span>
      </button>
    </>
  );
}
