import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { Declared } from "../graph/from_definition";
import { LongText } from "../transcript/LongText";
import { usdText } from "../ui/money";
import { durationText } from "./triggers";

/** A phase as its workflow declares it. */
export function DeclaredPhase({ phase }: { phase: Declared }) {
  const { action } = phase;
  return (
    <div className="flex flex-col gap-3 text-sm">
      <Does action={action} name={phase.name} />
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1">
        {rulesOf(phase).map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-faint">{name}</dt>
            <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Does({ action, name }: { action: Declared["action"]; name: string }) {
  const id = `declared:${name}`;
  switch (action.kind) {
    case "agent":
      return (
        <>
          <p>
            A job of{" "}
            <Link
              to={`/agents/${encodeURIComponent(action.agent)}`}
              className="text-accent underline"
            >
              {action.agent}
            </Link>
            {action.model !== null && `, model ${action.model}`}
            {action.session !== null && `, in the session of ${action.session}`}
            {action.skill !== null && `, skill ${action.skill}`}
          </p>
          <LongText id={id} text={action.prompt} />
        </>
      );
    case "command":
      return (
        <>
          <p>A command ({action.language})</p>
          <LongText id={id} text={action.command} />
          {action.stdin !== null && (
            <Labelled name="standard input">
              <LongText id={`${id}:stdin`} text={action.stdin} />
            </Labelled>
          )}
        </>
      );
    case "workflow":
      return (
        <p>
          A run of{" "}
          <Link
            to={`/workflows/${encodeURIComponent(action.workflow)}`}
            className="text-accent underline"
          >
            {action.workflow}
          </Link>
        </p>
      );
    case "gate":
      return (
        <>
          <p>
            Waits for a person ({action.gate}
            {action.quorum > 1 && `, ${action.quorum} of them`}
            {action.approvers.length > 0 && `: ${action.approvers.join(", ")}`})
          </p>
          <LongText id={id} text={action.summary} />
        </>
      );
    case "wait":
      return <p>Waits for {action.event ?? action.duration ?? action.until}</p>;
    case "block":
      return <p>A block of {action.phases.length} phases</p>;
  }
}

function Labelled({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <p className="text-xs text-faint">{name}</p>
      {children}
    </div>
  );
}

/** When and how often the phase runs, and what its failure does. */
function rulesOf(phase: Declared): [string, ReactNode][] {
  const rules: [string, ReactNode][] = [];
  const add = (name: string, value: ReactNode) => rules.push([name, value]);
  if (phase.depends_on.length > 0) add("after", phase.depends_on.join(", "));
  if (phase.trigger_rule !== "all_success") add("runs if", phase.trigger_rule.replaceAll("_", " "));
  if (phase.when !== null) add("when", <Code text={phase.when} />);
  if (phase.for_each !== null) {
    add("for each of", <Code text={phase.for_each.items} />);
    add("at once", phase.for_each.max_parallel);
  }
  if (phase.loop !== null) {
    add("iterations", `at most ${phase.loop.max_iterations}`);
    if (phase.loop.until !== null) add("until", <Code text={phase.loop.until} />);
    const command = phase.loop.until_command;
    if (command !== null) add("until it succeeds", <Code text={command.command} />);
  }
  if (phase.retries > 0) add("retries", phase.retries);
  if (phase.timeout !== null) add("timeout", durationText(phase.timeout));
  if (phase.on_failure === "continue") add("on failure", "the run goes on");
  if (phase.action.kind === "command") add("when cut off", phase.action.on_interrupt);
  if (phase.action.kind === "agent" && phase.action.limits.spend !== null) {
    add("limit", usdText(phase.action.limits.spend / 1_000_000));
  }
  if (phase.untrusted) add("output", "untrusted: text that other people wrote");
  return rules;
}

function Code({ text }: { text: string }) {
  return <code className="font-mono text-xs">{text}</code>;
}
