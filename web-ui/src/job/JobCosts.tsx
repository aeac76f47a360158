import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { Data } from "../api/types";
import { countText, usdText } from "../ui/money";
import { Section } from "../ui/Page";
import { Table } from "../ui/Table";
import type { JobDocument } from "./documents";

type Costs = Data<"/v1/costs">;

/** What the job used, by model. */
export function JobCosts({ job }: { job: JobDocument }) {
  const costs = useQuery({
    queryKey: ["costs", "of", job.id],
    queryFn: ({ signal }) =>
      get<Costs>("/costs", { job: job.id, by: "model", since: job.created_at }, signal),
    meta: { live: ["job"] },
  });
  const rows = costs.data?.rows ?? [];
  // Usage is counted in the background: until then the job's own sums are all there is.
  const isBehind = rows.length === 0;
  return (
    <Section title="Usage" aside={isBehind ? "by model in a moment" : "by model"}>
      {isBehind ? (
        <p className="text-sm">
          {usdText(job.cost_usd)}, {countText(job.usage.input_tokens)} tokens in,{" "}
          {countText(job.usage.output_tokens)} out, {countText(job.usage.cache_read_input_tokens)}{" "}
          from the cache
        </p>
      ) : (
        <Table
          label="Usage by model"
          rows={rows}
          rowKey={(row) => row.model ?? ""}
          columns={[
            {
              head: "model",
              cell: (row) =>
                row.model === null
                  ? "not on record"
                  : row.model_source === "configured"
                    ? `${row.model} (as configured)`
                    : row.model,
            },
            { head: "cost", isNumber: true, cell: (row) => usdText(row.cost_usd) },
            { head: "in", isNumber: true, cell: (row) => countText(row.input_tokens) },
            { head: "out", isNumber: true, cell: (row) => countText(row.output_tokens) },
            {
              head: "cache",
              isNumber: true,
              cell: (row) =>
                `${countText(row.cache_read_input_tokens)} + ${countText(row.cache_creation_input_tokens)}`,
            },
            { head: "turns", isNumber: true, cell: (row) => countText(row.turns) },
          ]}
        />
      )}
    </Section>
  );
}
