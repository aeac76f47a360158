import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { turnsText } from "../jobs/job_text";
import { Markdown } from "../transcript/Markdown";
import { usdText } from "../ui/money";
import { Section } from "../ui/Page";
import { State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";
import { Checkpoints } from "./Checkpoints";
import type { JobDocument } from "./documents";
import type { ForkPoint } from "./fork_point";
import { JobConfig } from "./JobConfig";
import { JobCosts } from "./JobCosts";
import { JobFacts } from "./JobFacts";
import { amountText } from "./limits";
import { WorkspaceChanges } from "./WorkspaceChanges";

/** Everything about a job that is not its transcript. */
export function JobDetails({
  job,
  onFork,
}: {
  job: JobDocument;
  onFork: (point: ForkPoint) => void;
}) {
  return (
    <>
      {job.prompt !== null && job.prompt !== "" && (
        <Section title="Asked">
          <Markdown text={job.prompt} />
          <Inputs inputs={job.inputs} />
        </Section>
      )}
      {job.summary !== null && job.summary !== "" && (
        <Section title="Answer">
          <Markdown text={job.summary} />
        </Section>
      )}
      <JobFacts job={job} />
      <WorkspaceChanges job={job} />
      <Children job={job} />
      <Troubles job={job} />
      <Section title="Limits">
        <Rows
          label="Limits and what is used"
          rows={job.limits}
          rowKey={(row) => `${row.scope} ${row.owner ?? ""} ${row.limit} ${row.per_day}`}
          columns={[
            { head: "limit", cell: (row) => (row.per_day ? `${row.limit} per day` : row.limit) },
            {
              head: "of",
              cell: (row) => (row.scope === "job" ? "this job" : (row.owner ?? row.scope)),
            },
            {
              head: "used",
              isNumber: true,
              cell: (row) => (row.used === null ? "" : amountText(row.limit, row.used)),
            },
            { head: "maximum", isNumber: true, cell: (row) => amountText(row.limit, row.maximum) },
            { head: "then", cell: (row) => row.on_reached },
          ]}
        />
      </Section>
      <JobCosts job={job} />
      <Executions job={job} />
      <Checkpoints job={job} onFork={onFork} />
      <JobConfig job={job} />
    </>
  );
}

/** The workers that had the job, one after the other. */
function Executions({ job }: { job: JobDocument }) {
  return (
    <Section title="Executions" aside={`${job.executions.length}`}>
      <ol className="flex flex-col gap-1.5 text-sm">
        {job.executions.map((row) => (
          <li key={row.id}>
            <p className="flex flex-wrap items-baseline gap-x-3">
              <State status={row.status} />
              <span className="font-mono text-xs">{row.worker}</span>
              <span className="text-soft">
                {turnsText(row.turns)} · {usdText(row.cost_usd)}
              </span>
              <span className="text-faint">
                <Ago at={row.started_at} />
              </span>
            </p>
            {row.error !== null && (
              <p className="text-xs [overflow-wrap:anywhere] text-soft">{row.error}</p>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Inputs({ inputs }: { inputs: JobDocument["inputs"] }) {
  const given = Object.entries(inputs);
  if (given.length === 0) return null;
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-4 pt-2 text-sm">
      {given.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-faint">{name}</dt>
          <dd className="font-mono text-xs [overflow-wrap:anywhere]">
            {typeof value === "string" ? value : JSON.stringify(value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Children({ job }: { job: JobDocument }) {
  if (job.children.length === 0) return null;
  return (
    <Section title="Child jobs" aside={`${job.children.length}`}>
      <Rows
        label="Child jobs and their costs"
        rows={job.children}
        rowKey={(row) => row.id}
        columns={[
          {
            head: "state",
            cell: (row) => <State status={row.lost === null ? row.status : "lost"} />,
          },
          {
            head: "job",
            cell: (row) => (
              <Link to={`/jobs/${row.id}`} className="text-accent underline">
                {row.agent}
              </Link>
            ),
          },
          { head: "turns", isNumber: true, cell: (row) => row.turns },
          { head: "cost", isNumber: true, cell: (row) => usdText(row.tree_cost_usd) },
        ]}
      />
    </Section>
  );
}

/** Calls that were denied, and hooks that failed. */
function Troubles({ job }: { job: JobDocument }) {
  return (
    <>
      {job.denials.length > 0 && (
        <Section title="Denied calls" aside={`${job.denials.length}`}>
          <ul className="flex flex-col gap-1 text-sm">
            {job.denials.map((row, place) => (
              <li key={place} className="[overflow-wrap:anywhere]">
                <span className="font-medium">{row.tool_name}</span>: {row.reason}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {job.failed_hooks.length > 0 && (
        <Section title="Failed hooks" aside={`${job.failed_hooks.length}`}>
          <ul className="flex flex-col gap-1 text-sm">
            {job.failed_hooks.map((row, place) => (
              <li key={place} className="[overflow-wrap:anywhere]">
                <span className="font-medium">{row.name}</span> ({row.event}):{" "}
                {row.error ?? row.output ?? "no reason is known"}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

/** A table, or a word where there is nothing. */
export function Rows<Row>(props: Parameters<typeof Table<Row>>[0]): ReactNode {
  return props.rows.length === 0 ? (
    <p className="text-sm text-faint">none</p>
  ) : (
    <Table {...props} />
  );
}
