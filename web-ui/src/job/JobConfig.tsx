import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { ConfigView, valueText } from "../agents/ConfigView";
import { get } from "../api/client";
import type { Data } from "../api/types";
import { Field, Select, TextInput } from "../ui/fields";
import { Empty, Failure, Loading, Section } from "../ui/Page";
import { Table } from "../ui/Table";
import type { JobDocument } from "./documents";

type Config = Data<"/v1/jobs/{job}/config">;
type Shown = {
  key: string;
  value: unknown;
  origin: string;
  layer: string;
  now: string;
};

/** What an execution of the job was set to do its work with, and what has changed since. */
export function JobConfig({ job }: { job: JobDocument }) {
  const [epoch, setEpoch] = useState<number | null>(null);
  const path = `/jobs/${job.id}/config`;
  const config = useQuery({
    queryKey: ["config", path, epoch, job.executions.length],
    queryFn: ({ signal }) => get<Config>(path, epoch === null ? undefined : { epoch }, signal),
    meta: { live: ["agent", "inbox"] },
  });
  const executions = config.data?.executions ?? [];
  return (
    <Section title="Configuration of the job" aside="as it began with">
      {config.isPending ? (
        <Loading />
      ) : config.isError ? (
        <Failure error={config.error} retry={() => void config.refetch()} />
      ) : (
        <div className="flex flex-col gap-2">
          {executions.length > 1 && (
            <Field label="Execution">
              <Select
                className="max-w-sm"
                value={String(config.data.epoch)}
                onChange={(event) => setEpoch(Number(event.target.value))}
                options={executions.map((one, place) => [
                  String(one.epoch),
                  `${one.epoch}${sameText(one.hash, executions[place - 1]?.hash)}`,
                ])}
              />
            </Field>
          )}
          {config.data.is_recorded ? (
            <Values config={config.data} />
          ) : (
            <p className="text-sm text-soft">{config.data.note}</p>
          )}
        </div>
      )}
      <details className="mt-3">
        <summary className="cursor-pointer text-sm text-soft">
          Configuration of the agent as it is now
        </summary>
        <div className="pt-2">
          <ConfigView path={`/agents/${encodeURIComponent(job.agent)}/config`} />
        </div>
      </details>
    </Section>
  );
}

/** What an execution's settings are beside those of the execution before it. */
function sameText(hash: string | null, before: string | null | undefined): string {
  if (hash === null) return ", not recorded";
  if (before === undefined || before === null) return "";
  return hash === before ? ", as before" : ", changed";
}

function Values({ config }: { config: Config }) {
  const [words, setWords] = useState("");
  const [isChangesOnly, setChangesOnly] = useState(false);
  const all: Shown[] = [
    ...config.values.map((row) => ({ ...row, now: nowText(row) })),
    ...config.added.map((row) => ({ ...row, value: "", now: valueText(row.value) })),
  ];
  const changed = all.filter(({ now }) => now !== "");
  const wanted = words.trim().toLowerCase();
  const rows = (isChangesOnly ? changed : all).filter(({ key, value }) =>
    `${key} ${valueText(value)}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <p role="status" className="text-sm text-soft">
        {!config.is_compared
          ? "The fleet does not have this agent now, so nothing can be compared."
          : changed.length === 0
            ? "All values are the same now."
            : `${changed.length} ${changed.length === 1 ? "value differs" : "values differ"} now.`}
      </p>
      <div className="flex flex-wrap items-center gap-3">
        <TextInput
          type="search"
          aria-label="Filter values of the job"
          placeholder="Filter values"
          value={words}
          onChange={(event) => setWords(event.target.value)}
          className="max-w-sm"
        />
        {changed.length > 0 && (
          <label className="flex items-center gap-1.5 text-sm">
            <input
              type="checkbox"
              checked={isChangesOnly}
              onChange={(event) => setChangesOnly(event.target.checked)}
            />
            only what differs now
          </label>
        )}
      </div>
      {rows.length === 0 ? (
        <Empty>No value matches.</Empty>
      ) : (
        <Table
          label="Values of the job"
          rows={rows}
          rowKey={(row) => row.key}
          columns={[
            { head: "key", cell: (row) => <span className="font-mono text-xs">{row.key}</span> },
            { head: "value", cell: (row) => valueText(row.value) },
            {
              head: "now",
              cell: (row) =>
                row.now === "" ? null : (
                  <mark className="rounded bg-wait-soft px-1 text-wait">{row.now}</mark>
                ),
            },
            {
              head: "from",
              cell: (row) => <span className="font-mono text-xs">{row.origin}</span>,
            },
            { head: "layer", cell: (row) => row.layer.replaceAll("_", " ") },
          ]}
        />
      )}
      {config.is_cut && <p className="text-xs text-faint">There were more than are recorded.</p>}
    </>
  );
}

function nowText(row: Config["values"][number]): string {
  if (row.change === "removed") return "not set";
  return row.change === "changed" ? valueText(row.now) : "";
}
