import { Link } from "@tanstack/react-router";

import { Card, Section } from "../ui/Page";
import { Ago } from "../ui/time";
import type { Home } from "./live_rows";

/** The schedules that are due first. */
export function NextSchedules({ schedules }: { schedules: Home["next_schedules"] }) {
  if (schedules.length === 0) return null;
  return (
    <Section title="Next">
      <Card>
        <ul aria-label="Next schedules">
          {schedules.map((schedule) => (
            <li key={schedule.id} className="border-b border-line last:border-0">
              <Link
                to="/schedules"
                className="flex min-h-10 flex-wrap items-center gap-x-3 px-3 py-1.5 text-sm hover:bg-hover"
              >
                <span className="font-medium">{schedule.id}</span>
                <span className="font-mono text-xs text-faint">{schedule.rule}</span>
                <span className="ml-auto text-soft">
                  {schedule.next_run_at !== null && <Ago at={schedule.next_run_at} />}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      </Card>
    </Section>
  );
}
