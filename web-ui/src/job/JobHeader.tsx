import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { notify } from "../shell/toasts";
import { usdText } from "../ui/money";
import { JobState } from "../ui/Status";
import { Ago, spanText } from "../ui/time";
import { isOpen, type JobDocument, type Outline } from "./documents";
import { quote } from "./shell_word";

/** What a job is, how it does, and what shows that it is alive. */
export function JobHeader({
  job,
  outline,
  actions,
}: {
  job: JobDocument;
  outline: Outline | undefined;
  actions: ReactNode;
}) {
  const spend = job.limits.find((row) => row.limit === "spend" && row.scope === "job");
  const execution = job.executions.at(-1);
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line px-4 py-2.5">
      <JobState job={job} />
      <h1 className="text-base font-semibold">{job.agent}</h1>
      <span className="font-mono text-xs text-faint">{job.id}</span>
      <span className="text-sm text-soft">
        {job.turns} turns · {usdText(job.cost_usd)}
        {spend?.maximum != null && ` of ${usdText(spend.maximum)}`}
        {job.tree.jobs > 1 && ` (${usdText(job.tree.cost_usd)} with ${job.tree.jobs - 1} below)`}
      </span>
      {job.worked_seconds !== null && (
        <span className="text-sm text-faint">
          worked {spanText(job.worked_seconds)}
          {job.waited_seconds !== null &&
            job.waited_seconds >= 1 &&
            `, waited ${spanText(job.waited_seconds)}`}
        </span>
      )}
      {isOpen(job) && outline?.last_at != null && (
        <span className="text-sm text-soft" data-testid="evidence">
          last event <Ago at={outline.last_at} />
          {execution !== undefined && ` · worker ${execution.worker}`}
        </span>
      )}
      {job.waits_for !== null && <span className="text-sm text-wait">{job.waits_for}</span>}
      {job.session_id !== null && (
        <Link to={`/sessions/${job.session_id}`} className="text-sm text-accent hover:underline">
          session
        </Link>
      )}
      {job.workflow_run_id !== null && (
        <Link to={`/runs/${job.workflow_run_id}`} className="text-sm text-accent hover:underline">
          run{job.phase === null ? "" : `, ${job.phase}`}
        </Link>
      )}
      <span className="ml-auto flex flex-wrap gap-2">
        <CopyResume job={job} />
        {actions}
      </span>
      {job.error !== null && (
        <p role="alert" className="w-full text-sm [overflow-wrap:anywhere] text-bad">
          {job.error.message}
        </p>
      )}
    </header>
  );
}

function CopyResume({ job }: { job: JobDocument }) {
  if (job.runtime_session_id === null) return null;
  const directory = job.workspace?.root;
  const command = `claude --resume ${job.runtime_session_id}`;
  const line = directory === undefined ? command : `cd ${quote(directory)} && ${command}`;
  return (
    <button
      type="button"
      title={line}
      className="text-xs text-accent hover:underline"
      onClick={() => void navigator.clipboard.writeText(line).then(() => notify("copied"))}
    >
      Copy claude --resume
    </button>
  );
}
