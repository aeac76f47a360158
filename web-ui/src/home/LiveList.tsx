import { Link } from "@tanstack/react-router";

import { outcomeText, shortId, turnsText } from "../jobs/job_text";
import { Card, Empty, Section } from "../ui/Page";
import { Badge, JobState } from "../ui/Status";
import { Ago, useNow } from "../ui/time";
import { costText, liveRows, doneText, unnamed, type Home, type LiveRow } from "./live_rows";

/** What goes on now, each with what shows that it is alive or why it is not. */
export function LiveList({ home }: { home: Home }) {
  const rows = liveRows(home, useNow());
  const others = unnamed(home);
  const queued = home.waiting === 0 ? "" : `, ${home.waiting} queued`;
  return (
    <Section title="Now" aside={`${home.running.count} running${queued}`}>
      <Card>
        {rows.length === 0 && <Empty>Nothing runs.</Empty>}
        <ul aria-label="Jobs now">
          {rows.map((row) => (
            <li key={row.job.id} className="border-b border-line last:border-0">
              <Row row={row} />
            </li>
          ))}
        </ul>
      </Card>
      {others > 0 && (
        <Link
          to="/jobs"
          search={{ q: "status:running,suspended" }}
          className="inline-flex min-h-10 items-center text-sm text-accent underline"
        >
          and {others} more
        </Link>
      )}
    </Section>
  );
}

function Row({ row: { kind, job, live } }: { row: LiveRow }) {
  const last = live?.last_event ?? null;
  return (
    <Link to={`/jobs/${job.id}`} className="flex flex-col gap-0.5 px-3 py-2 hover:bg-hover">
      <span className="flex flex-wrap items-center gap-x-3 gap-y-0.5 text-sm">
        <JobState job={job} />
        {kind === "silent" && <Badge tone="wait" text="silent" title="No event for 5 minutes" />}
        <span className="font-medium">{job.agent}</span>
        <span className="font-mono text-xs text-faint">{shortId(job.id)}</span>
        <span className="text-soft">{live === null ? turnsText(job.turns) : doneText(live)}</span>
        <span className="text-soft">{costText(job, live?.max_cost_usd ?? null)}</span>
        <span className="text-xs text-faint md:ml-auto" data-testid="evidence">
          {last !== null ? (
            <>
              last event <Ago at={last.at} />
            </>
          ) : (
            <>
              {live === null ? "since" : "no event yet, started"}{" "}
              <Ago at={job.started_at ?? job.created_at} />
            </>
          )}
        </span>
      </span>
      <span className="truncate text-xs text-soft">
        {last !== null ? last.label || last.type : outcomeText(job)}
      </span>
    </Link>
  );
}
