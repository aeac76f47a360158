import { Link } from "@tanstack/react-router";

import { LongText } from "../transcript/LongText";
import { runLimitText, type RunDocument } from "./documents";
import { typedOf } from "./run_inputs";
import { ScratchEditor } from "./ScratchEditor";

/** What a run was given, what it may use, what it keeps, and the runs that it started. */
export function RunFacts({ run }: { run: RunDocument }) {
  const payload: unknown = run.trigger["payload"];
  return (
    <div className="grid gap-4 text-sm md:grid-cols-2">
      <Part title="Inputs">
        <Values values={run.inputs} />
      </Part>
      <Part title="Limits">
        {run.limits.length === 0 && <p className="text-faint">none for the whole run</p>}
        <ul className="flex flex-col gap-1">
          {run.limits.map((limit) => (
            <li key={limit.name} className="flex items-center gap-2">
              <span className="w-20 text-faint">{limit.name}</span>
              <meter
                min={0}
                max={limit.maximum}
                value={Math.min(limit.used, limit.maximum)}
                aria-label={limit.name}
                className="h-2 w-28"
              />
              {runLimitText(limit.name, limit.used)} of {runLimitText(limit.name, limit.maximum)}
            </li>
          ))}
        </ul>
      </Part>
      <Part title="Scratch">
        <ScratchEditor run={run} />
      </Part>
      <Part title="Trigger">
        <p>
          {run.trigger_type.replaceAll("_", " ")}
          {run.started_by !== null && ` by ${run.started_by}`}
          {run.repo !== null && ` · ${run.repo}`}
          {run.issue_number !== null && ` #${run.issue_number}`}
        </p>
        {payload != null && (
          <LongText id={`payload:${run.id}`} text={JSON.stringify(payload, null, 2)} />
        )}
      </Part>
      {run.child_runs.length > 0 && (
        <Part title="Runs that it started">
          <ul>
            {run.child_runs.map((id) => (
              <li key={id}>
                <Link to={`/runs/${id}`} className="text-accent underline">
                  {id}
                </Link>
              </li>
            ))}
          </ul>
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section aria-label={title} className="min-w-0">
      <h2 className="mb-1 text-xs font-semibold tracking-wide text-faint uppercase">{title}</h2>
      {children}
    </section>
  );
}

/** Values by name, as text. */
export function Values({ values }: { values: Readonly<Record<string, unknown>> }) {
  const entries = Object.entries(values);
  if (entries.length === 0) return <p className="text-faint">none</p>;
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5">
      {entries.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-faint">{name}</dt>
          <dd className="max-h-40 min-w-0 overflow-y-auto [overflow-wrap:anywhere] whitespace-pre-wrap">
            {value === null ? <span className="text-faint">not set</span> : typedOf(value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
