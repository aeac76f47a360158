import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { Schemas } from "../api/types";
import { LongText } from "../transcript/LongText";
import { Markdown } from "../transcript/Markdown";
import { Failure, Loading } from "../ui/Page";
import { runPath, type NodeRow } from "./documents";

/** What a phase gave: the answer of an agent as markdown, other texts as they are, values as JSON. */
export function PhaseOutput({ run, node }: { run: string; node: NodeRow }) {
  const output = useQuery({
    queryKey: ["run-output", run, node.path, node.attempt],
    queryFn: ({ signal }) => {
      const path = node.path.split("/").map(encodeURIComponent).join("/");
      return get<Schemas["OutputDocument"]>(`${runPath(run)}/outputs/${path}`, undefined, signal);
    },
    // The output of a phase that has ended never changes.
    staleTime: Infinity,
    retry: false,
  });
  if (output.isPending) return <Loading />;
  if (output.isError) return <Failure error={output.error} />;
  const value: unknown = output.data.output;
  if (value === null || value === "") return <p className="text-faint">No output.</p>;
  const id = `output:${run}:${node.path}`;
  return (
    <section aria-label="Output">
      <h3 className="text-xs font-semibold text-faint uppercase">Output</h3>
      {typeof value !== "string" ? (
        <LongText id={id} text={JSON.stringify(value, null, 2)} />
      ) : node.kind === "agent" ? (
        <Markdown text={value} />
      ) : (
        <LongText id={id} text={value} keeps="end" />
      )}
    </section>
  );
}
