import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { Search } from "../shell/address";
import { classes } from "../ui/classes";
import { countText, usdText } from "../ui/money";
import { Section } from "../ui/Page";
import type { Home } from "./live_rows";

/** What ended, and what it cost. */
export function Summary({ home }: { home: Home }) {
  const { jobs, runs, spent } = home;
  const hasRuns = Object.values(runs).some(({ count }) => count > 0);
  return (
    <Section title="While you were away">
      <dl className="grid grid-cols-2 gap-2 sm:grid-cols-4">
        <Tile name="finished" to="/jobs" search={{ q: "status:completed" }}>
          {countText(jobs.completed.count)}
        </Tile>
        <Tile
          name="failed"
          to="/jobs"
          search={{ q: "status:failed" }}
          tone={jobs.failed.count > 0 ? "text-bad" : undefined}
        >
          {countText(jobs.failed.count)}
        </Tile>
        <Tile name="cancelled" to="/jobs" search={{ q: "status:cancelled" }}>
          {countText(jobs.cancelled.count)}
        </Tile>
        <Tile
          name={home.pending_jobs === 0 ? "spent" : "spent so far, still counting"}
          to="/costs"
          search={{}}
        >
          {usdText(spent.cost_usd)}
        </Tile>
      </dl>
      {hasRuns && (
        <p className="pt-2 text-sm text-soft">
          Workflow runs: {runs.succeeded.count} succeeded, {runs.failed.count} failed,{" "}
          {runs.cancelled.count} cancelled.
        </p>
      )}
    </Section>
  );
}

function Tile({
  name,
  to,
  search,
  tone,
  children,
}: {
  name: string;
  to: string;
  search: Search;
  tone?: string | undefined;
  children: ReactNode;
}) {
  return (
    <div className="relative flex flex-col-reverse rounded-lg border border-line bg-panel px-3 py-2 hover:bg-hover">
      <dt className="text-xs text-faint">
        <Link to={to} search={search} className="after:absolute after:inset-0">
          {name}
        </Link>
      </dt>
      <dd className={classes("text-2xl font-semibold tabular-nums", tone)}>{children}</dd>
    </div>
  );
}
