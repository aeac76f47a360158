import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { shortId, turnsText } from "../jobs/job_text";
import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import { Badge, JobState } from "../ui/Status";
import { Ago, spanText } from "../ui/time";
import { isOpen, type JobDocument } from "./documents";

/** What a job is, how it does, and what shows that it is alive. */
export function JobHeader({
  job,
  lastAt,
  actions,
}: {
  job: JobDocument;
  /** When it recorded something last. */
  lastAt: string | null;
  actions: ReactNode;
}) {
  const most = (name: string) =>
    job.limits.find((row) => row.limit === name && row.scope === "job")?.maximum ?? null;
  const [mostTurns, mostSpend] = [most("turns"), most("spend")];
  const execution = job.executions.at(-1);
  const link = "text-sm text-accent underline";
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line px-4 py-2.5">
      <JobState job={job} />
      <h1 className="text-base font-semibold">
        <Link to={`/agents/${encodeURIComponent(job.agent)}`} className="hover:underline">
          {job.agent}
        </Link>
      </h1>
      <span className="font-mono text-xs text-faint">{job.id}</span>
      <span className="text-sm text-soft">
        {turnsText(job.turns)}
        {mostTurns !== null && ` of ${mostTurns}`} · {usdText(job.cost_usd)}
        {mostSpend !== null && ` of ${usdText(mostSpend)}`}
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
      {isOpen(job) && lastAt !== null && (
        <span className="text-sm text-soft" data-testid="evidence">
          last event <Ago at={lastAt} />
          {job.status === "running" && execution !== undefined && ` · ${execution.worker}`}
          {execution !== undefined && execution.epoch > 1 && ` · execution ${execution.epoch}`}
        </span>
      )}
      {job.session_id !== null && (
        <Link to={`/sessions/${job.session_id}`} className={link}>
          session
        </Link>
      )}
      {job.workflow_run_id !== null && (
        <Link to={`/runs/${job.workflow_run_id}`} className={link}>
          run{job.phase !== null && `, ${job.phase}`}
        </Link>
      )}
      {job.parent_job_id !== null && (
        <Link to={`/jobs/${job.parent_job_id}`} className={link}>
          started by {shortId(job.parent_job_id)}
        </Link>
      )}
      <span className="ml-auto flex flex-wrap gap-2">{actions}</span>
      <Why job={job} />
    </header>
  );
}

/** Why the job does not run, or how it ended. */
function Why({ job }: { job: JobDocument }) {
  return (
    <>
      {job.lost !== null && (
        <p className="w-full text-sm text-lost">
          No live worker since <Ago at={job.lost.since} />; {job.lost.next}.
        </p>
      )}
      {job.waits_behind !== null && (
        <p className="w-full text-sm text-wait">
          Waits behind{" "}
          <Link to={`/jobs/${job.waits_behind.job_id}`} className="underline">
            {shortId(job.waits_behind.job_id)}
          </Link>
          , which is {job.waits_behind.status}.
        </p>
      )}
      {job.waits_for !== null && <p className="w-full text-sm text-wait">{job.waits_for}</p>}
      {job.resumes_at !== null && (
        <p className="w-full text-sm text-wait">
          Resumes by itself <Ago at={job.resumes_at} />.
        </p>
      )}
      {job.error !== null && (
        <p
          className={classes(
            "w-full text-sm [overflow-wrap:anywhere]",
            job.status === "suspended" ? "text-wait" : "text-bad",
          )}
        >
          {job.error.message}
        </p>
      )}
      {job.cut_off !== null && (
        <p className="w-full text-sm">
          <Badge tone="wait" text="cut off" /> The last answer was cut off.
        </p>
      )}
      {job.journal_error !== null && (
        <p role="alert" className="w-full text-sm [overflow-wrap:anywhere] text-bad">
          {job.journal_error}
        </p>
      )}
    </>
  );
}
