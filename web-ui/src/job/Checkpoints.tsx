import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { getPage, type Page } from "../api/client";
import type { Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { usdText } from "../ui/money";
import { Failure, Section } from "../ui/Page";
import { ShowMore } from "../ui/ShowMore";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";
import type { JobDocument } from "./documents";
import type { ForkPoint } from "./fork_point";
import { jobPath } from "./job_source";
import { useJobActions } from "./use_actions";

type CheckpointRow = Schemas["CheckpointRow"];
interface CheckpointPage extends Page<CheckpointRow> {
  total: number;
  removed: number;
}
const PAGE = 20;

/** The job's checkpoints, newest first: each can be resumed or forked. */
export function Checkpoints({
  job,
  onFork,
}: {
  job: JobDocument;
  onFork: (point: ForkPoint) => void;
}) {
  const acting = useActing();
  const act = useJobActions(job);
  const pages = useInfiniteQuery({
    queryKey: ["checkpoints", job.id],
    queryFn: ({ pageParam, signal }) =>
      getPage<CheckpointRow>(
        `${jobPath(job.id)}/checkpoints`,
        { limit: PAGE, before: pageParam },
        signal,
      ) as Promise<CheckpointPage>,
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next_before as number | null,
    meta: { live: ["job"] },
  });
  const rows = pages.data?.pages.flatMap((page) => page.data) ?? [];
  const first = pages.data?.pages[0];
  const removed = first?.removed ?? 0;
  return (
    <Section
      title="Checkpoints"
      aside={`${first?.total ?? 0}${removed > 0 ? `, ${removed} removed by retention` : ""}`}
    >
      {pages.isError && <Failure error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isSuccess && rows.length === 0 && <p className="text-sm text-faint">none</p>}
      {rows.length > 0 && (
        <Table
          label="Checkpoints of the job"
          rows={rows}
          rowKey={(row) => String(row.number)}
          columns={[
            {
              head: "number",
              isNumber: true,
              cell: (row) => (
                <Link
                  to={`/jobs/${job.id}`}
                  hash={String(row.seq)}
                  className="text-accent underline"
                  title="Go there in the transcript"
                >
                  {row.number}
                </Link>
              ),
            },
            { head: "turn", isNumber: true, cell: (row) => row.turn },
            { head: "why", cell: (row) => row.trigger.replaceAll("_", " ") },
            { head: "cost", isNumber: true, cell: (row) => usdText(row.cost_usd) },
            { head: "made", cell: (row) => <Ago at={row.created_at} /> },
            {
              head: "continue",
              cell: (row) => (
                <span className="flex gap-1">
                  <Button
                    look="ghost"
                    aria-label={`Resume at checkpoint ${row.number}`}
                    disabled={acting.disabled || act.isPending}
                    title={acting.title}
                    onClick={() =>
                      act.mutate({ verb: "resume", body: { at_checkpoint: row.number } })
                    }
                  >
                    Resume
                  </Button>
                  <Button
                    look="ghost"
                    aria-label={`Fork at checkpoint ${row.number}`}
                    disabled={acting.disabled}
                    title={acting.title}
                    onClick={() => onFork({ at_checkpoint: row.number })}
                  >
                    Fork
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
      <ShowMore pages={pages} />
    </Section>
  );
}
