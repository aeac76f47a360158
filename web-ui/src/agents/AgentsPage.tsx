import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { get } from "../api/client";
import type { AgentRow } from "../api/types";
import { usdText } from "../ui/money";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { Badge, State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";

/** Every agent: what it is, what it does now and what it spent today. */
export default function AgentsPage() {
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent", "job"] },
  });
  if (agents.isPending) return <Loading />;
  if (agents.isError) return <Failure error={agents.error} retry={() => void agents.refetch()} />;
  return (
    <Page title="Agents">
      {agents.data.length === 0 && (
        <Empty>
          No agent is declared. Add one under <code>agents:</code> in the fleet file.
        </Empty>
      )}
      {agents.data.length > 0 && (
        <Table
          label="Agents"
          rows={agents.data}
          rowKey={(agent) => agent.name}
          columns={[
            {
              head: "agent",
              cell: (agent) => (
                <Link
                  to={`/agents/${encodeURIComponent(agent.name)}`}
                  className="font-medium text-accent hover:underline"
                >
                  {agent.name}
                </Link>
              ),
            },
            { head: "now", cell: (agent) => <Now agent={agent} /> },
            {
              head: "runs with",
              cell: ({ runtime, model, has_container }) => (
                <>
                  {[runtime, model].filter(Boolean).join(", ")}
                  {has_container && " in a container"}
                </>
              ),
            },
            { head: "permissions", cell: (agent) => agent.permission_mode ?? "" },
            { head: "workspace", cell: (agent) => agent.workspace ?? "" },
            {
              head: "next",
              cell: ({ next_trigger_at: next }) => (next === null ? "" : <Ago at={next} />),
            },
            {
              head: "today",
              cell: ({ spent_today_usd: spent, spend_cap_today_usd: cap }) =>
                cap === null ? usdText(spent) : `${usdText(spent)} of ${usdText(cap)}`,
              isNumber: true,
            },
          ]}
        />
      )}
    </Page>
  );
}

function Now({ agent }: { agent: AgentRow }) {
  const counts = [
    agent.running > 0 && `${agent.running} running`,
    agent.waiting > 0 && `${agent.waiting} waiting`,
    agent.suspended > 0 && `${agent.suspended} suspended`,
  ].filter(Boolean);
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      {agent.lost > 0 ? (
        <Badge tone="lost" text={`${agent.lost} lost`} title={agent.lost_next ?? ""} />
      ) : (
        <State status={agent.status} title={agent.error_message ?? agent.status} />
      )}
      {counts.length > 0 && <span className="text-soft">{counts.join(", ")}</span>}
      {!agent.is_declared && <Badge tone="quiet" text="left the fleet file" />}
    </span>
  );
}
