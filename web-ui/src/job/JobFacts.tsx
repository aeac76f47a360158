import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { startText } from "../jobs/job_text";
import { SaveLinks } from "../shell/SaveLinks";
import { Section } from "../ui/Page";
import { Ago } from "../ui/time";
import { useWorkspace } from "./CopyResume";
import type { JobDocument } from "./documents";
import { jobPath } from "./job_source";

const FORMATS = [
  ["html", "page"],
  ["jsonl", "journal"],
] as const;

/** Where a job comes from, where it works, and when it did what. */
export function JobFacts({ job }: { job: JobDocument }) {
  const workspace = useWorkspace(job).data;
  const toJob = (id: string) => (
    <Link to={`/jobs/${id}`} className="text-accent underline">
      {id}
    </Link>
  );
  const facts: [string, ReactNode][] = [
    ["started by", startText(job)],
    ["created", <Ago key="at" at={job.created_at} />],
  ];
  if (job.started_at !== null) facts.push(["started", <Ago key="at" at={job.started_at} />]);
  if (job.finished_at !== null) facts.push(["ended", <Ago key="at" at={job.finished_at} />]);
  if (job.exit_reason !== null) facts.push(["how", job.exit_reason.replaceAll("_", " ")]);
  if (job.resumed_from !== null) facts.push(["resumed from", toJob(job.resumed_from)]);
  if (job.forked_from !== null) facts.push(["forked from", job.forked_from]);
  if (job.parent_job_id !== null) facts.push(["started by job", toJob(job.parent_job_id)]);
  if (job.session_note !== null) facts.push(["session", job.session_note]);
  if (job.priority !== 0) facts.push(["priority", String(job.priority)]);
  if (job.restart_count > 0) facts.push(["restarts", String(job.restart_count)]);
  if (workspace !== undefined) {
    facts.push(["directory", <Code key="d">{workspace.directory}</Code>]);
    facts.push(["workspace", `${workspace.mode}, ${workspace.state}`]);
    if (workspace.branch !== null) facts.push(["branch", <Code key="b">{workspace.branch}</Code>]);
    if (workspace.kept_because !== null) facts.push(["kept because", workspace.kept_because]);
  }
  if (job.output_file !== null) facts.push(["output file", <Code key="o">{job.output_file}</Code>]);
  facts.push([
    "export",
    <SaveLinks key="e" path={`${jobPath(job.id)}/export`} name={job.id} formats={FORMATS} />,
  ]);
  return (
    <Section title="Facts">
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-sm">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-faint">{name}</dt>
            <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Code({ children }: { children: string }) {
  return <code className="font-mono text-xs">{children}</code>;
}
