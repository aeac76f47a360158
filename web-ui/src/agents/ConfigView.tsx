import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { get } from "../api/client";
import type { Schemas } from "../api/types";
import { TextInput } from "../ui/fields";
import { Empty, Failure, Loading } from "../ui/Page";
import { Table } from "../ui/Table";

type Value = Schemas["ConfigValueRow"];
type Config = Pick<
  Schemas["AgentConfigDocument"],
  "values" | "is_cut" | "is_valid" | "problems" | "accepted"
>;

/** Every value of a configuration, and where it was written. */
export function ConfigView({ path }: { path: string }) {
  const [words, setWords] = useState("");
  const config = useQuery({
    queryKey: ["config", path],
    queryFn: ({ signal }) => get<Config>(path, undefined, signal),
    meta: { live: ["agent", "inbox"] },
  });
  if (config.isPending) return <Loading />;
  if (config.isError) return <Failure error={config.error} retry={() => void config.refetch()} />;
  const { values, is_cut: isCut, is_valid: isValid, problems, accepted } = config.data;
  const wanted = words.trim().toLowerCase();
  const rows = values.filter(({ key, value }) =>
    `${key} ${valueText(value)}`.toLowerCase().includes(wanted),
  );
  return (
    <div className="flex flex-col gap-2">
      {!isValid && (
        <p role="alert" className="text-sm text-bad">
          The files have errors; these are the values that could be read last.
        </p>
      )}
      {problems.map((problem) => (
        <p key={`${problem.file}:${problem.line}:${problem.message}`} className="text-sm text-bad">
          <span className="font-mono">
            {problem.file}:{problem.line}:{problem.column}
          </span>{" "}
          {problem.message}
        </p>
      ))}
      {!accepted.is_accepted && accepted.pending.length > 0 && (
        <div className="rounded-md bg-wait-soft p-2 text-sm text-wait">
          <p>Waits for a person before it takes effect:</p>
          <ul className="list-disc pl-5">
            {accepted.pending.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {accepted.item_id !== null && (
            <Link to={`/inbox/${accepted.item_id}`} className="underline">
              Decide
            </Link>
          )}
        </div>
      )}
      <TextInput
        type="search"
        aria-label="Filter values"
        placeholder="Filter values"
        value={words}
        onChange={(event) => setWords(event.target.value)}
        className="max-w-sm"
      />
      {rows.length === 0 ? (
        <Empty>No value matches.</Empty>
      ) : (
        <Table
          label="Values"
          rows={rows}
          rowKey={(row) => row.key}
          columns={[
            { head: "key", cell: (row) => <span className="font-mono text-xs">{row.key}</span> },
            { head: "value", cell: (row) => valueText(row.value) },
            {
              head: "from",
              cell: (row) => <span className="font-mono text-xs">{row.origin}</span>,
            },
            { head: "layer", cell: (row) => row.layer.replaceAll("_", " ") },
          ]}
        />
      )}
      {isCut && <p className="text-xs text-faint">The list is cut; see nightherd config show.</p>}
    </div>
  );
}

export function valueText(value: Value["value"]): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
