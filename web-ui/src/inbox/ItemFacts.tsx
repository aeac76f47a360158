import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { ItemDocument } from "../api/types";
import { Markdown } from "../transcript/Markdown";
import { countText } from "../ui/money";
import { JobState, State } from "../ui/Status";
import { useJobOf, useLastWords } from "./use_context";
import { approvals } from "./verdicts";

/** What an item is part of: its job or run, what was asked of it, what it cost, and who may answer. */
export function ItemFacts({ item }: { item: ItemDocument }) {
  const job = useJobOf(item).data;
  const words = useLastWords(item).data;
  const approved = approvals(item);
  const link = "text-accent underline";
  return (
    <section aria-label="About it" className="flex flex-col gap-3 text-sm">
      {words != null && words.text !== "" && (
        <Quote title="The agent said">
          <Markdown text={words.text} />
        </Quote>
      )}
      {job?.prompt != null && job.prompt !== "" && (
        <Quote title="Its task">
          <div
            className="max-h-40 overflow-y-auto"
            tabIndex={0}
            role="region"
            aria-label="Its task"
          >
            <Markdown text={job.prompt} />
          </div>
        </Quote>
      )}
      <dl className="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-1">
        {item.agent !== null && (
          <Fact name="agent">
            <Link to={`/agents/${encodeURIComponent(item.agent)}`} className={link}>
              {item.agent}
            </Link>
            {item.schedule !== null && `, schedule ${item.schedule}`}
          </Fact>
        )}
        {item.job_id !== null && (
          <Fact name="job">
            <Link
              to={`/jobs/${item.job_id}`}
              {...(words != null && { hash: String(words.seq) })}
              className={link}
            >
              {item.job_id}
            </Link>{" "}
            {job !== undefined && <JobState job={job} />}
            {job === undefined && item.job_status !== null && <State status={item.job_status} />}
          </Fact>
        )}
        {item.workflow_run_id !== null && (
          <Fact name="run">
            <Link to={`/runs/${item.workflow_run_id}`} className={link}>
              {item.workflow ?? item.workflow_run_id}
            </Link>
            {item.gate !== null && `, gate ${item.gate}`}{" "}
            {item.run_status !== null && <State status={item.run_status} />}
          </Fact>
        )}
        {item.cost !== null && (
          <Fact name="cost so far">
            {item.cost}
            {job !== undefined && `, ${countText(job.turns)} ${job.turns === 1 ? "turn" : "turns"}`}
          </Fact>
        )}
        {item.quorum > 1 && (
          <Fact name="approvals">
            {approved.length} of {item.quorum}
            {approved.length > 0 && ` (${approved.join(", ")})`}
          </Fact>
        )}
        {item.approvers.length > 0 && (
          <Fact name="who may answer">{item.approvers.join(", ")}</Fact>
        )}
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="contents">
      <dt className="text-faint">{name}</dt>
      <dd className="[overflow-wrap:anywhere]">{children}</dd>
    </div>
  );
}

function Quote({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="border-l-2 border-line pl-3">
      <h3 className="text-xs text-faint">{title}</h3>
      {children}
    </div>
  );
}
