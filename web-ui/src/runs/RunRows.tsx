import { Link } from "@tanstack/react-router";

import type { RunRow } from "../api/types";
import { usdText } from "../ui/money";
import { State } from "../ui/Status";
import { Ago, spanText, useNow } from "../ui/time";

/** Runs as a list, on any width. */
export function RunRows({ rows, label }: { rows: readonly RunRow[]; label: string }) {
  return (
    <ul aria-label={label} className="rounded-lg border border-line bg-panel">
      {rows.map((run) => (
        <li
          key={run.id}
          data-row={run.id}
          className="flex flex-wrap items-center gap-x-3 gap-y-0.5 border-b border-line px-3 py-2 text-sm last:border-0 focus-within:bg-hover hover:bg-hover"
        >
          <span className="order-1 shrink-0 md:order-none md:w-28">
            <State status={run.status} />
          </span>
          <span className="min-w-0 flex-1 md:basis-60">
            <Link
              to={`/runs/${run.id}`}
              data-row-link
              className="inline-flex min-h-10 flex-wrap items-center gap-x-2 font-medium hover:underline md:min-h-0"
            >
              {run.workflow}
              <span className="font-mono text-xs font-normal text-faint">{run.id.slice(-6)}</span>
            </Link>
            <span className="block truncate text-xs text-soft" title={aboutText(run)}>
              {aboutText(run)}
            </span>
          </span>
          <span className="order-2 flex w-full flex-wrap gap-x-3 text-xs text-soft tabular-nums md:order-none md:w-auto md:text-sm">
            <span className="md:w-20 md:text-right">{usdText(run.cost_usd)}</span>
            <span className="md:w-24 md:text-right">
              <Took run={run} />
            </span>
            <span className="md:w-28 md:text-right">
              <Ago at={run.started_at} />
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}

function Took({ run }: { run: RunRow }) {
  return run.finished_at === null ? <Running run={run} /> : spanText(run.duration_seconds);
}

function Running({ run }: { run: RunRow }) {
  const now = useNow();
  return spanText((now - Date.parse(run.started_at)) / 1_000);
}

/** Where it is, why it failed, and what started it. */
function aboutText(run: RunRow): string {
  const place =
    run.status === "running" && run.current_phase !== null ? `at ${run.current_phase}` : "";
  const origin =
    run.parent_run_id !== null
      ? `part of ${run.parent_run_id}`
      : run.schedule !== null
        ? `schedule ${run.schedule}`
        : `${run.trigger_type.replaceAll("_", " ")}${run.started_by === null ? "" : ` by ${run.started_by}`}`;
  return [place, run.error, origin].filter(Boolean).join(" · ");
}
