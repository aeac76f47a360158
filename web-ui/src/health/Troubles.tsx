import { Link } from "@tanstack/react-router";

import type { StatusDocument } from "../api/types";
import { Section } from "../ui/Page";
import { Ago } from "../ui/time";

/** What goes wrong now beside jobs: limits of logins, hooks, targets of notifications, held schedules. */
export function Troubles({ status }: { status: StatusDocument }) {
  const { rate_limits: limits, failed_hooks: hooks, held_schedules: held } = status;
  if (limits.length + hooks.length + held.length === 0) return null;
  return (
    <Section title="Waits and failures">
      <ul className="flex flex-col gap-1 text-sm">
        {limits.map((limit) => (
          <li key={limit.login} className="text-wait">
            {limit.login} is rate limited until <Ago at={limit.until} />: {limit.agents.join(", ")}
          </li>
        ))}
        {held.map((row) => (
          <li key={row.schedule} className="text-wait">
            <Link to="/schedules" search={{ schedule: row.schedule }} className="underline">
              {row.schedule}
            </Link>{" "}
            is held by{" "}
            {row.jobs.map((job) => (
              <Link key={job} to={`/jobs/${job}`} className="font-mono text-xs underline">
                {job}
              </Link>
            ))}
          </li>
        ))}
        {hooks.map((hook) => (
          <li key={`${hook.job_id} ${hook.name} ${hook.event}`} className="wrap-anywhere text-bad">
            hook {hook.name} ({hook.event}) of{" "}
            <Link to={`/jobs/${hook.job_id}`} className="underline">
              {hook.agent}
            </Link>{" "}
            failed: {hook.error}
          </li>
        ))}
      </ul>
    </Section>
  );
}
