import { Link } from "@tanstack/react-router";

import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import { JobState } from "../ui/Status";
import { Ago } from "../ui/time";
import type { JobRowsProps } from "./JobTable";
import { outcomeText, shortId, startText, turnsText } from "./job_text";
import { linkId } from "./link_id";
import { toggled } from "./selection";

/** Jobs as cards, for narrow windows. */
export function JobCards({ rows, selection, onSelect }: JobRowsProps) {
  return (
    <ul aria-label="Jobs" className="-mx-4 flex flex-col border-t border-line">
      {rows.map((job) => (
        <li
          key={job.id}
          data-job={job.id}
          className={classes(
            "flex border-b border-line bg-panel",
            selection.ids.has(job.id) && "bg-accent-soft",
          )}
        >
          <label className="flex w-11 shrink-0 items-center justify-center">
            <input
              type="checkbox"
              aria-label={`Select ${job.id}`}
              className="size-5"
              checked={selection.ids.has(job.id)}
              onChange={() => onSelect(toggled(selection, job.id))}
            />
          </label>
          <Link
            id={linkId(job.id)}
            to={`/jobs/${job.id}`}
            className="flex min-w-0 flex-1 flex-col gap-0.5 py-2.5 pr-4"
          >
            <span className="flex items-center gap-2 text-sm">
              <JobState job={job} />
              <span className="min-w-0 truncate font-medium">{job.agent}</span>
              <span className="font-mono text-xs text-faint">{shortId(job.id)}</span>
              <span className="ml-auto shrink-0 text-xs text-faint">
                <Ago at={job.created_at} />
              </span>
            </span>
            <span className="line-clamp-2 text-sm [overflow-wrap:anywhere] text-soft">
              {outcomeText(job)}
            </span>
            <span className="text-xs text-faint">
              {startText(job)} · {turnsText(job.turns)} · {usdText(job.cost_usd)}
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
