import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { get } from "../api/client";
import type { RunRow, Schemas } from "../api/types";
import { classes } from "../ui/classes";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { useRowKeys } from "../ui/row_keys";
import { SIGNS, State, TONES, toneOf } from "../ui/Status";
import { Ago } from "../ui/time";
import { triggersText } from "./triggers";

type WorkflowRow = Schemas["SwitchedWorkflowRow"];
const LAST = 5;

/** The workflows of the fleet: what starts them, and how they did last. */
export default function WorkflowsPage() {
  const workflows = useQuery({
    queryKey: ["workflows"],
    queryFn: ({ signal }) => get<WorkflowRow[]>("/workflows", undefined, signal),
  });
  useRowKeys("Workflows", "workflow");
  return (
    <Page title="Workflows">
      {workflows.isPending && <Loading />}
      {workflows.isError && (
        <Failure error={workflows.error} retry={() => void workflows.refetch()} />
      )}
      {workflows.data?.length === 0 && (
        <Empty>
          The fleet has no workflows. Write one in <code>workflows/NAME.yaml</code> beside the fleet
          file.
        </Empty>
      )}
      {workflows.data !== undefined && workflows.data.length > 0 && (
        <ul aria-label="Workflows" className="rounded-lg border border-line bg-panel">
          {workflows.data.map((workflow) => (
            <Row key={workflow.name} workflow={workflow} />
          ))}
        </ul>
      )}
    </Page>
  );
}

function Row({ workflow }: { workflow: WorkflowRow }) {
  const { name } = workflow;
  const runs = useQuery({
    queryKey: ["runs", "of", name, LAST],
    queryFn: ({ signal }) => get<RunRow[]>("/runs", { workflow: name, limit: LAST }, signal),
    meta: { live: ["run"] },
  });
  const last = runs.data?.[0];
  return (
    <li
      data-row={name}
      className="flex flex-wrap items-center gap-x-3 gap-y-0.5 border-b border-line px-3 py-2 text-sm last:border-0 focus-within:bg-hover hover:bg-hover"
    >
      <span className="shrink-0 md:w-24">
        <State status={workflow.is_enabled ? "enabled" : "disabled"} />
      </span>
      <span className="min-w-0 flex-1 basis-44">
        <Link
          to={`/workflows/${encodeURIComponent(name)}`}
          data-row-link
          className="inline-flex min-h-10 items-center font-medium hover:underline md:min-h-0"
        >
          {name}
        </Link>
        <span className="block text-xs [overflow-wrap:anywhere] text-soft">
          {[workflow.description, phasesText(workflow.phase_count), triggersText(workflow)]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </span>
      <span className="flex items-center gap-1">
        {runs.data?.toReversed().map((run) => (
          <LastRun key={run.id} run={run} />
        ))}
      </span>
      <span className="w-32 text-xs text-soft md:text-right">
        {last !== undefined && <Ago at={last.started_at} />}
        {runs.data?.length === 0 && "never ran"}
      </span>
    </li>
  );
}

function phasesText(count: number): string {
  return count === 1 ? "1 phase" : `${count} phases`;
}

/** One of the last runs: a sign that leads to it. */
function LastRun({ run }: { run: RunRow }) {
  const tone = toneOf(run.status);
  return (
    <Link
      to={`/runs/${run.id}`}
      title={`${run.status}, ${run.id}`}
      className={classes(
        "grid size-10 place-items-center rounded text-sm md:size-6 md:text-xs",
        TONES[tone],
      )}
    >
      <span aria-hidden>{SIGNS[tone]}</span>
      <span className="sr-only">
        {run.status} run {run.id}
      </span>
    </Link>
  );
}
