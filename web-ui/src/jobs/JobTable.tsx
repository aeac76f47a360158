import { Link } from "@tanstack/react-router";

import type { JobRow } from "../api/types";
import { classes } from "../ui/classes";
import { usdText } from "../ui/money";
import { JobState } from "../ui/Status";
import { Ago, useNow } from "../ui/time";
import { durationText, outcomeText, shortId, startText } from "./job_text";
import { linkId } from "./link_id";
import { isAllChosen, toggled, toggledAll, type Selection } from "./selection";

export interface JobRowsProps {
  rows: readonly JobRow[];
  selection: Selection;
  onSelect: (selection: Selection) => void;
}

const HEAD = "px-2 py-1.5 font-medium";
const CELL = "px-2 py-1.5 align-top";
const NUMBER = "text-right whitespace-nowrap tabular-nums";

/** Jobs as a table. */
export function JobTable({ rows, selection, onSelect }: JobRowsProps) {
  const ids = rows.map(({ id }) => id);
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-panel">
      <table className="w-full text-sm" aria-label="Jobs">
        <thead className="border-b border-line text-left text-xs text-faint">
          <tr>
            <th scope="col" className={classes(HEAD, "w-8")}>
              <input
                type="checkbox"
                aria-label="Select all jobs that are shown"
                checked={isAllChosen(selection, ids)}
                onChange={() => onSelect(toggledAll(selection, ids))}
              />
            </th>
            <th scope="col" className={HEAD}>
              state
            </th>
            <th scope="col" className={HEAD}>
              job
            </th>
            <th scope="col" className={HEAD}>
              started by
            </th>
            <th scope="col" className={classes(HEAD, NUMBER)}>
              turns
            </th>
            <th scope="col" className={classes(HEAD, NUMBER)}>
              cost
            </th>
            <th scope="col" className={classes(HEAD, NUMBER)}>
              took
            </th>
            <th scope="col" className={classes(HEAD, NUMBER)}>
              created
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((job) => (
            <tr
              key={job.id}
              data-job={job.id}
              className={classes(
                "border-b border-line last:border-0 focus-within:bg-hover hover:bg-hover",
                selection.ids.has(job.id) && "bg-accent-soft",
              )}
            >
              <td className={CELL}>
                <input
                  type="checkbox"
                  aria-label={`Select ${job.id}`}
                  checked={selection.ids.has(job.id)}
                  onChange={() => onSelect(toggled(selection, job.id))}
                />
              </td>
              <td className={CELL}>
                <JobState job={job} />
              </td>
              <td className={classes(CELL, "w-full max-w-0")}>
                <Link
                  id={linkId(job.id)}
                  to={`/jobs/${job.id}`}
                  className="font-medium hover:underline"
                >
                  {job.agent}{" "}
                  <span className="font-mono text-xs text-faint">{shortId(job.id)}</span>
                </Link>
                <p className="truncate text-xs text-soft" title={outcomeText(job)}>
                  {outcomeText(job)}
                </p>
              </td>
              <td className={classes(CELL, "whitespace-nowrap text-soft")}>{startText(job)}</td>
              <td className={classes(CELL, NUMBER)}>{job.turns.toLocaleString("en")}</td>
              <td className={classes(CELL, NUMBER)}>{usdText(job.cost_usd)}</td>
              <td className={classes(CELL, NUMBER)}>
                <Duration job={job} />
              </td>
              <td className={classes(CELL, NUMBER, "text-soft")}>
                <Ago at={job.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Duration({ job }: { job: JobRow }) {
  return durationText(job, useNow());
}
