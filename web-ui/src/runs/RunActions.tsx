import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useIntents } from "../api/intent";
import { post } from "../api/client";
import type { RunRow, Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { isRunOpen, runPath, type RunDocument } from "./documents";

/** What can be done with a run. Forks, events and limits open a window of their own. */
export type RunDialogName = "fork" | "signal" | "raise";

/** Cancel, retry and resume a run. */
export function useRunActs(run: RunDocument) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const intents = useIntents();
  return useMutation({
    mutationFn: async ({ verb, body }: { verb: string; body?: unknown }) => {
      const key = intents.keyOf([run.id, verb, body]);
      const made = await post<RunRow>(`${runPath(run.id)}/${verb}`, body, { key });
      intents.done([run.id, verb, body]);
      return made;
    },
    onSuccess: (made, { verb }) => {
      void client.invalidateQueries({ queryKey: ["run"] });
      void client.invalidateQueries({ queryKey: ["runs"] });
      notify(saidOf(verb, made));
      if (made.id !== run.id) void navigate({ to: `/runs/${made.id}` });
    },
    onError: notifyError,
  });
}

export type RunActs = ReturnType<typeof useRunActs>;

function saidOf(verb: string, made: RunRow): string {
  switch (verb) {
    case "cancel":
      return "The run is cancelled.";
    case "resume": {
      const { resumed_jobs: jobs = [], refused = [] } = made as Partial<Schemas["ResumedRunRow"]>;
      const resumed = jobs.length === 1 ? "1 job continues." : `${jobs.length} jobs continue.`;
      return [resumed, ...refused].join(" ");
    }
    case "signal":
      return "The event was sent.";
    case "raise":
      return "The limits are raised.";
    default:
      return `A new run: ${made.id}`;
  }
}

/** The buttons of a run. What does not fit its state is not there. */
export function RunActions({
  run,
  acts,
  hasEvents,
  onOpen,
}: {
  run: RunDocument;
  acts: RunActs;
  /** Whether phases of it wait for events. */
  hasEvents: boolean;
  onOpen: (dialog: RunDialogName) => void;
}) {
  const [isAsking, setAsking] = useState(false);
  const acting = useActing();
  const isOpen = isRunOpen(run);
  const isBusy = { ...acting, disabled: acting.disabled || acts.isPending };
  const isWhole = run.parent_run_id === null;
  const part = isWhole
    ? isBusy
    : { disabled: true, title: `It is a part of ${run.parent_run_id ?? ""}` };
  const canResume = run.waits_for.some(
    ({ for: kind, item_id: item }) => kind !== "event" && item === null,
  );
  return (
    <>
      {isOpen && canResume && (
        <Button {...isBusy} onClick={() => acts.mutate({ verb: "resume" })}>
          Resume
        </Button>
      )}
      {isOpen && hasEvents && (
        <Button {...isBusy} onClick={() => onOpen("signal")}>
          Send event
        </Button>
      )}
      {isOpen && (
        <Button {...isBusy} onClick={() => onOpen("raise")}>
          Raise limits
        </Button>
      )}
      {["failed", "cancelled"].includes(run.status) && (
        <Button look="primary" {...part} onClick={() => acts.mutate({ verb: "retry" })}>
          Retry
        </Button>
      )}
      <Button {...part} onClick={() => onOpen("fork")}>
        Fork
      </Button>
      {isOpen && (
        <Button look="danger" {...isBusy} onClick={() => setAsking(true)}>
          Cancel
        </Button>
      )}
      {isAsking && (
        <Dialog title="Cancel the run?" onClose={() => setAsking(false)}>
          <div className="flex flex-col gap-3 p-4 text-sm">
            <p>
              What runs in it is stopped, and its open questions are withdrawn. Retry continues it
              later with everything that is done.
            </p>
            <Button
              look="danger"
              className="self-start"
              {...isBusy}
              onClick={() => {
                setAsking(false);
                acts.mutate({ verb: "cancel" });
              }}
            >
              Cancel the run
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
