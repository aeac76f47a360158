import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { get } from "../api/client";
import { ApiProblem, messageOf } from "../api/problem";
import { PatchView } from "../transcript/DiffView";
import { Select } from "../ui/fields";
import { Failure, Loading, Section } from "../ui/Page";
import { isOpen, type JobDiff, type JobDocument } from "./documents";
import { jobPath } from "./job_source";
import { Landing } from "./Landing";

/** What the job changed in its workspace, and how to take it over. */
export function WorkspaceChanges({ job }: { job: JobDocument }) {
  const hasWorkspace = job.workspace !== null;
  const [part, setPart] = useState("");
  const diff = useQuery({
    queryKey: ["diff", job.id, part],
    queryFn: ({ signal }) => {
      const query = part === "all" ? { all: true } : { turn: part };
      return get<JobDiff>(`${jobPath(job.id)}/diff`, query, signal);
    },
    enabled: hasWorkspace && job.started_at !== null,
    retry: false,
    meta: { live: ["job"] },
  });
  if (!hasWorkspace) return null;
  // A job that has just begun has no snapshot yet: that is no failure.
  const isEarly = isOpen(job) && diff.error instanceof ApiProblem && diff.error.status === 409;
  const files = diff.data?.files ?? [];
  return (
    <Section title="Changed files" aside={diff.data === undefined ? "" : `${files.length}`}>
      <Select
        aria-label="Changes of"
        className="mb-2 min-h-10 md:min-h-8"
        value={part}
        onChange={(event) => setPart(event.target.value)}
        options={[
          ["", "by this job"],
          ["all", "since the workspace was made"],
          ...turnsOf(job).map((turn) => [String(turn), `in turn ${turn}`] as const),
        ]}
      />
      {diff.isLoading && <Loading />}
      {isEarly && <p className="text-sm text-faint">{messageOf(diff.error)}</p>}
      {diff.isError && !isEarly && <Failure error={diff.error} retry={() => void diff.refetch()} />}
      {diff.data !== undefined && (
        <div className="flex flex-col gap-2">
          {files.length === 0 && <p className="text-sm text-faint">The job changed no files.</p>}
          <ul className="text-sm">
            {files.map((file) => (
              <li key={file.path} className="flex items-baseline gap-2">
                <span className="min-w-0 font-mono text-xs [overflow-wrap:anywhere]">
                  {file.old_path !== null && `${file.old_path} → `}
                  {file.path}
                </span>
                <span className="ml-auto shrink-0 text-xs text-faint">
                  {file.status}
                  {file.added !== null && ` +${file.added}`}
                  {file.removed !== null && ` −${file.removed}`}
                </span>
              </li>
            ))}
          </ul>
          {diff.data.left_out_count > 0 && (
            <p className="text-xs text-wait">
              {diff.data.left_out_count} files are in no snapshot: {diff.data.left_out.join(", ")}
            </p>
          )}
          {diff.data.is_patch_left_out && (
            <p className="text-sm text-faint">
              The patch is too large for the page: <code>nightherd jobs diff {job.id}</code>
            </p>
          )}
          {diff.data.patch && <PatchView patch={diff.data.patch} />}
          {files.length > 0 && part === "" && <Landing job={job} />}
        </div>
      )}
    </Section>
  );
}

const MOST_TURNS = 200;

/** The newest turns of the job, last first. */
function turnsOf({ turns }: JobDocument): number[] {
  return Array.from({ length: Math.min(turns, MOST_TURNS) }, (_, place) => turns - place);
}
