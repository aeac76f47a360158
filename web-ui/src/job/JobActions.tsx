import { useState } from "react";

import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { isOpen, type JobDocument } from "./documents";
import { LimitFields } from "./LimitFields";
import { givenLimits } from "./limits";
import { useJobActions } from "./use_actions";

/** What can be done with a job: cancel, resume, retry, raise its limits. */
export function JobActions({ job }: { job: JobDocument }) {
  const [asked, setAsked] = useState<"raise" | "cancel" | null>(null);
  const act = useJobActions(job);
  const acting = useActing();
  const common = {
    className: "min-h-10 md:min-h-8",
    disabled: acting.disabled || act.isPending,
    title: acting.title,
  };
  // An approval continues by its answer, a limit by raising it.
  const isAsked = job.suspend_reason === "approval" || job.suspend_reason === "limit";
  const canContinue = (job.status === "suspended" && !isAsked) || job.status === "failed";
  const close = () => setAsked(null);
  return (
    <>
      {canContinue && (
        <Button
          {...common}
          look={job.status === "suspended" ? "primary" : "plain"}
          onClick={() => act.mutate({ verb: "resume" })}
        >
          Resume
        </Button>
      )}
      {isOpen(job) ? (
        <>
          <Button
            {...common}
            look={job.suspend_reason === "limit" ? "primary" : "plain"}
            onClick={() => setAsked("raise")}
          >
            Raise limits …
          </Button>
          <Button {...common} look="danger" onClick={() => setAsked("cancel")}>
            Cancel …
          </Button>
        </>
      ) : (
        <Button {...common} onClick={() => act.mutate({ verb: "retry" })}>
          Retry
        </Button>
      )}
      {asked === "raise" && (
        <RaiseDialog
          job={job}
          onClose={close}
          onRaise={(limits) => {
            close();
            act.mutate({ verb: "resume", body: { limits } });
          }}
        />
      )}
      {asked === "cancel" && (
        <Dialog title="Cancel this job?" onClose={close}>
          <div className="flex flex-col gap-3 p-4 text-sm">
            <p>
              It ends for good, with the jobs below it. What it recorded and what it changed stays;
              you can retry it.
            </p>
            <div className="flex justify-end gap-2">
              <Button className="min-h-10 md:min-h-8" onClick={close}>
                Let it go on
              </Button>
              <Button
                {...common}
                look="danger"
                onClick={() => {
                  close();
                  act.mutate({ verb: "cancel" });
                }}
              >
                Cancel the job
              </Button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}

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
  const [values, setValues] = useState<Record<string, string>>({});
  const given = givenLimits(values);
  return (
    <Dialog title="Raise limits" onClose={onClose}>
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (Object.keys(given).length > 0) onRaise(given);
        }}
      >
        <LimitFields values={values} onChange={setValues} limits={job.limits} />
        <p className="text-xs text-faint">
          New maxima, not additions. A suspended job continues with them.
        </p>
        <Button
          look="primary"
          type="submit"
          className="min-h-10"
          disabled={Object.keys(given).length === 0}
        >
          {job.status === "suspended" ? "Raise and continue" : "Raise"}
        </Button>
      </form>
    </Dialog>
  );
}
