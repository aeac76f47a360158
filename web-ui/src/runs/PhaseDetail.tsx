import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { get } from "../api/client";
import { waitText } from "../graph/from_run";
import { doesText } from "../graph/PhaseFacts";
import type { Phase } from "../graph/phase";
import type { Outline } from "../job/documents";
import { jobPath } from "../job/job_source";
import { Button } from "../ui/Button";
import { usdText } from "../ui/money";
import { JobState, State } from "../ui/Status";
import { Ago, spanText, timeText } from "../ui/time";
import { hasEnded, isRunOpen, type NodeRow, type RunDocument } from "./documents";
import { GateAnswer } from "./GateAnswer";
import { PhaseOutput } from "./PhaseOutput";

/** One phase of a run: what it did, what it gave, and what it waits for. */
export function PhaseDetail({
  run,
  node,
  phase,
  onFork,
  onSignal,
}: {
  run: RunDocument;
  /** Null for a phase that the run has not come to. */
  node: NodeRow | null;
  phase: Phase;
  onFork: (phase: string) => void;
  onSignal: (event: string) => void;
}) {
  const canFork =
    !phase.path.includes("/") && !phase.path.includes("[") && run.parent_run_id === null;
  return (
    <div className="flex flex-col gap-3 text-sm">
      <p className="flex flex-wrap items-center gap-2">
        {phase.status !== null && <State status={phase.status} />}
        {phase.isLost && <State status="lost" title="Its worker is gone" />}
        <span className="text-soft">{doesText(phase)}</span>
      </p>
      {node !== null && <Facts node={node} />}
      {node !== null && <Waiting run={run} node={node} onSignal={onSignal} />}
      {node?.error != null && (
        <p className="rounded-md border border-bad bg-bad-soft px-3 py-2 [overflow-wrap:anywhere] whitespace-pre-wrap text-bad">
          {node.error}
        </p>
      )}
      {node?.error == null && phase.note !== null && node?.waits_for == null && (
        <p className="text-soft">{phase.note}</p>
      )}
      {node?.message != null && <p className="[overflow-wrap:anywhere]">{node.message}</p>}
      {node !== null && hasEnded(node) && node.status !== "skipped" && node.kind !== "until" && (
        <PhaseOutput key={node.path} run={run.id} node={node} />
      )}
      {node !== null && node.attempts.length > 0 && <Attempts node={node} />}
      {canFork && node !== null && (
        <Button className="self-start" onClick={() => onFork(phase.path)}>
          Fork the run here
        </Button>
      )}
    </div>
  );
}

function Facts({ node }: { node: NodeRow }) {
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1">
      {node.job_id !== null && (
        <Fact name="Job">
          <JobLink node={node} id={node.job_id} />
        </Fact>
      )}
      {node.child_run_id !== null && (
        <Fact name="Run">
          <Link to={`/runs/${node.child_run_id}`} className="text-accent underline">
            {node.child_run_id}
          </Link>
        </Fact>
      )}
      {node.began_at !== null && (
        <Fact name="Began">
          <Ago at={node.began_at} />
        </Fact>
      )}
      {node.ended_at !== null && (
        <Fact name="Ended">
          <Ago at={node.ended_at} />
        </Fact>
      )}
      {node.duration_seconds !== null && (
        <Fact name={node.job_id === null ? "Open for" : "Worked"}>
          {spanText(node.duration_seconds)}
        </Fact>
      )}
      {node.cost_usd > 0 && <Fact name="Cost">{usdText(node.cost_usd)}</Fact>}
      {node.exit_code !== null && <Fact name="Exit code">{node.exit_code}</Fact>}
      {node.kept_from !== null && (
        <Fact name="Kept from">
          <Link to={`/runs/${node.kept_from}`} className="text-accent underline">
            {node.kept_from}
          </Link>
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <>
      <dt className="text-faint">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
    </>
  );
}

/** The job of a phase; while it is open, with its last sign of life. */
function JobLink({ node, id }: { node: NodeRow; id: string }) {
  const isOpen = !hasEnded(node);
  const outline = useQuery({
    queryKey: ["outline", id],
    queryFn: ({ signal }) => get<Outline>(`${jobPath(id)}/outline`, undefined, signal),
    enabled: isOpen,
    meta: { live: ["job"] },
  });
  const worker = outline.data?.executions.at(-1)?.worker;
  return (
    <>
      <Link to={`/jobs/${id}`} className="text-accent underline">
        {id}
      </Link>{" "}
      {node.job_status !== null && (
        <JobState
          job={{
            status: node.job_status,
            suspend_reason: null,
            lost: node.lost,
            waits_behind: null,
          }}
        />
      )}
      {isOpen && outline.data?.last_at != null && (
        <span className="text-soft">
          {" "}
          last event <Ago at={outline.data.last_at} />
          {worker !== undefined && ` · worker ${worker}`}
        </span>
      )}
    </>
  );
}

/** What the phase waits for, and the way to continue it. */
function Waiting({
  run,
  node,
  onSignal,
}: {
  run: RunDocument;
  node: NodeRow;
  onSignal: (event: string) => void;
}) {
  const wait = node.waits_for;
  const item = wait?.item_id ?? node.inbox_item_id;
  if (wait === null) return item === null ? null : <GateAnswer key={item} id={item} />;
  return (
    <div className="flex flex-col gap-2 rounded-md border border-wait bg-wait-soft px-3 py-2">
      <p className="[overflow-wrap:anywhere] text-wait">
        {item === null ? waitText(wait) : "Waits for a person"}
        {wait.until !== null && (
          <>
            , until {timeText(wait.until)} (<Ago at={wait.until} />)
          </>
        )}
      </p>
      {wait.for === "event" && node.does !== null && isRunOpen(run) && (
        <Button className="self-start" onClick={() => onSignal(node.does ?? "")}>
          Send the event {node.does}
        </Button>
      )}
      {item !== null && <GateAnswer key={item} id={item} />}
    </div>
  );
}

function Attempts({ node }: { node: NodeRow }) {
  return (
    <div>
      <h3 className="text-xs font-semibold text-faint uppercase">Attempts</h3>
      <ol className="flex flex-col gap-1">
        {node.attempts.map((attempt) => (
          <li key={attempt.attempt} className="flex flex-wrap items-center gap-x-2">
            <span>{attempt.attempt}.</span>
            <State status={attempt.status} />
            <Ago at={attempt.began_at} />
            {attempt.job_id !== null && (
              <Link to={`/jobs/${attempt.job_id}`} className="text-accent underline">
                {attempt.job_id}
              </Link>
            )}
            {attempt.error !== null && (
              <span className="[overflow-wrap:anywhere] text-bad">{attempt.error}</span>
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}
