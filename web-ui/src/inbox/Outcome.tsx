import { Link } from "@tanstack/react-router";

import type { ItemDocument, Schemas } from "../api/types";
import { LongText } from "../transcript/LongText";
import { State } from "../ui/Status";
import { Ago } from "../ui/time";
import { VERDICT_DONE } from "./verdicts";

/** Who decided an item, where and when, and what became of it. */
export function Outcome({ item }: { item: ItemDocument }) {
  return (
    <section
      aria-label="Decision"
      className="flex flex-col gap-2 rounded-md border border-line bg-raised p-3 text-sm"
    >
      <p>
        <State status={item.status} />{" "}
        {item.decided_by !== null && (
          <>
            by <strong>{item.decided_by}</strong>
            {item.decided_via !== null && ` (${item.decided_via})`}
          </>
        )}{" "}
        {item.decided_at !== null && <Ago at={item.decided_at} />}
      </p>
      {item.reply !== null && (
        <p className="[overflow-wrap:anywhere] whitespace-pre-wrap">{item.reply}</p>
      )}
      {item.changed_input !== null && (
        <details>
          <summary>with changes</summary>
          <LongText id={`${item.id}:changed`} text={JSON.stringify(item.changed_input, null, 2)} />
        </details>
      )}
      {item.job_id !== null && item.job_status !== null && (
        <p>
          The job is {item.job_status}.{" "}
          <Link to={`/jobs/${item.job_id}`} className="text-accent underline">
            Look at it
          </Link>
        </p>
      )}
      {item.job_id === null && item.workflow_run_id !== null && item.run_status !== null && (
        <p>
          The run is {item.run_status}.{" "}
          <Link to={`/runs/${item.workflow_run_id}`} className="text-accent underline">
            Look at it
          </Link>
        </p>
      )}
    </section>
  );
}

/** Every answer and comment so far. */
export function History({ answers }: { answers: readonly Schemas["AnswerRow"][] }) {
  if (answers.length === 0) return null;
  return (
    <section aria-label="Answers" className="text-sm">
      <h3 className="mb-1 text-xs font-semibold tracking-wide text-faint uppercase">Answers</h3>
      <ol className="flex flex-col gap-1">
        {answers.map((answer, place) => (
          <li key={place} className="[overflow-wrap:anywhere]">
            <strong>{answer.by}</strong> {VERDICT_DONE[answer.verdict]} ({answer.via}),{" "}
            <Ago at={answer.at} />
            {answer.text !== null && <span className="whitespace-pre-wrap">: {answer.text}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
