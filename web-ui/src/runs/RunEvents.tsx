import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";

import { request } from "../api/client";
import type { Answer } from "../api/types";
import { Button } from "../ui/Button";
import { classes } from "../ui/classes";
import { Failure, Loading } from "../ui/Page";
import { runPath, type RunDocument } from "./documents";
import { lineOf, type EventLine } from "./run_events";

const LIMIT = 200;
type EventPage = Answer<"/v1/runs/{run}/events">;

/** What happened in a run, first to last; events of its jobs on demand. `asOf` is when the run was last looked at. */
export function RunEvents({ run, asOf }: { run: RunDocument; asOf: number }) {
  const [hasJobs, setHasJobs] = useState(false);
  const events = useInfiniteQuery({
    queryKey: ["run-events", run.id],
    queryFn: ({ pageParam, signal }) =>
      request<EventPage>(`${runPath(run.id)}/events`, {
        query: { after: pageParam, limit: LIMIT },
        signal,
      }),
    initialPageParam: "0",
    getNextPageParam: (page) => page.next_after,
    staleTime: Infinity,
  });
  const { fetchNextPage } = events;
  const isAtEnd = (events.data?.pages.at(-1)?.data.length ?? LIMIT) < LIMIT;
  // A run that changed has further events; a person who has not come to the end asks for more.
  useEffect(() => {
    if (isAtEnd) void fetchNextPage({ cancelRefetch: false });
  }, [asOf, isAtEnd, fetchNextPage]);
  const lines = useMemo(
    () =>
      (events.data?.pages ?? [])
        .flatMap((page) => page.data)
        .filter(({ type }) => hasJobs || type !== "job")
        .map(lineOf),
    [events.data, hasJobs],
  );
  if (events.isPending) return <Loading />;
  if (events.isError) {
    return <Failure error={events.error} retry={() => void events.refetch()} />;
  }
  return (
    <div className="flex flex-col gap-2">
      <label className="flex min-h-8 items-center gap-2 text-sm">
        <input
          type="checkbox"
          checked={hasJobs}
          onChange={(event) => setHasJobs(event.target.checked)}
        />
        Events of the jobs too
      </label>
      <ol aria-label="Events" className="rounded-lg border border-line bg-panel py-1 text-sm">
        {lines.map((line) => (
          <Line key={line.id} line={line} />
        ))}
      </ol>
      {!isAtEnd && (
        <Button
          className="self-start"
          disabled={events.isFetchingNextPage}
          onClick={() => void fetchNextPage()}
        >
          Show more
        </Button>
      )}
    </div>
  );
}

const TONES: Record<EventLine["tone"], string> = {
  plain: "",
  bad: "text-bad",
  wait: "text-wait",
  quiet: "text-soft",
};

function Line({ line }: { line: EventLine }) {
  return (
    <li className="flex flex-wrap gap-x-3 px-3 py-0.5">
      <span className="w-20 shrink-0 font-mono text-xs leading-5 text-faint">
        {line.at === null ? "" : new Date(line.at).toLocaleTimeString([], { hour12: false })}
      </span>
      <span className="font-medium [overflow-wrap:anywhere]">{line.phase || "run"}</span>
      <span
        className={classes("min-w-0 flex-1 basis-40 [overflow-wrap:anywhere]", TONES[line.tone])}
      >
        {line.text}
      </span>
      {line.job !== null && (
        <Link
          to={`/jobs/${line.job.id}`}
          {...(line.job.seq > 0 && { hash: String(line.job.seq) })}
          className="text-xs leading-5 text-accent underline"
        >
          {line.job.seq > 0 ? `#${line.job.seq}` : "job"}
          <span className="sr-only"> of {line.job.id}</span>
        </Link>
      )}
    </li>
  );
}
