import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import { get } from "../api/client";
import type { AgentRow, Schemas } from "../api/types";
import { useAddressSearch } from "../shell/address";
import { Field, Select } from "../ui/fields";
import { counted, countText, usdText } from "../ui/money";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { Table } from "../ui/Table";
import { BurnView } from "./Burn";
import { CostColumns } from "./CostColumns";
import {
  dayIn,
  daysBetween,
  groupOf,
  SPLITS,
  stackOf,
  tableOf,
  type CostRow,
  type Split,
} from "./stack";

type Costs = Schemas["CostsDocument"];
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const COUNTING_MS = 2_000;
const CALM_MS = 10_000;
const SPANS = [
  ["7d", "7 days"],
  ["14d", "14 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
] as const;

/** What was spent, on what, and what will be. */
export default function CostsPage() {
  const { by, since = "7d", agent = "" } = useAddressSearch();
  const split = SPLITS.find((name) => name === by) ?? "agent";
  const navigate = useNavigate();
  const go = (change: Record<string, string>) =>
    void navigate({ to: "/costs", search: { by: split, since, agent, ...change } });
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent"] },
  });
  const query = { since, agent, tz: ZONE };
  const daily = useCosts({ ...query, by: split === "day" ? "day" : `day,${split}`, limit: 1_000 });
  const groups = useCosts({ ...query, by: split, limit: 100 });
  return (
    <Page
      title="Costs"
      aside={
        <>
          <Field label="By">
            <Select
              value={split}
              options={SPLITS.map((name) => [name, name] as const)}
              onChange={(event) => go({ by: event.target.value })}
            />
          </Field>
          <Field label="Time">
            <Select
              value={since}
              options={SPANS}
              onChange={(event) => go({ since: event.target.value })}
            />
          </Field>
          <Field label="Agent">
            <Select
              value={agent}
              options={[
                ["", "all"],
                ...(agents.data ?? []).map(({ name }) => [name, name] as const),
              ]}
              onChange={(event) => go({ agent: event.target.value })}
            />
          </Field>
        </>
      }
    >
      {daily.isPending && <Loading />}
      {daily.isError && <Failure error={daily.error} retry={() => void daily.refetch()} />}
      {daily.isSuccess && <Days costs={daily.data} split={split} />}
      {groups.isSuccess && <Groups costs={groups.data} split={split} />}
    </Page>
  );
}

function useCosts(query: Record<string, string | number>) {
  return useQuery({
    queryKey: ["costs", query],
    queryFn: ({ signal }) => get<Costs>("/costs", query, signal),
    meta: { live: ["job"] },
    // Jobs are counted some moments after they have changed, which no event tells.
    refetchInterval: ({ state }) => (state.data?.pending_jobs === 0 ? CALM_MS : COUNTING_MS),
  });
}

function Days({ costs, split }: { costs: Costs; split: Split }) {
  const { timezone, total } = costs;
  const days = daysBetween(dayIn(costs.since, timezone), dayIn(costs.until, timezone));
  return (
    <>
      <BurnView burn={costs.burn} />
      <p className="text-sm text-soft">
        <strong className="text-ink tabular-nums">{usdText(total.cost_usd)}</strong> for{" "}
        {counted(total.jobs, "job")}, {counted(total.turns, "turn")} and{" "}
        {counted(total.tokens, "token")}, in days of {timezone}.{pendingText(costs.pending_jobs)}
      </p>
      {total.cost_usd > 0 && <CostColumns stack={stackOf(costs.rows, split, days)} />}
    </>
  );
}

function pendingText(jobs: number | null): string {
  if (jobs === null) return " All jobs are being counted again.";
  return jobs === 0 ? "" : ` ${counted(jobs, "job")} not fully counted yet.`;
}

function Groups({ costs, split }: { costs: Costs; split: Split }) {
  if (costs.rows.length === 0) return <Empty>Nothing was used in this time.</Empty>;
  return (
    <>
      <Table
        label={`Costs by ${split}`}
        rows={tableOf(costs.rows, split)}
        rowKey={(row) => groupOf(row, split)}
        columns={[
          { head: split, cell: (row) => <Group row={row} split={split} /> },
          { head: "cost", cell: (row) => usdText(row.cost_usd), isNumber: true },
          { head: "jobs", cell: (row) => countText(row.jobs), isNumber: true },
          { head: "turns", cell: (row) => countText(row.turns), isNumber: true },
          { head: "tokens", cell: (row) => countText(row.tokens), isNumber: true },
          { head: "output", cell: (row) => countText(row.output_tokens), isNumber: true },
          {
            head: "from cache",
            cell: (row) => countText(row.cache_read_input_tokens),
            isNumber: true,
          },
        ]}
      />
      {costs.others !== null && (
        <p className="text-sm text-soft">
          {costs.others.groups} more: {usdText(costs.others.cost_usd)}
        </p>
      )}
    </>
  );
}

function Group({ row, split }: { row: CostRow; split: Split }) {
  const name = groupOf(row, split);
  if (split === "agent" && row.agent !== null) {
    return (
      <Link to={`/agents/${encodeURIComponent(row.agent)}`} className="text-accent hover:underline">
        {name}
      </Link>
    );
  }
  return row.model_source === "configured" ? `${name} (as configured)` : name;
}
