import "../transcript/transcript.css";

import { useQueries } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { get } from "../api/client";
import type { Gap, Outline } from "../job/documents";
import { jobPath } from "../job/job_source";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Empty } from "../ui/Page";
import { spanText, timeText, useNow } from "../ui/time";
import { isRunOpen, type RunDocument } from "./documents";
import { jobsOfRun, timelineOfRun, type Span, type TimelineRow } from "./run_timeline";

/** Jobs whose dead time is looked up at once, and rows that are drawn at once. */
const MOST_JOBS = 40;
const MOST_ROWS = 60;

const TONES: Record<Span["kind"], string> = {
  work: "bg-busy",
  wait: "hatched border border-wait",
  failed: "bg-bad",
  gap: "hatched border border-edge",
};

/** When the phases worked and waited, and the dead time with its reasons. */
export function RunTimelineView({
  run,
  selected,
  onSelect,
}: {
  run: RunDocument;
  selected: string | null;
  onSelect: (path: string) => void;
}) {
  const now = useNow();
  const isOpen = isRunOpen(run);
  const end = isOpen ? now : 0;
  const { gaps, leftOut } = useGaps(run, isOpen);
  const [most, setMost] = useState(MOST_ROWS);
  const line = useMemo(() => timelineOfRun(run, gaps, end), [run, gaps, end]);
  if (line.rows.length === 0) return <Empty>No phase has begun.</Empty>;
  const shown = line.rows.slice(0, most);
  const place = ({ from, to }: Span) => ({
    left: `${((from - line.start) / (line.end - line.start)) * 100}%`,
    width: `max(2px, ${((to - from) / (line.end - line.start)) * 100}%)`,
  });
  return (
    <div className="flex flex-col gap-3 text-xs">
      <div className="rounded-lg border border-line bg-panel p-2">
        <Lane name="dead time" spans={line.dead} place={place} />
        <ol aria-label="Phases by time">
          {shown.map((row) => (
            <li key={row.path}>
              <Lane
                name={row.path}
                spans={row.spans}
                place={place}
                isSelected={row.path === selected}
                onSelect={() => onSelect(row.path)}
              />
            </li>
          ))}
        </ol>
        <p className="flex pt-1 pl-32 text-faint md:pl-44">
          <span>{timeText(new Date(line.start).toISOString())}</span>
          <span className="ml-auto">{spanText((line.end - line.start) / 1_000)}</span>
        </p>
      </div>
      {line.rows.length > most && (
        <Button className="self-start" onClick={() => setMost(most + MOST_ROWS)}>
          Show more of {line.rows.length - most} others
        </Button>
      )}
      {leftOut > 0 && (
        <p className="text-faint">The dead time of {leftOut} later jobs is not looked up here.</p>
      )}
      <DeadTime dead={line.dead} />
    </div>
  );
}

function useGaps(run: RunDocument, isOpen: boolean) {
  const jobs = useMemo(() => jobsOfRun(run.nodes), [run.nodes]);
  const asked = jobs.slice(0, MOST_JOBS);
  const gaps = useQueries({
    queries: asked.map((id) => ({
      queryKey: ["outline", id],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        get<Outline>(`${jobPath(id)}/outline`, undefined, signal),
      staleTime: isOpen ? 0 : Infinity,
      meta: isOpen ? { live: ["job"] } : {},
    })),
    combine: (outlines): ReadonlyMap<string, readonly Gap[]> =>
      new Map(
        outlines.flatMap(({ data }) => (data === undefined ? [] : [[data.job_id, data.gaps]])),
      ),
  });
  return { gaps, leftOut: jobs.length - asked.length };
}

function Lane({
  name,
  spans,
  place,
  isSelected = false,
  onSelect,
}: {
  name: string;
  spans: TimelineRow["spans"];
  place: (span: Span) => { left: string; width: string };
  isSelected?: boolean;
  onSelect?: () => void;
}) {
  const said = spans.map((span) => `${span.label} ${spanText((span.to - span.from) / 1_000)}`);
  const label = "w-30 shrink-0 truncate text-left md:w-42";
  return (
    <div className="flex min-h-8 items-center gap-2 md:min-h-6">
      {onSelect === undefined ? (
        <span className={classes(label, "text-faint")}>{name}</span>
      ) : (
        <button
          type="button"
          title={name}
          aria-pressed={isSelected}
          onClick={onSelect}
          className={classes(
            label,
            "min-h-10 rounded hover:bg-hover md:min-h-6",
            isSelected && "font-semibold text-accent",
          )}
        >
          {name}
          <span className="sr-only">: {said.join(", ")}</span>
        </button>
      )}
      <div aria-hidden className="relative h-4 flex-1 rounded bg-raised">
        {spans.map((span, at) => (
          <span
            key={at}
            title={said[at]}
            className={classes("absolute inset-y-0 rounded-sm", TONES[span.kind])}
            style={place(span)}
          />
        ))}
      </div>
    </div>
  );
}

/** The longest stretches in which nothing worked, in words. */
function DeadTime({ dead }: { dead: readonly Span[] }) {
  const longest = dead.toSorted((one, other) => other.to - other.from - (one.to - one.from));
  if (longest.length === 0) return <p className="text-faint">Something worked all the time.</p>;
  return (
    <section aria-label="Dead time">
      <h2 className="font-semibold text-faint uppercase">Dead time</h2>
      <ol className="flex flex-col gap-0.5">
        {longest.slice(0, 10).map((span) => (
          <li key={span.from}>
            <span className="font-medium">{spanText((span.to - span.from) / 1_000)}</span>{" "}
            <span className="text-soft">{span.label}</span>{" "}
            <span className="text-faint">{timeText(new Date(span.from).toISOString())}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
