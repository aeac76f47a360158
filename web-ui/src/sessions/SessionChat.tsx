import { useState } from "react";

import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { AgentField } from "./AgentField";
import { isOver, type SessionDocument } from "./documents";
import type { SessionActs } from "./use_session_acts";

/** Continue the session as a chat. The answer streams in on the page of the new job. */
export function SessionChat({ session, acts }: { session: SessionDocument; acts: SessionActs }) {
  const [text, setText] = useState("");
  const [agent, setAgent] = useState("");
  const acting = useActing();
  const { say } = acts;
  const send = () => {
    if (text.trim() === "" || acting.disabled || say.isPending) return;
    say.mutate({ prompt: text, ...(agent !== "" && { agent }) }, { onSuccess: () => setText("") });
  };
  return (
    <form
      aria-label="Continue the session"
      className="sticky bottom-0 -mx-4 flex flex-col gap-1 border-t border-line bg-page px-4 py-2"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {session.imported_from !== null && <AgentField value={agent} onChange={setAgent} />}
      <p className="text-xs text-faint">
        {acting.title ??
          (isOver(session)
            ? "The session is over: a message continues in a fork at its end."
            : session.status === "active"
              ? "A job works in it: a message waits for its turn."
              : "A message begins the next job.")}
      </p>
      <div className="flex items-end gap-2">
        <textarea
          id="say"
          aria-label="Message"
          rows={1}
          value={text}
          disabled={acting.disabled}
          placeholder="Continue the session …"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              send();
            }
          }}
          className="block field-sizing-content max-h-40 min-h-11 w-full min-w-0 flex-1 resize-none rounded-md border border-edge bg-panel px-2.5 py-2 text-base md:min-h-9 md:py-1.5"
        />
        <Button
          look="primary"
          type="submit"
          hint="⌘↵"
          title={acting.title}
          disabled={acting.disabled || say.isPending || text.trim() === ""}
        >
          Send
        </Button>
      </div>
    </form>
  );
}
