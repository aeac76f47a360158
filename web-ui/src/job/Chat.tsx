import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { post } from "../api/client";
import type { JobRow } from "../api/types";
import { useIsOnline } from "../live/live";
import { useMay } from "../shell/session";
import { notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import type { JobDocument } from "./documents";

export interface ForkPoint {
  seq: number;
  message: number;
}

/** Continue the session as a chat, or fork it where the person chose. The answer streams in on the new job's page. */
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
  const navigate = useNavigate();
  const isOnline = useIsOnline();
  const mayAct = useMay("operator");
  const isDisabled = !isOnline || !mayAct;
  const say = useMutation({
    mutationFn: async (prompt: string) => {
      const session = job.session_id ?? "";
      const key = crypto.randomUUID();
      if (fork === null) {
        const path = `/sessions/${encodeURIComponent(session)}/resume`;
        return post<JobRow>(path, { prompt }, { key });
      }
      const body = { agent: job.agent, prompt, fork: session, at_seq: fork.seq, at_job: job.id };
      return post<JobRow>("/jobs", body, { key });
    },
    onSuccess: (made) => {
      setText("");
      onUnfork();
      if (made.id !== job.id) void navigate({ to: `/jobs/${made.id}` });
    },
    onError: notifyError,
  });
  if (job.session_id === null) return null;
  const send = () => {
    if (text.trim() !== "" && !say.isPending) say.mutate(text);
  };
  return (
    <form
      aria-label="Continue the session"
      className="flex items-end gap-2 border-t border-line px-4 py-2"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div className="flex-1">
        {fork !== null && (
          <p className="pb-1 text-xs text-wait">
            Forks after event {fork.seq}; what follows is left out.{" "}
            <button type="button" className="underline" onClick={onUnfork}>
              Continue at the end instead
            </button>
          </p>
        )}
        <textarea
          aria-label="Message"
          rows={1}
          value={text}
          disabled={isDisabled}
          placeholder={fork === null ? "Continue the session …" : "Ask in the fork …"}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
          }}
          className="block field-sizing-content max-h-40 min-h-9 w-full resize-none rounded-md border border-line bg-panel px-2.5 py-1.5 text-base"
        />
      </div>
      <Button
        look="primary"
        type="submit"
        disabled={isDisabled || say.isPending || !text.trim()}
        hint="⌘↵"
      >
        {fork === null ? "Send" : "Fork"}
      </Button>
    </form>
  );
}
