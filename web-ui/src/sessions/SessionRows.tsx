import { Link } from "@tanstack/react-router";

import type { SessionRow } from "../api/types";
import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import { State } from "../ui/Status";
import { Ago } from "../ui/time";
import { keyText, messagesText, titleOf } from "./documents";
import type { Picked } from "./use_picked";

/** Sessions as a list, on any width. */
export function SessionRows({ rows, picks }: { rows: readonly SessionRow[]; picks: Picked }) {
  return (
    <ul aria-label="Sessions" className="rounded-lg border border-line bg-panel">
      {rows.map((session) => (
        <li
          key={session.id}
          data-row={session.id}
          className={classes(
            "flex flex-wrap items-center gap-x-3 gap-y-0.5 border-b border-line px-3 py-2 text-sm last:border-0 focus-within:bg-hover hover:bg-hover",
            picks.picked.includes(session.id) && "bg-accent-soft",
          )}
        >
          <label className="-m-2 grid size-11 shrink-0 place-items-center md:size-8">
            <input
              type="checkbox"
              aria-label={`Select ${titleOf(session)} to compare it`}
              checked={picks.picked.includes(session.id)}
              onChange={() => picks.toggle(session.id)}
            />
          </label>
          <span className="order-1 shrink-0 md:order-none md:w-24">
            <State
              status={session.lost === null ? session.status : "lost"}
              {...(session.lost !== null && { title: `its worker is gone: ${session.lost.job}` })}
            />
          </span>
          <span className="min-w-0 flex-1 md:basis-60">
            <Link
              to={`/sessions/${session.id}`}
              data-row-link
              className="inline-flex min-h-11 flex-wrap items-center gap-x-2 font-medium hover:underline md:min-h-0"
            >
              <span className="[overflow-wrap:anywhere]">{session.name ?? session.agent}</span>
              <span className="font-mono text-xs font-normal text-faint">
                {session.id.replace(/^sess-/, "")}
              </span>
            </Link>
            <span className="block truncate text-xs text-soft">
              {[
                session.name === null ? null : session.agent,
                keyText(session),
                session.parent_session_id === null
                  ? null
                  : `fork of ${session.parent_session_id} after message ${session.base_messages}`,
              ]
                .filter((part) => part !== null)
                .join(" · ")}
            </span>
          </span>
          <span className="order-2 flex w-full flex-wrap gap-x-3 pl-10 text-xs text-soft tabular-nums md:order-none md:w-auto md:pl-0 md:text-sm">
            <span className="md:w-28 md:text-right">{messagesText(session.message_count)}</span>
            <span className="md:w-16 md:text-right">
              {session.job_count === 1 ? "1 job" : `${session.job_count} jobs`}
            </span>
            <span className="md:w-20 md:text-right">{usdText(session.cost_usd)}</span>
            <span className="md:w-28 md:text-right">
              <Ago at={session.last_active_at} />
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}
