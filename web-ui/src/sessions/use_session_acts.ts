import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { post, remove, request, type Envelope } from "../api/client";
import { useIntents } from "../api/intent";
import type { JobRow, Schemas, SessionRow } from "../api/types";
import { notify, notifyError } from "../shell/toasts";
import { sessionPath, titleOf } from "./documents";

interface ForkAnswer extends Envelope<SessionRow> {
  job: JobRow | null;
}
export type NewFork = Partial<Schemas["NewSessionFork"]>;

/** What changes a session, or begins another from it. */
export function useSessionActs(session: Pick<SessionRow, "id">) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const intents = useIntents();
  const path = sessionPath(session.id);
  const refetch = () => {
    for (const name of ["session", "sessions", "session-tree"]) {
      void client.invalidateQueries({ queryKey: [name] });
    }
  };
  const onError = notifyError;
  return {
    /** Continue the session with a prompt: the answer is on the page of the new job. */
    say: useMutation({
      mutationFn: async (body: { prompt: string; agent?: string }) => {
        const intent = ["say", session.id, body];
        const job = await post<JobRow>(`${path}/resume`, body, { key: intents.keyOf(intent) });
        intents.done(intent);
        return job;
      },
      onSuccess: (job) => void navigate({ to: `/jobs/${job.id}` }),
      onSettled: refetch,
      onError,
    }),
    /** Fork it: with a prompt, a job begins in the fork. */
    fork: useMutation({
      mutationFn: async (body: NewFork) => {
        const intent = ["fork", session.id, body];
        const answer = await request<ForkAnswer>(`${path}/fork`, {
          method: "POST",
          body,
          key: intents.keyOf(intent),
        });
        intents.done(intent);
        return answer;
      },
      onSuccess: ({ data, job }) => {
        notify(`The fork is ${titleOf(data)}.`);
        void navigate({ to: job === null ? `/sessions/${data.id}` : `/jobs/${job.id}` });
      },
      onSettled: refetch,
      onError,
    }),
    use: useMutation({
      mutationFn: () => post<SessionRow>(`${path}/use`),
      onSuccess: (used) => notify(`The next job of ${used.agent} continues here.`),
      onSettled: refetch,
      onError,
    }),
    /** Hand it over to a person, or take it back: what was said outside is recorded each time. */
    takeover: useMutation({
      mutationFn: () => post<Schemas["TakeoverDocument"]>(`${path}/takeover`),
      onSettled: refetch,
    }),
    rename: useMutation({
      mutationFn: (name: string | null) => post<SessionRow>(path, { name }, { method: "PATCH" }),
      onSuccess: (named) =>
        notify(named.name === null ? "The session has no name." : `It is called ${named.name}.`),
      onSettled: refetch,
      onError,
    }),
    end: useMutation({
      mutationFn: () => remove<SessionRow>(path),
      onSuccess: () => {
        notify("The session is cleaned up; its record stays.");
        void navigate({ to: "/sessions" });
      },
      onSettled: refetch,
      onError,
    }),
  };
}

export type SessionActs = ReturnType<typeof useSessionActs>;
