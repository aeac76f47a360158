import { Link } from "@tanstack/react-router";

import type { JobRow, RunRow } from "../api/types";
import { outcomeText, shortId } from "../jobs/job_text";
import { Card, Section } from "../ui/Page";
import { State } from "../ui/Status";
import { Ago } from "../ui/time";
import type { Home } from "./live_rows";

/** The newest jobs and runs that ended: what failed first. */
export function Ended({ home: { jobs, runs } }: { home: Home }) {
  return (
    <>
      <Group title="Failed" jobs={jobs.failed.rows} runs={runs.failed.rows} />
      <Group title="Finished" jobs={jobs.completed.rows} runs={runs.succeeded.rows} />
    </>
  );
}

function Group({
  title,
  jobs,
  runs,
}: {
  title: string;
  jobs: readonly JobRow[];
  runs: readonly RunRow[];
}) {
  if (jobs.length + runs.length === 0) return null;
  return (
    <Section title={title}>
      <Card>
        <ul aria-label={title} className="flex flex-col py-1">
          {jobs.map((job) => (
            <Row
              key={job.id}
              to={`/jobs/${job.id}`}
              status={job.status}
              name={`${job.agent} ${shortId(job.id)}`}
              text={outcomeText(job)}
              at={job.finished_at ?? job.created_at}
            />
          ))}
          {runs.map((run) => (
            <Row
              key={run.id}
              to={`/runs/${run.id}`}
              status={run.status}
              name={`${run.workflow} ${shortId(run.id)}`}
              text={run.error ?? "workflow run"}
              at={run.finished_at ?? run.started_at}
            />
          ))}
        </ul>
      </Card>
    </Section>
  );
}

function Row({
  to,
  status,
  name,
  text,
  at,
}: {
  to: string;
  status: string;
  name: string;
  text: string;
  at: string;
}) {
  return (
    <li>
      <Link to={to} className="flex min-h-10 flex-col px-3 py-1.5 hover:bg-hover">
        <span className="flex items-center gap-2 text-sm">
          <State status={status} />
          <span className="min-w-0 truncate font-medium">{name}</span>
          <span className="ml-auto shrink-0 text-xs text-faint">
            <Ago at={at} />
          </span>
        </span>
        <span className="truncate text-xs text-soft">{text}</span>
      </Link>
    </li>
  );
}
