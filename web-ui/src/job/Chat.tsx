import { useState } from "react";

import { messageOf } from "../api/problem";
import { HeldSession } from "../jobs/HeldSession";
import { holderOf } from "../jobs/use_start";
import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { TextArea } from "../ui/fields";
import { isOpen, type JobDocument } from "./documents";
import { forkText, type ForkPoint } from "./fork_point";
import { useChat, type Message } from "./use_chat";

/** Continue the session as a chat, or fork it where the person chose. */
export function Chat({
  job,
  fork,
  onUnfork,
}: {
  job: JobDocument;
  fork: ForkPoint | null;
  onUnfork: () => void;
}) {
  const [text, setText] = useState("");
  const acting = useActing();
  const chat = useChat(job, () => {
    setText("");
    onUnfork();
  });
  if (job.session_id === null) return null;
  const holder = chat.isError ? holderOf(chat.error) : null;
  const send = (held: Message["held"] = "refuse") => {
    if (!acting.disabled && text.trim() !== "" && !chat.isPending) {
      chat.mutate({ prompt: text, fork, held });
    }
  };
  const placeholder =
    fork !== null
      ? "Ask in the fork …"
      : isOpen(job)
        ? "Continue the session after this job …"
        : "Continue the session …";
  return (
    <form
      aria-label="Continue the session"
      className="flex flex-col gap-2 border-t border-line px-4 py-2"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {fork !== null && (
        <p className="text-xs text-wait">
          Forks the session {forkText(fork)}; what follows is left out.{" "}
          <button type="button" className="min-h-8 underline" onClick={onUnfork}>
            Continue at the end instead
          </button>
        </p>
      )}
      {holder !== null && (
        <HeldSession
          message={messageOf(chat.error)}
          holder={holder === job.id ? "" : holder}
          isBusy={chat.isPending}
          onBranch={() => send("branch")}
          onWait={() => send("wait")}
          onClose={() => chat.reset()}
        />
      )}
      {chat.isError && holder === null && (
        <p role="alert" className="text-sm [overflow-wrap:anywhere] text-bad">
          {messageOf(chat.error)}
        </p>
      )}
      <div className="flex items-end gap-2">
        <TextArea
          aria-label="Message"
          id="chat"
          rows={1}
          value={text}
          disabled={acting.disabled}
          placeholder={acting.title ?? placeholder}
          className="field-sizing-content max-h-40 min-h-10 flex-1 resize-none text-base"
          onChange={(event) => {
            setText(event.target.value);
            if (chat.isError) chat.reset();
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <Button
          look="primary"
          type="submit"
          className="min-h-10"
          disabled={acting.disabled || chat.isPending || text.trim() === ""}
          title={acting.title}
          hint="⌘↵"
        >
          {fork === null ? "Send" : "Fork"}
        </Button>
      </div>
    </form>
  );
}
