import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { post } from "../api/client";
import { useIntents } from "../api/intent";
import type { JobRow } from "../api/types";
import { notify, notifyError } from "../shell/toasts";
import { jobPath } from "./job_source";

export type JobVerb = "cancel" | "retry" | "resume";

export interface JobAction {
  verb: JobVerb;
  body?: Record<string, unknown>;
}

const DONE: Record<JobVerb, string> = {
  cancel: "the job is being cancelled",
  retry: "retried as a new job",
  resume: "the job continues",
};

/** Does something with a job; where that makes another one, shows it. */
export function useJobActions(job: { id: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const intents = useIntents();
  return useMutation({
    mutationFn: ({ verb, body }: JobAction) =>
      post<JobRow>(`${jobPath(job.id)}/${verb}`, body, {
        ...(verb !== "cancel" && { key: intents.keyOf({ verb, body }) }),
      }),
    onSuccess: (made, { verb, body }) => {
      intents.done({ verb, body });
      for (const queryKey of [["job"], ["jobs"], ["outline"], ["inbox"], ["home"]]) {
        void client.invalidateQueries({ queryKey });
      }
      notify(body?.limits === undefined ? DONE[verb] : "the limits are raised");
      if (made.id !== job.id) void navigate({ to: `/jobs/${made.id}` });
    },
    onError: notifyError,
  });
}
