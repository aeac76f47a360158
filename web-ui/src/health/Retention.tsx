import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { request } from "../api/client";
import type { Answer } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { countText } from "../ui/money";
import { Failure, Loading } from "../ui/Page";
import { Ago } from "../ui/time";

type Plan = Answer<"/v1/retention/plan">;

/** What retention would delete now, as a dry run; admins let it. */
export function Retention() {
  const client = useQueryClient();
  const acting = useActing("admin");
  const [isAsking, setAsking] = useState(false);
  const plan = useQuery({
    queryKey: ["retention"],
    queryFn: ({ signal }) => request<Plan>("/retention/plan", { signal }),
  });
  const apply = useMutation({
    mutationFn: () => request<Plan>("/retention/apply", { method: "POST", body: {} }),
    onSuccess: ({ totals }) => notify(`deleted ${summaryOf(totals)}`),
    onError: notifyError,
    onSettled: () => {
      setAsking(false);
      void client.invalidateQueries({ queryKey: ["retention"] });
    },
  });
  if (plan.isPending) return <Loading />;
  if (plan.isError) return <Failure error={plan.error} retry={() => void plan.refetch()} />;
  const { totals, last_run: last, failures } = plan.data;
  const isNothing = Object.values(totals).every((count) => count === 0);
  return (
    <div className="flex flex-col gap-2 text-sm">
      <p>{isNothing ? "Nothing would be deleted now." : `Would delete ${summaryOf(totals)}.`}</p>
      {last !== null && (
        <p className="text-faint">
          {last.is_announcement ? "Announced" : "Ran"} <Ago at={last.at} />, again{" "}
          <Ago at={last.next_at} />
        </p>
      )}
      {Object.entries(failures).map(([id, error]) => (
        <p key={id} className="wrap-anywhere text-bad">
          {id}: {error}
        </p>
      ))}
      {!isNothing && (
        <div>
          <Button look="danger" {...acting} onClick={() => setAsking(true)}>
            Delete now
          </Button>
        </div>
      )}
      {isAsking && (
        <Dialog title="Delete now?" onClose={() => setAsking(false)}>
          <div className="flex flex-col gap-3 p-4">
            <p>This deletes {summaryOf(totals)}. It cannot be undone.</p>
            <Button
              look="danger"
              {...acting}
              disabled={acting.disabled || apply.isPending}
              onClick={() => apply.mutate()}
            >
              Delete
            </Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function summaryOf(totals: Plan["totals"]): string {
  const size = (totals.workspace_bytes / 1_000_000).toFixed(0);
  const workspaces = `${countText(totals.workspaces)} workspaces (${size} MB)`;
  const chat = `${countText(totals.chat_texts)} texts and ${countText(totals.chat_files)} files of chat`;
  const sessions = `${countText(totals.session_directories)} directories of sessions`;
  return `${countText(totals.checkpoints)} checkpoints of ${countText(totals.jobs)} jobs, ${workspaces}, ${sessions}, ${chat}`;
}
