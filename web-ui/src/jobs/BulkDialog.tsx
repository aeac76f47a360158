import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { post } from "../api/client";
import { useIntents } from "../api/intent";
import type { Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Failure, Loading } from "../ui/Page";
import { JobState } from "../ui/Status";
import { groupedRefusals, jobsText, plannedIds } from "./bulk_text";
import { shortId } from "./job_text";
import type { BulkTarget } from "./selection";

type BulkDocument = Schemas["BulkDocument"];
export type BulkVerb = BulkDocument["verb"];

const WORDS: Record<BulkVerb, { title: string; done: string }> = {
  cancel: { title: "Cancel jobs", done: "cancelled" },
  retry: { title: "Retry jobs", done: "retried as new jobs" },
};
/** Jobs that are named; the others are counted. */
const NAMED = 8;

/** Shows which jobs an action is for, asks, does it, and says what became of each. */
export function BulkDialog({
  verb,
  target,
  onClose,
  onDone,
}: {
  verb: BulkVerb;
  target: BulkTarget;
  onClose: () => void;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const intents = useIntents();
  const acting = useActing();
  const plan = useQuery({
    queryKey: ["bulk-plan", verb, target],
    queryFn: () => post<BulkDocument>("/jobs/bulk", { verb, ...target, dry_run: true }),
    staleTime: 0,
    gcTime: 0,
  });
  const act = useMutation({
    mutationFn: (jobs: string[]) => {
      const body = { verb, jobs };
      return post<BulkDocument>("/jobs/bulk", body, { key: intents.keyOf(body) });
    },
    onSuccess: () => {
      onDone();
      void client.invalidateQueries({ queryKey: ["jobs"] });
      void client.invalidateQueries({ queryKey: ["job"] });
    },
    onError: notifyError,
  });
  const { title, done } = WORDS[verb];
  const close = () => {
    if (!act.isPending) onClose();
  };
  if (act.isSuccess) {
    return (
      <Dialog title={title} onClose={onClose}>
        <div className="flex flex-col gap-3 p-4 text-sm">
          <p role="status">
            {jobsText(act.data.done)} {done}.
          </p>
          <Refused document={act.data} />
          <Button className="min-h-10 self-end md:min-h-8" onClick={onClose}>
            Close
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={title} onClose={close}>
      <div className="flex flex-col gap-3 p-4 text-sm">
        {plan.isPending && <Loading />}
        {plan.isError && <Failure error={plan.error} retry={() => void plan.refetch()} />}
        {plan.isSuccess && (
          <>
            <Planned document={plan.data} done={done} />
            <Refused document={plan.data} />
            <div className="flex justify-end gap-2">
              <Button className="min-h-10 md:min-h-8" disabled={act.isPending} onClick={onClose}>
                Leave them as they are
              </Button>
              <Button
                look={verb === "cancel" ? "danger" : "primary"}
                className="min-h-10 md:min-h-8"
                disabled={acting.disabled || act.isPending || plan.data.planned === 0}
                title={acting.title}
                // Exactly those that were shown: the filter may find others by now.
                onClick={() => act.mutate(plannedIds(plan.data))}
              >
                {verb === "cancel" ? "Cancel" : "Retry"} {jobsText(plan.data.planned)}
              </Button>
            </div>
          </>
        )}
      </div>
    </Dialog>
  );
}

function Planned({ document, done }: { document: BulkDocument; done: string }) {
  const planned = document.jobs.filter(({ outcome }) => outcome === "planned");
  return (
    <>
      <p>
        <strong>{jobsText(document.planned)}</strong> would be {done}.
      </p>
      <ul className="flex flex-col gap-1">
        {planned.slice(0, NAMED).map(({ job_id: id, job }) => (
          <li key={id} className="flex items-center gap-2">
            {job !== null && <JobState job={job} />}
            <span className="min-w-0 truncate">{job?.agent}</span>
            <span className="font-mono text-xs text-faint">{shortId(id)}</span>
          </li>
        ))}
      </ul>
      {planned.length > NAMED && (
        <p className="text-faint">and {jobsText(planned.length - NAMED)} more</p>
      )}
    </>
  );
}

function Refused({ document }: { document: BulkDocument }) {
  if (document.refused === 0) return null;
  return (
    <div className="rounded-md bg-wait-soft p-3 text-wait">
      <p>
        {jobsText(document.refused)} {document.is_dry_run ? "would be" : "were"} refused:
      </p>
      <ul className="list-disc pl-5">
        {groupedRefusals(document).map(({ reason, count }) => (
          <li key={reason} className="[overflow-wrap:anywhere]">
            {count > 1 && `${count} × `}
            {reason}
          </li>
        ))}
      </ul>
    </div>
  );
}
