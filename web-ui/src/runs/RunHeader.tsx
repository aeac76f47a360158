import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { usdText } from "../ui/money";
import { State } from "../ui/Status";
import { Ago, spanText, useNow } from "../ui/time";
import { isRunOpen, runLimitText, type RunDocument } from "./documents";

/** What a run is, how it does, and what it has used. */
export function RunHeader({ run, actions }: { run: RunDocument; actions: ReactNode }) {
  const spend = run.limits.find(({ name }) => name === "spend");
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
      <State status={run.status} />
      <h1 className="text-xl font-semibold">
        <Link to={`/workflows/${encodeURIComponent(run.workflow)}`} className="hover:underline">
          {run.workflow}
        </Link>
      </h1>
      <span className="font-mono text-xs text-faint">{run.id}</span>
      <span className="ml-auto flex flex-wrap gap-2">{actions}</span>
      <p className="flex w-full flex-wrap gap-x-3 gap-y-0.5 text-sm text-soft">
        <span>
          started <Ago at={run.started_at} /> by {startedBy(run)}
        </span>
        <Took run={run} />
        <span>
          {usdText(run.cost_usd)}
          {spend !== undefined && ` of ${runLimitText("spend", spend.maximum)}`}
        </span>
        {run.current_phase !== null && run.status === "running" && (
          <span>at {run.current_phase}</span>
        )}
        <Origin run={run} />
      </p>
      {run.error !== null && (
        <p role="alert" className="w-full text-sm [overflow-wrap:anywhere] text-bad">
          {run.error}
        </p>
      )}
      {run.stopping !== null && isRunOpen(run) && (
        <p className="w-full text-sm text-wait">It stops: {run.stopping}</p>
      )}
    </header>
  );
}

function startedBy(run: RunDocument): string {
  if (run.schedule !== null) return `the schedule ${run.schedule}`;
  const by = run.started_by ?? "nobody";
  return run.trigger_type === "manual" ? by : `${by} (${run.trigger_type.replaceAll("_", " ")})`;
}

/** How long it has taken, and how much of that something was worked on. */
function Took({ run }: { run: RunDocument }) {
  const now = useNow();
  const end = run.finished_at === null ? now : Date.parse(run.finished_at);
  const seconds = Math.max(0, (end - Date.parse(run.started_at)) / 1_000);
  return (
    <span>
      took {spanText(seconds)}
      {run.status !== "running" && `, worked ${spanText(run.worked_seconds)}`}
    </span>
  );
}

function Origin({ run }: { run: RunDocument }) {
  const from = [
    ["retries", run.retried_from],
    ["fork of", run.forked_from],
    ["part of", run.parent_run_id],
  ] as const;
  return from.map(
    ([word, id]) =>
      id !== null && (
        <span key={word}>
          {word}{" "}
          <Link to={`/runs/${id}`} className="text-accent underline">
            {id}
          </Link>
        </span>
      ),
  );
}
