import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { Schemas } from "../api/types";
import { Values } from "../runs/RunFacts";
import { runLimitText } from "../runs/documents";
import { typedOf } from "../runs/run_inputs";
import { concurrencyText, durationText, ruleText } from "./triggers";

type Definition = Schemas["WorkflowDefinition"];

/** What a workflow takes, what starts it, and what it may use. */
export function WorkflowFacts({ definition }: { definition: Definition }) {
  return (
    <div className="grid gap-4 text-sm md:grid-cols-2">
      <Part title="Inputs">
        <Inputs inputs={definition.inputs} />
      </Part>
      <Part title="Triggers">
        <Triggers definition={definition} />
      </Part>
      <Part title="Limits of a run">
        <Limits limits={definition.limits} />
      </Part>
      <Part title="Runs at once">
        <p>{concurrencyText(definition.concurrency)}</p>
        {definition.working_directory !== null && (
          <p className="font-mono text-xs [overflow-wrap:anywhere] text-soft">
            {definition.working_directory}
            {definition.workspace !== null && ` (${definition.workspace.mode})`}
          </p>
        )}
      </Part>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="min-w-0">
      <h2 className="mb-1 text-xs font-semibold tracking-wide text-faint uppercase">{title}</h2>
      {children}
    </section>
  );
}

function Inputs({ inputs }: { inputs: Definition["inputs"] }) {
  const entries = Object.entries(inputs);
  if (entries.length === 0) return <p className="text-faint">none</p>;
  return (
    <dl className="flex flex-col gap-1">
      {entries.map(([name, spec]) => (
        <div key={name}>
          <dt className="inline font-medium">{name}</dt>{" "}
          <dd className="inline [overflow-wrap:anywhere] text-soft">
            {spec.type}
            {spec.required && ", required"}
            {spec.default !== null && `, default ${typedOf(spec.default).replaceAll("\n", ", ")}`}
            {spec.description && ` · ${spec.description}`}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Triggers({ definition: { name, triggers } }: { definition: Definition }) {
  const schedules = Object.entries(triggers.schedules);
  const webhooks = Object.entries(triggers.webhooks);
  return (
    <ul className="flex flex-col gap-1">
      {schedules.map(([schedule, rule]) => (
        <li key={schedule}>
          <Link
            to="/schedules"
            search={{ schedule: `workflow:${name}/${schedule}` }}
            className="text-accent underline"
          >
            {schedule}
          </Link>{" "}
          <span className="font-mono text-xs">{ruleText(rule)}</span>
          <Given values={rule.inputs} />
        </li>
      ))}
      {webhooks.map(([endpoint, { inputs }]) => (
        <li key={endpoint}>
          webhook {endpoint}
          <Given values={inputs} />
        </li>
      ))}
      {triggers.chat !== null && <li>chat</li>}
      <li>{triggers.api ? "by hand and over the API" : "not by hand"}</li>
    </ul>
  );
}

function Given({ values }: { values: Readonly<Record<string, unknown>> }) {
  if (Object.keys(values).length === 0) return null;
  return (
    <div className="pl-3 text-xs">
      <Values values={values} />
    </div>
  );
}

function Limits({ limits }: { limits: Definition["limits"] }) {
  const rows = (["spend", "turns", "tokens"] as const).flatMap((name) => {
    const most = limits[name];
    return most === null ? [] : [`${name} ${runLimitText(name, most)}`];
  });
  if (limits.duration !== null) rows.push(`duration ${durationText(limits.duration)}`);
  if (rows.length === 0) return <p className="text-faint">none</p>;
  return (
    <ul>
      {rows.map((row) => (
        <li key={row}>{row}</li>
      ))}
    </ul>
  );
}
