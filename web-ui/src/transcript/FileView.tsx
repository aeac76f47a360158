import { useCallback, useMemo, useState } from "react";

import { classes } from "../ui/classes";
import type { OpenedFile, OpenedJob } from "./parse_journal";
import { LocalSource } from "./source";
import { TranscriptStore } from "./store";
import { Transcript } from "./Transcript";

/** Jobs of a file, in the same view as the jobs of a fleet. */
export function FileView({ file, at }: { file: OpenedFile; at: { seq: number } | null }) {
  const [shown, setShown] = useState(0);
  const job = file.jobs[shown] ?? file.jobs[0];
  return (
    <div className="flex h-full min-h-0 flex-col">
      <header className="flex flex-wrap items-baseline gap-x-4 gap-y-1 border-b border-line px-4 py-2.5">
        <h1 className="text-base font-semibold [overflow-wrap:anywhere]">{file.name}</h1>
        <dl className="flex flex-wrap gap-x-4 text-sm">
          {file.facts
            .filter(([, value]) => value)
            .map(([name, value]) => (
              <div key={name} className="flex gap-1">
                <dt className="text-faint">{name}</dt>
                <dd className="[overflow-wrap:anywhere]">{value}</dd>
              </div>
            ))}
        </dl>
        {file.ignored > 0 && (
          <span className="text-xs text-wait">{file.ignored} lines ignored</span>
        )}
      </header>
      {file.jobs.length > 1 && (
        <nav
          aria-label="Jobs"
          className="flex gap-1 overflow-x-auto border-b border-line px-4 py-1"
        >
          {file.jobs.map((one, place) => (
            <button
              key={place}
              type="button"
              aria-current={place === shown}
              onClick={() => setShown(place)}
              className={classes(
                "rounded px-2 font-mono text-xs",
                place === shown && "bg-accent-soft",
              )}
            >
              {one.id}
            </button>
          ))}
        </nav>
      )}
      {job !== undefined && <JobOfFile key={shown} job={job} at={at} />}
    </div>
  );
}

function JobOfFile({ job, at }: { job: OpenedJob; at: { seq: number } | null }) {
  const store = useMemo(() => new TranscriptStore(new LocalSource(job.events)), [job]);
  const [first] = useState(() => at ?? { seq: job.events[0]?.seq ?? 1 });
  const errors = useMemo(
    () =>
      job.events
        .filter(
          (event) =>
            event.type === "error" || (event.type === "tool_result" && event.success === false),
        )
        .map((event) => event.seq),
    [job],
  );
  const linkTo = useCallback((seq: number) => `#${seq}`, []);
  const searchAll = useCallback(
    (words: string) => {
      const wanted = words.toLowerCase();
      const hit = job.events.find((event) => JSON.stringify(event).toLowerCase().includes(wanted));
      return Promise.resolve(hit?.seq ?? null);
    },
    [job],
  );
  return (
    <Transcript
      store={store}
      at={at ?? first}
      linkTo={linkTo}
      errors={errors}
      searchAll={searchAll}
    />
  );
}
