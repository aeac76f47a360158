import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { post } from "../api/client";
import { useIntents } from "../api/intent";
import type { JobRow } from "../api/types";
import type { JobDocument } from "./documents";
import type { ForkPoint } from "./fork_point";
import { jobPath } from "./job_source";

export interface Message {
  prompt: string;
  fork: ForkPoint | null;
  /** Beside a suspended job that holds the session, or behind it; refused where neither is chosen. */
  held: "refuse" | "branch" | "wait";
}

/** Continues a session, or forks it. The answer streams in on the page of the job that gives it. */
export function useChat(job: JobDocument, onSent: () => void) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const intents = useIntents();
  return useMutation({
    mutationFn: ({ prompt, fork, held }: Message) => {
      const session = job.session_id ?? "";
      const headers = { "If-Held": held === "wait" ? "wait" : "refuse" };
      const key = intents.keyOf({ prompt, fork, isBranch: held === "branch" });
      if (fork !== null) {
        return post<JobRow>(`${jobPath(job.id)}/fork`, { prompt, ...fork }, { key });
      }
      if (held === "branch") {
        const body = { agent: job.agent, prompt, resume: session, branch: true };
        return post<JobRow>("/jobs", body, { key, headers });
      }
      const path = `/sessions/${encodeURIComponent(session)}/resume`;
      return post<JobRow>(path, { prompt }, { key, headers });
    },
    onSuccess: (made, { prompt, fork, held }) => {
      intents.done({ prompt, fork, isBranch: held === "branch" });
      onSent();
      void client.invalidateQueries({ queryKey: ["job"] });
      void client.invalidateQueries({ queryKey: ["jobs"] });
      if (made.id !== job.id) void navigate({ to: `/jobs/${made.id}` });
    },
  });
}
