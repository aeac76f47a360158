/** What the window that starts a job sends. */

import type { Schemas } from "../api/types";
import { givenLimits } from "../job/limits";

type NewJob = Schemas["NewJob"];
type SessionMode = Schemas["SessionMode"];

/** Where the job continues: as the agent is set, as another mode says, in a session that is there, or in a fork of it. */
export type SessionChoice = "own" | "new" | "kept" | "channel" | "resume" | "fork";

export interface StartForm {
  agent: string;
  prompt: string;
  inputs: Record<string, string>;
  choice: SessionChoice;
  session: string;
  channel: string;
  model: string;
  maxTurns: string;
  timeout: string;
  priority: string;
  limits: Record<string, string>;
}

export const EMPTY_FORM: StartForm = {
  agent: "",
  prompt: "",
  inputs: {},
  choice: "own",
  session: "",
  channel: "",
  model: "",
  maxTurns: "",
  timeout: "",
  priority: "",
  limits: {},
};

const MODES: Partial<Record<SessionChoice, SessionMode>> = {
  new: "fresh_per_job",
  kept: "persistent",
  channel: "per_channel",
};
const INPUT = /\$\{inputs\.([A-Za-z0-9_-]+)\}/g;

/** The names of the values that a prompt takes, in the order it names them. */
export function inputNames(prompt: string): string[] {
  return [...new Set([...prompt.matchAll(INPUT)].map(([, name = ""]) => name))];
}

/** Return the body of the request; `isBranch` runs it beside the job that holds the session. */
export function bodyOf(form: StartForm, names: readonly string[], isBranch = false) {
  const inputs = Object.fromEntries(
    names
      .map((name) => [name, form.inputs[name] ?? ""] as const)
      .filter(([, value]) => value !== ""),
  );
  const mode = MODES[form.choice];
  const isInChannel = form.choice === "own" || form.choice === "channel";
  const body: Partial<NewJob> = {
    agent: form.agent,
    ...(form.prompt.trim() !== "" && { prompt: form.prompt }),
    ...(Object.keys(inputs).length > 0 && { inputs }),
    ...(mode !== undefined && { session: mode }),
    ...(form.choice === "resume" && { resume: form.session }),
    ...(form.choice === "fork" && { fork: form.session }),
    ...(isInChannel && form.channel.trim() !== "" && { channel: form.channel.trim() }),
    ...(form.model.trim() !== "" && { model: form.model.trim() }),
    ...(form.maxTurns.trim() !== "" && { max_turns: Number(form.maxTurns) }),
    ...(form.timeout.trim() !== "" && { job_timeout: form.timeout.trim() }),
    ...(form.priority.trim() !== "" && { priority: Number(form.priority) }),
    ...(Object.keys(givenLimits(form.limits)).length > 0 && { limits: givenLimits(form.limits) }),
    ...(isBranch && form.choice !== "fork" && { branch: true }),
  };
  return body;
}

/** Why the job cannot be started as the form is; null when it can. */
export function missingOf(form: StartForm, hasDefaultPrompt: boolean): string | null {
  if (form.agent === "") return "Choose an agent";
  if (form.prompt.trim() === "" && !hasDefaultPrompt) return "Write a prompt";
  if (form.choice === "channel" && form.channel.trim() === "") return "Name a channel";
  if ((form.choice === "resume" || form.choice === "fork") && form.session === "") {
    return "Choose a session";
  }
  return null;
}
