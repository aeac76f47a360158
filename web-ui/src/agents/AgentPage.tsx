import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { get, getPage, post } from "../api/client";
import type { JobRow, Schemas } from "../api/types";
import { shortId } from "../jobs/job_text";
import { useAddressPart } from "../shell/address";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { countText, usdText } from "../ui/money";
import { Empty, Failure, Loading, Page, Section } from "../ui/Page";
import { JobState, State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";
import { ConfigView } from "./ConfigView";

type Agent = Schemas["AgentDocument"];

/** One agent: what it may do, what it did, what it costs, and where each value was written. */
export default function AgentPage() {
  const name = useAddressPart("agent");
  const path = `/agents/${encodeURIComponent(name)}`;
  const agent = useQuery({
    queryKey: ["agent", name],
    queryFn: ({ signal }) => get<Agent>(path, undefined, signal),
    meta: { live: ["agent", "job"] },
  });
  if (agent.isPending) return <Loading />;
  if (agent.isError) return <Failure error={agent.error} retry={() => void agent.refetch()} />;
  const { data } = agent;
  return (
    <Page title={data.name} aside={<Reset agent={data} path={path} />}>
      <p className="flex flex-wrap items-center gap-2 text-sm text-soft">
        <State status={data.status} />
        {data.description}
      </p>
      {data.error_message !== null && (
        <p role="alert" className="text-sm wrap-anywhere text-bad">
          {data.error_message}
        </p>
      )}
      <Section title="May and does">
        <Facts agent={data} />
      </Section>
      <Section title="Limits">
        <Limits agent={data} />
      </Section>
      {data.schedules.length > 0 && (
        <Section title="Schedules">
          <ul className="text-sm">
            {data.schedules.map((schedule) => (
              <li key={schedule.id} className="flex flex-wrap gap-x-3 py-1">
                <Link
                  to="/schedules"
                  search={{ schedule: schedule.id }}
                  className="text-accent hover:underline"
                >
                  {schedule.name}
                </Link>
                <span className="font-mono text-xs text-faint">{schedule.rule}</span>
                <State status={schedule.enabled ? schedule.status : "disabled"} />
                {schedule.next_run_at !== null && <Ago at={schedule.next_run_at} />}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Newest jobs">
        <NewestJobs agent={data.name} />
      </Section>
      <Section title="Configuration">
        <ConfigView path={`${path}/config`} />
      </Section>
    </Page>
  );
}

function Facts({ agent }: { agent: Agent }) {
  const { settings, spent } = agent;
  if (settings === null) return <Empty>This agent left the fleet file.</Empty>;
  const list = (names: readonly string[], none: string) =>
    names.length === 0 ? none : names.join(", ");
  const facts: [string, ReactNode][] = [
    ["runtime", [agent.runtime, settings.model, settings.effort].filter(Boolean).join(", ")],
    ["permission mode", settings.permission_mode],
    ["tools", settings.tools === null ? "all" : list(settings.tools, "none")],
    ["allowed", list(settings.allowed_tools, "nothing beyond its mode")],
    ["denied", list(settings.denied_tools, "nothing")],
    ["asks before", list(settings.approvals, "nothing")],
    ["MCP servers", list(settings.mcp_servers, "none")],
    ["works in", `${settings.working_directory} (${settings.workspace.mode})`],
    [
      "container",
      settings.container === null
        ? "none: on this machine"
        : `${settings.container.image}, network ${settings.container.network}`,
    ],
    ["sessions", settings.session_mode.replaceAll("_", " ")],
    ["at once", settings.max_concurrent],
    ["used", `${usdText(spent.today_usd)}, ${countText(spent.today_tokens)} tokens today`],
  ];
  return (
    <dl className="grid grid-cols-[8rem_1fr] gap-x-3 gap-y-1 text-sm">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-faint">{name}</dt>
          <dd className="wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Limits({ agent }: { agent: Agent }) {
  if (agent.limits.length === 0) return <Empty>It has no limits.</Empty>;
  const text = (name: string, value: number | null) =>
    value === null ? "" : name === "spend" ? usdText(value) : countText(value);
  return (
    <Table
      label="Limits and what is used"
      rows={agent.limits}
      rowKey={(row) => `${row.scope} ${row.owner} ${row.limit} ${row.per_day}`}
      columns={[
        { head: "limit", cell: (row) => (row.per_day ? `${row.limit} per day` : row.limit) },
        { head: "of", cell: (row) => row.owner ?? row.scope },
        { head: "used", cell: (row) => text(row.limit, row.used), isNumber: true },
        { head: "maximum", cell: (row) => text(row.limit, row.maximum), isNumber: true },
        { head: "then", cell: (row) => row.on_reached },
      ]}
    />
  );
}

function NewestJobs({ agent }: { agent: string }) {
  const jobs = useQuery({
    queryKey: ["jobs", "of", agent],
    queryFn: ({ signal }) => getPage<JobRow>("/jobs", { agent, limit: 10 }, signal),
    meta: { live: ["job"] },
  });
  if (jobs.isPending) return <Loading />;
  if (jobs.isError) return <Failure error={jobs.error} />;
  if (jobs.data.data.length === 0) return <Empty>It has no jobs yet.</Empty>;
  return (
    <>
      <Table
        label="Its newest jobs"
        rows={jobs.data.data}
        rowKey={(job) => job.id}
        columns={[
          {
            head: "job",
            cell: (job) => (
              <Link
                to={`/jobs/${job.id}`}
                className="font-mono text-xs text-accent hover:underline"
              >
                {shortId(job.id)}
              </Link>
            ),
          },
          { head: "status", cell: (job) => <JobState job={job} /> },
          { head: "summary", cell: (job) => job.summary ?? job.error?.message ?? "" },
          { head: "cost", cell: (job) => usdText(job.cost_usd), isNumber: true },
          { head: "created", cell: (job) => <Ago at={job.created_at} /> },
        ]}
      />
      <Link to="/jobs" search={{ q: `agent:${agent}` }} className="text-sm text-accent">
        All its jobs
      </Link>
    </>
  );
}

/** Clears the error that an agent shows after a failure. */
function Reset({ agent, path }: { agent: Agent; path: string }) {
  const client = useQueryClient();
  const acting = useActing();
  const reset = useMutation({
    mutationFn: () => post(`${path}/reset`),
    onSuccess: () => {
      notify(`${agent.name} is reset`);
      void client.invalidateQueries({ queryKey: ["agent"] });
    },
    onError: notifyError,
  });
  if (agent.status !== "error") return null;
  return (
    <Button
      {...acting}
      disabled={acting.disabled || reset.isPending}
      onClick={() => reset.mutate()}
    >
      Clear the error
    </Button>
  );
}
