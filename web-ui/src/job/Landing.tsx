import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { post } from "../api/client";
import type { Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import type { JobDocument } from "./documents";
import { jobPath } from "./job_source";
import { LandingFields } from "./LandingFields";
import { EMPTY_FORM, landingBody, type LandingForm, type Way } from "./landing_form";
import { landingText } from "./landing_text";

type Landed = Schemas["LandingDocument"];

const NAMES: Record<Way, string> = { apply: "Apply", merge: "Merge", push: "Push" };
const EFFECTS: Record<Way, string> = {
  apply: "The files in the agent's directory change; nothing is committed.",
  merge: "The changes are committed and merged into the branch that they began at.",
  push: "The changes are committed and pushed as a branch.",
};

/** Takes a job's changes over: into the directory, into a branch, or to a remote. It shows first what would change. */
export function Landing({ job }: { job: JobDocument }) {
  const [way, setWay] = useState<Way | null>(null);
  const acting = useActing("admin");
  return (
    <div className="flex flex-wrap gap-2">
      {(["apply", "merge", "push"] as const).map((one) => (
        <Button key={one} {...acting} className="min-h-10 md:min-h-8" onClick={() => setWay(one)}>
          {NAMES[one]} …
        </Button>
      ))}
      {way !== null && <LandingDialog job={job} way={way} onClose={() => setWay(null)} />}
    </div>
  );
}

function LandingDialog({ job, way, onClose }: { job: JobDocument; way: Way; onClose: () => void }) {
  const [form, setForm] = useState(EMPTY_FORM);
  const set = (change: Partial<LandingForm>) => setForm((before) => ({ ...before, ...change }));
  const client = useQueryClient();
  const land = useMutation({
    mutationFn: (isDry: boolean) =>
      post<Landed>(`${jobPath(job.id)}/${way}`, {
        dry_run: isDry,
        ...landingBody(way, form),
      }),
    onSuccess: (landed) => {
      if (landed.is_dry_run || landed.conflicts.length > 0) return;
      notify(landingText(landed));
      void client.invalidateQueries({ queryKey: ["workspace"] });
      void client.invalidateQueries({ queryKey: ["job"] });
      // The address of a pull request is worth a look before the window closes.
      if (landed.url === null) onClose();
    },
    onError: notifyError,
  });
  const shown = land.data;
  return (
    <Dialog title={`${NAMES[way]} the changes`} onClose={onClose}>
      <div className="flex flex-col gap-3 p-4 text-sm">
        <p>{EFFECTS[way]}</p>
        <LandingFields way={way} form={form} onChange={set} />
        {shown !== undefined && (
          <div role="status" className="flex flex-col gap-1 rounded-md bg-raised p-3">
            <p className="[overflow-wrap:anywhere]">{landingText(shown)}</p>
            {shown.url?.startsWith("https://") === true && (
              <p className="[overflow-wrap:anywhere]">
                <a
                  href={shown.url}
                  target="_blank"
                  rel="noreferrer"
                  className="text-accent underline"
                >
                  Open a pull request
                </a>
              </p>
            )}
            <ul className="max-h-40 overflow-y-auto font-mono text-xs" tabIndex={0}>
              {(shown.conflicts.length > 0 ? shown.conflicts : shown.files).map((path) => (
                <li key={path} className="[overflow-wrap:anywhere]">
                  {path}
                </li>
              ))}
            </ul>
          </div>
        )}
        <div className="flex justify-end gap-2">
          <Button
            className="min-h-10 md:min-h-8"
            disabled={land.isPending}
            onClick={() => land.mutate(true)}
          >
            Show what would change
          </Button>
          <Button
            look="primary"
            className="min-h-10 md:min-h-8"
            disabled={land.isPending}
            onClick={() => land.mutate(false)}
          >
            {NAMES[way]}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
