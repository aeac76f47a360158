import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { post } from "../api/client";
import type { JobRow } from "../api/types";
import { useIsOnline } from "../live/live";
import { useMay } from "../shell/session";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { isOpen, type JobDocument } from "./documents";
import { jobPath } from "./job_source";

/** What can be done with a job: cancel, resume, retry, raise its limits. */
export function JobActions({ job }: { job: JobDocument }) {
  const [isRaising, setRaising] = useState(false);
  const client = useQueryClient();
  const navigate = useNavigate();
  const isOnline = useIsOnline();
  const mayAct = useMay("operator");
  const act = useMutation({
    mutationFn: async ({ verb, body }: { verb: string; body?: unknown }) =>
      post<JobRow>(`${jobPath(job.id)}/${verb}`, body, { key: crypto.randomUUID() }),
    onSuccess: (made, { verb }) => {
      void client.invalidateQueries();
      notify(`${verb}: ${made.id}`);
      if (made.id !== job.id) void navigate({ to: `/jobs/${made.id}` });
    },
    onError: notifyError,
  });
  const canResume = job.status === "suspended";
  const isBusy = !isOnline || !mayAct || act.isPending;
  return (
    <>
      {canResume && (
        <Button look="primary" disabled={isBusy} onClick={() => act.mutate({ verb: "resume" })}>
          Resume
        </Button>
      )}
      {isOpen(job) && (
        <Button disabled={isBusy} onClick={() => setRaising(true)}>
          Raise limits
        </Button>
      )}
      {!isOpen(job) && (
        <Button disabled={isBusy} onClick={() => act.mutate({ verb: "retry" })}>
          Retry
        </Button>
      )}
      {isOpen(job) && (
        <Button look="danger" disabled={isBusy} onClick={() => act.mutate({ verb: "cancel" })}>
          Cancel
        </Button>
      )}
      {isRaising && (
        <RaiseDialog
          job={job}
          onClose={() => setRaising(false)}
          onRaise={(limits) => {
            setRaising(false);
            act.mutate({ verb: "resume", body: { limits } });
          }}
        />
      )}
    </>
  );
}

const NAMES = ["spend", "turns", "tokens", "duration"];

/** New maxima for the job: what it may use in all from now on. */
function RaiseDialog({
  job,
  onClose,
  onRaise,
}: {
  job: JobDocument;
  onClose: () => void;
  onRaise: (limits: Record<string, string>) => void;
}) {
  return (
    <Dialog title="Raise limits" onClose={onClose}>
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const given = NAMES.map((name) => {
            const value = form.get(name);
            return [name, typeof value === "string" ? value.trim() : ""] as const;
          });
          onRaise(Object.fromEntries(given.filter(([, value]) => value !== "")));
        }}
      >
        {NAMES.map((name) => {
          const limit = job.limits.find((row) => row.limit === name && row.scope === "job");
          return (
            <label key={name} className="flex items-center gap-3 text-sm">
              <span className="w-24">{name}</span>
              <input
                name={name}
                placeholder={limit?.maximum == null ? "no limit" : String(limit.maximum)}
                className="min-h-8 flex-1 rounded-md border border-line bg-panel px-2"
              />
              <span className="w-32 text-xs text-faint">
                {limit?.used == null ? "" : `used ${limit.used}`}
              </span>
            </label>
          );
        })}
        <p className="text-xs text-faint">
          New maxima, such as 2.50, 40 or 1h. A suspended job continues with them.
        </p>
        <Button look="primary" type="submit">
          Raise and continue
        </Button>
      </form>
    </Dialog>
  );
}
