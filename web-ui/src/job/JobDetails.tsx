import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { get } from "../api/client";
import { PatchView } from "../transcript/DiffView";
import { Markdown } from "../transcript/Markdown";
import { usdText } from "../ui/money";
import { Empty, Failure, Loading, Section } from "../ui/Page";
import { Ago } from "../ui/time";
import type { JobDiff, JobDocument, Outline } from "./documents";
import { jobPath } from "./job_source";

interface ConfigValue {
  key: string;
  value: unknown;
  origin?: string | null;
  file?: string | null;
  line?: number | null;
}

/** Everything about a job that is not its transcript. */
export function JobDetails({ job, outline }: { job: JobDocument; outline: Outline | undefined }) {
  return (
    <div className="min-h-0 flex-1 overflow-y-auto pt-3">
      <Section title="Asked">
        <Markdown text={job.prompt ?? ""} />
      </Section>
      {job.summary && (
        <Section title="Answer">
          <Markdown text={job.summary} />
        </Section>
      )}
      <Section title="Limits">
        <Table
          head={["limit", "of", "used", "maximum", "then"]}
          rows={job.limits.map((row) => [
            row.per_day ? `${row.limit} per day` : row.limit,
            row.owner ?? row.scope,
            row.used ?? "",
            row.maximum,
            row.on_reached,
          ])}
        />
      </Section>
      <Section title="Usage">
        <Table
          head={["", "tokens"]}
          rows={Object.entries(job.usage).map(([name, count]) => [
            name.replaceAll("_", " "),
            count.toLocaleString("en"),
          ])}
        />
      </Section>
      <Section title="Executions">
        <Table
          head={["epoch", "worker", "status", "turns", "cost", "started", "error"]}
          rows={job.executions.map((row) => [
            row.epoch,
            row.worker,
            row.status,
            row.turns,
            usdText(row.cost_usd),
            <Ago key="at" at={row.started_at} />,
            row.error ?? "",
          ])}
        />
      </Section>
      {outline !== undefined && outline.checkpoints.length > 0 && (
        <Section title="Checkpoints">
          <Table
            head={["number", "trigger", "turn", "cost", "event"]}
            rows={outline.checkpoints.map((row) => [
              row.number,
              row.trigger,
              row.turn,
              usdText(row.cost_usd),
              <Link key="seq" to={`/jobs/${job.id}`} hash={String(row.seq)} className="text-accent">
                #{row.seq}
              </Link>,
            ])}
          />
        </Section>
      )}
      <Configuration agent={job.agent} />
      <WorkspaceDiff job={job} />
    </div>
  );
}

function Configuration({ agent }: { agent: string }) {
  const config = useQuery({
    queryKey: ["agent-config", agent],
    queryFn: ({ signal }) =>
      get<ConfigValue[] | { values: ConfigValue[] }>(
        `/agents/${encodeURIComponent(agent)}/config`,
        undefined,
        signal,
      ),
    retry: false,
  });
  if (config.isPending) return <Loading />;
  if (config.isError) return <Failure error={config.error} />;
  const values = Array.isArray(config.data) ? config.data : config.data.values;
  return (
    <Section title="Configuration of the agent" aside="as it is now">
      <Table
        head={["key", "value", "from"]}
        rows={values.map((row) => [
          row.key,
          typeof row.value === "string" ? row.value : JSON.stringify(row.value),
          row.file == null ? (row.origin ?? "") : `${row.file}:${row.line ?? ""}`,
        ])}
      />
    </Section>
  );
}

function WorkspaceDiff({ job }: { job: JobDocument }) {
  const hasWorkspace = job.workspace !== null;
  const diff = useQuery({
    queryKey: ["diff", job.id],
    queryFn: ({ signal }) => get<JobDiff>(`${jobPath(job.id)}/diff`, undefined, signal),
    enabled: hasWorkspace,
    retry: false,
  });
  if (!hasWorkspace) return null;
  if (diff.isPending) return <Loading />;
  if (diff.isError) return <Failure error={diff.error} />;
  return (
    <Section title="Changed files" aside={`${diff.data.files.length}`}>
      {diff.data.files.length === 0 && <Empty>The job changed no files.</Empty>}
      {diff.data.is_patch_left_out && (
        <p className="text-sm text-faint">The patch is too large; use nightherd jobs diff.</p>
      )}
      {diff.data.patch && <PatchView patch={diff.data.patch} />}
    </Section>
  );
}

function Table({ head, rows }: { head: string[]; rows: ReactNode[][] }) {
  if (rows.length === 0) return <p className="text-sm text-faint">none</p>;
  return (
    <div className="overflow-x-auto">
      <table className="text-sm">
        <thead>
          <tr>
            {head.map((name, place) => (
              <th key={place} className="pr-4 text-left text-xs font-medium text-faint">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place} className="align-top">
              {row.map((cell, column) => (
                <td key={column} className="py-0.5 pr-4 [overflow-wrap:anywhere]">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
